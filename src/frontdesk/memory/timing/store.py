"""Time entries in the database."""

from collections.abc import Sequence
from dataclasses import asdict, fields

from sqlalchemy import ColumnElement, RowMapping, and_, delete, func, insert, or_, select, update

from frontdesk.db.schema import tasks
from frontdesk.db.schema import time_entries as table
from frontdesk.memory.model import EntrySource, ItemType, TimeEntry
from frontdesk.memory.moments import Span
from frontdesk.memory.store import Mine

NAMES = tuple(field.name for field in fields(TimeEntry))


def add(mine: Mine, entry: TimeEntry) -> None:
    mine.connection.execute(insert(table).values(user_id=mine.user_id, **asdict(entry)))


def write(mine: Mine, entry: TimeEntry) -> None:
    mine.connection.execute(update(table).where(_is_mine(mine, entry.id)).values(**asdict(entry)))


def get(mine: Mine, entry_id: str) -> TimeEntry | None:
    return _one(mine, _is_mine(mine, entry_id))


def running(mine: Mine) -> TimeEntry | None:
    """The one that has no end; the database sees to it that there is one at most."""
    return _one(mine, and_(table.c.user_id == mine.user_id, table.c.end_at.is_(None)))


def overlapping(mine: Mine, span: Span, item_id: str | None = None) -> Sequence[TimeEntry]:
    """Those that have a part in the span, of all items or of one, in the order in which they began."""
    lasts = or_(table.c.end_at.is_(None), table.c.end_at > span.start)
    wanted = select(table).where(table.c.user_id == mine.user_id, table.c.start_at < span.end, lasts)
    if item_id is not None:
        wanted = wanted.where(table.c.timeline_item_id == item_id)
    rows = mine.connection.execute(wanted.order_by(table.c.start_at, table.c.id)).mappings()
    return [_entry(row) for row in rows]


def remove(mine: Mine, entry_id: str) -> None:
    mine.connection.execute(delete(table).where(_is_mine(mine, entry_id)))


def recount(mine: Mine, item_id: str) -> None:
    """Have a task know the time that was spent on it; other items keep no account of that."""
    of_item = and_(table.c.user_id == mine.user_id, table.c.timeline_item_id == item_id, table.c.end_at.is_not(None))
    counted = select(func.coalesce(func.sum(table.c.duration_minutes), 0), func.count()).where(of_item)
    total, segments = mine.connection.execute(counted).one()
    changed = {"tracked_minutes_total": int(total), "tracked_segments_count": segments}
    of_task = and_(tasks.c.user_id == mine.user_id, tasks.c.id == item_id)
    mine.connection.execute(update(tasks).where(of_task).values(changed))


def _is_mine(mine: Mine, entry_id: str) -> ColumnElement[bool]:
    return and_(table.c.user_id == mine.user_id, table.c.id == entry_id)


def _one(mine: Mine, which: ColumnElement[bool]) -> TimeEntry | None:
    row = mine.connection.execute(select(table).where(which)).mappings().one_or_none()
    return _entry(row) if row else None


def _entry(row: RowMapping) -> TimeEntry:
    values = {name: row[name] for name in NAMES}
    values |= {"source": EntrySource(row["source"]), "item_type": ItemType(row["item_type"])}
    return TimeEntry(**values)
