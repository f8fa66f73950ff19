"""Runs one async function with the app open, as the user of this machine or for one person's records."""

import gc
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, Literal, TypeVar
from zoneinfo import ZoneInfo

import anyio
from pydantic import ValidationError

from frontdesk.app import App, open_app
from frontdesk.errors import Invalid
from frontdesk.identity.inbound import is_user_id
from frontdesk.identity.keys import LOCAL_USER
from frontdesk.identity.model import Caller
from frontdesk.interfaces import logs
from frontdesk.interfaces.http.context import ensure_request_id
from frontdesk.journal.service import CallRecord
from frontdesk.llm.tools import describe_validation_errors
from frontdesk.memory.items_store import IdLookup
from frontdesk.memory.model import PersonScope
from frontdesk.memory.operations.base import MemoryRequest, person_zone
from frontdesk.memory.service import RecordServices
from frontdesk.settings import Settings

T = TypeVar("T")
AppFunction = Callable[[App], Coroutine[Any, Any, T]]
GC_THRESHOLDS = (700, 10, 10)
UVLOOP = find_spec("uvloop") is not None
SURFACE = "cli"
# A command counts as one request.
REQUEST_ID = ensure_request_id(None)


def local_caller(*, agent: str | None = None, user: str | None = None) -> Caller:
    """The operator at this machine, who may do everything, or the given agent or person."""
    return Caller(REQUEST_ID, agent, user, local=True, any_agent=True)


def run_with_app(
    use: AppFunction[T],
    settings: Settings | None = None,
    *,
    log_level: Literal["warning", "error"] = "warning",
    fast: bool = False,
) -> T:
    """Run `use` with the app of these settings. Without settings it reads the environment's and logs little.

    `fast` is for long-running processes: uvloop is faster, but takes a while to load.
    """
    chosen = configure_quiet_logs(Settings.read(), log_level) if settings is None else settings

    async def run() -> T:
        async with open_app(chosen) as app:
            if fast:
                freeze_garbage()
            return await use(app)

    return anyio.run(run, backend_options={"use_uvloop": fast and UVLOOP})


def run_change(
    action: str,
    use: Callable[[App, CallRecord], Coroutine[Any, Any, T]],
    run: Callable[[AppFunction[T]], T] = run_with_app,
) -> T:
    """Run a change and record it in the journal, as the other interfaces do."""

    async def recorded(app: App) -> T:
        with record_change(app, action) as record:
            return await use(app, record)

    return run(recorded)


def record_change(app: App, action: str) -> CallRecord:
    """A journal entry for a command. `action` must not contain secrets, not even mistyped ones."""
    return CallRecord(app.journal, SURFACE, action, local_caller())


def configure_quiet_logs(settings: Settings, level: Literal["warning", "error"] = "warning") -> Settings:
    """Log only problems, unless the settings ask for debug logs, so that a command's output stays readable."""
    asked = settings.log_level
    loud = asked != "debug" and logs.LEVELS[asked] < logs.LEVELS[level]
    chosen = settings.with_values(log_level=level) if loud else settings
    logs.configure_logs(chosen)
    return chosen


def freeze_garbage() -> None:
    """Exclude everything loaded so far from garbage collection, because it stays until the end."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*GC_THRESHOLDS)


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
