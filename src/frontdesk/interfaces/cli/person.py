"""Reads and changes the records of one person, as the commands for tasks and memories do.

`run_for_person` and `change_for_person` run one async function. The others do the steps that commands about one record
share: they find its full id, add it to the journal entry, and also return the person's time zone, for the output.
"""

from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Protocol, TypeVar
from zoneinfo import ZoneInfo

from cyclopts import Parameter
from pydantic import ValidationError

from frontdesk.app import App
from frontdesk.errors import Invalid
from frontdesk.identity.inbound import is_user_id
from frontdesk.identity.keys import LOCAL_USER
from frontdesk.interfaces.app_runner import local_caller, run_change, run_with_app
from frontdesk.interfaces.cli.output import print_list, print_more
from frontdesk.journal.service import CallRecord
from frontdesk.llm.tools import describe_validation_errors
from frontdesk.memory.items_store import IdLookup
from frontdesk.memory.model import PersonScope
from frontdesk.memory.operations.base import MemoryRequest, person_zone
from frontdesk.memory.service import RecordServices
from frontdesk.memory.validation import RecordPage


class Identified(Protocol):
    """A record with an id."""

    @property
    def id(self) -> str: ...


T = TypeVar("T")
RecordT = TypeVar("RecordT", bound=Identified)
InputT = TypeVar("InputT", bound=MemoryRequest)
# The person whose key the first start prints.
DEFAULT_USER = LOCAL_USER
UserOption = Annotated[str, Parameter(show_default=True)]
# An argument whose full id a method of `IdLookup` finds.
RecordId = Annotated[str, Parameter(help="Its id, or at least the first 8 characters.")]
FindId = Callable[[IdLookup, PersonScope, str], Coroutine[Any, Any, str]]


@dataclass(frozen=True, slots=True)
class PersonContext:
    """The app, with the scope of one person's records."""

    app: App
    scope: PersonScope

    @property
    def memory(self) -> RecordServices:
        return self.app.memory

    @property
    def names(self) -> IdLookup:
        return self.memory.id_lookup

    async def zone(self, named: str | None = None) -> ZoneInfo:
        """The named time zone, or the person's own."""
        return await person_zone(self.memory, self.scope, named)


def run_for_person(user: str, use: Callable[[PersonContext], Coroutine[Any, Any, T]]) -> T:
    """Run `use` with a person's records and return its result."""
    person = require_user_id(user)
    return run_with_app(lambda app: use(_person_context(app, person)))


def change_for_person(user: str, action: str, use: Callable[[PersonContext, CallRecord], Coroutine[Any, Any, T]]) -> T:
    """Run a change of a person's records and record it in the journal, without their content."""
    person = require_user_id(user)

    async def recorded(app: App, record: CallRecord) -> T:
        record.caller = local_caller(user=person)
        return await use(_person_context(app, person), record)

    return run_change(action, recorded)


def read_for_person(user: str, read: Callable[[PersonContext], Coroutine[Any, Any, T]]) -> tuple[T, ZoneInfo]:
    """What `read` returns, with the person's time zone."""

    async def look(person: PersonContext) -> tuple[T, ZoneInfo]:
        return await read(person), await person.zone()

    return run_for_person(user, look)


def read_record(
    user: str, find_id: FindId, text: str, read: Callable[[PersonContext, str], Coroutine[Any, Any, T]]
) -> tuple[T, ZoneInfo]:
    """What `read` returns for the id that `text` begins, with the person's time zone."""

    async def look(person: PersonContext) -> T:
        return await read(person, await find_id(person.names, person.scope, text))

    return read_for_person(user, look)


def add_record(
    user: str, action: str, add: Callable[[PersonContext], Coroutine[Any, Any, RecordT]]
) -> tuple[RecordT, ZoneInfo]:
    """Add a record, and return it with the person's time zone. The journal entry gets its id."""

    async def make(person: PersonContext, record: CallRecord) -> tuple[RecordT, ZoneInfo]:
        added = await add(person)
        record.action += f" {added.id}"
        return added, await person.zone()

    return change_for_person(user, action, make)


def change_record(
    user: str, action: str, find_id: FindId, text: str, change: Callable[[PersonContext, str], Coroutine[Any, Any, T]]
) -> tuple[T, ZoneInfo]:
    """Change the record whose id `text` begins, and return the result with the person's time zone.

    The journal entry gets the id.
    """

    async def make(person: PersonContext, record: CallRecord) -> tuple[T, ZoneInfo]:
        found = await find_id(person.names, person.scope, text)
        record.action += f" {found}"
        return await change(person, found), await person.zone()

    return change_for_person(user, action, make)


def print_page(
    page: RecordPage[T], head: Sequence[str], row: Callable[[T], Sequence[str]], *, empty: str, as_json: bool
) -> None:
    """Print a page of records, and the option that shows the next page."""
    print_list(page.items, head, row, empty=empty, as_json=as_json)
    if page.has_more:
        print_more(f"--offset {page.offset + len(page.items)}")


def validate_input(kind: type[InputT], arguments: Mapping[str, Any]) -> InputT:
    """Validate typed input with the same model as the other interfaces."""
    try:
        return kind.model_validate(arguments)
    except ValidationError as error:
        raise Invalid(f"That does not fit: {describe_validation_errors(error)}") from error


def require_user_id(user: str) -> str:
    """The person's id, if it is valid."""
    if not is_user_id(user):
        raise Invalid("--user names a person by 1 to 200 printable characters, as frontdesk keys list shows them")
    return user


def _person_context(app: App, user: str) -> PersonContext:
    return PersonContext(app, PersonScope.for_caller(local_caller(user=user)))
