"""Tasks that are looked for, in SQL."""

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import ColumnElement, case

from frontdesk.db.schema import tasks, timeline_items
from frontdesk.memory.given import Page, category_id, there
from frontdesk.memory.ids import known
from frontdesk.memory.items.store import has_tags
from frontdesk.memory.matching.store import has_words, ordered, page, up_to
from frontdesk.memory.model import Priority, Task
from frontdesk.memory.moments import Span, span_of, today, zone_of
from frontdesk.memory.store import Mine
from frontdesk.memory.tasks.rules import OPEN
from frontdesk.memory.tasks.store import READ, get, tasks_of
from frontdesk.memory.tasks.wanted import SortBy, TaskWanted, bounds

SEARCHED = (timeline_items.c.title, timeline_items.c.description, tasks.c.notes, timeline_items.c.tags)
WEIGHT = case({one.value: weight for weight, one in enumerate(Priority)}, value=timeline_items.c.priority)
SORTED: Mapping[SortBy, ColumnElement[Any]] = {
    "created_at": timeline_items.c.created_at,
    "updated_at": timeline_items.c.updated_at,
    "due_date": tasks.c.due_date,
    "priority": WEIGHT,
    "title": timeline_items.c.title,
    "hierarchy_level": tasks.c.hierarchy_level,
    "subtask_order": tasks.c.subtask_order,
}
TIMES = {"due": tasks.c.due_date, "created": timeline_items.c.created_at, "updated": timeline_items.c.updated_at}


def search(mine: Mine, wanted: TaskWanted) -> Page[Task]:
    conditions = [*_plain(wanted), *_in_tree(mine, wanted), *_in_time(mine, wanted)]
    if wanted.category:
        conditions.append(timeline_items.c.category_id == category_id(mine, wanted.category))
    chosen = READ.where(tasks.c.user_id == mine.user_id, *conditions)
    in_order = ordered(chosen, SORTED[wanted.sort_by], tasks.c.id, wanted.sort_order, nullable=True)
    rows, total = page(mine, in_order, wanted.limit, wanted.offset)
    return Page(tasks_of(mine, rows), total, wanted.offset)


def updated(mine: Mine, span: Span, most: int) -> Page[Task]:
    """Those last changed within it, the latest first."""
    when = timeline_items.c.updated_at
    chosen = READ.where(tasks.c.user_id == mine.user_id, when >= span.start, when < span.end)
    rows, total = page(mine, ordered(chosen, when, tasks.c.id, "desc"), most, 0)
    return Page(tasks_of(mine, rows), total)


def is_overdue(mine: Mine) -> Sequence[ColumnElement[bool]]:
    return (tasks.c.due_date < mine.now, tasks.c.status.in_(OPEN))


def _plain(wanted: TaskWanted) -> list[ColumnElement[bool]]:
    found = has_words(SEARCHED, wanted.search) if wanted.search else []
    if wanted.status is not None:
        found.append(tasks.c.status == wanted.status)
    if wanted.priority is not None:
        found.append(timeline_items.c.priority == wanted.priority)
    if wanted.assignee is not None:
        found.append(tasks.c.assignee == wanted.assignee)
    if wanted.tags:
        found.append(has_tags(wanted.tags, every=wanted.every_tag))
    return found


def _in_tree(mine: Mine, wanted: TaskWanted) -> list[ColumnElement[bool]]:
    found: list[ColumnElement[bool]] = []
    if wanted.parent_task_id is not None:
        parent = there(get(mine, known(wanted.parent_task_id, "Task")), "Task")
        found.append(tasks.c.parent_task_id == parent.id)
    if wanted.hierarchy_level is not None:
        found.append(tasks.c.hierarchy_level == wanted.hierarchy_level)
    if wanted.roots_only:
        found.append(tasks.c.parent_task_id.is_(None))
    return found


def _in_time(mine: Mine, wanted: TaskWanted) -> list[ColumnElement[bool]]:
    zone = zone_of(wanted.timezone, mine.zone_name)
    found: list[ColumnElement[bool]] = []
    for name, column in TIMES.items():
        between = bounds(wanted, name, zone)
        if between.since is not None:
            found.append(column >= between.since)
        if between.until is not None:
            found.append(up_to(column, between.until))
    if wanted.overdue:
        found.extend(is_overdue(mine))
    if wanted.updated_today:
        span = span_of(today(mine.now, zone), zone)
        found += [timeline_items.c.updated_at >= span.start, timeline_items.c.updated_at < span.end]
    return found
