"""One day in the life of somebody, for the description: what is sent, and what is answered."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from pydantic_core import to_jsonable_python

from frontdesk.memory.model import (
    Activity,
    ActivityStatus,
    ActivityType,
    AiEvent,
    AiStatus,
    AiTask,
    AiTaskType,
    Anchor,
    AnchorRelation,
    Category,
    Item,
    ItemType,
    Memory,
    Priority,
    Relation,
    Task,
    TaskLink,
    TimeEntry,
)
from frontdesk.surfaces.rest.memory.refused import Responses
from frontdesk.surfaces.rest.memory.told import TaskObject

NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
KEPT: Mapping[str, Any] = {"created_at": NOON, "updated_at": NOON}
TRAVEL, TASK, OTHER_TASK, MEMORY, WALK, HABIT, ENTRY, LINK, WORK = (
    f"019a9f00-0000-7000-8000-00000000000{number}" for number in range(1, 10)
)
AGENT = "agent-3b2c1a90-5d7e-4f6a-8b9c-0d1e2f3a4b5c"

category = Category(id=TRAVEL, name="Travel", description="Trips and their tickets", color="#2563EB", **KEPT)
task = TaskObject.of(
    Task(
        id=TASK,
        title="Book the train",
        priority=Priority.HIGH,
        category_id=TRAVEL,
        tags=("trip",),
        due_date=NOON + 8 * HOUR,
        estimated_duration=20,
        hierarchy_path=TASK,
        **KEPT,
    )
)
link = TaskLink(id=LINK, task_id=TASK, related_task_id=OTHER_TASK, relation=Relation.DEPENDENCY, created_at=NOON)
entry = TimeEntry(
    id=ENTRY,
    timeline_item_id=TASK,
    start_at=NOON,
    end_at=NOON + HOUR,
    duration_minutes=60,
    item_type=ItemType.TASK,
    item_title="Book the train",
    category_id=TRAVEL,
    **KEPT,
)
memory = Memory(
    id=MEMORY,
    title="Ada likes the window seat",
    note="Ada likes the window seat, and to face forward.",
    salience_score=0.7,
    tags=("trip",),
    captured_at=NOON,
    **KEPT,
)
anchor = Anchor(memory_id=MEMORY, anchor_item_id=TASK, relation=AnchorRelation.ABOUT, created_at=NOON)
activity = Activity(
    id=WALK,
    title="Walk by the river",
    activity_type=ActivityType.WALKING,
    status=ActivityStatus.COMPLETED,
    started_at=NOON,
    ended_at=NOON + HOUR,
    duration_minutes=60,
    mood_before=5,
    mood_after=8,
    **KEPT,
)
item = Item(id=HABIT, type=ItemType.HABIT, title="Read before bed", tags=("evening",), **KEPT)
ai_task = AiTask(
    id=WORK,
    task_id=TASK,
    agent_id=AGENT,
    agent_name="Ada",
    objective="Compare three trains to Vienna",
    task_type=AiTaskType.RESEARCH,
    status=AiStatus.ASSIGNED,
    assigned_at=NOON,
    history=(AiEvent(at=NOON, from_status=AiStatus.PENDING, to_status=AiStatus.ASSIGNED),),
    **KEPT,
)

NEW_TASK = {
    "type": "task",
    "content": {"title": "Book the train", "status": "pending", "priority": "high", "due_date": "2026-11-20"},
    "tags": ["trip"],
}
CHANGED_TASK = {"content": {"progress": 50, "due_date": "2026-11-21T09:00:00+01:00"}}
NEW_SUBTASK = {"parent_task_id": TASK, "content": {"title": "Look for the timetable"}}
NEW_MEMORY = {"title": "Ada likes the window seat", "note": "And to face forward.", "salience_score": 0.7}
NEW_ANCHOR = {"anchor_item_id": TASK, "relation": "about"}
NEW_ACTIVITY = {"title": "Walk by the river", "activity_type": "walking", "mood_before": 5, "mood_after": 8}
NEW_ITEM = {"type": "habit", "title": "Read before bed", "tags": ["evening"]}
NEW_AI_TASK = {
    "objective": "Compare three trains to Vienna",
    "task_type": "research",
    "task_id": TASK,
    "agent_id": AGENT,
    "guardrails": {"costCapUSD": 1.5, "requiresHumanApproval": True},
}
NEW_ENTRY = {"start_at": "2026-11-20T12:00:00Z", "end_at": "2026-11-20T13:00:00Z", "note": "On the phone"}
NEW_CATEGORY = {"name": "Travel", "color": "#2563EB"}


def shown(answer: object, status: int = 200, *, counted: bool = False) -> Responses:
    """The part of a route's description that gives its answer by example."""
    told: dict[str, Any] = {"content": {"application/json": {"example": to_jsonable_python(answer)}}}
    if counted:
        told["headers"] = {
            "X-Total-Count": {"description": "How many there are in all.", "schema": {"type": "integer"}}
        }
    return {status: told}


def sent(body: Mapping[str, Any]) -> dict[str, Any]:
    """What may be sent, for `Body(openapi_examples=…)`."""
    return {"example": {"value": body}}
