"""How a person's tasks stand, in numbers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from frontdesk.memory.model import Priority, Task, TaskStatus
from frontdesk.memory.moments import Span, span_of, today

UNCATEGORIZED = "uncategorized"
DAY_SECONDS = 86_400


@dataclass(frozen=True, slots=True)
class TaskStats:
    """Due and overdue are open tasks alone. `completion_rate` is in percent, `average_completion_time` in days."""

    total: int
    by_status: Mapping[str, int]
    by_priority: Mapping[str, int]
    by_category: Mapping[str, int]
    overdue: int
    due_today: int
    due_this_week: int
    completion_rate: float
    average_completion_time: float


@dataclass(frozen=True, slots=True)
class TasksUpdated:
    """The latest of those that were changed within a span, and how many there are in all."""

    tasks: Sequence[Task]
    total: int
    span: Span


@dataclass(frozen=True, slots=True)
class Alike:
    """How many tasks there are of the same status, priority and category."""

    status: TaskStatus
    priority: Priority
    category_id: str | None
    count: int


@dataclass(frozen=True, slots=True)
class Due:
    """How many open tasks are overdue, due today, and due this week."""

    overdue: int
    today: int
    this_week: int


def stats(alike: Sequence[Alike], due: Due, names: Mapping[str, str], seconds: float | None) -> TaskStats:
    """`names` are those of categories by id, `seconds` how long a completed task took on average."""
    total = sum(one.count for one in alike)
    by_status = dict.fromkeys((str(one) for one in TaskStatus), 0)
    by_priority = dict.fromkeys((str(one) for one in Priority), 0)
    by_category: dict[str, int] = {}
    for one in alike:
        category = names.get(one.category_id or "", UNCATEGORIZED)
        by_status[one.status] += one.count
        by_priority[one.priority] += one.count
        by_category[category] = by_category.get(category, 0) + one.count
    rate = 100 * by_status[TaskStatus.COMPLETED] / total if total else 0.0
    days = round(max(seconds or 0.0, 0.0) / DAY_SECONDS, 2)
    return TaskStats(
        total, by_status, by_priority, by_category, due.overdue, due.today, due.this_week, round(rate, 1), days
    )


def days_of(now: datetime, zone: ZoneInfo) -> tuple[Span, Span]:
    """Today and this week, from Monday on, in that zone."""
    this_day = today(now, zone)
    monday = this_day - timedelta(days=this_day.weekday())
    return span_of(this_day, zone), span_of(monday, zone, 7)
