"""Tests the rules of tasks and of time, and the schedules that wake agents for due tasks."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frontdesk.db.engine import Database
from frontdesk.errors import Conflict, FrontdeskError, Invalid, NotFound, Unavailable
from frontdesk.memory.items_store import delete_item
from frontdesk.memory.model import (
    CompletionBehavior,
    ItemType,
    PersonScope,
    Priority,
    ProgressCalculation,
    Task,
    TaskStatus,
    TimeEntry,
)
from frontdesk.memory.store import PersonDatabase
from frontdesk.memory.tasks_rules import (
    MAX_LEVELS,
    OPEN_STATUSES,
    DueCounts,
    SubtaskChange,
    TaskGroupCount,
    apply_status,
    apply_subtask_change,
    check_no_loop,
    count_subtasks,
    in_tree_order,
    move_subtree,
    parse_span,
    place_in_tree,
    subtask_change,
    summarize_tasks,
    today_and_week,
)
from frontdesk.memory.tasks_store import fetch_task, insert_task, save_task
from frontdesk.memory.time_tracking import INSTANT, check_entry, clip_entry, count_minutes, stop_entry
from frontdesk.memory.times import TimeSpan, span_of_days
from frontdesk.memory.validation import new_id
from frontdesk.memory.wakeups import AgentWaker, CancelWake, MoveWake, WakeAgent, decide_wakeup, wakeup_for

# The rules of tasks and of time, without a database


NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
BERLIN = ZoneInfo("Europe/Berlin")
HOUR = timedelta(hours=1)
NODES = st.integers(0, 7)


def task(name: str, parent: Task | None = None, **fields: object) -> Task:
    return place_in_tree(replace(Task(id=name, title=name, created_at=NOW, updated_at=NOW), **fields), parent)


def test_tasks_go_ten_levels_deep_and_no_deeper() -> None:
    deepest = task("0")
    for number in range(1, MAX_LEVELS):
        deepest = task(str(number), deepest)
    assert (deepest.hierarchy_level, deepest.hierarchy_path) == (9, "0/1/2/3/4/5/6/7/8/9")
    with pytest.raises(Conflict, match="10 levels"):
        task("10", deepest)
    with pytest.raises(Conflict, match="10 levels"):
        place_in_tree(task("a"), task("b"), MAX_LEVELS - 1)
    assert place_in_tree(task("a"), task("b"), MAX_LEVELS - 2).hierarchy_level == 1


def test_a_task_does_not_come_under_itself() -> None:
    root = task("a")
    child = task("b", root)
    for parent in (root, child):
        with pytest.raises(Conflict, match="under itself"):
            place_in_tree(root, parent)


def test_what_is_under_a_task_comes_along_when_it_is_moved() -> None:
    old = task("a", task("root"))
    child = task("b", old)
    grandchild = task("c", child)
    new = place_in_tree(old, None)
    assert [(one.hierarchy_level, one.hierarchy_path) for one in move_subtree([child, grandchild], old, new)] == [
        (1, "a/b"),
        (2, "a/b/c"),
    ]


@given(st.lists(st.tuples(NODES, NODES), max_size=30))
def test_whatever_is_linked_in_whatever_order_nothing_ever_waits_for_itself(asked: list[tuple[int, int]]) -> None:
    waits_for: dict[str, list[str]] = {}
    for one, other in asked:
        refused = str(one) in reached(waits_for, str(other))
        try:
            check_no_loop(waits_for, str(one), [str(other)])
        except Conflict:
            assert refused
        else:
            assert not refused
            waits_for.setdefault(str(one), []).append(str(other))
    assert all(one not in reached(waits_for, other) for one, others in waits_for.items() for other in others)


def reached(waits_for: dict[str, list[str]], start: str) -> set[str]:
    """Repeats until it finds nothing new."""
    found = {start}
    while more := {other for one in found for other in waits_for.get(one, [])} - found:
        found |= more
    return found


@given(st.lists(st.integers(0, 20), max_size=20))
def test_a_tree_is_told_parent_first_and_siblings_in_order(parents: list[int]) -> None:
    tasks = [task("000")]
    for number, parent in enumerate(parents, 1):
        tasks.append(replace(task(f"{number:03}"), parent_task_id=tasks[parent % len(tasks)].id))
    told = [one.id for one in in_tree_order(tasks[0], tasks[1:])]
    assert sorted(told) == [one.id for one in tasks]
    for one in tasks[1:]:
        assert told.index(one.parent_task_id or "") < told.index(one.id)
        siblings = [other.id for other in tasks[1:] if other.parent_task_id == one.parent_task_id]
        assert sorted(siblings, key=told.index) == siblings


def test_a_completed_task_is_done_wholly_and_at_some_time_and_no_other_is() -> None:
    done = apply_status(task("a", status=TaskStatus.COMPLETED, progress=40), NOW)
    assert (done.progress, done.completion_date) == (100, NOW)
    earlier = replace(done, completion_date=NOW - HOUR)
    assert apply_status(earlier, NOW) == earlier
    again = apply_status(replace(done, status=TaskStatus.IN_PROGRESS), NOW)
    assert (again.progress, again.completion_date) == (100, None)


def test_progress_is_the_subtasks_average_by_duration_where_that_is_asked_for() -> None:
    subtasks = [
        task("a", progress=100, status=TaskStatus.COMPLETED, estimated_duration=30),
        task("b", progress=0, estimated_duration=89),
        task("c", progress=50),
        task("d", progress=80, status=TaskStatus.CANCELLED),
    ]
    parent = task("p", progress=7)
    assert count_subtasks(parent, subtasks).progress == 7
    assert count_subtasks(replace(parent, progress_calculation=ProgressCalculation.AVERAGE), subtasks).progress == 50
    assert count_subtasks(replace(parent, progress_calculation=ProgressCalculation.WEIGHTED), subtasks).progress == 25
    found = count_subtasks(replace(parent, progress_calculation=ProgressCalculation.AVERAGE), subtasks[3:])
    assert (found.progress, found.subtask_count, found.completed_subtask_count) == (7, 1, 0)


@given(st.lists(st.sampled_from(TaskStatus), max_size=6), st.sampled_from(TaskStatus), st.sampled_from(SubtaskChange))
def test_a_task_is_completed_with_its_subtasks_or_not_at_all(
    statuses: list[TaskStatus], own: TaskStatus, what: SubtaskChange
) -> None:
    subtasks = [task(str(number), status=status) for number, status in enumerate(statuses)]
    parent = apply_status(task("p", status=own, completion_behavior=CompletionBehavior.WITH_SUBTASKS), NOW)
    after = apply_subtask_change(parent, subtasks, what, NOW, blocked=False)
    done = TaskStatus.COMPLETED in statuses and not OPEN_STATUSES & set(statuses)
    assert (after.status is TaskStatus.COMPLETED and own is not after.status) == (
        what is SubtaskChange.CLOSED and done and own in OPEN_STATUSES
    )
    reopened = what is SubtaskChange.OPENED and own is TaskStatus.COMPLETED
    assert (after.status is TaskStatus.IN_PROGRESS and own is not after.status) == reopened
    assert (after.completion_date is not None) == (after.status is TaskStatus.COMPLETED)
    assert apply_subtask_change(parent, subtasks, what, NOW, blocked=True).status is (after.status if reopened else own)
    by_hand = replace(parent, completion_behavior=CompletionBehavior.MANUAL)
    assert apply_subtask_change(by_hand, subtasks, what, NOW, blocked=False) == by_hand


def test_what_a_subtask_does_is_told_from_how_it_stood() -> None:
    opened, done, off = (
        task("a", status=status) for status in (TaskStatus.ON_HOLD, TaskStatus.COMPLETED, TaskStatus.CANCELLED)
    )
    told = {
        SubtaskChange.OPENED: [(None, opened), (done, opened), (off, opened)],
        SubtaskChange.CLOSED: [(opened, None), (opened, done), (opened, off), (None, done), (off, done)],
        SubtaskChange.NEITHER: [(None, off), (done, None), (off, None), (done, off), (opened, opened), (done, done)],
    }
    for what, changes in told.items():
        assert {subtask_change(before, after) for before, after in changes} == {what}


def test_periods_of_days_are_today_and_the_named_ones() -> None:
    late = datetime(2026, 11, 20, 23, 30, tzinfo=UTC)
    assert parse_span(None, None, BERLIN, late) == span_of_days(date(2026, 11, 21), BERLIN)
    assert parse_span("2026-11-18", "2026-11-18", BERLIN, late) == span_of_days(date(2026, 11, 18), BERLIN)
    assert parse_span(None, "2026-11-18", BERLIN, late) == span_of_days(date(2026, 11, 18), BERLIN)
    assert parse_span("2026-11-20", None, BERLIN, late) == span_of_days(date(2026, 11, 20), BERLIN, 2)
    assert parse_span("2026-11-20T10:00Z", "2026-11-20T11:00Z", BERLIN, late) == TimeSpan(NOW - 2 * HOUR, NOW - HOUR)
    with pytest.raises(Invalid, match="start_date must lie before"):
        parse_span("2026-11-22", None, BERLIN, late)


def test_numbers_of_no_tasks_are_noughts_and_weeks_begin_on_monday() -> None:
    nothing = summarize_tasks([], DueCounts(0, 0, 0), {}, None)
    assert (nothing.total, nothing.completion_rate, nothing.average_completion_time) == (0, 0.0, 0.0)
    assert nothing.by_status == dict.fromkeys(TaskStatus, 0)
    some = summarize_tasks(
        [
            TaskGroupCount(TaskStatus.COMPLETED, Priority.LOW, "w", 1),
            TaskGroupCount(TaskStatus.PENDING, Priority.LOW, None, 2),
        ],
        DueCounts(1, 2, 3),
        {"w": "Work"},
        129_600.0,
    )
    assert (some.by_category, some.completion_rate, some.average_completion_time) == (
        {"Work": 1, "uncategorized": 2},
        33.3,
        1.5,
    )
    today, week = today_and_week(datetime(2026, 3, 29, 12, tzinfo=UTC), BERLIN)
    assert today.end - today.start == timedelta(hours=23)
    assert week == span_of_days(date(2026, 3, 23), BERLIN, 7)


@pytest.mark.parametrize(("seconds", "minutes"), [(1, 1), (89, 1), (90, 2), (149, 2), (3600, 60)])
def test_minutes_are_rounded_and_one_at_least(seconds: int, minutes: int) -> None:
    assert count_minutes(NOW, NOW + timedelta(seconds=seconds)) == minutes


@given(st.integers(-3000, 3000), st.integers(1, 3000), st.booleans())
def test_days_share_out_an_entry_and_each_has_no_more_than_it_is_long(start: int, long: int, runs: bool) -> None:
    begun = NOW + timedelta(minutes=start)
    now = begun + timedelta(minutes=long)
    one = entry(begun, None if runs else now)
    spans = [span_of_days(date(2026, 11, 17) + timedelta(days=number), BERLIN) for number in range(8)]
    cut = [clip_entry(one, span, now) for span in spans]
    assert sum(part.duration_minutes or 0 for part in cut if part is not None) == long
    assert sum(part is not None and part.end_at is None for part in cut) <= runs


def entry(start: datetime, end: datetime | None) -> TimeEntry:
    return TimeEntry(
        id="e",
        timeline_item_id="t",
        start_at=start,
        end_at=end,
        item_type=ItemType.TASK,
        item_title="T",
        created_at=NOW,
        updated_at=NOW,
    )


def test_entries_go_forward_and_not_for_ever() -> None:
    with pytest.raises(Invalid, match="ends after it begins"):
        check_entry(entry(NOW, NOW), NOW)
    with pytest.raises(Invalid, match="ends after it begins"):
        check_entry(entry(NOW + HOUR, None), NOW)
    with pytest.raises(Invalid, match="366 days"):
        check_entry(entry(NOW - timedelta(days=400), NOW), NOW)
    assert check_entry(entry(NOW - HOUR, NOW), NOW).duration_minutes == 60
    assert stop_entry(entry(NOW + HOUR, None), NOW).end_at == NOW + HOUR + INSTANT


# Due tasks wake agents: what a task's change requests, and that the schedules follow it whatever comes between


ANN = PersonScope("ann")
MORNING = datetime(2026, 11, 20, 9, tzinfo=UTC)
# The waker uses the clock of the machine.
FUTURE = datetime(2999, 1, 1, tzinfo=UTC)


def due_task(**fields: Any) -> Task:
    plain = Task(
        id="t-1", title="Call mum", assignee="Ada", due_date=MORNING + HOUR, created_at=MORNING, updated_at=MORNING
    )
    return replace(plain, **fields)


def woken(due: datetime, assignee: str = "Ada") -> WakeAgent:
    found = wakeup_for(due_task(due_date=due, assignee=assignee), MORNING)
    assert found is not None
    return found


def test_a_new_task_wakes_its_assignee_when_it_is_due_and_says_which_it_is() -> None:
    wake = decide_wakeup(None, due_task(title="Call\nmum"), MORNING)
    assert isinstance(wake, WakeAgent)
    assert (wake.assignee, wake.at) == ("Ada", MORNING + HOUR)
    for words in ("'Call mum'", "t-1", "2026-11-20T10:00:00Z"):
        assert words in wake.prompt


@pytest.mark.parametrize(
    "fields",
    [
        {"assignee": None},
        {"assignee": " "},
        {"due_date": None},
        {"due_date": MORNING},
        {"due_date": MORNING - HOUR},
        {"status": TaskStatus.COMPLETED},
        {"status": TaskStatus.CANCELLED},
    ],
)
def test_a_task_that_is_over_past_or_nobodys_wakes_nobody_and_what_was_planned_is_cancelled(
    fields: dict[str, Any],
) -> None:
    assert decide_wakeup(None, due_task(**fields), MORNING) is None
    assert decide_wakeup(due_task(), due_task(**fields), MORNING) is None
    assert decide_wakeup(due_task(wake_schedule_id=7), due_task(wake_schedule_id=7, **fields), MORNING) == CancelWake(7)


def test_a_plan_follows_the_task_and_stays_where_nothing_of_it_changed() -> None:
    before = due_task(wake_schedule_id=7)
    assert decide_wakeup(before, replace(before, notes="bring flowers", status=TaskStatus.IN_PROGRESS), MORNING) is None
    assert decide_wakeup(before, replace(before, due_date=MORNING + 2 * HOUR), MORNING) == MoveWake(
        7, woken(MORNING + 2 * HOUR)
    )
    assert decide_wakeup(before, replace(before, assignee="Bob"), MORNING) == MoveWake(7, woken(MORNING + HOUR, "Bob"))
    renamed = decide_wakeup(before, replace(before, title="Call dad"), MORNING)
    assert isinstance(renamed, MoveWake)
    assert "Call dad" in renamed.wake.prompt
    assert decide_wakeup(before, None, MORNING) == CancelWake(7)
    assert decide_wakeup(None, None, MORNING) is decide_wakeup(due_task(), None, MORNING) is None


@given(
    st.sampled_from(list(TaskStatus)),
    st.sampled_from([None, MORNING - HOUR, MORNING + HOUR]),
    st.sampled_from([None, "Ada", "Bob"]),
    st.sampled_from([None, 7]),
)
def test_whatever_a_task_was_the_plan_brings_what_it_is_to_its_one_wake_or_none(
    status: TaskStatus, due: datetime | None, assignee: str | None, held: int | None
) -> None:
    after = due_task(status=status, due_date=due, assignee=assignee, wake_schedule_id=held)
    wanted = wakeup_for(after, MORNING)
    match decide_wakeup(None, after, MORNING):
        case WakeAgent() as wake:
            assert (wake, held) == (wanted, None)
        case MoveWake(schedule_id, wake):
            assert (schedule_id, wake) == (held, wanted)
        case CancelWake(schedule_id):
            assert (schedule_id, wanted) == (held, None)
        case None:
            assert wanted is held is None


async def nothing() -> None:
    """No other change comes in between."""


@dataclass
class Book:
    """A fake scheduler: its schedules, its failures, and the changes that happen during a write."""

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
    """A person's tasks, and a waker that follows their changes."""

    records: PersonDatabase
    book: Book

    @property
    def waker(self) -> AgentWaker:
        return AgentWaker(self.records, self.book.schedule, self.book.cancel, agent_named)

    async def add(self, **fields: Any) -> Task:
        new = due_task(**{"id": new_id(MORNING), "due_date": FUTURE, **fields})
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
