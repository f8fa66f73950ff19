"""Tests the timeline over all records of a person, on both databases."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from frontdesk.errors import Invalid, MissingScope, NotFound
from frontdesk.identity import rights
from frontdesk.memory.activities import ActivityService
from frontdesk.memory.categories import CategoryService
from frontdesk.memory.memories import MemoryService
from frontdesk.memory.memories_rules import MemoryFilter
from frontdesk.memory.model import (
    ActivityStatus,
    ActivityType,
    ItemStatus,
    ItemType,
    MemoryStatus,
    MemoryType,
    PersonScope,
    Priority,
    Task,
    TaskStatus,
    TimelineFilter,
    TimelineItem,
)
from frontdesk.memory.people import PersonDataService
from frontdesk.memory.store import PersonDatabase
from frontdesk.memory.tasks import TaskService
from frontdesk.memory.time_tracking import TimeTrackingService
from frontdesk.memory.timeline import TimelineService

ANN, BOB = PersonScope("ann"), PersonScope("bob")
NOWHERE = "01890000-0000-7000-8000-000000000000"
FROM, TO = datetime(2026, 3, 1, 9, tzinfo=UTC), datetime(2026, 3, 1, 10, tzinfo=UTC)


@pytest.fixture
def timeline(records: PersonDatabase) -> TimelineService:
    return TimelineService(records, TaskService(records))


def said(kind: str, **more: Any) -> dict[str, Any]:
    return {
        "type": kind,
        "title": f"A {kind}",
        "description": f"what {kind} is",
        "start_time": "2026-03-01T10:00",
        "end_time": "2026-03-01T11:00",
        "tags": ["t"],
        "priority": "high",
        "metadata": {"k": [1]},
        **more,
    }


async def titles(timeline: TimelineService, scope: PersonScope = ANN, **wanted: Any) -> list[str]:
    return [item.title for item in (await timeline.list(scope, TimelineFilter(**wanted))).items]


@pytest.mark.parametrize("kind", ["task", "activity", "routine", "habit", "memory"])
async def test_an_item_of_any_type_keeps_all_that_is_said_of_it(
    records: PersonDatabase, timeline: TimelineService, kind: str
) -> None:
    category = await CategoryService(records).create(ANN, {"name": "C"})
    await PersonDataService(records).set_zone(ANN, "Europe/Berlin")
    made = await timeline.create(ANN, said(kind, category_id="c"))
    assert made == await timeline.get(ANN, made.id)
    assert (made.type, made.title, made.description) == (kind, f"A {kind}", f"what {kind} is")
    assert (made.start_time, made.end_time, made.category_id) == (FROM, TO, category.id)
    assert (made.tags, made.priority, made.metadata) == (("t",), Priority.HIGH, {"k": [1]})
    assert (made.status, made.is_time_consuming) == (ItemStatus.ACTIVE, kind != "memory")
    changed = await timeline.update(ANN, made.id, {"title": "Other", "render_on_timeline": False, "priority": "low"})
    assert (changed.title, changed.render_on_timeline, changed.priority) == ("Other", False, Priority.LOW)
    again = await timeline.update(ANN, made.id, {"description": "more", "status": "active"})
    assert (again.title, again.description, again.start_time) == ("Other", "more", FROM)
    assert (again.render_on_timeline, again.priority, again.metadata) == (False, Priority.LOW, {"k": [1]})
    assert await timeline.delete(ANN, made.id) == again
    assert await titles(timeline) == []
    with pytest.raises(NotFound):
        await timeline.get(ANN, made.id)


async def test_a_task_a_memory_and_an_activity_are_made_as_what_they_are(
    records: PersonDatabase, timeline: TimelineService
) -> None:
    task, memory, activity = [await timeline.create(ANN, said(kind), "UTC") for kind in ("task", "memory", "activity")]
    tasks, memories, activities = TaskService(records), MemoryService(records), ActivityService(records)
    one = await tasks.get(ANN, task.id)
    assert (one.status, one.description, one.due_date) == (TaskStatus.PENDING, "what task is", task.end_time)
    two = await memories.get(ANN, memory.id)
    assert (two.note, two.happened_start, two.happened_end) == ("what memory is", memory.start_time, memory.end_time)
    three = await activities.get(ANN, activity.id)
    assert (three.activity_type, three.status) == (ActivityType.OTHER, ActivityStatus.ACTIVE)
    assert (three.started_at, three.duration_minutes) == (activity.start_time, 60)
    for item, status in ((task, "inactive"), (memory, "archived"), (activity, "completed")):
        assert (await timeline.update(ANN, item.id, {"status": status})).status == status
    assert (await tasks.get(ANN, task.id)).status is TaskStatus.ON_HOLD
    assert (await memories.get(ANN, memory.id)).status is MemoryStatus.ARCHIVED
    assert (await activities.get(ANN, activity.id)).status is ActivityStatus.COMPLETED
    await tasks.update(ANN, task.id, {"title": "T2"})
    await memories.update(ANN, memory.id, {"note": "N2"})
    await activities.update(ANN, activity.id, {"notes": "x"})
    assert [(await timeline.get(ANN, item.id)).priority for item in (task, memory, activity)] == [Priority.HIGH] * 3
    assert (await timeline.get(ANN, task.id)).start_time == task.start_time
    assert (await timeline.get(ANN, memory.id)).description == "N2"
    for item in (task, memory, activity):
        await timeline.delete(ANN, item.id)
    for attempt in (tasks.get(ANN, task.id), memories.get(ANN, memory.id), activities.get(ANN, activity.id)):
        with pytest.raises(NotFound):
            await attempt
    assert (await memories.list(ANN, MemoryFilter(status=MemoryStatus.DELETED))).total == 1


async def test_whoever_follows_tasks_is_told_of_what_the_timeline_does_to_them(records: PersonDatabase) -> None:
    told: list[tuple[str | None, str | None]] = []

    async def follow(_scope: PersonScope, before: Task | None, after: Task | None) -> None:
        told.append((before and before.title, after and after.title))

    tasks = TaskService(records, follow)
    timeline = TimelineService(records, tasks)
    root = await timeline.create(ANN, {"type": "task", "title": "root"})
    child = await tasks.create(ANN, {"title": "child", "parent_task_id": root.id})
    told.clear()
    await timeline.update(ANN, child.id, {"title": "kid", "end_time": "2030-01-01"})
    assert told == [("child", "kid")]
    told.clear()
    await timeline.delete(ANN, root.id)
    assert sorted(told) == [("kid", None), ("root", None)]


async def test_a_status_that_a_task_is_in_already_changes_nothing(
    records: PersonDatabase, timeline: TimelineService
) -> None:
    task = await TaskService(records).create(ANN, {"title": "t", "status": "in_progress"})
    await timeline.update(ANN, task.id, {"status": "active"})
    assert (await TaskService(records).get(ANN, task.id)).status is TaskStatus.IN_PROGRESS


@pytest.mark.parametrize(
    ("wrong", "text"),
    [
        ({"type": "event", "title": "t"}, "type is task"),
        ({"title": "t"}, "type is task"),
        ({"type": "habit"}, "needs a title"),
        ({"type": "habit", "title": "t" * 501}, "title must have"),
        ({"type": "habit", "title": "t", "status": "deleted"}, "deleted by deleting"),
        ({"type": "habit", "title": "t", "status": "gone"}, "status is active"),
        ({"type": "habit", "title": "t", "start_time": "2026-01-02", "end_time": "2026-01-01"}, "end_time must be"),
        ({"type": "task", "title": "t", "start_time": "2026-01-02", "end_time": "2026-01-01"}, "end_time must be"),
        ({"type": "task", "title": "t", "status": "archived"}, "cannot be archived; it can be active"),
        ({"type": "memory", "title": "t", "status": "completed"}, "cannot be completed"),
        ({"type": "memory", "title": "t", "is_time_consuming": True}, "is_time_consuming cannot be set"),
        ({"type": "habit", "title": "t", "category_id": "none"}, "There is no category"),
        ({"type": "activity", "title": "t", "mood_after": 3}, "mood_after cannot be set"),
        ({"type": "routine", "title": "t", "mood_after": 3}, "There is no field mood_after"),
    ],
)
async def test_what_cannot_be_is_refused_and_nothing_of_it_kept(
    timeline: TimelineService, wrong: dict[str, Any], text: str
) -> None:
    with pytest.raises(Invalid, match=text):
        await timeline.create(ANN, wrong)
    assert await titles(timeline) == []


async def test_an_item_stays_of_its_type(timeline: TimelineService) -> None:
    made = await timeline.create(ANN, {"type": "habit", "title": "h", "description": "d"})
    with pytest.raises(Invalid, match="stays so"):
        await timeline.update(ANN, made.id, {"type": "task"})
    changed = await timeline.update(ANN, made.id, {"type": "habit", "description": None, "start_time": "2026-01-01"})
    assert (changed.description, changed.start_time) == ("", datetime(2026, 1, 1, tzinfo=UTC))
    with pytest.raises(Invalid, match="title cannot be empty"):
        await timeline.update(ANN, made.id, {"title": None})


async def test_items_are_found_by_what_is_asked(records: PersonDatabase, timeline: TimelineService) -> None:
    await CategoryService(records).create(ANN, {"name": "Sea"})
    memories = MemoryService(records)
    await TaskService(records).create(
        ANN, {"title": "boat", "priority": "urgent", "category": "sea", "due_date": "2026-05-05"}
    )
    old = await memories.create(
        ANN, {"title": "Tide", "note": "Ébbe", "place_name": "Pier", "captured_at": "2026-02-01"}
    )
    await memories.create(ANN, {"title": "Wave", "note": "foam", "is_highlight": True, "captured_at": "2026-01-01"})
    await memories.create(ANN, {"title": "Shell", "memory_type": "quote", "salience_score": 0.5, "is_highlight": True})
    await ActivityService(records).create(
        ANN, {"title": "Swim", "activity_type": "exercise", "started_at": "2026-04-01", "tags": ["wet", "cold"]}
    )
    await timeline.create(ANN, {"type": "habit", "title": "Dry", "render_on_timeline": False, "tags": ["WET"]})
    await timeline.create(ANN, {"type": "routine", "title": "Row", "status": "archived", "priority": "low"})
    cases: list[tuple[dict[str, Any], list[str]]] = [
        ({}, ["Row", "Dry", "Swim", "Shell", "Wave", "Tide", "boat"]),
        ({"type": ItemType.MEMORY}, ["Shell", "Wave", "Tide"]),
        ({"status": ItemStatus.ARCHIVED}, ["Row"]),
        ({"priority": Priority.URGENT}, ["boat"]),
        ({"category_id": "SEA"}, ["boat"]),
        ({"search": "ébbe"}, ["Tide"]),
        ({"search": "pier TIDE"}, ["Tide"]),
        ({"search": "boat"}, ["boat"]),
        ({"tags": ["wet"]}, ["Dry", "Swim"]),
        ({"tags": ["wet", "cold"], "every_tag": True}, ["Swim"]),
        ({"is_highlight": True}, ["Shell", "Wave"]),
        ({"is_highlight": False, "type": ItemType.MEMORY}, ["Tide"]),
        ({"memory_type": MemoryType.QUOTE}, ["Shell"]),
        ({"render_on_timeline": False}, ["Dry"]),
        ({"date_from": "2026-03-31", "date_to": "2026-05-06"}, ["Swim", "boat"]),
        ({"date_to": "2026-02-01"}, ["Wave", "Tide"]),
        ({"sort_by": "title", "sort_order": "asc", "limit": 2}, ["boat", "Dry"]),
        ({"sort_by": "priority", "limit": 1}, ["boat"]),
        ({"sort_by": "priority", "sort_order": "asc", "limit": 1}, ["Row"]),
        ({"sort_by": "captured_at", "limit": 3}, ["Shell", "Tide", "Wave"]),
        ({"sort_by": "salience_score", "limit": 1}, ["Shell"]),
        ({"sort_by": "start_time", "limit": 2}, ["Shell", "Swim"]),
        ({"sort_by": "updated_at", "limit": 1}, ["Row"]),
        ({"limit": 2, "offset": 5}, ["Tide", "boat"]),
    ]
    for wanted, found in cases:
        assert (wanted, await titles(timeline, **wanted)) == (wanted, found)
    assert [item.title for item in (await timeline.highlights(ANN)).items] == ["Shell", "Wave"]
    assert (await timeline.highlights(ANN, limit=1)).has_more
    await memories.create(ANN, {"title": "Flood", "supersedes": old.id})
    assert await titles(timeline, search="tide") == []
    assert (await timeline.get(ANN, old.id)).title == "Tide"


async def test_insights_are_computed_from_what_is_there(records: PersonDatabase, timeline: TimelineService) -> None:
    await PersonDataService(records).set_zone(ANN, "Asia/Tokyo")
    await CategoryService(records).create(ANN, {"name": "Work"})
    tasks = TaskService(records)
    await tasks.create(ANN, {"title": "done", "status": "completed", "tags": ["x"]})
    task = await tasks.create(ANN, {"title": "open", "category": "work"})
    memory = await MemoryService(records).create(ANN, {"note": "was", "emotion_valence": -5})
    await MemoryService(records).create(
        ANN, {"note": "is", "emotion_valence": 4, "place_name": "Home", "tags": ["X"], "supersedes": memory.id}
    )
    gone = await MemoryService(records).create(ANN, {"note": "gone", "emotion_valence": -5})
    await MemoryService(records).delete(ANN, gone.id)
    await MemoryService(records).create(ANN, {"note": "long ago", "emotion_valence": -5, "captured_at": "2020-01-01"})
    await ActivityService(records).create(
        ANN, {"title": "a", "activity_type": "rest", "mood_before": 2, "mood_after": 5}
    )
    start = datetime.now(UTC) - timedelta(minutes=90)
    await TimeTrackingService(records).add(
        ANN, task.id, {"start_at": start.isoformat(), "end_at": (start + timedelta(minutes=45)).isoformat()}
    )
    found = await timeline.insights(ANN, "week")
    assert (found.timezone, found.total, found.counts) == ("Asia/Tokyo", 4, {"task": 2, "memory": 1, "activity": 1})
    assert (found.tasks.created, found.tasks.completed, found.tasks.completion_rate) == (2, 1, 50.0)
    assert (found.tracked_minutes, found.minutes_by_category) == (45, {"Work": 45})
    assert (found.average_mood_change, found.average_valence, found.tone) == (3.0, 4.0, "positive")
    assert (found.tags, found.places) == ({"x": 2}, {"Home": 1})
    assert found.sentences[0] == "In the last 7 days you added 2 tasks, 1 memory and 1 activity."
    assert (await timeline.insights(ANN, "year", "UTC")).timezone == "UTC"
    empty = await timeline.insights(BOB, "month")
    assert (empty.total, empty.tracked_minutes, len(empty.sentences)) == (0, 0, 1)
    with pytest.raises(Invalid, match="date_range is today"):
        await timeline.insights(ANN, "decade")


async def test_nobody_reaches_the_timeline_of_somebody_else(timeline: TimelineService) -> None:
    made: list[TimelineItem] = [await timeline.create(ANN, {"type": kind, "title": kind}) for kind in ItemType]
    for item in made:
        for attempt in (
            timeline.get(BOB, item.id),
            timeline.update(BOB, item.id, {"title": "x"}),
            timeline.delete(BOB, item.id),
        ):
            with pytest.raises(NotFound, match="Timeline item not found"):
                await attempt
    assert await titles(timeline, BOB) == []
    assert (await timeline.highlights(BOB)).total == 0
    assert sorted(await titles(timeline)) == sorted(ItemType)
    with pytest.raises(NotFound):
        await timeline.get(ANN, NOWHERE)


async def test_to_change_what_stands_behind_an_item_needs_the_right_to_that_too(timeline: TimelineService) -> None:
    writer = PersonScope("ann", None, frozenset({rights.TIMELINE_WRITE}))
    reader = PersonScope("ann", None, frozenset({rights.TIMELINE_READ}))
    for kind, right in (("task", rights.TASKS_WRITE), ("memory", rights.MEMORIES_WRITE), ("habit", None)):
        made = await timeline.create(writer, {"type": kind, "title": kind})
        assert await timeline.get(reader, made.id) == made
        if right is not None:
            for attempt in (timeline.update(writer, made.id, {"title": "x"}), timeline.delete(writer, made.id)):
                with pytest.raises(MissingScope, match=right):
                    await attempt
        both = PersonScope("ann", None, frozenset({rights.TIMELINE_WRITE, right or rights.TIMELINE_WRITE}))
        assert (await timeline.update(both, made.id, {"title": "x"})).title == "x"
        await timeline.delete(both, made.id)
    for refused in (
        timeline.create(reader, {"type": "habit", "title": "h"}),
        timeline.update(reader, NOWHERE, {}),
        timeline.delete(reader, NOWHERE),
        timeline.get(writer, NOWHERE),
        timeline.list(writer, TimelineFilter()),
        timeline.highlights(writer),
        timeline.insights(writer),
    ):
        with pytest.raises(MissingScope):
            await refused
