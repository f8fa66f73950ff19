"""The timeline in the database: items of every type, with what memories among them say."""

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import ColumnElement, and_, case, func, or_, select, update

from frontdesk.db.schema import memories
from frontdesk.db.schema import timeline_items as table
from frontdesk.memory import checks
from frontdesk.memory.given import Page, category_id
from frontdesk.memory.items.store import has_tags, is_mine, item_of
from frontdesk.memory.matching.store import has_words, ordered, page, up_to
from frontdesk.memory.memories.store import current
from frontdesk.memory.model import Item, ItemStatus, ItemType, Priority
from frontdesk.memory.moments import Edge, moment, zone_of
from frontdesk.memory.store import Mine
from frontdesk.memory.timeline.wanted import Place, TimelineSort, TimelineWanted

# A memory's description is its note, which is kept once.
DESCRIPTION = case((table.c.type == ItemType.MEMORY, memories.c.note), else_=table.c.description)
JOINED = table.outerjoin(memories, and_(memories.c.user_id == table.c.user_id, memories.c.id == table.c.id))
ROWS = select(
    *(column for column in table.c if column.name != "description"), DESCRIPTION.label("description")
).select_from(JOINED)
SEARCHED = (table.c.title, DESCRIPTION, table.c.tags, func.coalesce(memories.c.place_name, ""))
BEGINS = func.coalesce(table.c.start_time, table.c.end_time, table.c.created_at)
ENDS = func.coalesce(table.c.end_time, table.c.start_time, table.c.created_at)
ORDERS: dict[TimelineSort, ColumnElement[Any]] = {
    TimelineSort.CREATED_AT: table.c.created_at,
    TimelineSort.UPDATED_AT: table.c.updated_at,
    TimelineSort.TITLE: func.lower(table.c.title),
    TimelineSort.PRIORITY: case({name: rank for rank, name in enumerate(Priority)}, value=table.c.priority),
    TimelineSort.CAPTURED_AT: memories.c.captured_at,
    TimelineSort.SALIENCE_SCORE: memories.c.salience_score,
    TimelineSort.START_TIME: table.c.start_time,
}
OPTIONAL = (TimelineSort.CAPTURED_AT, TimelineSort.SALIENCE_SCORE, TimelineSort.START_TIME)


def get(mine: Mine, item_id: str) -> Item | None:
    """One by its id, also a memory that was superseded or has expired, unless it was deleted."""
    shown = (is_mine(mine, item_id), table.c.status != ItemStatus.DELETED)
    row = mine.connection.execute(ROWS.where(*shown)).mappings().one_or_none()
    return item_of(row) if row else None


def find(mine: Mine, wanted: TimelineWanted) -> Page[Item]:
    """Those that are wanted, in order, a page of them."""
    checks.one_page(wanted.limit, wanted.offset)
    rows = ROWS.where(*_shown(mine), *_conditions(mine, wanted))
    by = checks.choice(TimelineSort, "sort_by", wanted.sort_by)
    rows = ordered(rows, ORDERS[by], table.c.id, wanted.sort_order, nullable=by in OPTIONAL)
    found, total = page(mine, rows, wanted.limit, wanted.offset)
    return Page([item_of(row) for row in found], total, wanted.offset)


def newest(mine: Mine, limit: int, before: Place | None, kind: ItemType | None) -> Sequence[Item]:
    """The last made first, from the one that was made before that place; they are not counted."""
    checks.one_page(limit, 0)
    rows = ROWS.where(*_shown(mine))
    if kind is not None:
        rows = rows.where(table.c.type == kind)
    if before is not None:
        earlier = or_(table.c.created_at < before.at, table.c.id < before.id)
        rows = rows.where(table.c.created_at <= before.at, earlier)
    rows = ordered(rows, table.c.created_at, table.c.id, "desc").limit(limit)
    return [item_of(row) for row in mine.connection.execute(rows).mappings()]


def put_beside(mine: Mine, item_id: str, values: Mapping[str, Any]) -> None:
    """What the item has alone, whatever stands behind it."""
    mine.connection.execute(update(table).where(is_mine(mine, item_id)).values(**values, updated_at=mine.now))


def _shown(mine: Mine) -> list[ColumnElement[bool]]:
    """What was not deleted, superseded or has expired."""
    return [
        table.c.user_id == mine.user_id,
        table.c.status != ItemStatus.DELETED,
        or_(memories.c.id.is_(None), current(mine)),
    ]


def _conditions(mine: Mine, wanted: TimelineWanted) -> list[ColumnElement[bool]]:
    found = _between(mine, wanted)
    for name in ("type", "status", "priority", "render_on_timeline"):
        value = getattr(wanted, name)
        if value is not None:
            found.append(table.c[name] == value)
    if wanted.memory_type is not None:
        found.append(memories.c.memory_type == wanted.memory_type)
    if wanted.is_highlight is not None:
        found.append(func.coalesce(memories.c.is_highlight, False) == wanted.is_highlight)
    if wanted.category_id:
        found.append(table.c.category_id == category_id(mine, wanted.category_id))
    if wanted.search:
        found += has_words(SEARCHED, wanted.search)
    if wanted.tags:
        found.append(has_tags(wanted.tags, every=wanted.every_tag))
    return found


def _between(mine: Mine, wanted: TimelineWanted) -> list[ColumnElement[bool]]:
    zone = zone_of(wanted.timezone, mine.zone_name)
    found: list[ColumnElement[bool]] = []
    if wanted.date_from:
        found.append(moment(wanted.date_from, zone, "date_from") <= ENDS)
    if wanted.date_to:
        found.append(up_to(BEGINS, moment(wanted.date_to, zone, "date_to", Edge.END)))
    return found
