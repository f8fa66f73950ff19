"""Due tasks wake agents: what a change of a task asks for, and that the schedules follow it whatever comes between."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frontdesk.db.engine import Database
from frontdesk.errors import Conflict, FrontdeskError, NotFound, Unavailable
from frontdesk.memory.items_store import delete_item
from frontdesk.memory.model import PersonScope, Task, TaskStatus
from frontdesk.memory.store import PersonDatabase
from frontdesk.memory.tasks_store import fetch_task, insert_task, save_task
from frontdesk.memory.validation import new_id
from frontdesk.memory.wakeups import AgentWaker, CancelWake, MoveWake, WakeAgent, decide_wakeup, wakeup_for

pytestmark = pytest.mark.anyio
ANN = PersonScope("ann")
NOW = datetime(2026, 11, 20, 9, tzinfo=UTC)
HOUR = timedelta(hours=1)
# The waker goes by the clock of the machine.
FUTURE = datetime(2999, 1, 1, tzinfo=UTC)


def task(**fields: Any) -> Task:
    plain = Task(id="t-1", title="Call mum", assignee="Ada", due_date=NOW + HOUR, created_at=NOW, updated_at=NOW)
    return replace(plain, **fields)


def woken(due: datetime, assignee: str = "Ada") -> WakeAgent:
    found = wakeup_for(task(due_date=due, assignee=assignee), NOW)
    assert found is not None
    return found


def test_a_new_task_wakes_its_assignee_when_it_is_due_and_says_which_it_is() -> None:
    wake = decide_wakeup(None, task(title="Call\nmum"), NOW)
    assert isinstance(wake, WakeAgent)
    assert (wake.assignee, wake.at) == ("Ada", NOW + HOUR)
    for words in ("'Call mum'", "t-1", "2026-11-20T10:00:00Z"):
        assert words in wake.prompt


@pytest.mark.parametrize(
    "fields",
    [
        {"assignee": None},
        {"assignee": " "},
        {"due_date": None},
        {"due_date": NOW},
        {"due_date": NOW - HOUR},
        {"status": TaskStatus.COMPLETED},
        {"status": TaskStatus.CANCELLED},
    ],
)
def test_a_task_that_is_over_past_or_nobodys_wakes_nobody_and_what_was_planned_is_cancelled(
    fields: dict[str, Any],
) -> None:
    assert decide_wakeup(None, task(**fields), NOW) is None
    assert decide_wakeup(task(), task(**fields), NOW) is None
    assert decide_wakeup(task(wake_schedule_id=7), task(wake_schedule_id=7, **fields), NOW) == CancelWake(7)


def test_a_plan_follows_the_task_and_stays_where_nothing_of_it_changed() -> None:
    before = task(wake_schedule_id=7)
    assert decide_wakeup(before, replace(before, notes="bring flowers", status=TaskStatus.IN_PROGRESS), NOW) is None
    assert decide_wakeup(before, replace(before, due_date=NOW + 2 * HOUR), NOW) == MoveWake(7, woken(NOW + 2 * HOUR))
    assert decide_wakeup(before, replace(before, assignee="Bob"), NOW) == MoveWake(7, woken(NOW + HOUR, "Bob"))
    renamed = decide_wakeup(before, replace(before, title="Call dad"), NOW)
    assert isinstance(renamed, MoveWake)
    assert "Call dad" in renamed.wake.prompt
    assert decide_wakeup(before, None, NOW) == CancelWake(7)
    assert decide_wakeup(None, None, NOW) is decide_wakeup(task(), None, NOW) is None


@given(
    st.sampled_from(list(TaskStatus)),
    st.sampled_from([None, NOW - HOUR, NOW + HOUR]),
    st.sampled_from([None, "Ada", "Bob"]),
    st.sampled_from([None, 7]),
)
def test_whatever_a_task_was_the_plan_brings_what_it_is_to_its_one_wake_or_none(
    status: TaskStatus, due: datetime | None, assignee: str | None, held: int | None
) -> None:
    after = task(status=status, due_date=due, assignee=assignee, wake_schedule_id=held)
    wanted = wakeup_for(after, NOW)
    match decide_wakeup(None, after, NOW):
        case WakeAgent() as wake:
            assert (wake, held) == (wanted, None)
        case MoveWake(schedule_id, wake):
            assert (schedule_id, wake) == (held, wanted)
        case CancelWake(schedule_id):
            assert (schedule_id, wanted) == (held, None)
        case None:
            assert wanted is held is None


async def nothing() -> None:
    """Nothing comes in between."""


@dataclass
class Book:
    """A scheduler's book: what stands in it, what goes wrong, and what happens while somebody writes in it."""

    lines: dict[int, tuple[str, str, datetime]] = field(default_factory=dict[int, tuple[str, str, datetime]])
    error: FrontdeskError | None = None
    meanwhile: Callable[[], Awaitable[None]] = nothing
    made: int = 0

    async def schedule(self, _scope: PersonScope, agent_id: str, prompt: str, at: datetime) -> int:
        if self.error is not None:
            raise self.error
        happens, self.meanwhile = self.meanwhile, nothing
        await happens()
        self.made += 1
        self.lines[self.made] = (agent_id, prompt, at)
        return self.made

    async def cancel(self, _scope: PersonScope, schedule_id: int) -> None:
        if self.error is not None:
            raise self.error
        if self.lines.pop(schedule_id, None) is None:
            raise NotFound(f"Schedule {schedule_id} not found or already cancelled")

    @property
    def waking(self) -> list[tuple[str, datetime]]:
        return [(agent, at) for agent, _, at in self.lines.values()]


async def agent_named(text: str) -> str | None:
    return {"ada": "agent-ada", "bob": "agent-bob"}.get(text.casefold())


@dataclass
class Desk:
    """A person's tasks, and a waker that follows what is done with them."""

    records: PersonDatabase
    book: Book

    @property
    def waker(self) -> AgentWaker:
        return AgentWaker(self.records, self.book.schedule, self.book.cancel, agent_named)

    async def add(self, **fields: Any) -> Task:
        new = task(**{"id": new_id(NOW), "due_date": FUTURE, **fields})
        await self.records.change(ANN, lambda mine: insert_task(mine, new))
        return new

    async def now(self, task_id: str) -> Task:
        found = await self.records.read(ANN, lambda mine: fetch_task(mine, task_id))
        assert found is not None
        return found

    async def change(self, task_id: str, **fields: Any) -> tuple[Task, Task]:
        before = await self.now(task_id)
        after = replace(before, **fields)
        await self.records.change(ANN, lambda mine: save_task(mine, after))
        return before, after

    async def changed(self, task_id: str, **fields: Any) -> str | None:
        return await self.waker.on_task_change(ANN, *await self.change(task_id, **fields))


@pytest.fixture
def desk(database: Database) -> Desk:
    return Desk(PersonDatabase(database), Book())


async def test_the_schedule_is_made_moved_and_cancelled_with_the_task(desk: Desk) -> None:
    new = await desk.add(assignee=" ADA ")
    assert await desk.waker.on_task_change(ANN, None, new) is None
    assert desk.book.waking == [("agent-ada", FUTURE)]
    assert (await desk.now(new.id)).wake_schedule_id == 1
    assert await desk.changed(new.id, due_date=FUTURE + HOUR, assignee="Bob") is None
    assert desk.book.waking == [("agent-bob", FUTURE + HOUR)]
    assert await desk.changed(new.id, notes="nothing of it") is None
    assert (await desk.now(new.id)).wake_schedule_id == 2
    assert await desk.changed(new.id, assignee="my brother") is None
    assert (desk.book.waking, (await desk.now(new.id)).wake_schedule_id) == ([], None)
    assert await desk.changed(new.id, assignee="Ada") is None
    assert await desk.changed(new.id, status=TaskStatus.COMPLETED) is None
    assert (desk.book.waking, (await desk.now(new.id)).wake_schedule_id) == ([], None)
    assert await desk.changed(new.id, status=TaskStatus.PENDING) is None
    gone = await desk.now(new.id)
    await desk.records.change(ANN, lambda mine: delete_item(mine, new.id))
    assert await desk.waker.on_task_change(ANN, gone, None) is None
    assert (desk.book.waking, desk.book.made) == ([], 4)


async def test_what_fired_or_was_cancelled_by_hand_is_let_go_of(desk: Desk) -> None:
    new = await desk.add()
    await desk.waker.on_task_change(ANN, None, new)
    desk.book.lines.clear()
    assert await desk.changed(new.id, due_date=FUTURE + HOUR) is None
    assert desk.book.waking == [("agent-ada", FUTURE + HOUR)]


async def test_a_schedule_that_cannot_be_made_is_told_of_and_tried_again_with_the_next_change(desk: Desk) -> None:
    new = await desk.add()
    desk.book.error = Conflict("Agent 'agent-ada' has 100 schedules, the most it may have; cancel some first")
    told = await desk.waker.on_task_change(ANN, None, new)
    assert told is not None
    assert "The change is kept" in told
    assert "cancel some first" in told
    assert (await desk.now(new.id)).wake_schedule_id is None
    desk.book.error = None
    assert await desk.changed(new.id, notes="on") is None
    assert desk.book.waking == [("agent-ada", FUTURE)]
    desk.book.error = Unavailable("The database postgresql://secret@here is away", public="The database is away")
    assert "failed: The database is away" in (await desk.changed(new.id, status=TaskStatus.CANCELLED) or "")
    assert (await desk.now(new.id)).wake_schedule_id == 1, "so that it can be cancelled later"
    desk.book.error = None
    assert await desk.changed(new.id, notes="off") is None
    assert desk.book.waking == []


async def test_of_two_changes_at_once_the_task_as_it_is_decides(desk: Desk) -> None:
    new = await desk.add()

    async def is_moved() -> None:
        assert await desk.changed(new.id, due_date=FUTURE + HOUR) is None

    desk.book.meanwhile = is_moved
    assert await desk.waker.on_task_change(ANN, None, new) is None
    assert desk.book.waking == [("agent-ada", FUTURE + HOUR)]
    [schedule_id] = desk.book.lines
    assert (await desk.now(new.id)).wake_schedule_id == schedule_id

    async def is_done() -> None:
        assert await desk.changed(new.id, status=TaskStatus.COMPLETED) is None

    desk.book.meanwhile = is_done
    assert await desk.changed(new.id, due_date=FUTURE + 2 * HOUR) is None
    assert (desk.book.waking, (await desk.now(new.id)).wake_schedule_id) == ([], None)


async def test_a_task_that_never_stands_still_is_given_up_on_with_a_word(desk: Desk) -> None:
    new = await desk.add()

    async def changes_again() -> None:
        desk.book.meanwhile = changes_again
        due = (await desk.now(new.id)).due_date
        assert due is not None
        await desk.change(new.id, due_date=due + HOUR)

    desk.book.meanwhile = changes_again
    assert "changed all the time" in (await desk.waker.on_task_change(ANN, None, new) or "")
    assert desk.book.waking == []
