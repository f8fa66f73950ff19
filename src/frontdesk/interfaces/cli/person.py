"""Runs one async function for the records of one person, as the commands for tasks and memories do."""

from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar
from zoneinfo import ZoneInfo

from pydantic import ValidationError

from frontdesk.app import App
from frontdesk.errors import Invalid
from frontdesk.identity.inbound import is_user_id
from frontdesk.identity.keys import LOCAL_USER
from frontdesk.interfaces.app_runner import local_caller, run_change, run_with_app
from frontdesk.journal.service import CallRecord
from frontdesk.llm.tools import describe_validation_errors
from frontdesk.memory.items_store import IdLookup
from frontdesk.memory.model import PersonScope
from frontdesk.memory.operations.base import MemoryRequest, person_zone
from frontdesk.memory.service import RecordServices

T = TypeVar("T")
InputT = TypeVar("InputT", bound=MemoryRequest)
# The person whose key the first start prints.
DEFAULT_USER = LOCAL_USER


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
