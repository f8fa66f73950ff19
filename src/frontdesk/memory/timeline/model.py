"""What is found out about a stretch of somebody's time, and what it is found out from."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from enum import StrEnum
from zoneinfo import ZoneInfo

from frontdesk.memory.model import ItemType, TaskStatus
from frontdesk.memory.moments import Span


class DateRange(StrEnum):
    """How far back to look, today included."""

    TODAY = "today"
    WEEK = "week"
    MONTH = "month"
    QUARTER = "quarter"
    YEAR = "year"


@dataclass(frozen=True, slots=True)
class Stretch:
    """Whole days where the person is, and as many before them."""

    days: int
    first: date
    span: Span
    before: Span
    zone: ZoneInfo


@dataclass(frozen=True, slots=True)
class Thing:
    """Something that was put down, or done: when, and its tags."""

    type: ItemType
    at: datetime
    tags: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class TaskFact:
    """When a task was made, due and completed."""

    status: TaskStatus
    created_at: datetime
    due_date: datetime | None = None
    completed_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Tracked:
    """Time that was spent, under a category or none; without an end it is still being spent."""

    start: datetime
    end: datetime | None
    category: str | None = None


@dataclass(frozen=True, slots=True)
class Feeling:
    """What an activity did to somebody, or how a memory feels, and where it was."""

    mood_change: int | None = None
    energy_change: int | None = None
    valence: int | None = None
    place: str | None = None


@dataclass(frozen=True, slots=True)
class Facts:
    """Everything that is known of the stretch; tasks also of the days before it."""

    stretch: Stretch
    now: datetime
    things: Sequence[Thing] = ()
    tasks: Sequence[TaskFact] = ()
    tracked: Sequence[Tracked] = ()
    feelings: Sequence[Feeling] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskFigures:
    """Rates are percentages of the tasks that were made, due or completed in those days; None where there were none.

    `overdue` are those that fell due in these days and are still open.
    """

    created: int = 0
    completed: int = 0
    overdue: int = 0
    completion_rate: float | None = None
    completed_before: int = 0
    completion_rate_before: float | None = None


@dataclass(frozen=True, slots=True)
class BusiestDay:
    """On which most time was tracked."""

    date: date
    minutes: int


@dataclass(frozen=True, slots=True)
class BusiestHour:
    """The hour of the day, from 0 to 23, in which most time was tracked."""

    hour: int
    minutes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Insights:
    """What the numbers say; `sentences` says it in words, and nothing else."""

    date_range: DateRange
    timezone: str
    first_day: date
    last_day: date
    total: int
    counts: Mapping[str, int]
    tasks: TaskFigures
    tracked_minutes: int
    minutes_by_category: Mapping[str, int]
    busiest_day: BusiestDay | None
    busiest_hour: BusiestHour | None
    average_mood_change: float | None
    average_energy_change: float | None
    average_valence: float | None
    tone: str | None
    tags: Mapping[str, int]
    places: Mapping[str, int]
    active_days: int
    longest_streak: int
    sentences: Sequence[str] = ()
