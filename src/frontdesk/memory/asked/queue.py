"""What is asked about the agents' work queue."""

from typing import Annotated, Any, Literal

from pydantic import Field

from frontdesk.memory.asked.common import (
    Asked,
    Dollars,
    Id,
    Line,
    Metadata,
    Minutes,
    Order,
    Paged,
    Tags,
    Text,
    When,
)
from frontdesk.memory.model import AiMode, AiStatus, AiTaskType, Priority

AgentId = Annotated[str, Field(min_length=1, max_length=128)]
Logs = Annotated[list[Text], Field(max_length=1000)]


class Artifact(Asked):
    """Something that was made."""

    type: Line
    name: Line
    content: Any = None


class ExecutionResult(Asked):
    """What came of it."""

    output: Text | None = None
    artifacts: list[Artifact] | None = Field(None, max_length=100)
    logs: Logs | None = None
    metrics: Metadata | None = None


class GetAiTasks(Paged):
    """Which pieces of work."""

    agent_id: Line | None = None
    agent_name: Line | None = None
    status: AiStatus | None = None
    mode: AiMode | None = None
    task_type: AiTaskType | None = None
    sort_by: Literal["assigned_at", "due_at", "priority", "updated_at"] = "assigned_at"
    sort_order: Order = "desc"
    is_local_task: bool | None = None
    executor_workspace_id: Line | None = None


class Queued(Asked):
    """Whose."""

    agent_name: Line = Field(min_length=1, description="The agent's name or id.")


class AcceptAiTask(Asked):
    """Which, and what it will take."""

    id: Id
    estimated_cost_usd: Dollars | None = None
    estimated_duration_min: Minutes | None = None


class UpdateAiTask(Asked):
    """How it stands."""

    id: Id
    status: Literal["in_progress", "completed", "failed", "paused"] | None = None
    progress_message: Text | None = None
    error_message: Text | None = None
    execution_result: ExecutionResult | None = None
    actual_cost_usd: Dollars | None = None
    actual_duration_min: Minutes | None = None


class CompleteAiTask(Asked):
    """What came of it."""

    id: Id
    output: Text | None = None
    artifacts: list[Artifact] | None = Field(None, max_length=100)
    logs: Logs | None = None
    metrics: Metadata | None = None
    actual_cost_usd: Dollars | None = None
    actual_duration_min: Minutes | None = None


class FailAiTask(Asked):
    """Why not."""

    id: Id
    error_message: Text = Field(min_length=1)


class GuardrailFields(Asked):
    """How far an agent may go; the names are the contract's."""

    costCapUSD: Dollars | None = None  # noqa: N815
    timeCapMin: Minutes | None = None  # noqa: N815
    requiresHumanApproval: bool | None = None  # noqa: N815
    dataScopes: Tags | None = None  # noqa: N815


class AiTaskParts(Asked):
    """What can be said of a piece of work besides what it is."""

    agent_name: Annotated[str, Field(min_length=1, max_length=200)] | None = None
    deliverables: Text | None = None
    context: Text | None = None
    acceptance_criteria: Text | None = None
    dependencies: list[Id] | None = Field(None, max_length=100, description="AI tasks that must be completed first.")
    mode: AiMode | None = None
    guardrails: GuardrailFields | None = None
    metadata: Metadata | None = None
    status: AiStatus | None = None
    priority: Priority | None = None
    estimated_cost_usd: Dollars | None = None
    estimated_duration_min: Minutes | None = None
    is_local_task: bool | None = None
    executor_workspace_id: Annotated[str, Field(max_length=128)] | None = None
    due_at: When | None = None


class NewAiTaskContent(AiTaskParts):
    """A new piece of work as apps write it."""

    objective: Text = Field(min_length=1, examples=["Compare three hotels near the station"])
    task_type: AiTaskType
    task_id: Id = Field(description="The task that it belongs to.")
    agent_id: AgentId = Field(description="The agent that it is for; whoever calls is known by other means.")


class AiTaskContent(AiTaskParts):
    """What is to be different, as apps write it, and how it went; null takes a thing away."""

    objective: Text | None = Field(None, min_length=1, examples=["Compare three hotels near the station"])
    task_type: AiTaskType | None = None
    task_id: Id | None = None
    agent_id: AgentId | None = None
    progress_message: Text | None = None
    error_message: Text | None = None
    execution_result: ExecutionResult | None = None
    actual_cost_usd: Dollars | None = None
    actual_duration_min: Minutes | None = None
