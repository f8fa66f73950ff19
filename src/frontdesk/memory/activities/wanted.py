"""Which activities are wanted, and what is told of all of them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from frontdesk.memory.model import ActivityStatus, ActivityType, Intensity


class ActivitySort(StrEnum):
    """By what activities are put in order."""

    STARTED_AT = "started_at"
    SATISFACTION_LEVEL = "satisfaction_level"
    MOOD_AFTER = "mood_after"
    TITLE = "title"
    CREATED_AT = "created_at"


@dataclass(frozen=True, slots=True, kw_only=True)
class ActivityWanted:
    """Begun from `started_from` to `started_to`, as people write times, in `timezone`."""

    activity_type: ActivityType | None = None
    status: ActivityStatus | None = None
    intensity_level: Intensity | None = None
    min_satisfaction: int | None = None
    min_mood_after: int | None = None
    location: str | None = None
    started_from: str | None = None
    started_to: str | None = None
    search: str | None = None
    tags: Sequence[str] = ()
    every_tag: bool = False
    category_id: str | None = None
    sort_by: str = ActivitySort.STARTED_AT
    sort_order: str = "desc"
    limit: int = 50
    offset: int = 0
    timezone: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ActivityStats:
    """Changes are from before to after, of those activities that tell both; `by_type` has the most frequent first."""

    total: int
    by_type: Mapping[str, int]
    by_status: Mapping[str, int]
    minutes_by_type: Mapping[str, int]
    total_minutes: int
    average_satisfaction: float | None
    average_mood_change: float | None
    average_energy_change: float | None
    this_week: int
    this_month: int
