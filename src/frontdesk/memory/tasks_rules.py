"""Decides, without I/O, how tasks may be nested, completed and linked, and defines their filters and statistics."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import Enum
from typing import Literal
from zoneinfo import ZoneInfo

from frontdesk.errors import Conflict, Invalid
from frontdesk.memory.model import (
    CompletionBehavior,
    ItemStatus,
    Priority,
    ProgressCalculation,
    Task,
    TaskRelation,
    TaskStatus,
)
from frontdesk.memory.times import EARLIEST, LATEST, DayEdge, TimeSpan, parse_end, parse_time, span_of_days, today_in
from frontdesk.memory.validation import check_length, check_page, check_range
from frontdesk.text import list_first, one_line

MAX_SEARCH = 300
TaskSort = Literal["created_at", "updated_at", "due_date", "priority", "title", "hierarchy_level", "subtask_order"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskFilter:
    """A filter of tasks; all its conditions must hold.

    Times are texts; a date without a time means the whole day, in `timezone` or the person's own zone. `category` is a
    name or an id. A task has all `tags`, or at least one. Each word of `search` occurs in the task. Without
    `include_subtasks`, only tasks without a parent are listed, unless the filter names a parent or a level.
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
    sort_by: TaskSort = "created_at"
    sort_order: Literal["asc", "desc"] = "desc"
    limit: int = 50
    offset: int = 0

    def check(self) -> None:
        check_page(self.limit, self.offset)
        check_length(self, "search", MAX_SEARCH)
        check_range(self, "hierarchy_level", 0, 100)

    @property
    def roots_only(self) -> bool:
        named = self.parent_task_id is not None or self.hierarchy_level is not None
        return self.root_tasks_only or not (self.include_subtasks or named)


@dataclass(frozen=True, slots=True)
class TimeBounds:
    """The first and the last moment that count; None means no bound."""

    since: datetime | None
    until: datetime | None


def parse_bounds(filters: TaskFilter, name: str, zone: ZoneInfo) -> TimeBounds:
    """The bounds on `name`: due, created or updated."""
    after, before = f"{name}_after", f"{name}_before"
    since, until = getattr(filters, after), getattr(filters, before)
    return TimeBounds(
        parse_time(since, zone, after) if since else None,
        parse_time(until, zone, before, DayEdge.END) if until else None,
    )


def parse_created_span(start: str | None, end: str | None, zone: ZoneInfo) -> TimeSpan | None:
    """The span between two days or moments; either may be missing. None if both are."""
    if not start and not end:
        return None
    first = parse_time(start, zone, "from_date") if start else EARLIEST
    last = parse_end(end, zone, "to_date") if end else LATEST
    if first >= last:
        raise Invalid("from_date must lie before to_date")
    return TimeSpan(first, last)


def parse_span(start: str | None, end: str | None, zone: ZoneInfo, now: datetime) -> TimeSpan:
    """The span between two days or moments: today if both are missing, and until the end of today without an end.

    Without a start, the span is the day of the end.
    """
    last_day = today_in(parse_time(end, zone, "end_date", DayEdge.END) if end else now, zone)
    last = parse_end(end, zone, "end_date") if end else span_of_days(last_day, zone).end
    first = parse_time(start, zone, "start_date") if start else span_of_days(last_day, zone).start
    if first >= last:
        raise Invalid("start_date must lie before end_date, which is the end of today where it is left out")
    return TimeSpan(first, last)


MAX_LEVELS = 10
FULL_PROGRESS = 100
MAX_NAMED = 5
PATH_SEPARATOR = "/"
OPEN_STATUSES = frozenset({TaskStatus.PENDING, TaskStatus.IN_PROGRESS, TaskStatus.ON_HOLD})
# The relations to tasks that must be closed before the task that has them is completed.
WAITING_RELATIONS = frozenset({TaskRelation.DEPENDENCY, TaskRelation.BLOCKED_BY})
ITEM_STATUSES = {
    TaskStatus.PENDING: ItemStatus.ACTIVE,
    TaskStatus.IN_PROGRESS: ItemStatus.ACTIVE,
    TaskStatus.ON_HOLD: ItemStatus.INACTIVE,
    TaskStatus.COMPLETED: ItemStatus.COMPLETED,
    TaskStatus.CANCELLED: ItemStatus.CANCELLED,
}


@dataclass(frozen=True, slots=True)
class NamedTask:
    """A task's id and title."""

    id: str
    title: str


def is_open(task: Task) -> bool:
    return task.status in OPEN_STATUSES


def place_in_tree(task: Task, parent: Task | None, height: int = 0) -> Task:
    """The task under that parent, or without one; `height` is the number of subtask levels that move with it."""
    level = 0 if parent is None else parent.hierarchy_level + 1
    if parent is not None and task.id in parent.hierarchy_path.split(PATH_SEPARATOR):
        raise Conflict("A task cannot stand under itself or under one of its own subtasks; choose another parent")
    if level + height >= MAX_LEVELS:
        raise Conflict(f"Tasks go {MAX_LEVELS} levels deep, and this would be deeper; put it under one further up")
    path = task.id if parent is None else f"{parent.hierarchy_path}{PATH_SEPARATOR}{task.id}"
    parent_id = None if parent is None else parent.id
    return replace(task, parent_task_id=parent_id, hierarchy_level=level, hierarchy_path=path)


def move_subtree(below: Iterable[Task], before: Task, after: Task) -> Sequence[Task]:
    """The tasks of a moved subtree with their new positions."""
    deeper = after.hierarchy_level - before.hierarchy_level
    return [
        replace(
            one,
            hierarchy_level=one.hierarchy_level + deeper,
            hierarchy_path=after.hierarchy_path + one.hierarchy_path.removeprefix(before.hierarchy_path),
        )
        for one in below
    ]


def apply_status(task: Task, now: datetime) -> Task:
    """Set what the status implies: a completed task has full progress and a completion time, others have no time."""
    if task.status is TaskStatus.COMPLETED:
        return replace(task, progress=FULL_PROGRESS, completion_date=task.completion_date or now)
    return replace(task, completion_date=None)


def check_unblocked(task: Task, open_ones: Sequence[NamedTask]) -> None:
    """Raise `Conflict` if open tasks block the completion of this one."""
    if open_ones:
        names = list_first([f"'{one_line(one.title, 60)}' ({one.id})" for one in open_ones], MAX_NAMED)
        raise Conflict(
            f"'{one_line(task.title, 60)}' cannot be completed yet, since it waits for {names}; complete or cancel "
            "these first, or take the dependency away"
        )


def check_no_loop(waits_for: Mapping[str, Sequence[str]], task_id: str, others: Iterable[str]) -> None:
    """Raise an error if a task would wait for itself, directly or through others."""
    seen: set[str] = set()
    ahead = list(others)
    while ahead:
        one = ahead.pop()
        if one == task_id:
            raise Conflict("A task cannot wait for itself, and this one would, by way of what it depends on")
        if one not in seen:
            seen.add(one)
            ahead.extend(waits_for.get(one, ()))


def in_tree_order(root: Task, below: Iterable[Task]) -> Sequence[Task]:
    """A task, then each subtask followed by its own subtasks; `below` has siblings in their order."""
    under: dict[str | None, list[Task]] = {}
    for one in below:
        under.setdefault(one.parent_task_id, []).append(one)
    found: list[Task] = []
    ahead = [root]
    while ahead:
        one = ahead.pop()
        found.append(one)
        ahead.extend(reversed(under.get(one.id, [])))
    return found


class SubtaskChange(Enum):
    """The effect of a change on the parent: one more open subtask, one more closed subtask, or neither."""

    OPENED = "opened"
    CLOSED = "closed"
    NEITHER = "neither"


def subtask_change(before: Task | None, after: Task | None) -> SubtaskChange:
    """The effect on the parent; None means that the subtask did not exist before, or does not exist now."""
    was_open, is_now_open = (one is not None and is_open(one) for one in (before, after))
    if is_now_open:
        return SubtaskChange.NEITHER if was_open else SubtaskChange.OPENED
    # A cancelled subtask that becomes completed may have been the only subtask.
    return SubtaskChange.CLOSED if was_open or (_is_done(after) and not _is_done(before)) else SubtaskChange.NEITHER


def count_subtasks(task: Task, subtasks: Sequence[Task]) -> Task:
    """The task with the number of its subtasks, and the progress computed from theirs."""
    completed = sum(_is_done(one) for one in subtasks)
    found = replace(task, subtask_count=len(subtasks), completed_subtask_count=completed)
    return found if _is_done(task) else replace(found, progress=_subtask_progress(task, subtasks))


def apply_subtask_change(
    task: Task, subtasks: Sequence[Task], what: SubtaskChange, now: datetime, *, blocked: bool
) -> Task:
    """The task after a change below it. One that completes with its subtasks closes and reopens as they do."""
    if task.completion_behavior is not CompletionBehavior.WITH_SUBTASKS:
        return task
    if what is SubtaskChange.OPENED and task.status is TaskStatus.COMPLETED:
        return count_subtasks(apply_status(replace(task, status=TaskStatus.IN_PROGRESS), now), subtasks)
    if what is SubtaskChange.CLOSED and is_open(task) and _all_done(subtasks) and not blocked:
        return apply_status(replace(task, status=TaskStatus.COMPLETED), now)
    return task


def _is_done(task: Task | None) -> bool:
    return task is not None and task.status is TaskStatus.COMPLETED


def _all_done(subtasks: Sequence[Task]) -> bool:
    """Whether none is open, and at least one was not cancelled."""
    return not any(is_open(one) for one in subtasks) and any(_is_done(one) for one in subtasks)


def _subtask_progress(task: Task, subtasks: Sequence[Task]) -> int:
    """The progress of all subtasks that are not cancelled; the task's own progress if it has no such subtasks."""
    counting = [one for one in subtasks if one.status is not TaskStatus.CANCELLED]
    if task.progress_calculation is ProgressCalculation.MANUAL or not counting:
        return task.progress
    weighted = task.progress_calculation is ProgressCalculation.WEIGHTED
    weights = [one.estimated_duration or 1 if weighted else 1 for one in counting]
    total = sum(one.progress * weight for one, weight in zip(counting, weights, strict=True))
    return int(total / sum(weights) + 0.5)


UNCATEGORIZED = "uncategorized"
DAY_SECONDS = 86_400


@dataclass(frozen=True, slots=True)
class TaskStats:
    """Only open tasks are due or overdue. `completion_rate` is a percentage, `average_completion_time` is in days."""

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
class UpdatedTaskList:
    """The tasks last changed in a span, the latest first, and the total number of such tasks."""

    tasks: Sequence[Task]
    total: int
    span: TimeSpan


@dataclass(frozen=True, slots=True)
class TaskGroupCount:
    """The number of tasks with the same status, priority and category."""

    status: TaskStatus
    priority: Priority
    category_id: str | None
    count: int


@dataclass(frozen=True, slots=True)
class DueCounts:
    """The numbers of open tasks that are overdue, due today, and due this week."""

    overdue: int
    today: int
    this_week: int


def summarize_tasks(
    alike: Sequence[TaskGroupCount], due: DueCounts, names: Mapping[str, str], seconds: float | None
) -> TaskStats:
    """`names` are the names of categories by id, `seconds` is the average time from creation to completion."""
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


def today_and_week(now: datetime, zone: ZoneInfo) -> tuple[TimeSpan, TimeSpan]:
    """Today and this week in that zone; a week starts on Monday."""
    this_day = today_in(now, zone)
    monday = this_day - timedelta(days=this_day.weekday())
    return span_of_days(this_day, zone), span_of_days(monday, zone, 7)
