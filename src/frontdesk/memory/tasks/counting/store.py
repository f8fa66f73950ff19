"""Tasks counted, in SQL."""

from collections.abc import Sequence

from sqlalchemy import ColumnElement, extract, func, select

from frontdesk.db.schema import tasks, timeline_items
from frontdesk.memory.model import Priority, TaskStatus
from frontdesk.memory.moments import Span
from frontdesk.memory.store import Mine
from frontdesk.memory.tasks.looking.store import is_overdue
from frontdesk.memory.tasks.rules import OPEN
from frontdesk.memory.tasks.stats import Alike, Due
from frontdesk.memory.tasks.store import TOGETHER

KIND = (tasks.c.status, timeline_items.c.priority, timeline_items.c.category_id)
TOOK = extract("epoch", tasks.c.completion_date) - extract("epoch", timeline_items.c.created_at)


def alike(mine: Mine, made: Span | None) -> Sequence[Alike]:
    counting = select(*KIND, func.count()).select_from(tasks).join(timeline_items, TOGETHER)
    rows = mine.connection.execute(counting.where(*_made(mine, made)).group_by(*KIND))
    return [
        Alike(TaskStatus(status), Priority(priority), category, count) for status, priority, category, count in rows
    ]


def due(mine: Mine, made: Span | None, today: Span, week: Span) -> Due:
    is_open = tasks.c.status.in_(OPEN)
    counting = (
        select(
            *(func.count().filter(*which) for which in (is_overdue(mine), _due(today), _due(week))),
        )
        .select_from(tasks)
        .join(timeline_items, TOGETHER)
    )
    return Due(*mine.connection.execute(counting.where(*_made(mine, made), is_open)).one())


def seconds_taken(mine: Mine, made: Span | None) -> float | None:
    """From making to completion, on average; None where nothing was completed."""
    taken = select(func.avg(TOOK)).select_from(tasks).join(timeline_items, TOGETHER)
    completed = tasks.c.status == TaskStatus.COMPLETED
    found = mine.connection.execute(taken.where(*_made(mine, made), completed)).scalar_one()
    return None if found is None else float(found)


def _made(mine: Mine, made: Span | None) -> list[ColumnElement[bool]]:
    when = timeline_items.c.created_at
    within = [] if made is None else [when >= made.start, when < made.end]
    return [tasks.c.user_id == mine.user_id, *within]


def _due(span: Span) -> tuple[ColumnElement[bool], ...]:
    return (tasks.c.due_date >= span.start, tasks.c.due_date < span.end)
