"""A person's time, on both databases: one timer at a time, entries by hand, and where a day went."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import anyio
import pytest

from frontdesk.db.engine import Database
from frontdesk.errors import Conflict, Invalid, MissingScope, NotFound
from frontdesk.memory.items_store import insert_item
from frontdesk.memory.model import ItemType, PersonScope, TimelineItem
from frontdesk.memory.store import PersonDatabase, PersonTransaction
from frontdesk.memory.tasks import TaskService
from frontdesk.memory.time_tracking import StartedTimer, TimerRunning, TimeSpent, TimeTrackingService
from frontdesk.memory.time_tracking_store import insert_entry
from frontdesk.memory.validation import new_id
from tests.stores.memory.conftest import ANN, BOB, NOON, Clock
from tests.stores.memory.lab import add_category, live_in, make, refusal

pytestmark = pytest.mark.anyio
MINUTE = timedelta(minutes=1)


@pytest.fixture
def timing(records: PersonDatabase) -> TimeTrackingService:
    return TimeTrackingService(records)


async def add_item(records: PersonDatabase, kind: ItemType, title: str) -> TimelineItem:
    def work(mine: PersonTransaction) -> TimelineItem:
        made = TimelineItem(id=new_id(mine.now), type=kind, title=title, created_at=mine.now, updated_at=mine.now)
        insert_item(mine, made, title)
        return made

    return await records.change(ANN, work)


async def tracked(tasks: TaskService, task_id: str) -> tuple[int, int]:
    found = await tasks.get(ANN, task_id)
    return found.tracked_minutes_total, found.tracked_segments_count


async def test_a_person_has_one_timer_at_a_time(tasks: TaskService, timing: TimeTrackingService, clock: Clock) -> None:
    write, call = await make(tasks, "Write"), await make(tasks, "Call")
    assert await timing.stop(ANN, write.id) is None
    begun = await timing.start(ANN, write.id, "The first page")
    assert (begun.created, begun.stopped, begun.entry.note) == (True, None, "The first page")
    assert (begun.entry.item_title, begun.entry.item_type, begun.entry.duration_minutes) == ("Write", "task", None)
    clock.forward(10 * MINUTE)
    assert await timing.start(ANN, write.id, "Again") == StartedTimer(begun.entry, created=False)
    with pytest.raises(TimerRunning, match="The timer of 'Write'") as refused:
        await timing.start(ANN, call.id)
    assert refused.value.running == await timing.running(ANN) == begun.entry
    with pytest.raises(NotFound, match="No timer of this runs, but that of 'Write'"):
        await timing.stop(ANN, call.id)
    switched = await timing.start(ANN, call.id, auto_switch=True)
    assert switched.stopped is not None
    assert (switched.stopped.id, switched.stopped.end_at, switched.stopped.duration_minutes) == (
        begun.entry.id,
        clock.now,
        10,
    )
    clock.forward(20 * timedelta(seconds=1))
    stopped = await timing.stop(ANN, call.id, kind=ItemType.TASK)
    assert stopped is not None
    assert (stopped.duration_minutes, await timing.running(ANN)) == (1, None)
    assert [await tracked(tasks, one.id) for one in (write, call)] == [(10, 1), (1, 1)]
    assert (await timing.start(BOB, (await tasks.create(BOB, {"title": "Bob's"})).id)).created


async def test_a_timer_can_be_stopped_as_of_earlier_and_not_of_later(
    tasks: TaskService, timing: TimeTrackingService, clock: Clock, database: Database
) -> None:
    task = await make(tasks, "Write")
    await live_in(database, "Europe/Berlin")
    begun = await timing.start(ANN, task.id)
    clock.forward(timedelta(hours=2))
    for wrong in ("2026-11-20T14:00:01Z", "2026-11-20T12:00:00Z", "2026-11-20T12:30", "2026-11-20"):
        with pytest.raises(Invalid, match="The timer can have been stopped after 2026-11-20T12:00:00"):
            await timing.stop(ANN, task.id, wrong)
    stopped = await timing.stop(ANN, task.id, "2026-11-20T13:30")
    assert stopped is not None
    assert (stopped.end_at, stopped.duration_minutes) == (NOON + 30 * MINUTE, 30)
    assert stopped.id == begun.entry.id


async def test_time_is_spent_on_anything_but_memories(
    tasks: TaskService, timing: TimeTrackingService, records: PersonDatabase
) -> None:
    run, memory = [await add_item(records, kind, kind.title()) for kind in (ItemType.ACTIVITY, ItemType.MEMORY)]
    for work in (timing.start(ANN, memory.id), timing.add(ANN, memory.id, {"start_at": "2026-11-20"})):
        with pytest.raises(Invalid, match="cannot be spent on a memory"):
            await work
    with pytest.raises(NotFound, match="Task not found"):
        await timing.start(ANN, run.id, kind=ItemType.TASK)
    assert (await timing.start(ANN, run.id, kind=ItemType.ACTIVITY)).entry.item_type is ItemType.ACTIVITY
    assert await timing.stop(ANN, run.id) is not None
    assert await timing.entries_of_item(ANN, memory.id) == []
    with pytest.raises(NotFound, match="Item not found"):
        await timing.entries_of_item(ANN, new_id(NOON))


async def test_entries_made_by_hand_are_counted_changed_and_taken_away(
    tasks: TaskService, timing: TimeTrackingService, clock: Clock
) -> None:
    task = await make(tasks, "Write")
    span = {"start_at": "2026-11-19T09:00", "end_at": "2026-11-19T10:30"}
    made = await timing.add(ANN, task.id, {**span, "note": "By hand"}, "Europe/Berlin")
    assert (made.start_at, made.duration_minutes, made.source) == (
        datetime(2026, 11, 19, 8, tzinfo=UTC),
        90,
        "manual",
    )
    other = await timing.add(ANN, task.id, {"start_at": "2026-11-18T09:00Z", "end_at": "2026-11-18T09:20Z"})
    assert await tracked(tasks, task.id) == (110, 2)
    assert await timing.entries_of_item(ANN, task.id) == [other, made]
    assert await timing.entries_of_item(ANN, task.id, "2026-11-19", "2026-11-19") == [made]
    assert await timing.entries_of_item(ANN, task.id, end_date="2026-11-18") == [other]
    assert await timing.entries_between(ANN, "2026-11-18T09:20Z", "2026-11-19T08:00Z") == [], "neither has a part in it"
    assert await timing.entries_between(ANN, "2026-11-18T09:19Z", "2026-11-19") == [other, made]
    clock.forward(MINUTE)
    changed = await timing.change(ANN, made.id, {"end_at": "2026-11-19T09:00Z", "note": None})
    assert (changed.duration_minutes, changed.note, changed.updated_at) == (60, "", clock.now)
    assert await tracked(tasks, task.id) == (80, 2)
    await tasks.update(ANN, task.id, {"title": "Written"})
    assert await timing.remove(ANN, other.id) == other
    assert await tracked(tasks, task.id) == (60, 1)
    running = (await timing.start(ANN, task.id)).entry
    assert await tracked(tasks, task.id) == (60, 1), "what runs is not counted yet"
    earlier = await timing.change(ANN, running.id, {"start_at": "2026-11-20T11:00Z", "note": "Began before"})
    assert (earlier.end_at, earlier.duration_minutes) == (None, None)
    ended = await timing.change(ANN, running.id, {"end_at": "2026-11-20T11:30Z"})
    assert (ended.duration_minutes, await timing.running(ANN)) == (30, None)
    assert await tracked(tasks, task.id) == (90, 2)
    for fields, words in (
        ({"end_at": "2026-11-20T10:59Z"}, "ends after it begins"),
        ({"end_at": None}, "cannot go on"),
        ({"start_at": None}, "start_at cannot be empty"),
        ({"start_at": "2020-01-01"}, "366 days"),
        ({"item_title": "Else"}, "no field item_title"),
    ):
        with pytest.raises(Invalid, match=words):
            await timing.change(ANN, ended.id, fields)
    with pytest.raises(Invalid, match="both needed"):
        await timing.add(ANN, task.id, {"start_at": "2026-11-18"})
    with pytest.raises(Invalid, match="from must lie before to"):
        await timing.entries_between(ANN, "2026-11-19", "2026-11-18")
    await tasks.delete(ANN, task.id)
    assert await timing.entries_between(ANN, "2026-11-01", "2026-11-30") == []


async def test_a_day_is_told_from_midnight_to_midnight_where_the_person_lives(
    tasks: TaskService, timing: TimeTrackingService, records: PersonDatabase, database: Database, clock: Clock
) -> None:
    work = await add_category(records, "Work")
    await live_in(database, "Europe/Berlin")
    write, rest = await make(tasks, "Write", category="Work"), await make(tasks, "Rest")
    for task, start, end in (
        (write, "2026-10-24T23:00", "2026-10-26T01:00"),
        (rest, "2026-10-25T08:00", "2026-10-25T08:45"),
        (rest, "2026-10-26T00:00", "2026-10-26T00:30"),
        (write, "2026-03-28T22:00", "2026-03-30T02:00"),
    ):
        await timing.add(ANN, task.id, {"start_at": start, "end_at": end})
    long = await timing.day(ANN, "2026-10-25")
    assert long.total_minutes == 25 * 60 + 45
    assert long.by_item == [TimeSpent(write.id, "Write", 25 * 60, 1), TimeSpent(rest.id, "Rest", 45, 1)]
    assert long.by_category == [TimeSpent(work.id, "Work", 25 * 60, 1), TimeSpent(None, "uncategorized", 45, 1)]
    assert (long.entries[0].start_at, long.entries[0].end_at) == (long.span.start, long.span.end)
    assert (long.zone, str(long.day)) == ("Europe/Berlin", "2026-10-25")
    assert (await timing.day(ANN, "2026-03-29")).total_minutes == 23 * 60
    assert (await timing.day(ANN, "2026-10-26")).total_minutes == 60 + 30
    assert (await timing.day(ANN, "2026-10-25", "America/New_York")).total_minutes == 20 * 60 + 45 + 30
    clock.now = datetime(2026, 11, 20, 22, 30, tzinfo=UTC)
    await timing.start(ANN, rest.id)
    clock.forward(timedelta(hours=2))
    yesterday, today, later = [await timing.day(ANN, f"2026-11-{day}") for day in (20, 21, 22)]
    assert (yesterday.total_minutes, yesterday.entries[0].end_at) == (30, yesterday.span.end)
    assert (today.total_minutes, today.entries[0].end_at, later.entries) == (90, None, [])
    for wrong in ("2026-11-31", "today", "9999-12-31"):
        with pytest.raises(Invalid, match="date must"):
            await timing.day(ANN, wrong)


async def test_of_many_timers_started_at_once_one_runs(
    tasks: TaskService, timing: TimeTrackingService, records: PersonDatabase
) -> None:
    made = [await make(tasks, str(number)) for number in range(10)]
    begun: list[StartedTimer] = []
    refused: list[Conflict] = []

    async def start(task_id: str, auto_switch: bool) -> None:
        try:
            begun.append(await timing.start(ANN, task_id, auto_switch=auto_switch))
        except Conflict as error:
            refused.append(error)

    async def start_all(auto_switch: bool) -> None:
        with anyio.fail_after(30):
            async with anyio.create_task_group() as group:
                for number in range(20):
                    group.start_soon(start, made[number % 10].id, auto_switch)

    await start_all(auto_switch=False)
    assert [one.created for one in begun].count(True) == 1
    assert len(refused) + len(begun) == 20
    running = await timing.running(ANN)
    assert running is not None
    assert {one.entry.id for one in begun} == {running.id}
    assert await timing.entries_between(ANN, "2000-01-01", "2100-01-01") == [running]
    with pytest.raises(Conflict, match="at this moment"):
        await records.change(ANN, lambda mine: insert_entry(mine, replace(running, id=new_id(NOON))))
    await start_all(auto_switch=True)
    entries = await timing.entries_between(ANN, "2000-01-01", "2100-01-01")
    assert sum(one.end_at is None for one in entries) == 1
    counted = [await tracked(tasks, one.id) for one in made]
    assert sum(segments for _, segments in counted) == len(entries) - 1
    assert sum(minutes for minutes, _ in counted) == sum(one.duration_minutes or 0 for one in entries)


async def test_nobody_times_what_is_anothers_or_sees_their_time(
    tasks: TaskService, timing: TimeTrackingService, clock: Clock
) -> None:
    task = await make(tasks, "Mine")
    span = {"start_at": "2026-11-19T09:00Z", "end_at": "2026-11-19T10:00Z"}
    entry = await timing.add(ANN, task.id, span)
    await timing.start(ANN, task.id)
    attempts: Sequence[Callable[[str], Awaitable[object]]] = (
        lambda one: timing.start(BOB, one),
        lambda one: timing.start(BOB, one, auto_switch=True),
        lambda one: timing.stop(BOB, one),
        lambda one: timing.entries_of_item(BOB, one),
        lambda one: timing.add(BOB, one, span),
    )
    on_entries: Sequence[Callable[[str], Awaitable[object]]] = (
        lambda one: timing.change(BOB, one, {"note": "Taken"}),
        lambda one: timing.remove(BOB, one),
    )
    for works, its_id in ((attempts, task.id), (on_entries, entry.id)):
        for work in works:
            theirs, nobodys, no_id = [await refusal(work(one)) for one in (its_id, new_id(NOON), "x")]
            assert theirs == nobodys == no_id
            assert theirs is not None
            assert theirs.startswith("NotFound")
    assert (await timing.running(BOB), await timing.entries_between(BOB, "2026-11-01", "2026-11-30")) == (None, [])
    assert (await timing.day(BOB, "2026-11-19")).total_minutes == 0
    assert await timing.entries_of_item(ANN, task.id) == [entry, await timing.running(ANN)]


async def test_all_of_timing_asks_for_its_one_right(tasks: TaskService, timing: TimeTrackingService) -> None:
    task = await make(tasks, "Mine")
    may_not = PersonScope("ann", scopes=frozenset({"tasks.read", "tasks.write"}))
    may = PersonScope("ann", scopes=frozenset({"tasks.time"}))
    works: Sequence[Callable[[PersonScope], Awaitable[object]]] = (
        lambda scope: timing.start(scope, task.id),
        lambda scope: timing.stop(scope, task.id),
        timing.running,
        lambda scope: timing.entries_of_item(scope, task.id),
        lambda scope: timing.add(scope, task.id, {"start_at": "2026-11-19T09:00Z", "end_at": "2026-11-19T10:00Z"}),
        lambda scope: timing.entries_between(scope, "2026-11-01", "2026-11-30"),
        lambda scope: timing.day(scope, "2026-11-19"),
    )
    for work in works:
        with pytest.raises(MissingScope, match=r"tasks\.time"):
            await work(may_not)
        await work(may)
    entry = (await timing.entries_of_item(may, task.id))[0]
    for work in (timing.change(may_not, entry.id, {}), timing.remove(may_not, entry.id)):
        with pytest.raises(MissingScope):
            await work
