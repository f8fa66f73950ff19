"""Defines the query parameters and bodies of the memory API for tasks, time and the agents' work queue."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field

from frontdesk.memory.model import TaskRelation, TaskStatus
from frontdesk.memory.operations.base import (
    Dollars,
    IdText,
    JsonMetadata,
    ListQuery,
    LongText,
    MemoryRequest,
    Minutes,
    Percent,
    ShortText,
    Tags,
    TimeText,
    ZoneName,
)
from frontdesk.memory.operations.task_requests import (
    Artifact,
    EntryContent,
    GetAiTasks,
    Logs,
    NewAiTaskContent,
    NewEntryContent,
    NewTaskContent,
    TaskContent,
    TaskFilterFields,
)

DEFAULT_LIMIT, MAX_LIMIT = 50, 1000
MAX_DEPTH = 10


class TaskQuery(ListQuery, TaskFilterFields, extra="ignore"):
    """Which tasks."""

    search: ShortText | None = Field(None, description="Words that occur in it.")
    updated_after: TimeText | None = None
    updated_before: TimeText | None = None
    parent_task_id: IdText | None = None
    root_tasks_only: bool = False
    hierarchy_level: int | None = Field(None, ge=0, le=MAX_DEPTH)
    include_subtasks: bool = True
    sort_by: Literal[
        "created_at", "updated_at", "due_date", "priority", "title", "hierarchy_level", "subtask_order"
    ] = "created_at"


class CreatedBetween(MemoryRequest, extra="ignore"):
    """Only records created between these dates."""

    from_date: TimeText | None = None
    to_date: TimeText | None = None
    timezone: ZoneName | None = None


class ChangedBetween(MemoryRequest, extra="ignore"):
    """Only records changed between these dates; today, if neither is given."""

    start_date: TimeText | None = None
    end_date: TimeText | None = None
    timezone: ZoneName | None = None


class TaskIdRequest(MemoryRequest):
    """The id of a task."""

    task_id: str


class TaskTreeRequest(TaskIdRequest):
    """How much of a task's tree, and in which form."""

    max_depth: int = Field(5, ge=1, le=MAX_DEPTH, description="How many levels under the task.")
    include_completed: bool = True
    format: Literal["flat", "tree"] = Field(
        "flat", description="One after another, each before its own, or each within its parent."
    )


class ListSubtasksRequest(MemoryRequest):
    """The task whose subtasks to list."""

    parent_task_id: IdText


class ListRelationsRequest(MemoryRequest):
    """The task whose relations to list; all, if it is left out."""

    task_id: IdText | None = None


class ListEntriesRequest(MemoryRequest, populate_by_name=True):
    """The range of times."""

    from_: TimeText = Field(alias="from")
    to: TimeText
    timezone: ZoneName | None = None


class AiTaskQuery(GetAiTasks, extra="ignore"):
    """Which work of agents."""

    limit: int = Field(DEFAULT_LIMIT, ge=1, le=MAX_LIMIT, description="At most so many.")


LeaseSeconds = Annotated[
    int, Field(ge=1, le=86_400, description="For how long whoever takes it may be silent; a quarter of an hour else.")
]
Claims = Annotated[int, Field(ge=0, le=1_000_000_000, description="What `claims` was when it was taken.")]


class NewTaskRequest(MemoryRequest):
    """A new task."""

    type: Literal["task"] = "task"
    content: NewTaskContent
    tags: Tags | None = None
    metadata: JsonMetadata | None = None

    def fields(self) -> Mapping[str, Any]:
        return {**self.content.provided(), **self.provided("type", "content", "timezone")}


class NewSubtaskRequest(NewTaskRequest):
    """A new task under another."""

    parent_task_id: IdText


class CreateSubtaskRequest(NewSubtaskRequest):
    """A new task under another, and the time zone of its times."""

    timezone: ZoneName | None = None


class ChangeTaskRequest(MemoryRequest):
    """The changes of a task; fields that are left out stay, and null clears a field."""

    type: Literal["task"] = "task"
    content: TaskContent | None = None
    tags: Tags | None = None
    metadata: JsonMetadata | None = None

    def fields(self) -> Mapping[str, Any]:
        content: Mapping[str, Any] = self.content.changes() if self.content else {}
        return {**content, **self.changes("type", "content")}


class SetTaskStatusRequest(MemoryRequest):
    """The new status of a task."""

    status: TaskStatus
    notes: LongText | None = Field(None, description="Goes after the description.")
    progress: Percent | None = None


class SetStatusOfTaskRequest(SetTaskStatusRequest, TaskIdRequest):
    """The new status of this task."""


class ReorderSubtasksRequest(MemoryRequest):
    """The new order of a task's subtasks; those that are not named come last."""

    parent_task_id: IdText
    task_ids: list[IdText] = Field(min_length=1, max_length=1000)


class NewRelationRequest(MemoryRequest):
    """A relation to another task: it depends on it, is blocked by it, or is related to it."""

    task_id: IdText
    related_task_id: IdText
    relation: TaskRelation


class RelationIdRequest(MemoryRequest):
    """The id of a relation."""

    relation_id: str


class StartTimerRequest(MemoryRequest):
    """How to start a timer."""

    autoSwitch: bool = Field(default=False, description="Stop the one that runs.")  # noqa: N815 - the contract's name
    description: LongText | None = Field(default=None, description="What you are doing.")


class StopTimerRequest(MemoryRequest):
    """How to stop a timer."""

    overrideEndAt: TimeText | None = Field(default=None, description="As of then.")  # noqa: N815 - the contract's name


class ItemEntriesRequest(ChangedBetween):
    """The time entries of one item; between these dates, if they are given."""

    item_id: str


class AddEntryRequest(NewEntryContent):
    """A new time entry of an item."""

    item_id: str
    timezone: ZoneName | None = None


class EntryIdRequest(MemoryRequest):
    """The id of a time entry."""

    entry_id: str


class ChangeEntryRequest(EntryContent, EntryIdRequest):
    """Changes of this time entry."""

    timezone: ZoneName | None = None


class CreateAiTaskRequest(NewAiTaskContent):
    """A new piece of work, and the time zone of its times."""

    timezone: ZoneName | None = None


class AiTaskIdRequest(MemoryRequest):
    """The id of a piece of work."""

    ai_task_id: str


class ClaimWorkRequest(MemoryRequest):
    """The agent that takes the next piece of work."""

    agent_name: ShortText | None = Field(
        default=None, min_length=1, description="The agent's name or id; not needed where the caller is that agent."
    )
    lease_seconds: LeaseSeconds | None = None


class AcceptWorkRequest(MemoryRequest):
    """The estimate for accepted work."""

    estimated_cost_usd: Dollars | None = None
    estimated_duration_min: Minutes | None = None
    agent_name: ShortText | None = Field(default=None, min_length=1, description="Who takes it, where no agent calls.")
    lease_seconds: LeaseSeconds | None = None


class RenewLeaseRequest(MemoryRequest):
    """A longer lease for the work."""

    claims: Claims
    lease_seconds: LeaseSeconds | None = None


class RenewAiTaskRequest(RenewLeaseRequest, AiTaskIdRequest):
    """A longer lease for this work."""


class CompleteWorkRequest(MemoryRequest):
    """The result of the work."""

    output: LongText | None = None
    artifacts: list[Artifact] | None = Field(default=None, max_length=100)
    logs: Logs | None = None
    metrics: JsonMetadata | None = None
    actual_cost_usd: Dollars | None = None
    actual_duration_min: Minutes | None = None
    claims: Claims | None = None


class FailWorkRequest(MemoryRequest):
    """The reason for the failure."""

    error_message: LongText = Field(min_length=1)
    claims: Claims | None = None
