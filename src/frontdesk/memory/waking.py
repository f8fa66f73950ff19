"""Due tasks wake agents: which schedule a task needs, and how it is made, moved and cancelled."""

from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial

from frontdesk.errors import Conflict, FrontdeskError, NotFound
from frontdesk.loop.text import one_line
from frontdesk.memory.model import Task
from frontdesk.memory.scope import Scope
from frontdesk.memory.store import Records
from frontdesk.memory.tasks import store as tasks
from frontdesk.memory.wakes import store as wakes

TITLE = 200
TRIES = 5

# Made by the composition root: the id of a new schedule for an agent, a schedule taken back, an agent by name or id.
Schedule = Callable[[Scope, str, str, datetime], Awaitable[int]]
Unschedule = Callable[[Scope, int], Awaitable[object]]
AgentNamed = Callable[[str], Awaitable[str | None]]


@dataclass(frozen=True, slots=True)
class Wake:
    """Tell the agent that is named as `assignee` this, then."""

    assignee: str
    at: datetime
    prompt: str


@dataclass(frozen=True, slots=True)
class Cancel:
    """Nobody is to be woken any more."""

    schedule_id: int


@dataclass(frozen=True, slots=True)
class Move:
    """Somebody else is to be woken, or at another time, or with other words."""

    schedule_id: int
    wake: Wake


def decide(before: Task | None, after: Task | None, now: datetime) -> Wake | Cancel | Move | None:
    """What a change asks for. None before: it is new, or nobody knows what it was; None after: it was deleted."""
    last = after or before
    held = None if last is None else last.wake_schedule_id
    wanted = wake_of(after, now)
    if held is None:
        return wanted
    if wanted is None:
        return Cancel(held)
    return None if wanted == wake_of(before, now) else Move(held, wanted)


def wake_of(task: Task | None, now: datetime) -> Wake | None:
    """Whom it wakes, if its assignee is an agent: while it is open, and its time has not come."""
    if task is None or task.status in wakes.CLOSED or task.due_date is None or task.due_date <= now:
        return None
    if task.assignee is None or not task.assignee.strip():
        return None
    return Wake(task.assignee, task.due_date, prompt_of(task.title, task.id, task.due_date))


def prompt_of(title: str, task_id: str, due: datetime) -> str:
    return (
        f"A task of yours is due: '{one_line(title, TITLE)}' (task id {task_id}), due at {due:%Y-%m-%dT%H:%M:%SZ}. "
        "Look at it with get_task, do it, and say how it stands with update_task."
    )


class Waker:
    """Follows changes of tasks; which schedule wakes for a task is noted with the task."""

    def __init__(self, records: Records, schedule: Schedule, cancel: Unschedule, agent_named: AgentNamed) -> None:
        self._records = records
        self._schedule = schedule
        self._cancel = cancel
        self._agent_named = agent_named

    async def follow(self, scope: Scope, before: Task | None, after: Task | None) -> str | None:
        """Have agents woken as the change asks for; what to tell the caller where that cannot be done.

        The task is kept in any case. The next change of it tries again.
        """
        last = after or before
        plan = decide(before, after, datetime.now(UTC))
        if last is None or plan is None:
            return None
        try:
            await self._settle(scope, last.id, plan)
        except FrontdeskError as error:
            return f"The change is kept, but the waking of an agent when the task is due failed: {error.public}"
        return None

    async def _settle(self, scope: Scope, task_id: str, plan: Wake | Cancel | Move | None) -> None:
        """Where another change came in between, by the task as it is now."""
        for _ in range(TRIES):
            if plan is None or await self._carry_out(scope, task_id, plan):
                return
            task = await self._records.read(scope, partial(tasks.get, task_id=task_id))
            plan = None if task is None else decide(None, task, datetime.now(UTC))
        raise Conflict("the task is being changed all the time; change it once more")

    async def _carry_out(self, scope: Scope, task_id: str, plan: Wake | Cancel | Move) -> bool:
        """Whether it was done; the old schedule goes first, as an agent may have no room for both."""
        match plan:
            case Wake():
                return await self._make(scope, task_id, plan)
            case Cancel(schedule_id):
                return await self._drop(scope, task_id, schedule_id)
            case Move(schedule_id, wake):
                return await self._drop(scope, task_id, schedule_id) and await self._make(scope, task_id, wake)

    async def _make(self, scope: Scope, task_id: str, wake: Wake) -> bool:
        agent_id = await self._agent_named(wake.assignee.strip())
        if agent_id is None:
            return True
        made = await self._schedule(scope, agent_id, wake.prompt, wake.at)
        work = partial(wakes.note, task_id=task_id, assignee=wake.assignee, due=wake.at, schedule_id=made)
        if await self._records.change(scope, work):
            return True
        await self._take_back(scope, made)
        return False

    async def _drop(self, scope: Scope, task_id: str, schedule_id: int) -> bool:
        await self._take_back(scope, schedule_id)
        return await self._records.change(scope, partial(wakes.forget, task_id=task_id, schedule_id=schedule_id))

    async def _take_back(self, scope: Scope, schedule_id: int) -> None:
        # One that has fired, or that somebody cancelled by hand, is not there to be cancelled.
        with suppress(NotFound):
            await self._cancel(scope, schedule_id)
