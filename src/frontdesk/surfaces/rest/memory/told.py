"""What the routes answer around the records; a record itself is told as it is in the room."""

from collections.abc import Mapping, Sequence
from dataclasses import fields
from datetime import datetime
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from frontdesk.memory.memories.wanted import Anchored
from frontdesk.memory.model import (
    Activity,
    AiTask,
    Anchor,
    Category,
    Completion,
    Item,
    Priority,
    ProgressBy,
    Task,
    TaskLink,
    TaskStatus,
    TimeEntry,
)
from frontdesk.memory.queue.figures.model import AiStats
from frontdesk.memory.tasks.stats import TasksUpdated


class Told(BaseModel):
    """The base of them all."""

    model_config = ConfigDict(frozen=True)


class Message(Told):
    """It is done."""

    message: str


class Gone(Message):
    """It is done, with this one."""

    id: str


class TaskTold(Told):
    """What is to be done."""

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
    completion_behavior: Completion
    progress_calculation: ProgressBy
    dependencies: Sequence[str]
    tracked_minutes_total: int
    tracked_segments_count: int
    is_ai_task: bool
    wake_schedule_id: int | None = None
    wake_note: str


class TaskObject(Told):
    """A task as apps know it: what they write under `content`, and what is kept account of beside it."""

    id: str
    type: Literal["task"] = "task"
    content: TaskTold
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
    def of(cls, task: Task) -> "TaskObject":
        return cls(**_parts(task))


class TaskNode(TaskObject):
    """A task, and those under it."""

    subtasks: list["TaskNode"]


class TaskTree(Told):
    """A task and what is under it: one after another, or the first with the others within."""

    format: Literal["flat", "tree"]
    total: int
    tasks: list[TaskNode]

    @classmethod
    def of(cls, tasks: Sequence[Task], how: Literal["flat", "tree"]) -> "TaskTree":
        """From a task and those under it, each before its own."""
        nodes = {task.id: TaskNode(**_parts(task), subtasks=[]) for task in tasks}
        if how == "tree":
            for task in tasks[1:]:
                nodes[task.parent_task_id or ""].subtasks.append(nodes[task.id])
        told = list(nodes.values())
        return cls(format=how, total=len(told), tasks=told if how == "flat" else told[:1])


class DateRange(Told):
    """From when, up to a moment that no longer counts."""

    start: datetime
    end: datetime


class UpdatedTasks(Told):
    """The tasks that were changed, the latest first."""

    tasks: list[TaskObject]
    total: int
    date_range: DateRange

    @classmethod
    def of(cls, updated: TasksUpdated) -> "UpdatedTasks":
        span = DateRange(start=updated.span.start, end=updated.span.end)
        return cls(tasks=[TaskObject.of(task) for task in updated.tasks], total=updated.total, date_range=span)


class RelationList(Told):
    """What tasks are to each other."""

    relations: Sequence[TaskLink]


class OneRelation(Told):
    """What a task is to another."""

    relation: TaskLink


class EntryList(Told):
    """Time entries, in the order of time."""

    entries: Sequence[TimeEntry]


class OneEntry(Told):
    """A time entry."""

    entry: TimeEntry


class PerhapsEntry(Told):
    """A time entry, if there is one."""

    entry: TimeEntry | None


class AnchorList(Told):
    """What a memory is anchored to."""

    anchors: Sequence[Anchor]


class OneAnchor(Told):
    """What a memory is anchored to, and how."""

    anchor: Anchor


class AnchoredList(Told):
    """The memories that are anchored to an item, and how."""

    anchors: Sequence[Anchored]


class ActivityList(Told):
    """Some activities, and how many there are in all."""

    activities: Sequence[Activity]
    count: int


class OneActivity(Told):
    """An activity."""

    activity: Activity


class ItemList(Told):
    """Some items, and how many there are in all."""

    items: Sequence[Item]
    count: int
    has_more: bool


class OneItem(Told):
    """A timeline item."""

    item: Item


class AiTaskList(Told):
    """Some pieces of work, and how many there are in all."""

    ai_tasks: Sequence[AiTask]
    count: int


class AiTaskStats(Told):
    """How the work goes, in numbers."""

    stats: AiStats


class OneAiTask(Told):
    """A piece of work."""

    ai_task: AiTask


class PerhapsAiTask(Told):
    """The piece of work that was taken, if there was one."""

    ai_task: AiTask | None


class CategoryList(Told):
    """Categories by name."""

    categories: Sequence[Category]


class OneCategory(Told):
    """A category."""

    category: Category


def _parts(task: Task) -> dict[str, Any]:
    """A task's values, those that apps write apart from the others."""
    values = {one.name: getattr(task, one.name) for one in fields(Task)}
    beside = {name: values[name] for name in TaskObject.model_fields if name in values}
    return {**beside, "content": TaskTold(**{name: values[name] for name in TaskTold.model_fields})}
