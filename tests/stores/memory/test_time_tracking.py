"""Tests timers, time entries and activities of a person, on both databases."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import anyio
import pytest

from frontdesk.db.engine import Database
from frontdesk.errors import Conflict, Invalid, MissingScope, NotFound
from frontdesk.identity import rights
from frontdesk.memory.activities import ActivityService
from frontdesk.memory.activities_rules import ActivityFilter
from frontdesk.memory.categories import CategoryService
from frontdesk.memory.items_store import insert_item
from frontdesk.memory.model import (
    Activity,
    ActivityStatus,
    ActivityType,
    Intensity,
    ItemType,
    PersonScope,
    TimelineItem,
)
from frontdesk.memory.store import PersonDatabase, PersonTransaction
from frontdesk.memory.tasks import TaskService
from frontdesk.memory.time_tracking import StartedTimer, TimerRunning, TimeSpent, TimeTrackingService
from frontdesk.memory.time_tracking_store import insert_entry
from frontdesk.memory.timeline import TimelineService
from frontdesk.memory.validation import new_id
from tests.stores.memory.conftest import ANN, BOB, NOON, Clock, add_category, live_in, make, refusal

# A person's time: one timer at a time, entries by hand, and the summary of a day


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


# Activities: what was done, how long it took and how it felt


NOWHERE = "01890000-0000-7000-8000-000000000000"
RUN: dict[str, Any] = {"title": "Run", "activity_type": "exercise"}
NINE, TEN = "2026-03-01T09:00:00Z", "2026-03-01T10:00:00Z"


@pytest.fixture
def activities(records: PersonDatabase) -> ActivityService:
    return ActivityService(records)


def at(hour: int, minute: int = 0) -> datetime:
    return datetime(2026, 3, 1, hour, minute, tzinfo=UTC)


def activities_timing(activity: Activity) -> tuple[datetime, datetime | None, int | None]:
    return activity.started_at, activity.ended_at, activity.duration_minutes


async def test_everything_that_is_said_of_an_activity_is_kept(
    records: PersonDatabase, activities: ActivityService
) -> None:
    category = await CategoryService(records).create(ANN, {"name": "Sport"})
    said: dict[str, Any] = {
        "title": "Run",
        "activity_type": "exercise",
        "description": "along the river",
        "status": "cancelled",
        "mood_before": 4,
        "mood_after": 8,
        "energy_before": 6,
        "energy_after": 5,
        "satisfaction_level": 9,
        "intensity_level": "high",
        "location": "Rhine",
        "weather": "rain",
        "companions": ["Jürgen, Jr.", "Eve"],
        "notes": "slow",
        "insights": "shoes matter",
        "gratitude": "dry socks",
        "tags": ["run"],
        "metadata": {"shoes": "old"},
    }
    made = await activities.create(
        ANN, {**said, "category_id": "sport", "started_at": "2026-03-01T10:00", "duration_minutes": 45}, "Europe/Berlin"
    )
    kept = await activities.get(ANN, made.id)
    said |= {"companions": ("Jürgen, Jr.", "Eve"), "tags": ("run",)}
    assert {name: getattr(kept, name) for name in said} == said
    assert (kept.status, kept.intensity_level) == (ActivityStatus.CANCELLED, Intensity.HIGH)
    assert (kept.category_id, activities_timing(kept)) == (category.id, (at(9), at(9, 45), 45))
    least = await activities.create(ANN, RUN)
    assert (least.status, least.intensity_level) == (ActivityStatus.COMPLETED, Intensity.MODERATE)
    assert activities_timing(least) == (least.created_at, None, None)


async def test_of_start_end_and_length_what_is_missing_is_worked_out(activities: ActivityService) -> None:
    cases: list[tuple[dict[str, Any], tuple[datetime, datetime | None, int | None]]] = [
        ({"started_at": NINE}, (at(9), None, None)),
        ({"started_at": NINE, "ended_at": TEN}, (at(9), at(10), 60)),
        ({"started_at": NINE, "ended_at": "2026-03-01T09:00:05Z"}, (at(9), at(9) + timedelta(seconds=5), 1)),
        ({"started_at": NINE, "duration_minutes": 60}, (at(9), at(10), 60)),
        ({"ended_at": TEN, "duration_minutes": 60}, (at(9), at(10), 60)),
        ({"started_at": NINE, "ended_at": TEN, "duration_minutes": 60}, (at(9), at(10), 60)),
    ]
    for said, found in cases:
        assert activities_timing(await activities.create(ANN, {**RUN, **said})) == found
    over = await activities.create(ANN, {**RUN, "duration_minutes": 30})
    assert activities_timing(over) == (over.created_at - timedelta(minutes=30), over.created_at, 30)
    ahead = await activities.create(ANN, {**RUN, "status": "active", "duration_minutes": 30})
    assert activities_timing(ahead) == (ahead.created_at, ahead.created_at + timedelta(minutes=30), 30)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"started_at": NINE, "ended_at": TEN, "duration_minutes": 30}, "it is 60"),
        ({"started_at": TEN, "ended_at": NINE}, "must be after"),
        ({"ended_at": TEN}, "When did it start"),
        ({"duration_minutes": 0}, "duration_minutes must be from 1"),
        ({"started_at": "9999-12-28", "duration_minutes": 10_000_000}, "beyond"),
        ({"mood_after": 11}, "mood_after must be from 1 to 10"),
        ({"satisfaction_level": 0}, "satisfaction_level"),
        ({"intensity_level": "mild"}, "intensity_level is low, moderate or high"),
        ({"status": "archived"}, "status is active, completed or cancelled"),
        ({"title": " "}, "title must have 1"),
        ({"location": "l" * 301}, "location"),
        ({"title": None}, "needs title"),
        ({"activity_type": None}, "needs activity_type"),
        ({"mood": 3}, "There is no field mood"),
    ],
)
async def test_what_cannot_be_is_refused(activities: ActivityService, wrong: dict[str, Any], said: str) -> None:
    with pytest.raises(Invalid, match=said):
        await activities.create(ANN, {**RUN, **wrong})
    assert (await activities.list(ANN, ActivityFilter())).total == 0


async def test_a_change_keeps_start_end_and_length_in_agreement(activities: ActivityService) -> None:
    made = await activities.create(ANN, {**RUN, "started_at": NINE, "duration_minutes": 60, "mood_after": 5})
    steps: list[tuple[dict[str, Any], tuple[datetime, datetime | None, int | None]]] = [
        ({"ended_at": "2026-03-01T09:20:00Z"}, (at(9), at(9, 20), 20)),
        ({"duration_minutes": 90}, (at(9), at(10, 30), 90)),
        ({"started_at": TEN}, (at(10), at(10, 30), 30)),
        ({"ended_at": None}, (at(10), None, None)),
        ({"ended_at": None, "duration_minutes": 15}, (at(10), at(10, 15), 15)),
        ({"duration_minutes": None}, (at(10), None, None)),
        ({"title": "Walk", "activity_type": "walking"}, (at(10), None, None)),
    ]
    for said, found in steps:
        assert activities_timing(await activities.update(ANN, made.id, said)) == found
    with pytest.raises(Invalid, match="give the one or the other"):
        await activities.update(ANN, made.id, {"ended_at": "2026-03-01T11:00:00Z", "duration_minutes": 5})
    with pytest.raises(Invalid, match="started_at cannot be empty"):
        await activities.update(ANN, made.id, {"started_at": None})
    kept = await activities.get(ANN, made.id)
    assert (kept.title, kept.activity_type, kept.mood_after) == ("Walk", ActivityType.WALKING, 5)
    assert (await activities.update(ANN, made.id, {"mood_after": None})).mood_after is None


async def test_an_activity_that_is_completed_ends_unless_it_is_said_when(activities: ActivityService) -> None:
    running = await activities.create(ANN, {**RUN, "status": "active", "started_at": NINE})
    assert running.ended_at is None
    done = await activities.update(ANN, running.id, {"status": "completed"})
    assert done.ended_at == done.updated_at
    other = await activities.create(ANN, {**RUN, "status": "active", "started_at": NINE})
    assert (await activities.update(ANN, other.id, {"status": "completed", "ended_at": TEN})).ended_at == at(10)


async def test_activities_are_found_by_what_is_asked(records: PersonDatabase, activities: ActivityService) -> None:
    await CategoryService(records).create(ANN, {"name": "Sport"})
    for more in (
        {"title": "Run", "activity_type": "exercise", "satisfaction_level": 9, "tags": ["Out"], "location": "Café Öl"},
        {"title": "Read", "activity_type": "reading", "mood_after": 7, "intensity_level": "low", "companions": ["Eve"]},
        {"title": "Zazen", "activity_type": "meditation", "status": "active", "insights": "Breath counts"},
        {"title": "cook", "activity_type": "cooking", "category_id": "Sport", "tags": ["out", "home"], "mood_after": 3},
    ):
        day = (await activities.list(ANN, ActivityFilter())).total + 1
        await activities.create(ANN, {"started_at": f"2026-03-0{day}T12:00:00Z", **more})
    cases: list[tuple[dict[str, Any], list[str]]] = [
        ({}, ["cook", "Zazen", "Read", "Run"]),
        ({"activity_type": ActivityType.READING}, ["Read"]),
        ({"status": ActivityStatus.ACTIVE}, ["Zazen"]),
        ({"intensity_level": Intensity.MODERATE}, ["cook", "Zazen", "Run"]),
        ({"min_satisfaction": 5}, ["Run"]),
        ({"min_mood_after": 7}, ["Read"]),
        ({"location": "café öl"}, ["Run"]),
        ({"started_from": "2026-03-02", "started_to": "2026-03-03"}, ["Zazen", "Read"]),
        ({"search": "breath"}, ["Zazen"]),
        ({"search": "eve"}, ["Read"]),
        ({"search": "ÖL run"}, ["Run"]),
        ({"tags": ["OUT"]}, ["cook", "Run"]),
        ({"tags": ["out", "home"], "every_tag": True}, ["cook"]),
        ({"category_id": "sport"}, ["cook"]),
        ({"sort_by": "title", "sort_order": "asc"}, ["cook", "Read", "Run", "Zazen"]),
        ({"sort_by": "mood_after", "limit": 2}, ["Read", "cook"]),
        ({"sort_by": "satisfaction_level", "sort_order": "asc", "limit": 1}, ["Run"]),
        ({"sort_by": "created_at", "limit": 1, "offset": 3}, ["Run"]),
    ]
    for wanted, found in cases:
        page = await activities.list(ANN, ActivityFilter(**wanted))
        assert (wanted, [one.title for one in page.items]) == (wanted, found)
    assert (await activities.list(ANN, ActivityFilter(limit=1))).total == 4
    with pytest.raises(Invalid, match="sort_by"):
        await activities.list(ANN, ActivityFilter(sort_by="mood"))


async def test_stats_sum_up_what_was_done(activities: ActivityService) -> None:
    await activities.create(ANN, {**RUN, "duration_minutes": 30, "mood_before": 4, "mood_after": 7, "energy_before": 5})
    await activities.create(ANN, {**RUN, "duration_minutes": 20, "mood_before": 5, "mood_after": 6, "status": "active"})
    await activities.create(
        ANN, {"title": "Old", "activity_type": "rest", "started_at": "2020-01-01", "satisfaction_level": 4}
    )
    stats = await activities.stats(ANN)
    assert (stats.total, stats.total_minutes) == (3, 50)
    assert list(stats.by_type.items()) == [("exercise", 2), ("rest", 1)]
    assert stats.by_status == {"completed": 2, "active": 1}
    assert stats.minutes_by_type == {"exercise": 50, "rest": 0}
    assert (stats.average_satisfaction, stats.average_mood_change, stats.average_energy_change) == (4.0, 2.0, None)
    assert (stats.this_week, stats.this_month) == (2, 2)
    assert (await activities.stats(BOB)).total == 0


async def test_a_deleted_activity_is_gone(records: PersonDatabase, activities: ActivityService) -> None:
    made = await activities.create(ANN, RUN)
    await activities.delete(ANN, made.id)
    for attempt in (
        activities.get(ANN, made.id),
        activities.delete(ANN, made.id),
        TimelineService(records, TaskService(records)).get(ANN, made.id),
    ):
        with pytest.raises(NotFound):
            await attempt
    assert (await activities.list(ANN, ActivityFilter())).items == []


async def test_nobody_reaches_the_activities_of_somebody_else(activities: ActivityService) -> None:
    made = await activities.create(ANN, RUN)
    for attempt in (
        activities.get(BOB, made.id),
        activities.update(BOB, made.id, {"title": "x"}),
        activities.delete(BOB, made.id),
        activities.get(ANN, NOWHERE),
        activities.get(ANN, "run"),
    ):
        with pytest.raises(NotFound, match="Activity not found"):
            await attempt
    assert (await activities.list(BOB, ActivityFilter())).total == 0
    assert await activities.get(ANN, made.id) == made


async def test_each_right_opens_its_own_methods(activities: ActivityService) -> None:
    reader = PersonScope("ann", None, frozenset({rights.ACTIVITIES_READ}))
    writer = PersonScope("ann", None, frozenset({rights.ACTIVITIES_WRITE}))
    made = await activities.create(writer, RUN)
    assert await activities.get(reader, made.id) == made
    for attempt in (
        activities.create(reader, RUN),
        activities.update(reader, made.id, {}),
        activities.delete(reader, made.id),
        activities.get(writer, made.id),
        activities.list(writer, ActivityFilter()),
        activities.stats(writer),
    ):
        with pytest.raises(MissingScope):
            await attempt
