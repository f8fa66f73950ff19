"""Defines the tools for tasks and for the time spent on them."""

from collections.abc import Sequence
from datetime import datetime
from functools import partial
from typing import Literal
from zoneinfo import ZoneInfo

from pydantic import Field

from frontdesk import zones
from frontdesk.errors import Denied
from frontdesk.memory.model import (
    CompletionBehavior,
    ItemType,
    PersonScope,
    Priority,
    ProgressCalculation,
    Task,
    TaskStatus,
    TimeEntry,
)
from frontdesk.memory.operations.base import (
    ADDS_HINTS,
    CHANGES_HINTS,
    MAX_LINE,
    EmptyRequest,
    IdText,
    LongText,
    MemoryRequest,
    MemoryTool,
    MemoryToolResult,
    Minutes,
    PagedRequest,
    Percent,
    RecordIdRequest,
    ShortText,
    SortOrder,
    Tags,
    TimeText,
    ToolAnswer,
    ZoneName,
    format_count,
    format_counts,
    format_minutes,
    format_page,
    format_span,
    format_tags,
    format_time,
    join_lines,
    join_parts,
    labelled_text,
    person_zone,
)
from frontdesk.memory.service import RecordServices
from frontdesk.memory.tasks_rules import TaskFilter, TaskStats, UpdatedTaskList
from frontdesk.memory.time_tracking import DaySpending, TimeSpent
from frontdesk.text import one_line

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


def format_task_line(task: Task, zone: ZoneInfo) -> str:
    """A task on one line, with the id that other tools ask for."""
    return f"- {task.title} (id {task.id}): {_format_status(task, zone)}"


def format_task(task: Task, zone: ZoneInfo) -> str:
    """A task with everything that is known of it."""
    return join_lines(
        format_task_line(task, zone).removeprefix("- "),
        labelled_text("Description", task.description),
        labelled_text("Notes", task.notes),
        _format_times(task, zone),
        _format_relations(task),
        "The agent it is for is woken when it is due." if task.wake_schedule_id is not None else task.wake_note,
    )


def _format_status(task: Task, zone: ZoneInfo) -> str:
    return join_parts(
        [
            task.status.replace("_", " "),
            f"{task.priority} priority",
            f"due {format_time(task.due_date, zone)}" if task.due_date else "no due date",
            f"{task.progress}% done" if task.progress and task.status is not TaskStatus.COMPLETED else "",
            f"for {task.assignee}" if task.assignee else "",
            format_tags(task.tags),
        ]
    )


def _format_times(task: Task, zone: ZoneInfo) -> str:
    said = join_parts(
        [
            f"created {format_time(task.created_at, zone)}",
            f"completed {format_time(task.completion_date, zone)}" if task.completion_date else "",
            f"estimated {format_minutes(task.estimated_duration)}" if task.estimated_duration else "",
            f"{format_minutes(task.tracked_minutes_total)} tracked" if task.tracked_minutes_total else "",
        ]
    )
    return said[:1].upper() + said[1:]


def _format_relations(task: Task) -> str:
    said = join_parts(
        [
            f"category {task.category_id}" if task.category_id else "",
            f"subtask of {task.parent_task_id}" if task.parent_task_id else "",
            f"{task.completed_subtask_count} of {format_count(task.subtask_count, 'subtask')} done"
            if task.subtask_count
            else "",
            f"after {', '.join(task.dependencies)}" if task.dependencies else "",
        ]
    )
    return said[:1].upper() + said[1:]


def format_task_stats(found: TaskStats) -> str:
    return join_lines(
        f"{format_count(found.total, 'task')}: {found.overdue:,} overdue, {found.due_today:,} due today, "
        f"{found.due_this_week:,} due this week, {found.completion_rate:g}% completed",
        format_counts("By status", found.by_status),
        format_counts("By priority", found.by_priority),
        format_counts("By category", found.by_category),
        f"A completed task took {found.average_completion_time:g} days on average"
        if found.average_completion_time
        else "",
    )


def format_updated_tasks(results: UpdatedTaskList, zone: ZoneInfo) -> str:
    """The tasks that changed in a range of time, the latest first."""
    stretch = f"from {format_time(results.span.start, zone)} up to {format_time(results.span.end, zone)}"
    if not results.total:
        return f"No task was last changed {stretch}."
    more = f", of which these are the latest {len(results.tasks):,}" if len(results.tasks) < results.total else ""
    return join_lines(
        f"{format_count(results.total, 'task')} last changed {stretch}{more}:",
        *(f"{format_task_line(task, zone)}, changed {format_time(task.updated_at, zone)}" for task in results.tasks),
    )


MAX_LISTED = 20


def format_entry(entry: TimeEntry, zone: ZoneInfo) -> str:
    """A time entry: what, from when to when, how long."""
    return f"{entry.item_title} ({entry.item_type} {entry.timeline_item_id}): {_format_entry_time(entry, zone)}"


def format_entries(entries: Sequence[TimeEntry], minutes: int, zone: ZoneInfo) -> str:
    """The time entries of one item."""
    if not entries:
        return "No time was tracked on this task; start_task_timer begins with it."
    head = f"{format_minutes(minutes)} in {format_count(len(entries), 'entry', 'entries')} on {entries[0].item_title}:"
    return join_lines(head, *(f"- {_format_entry_time(entry, zone)}" for entry in entries))


def format_day(spending: DaySpending) -> str:
    """The time of a day, by item."""
    head = f"{spending.day:%a %Y-%m-%d} ({spending.zone})"
    if not spending.entries:
        return f"{head}: no time was tracked."
    zone = zones.zone_of_name(spending.zone)
    return join_lines(
        f"{head}: {format_minutes(spending.total_minutes)} in "
        f"{format_count(len(spending.entries), 'entry', 'entries')}",
        *_format_time_spent("By category", spending.by_category),
        *_format_time_spent("By item", spending.by_item),
        "Entries:",
        *(f"- {format_entry(entry, zone)}" for entry in spending.entries[:MAX_LISTED]),
        f"and {len(spending.entries) - MAX_LISTED} more" if len(spending.entries) > MAX_LISTED else "",
    )


def _format_entry_time(entry: TimeEntry, zone: ZoneInfo) -> str:
    long = "still running" if entry.duration_minutes is None else format_minutes(entry.duration_minutes)
    note = f" ({one_line(entry.note, MAX_LINE)})" if entry.note else ""
    return f"{format_span(entry.start_at, entry.end_at, zone)}, {long}{note}"


def _format_time_spent(title: str, spent: Sequence[TimeSpent]) -> list[str]:
    return (
        [f"{title}:", *(f"- {one.name}: {format_minutes(one.minutes)}" for one in spent[:MAX_LISTED])] if spent else []
    )


CREATE_TASK = (
    "Put a task on the person's list: something that is to be done. Only a title is needed. A due date is a day, which "
    "means its end, or a time; without an offset it is on the person's own clock. Example: "
    '{"title": "Book the train", "due_date": "2026-11-20", "priority": "high", "category": "travel"}. The answer has '
    "the task's id. Search first where it may be there already."
)
SEARCH_TASKS = (
    "Find tasks: by words in them, status, priority, category, tags, assignee, and when they are due or were made. All "
    'that is given must hold; nothing given lists all. Example: {"status": "pending", "due_before": "2026-11-20", '
    '"sort_by": "due_date", "sort_order": "asc"}; {"overdue": true} finds what is late.'
)
GET_TASK = "One task by its id, with all that is known of it: description, notes, progress, tracked time, subtasks."
UPDATE_TASK = (
    "Change a task. What you leave out stays as it is. Completing it is a change of status. "
    'Example: {"id": "0199…", "status": "completed"}, or {"id": "0199…", "due_date": "2026-11-21", "progress": 60}.'
)
GET_TASK_STATS = (
    "The person's tasks in figures: how many, by status, priority and category, what is due today, this week, overdue."
)
GET_UPDATES_FOR_TODAY = (
    "The tasks that were made or changed today, the latest first: what got done, what moved. For a daily review."
)
GET_UPDATES_FOR_DATE = (
    'The tasks whose last change was on a certain day, the latest first. Example: {"date": "2026-11-20"}.'
)
NO_TASKS = "No task is like that. Leave out some of what you asked for, or make one with create_task."


class TaskAnswer(ToolAnswer):
    """One task."""

    task: Task


class TasksAnswer(ToolAnswer):
    """A page of tasks."""

    tasks: Sequence[Task]
    total: int
    offset: int
    has_more: bool


class TaskStatsAnswer(ToolAnswer):
    """Statistics of tasks."""

    stats: TaskStats


class TimeRange(ToolAnswer):
    """A range of time."""

    start: datetime
    end: datetime


class TasksUpdatedAnswer(ToolAnswer):
    """The tasks that changed in a range of time."""

    tasks: Sequence[Task]
    total: int
    date_range: TimeRange


async def create_task_tool(services: RecordServices, scope: PersonScope, given: CreateTask) -> MemoryToolResult:
    task = await services.tasks.create(scope, given.provided("timezone"), given.timezone)
    return await _task_result(services, scope, task, "Created.", given.timezone)


async def search_tasks_tool(services: RecordServices, scope: PersonScope, given: SearchTasks) -> MemoryToolResult:
    said = given.provided("keyword", "limit", "offset")
    wanted = TaskFilter(**said, search=given.keyword, every_tag=True, limit=given.limit, offset=given.offset)
    page = await services.tasks.list(scope, wanted)
    zone = await person_zone(services, scope, given.timezone)
    text = format_page(page, partial(format_task_line, zone=zone), "task", none=NO_TASKS)
    answer = TasksAnswer(tasks=page.items, total=page.total, offset=page.offset, has_more=page.has_more)
    return MemoryToolResult(text, answer)


async def get_task_tool(services: RecordServices, scope: PersonScope, request: RecordIdRequest) -> MemoryToolResult:
    return await _task_result(services, scope, await services.tasks.get(scope, request.id))


async def update_task_tool(services: RecordServices, scope: PersonScope, given: UpdateTask) -> MemoryToolResult:
    task = await services.tasks.update(scope, given.id, given.provided("id", "timezone"), given.timezone)
    return await _task_result(services, scope, task, "Changed.", given.timezone)


async def task_stats_tool(services: RecordServices, scope: PersonScope, _given: EmptyRequest) -> MemoryToolResult:
    found = await services.tasks.stats(scope)
    return MemoryToolResult(format_task_stats(found), TaskStatsAnswer(stats=found))


async def updates_today_tool(services: RecordServices, scope: PersonScope, request: TodayRequest) -> MemoryToolResult:
    return await _updated_tasks_result(
        services, scope, await services.tasks.updated(scope, zone=request.timezone), request.timezone
    )


async def updates_on_date_tool(services: RecordServices, scope: PersonScope, request: DateRequest) -> MemoryToolResult:
    found = await services.tasks.updated(scope, request.date, request.date, request.timezone)
    return await _updated_tasks_result(services, scope, found, request.timezone)


async def _task_result(
    services: RecordServices, scope: PersonScope, task: Task, first: str = "", zone: str | None = None
) -> MemoryToolResult:
    text = join_lines(first, format_task(task, await person_zone(services, scope, zone)))
    return MemoryToolResult(text, TaskAnswer(task=task))


async def _updated_tasks_result(
    services: RecordServices, scope: PersonScope, results: UpdatedTaskList, zone: str | None
) -> MemoryToolResult:
    text = format_updated_tasks(results, await person_zone(services, scope, zone))
    stretch = TimeRange(start=results.span.start, end=results.span.end)
    return MemoryToolResult(text, TasksUpdatedAnswer(tasks=results.tasks, total=results.total, date_range=stretch))


TASK_TOOLS: tuple[MemoryTool, ...] = (
    MemoryTool("create_task", "Create a task", CREATE_TASK, CreateTask, TaskAnswer, create_task_tool, **ADDS_HINTS),
    MemoryTool("search_tasks", "Find tasks", SEARCH_TASKS, SearchTasks, TasksAnswer, search_tasks_tool),
    MemoryTool("get_task", "Look at a task", GET_TASK, RecordIdRequest, TaskAnswer, get_task_tool),
    MemoryTool("update_task", "Change a task", UPDATE_TASK, UpdateTask, TaskAnswer, update_task_tool, **CHANGES_HINTS),
    MemoryTool("get_task_stats", "Tasks in figures", GET_TASK_STATS, EmptyRequest, TaskStatsAnswer, task_stats_tool),
    MemoryTool(
        "get_task_updates_for_today",
        "Tasks changed today",
        GET_UPDATES_FOR_TODAY,
        TodayRequest,
        TasksUpdatedAnswer,
        updates_today_tool,
    ),
    MemoryTool(
        "get_task_updates_for_date",
        "Tasks changed on a day",
        GET_UPDATES_FOR_DATE,
        DateRequest,
        TasksUpdatedAnswer,
        updates_on_date_tool,
    ),
)

GET_DAY_SPENDING = (
    "Where a day's time went, from midnight to midnight where the person is: in all, by what it was spent on, and by "
    'category. Example: {"date": "2026-11-20", "timezone": "Europe/Berlin"}.'
)
GET_TASK_ENTRIES = (
    "The time that was tracked on one task: each stretch, and their sum. Narrow it down to days with start_date and "
    'end_date. Example: {"task_id": "0199…", "start_date": "2026-11-01"}.'
)
START_TIMER = (
    "Start tracking time on a task, as of now. A person has one timer at a time: where another task's runs, the answer "
    'says which, and that one must be stopped first. Example: {"task_id": "0199…", "description": "First draft"}.'
)
STOP_TIMER = 'Stop the timer of a task; the answer says how long it ran. Example: {"task_id": "0199…"}.'
GET_RUNNING_TIMER = "The timer that runs right now, if one does: on what, since when, how long so far."


class TimerAnswer(ToolAnswer):
    """A time entry; none if no timer runs."""

    entry: TimeEntry | None


class TimeEntriesAnswer(ToolAnswer):
    """Time entries and their sum, without running ones."""

    entries: Sequence[TimeEntry]
    total_minutes: int


class DaySpendingAnswer(ToolAnswer):
    """The time of a day."""

    spending: DaySpending


async def day_spending_tool(services: RecordServices, scope: PersonScope, given: GetDaySpending) -> MemoryToolResult:
    if given.user_id and given.user_id != scope.user_id:
        raise Denied("Only your own time can be asked for; leave user_id out")
    spending = await services.time_tracking.day(scope, given.date, given.timezone)
    return MemoryToolResult(format_day(spending), DaySpendingAnswer(spending=spending))


async def task_entries_tool(services: RecordServices, scope: PersonScope, given: GetTaskTime) -> MemoryToolResult:
    found = await services.time_tracking.entries_of_item(
        scope, given.task_id, given.start_date, given.end_date, kind=ItemType.TASK
    )
    answer = TimeEntriesAnswer(entries=found, total_minutes=sum(one.duration_minutes or 0 for one in found))
    return MemoryToolResult(format_entries(found, answer.total_minutes, await person_zone(services, scope)), answer)


async def start_timer_tool(services: RecordServices, scope: PersonScope, given: StartTaskTimer) -> MemoryToolResult:
    started = await services.time_tracking.start(scope, given.task_id, given.description, kind=ItemType.TASK)
    first = "Started." if started.created else "It runs already."
    return await _timer_result(services, scope, started.entry, first)


async def stop_timer_tool(services: RecordServices, scope: PersonScope, given: StopTaskTimer) -> MemoryToolResult:
    entry = await services.time_tracking.stop(scope, given.task_id, kind=ItemType.TASK)
    return await _timer_result(services, scope, entry, "Stopped.")


async def running_timer_tool(services: RecordServices, scope: PersonScope, _given: EmptyRequest) -> MemoryToolResult:
    return await _timer_result(services, scope, await services.time_tracking.running(scope), "Running.")


async def _timer_result(
    services: RecordServices, scope: PersonScope, entry: TimeEntry | None, first: str
) -> MemoryToolResult:
    if entry is None:
        return MemoryToolResult("No timer is running; start one with start_task_timer.", TimerAnswer(entry=None))
    return MemoryToolResult(
        join_lines(first, format_entry(entry, await person_zone(services, scope))), TimerAnswer(entry=entry)
    )


TIME_TOOLS: tuple[MemoryTool, ...] = (
    MemoryTool(
        "get_day_time_spending",
        "Where a day went",
        GET_DAY_SPENDING,
        GetDaySpending,
        DaySpendingAnswer,
        day_spending_tool,
    ),
    MemoryTool(
        "get_task_time_entries", "Time on a task", GET_TASK_ENTRIES, GetTaskTime, TimeEntriesAnswer, task_entries_tool
    ),
    MemoryTool(
        "start_task_timer", "Start a timer", START_TIMER, StartTaskTimer, TimerAnswer, start_timer_tool, **ADDS_HINTS
    ),
    MemoryTool(
        "stop_task_timer", "Stop a timer", STOP_TIMER, StopTaskTimer, TimerAnswer, stop_timer_tool, **ADDS_HINTS
    ),
    MemoryTool(
        "get_running_timer", "The running timer", GET_RUNNING_TIMER, EmptyRequest, TimerAnswer, running_timer_tool
    ),
)
