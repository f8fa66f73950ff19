"""What can be said about all the work of one person's agents."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class AiStats:
    """The names are those that clients of zmemory read; some read a figure by one name and some by another.

    `active` is what is still to be done; `success_rate` is what share of what was completed or failed was completed,
    from 0 to 1. `overdue` is what is open past its time; averages are of what was completed. A day is the person's own.
    """

    total: int = 0
    active: int = 0
    completed: int = 0
    failed: int = 0
    overdue: int = 0
    pending_for_agent: int = 0
    in_progress: int = 0
    completed_today: int = 0
    failed_today: int = 0
    by_status: Mapping[str, int]
    by_mode: Mapping[str, int]
    by_type: Mapping[str, int]
    by_task_type: Mapping[str, int]
    by_agent: Mapping[str, int]
    success_rate: float = 0.0
    avg_duration_min: float | None = None
    avg_completion_time: float = 0.0
    avg_cost_usd: float | None = None
    total_cost_usd: float = 0.0
    total_cost_today: float = 0.0
