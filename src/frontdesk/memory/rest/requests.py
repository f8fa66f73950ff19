"""Defines the query parameters and bodies of the memory API, and whose records a request is about."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, cast

from fastapi import Query, Request, Security
from fastapi.security import SecurityScopes
from pydantic import BeforeValidator, Field

from frontdesk.identity import rights
from frontdesk.interfaces.rest.routing import CALLER_KEY, CREDENTIAL_SCHEME
from frontdesk.memory.model import ItemType, MemoryType, PersonScope, SearchMode, TaskRelation, TaskStatus
from frontdesk.memory.operations.activities import SearchActivities
from frontdesk.memory.operations.base import (
    MAX_TAGS,
    TAG_SEPARATOR,
    Dollars,
    IdText,
    JsonMetadata,
    LongText,
    MemoryRequest,
    Minutes,
    PagedRequest,
    Percent,
    ShortText,
    Tag,
    Tags,
    TimeText,
    ZoneName,
)
from frontdesk.memory.operations.memories import SearchMemories
from frontdesk.memory.operations.tasks import NewTaskContent, TaskContent, TaskFilterFields
from frontdesk.memory.operations.timeline import GetTimelineItems
from frontdesk.memory.operations.work_queue import Artifact, GetAiTasks, Logs

DEFAULT_LIMIT, MAX_LIMIT = 50, 1000
MAX_DEPTH = 10


def _split_words(value: object) -> object:
    """Split words at commas; a repeated parameter works too."""
    if not isinstance(value, list):
        return value
    parts = [str(one).split(TAG_SEPARATOR) for one in cast("list[object]", value)]
    return [word.strip() for part in parts for word in part if word.strip()]


WordList = Annotated[list[Tag], Field(max_length=MAX_TAGS), BeforeValidator(_split_words)]
ZoneParameter = Annotated[ZoneName | None, Query(alias="timezone")]


class ListQuery(PagedRequest):
    """Which part of a list, and the time zone of its days."""

    limit: int = Field(DEFAULT_LIMIT, ge=1, le=MAX_LIMIT, description="At most so many.")
    tags: WordList | None = Field(None, description="One of these at least, with commas between them.")
    timezone: ZoneName | None = None


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


class TaskTreeQuery(MemoryRequest, extra="ignore"):
    """How much of a tree, and in which form."""

    max_depth: int = Field(5, ge=1, le=MAX_DEPTH, description="How many levels under the task.")
    include_completed: bool = True
    format: Literal["flat", "tree"] = Field(
        "flat", description="One after another, each before its own, or each within its parent."
    )


class DayQuery(MemoryRequest, extra="ignore"):
    """The range of times."""

    from_: TimeText = Field(alias="from")
    to: TimeText
    timezone: ZoneName | None = None


class MemoryQuery(ListQuery, SearchMemories, extra="ignore"):
    """Which memories."""

    include_superseded: bool = False
    include_expired: bool = False


class ActivityQuery(ListQuery, SearchActivities, extra="ignore"):
    """Which activities."""

    def filter_fields(self) -> Mapping[str, Any]:
        """The given filter fields, by the names of the filter."""
        names = {"from_": "started_from", "to": "started_to"}
        return {names.get(name, name): value for name, value in self.provided().items()}


class ItemQuery(ListQuery, GetTimelineItems, extra="ignore"):
    """Which timeline items."""

    date_from: TimeText | None = None
    date_to: TimeText | None = None


class AiTaskQuery(GetAiTasks, extra="ignore"):
    """Which work of agents."""

    limit: int = Field(DEFAULT_LIMIT, ge=1, le=MAX_LIMIT, description="At most so many.")


class ItemSearchQuery(MemoryRequest, extra="ignore"):
    """A search in items."""

    q: Annotated[LongText, Field(min_length=1, max_length=2000, description="What it is about, in plain words.")]
    search_type: SearchMode = Field(SearchMode.HYBRID, description="By words, by meaning, or by both together.")
    date_from: TimeText | None = None
    date_to: TimeText | None = None
    timezone: ZoneName | None = None
    limit: int = Field(20, ge=1, le=100, description="At most so many.")


class MemorySearchQuery(ItemSearchQuery):
    """A search in memories."""

    memory_type: MemoryType | None = None
    is_highlight: bool | None = None
    tags: WordList | None = Field(None, description="One of these at least, with commas between them.")
    category_id: ShortText | None = Field(None, description="A category's id or name.")
    min_salience: float | None = Field(None, ge=0, le=1, allow_inf_nan=False)


class TimelineSearchQuery(ItemSearchQuery):
    """A search in all records."""

    include_types: Annotated[list[ItemType], BeforeValidator(_split_words)] | None = Field(
        None, max_length=5, description="Of these kinds alone, with commas between them."
    )
    context_depth: int = Field(2, ge=1, le=5, description="How much of what lies around each match to show.")


class InsightQuery(MemoryRequest, extra="ignore"):
    """The length of time to look at."""

    date_range: Literal["today", "week", "month", "quarter", "year"] = "week"
    timezone: ZoneName | None = None


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
        return {**self.content.provided(), **self.provided("type", "content")}


class NewSubtaskRequest(NewTaskRequest):
    """A new task under another."""

    parent_task_id: IdText


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


class ReorderSubtasksRequest(MemoryRequest):
    """The new order of a task's subtasks; those that are not named come last."""

    parent_task_id: IdText
    task_ids: list[IdText] = Field(min_length=1, max_length=1000)


class NewRelationRequest(MemoryRequest):
    """A relation to another task: it depends on it, is blocked by it, or is related to it."""

    task_id: IdText
    related_task_id: IdText
    relation: TaskRelation


class StartTimerRequest(MemoryRequest):
    """How to start a timer."""

    autoSwitch: bool = Field(default=False, description="Stop the one that runs.")  # noqa: N815 - the contract's name
    description: LongText | None = Field(default=None, description="What you are doing.")


class StopTimerRequest(MemoryRequest):
    """How to stop a timer."""

    overrideEndAt: TimeText | None = Field(default=None, description="As of then.")  # noqa: N815 - the contract's name


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


class PersonSettingsRequest(MemoryRequest):
    """The person's settings."""

    timezone: ZoneName = Field(min_length=1, examples=["Europe/Berlin"])


class EraseRequest(MemoryRequest):
    """The confirmation of the erasure."""

    confirm: Literal["erase"]


# The statistics are about these records.
STATS_SCOPES = [
    rights.TASKS_READ,
    rights.MEMORIES_READ,
    rights.ACTIVITIES_READ,
    rights.TASKS_TIME,
    rights.AI_TASKS_READ,
]


def _person_scope(
    needed: SecurityScopes, request: Request, _shown: Annotated[object, Security(CREDENTIAL_SCHEME)]
) -> PersonScope:
    """The scope of the request. Checked here before the body is read, and for OpenAPI; services check it again."""
    scope = PersonScope.for_caller(request.scope[CALLER_KEY])
    for right in needed.scopes:
        scope.require(right)
    return scope


AnyPerson = Annotated[PersonScope, Security(_person_scope)]
ManagesRecords = Annotated[PersonScope, Security(_person_scope, scopes=[rights.MEMORY_ADMIN])]
ReadsStats = Annotated[PersonScope, Security(_person_scope, scopes=STATS_SCOPES)]
ReadsTasks = Annotated[PersonScope, Security(_person_scope, scopes=[rights.TASKS_READ])]
WritesTasks = Annotated[PersonScope, Security(_person_scope, scopes=[rights.TASKS_WRITE])]
TracksTime = Annotated[PersonScope, Security(_person_scope, scopes=[rights.TASKS_TIME])]
ReadsMemories = Annotated[PersonScope, Security(_person_scope, scopes=[rights.MEMORIES_READ])]
WritesMemories = Annotated[PersonScope, Security(_person_scope, scopes=[rights.MEMORIES_WRITE])]
ReadsActivities = Annotated[PersonScope, Security(_person_scope, scopes=[rights.ACTIVITIES_READ])]
WritesActivities = Annotated[PersonScope, Security(_person_scope, scopes=[rights.ACTIVITIES_WRITE])]
ReadsTimeline = Annotated[PersonScope, Security(_person_scope, scopes=[rights.TIMELINE_READ])]
WritesTimeline = Annotated[PersonScope, Security(_person_scope, scopes=[rights.TIMELINE_WRITE])]
ReadsWork = Annotated[PersonScope, Security(_person_scope, scopes=[rights.AI_TASKS_READ])]
WritesWork = Annotated[PersonScope, Security(_person_scope, scopes=[rights.AI_TASKS_WRITE])]
ReadsCategories = Annotated[PersonScope, Security(_person_scope, scopes=[rights.CATEGORIES_READ])]
WritesCategories = Annotated[PersonScope, Security(_person_scope, scopes=[rights.CATEGORIES_WRITE])]
