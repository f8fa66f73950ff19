"""The words of identity: what a request says (`Signals`), what is proven (`Credential`), who it is (`Caller`)."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

ANY_AGENT = "*"
# What the id of a credential begins with.
KEY = "key:"
TOKEN = "token:"  # noqa: S105 - no token


class Source(StrEnum):
    """Where a caller's agent id came from, the most trusted first."""

    CREDENTIAL = "credential"
    HEADER = "header"
    PARAMETER = "parameter"
    METADATA = "metadata"
    ENVIRONMENT = "environment"
    SINGLE_AGENT = "single_agent"
    SCHEDULE = "schedule"
    # In the journal alone: who runs this installation, at this machine, and named nobody.
    OPERATOR = "operator"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class Credential:
    """A key or token that was checked and holds. `scopes` is None where it carries none, and so is not limited.

    `id` names all that it rests on, with a space between: a token of ours also the key that the person logged in with.
    """

    id: str
    agent_id: str | None = None
    user_id: str | None = None
    scopes: frozenset[str] | None = None

    @property
    def named_agent(self) -> str | None:
        """The one agent that this credential is bound to, if it is bound to one."""
        return None if self.agent_id == ANY_AGENT else self.agent_id

    def covers(self, agent_id: str) -> bool:
        return self.agent_id in (agent_id, ANY_AGENT)


@dataclass(frozen=True, slots=True)
class Profile:
    """What is known of a person besides who they are."""

    email: str | None = None
    name: str | None = None


@dataclass(frozen=True, slots=True)
class Signals:
    """Everything one request says about who sends it, as it was said."""

    request_id: str
    header: str | None = None
    parameter: object = None
    metadata: Mapping[str, object] = field(default_factory=dict[str, object])
    credential: Credential | None = None
    forwarded: bool = False
    name: str | None = None
    capabilities: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Claimed:
    """The agent ids that a refused request named, one line each and cut; by the credential also which one it was."""

    header: str | None = None
    parameter: str | None = None
    metadata: str | None = None
    credential: str | None = None

    @property
    def source(self) -> Source:
        """What the refused id came by: what was said counts, and the credential where nothing was."""
        said = {
            Source.HEADER: self.header,
            Source.PARAMETER: self.parameter,
            Source.METADATA: self.metadata,
            Source.CREDENTIAL: self.credential,
        }
        return next((source for source, claim in said.items() if claim is not None), Source.NONE)


@dataclass(frozen=True, slots=True)
class Caller:
    """Who is calling, for one request. `verified`: a credential proves it; otherwise it is only asserted.

    `local`: it came from this machine, and needs no credential. `any_agent`: it could have named whichever agent it
    liked. `credential_id` is what it showed. `anonymous`: it showed nothing and named nobody, where that does not make
    it the operator. `unread_header`: it named an agent in the header, which is not read here.
    """

    request_id: str
    agent_id: str | None = None
    user_id: str | None = None
    source: Source = Source.NONE
    verified: bool = False
    scopes: frozenset[str] | None = None
    name: str | None = None
    capabilities: tuple[str, ...] = ()
    local: bool = False
    any_agent: bool = False
    credential_id: str | None = None
    anonymous: bool = False
    unread_header: bool = False

    @property
    def keyless(self) -> bool:
        """It came from this machine and showed no credential, where it need not."""
        return self.local and self.credential_id is None and not self.anonymous

    @property
    def by_token(self) -> bool:
        """It showed a token, which somebody who logged in has, and not a key."""
        return self.credential_id is not None and self.credential_id.startswith(TOKEN)


@dataclass(frozen=True, slots=True)
class Trace:
    """What is kept of a refused request: what it claimed, and the caller as far as that is known."""

    caller: Caller
    claimed: Claimed
