"""Which tasks are wanted, and in which order."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal
from zoneinfo import ZoneInfo

from frontdesk.errors import Invalid
from frontdesk.memory import checks
from frontdesk.memory.model import Priority, TaskStatus
from frontdesk.memory.moments import EARLIEST, LATEST, Edge, Span, moment, span_of, today, until

LONGEST_SEARCH = 300
SortBy = Literal["created_at", "updated_at", "due_date", "priority", "title", "hierarchy_level", "subtask_order"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskWanted:
    """All that is said must hold. Times are texts; a mere day counts whole, in `timezone` or the person's own zone.

    `category` is a name or an id. Of `tags` a task has every one, or one at least. Each word of `search` occurs in it.
    Without `include_subtasks` there are only tasks that stand by themselves, unless a parent or a level is named.
    """

    status: TaskStatus | None = None
    priority: Priority | None = None
    category: str | None = None
    assignee: str | None = None
    search: str | None = None
    tags: Sequence[str] = ()
    every_tag: bool = False
    due_after: str | None = None
    due_before: str | None = None
    created_after: str | None = None
    created_before: str | None = None
    updated_after: str | None = None
    updated_before: str | None = None
    timezone: str | None = None
    parent_task_id: str | None = None
    root_tasks_only: bool = False
    hierarchy_level: int | None = None
    include_subtasks: bool = True
    overdue: bool = False
    updated_today: bool = False
    sort_by: SortBy = "created_at"
    sort_order: Literal["asc", "desc"] = "desc"
    limit: int = 50
    offset: int = 0

    def check(self) -> None:
        checks.one_page(self.limit, self.offset)
        checks.short(self, "search", LONGEST_SEARCH)
        checks.within(self, "hierarchy_level", 0, 100)

    @property
    def roots_only(self) -> bool:
        named = self.parent_task_id is not None or self.hierarchy_level is not None
        return self.root_tasks_only or not (self.include_subtasks or named)


@dataclass(frozen=True, slots=True)
class Bounds:
    """From a moment on, and up to the last that counts; None where there is no bound."""

    since: datetime | None
    until: datetime | None


def bounds(wanted: TaskWanted, name: str, zone: ZoneInfo) -> Bounds:
    """On what is `name`: due, created or updated."""
    after, before = f"{name}_after", f"{name}_before"
    since, until = getattr(wanted, after), getattr(wanted, before)
    return Bounds(
        moment(since, zone, after) if since else None,
        moment(until, zone, before, Edge.END) if until else None,
    )


def made_within(start: str | None, end: str | None, zone: ZoneInfo) -> Span | None:
    """From one day or moment to another, either of which may be left out; None without both."""
    if not start and not end:
        return None
    first = moment(start, zone, "from_date") if start else EARLIEST
    last = until(end, zone, "to_date") if end else LATEST
    if first >= last:
        raise Invalid("from_date must lie before to_date")
    return Span(first, last)


def stretch(start: str | None, end: str | None, zone: ZoneInfo, now: datetime) -> Span:
    """From one to the other, each a day or a moment: today where neither is said, and up to today without an end.

    An end alone means the day on which it is.
    """
    last_day = today(moment(end, zone, "end_date", Edge.END) if end else now, zone)
    last = until(end, zone, "end_date") if end else span_of(last_day, zone).end
    first = moment(start, zone, "start_date") if start else span_of(last_day, zone).start
    if first >= last:
        raise Invalid("start_date must lie before end_date, which is the end of today where it is left out")
    return Span(first, last)
