"""Opens the scheduler for a command: directly on the database, whether a server runs or not."""

from collections.abc import Callable, Coroutine
from typing import Annotated, Any, TypeVar

from cyclopts import Parameter

from frontdesk.app import App
from frontdesk.identity.model import Caller
from frontdesk.schedule.asked import Added
from frontdesk.schedule.model import Schedule
from frontdesk.surfaces.cli.chat.plain import line
from frontdesk.surfaces.cli.running import with_app
from frontdesk.surfaces.record import Record
from frontdesk.surfaces.scheduled import Scheduled, Shape

T = TypeVar("T")
SURFACE = "cli"

Json = Annotated[bool, Parameter(name="--json", negative=(), show_default=False)]
Flag = Annotated[bool, Parameter(negative=(), show_default=False)]
# A text may begin with a hyphen, as lists do.
Text = Annotated[str, Parameter(allow_leading_hyphen=True)]


def caller_of(user: str | None = None, agent: str | None = None) -> Caller:
    """Whoever sits at this machine, who may do everything, or the person or agent they speak for."""
    return Caller("command", agent, user, local=True, any_agent=True)


def with_schedules(use: Callable[[App], Coroutine[Any, Any, T]]) -> T:
    return with_app(use)


def with_change(action: str, use: Callable[[App, Record], Coroutine[Any, Any, T]]) -> T:
    """The same for what changes something: the journal has it, as it has what comes through the other doors."""

    async def recorded(app: App) -> T:
        record = Record(app, SURFACE, f"schedule {action}", caller_of())
        with record.kept():
            return await use(app, record)

    return with_app(recorded)


def shown(app: App, schedule: Schedule) -> Scheduled:
    return Scheduled.of(schedule, app.schedules.rule(schedule))


def of(added: Added) -> Scheduled:
    return Scheduled.of(added.schedule, added.rule)


def tell(shape: Shape, words: str, *, as_json: bool) -> None:
    """One JSON object, or the words."""
    print(shape.model_dump_json() if as_json else line(words))
