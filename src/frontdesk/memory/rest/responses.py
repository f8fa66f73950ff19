"""Defines the responses of the memory API, and the examples for its OpenAPI description."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import fields
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field
from pydantic_core import to_json

from frontdesk.memory.memories_rules import AnchoredMemory
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
    CompletionBehavior,
    ItemType,
    Memory,
    Priority,
    ProgressCalculation,
    Task,
    TaskLink,
    TaskRelation,
    TaskStatus,
    TimeEntry,
    TimelineItem,
)
from frontdesk.memory.tasks_rules import UpdatedTaskList
from frontdesk.memory.work_queue_rules import AiTaskStats
from frontdesk.operations import ResponseDocs, RestAnswer


class MemoryApiModel(BaseModel):
    """The base of all responses."""

    model_config = ConfigDict(frozen=True, defer_build=True)


class DoneResponse(MemoryApiModel):
    """The request succeeded."""

    message: str


class DeletedResponse(DoneResponse):
    """The record with this id was deleted."""

    id: str


class TaskContentResponse(MemoryApiModel):
    """The content of a task."""

    title: str
    description: str
    status: TaskStatus
    priority: Priority
    category_id: str | None = None
    due_date: datetime | None = None
    estimated_duration: int | None = None
    progress: int
    assignee: str | None = None
    notes: str
    completion_date: datetime | None = None
    parent_task_id: str | None = None
    subtask_order: int
    completion_behavior: CompletionBehavior
    progress_calculation: ProgressCalculation
    dependencies: Sequence[str]
    tracked_minutes_total: int
    tracked_segments_count: int
    is_ai_task: bool
    wake_schedule_id: int | None = None
    wake_note: str


class TaskResponse(MemoryApiModel):
    """A task in the format of apps: the fields that they write are under `content`, all others beside it."""

    id: str
    type: Literal["task"] = "task"
    content: TaskContentResponse
    tags: Sequence[str]
    metadata: Mapping[str, Any]
    created_at: datetime
    updated_at: datetime
    category_id: str | None = None
    hierarchy_level: int
    hierarchy_path: str
    subtask_count: int
    completed_subtask_count: int

    @classmethod
    def of(cls, task: Task) -> "TaskResponse":
        return cls(**_task_parts(task))


class TaskTreeNode(TaskResponse):
    """A task with its subtasks."""

    subtasks: list["TaskTreeNode"]


class TaskTreeResponse(MemoryApiModel):
    """A task and its descendants: as a list, or as a tree."""

    format: Literal["flat", "tree"]
    total: int
    tasks: list[TaskTreeNode]

    @classmethod
    def of(cls, tasks: Sequence[Task], how: Literal["flat", "tree"]) -> "TaskTreeResponse":
        """Build it from a task and its descendants, each parent before its children."""
        nodes = {task.id: TaskTreeNode(**_task_parts(task), subtasks=[]) for task in tasks}
        if how == "tree":
            for task in tasks[1:]:
                nodes[task.parent_task_id or ""].subtasks.append(nodes[task.id])
        told = list(nodes.values())
        return cls(format=how, total=len(told), tasks=told if how == "flat" else told[:1])


class UpdatePeriod(MemoryApiModel):
    """A range of time, without its end."""

    start: datetime
    end: datetime


class UpdatedTasksResponse(MemoryApiModel):
    """The tasks that were changed, the latest first."""

    tasks: list[TaskResponse]
    total: int
    date_range: UpdatePeriod

    @classmethod
    def of(cls, updated: UpdatedTaskList) -> "UpdatedTasksResponse":
        span = UpdatePeriod(start=updated.span.start, end=updated.span.end)
        return cls(tasks=[TaskResponse.of(task) for task in updated.tasks], total=updated.total, date_range=span)


class RelationListResponse(MemoryApiModel):
    """The relations of tasks."""

    relations: Sequence[TaskLink]


class RelationResponse(MemoryApiModel):
    """The relation of one task to another."""

    relation: TaskLink


class EntryListResponse(MemoryApiModel):
    """Time entries, in the order of time."""

    entries: Sequence[TimeEntry]


class EntryResponse(MemoryApiModel):
    """A time entry."""

    entry: TimeEntry


class OptionalEntryResponse(MemoryApiModel):
    """A time entry, if there is one."""

    entry: TimeEntry | None


class TimerProblem(BaseModel):
    """Another timer is running."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"error": "Session not found"}]}, defer_build=True)

    error: str
    details: Any = None
    running: TimeEntry | None = Field(None, description="The entry of the timer that runs.")


class AnchorListResponse(MemoryApiModel):
    """The items that a memory is anchored to."""

    anchors: Sequence[Anchor]


class AnchorResponse(MemoryApiModel):
    """The item that a memory is anchored to, and how."""

    anchor: Anchor


class AnchoredListResponse(MemoryApiModel):
    """The memories that are anchored to an item, and how."""

    anchors: Sequence[AnchoredMemory]


class ActivityListResponse(MemoryApiModel):
    """A page of activities."""

    activities: Sequence[Activity]
    count: int


class ActivityResponse(MemoryApiModel):
    """An activity."""

    activity: Activity


class ItemListResponse(MemoryApiModel):
    """A page of items."""

    items: Sequence[TimelineItem]
    count: int
    has_more: bool


class ItemResponse(MemoryApiModel):
    """A timeline item."""

    item: TimelineItem


class AiTaskListResponse(MemoryApiModel):
    """A page of agents' work."""

    ai_tasks: Sequence[AiTask]
    count: int


class AiTaskStatsResponse(MemoryApiModel):
    """Statistics of agents' work."""

    stats: AiTaskStats


class AiTaskResponse(MemoryApiModel):
    """A piece of work."""

    ai_task: AiTask


class OptionalAiTaskResponse(MemoryApiModel):
    """The piece of work that was claimed, if there was one."""

    ai_task: AiTask | None


class CategoryListResponse(MemoryApiModel):
    """Categories by name."""

    categories: Sequence[Category]


class CategoryResponse(MemoryApiModel):
    """A category."""

    category: Category


def _task_parts(task: Task) -> dict[str, Any]:
    """The values of a task, with the values that apps write separate from the others."""
    values = {one.name: getattr(task, one.name) for one in fields(Task)}
    beside = {name: values[name] for name in TaskResponse.model_fields if name in values}
    return {
        **beside,
        "content": TaskContentResponse(**{name: values[name] for name in TaskContentResponse.model_fields}),
    }


def counted_answer(items: Sequence[object], total: int) -> RestAnswer:
    """The answer with a page of a list, and a header with the total."""
    return RestAnswer(items, headers={"X-Total-Count": str(total)})


EXAMPLE_TIME = datetime(2026, 11, 20, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
TIMESTAMPS: Mapping[str, Any] = {"created_at": EXAMPLE_TIME, "updated_at": EXAMPLE_TIME}
CATEGORY_ID, TASK_ID, OTHER_TASK_ID, MEMORY_ID, ACTIVITY_ID, ITEM_ID, ENTRY_ID, RELATION_ID, AI_TASK_ID = (
    f"019a9f00-0000-7000-8000-00000000000{number}" for number in range(1, 10)
)
AGENT_ID = "agent-3b2c1a90-5d7e-4f6a-8b9c-0d1e2f3a4b5c"

EXAMPLE_CATEGORY = Category(
    id=CATEGORY_ID, name="Travel", description="Trips and their tickets", color="#2563EB", **TIMESTAMPS
)
EXAMPLE_TASK = TaskResponse.of(
    Task(
        id=TASK_ID,
        title="Book the train",
        priority=Priority.HIGH,
        category_id=CATEGORY_ID,
        tags=("trip",),
        due_date=EXAMPLE_TIME + 8 * HOUR,
        estimated_duration=20,
        hierarchy_path=TASK_ID,
        **TIMESTAMPS,
    )
)
EXAMPLE_RELATION = TaskLink(
    id=RELATION_ID,
    task_id=TASK_ID,
    related_task_id=OTHER_TASK_ID,
    relation=TaskRelation.DEPENDENCY,
    created_at=EXAMPLE_TIME,
)
EXAMPLE_ENTRY = TimeEntry(
    id=ENTRY_ID,
    timeline_item_id=TASK_ID,
    start_at=EXAMPLE_TIME,
    end_at=EXAMPLE_TIME + HOUR,
    duration_minutes=60,
    item_type=ItemType.TASK,
    item_title="Book the train",
    category_id=CATEGORY_ID,
    **TIMESTAMPS,
)
EXAMPLE_MEMORY = Memory(
    id=MEMORY_ID,
    title="Ada likes the window seat",
    note="Ada likes the window seat, and to face forward.",
    salience_score=0.7,
    tags=("trip",),
    captured_at=EXAMPLE_TIME,
    **TIMESTAMPS,
)
EXAMPLE_ANCHOR = Anchor(
    memory_id=MEMORY_ID, anchor_item_id=TASK_ID, relation=AnchorRelation.ABOUT, created_at=EXAMPLE_TIME
)
EXAMPLE_ACTIVITY = Activity(
    id=ACTIVITY_ID,
    title="Walk by the river",
    activity_type=ActivityType.WALKING,
    status=ActivityStatus.COMPLETED,
    started_at=EXAMPLE_TIME,
    ended_at=EXAMPLE_TIME + HOUR,
    duration_minutes=60,
    mood_before=5,
    mood_after=8,
    **TIMESTAMPS,
)
EXAMPLE_ITEM = TimelineItem(id=ITEM_ID, type=ItemType.HABIT, title="Read before bed", tags=("evening",), **TIMESTAMPS)
EXAMPLE_AI_TASK = AiTask(
    id=AI_TASK_ID,
    task_id=TASK_ID,
    agent_id=AGENT_ID,
    agent_name="Ada",
    objective="Compare three trains to Vienna",
    task_type=AiTaskType.RESEARCH,
    status=AiStatus.ASSIGNED,
    assigned_at=EXAMPLE_TIME,
    history=(AiEvent(at=EXAMPLE_TIME, from_status=AiStatus.PENDING, to_status=AiStatus.ASSIGNED),),
    **TIMESTAMPS,
)

NEW_TASK = {
    "type": "task",
    "content": {"title": "Book the train", "status": "pending", "priority": "high", "due_date": "2026-11-20"},
    "tags": ["trip"],
}
CHANGED_TASK = {"content": {"progress": 50, "due_date": "2026-11-21T09:00:00+01:00"}}
NEW_SUBTASK = {"parent_task_id": TASK_ID, "content": {"title": "Look for the timetable"}}
NEW_MEMORY = {"title": "Ada likes the window seat", "note": "And to face forward.", "salience_score": 0.7}
NEW_ANCHOR = {"anchor_item_id": TASK_ID, "relation": "about"}
NEW_ACTIVITY = {"title": "Walk by the river", "activity_type": "walking", "mood_before": 5, "mood_after": 8}
NEW_ITEM = {"type": "habit", "title": "Read before bed", "tags": ["evening"]}
NEW_AI_TASK = {
    "objective": "Compare three trains to Vienna",
    "task_type": "research",
    "task_id": TASK_ID,
    "agent_id": AGENT_ID,
    "guardrails": {"costCapUSD": 1.5, "requiresHumanApproval": True},
}
NEW_ENTRY = {"start_at": "2026-11-20T12:00:00Z", "end_at": "2026-11-20T13:00:00Z", "note": "On the phone"}
NEW_CATEGORY = {"name": "Travel", "color": "#2563EB"}


def example_response(answer: object, status: int = 200, *, counted: bool = False) -> ResponseDocs:
    """The part of a route's description that shows its answer by example, without the fields that have no value."""
    example = json.loads(to_json(answer), object_pairs_hook=_drop_nulls)
    docs: dict[str, Any] = {"content": {"application/json": {"example": example}}}
    if counted:
        docs["headers"] = {
            "X-Total-Count": {"description": "How many there are in all.", "schema": {"type": "integer"}}
        }
    return {status: docs}


def _drop_nulls(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    return {name: value for name, value in pairs if value is not None}
