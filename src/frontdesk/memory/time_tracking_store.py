"""Stores time entries, and keeps the totals of tasks up to date."""

from collections.abc import Sequence
from dataclasses import asdict, fields

from sqlalchemy import ColumnElement, RowMapping, and_, delete, func, insert, or_, select, update

from frontdesk.db.schema import tasks, time_entries
from frontdesk.memory.model import EntrySource, ItemType, TimeEntry
from frontdesk.memory.store import PersonTransaction
from frontdesk.memory.times import TimeSpan

ENTRY_FIELDS = tuple(field.name for field in fields(TimeEntry))


def insert_entry(transaction: PersonTransaction, entry: TimeEntry) -> None:
    transaction.connection.execute(insert(time_entries).values(user_id=transaction.user_id, **asdict(entry)))


def save_entry(transaction: PersonTransaction, entry: TimeEntry) -> None:
    transaction.connection.execute(update(time_entries).where(_is_entry(transaction, entry.id)).values(**asdict(entry)))


def fetch_entry(transaction: PersonTransaction, entry_id: str) -> TimeEntry | None:
    return _fetch_one(transaction, _is_entry(transaction, entry_id))


def fetch_running_entry(transaction: PersonTransaction) -> TimeEntry | None:
    """The entry without an end; the database allows at most one per person."""
    return _fetch_one(transaction, and_(time_entries.c.user_id == transaction.user_id, time_entries.c.end_at.is_(None)))


def list_overlapping(transaction: PersonTransaction, span: TimeSpan, item_id: str | None = None) -> Sequence[TimeEntry]:
    """The entries that overlap the span, of all items or of one, in the order of their starts."""
    lasts = or_(time_entries.c.end_at.is_(None), time_entries.c.end_at > span.start)
    query = select(time_entries).where(
        time_entries.c.user_id == transaction.user_id, time_entries.c.start_at < span.end, lasts
    )
    if item_id is not None:
        query = query.where(time_entries.c.timeline_item_id == item_id)
    rows = transaction.connection.execute(query.order_by(time_entries.c.start_at, time_entries.c.id)).mappings()
    return [_entry_from_row(row) for row in rows]


def delete_entry(transaction: PersonTransaction, entry_id: str) -> None:
    transaction.connection.execute(delete(time_entries).where(_is_entry(transaction, entry_id)))


def update_task_totals(transaction: PersonTransaction, item_id: str) -> None:
    """Write a task's total of time spent; other items have no total."""
    of_item = and_(
        time_entries.c.user_id == transaction.user_id,
        time_entries.c.timeline_item_id == item_id,
        time_entries.c.end_at.is_not(None),
    )
    counted = select(func.coalesce(func.sum(time_entries.c.duration_minutes), 0), func.count()).where(of_item)
    total, segments = transaction.connection.execute(counted).one()
    changed = {"tracked_minutes_total": int(total), "tracked_segments_count": segments}
    of_task = and_(tasks.c.user_id == transaction.user_id, tasks.c.id == item_id)
    transaction.connection.execute(update(tasks).where(of_task).values(changed))


def _is_entry(transaction: PersonTransaction, entry_id: str) -> ColumnElement[bool]:
    return and_(time_entries.c.user_id == transaction.user_id, time_entries.c.id == entry_id)


def _fetch_one(transaction: PersonTransaction, which: ColumnElement[bool]) -> TimeEntry | None:
    row = transaction.connection.execute(select(time_entries).where(which)).mappings().one_or_none()
    return _entry_from_row(row) if row else None


def _entry_from_row(row: RowMapping) -> TimeEntry:
    values = {name: row[name] for name in ENTRY_FIELDS}
    values |= {"source": EntrySource(row["source"]), "item_type": ItemType(row["item_type"])}
    return TimeEntry(**values)
