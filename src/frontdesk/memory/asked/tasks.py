"""What is asked about tasks."""

from typing import Literal

from pydantic import Field

from frontdesk.memory.asked.common import (
    Asked,
    Id,
    Line,
    Minutes,
    Order,
    Paged,
    Percent,
    Tags,
    Text,
    When,
    Zone,
)
from frontdesk.memory.model import Completion, Priority, ProgressBy, TaskStatus

TITLE = 200


class TaskFields(Asked):
    """What can be said of a task."""

    description: Text | None = None
    status: TaskStatus | None = None
    priority: Priority | None = None
    category: Line | None = Field(None, description="A category's name or id.")
    due_date: When | None = Field(None, description="When it is due: a day means its end.")
    estimated_duration: Minutes | None = Field(None, description="In minutes.")
    assignee: Line | None = Field(
        None, description="A person, or an agent's name or id: an agent is woken when it is due."
    )
    tags: Tags | None = None
    notes: Text | None = None


class CreateTask(TaskFields):
    """A new task."""

    title: str = Field(min_length=1, max_length=TITLE)
    timezone: Zone | None = None


class UpdateTask(TaskFields):
    """What is to be different."""

    id: Id
    title: str | None = Field(None, min_length=1, max_length=TITLE)
    progress: Percent | None = None
    timezone: Zone | None = None


class TaskFilter(Asked):
    """Which tasks."""

    status: TaskStatus | None = None
    priority: Priority | None = None
    category: Line | None = Field(None, description="A category's name or id.")
    assignee: Line | None = None
    due_after: When | None = None
    due_before: When | None = None
    created_after: When | None = None
    created_before: When | None = None
    timezone: Zone | None = None
    updated_today: bool | None = None
    overdue: bool | None = None
    sort_order: Order = "desc"


class SearchTasks(TaskFilter, Paged):
    """Which tasks, by what occurs in them too."""

    keyword: Line | None = Field(None, description="Words that occur in it.")
    tags: Tags | None = Field(None, description="All of these.")
    sort_by: Literal["created_at", "due_date", "priority", "updated_at", "title"] = "created_at"


class Today(Asked):
    """Where it is today."""

    timezone: Zone | None = None


class OnDate(Asked):
    """Which day, and where."""

    date: When = Field(description="The day, as YYYY-MM-DD.")
    timezone: Zone | None = None


class TaskParts(TaskFields):
    """What apps say of a task besides."""

    category_id: Id | None = None
    progress: Percent | None = None
    parent_task_id: Id | None = None
    subtask_order: int | None = Field(None, ge=0, le=1_000_000)
    completion_behavior: Completion | None = None
    progress_calculation: ProgressBy | None = None
    completion_date: When | None = None
    dependencies: list[Id] | None = Field(None, max_length=100, description="Tasks that must be completed first.")


class NewTaskContent(TaskParts):
    """A new task as apps write it."""

    title: str = Field(min_length=1, max_length=TITLE, examples=["Book the train"])
    subtasks: list[Id] | None = Field(None, max_length=100, description="Tasks that come under it.")


class TaskContent(TaskParts):
    """What is to be different, as apps write it; null takes a thing away."""

    title: str | None = Field(None, min_length=1, max_length=TITLE, examples=["Book the train"])
