"""Memories in the database."""

import json
from collections.abc import Sequence
from dataclasses import asdict, fields
from typing import Any

from sqlalchemy import ColumnElement, RowMapping, Select, and_, func, insert, or_, select, update

from frontdesk.db.schema import memories as table
from frontdesk.db.schema import timeline_items
from frontdesk.memory import checks
from frontdesk.memory.given import Page, category_id
from frontdesk.memory.items import store as items
from frontdesk.memory.matching.store import contains, has_words, ordered, page, up_to
from frontdesk.memory.memories import place, rules
from frontdesk.memory.memories.wanted import MemorySort, MemoryWanted
from frontdesk.memory.model import Memory, MemoryStatus, MemoryType
from frontdesk.memory.moments import Edge, moment, zone_of
from frontdesk.memory.store import Mine

NAMES = tuple(field.name for field in fields(Memory))
OWN = tuple(name for name in NAMES if name in table.c)
SHARED = tuple(timeline_items.c[name] for name in NAMES if name not in table.c)
JOINED = table.join(
    timeline_items, and_(timeline_items.c.user_id == table.c.user_id, timeline_items.c.id == table.c.id)
)
ROWS = select(table, *SHARED).select_from(JOINED)
SEARCHED = (timeline_items.c.title, table.c.note, timeline_items.c.tags, func.coalesce(table.c.place_name, ""))
ORDERS: dict[MemorySort, ColumnElement[Any]] = {
    MemorySort.CAPTURED_AT: table.c.captured_at,
    MemorySort.HAPPENED_AT: timeline_items.c.start_time,
    MemorySort.SALIENCE_SCORE: table.c.salience_score,
    MemorySort.EMOTION_VALENCE: table.c.emotion_valence,
    MemorySort.UPDATED_AT: timeline_items.c.updated_at,
    MemorySort.CREATED_AT: timeline_items.c.created_at,
}
OPTIONAL = (MemorySort.SALIENCE_SCORE, MemorySort.EMOTION_VALENCE)


def add(mine: Mine, memory: Memory) -> None:
    items.add(mine, rules.item_of(memory), rules.text_of(memory))
    mine.connection.execute(insert(table).values(user_id=mine.user_id, **_row(memory)))


def write(mine: Mine, memory: Memory) -> None:
    was = items.get(mine, memory.id)
    items.write(mine, rules.item_of(memory, was), rules.text_of(memory))
    mine.connection.execute(update(table).where(_is_mine(mine, memory.id)).values(**_row(memory)))


def get(mine: Mine, memory_id: str, *, deleted: bool = False) -> Memory | None:
    """One that was not deleted, unless those are meant too."""
    wanted = ROWS.where(_is_mine(mine, memory_id))
    wanted = wanted if deleted else wanted.where(table.c.status != MemoryStatus.DELETED)
    row = mine.connection.execute(wanted).mappings().one_or_none()
    return memory_of(row) if row else None


def some(mine: Mine, ids: Sequence[str]) -> dict[str, Memory]:
    """Those of these that were not deleted, by their ids."""
    shown = (table.c.user_id == mine.user_id, table.c.id.in_(ids), table.c.status != MemoryStatus.DELETED)
    return {row["id"]: memory_of(row) for row in mine.connection.execute(ROWS.where(*shown)).mappings()}


def link(mine: Mine, older: str, newer: str) -> None:
    """The newer one takes the place of the older."""
    _set(mine, older, superseded_by=newer)
    _set(mine, newer, supersedes=older)


def unlink(mine: Mine, memory: Memory) -> None:
    """Out of its line, whose ends are joined."""
    if memory.supersedes is not None:
        _set(mine, memory.supersedes, superseded_by=memory.superseded_by)
    if memory.superseded_by is not None:
        _set(mine, memory.superseded_by, supersedes=memory.supersedes)


def find(mine: Mine, wanted: MemoryWanted) -> Page[Memory]:
    """Those that are wanted, in order, a page of them."""
    checks.one_page(wanted.limit, wanted.offset)
    rows = ROWS.where(table.c.user_id == mine.user_id, *_conditions(mine, wanted))
    by = checks.choice(MemorySort, "sort_by", wanted.sort_by)
    rows = ordered(rows, ORDERS[by], table.c.id, wanted.sort_order, nullable=by in OPTIONAL)
    around = place.around(wanted.near_lat, wanted.near_lng, wanted.distance_km)
    if around is not None:
        return _near(mine, rows, around, wanted)
    found, total = page(mine, rows, wanted.limit, wanted.offset)
    return Page([memory_of(row) for row in found], total, wanted.offset)


def current(mine: Mine) -> ColumnElement[bool]:
    """Neither superseded nor expired."""
    return and_(table.c.superseded_by.is_(None), _is_unexpired(mine))


def memory_of(row: RowMapping) -> Memory:
    """From a row that has the columns of both tables."""
    values = {name: row[name] for name in NAMES}
    values |= {
        "memory_type": MemoryType(row["memory_type"]),
        "status": MemoryStatus(row["status"]),
        "tags": items.split(row["tags"]),
        "metadata": json.loads(row["metadata"]),
    }
    return Memory(**values)


def _conditions(mine: Mine, wanted: MemoryWanted) -> list[ColumnElement[bool]]:
    found = [table.c.status == wanted.status, *_captured(mine, wanted), *_felt(wanted)]
    for name in ("memory_type", "is_highlight"):
        value = getattr(wanted, name)
        if value is not None:
            found.append(table.c[name] == value)
    if wanted.among is not None:
        found.append(table.c.id.in_(wanted.among))
    if wanted.search:
        found += has_words(SEARCHED, wanted.search)
    if wanted.tags:
        found.append(items.has_tags(wanted.tags, every=wanted.every_tag))
    if wanted.place_name:
        found.append(contains(func.coalesce(table.c.place_name, ""), wanted.place_name.strip()))
    if wanted.category_id:
        found.append(timeline_items.c.category_id == category_id(mine, wanted.category_id))
    if not wanted.include_superseded:
        found.append(table.c.superseded_by.is_(None))
    if not wanted.include_expired:
        found.append(_is_unexpired(mine))
    return found


def _captured(mine: Mine, wanted: MemoryWanted) -> list[ColumnElement[bool]]:
    zone = zone_of(wanted.timezone, mine.zone_name)
    found: list[ColumnElement[bool]] = []
    if wanted.captured_from:
        found.append(table.c.captured_at >= moment(wanted.captured_from, zone, "captured_from"))
    if wanted.captured_to:
        found.append(up_to(table.c.captured_at, moment(wanted.captured_to, zone, "captured_to", Edge.END)))
    return found


def _felt(wanted: MemoryWanted) -> list[ColumnElement[bool]]:
    found: list[ColumnElement[bool]] = []
    if wanted.min_emotion_valence is not None:
        found.append(table.c.emotion_valence >= wanted.min_emotion_valence)
    if wanted.max_emotion_valence is not None:
        found.append(table.c.emotion_valence <= wanted.max_emotion_valence)
    if wanted.min_salience is not None:
        found.append(table.c.salience_score >= wanted.min_salience)
    return found


def _near(mine: Mine, rows: Select[Any], around: place.Around, wanted: MemoryWanted) -> Page[Memory]:
    """The database knows of boxes alone: which of those in the box are near enough is told here, then the page cut."""
    spots = rows.where(*_in_box(place.box(around))).with_only_columns(
        table.c.id, table.c.latitude, table.c.longitude, maintain_column_froms=True
    )
    found = [row.id for row in mine.connection.execute(spots) if place.is_near(around, row.latitude, row.longitude)]
    ids = found[wanted.offset : wanted.offset + wanted.limit]
    whole = mine.connection.execute(ROWS.where(table.c.user_id == mine.user_id, table.c.id.in_(ids))).mappings()
    memories = {row["id"]: memory_of(row) for row in whole}
    return Page([memories[one] for one in ids], len(found), wanted.offset)


def _in_box(box: place.Box) -> Sequence[ColumnElement[bool]]:
    latitude, longitude = table.c.latitude, table.c.longitude
    within = (latitude >= box.south, latitude <= box.north)
    if box.west <= box.east:
        return (*within, longitude >= box.west, longitude <= box.east)
    return (*within, or_(longitude >= box.west, longitude <= box.east))


def _is_unexpired(mine: Mine) -> ColumnElement[bool]:
    return or_(table.c.expires_at.is_(None), table.c.expires_at > mine.now)


def _is_mine(mine: Mine, memory_id: str) -> ColumnElement[bool]:
    return and_(table.c.user_id == mine.user_id, table.c.id == memory_id)


def _set(mine: Mine, memory_id: str, **values: str | None) -> None:
    mine.connection.execute(update(table).where(_is_mine(mine, memory_id)).values(**values))


def _row(memory: Memory) -> dict[str, Any]:
    values = asdict(memory)
    return {name: values[name] for name in OWN}
