"""Wakes the agent that a task is assigned to when it is due: creates, moves and cancels the schedule for it."""

from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial

from frontdesk.errors import Conflict, FrontdeskError, NotFound
from frontdesk.memory.model import PersonScope, Task
from frontdesk.memory.store import PersonDatabase
from frontdesk.memory.tasks_store import CLOSED_STATUSES, clear_wake_schedule, fetch_task, save_wake_schedule
from frontdesk.text import one_line

MAX_TITLE = 200
MAX_TRIES = 5

# Functions from the composition root: create a schedule for an agent, cancel one, find an agent by name or id.
CreateSchedule = Callable[[PersonScope, str, str, datetime], Awaitable[int]]
CancelSchedule = Callable[[PersonScope, int], Awaitable[object]]
FindAgent = Callable[[str], Awaitable[str | None]]


@dataclass(frozen=True, slots=True)
class WakeAgent:
    """Prompt the agent that `assignee` names, at that time."""

    assignee: str
    at: datetime
    prompt: str


@dataclass(frozen=True, slots=True)
class CancelWake:
    """Nobody is to be prompted any more."""

    schedule_id: int


@dataclass(frozen=True, slots=True)
class MoveWake:
    """Another agent is to be prompted, or at another time, or with another text."""

    schedule_id: int
    wake: WakeAgent


def decide_wakeup(before: Task | None, after: Task | None, now: datetime) -> WakeAgent | CancelWake | MoveWake | None:
    """What to do after a change. Before is None for a new task or an unknown state, after is None if it was deleted."""
    last = after or before
    held = None if last is None else last.wake_schedule_id
    wanted = wakeup_for(after, now)
    if held is None:
        return wanted
    if wanted is None:
        return CancelWake(held)
    return None if wanted == wakeup_for(before, now) else MoveWake(held, wanted)


def wakeup_for(task: Task | None, now: datetime) -> WakeAgent | None:
    """The wake-up for the due time of an open task, if it is in the future and the assignee is an agent."""
    if task is None or task.status in CLOSED_STATUSES or task.due_date is None or task.due_date <= now:
        return None
    if task.assignee is None or not task.assignee.strip():
        return None
    return WakeAgent(task.assignee, task.due_date, wakeup_prompt(task.title, task.id, task.due_date))


def wakeup_prompt(title: str, task_id: str, due: datetime) -> str:
    return (
        f"A task of yours is due: '{one_line(title, MAX_TITLE)}' (task id {task_id}), due at {due:%Y-%m-%dT%H:%M:%SZ}. "
        "Look at it with get_task, do it, and say how it stands with update_task."
    )


class AgentWaker:
    """Keeps the wake-up schedules of tasks up to date; the task stores the id of its schedule."""

    def __init__(
        self, records: PersonDatabase, schedule: CreateSchedule, cancel: CancelSchedule, agent_named: FindAgent
    ) -> None:
        self._records = records
        self._schedule = schedule
        self._cancel = cancel
        self._find_agent = agent_named

    async def on_task_change(self, scope: PersonScope, before: Task | None, after: Task | None) -> str | None:
        """Create, move or cancel the wake-up; returns a note for the caller if that failed.

        The task is saved in any case. Its next change tries again.
        """
        last = after or before
        plan = decide_wakeup(before, after, datetime.now(UTC))
        if last is None or plan is None:
            return None
        try:
            await self._settle(scope, last.id, plan)
        except FrontdeskError as error:
            return f"The change is kept, but the waking of an agent when the task is due failed: {error.public_message}"
        return None

    async def _settle(self, scope: PersonScope, task_id: str, plan: WakeAgent | CancelWake | MoveWake | None) -> None:
        """Carry out the plan; if another change came first, decide again from the task as it is now."""
        for _ in range(MAX_TRIES):
            if plan is None or await self._carry_out(scope, task_id, plan):
                return
            task = await self._records.read(scope, partial(fetch_task, task_id=task_id))
            plan = None if task is None else decide_wakeup(None, task, datetime.now(UTC))
        raise Conflict("the task is being changed all the time; change it once more")

    async def _carry_out(self, scope: PersonScope, task_id: str, plan: WakeAgent | CancelWake | MoveWake) -> bool:
        """Whether it was done; the old schedule is cancelled first, because the agent's limit may not allow both."""
        match plan:
            case WakeAgent():
                return await self._make(scope, task_id, plan)
            case CancelWake(schedule_id):
                return await self._drop(scope, task_id, schedule_id)
            case MoveWake(schedule_id, wake):
                return await self._drop(scope, task_id, schedule_id) and await self._make(scope, task_id, wake)

    async def _make(self, scope: PersonScope, task_id: str, wake: WakeAgent) -> bool:
        agent_id = await self._find_agent(wake.assignee.strip())
        if agent_id is None:
            return True
        made = await self._schedule(scope, agent_id, wake.prompt, wake.at)
        work = partial(save_wake_schedule, task_id=task_id, assignee=wake.assignee, due=wake.at, schedule_id=made)
        if await self._records.change(scope, work):
            return True
        await self._take_back(scope, made)
        return False

    async def _drop(self, scope: PersonScope, task_id: str, schedule_id: int) -> bool:
        await self._take_back(scope, schedule_id)
        return await self._records.change(scope, partial(clear_wake_schedule, task_id=task_id, schedule_id=schedule_id))

    async def _take_back(self, scope: PersonScope, schedule_id: int) -> None:
        # A schedule that has fired or was cancelled by hand cannot be cancelled.
        with suppress(NotFound):
            await self._cancel(scope, schedule_id)
