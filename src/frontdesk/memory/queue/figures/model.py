"""What can be said about all the work of one person's agents."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class AiStats:
    """`success_rate` is what percentage was completed of what was completed or failed, 0 where nothing was.

    `overdue` is what is open past its time; `average_duration_min` is of what was completed.
    """

    total: int = 0
    by_status: Mapping[str, int]
    by_mode: Mapping[str, int]
    by_type: Mapping[str, int]
    by_agent: Mapping[str, int]
    success_rate: float = 0.0
    average_duration_min: float | None = None
    total_cost_usd: float = 0.0
    overdue: int = 0
