"""Defines every error that Frontdesk raises on purpose, in one tree; only interfaces turn them into codes.

FrontdeskError
├── ConfigurationError          a setting is wrong; the message names it and says what to set
├── NotFound                    no such key, agent, …
├── Invalid                     what was asked cannot be done as it was asked; the message says what can
│   ├── InvalidArguments        it does not match its schema
│   └── LoginRefused            an OAuth request is not granted; carries the protocol's own word for why
├── Conflict                    it cannot be done now
│   ├── PendingApproval         a tool call waits for somebody's word first; carries the requests
│   ├── Busy                    another turn of the same conversation took too long
│   └── TakenOver               this turn was given up for dead, and another process has its place
├── IdentityError               who is calling could not be established from what was said
│   ├── MissingAgentId
│   ├── AgentIdMismatch
│   ├── InvalidAgentId
│   └── UnknownAgent            STRICT_AGENT_ID_VALIDATION and the agent host does not know the id
├── Unauthenticated             no credential where one is needed, or one that does not hold
├── Denied                      the caller is known and may not do this
│   └── MissingScope            … for want of a scope it could ask for
├── RateLimited                 carries the time to wait
├── Unstorable                  the database does not take a value
└── Unavailable                 a part we depend on (database, agent host, issuer) does not answer
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from typing_extensions import override


class FrontdeskError(Exception):
    """What a user of Frontdesk may see: the message says what happened and what to do.

    `str()` of it is fixed to the letter where a contract has the words. `trace` is who the refused request said it was
    from, which the journal keeps: an `identity.model.Trace`.
    """

    trace: object = None

    @property
    def full_message(self) -> str:
        """For the operator, with every detail."""
        return str(self)

    @property
    def public_message(self) -> str:
        """For everybody else, models and strangers, without anything that only the operator may know."""
        return self.full_message


class ConfigurationError(FrontdeskError):
    """A setting is missing or wrong."""


class NotFound(FrontdeskError):
    """There is nothing with the requested id."""


class Invalid(FrontdeskError):
    """The request cannot be done as it is. `hint` says more, for messages whose text is a contract."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint

    @property
    @override
    def full_message(self) -> str:
        return f"{self} ({self.hint})" if self.hint else str(self)


@dataclass(frozen=True, slots=True)
class RequestProblem:
    """One thing that is wrong with a request: the part it is in, the place within it, and what is wrong."""

    part: str
    place: Sequence[int | str]
    message: str


class InvalidArguments(Invalid):
    """What was sent does not match the schema of what was called. Without `problems`, the message says all."""

    def __init__(self, message: str, problems: Sequence[RequestProblem] = ()) -> None:
        super().__init__(message)
        self.problems = problems


class LoginRefused(Invalid):
    """A login cannot continue; `fault` is OAuth's error code."""

    def __init__(self, fault: str, message: str) -> None:
        super().__init__(message)
        self.fault = fault


class Conflict(FrontdeskError):
    """The request does not fit the present state."""


class PendingApproval(Conflict):
    """Tool calls wait for approval; `call_ids` names them."""

    def __init__(self, call_ids: Sequence[str]) -> None:
        super().__init__(
            "PENDING_APPROVAL: the agent waits for approval of a tool call; approve or reject "
            f"{', '.join(call_ids) or 'it'} before sending another message"
        )
        self.call_ids = tuple(call_ids)


class Busy(Conflict):
    """Another turn does not end."""


class TakenOver(Conflict):
    """A turn that has lost its lease must not continue."""

    def __init__(self) -> None:
        super().__init__("Another process took this turn over; what was said since is not kept; read it again")


class IdentityError(FrontdeskError):
    """The request does not identify a caller."""


class MissingAgentId(IdentityError):
    """The request names no agent; `unread_header`: its header does, but the header is switched off."""

    def __init__(self, *, unread_header: bool = False) -> None:
        why = "; the header was sent, and is not read here (ENABLE_AGENT_ID_HEADER=false)" if unread_header else ""
        super().__init__(f"Agent ID must be provided either in x-agent-id header or agent_id parameter{why}")


class AgentIdMismatch(IdentityError):
    """Header and parameter name two different agents."""

    def __init__(self, header: str, parameter: str) -> None:
        super().__init__(f"Agent ID mismatch: header '{header}' != parameter '{parameter}'")


class InvalidAgentId(IdentityError):
    """The agent id has a character or a length that is not allowed."""

    SHOWN = 128

    def __init__(self, value: str) -> None:
        super().__init__(f"Invalid agent ID format: {value[: self.SHOWN]}")


class UnknownAgent(IdentityError):
    """The agent host has no such agent."""

    def __init__(self, agent_id: str) -> None:
        super().__init__(f"Agent '{agent_id}' is not known to the agent host; check the id or create the agent")


class Unauthenticated(FrontdeskError):
    """A credential is missing or invalid."""


class Denied(FrontdeskError):
    """The caller may not do this."""


class MissingScope(Denied):
    """The credential lacks a scope."""

    def __init__(self, scope: str) -> None:
        super().__init__(f"This credential lacks the scope '{scope}'; use one that carries it")
        self.scope = scope


class RateLimited(FrontdeskError):
    """Too many calls; `retry_after` is in seconds."""

    def __init__(self, who: str, retry_after: float) -> None:
        super().__init__(f"Rate limit reached for {who}; retry in {retry_after:.1f} s")
        self.retry_after = retry_after


class Unstorable(FrontdeskError):
    """The database refuses a value; trying again will not help."""


class Unavailable(FrontdeskError):
    """A part that Frontdesk depends on does not answer; `retry_after` is in seconds, if that part gave it."""

    def __init__(self, message: str, *, public: str | None = None, retry_after: float | None = None) -> None:
        super().__init__(message)
        self._public = public
        self.retry_after = retry_after

    @property
    @override
    def public_message(self) -> str:
        return self._public or str(self)

    def redact(self, redacted: Callable[[str], str]) -> None:
        """Replace the message by what this function makes of it."""
        self._public = redacted(self.public_message)
        self.args = (redacted(str(self)),)
