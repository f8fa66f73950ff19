"""Which pieces of work are asked for."""

from dataclasses import dataclass
from typing import Literal

from frontdesk.memory.model import AiMode, AiStatus, AiTaskType


@dataclass(frozen=True, slots=True, kw_only=True)
class AiWanted:
    """All of them, but for what is said here. `agent_name` is the agent's name or id, whatever its case."""

    agent_id: str | None = None
    agent_name: str | None = None
    status: AiStatus | None = None
    mode: AiMode | None = None
    task_type: AiTaskType | None = None
    is_local_task: bool | None = None
    executor_workspace_id: str | None = None
    sort_by: Literal["assigned_at", "due_at", "priority", "updated_at"] = "assigned_at"
    sort_order: Literal["asc", "desc"] = "desc"
    limit: int = 20
    offset: int = 0
