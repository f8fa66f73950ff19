"""The tools for tasks."""

from collections.abc import Sequence
from datetime import datetime
from functools import partial

from frontdesk.memory.asked import tasks as asked
from frontdesk.memory.asked.common import Nothing, Which
from frontdesk.memory.model import Task
from frontdesk.memory.scope import Scope
from frontdesk.memory.service import MemoryRoom
from frontdesk.memory.tasks.stats import TaskStats, TasksUpdated
from frontdesk.memory.tasks.wanted import TaskWanted
from frontdesk.memory.tooling.clock import clock
from frontdesk.memory.tooling.telling.tasks import stats_told, task_line, task_told, updated_told
from frontdesk.memory.tooling.telling.words import lines, listed
from frontdesk.memory.tooling.tool import CHANGES, MAKES, Answer, MemoryTool, Told

CREATE = (
    "Put a task on the person's list: something that is to be done. Only a title is needed. A due date is a day, which "
    "means its end, or a time; without an offset it is on the person's own clock. Example: "
    '{"title": "Book the train", "due_date": "2026-11-20", "priority": "high", "category": "travel"}. The answer has '
    "the task's id. Search first where it may be there already."
)
SEARCH = (
    "Find tasks: by words in them, status, priority, category, tags, assignee, and when they are due or were made. All "
    'that is given must hold; nothing given lists all. Example: {"status": "pending", "due_before": "2026-11-20", '
    '"sort_by": "due_date", "sort_order": "asc"}; {"overdue": true} finds what is late.'
)
GET = "One task by its id, with all that is known of it: description, notes, progress, tracked time, subtasks."
UPDATE = (
    "Change a task. What you leave out stays as it is. Completing it is a change of status. "
    'Example: {"id": "0199…", "status": "completed"}, or {"id": "0199…", "due_date": "2026-11-21", "progress": 60}.'
)
STATS = (
    "The person's tasks in figures: how many, by status, priority and category, what is due today, this week, overdue."
)
TODAY = "The tasks that were made or changed today, the latest first: what got done, what moved. For a daily review."
ON_DATE = 'The tasks whose last change was on a certain day, the latest first. Example: {"date": "2026-11-20"}.'
NONE = "No task is like that. Leave out some of what you asked for, or make one with create_task."


class TaskAnswer(Answer):
    """One task."""

    task: Task


class TasksAnswer(Answer):
    """Some tasks, and how many there are in all."""

    tasks: Sequence[Task]
    total: int
    offset: int
    has_more: bool


class TaskStatsAnswer(Answer):
    """The tasks in figures."""

    stats: TaskStats


class Stretch(Answer):
    """From when on, up to when."""

    start: datetime
    end: datetime


class TasksUpdatedAnswer(Answer):
    """The tasks that were changed within a stretch of time."""

    tasks: Sequence[Task]
    total: int
    date_range: Stretch


async def create(room: MemoryRoom, scope: Scope, given: asked.CreateTask) -> Told:
    task = await room.tasks.create(scope, given.said("timezone"), given.timezone)
    return await _told(room, scope, task, "Created.", given.timezone)


async def search(room: MemoryRoom, scope: Scope, given: asked.SearchTasks) -> Told:
    said = given.said("keyword", "limit", "offset")
    wanted = TaskWanted(**said, search=given.keyword, every_tag=True, limit=given.limit, offset=given.offset)
    page = await room.tasks.list(scope, wanted)
    zone = await clock(room, scope, given.timezone)
    text = listed(page, partial(task_line, zone=zone), "task", none=NONE)
    answer = TasksAnswer(tasks=page.items, total=page.total, offset=page.offset, has_more=page.has_more)
    return Told(text, answer)


async def get(room: MemoryRoom, scope: Scope, given: Which) -> Told:
    return await _told(room, scope, await room.tasks.get(scope, given.id))


async def update(room: MemoryRoom, scope: Scope, given: asked.UpdateTask) -> Told:
    task = await room.tasks.update(scope, given.id, given.said("id", "timezone"), given.timezone)
    return await _told(room, scope, task, "Changed.", given.timezone)


async def stats(room: MemoryRoom, scope: Scope, _given: Nothing) -> Told:
    found = await room.tasks.stats(scope)
    return Told(stats_told(found), TaskStatsAnswer(stats=found))


async def today(room: MemoryRoom, scope: Scope, given: asked.Today) -> Told:
    return await _updated(room, scope, await room.tasks.updated(scope, zone=given.timezone), given.timezone)


async def on_date(room: MemoryRoom, scope: Scope, given: asked.OnDate) -> Told:
    found = await room.tasks.updated(scope, given.date, given.date, given.timezone)
    return await _updated(room, scope, found, given.timezone)


async def _told(room: MemoryRoom, scope: Scope, task: Task, first: str = "", zone: str | None = None) -> Told:
    text = lines(first, task_told(task, await clock(room, scope, zone)))
    return Told(text, TaskAnswer(task=task))


async def _updated(room: MemoryRoom, scope: Scope, found: TasksUpdated, zone: str | None) -> Told:
    text = updated_told(found, await clock(room, scope, zone))
    stretch = Stretch(start=found.span.start, end=found.span.end)
    return Told(text, TasksUpdatedAnswer(tasks=found.tasks, total=found.total, date_range=stretch))


TASKS: tuple[MemoryTool, ...] = (
    MemoryTool("create_task", "Create a task", CREATE, asked.CreateTask, TaskAnswer, create, **MAKES),
    MemoryTool("search_tasks", "Find tasks", SEARCH, asked.SearchTasks, TasksAnswer, search),
    MemoryTool("get_task", "Look at a task", GET, Which, TaskAnswer, get),
    MemoryTool("update_task", "Change a task", UPDATE, asked.UpdateTask, TaskAnswer, update, **CHANGES),
    MemoryTool("get_task_stats", "Tasks in figures", STATS, Nothing, TaskStatsAnswer, stats),
    MemoryTool("get_task_updates_for_today", "Tasks changed today", TODAY, asked.Today, TasksUpdatedAnswer, today),
    MemoryTool(
        "get_task_updates_for_date", "Tasks changed on a day", ON_DATE, asked.OnDate, TasksUpdatedAnswer, on_date
    ),
)
