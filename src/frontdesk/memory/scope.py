"""Whose records, who acts on them, and what they may do: every way to a record begins with a `Scope`."""

from dataclasses import dataclass

from frontdesk.errors import Denied, MissingScope, Unauthenticated
from frontdesk.identity.model import Caller
from frontdesk.identity.rights import MEMORY_ADMIN

NO_PERSON = (
    "This credential speaks for no person, and so has no tasks or memories; use one that was made for a person "
    "(frontdesk keys create --user USER)"
)


@dataclass(frozen=True, slots=True)
class Scope:
    """One person; the agent that acts for them, if one does; what they may do, None for everything; by what proof."""

    user_id: str
    agent_id: str | None = None
    scopes: frozenset[str] | None = None
    credential_id: str | None = None

    @classmethod
    def of(cls, caller: Caller) -> "Scope":
        """From who is calling, for this one request. Nobody in particular has no records."""
        if caller.user_id is None:
            raise Unauthenticated("Authentication required") if caller.credential_id is None else Denied(NO_PERSON)
        return cls(caller.user_id, caller.agent_id, caller.scopes, caller.credential_id)

    def allows(self, right: str) -> bool:
        return self.scopes is None or right in self.scopes or MEMORY_ADMIN in self.scopes

    def require(self, right: str) -> None:
        """Refuse whoever lacks it, and say what was needed."""
        if not self.allows(right):
            raise MissingScope(right)
