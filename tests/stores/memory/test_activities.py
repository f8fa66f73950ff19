"""Activities: what was done, how long it took and how it felt, on both databases."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from frontdesk.errors import Invalid, MissingScope, NotFound
from frontdesk.identity import rights
from frontdesk.memory.activities import ActivityService
from frontdesk.memory.activities_rules import ActivityFilter
from frontdesk.memory.categories import CategoryService
from frontdesk.memory.model import Activity, ActivityStatus, ActivityType, Intensity, PersonScope
from frontdesk.memory.store import PersonDatabase
from frontdesk.memory.tasks import TaskService
from frontdesk.memory.timeline import TimelineService

pytestmark = pytest.mark.anyio
ANN, BOB = PersonScope("ann"), PersonScope("bob")
NOWHERE = "01890000-0000-7000-8000-000000000000"
RUN: dict[str, Any] = {"title": "Run", "activity_type": "exercise"}
NINE, TEN = "2026-03-01T09:00:00Z", "2026-03-01T10:00:00Z"


@pytest.fixture
def activities(records: PersonDatabase) -> ActivityService:
    return ActivityService(records)


def at(hour: int, minute: int = 0) -> datetime:
    return datetime(2026, 3, 1, hour, minute, tzinfo=UTC)


def timing(activity: Activity) -> tuple[datetime, datetime | None, int | None]:
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
    assert (kept.category_id, timing(kept)) == (category.id, (at(9), at(9, 45), 45))
    least = await activities.create(ANN, RUN)
    assert (least.status, least.intensity_level) == (ActivityStatus.COMPLETED, Intensity.MODERATE)
    assert timing(least) == (least.created_at, None, None)


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
        assert timing(await activities.create(ANN, {**RUN, **said})) == found
    over = await activities.create(ANN, {**RUN, "duration_minutes": 30})
    assert timing(over) == (over.created_at - timedelta(minutes=30), over.created_at, 30)
    ahead = await activities.create(ANN, {**RUN, "status": "active", "duration_minutes": 30})
    assert timing(ahead) == (ahead.created_at, ahead.created_at + timedelta(minutes=30), 30)


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
        assert timing(await activities.update(ANN, made.id, said)) == found
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
