"""Defines what can be asked about tasks, the time spent on them, and the work of agents."""

from typing import Annotated, Any, Literal

from pydantic import Field

from frontdesk.memory.model import (
    AiMode,
    AiStatus,
    AiTaskType,
    CompletionBehavior,
    Priority,
    ProgressCalculation,
    TaskStatus,
)
from frontdesk.memory.operations.base import (
    Dollars,
    IdText,
    JsonMetadata,
    LongText,
    MemoryRequest,
    Minutes,
    PagedRequest,
    Percent,
    ShortText,
    SortOrder,
    Tags,
    TimeText,
    ZoneName,
)

MAX_TITLE = 200


class TaskFields(MemoryRequest):
    """The fields of a task."""

    description: LongText | None = None
    status: TaskStatus | None = None
    priority: Priority | None = None
    category: ShortText | None = Field(None, description="A category's name or id.")
    due_date: TimeText | None = Field(None, description="When it is due: a day means its end.")
    estimated_duration: Minutes | None = Field(None, description="In minutes.")
    assignee: ShortText | None = Field(
        None, description="A person, or an agent's name or id: an agent is woken when it is due."
    )
    tags: Tags | None = None
    notes: LongText | None = None


class CreateTask(TaskFields):
    """A new task."""

    title: str = Field(min_length=1, max_length=MAX_TITLE)
    timezone: ZoneName | None = None


class UpdateTask(TaskFields):
    """Changes of a task."""

    id: IdText
    title: str | None = Field(None, min_length=1, max_length=MAX_TITLE)
    progress: Percent | None = None
    timezone: ZoneName | None = None


class TaskFilterFields(MemoryRequest):
    """Filters of tasks."""

    status: TaskStatus | None = None
    priority: Priority | None = None
    category: ShortText | None = Field(None, description="A category's name or id.")
    assignee: ShortText | None = None
    due_after: TimeText | None = None
    due_before: TimeText | None = None
    created_after: TimeText | None = None
    created_before: TimeText | None = None
    timezone: ZoneName | None = None
    updated_today: bool | None = None
    overdue: bool | None = None
    sort_order: SortOrder = "desc"


class SearchTasks(TaskFilterFields, PagedRequest):
    """Filters of tasks, with the words in them."""

    keyword: ShortText | None = Field(None, description="Words that occur in it.")
    tags: Tags | None = Field(None, description="All of these.")
    sort_by: Literal["created_at", "due_date", "priority", "updated_at", "title"] = "created_at"


class TodayRequest(MemoryRequest):
    """The time zone that decides which day is today."""

    timezone: ZoneName | None = None


class DateRequest(MemoryRequest):
    """A day and its time zone."""

    date: TimeText = Field(description="The day, as YYYY-MM-DD.")
    timezone: ZoneName | None = None


class TaskContentFields(TaskFields):
    """The other fields that apps write."""

    category_id: IdText | None = None
    progress: Percent | None = None
    parent_task_id: IdText | None = None
    subtask_order: int | None = Field(None, ge=0, le=1_000_000)
    completion_behavior: CompletionBehavior | None = None
    progress_calculation: ProgressCalculation | None = None
    completion_date: TimeText | None = None
    dependencies: list[IdText] | None = Field(None, max_length=100, description="Tasks that must be completed first.")


class NewTaskContent(TaskContentFields):
    """A new task as apps write it."""

    title: str = Field(min_length=1, max_length=MAX_TITLE, examples=["Book the train"])
    subtasks: list[IdText] | None = Field(None, max_length=100, description="Tasks that come under it.")


class TaskContent(TaskContentFields):
    """Changes of a task as apps write them; null removes a value."""

    title: str | None = Field(None, min_length=1, max_length=MAX_TITLE, examples=["Book the train"])


class GetDaySpending(MemoryRequest):
    """A day and its time zone."""

    date: TimeText = Field(description="The day, as YYYY-MM-DD.")
    timezone: ZoneName | None = None
    user_id: str | None = Field(None, max_length=200, description="You; nobody else's time can be asked for.")


class GetTaskTime(MemoryRequest):
    """A task and a range of time."""

    task_id: IdText
    start_date: TimeText | None = None
    end_date: TimeText | None = None


class StartTaskTimer(MemoryRequest):
    """The task to start a timer for."""

    task_id: IdText
    description: LongText | None = Field(None, description="What you are doing.")


class StopTaskTimer(MemoryRequest):
    """The task whose timer to stop."""

    task_id: IdText


class NewEntryContent(MemoryRequest):
    """A time entry as apps write it."""

    start_at: TimeText
    end_at: TimeText
    note: LongText | None = None


class EntryContent(MemoryRequest):
    """Changes of a time entry as apps write them; an end stops a running timer."""

    start_at: TimeText | None = None
    end_at: TimeText | None = None
    note: LongText | None = None


AgentId = Annotated[str, Field(min_length=1, max_length=128)]
Logs = Annotated[list[LongText], Field(max_length=1000)]


class Artifact(MemoryRequest):
    """A result of the work."""

    type: ShortText
    name: ShortText
    content: Any = None


class ExecutionResult(MemoryRequest):
    """The end of a piece of work."""

    output: LongText | None = None
    artifacts: list[Artifact] | None = Field(None, max_length=100)
    logs: Logs | None = None
    metrics: JsonMetadata | None = None


class GetAiTasks(PagedRequest):
    """Filters of pieces of work."""

    agent_id: ShortText | None = None
    agent_name: ShortText | None = None
    status: AiStatus | None = None
    mode: AiMode | None = None
    task_type: AiTaskType | None = None
    sort_by: Literal["assigned_at", "due_at", "priority", "updated_at"] = "assigned_at"
    sort_order: SortOrder = "desc"
    is_local_task: bool | None = None
    executor_workspace_id: ShortText | None = None


class GetQueuedTasks(MemoryRequest):
    """The agent."""

    agent_name: ShortText = Field(min_length=1, description="The agent's name or id.")


class AcceptAiTask(MemoryRequest):
    """A piece of work, with an estimate of cost and time."""

    id: IdText
    estimated_cost_usd: Dollars | None = None
    estimated_duration_min: Minutes | None = None


class UpdateAiTask(MemoryRequest):
    """The progress of a piece of work."""

    id: IdText
    status: Literal["in_progress", "completed", "failed", "paused"] | None = None
    progress_message: LongText | None = None
    error_message: LongText | None = None
    execution_result: ExecutionResult | None = None
    actual_cost_usd: Dollars | None = None
    actual_duration_min: Minutes | None = None


class CompleteAiTask(MemoryRequest):
    """The result of a piece of work."""

    id: IdText
    output: LongText | None = None
    artifacts: list[Artifact] | None = Field(None, max_length=100)
    logs: Logs | None = None
    metrics: JsonMetadata | None = None
    actual_cost_usd: Dollars | None = None
    actual_duration_min: Minutes | None = None


class FailAiTask(MemoryRequest):
    """Why a piece of work failed."""

    id: IdText
    error_message: LongText = Field(min_length=1)


class GuardrailFields(MemoryRequest):
    """The limits of an agent; the names are those of the contract."""

    costCapUSD: Dollars | None = None  # noqa: N815
    timeCapMin: Minutes | None = None  # noqa: N815
    requiresHumanApproval: bool | None = None  # noqa: N815
    dataScopes: Tags | None = None  # noqa: N815


class AiTaskContentFields(MemoryRequest):
    """The other fields of a piece of work."""

    agent_name: Annotated[str, Field(min_length=1, max_length=200)] | None = None
    deliverables: LongText | None = None
    context: LongText | None = None
    acceptance_criteria: LongText | None = None
    dependencies: list[IdText] | None = Field(
        None, max_length=100, description="AI tasks that must be completed first."
    )
    mode: AiMode | None = None
    guardrails: GuardrailFields | None = None
    metadata: JsonMetadata | None = None
    status: AiStatus | None = None
    priority: Priority | None = None
    estimated_cost_usd: Dollars | None = None
    estimated_duration_min: Minutes | None = None
    is_local_task: bool | None = None
    executor_workspace_id: Annotated[str, Field(max_length=128)] | None = None
    due_at: TimeText | None = None


class NewAiTaskContent(AiTaskContentFields):
    """A new piece of work as apps write it."""

    objective: LongText = Field(min_length=1, examples=["Compare three hotels near the station"])
    task_type: AiTaskType
    task_id: IdText = Field(description="The task that it belongs to.")
    agent_id: AgentId = Field(description="The agent that it is for; the caller is known by other means.")


class AiTaskContent(AiTaskContentFields):
    """Changes of a piece of work and its results as apps write them; null removes a value."""

    objective: LongText | None = Field(None, min_length=1, examples=["Compare three hotels near the station"])
    task_type: AiTaskType | None = None
    task_id: IdText | None = None
    agent_id: AgentId | None = None
    progress_message: LongText | None = None
    error_message: LongText | None = None
    execution_result: ExecutionResult | None = None
    actual_cost_usd: Dollars | None = None
    actual_duration_min: Minutes | None = None
