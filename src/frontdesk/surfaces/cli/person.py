"""Acts for one person in the memory room: whose records they are, and which of them is meant."""

from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar
from zoneinfo import ZoneInfo

from cyclopts import Parameter
from pydantic import ValidationError

from frontdesk.app import App
from frontdesk.errors import Invalid
from frontdesk.identity.inbound import is_user_id
from frontdesk.identity.keys import FIRST_USER
from frontdesk.journal.record import Record
from frontdesk.loop.tools import problems_of
from frontdesk.memory.asked.common import Asked
from frontdesk.memory.naming.service import Names
from frontdesk.memory.scope import Scope
from frontdesk.memory.service import MemoryRoom
from frontdesk.memory.tooling.clock import clock
from frontdesk.surfaces.cli.running import operator, with_app, with_change

T = TypeVar("T")
A = TypeVar("A", bound=Asked)
# The person whose key the first start prints.
LOCAL = FIRST_USER
User = Annotated[str, Parameter(show_default=True)]


@dataclass(frozen=True, slots=True)
class Acting:
    """One person's part of the memory room, in the house that it is in."""

    app: App
    scope: Scope

    @property
    def room(self) -> MemoryRoom:
        return self.app.memory

    @property
    def names(self) -> Names:
        return self.room.names

    async def zone(self, named: str | None = None) -> ZoneInfo:
        """The zone that was named, or the person's own."""
        return await clock(self.room, self.scope, named)


def looking(user: str, use: Callable[[Acting], Coroutine[Any, Any, T]]) -> T:
    """What `use` finds among a person's records."""
    person = checked(user)
    return with_app(lambda app: use(_acting(app, person)))


def changing(user: str, action: str, use: Callable[[Acting, Record], Coroutine[Any, Any, T]]) -> T:
    """The same, for what changes something; nothing that the person keeps stands in the journal."""
    person = checked(user)

    async def recorded(app: App, record: Record) -> T:
        record.caller = operator(user=person)
        return await use(_acting(app, person), record)

    return with_change(action, recorded)


def asked(kind: type[A], given: Mapping[str, Any]) -> A:
    """What was typed, held to the same bounds as what comes through the other doors."""
    try:
        return kind.model_validate(given)
    except ValidationError as error:
        raise Invalid(f"That does not fit: {problems_of(error)}") from error


def checked(user: str) -> str:
    """A person's id, if it can be one."""
    if not is_user_id(user):
        raise Invalid("--user names a person by 1 to 200 printable characters, as frontdesk keys list shows them")
    return user


def _acting(app: App, user: str) -> Acting:
    return Acting(app, Scope.of(operator(user=user)))
