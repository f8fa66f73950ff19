"""Stores, filters and counts memories and their anchors."""

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, fields
from datetime import timedelta
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Integer,
    RowMapping,
    Select,
    and_,
    case,
    cast,
    delete,
    func,
    insert,
    or_,
    select,
    update,
)

from frontdesk.db.schema import memories, memory_anchors, timeline_items
from frontdesk.db.schema import memories as schema_memories
from frontdesk.memory.items_store import fetch_item, has_tags, insert_item, save_item, split_tags
from frontdesk.memory.memories_rules import (
    AnchoredMemory,
    BoundingBox,
    MemoryFilter,
    MemorySort,
    MemoryStats,
    SearchArea,
    bounding_box,
    is_near,
    item_from_memory,
    memory_text,
    parse_search_area,
)
from frontdesk.memory.model import Anchor, AnchorRelation, ItemStatus, Memory, MemoryStatus, MemoryType
from frontdesk.memory.store import (
    PersonTransaction,
    contains_text,
    contains_words,
    fetch_page,
    most_first,
    not_after,
    order_rows,
)
from frontdesk.memory.times import DayEdge, find_zone, parse_time, span_of_days, today_in
from frontdesk.memory.validation import RecordPage, check_page, find_category_id, parse_choice

MEMORY_FIELDS = tuple(field.name for field in fields(Memory))
MEMORY_COLUMNS = tuple(name for name in MEMORY_FIELDS if name in memories.c)
ITEM_COLUMNS = tuple(timeline_items.c[name] for name in MEMORY_FIELDS if name not in memories.c)
MEMORIES_WITH_ITEMS = memories.join(
    timeline_items, and_(timeline_items.c.user_id == memories.c.user_id, timeline_items.c.id == memories.c.id)
)
MEMORY_ROWS = select(memories, *ITEM_COLUMNS).select_from(MEMORIES_WITH_ITEMS)
SEARCHED_COLUMNS = (
    timeline_items.c.title,
    memories.c.note,
    timeline_items.c.tags,
    func.coalesce(memories.c.place_name, ""),
)
SORT_COLUMNS: dict[MemorySort, ColumnElement[Any]] = {
    MemorySort.CAPTURED_AT: memories.c.captured_at,
    MemorySort.HAPPENED_AT: timeline_items.c.start_time,
    MemorySort.SALIENCE_SCORE: memories.c.salience_score,
    MemorySort.EMOTION_VALENCE: memories.c.emotion_valence,
    MemorySort.UPDATED_AT: timeline_items.c.updated_at,
    MemorySort.CREATED_AT: timeline_items.c.created_at,
}
NULLABLE_SORTS = (MemorySort.SALIENCE_SCORE, MemorySort.EMOTION_VALENCE)


def insert_memory(mine: PersonTransaction, memory: Memory) -> None:
    insert_item(mine, item_from_memory(memory), memory_text(memory))
    mine.connection.execute(insert(memories).values(user_id=mine.user_id, **_memory_row(memory)))


def save_memory(mine: PersonTransaction, memory: Memory) -> None:
    was = fetch_item(mine, memory.id)
    save_item(mine, item_from_memory(memory, was), memory_text(memory))
    mine.connection.execute(update(memories).where(_is_memory(mine, memory.id)).values(**_memory_row(memory)))


def fetch_memory(mine: PersonTransaction, memory_id: str, *, deleted: bool = False) -> Memory | None:
    """Fetch a memory that was not deleted; with `deleted`, any memory."""
    wanted = MEMORY_ROWS.where(_is_memory(mine, memory_id))
    wanted = wanted if deleted else wanted.where(memories.c.status != MemoryStatus.DELETED)
    row = mine.connection.execute(wanted).mappings().one_or_none()
    return memory_from_row(row) if row else None


def fetch_memories(mine: PersonTransaction, ids: Sequence[str]) -> dict[str, Memory]:
    """Fetch the memories with these ids that were not deleted, by their ids."""
    shown = (memories.c.user_id == mine.user_id, memories.c.id.in_(ids), memories.c.status != MemoryStatus.DELETED)
    return {row["id"]: memory_from_row(row) for row in mine.connection.execute(MEMORY_ROWS.where(*shown)).mappings()}


def link_superseded(mine: PersonTransaction, older: str, newer: str) -> None:
    """Note that the newer memory supersedes the older one."""
    _set_columns(mine, older, superseded_by=newer)
    _set_columns(mine, newer, supersedes=older)


def unlink_superseded(mine: PersonTransaction, memory: Memory) -> None:
    """Take a memory out of its chain, and join the ends."""
    if memory.supersedes is not None:
        _set_columns(mine, memory.supersedes, superseded_by=memory.superseded_by)
    if memory.superseded_by is not None:
        _set_columns(mine, memory.superseded_by, supersedes=memory.supersedes)


def list_memories(mine: PersonTransaction, wanted: MemoryFilter) -> RecordPage[Memory]:
    """A page of the memories that pass a filter, in its order."""
    check_page(wanted.limit, wanted.offset)
    rows = MEMORY_ROWS.where(memories.c.user_id == mine.user_id, *_filter_conditions(mine, wanted))
    by = parse_choice(MemorySort, "sort_by", wanted.sort_by)
    rows = order_rows(rows, SORT_COLUMNS[by], memories.c.id, wanted.sort_order, nullable=by in NULLABLE_SORTS)
    around = parse_search_area(wanted.near_lat, wanted.near_lng, wanted.distance_km)
    if around is not None:
        return _list_nearby(mine, rows, around, wanted)
    found, total = fetch_page(mine, rows, wanted.limit, wanted.offset)
    return RecordPage([memory_from_row(row) for row in found], total, wanted.offset)


def is_current_memory(mine: PersonTransaction) -> ColumnElement[bool]:
    """A condition: neither superseded nor expired."""
    return and_(memories.c.superseded_by.is_(None), _is_unexpired(mine))


def memory_from_row(row: RowMapping) -> Memory:
    """Build a memory from a row with the columns of both tables."""
    values = {name: row[name] for name in MEMORY_FIELDS}
    values |= {
        "memory_type": MemoryType(row["memory_type"]),
        "status": MemoryStatus(row["status"]),
        "tags": split_tags(row["tags"]),
        "metadata": json.loads(row["metadata"]),
    }
    return Memory(**values)


def _filter_conditions(mine: PersonTransaction, wanted: MemoryFilter) -> list[ColumnElement[bool]]:
    found = [memories.c.status == wanted.status, *_capture_conditions(mine, wanted), *_feeling_conditions(wanted)]
    for name in ("memory_type", "is_highlight"):
        value = getattr(wanted, name)
        if value is not None:
            found.append(memories.c[name] == value)
    if wanted.among is not None:
        found.append(memories.c.id.in_(wanted.among))
    if wanted.search:
        found += contains_words(SEARCHED_COLUMNS, wanted.search)
    if wanted.tags:
        found.append(has_tags(wanted.tags, every=wanted.every_tag))
    if wanted.place_name:
        found.append(contains_text(func.coalesce(memories.c.place_name, ""), wanted.place_name.strip()))
    if wanted.category_id:
        found.append(timeline_items.c.category_id == find_category_id(mine, wanted.category_id))
    if not wanted.include_superseded:
        found.append(memories.c.superseded_by.is_(None))
    if not wanted.include_expired:
        found.append(_is_unexpired(mine))
    return found


def _capture_conditions(mine: PersonTransaction, wanted: MemoryFilter) -> list[ColumnElement[bool]]:
    zone = find_zone(wanted.timezone, mine.zone_name)
    found: list[ColumnElement[bool]] = []
    if wanted.captured_from:
        found.append(memories.c.captured_at >= parse_time(wanted.captured_from, zone, "captured_from"))
    if wanted.captured_to:
        found.append(
            not_after(memories.c.captured_at, parse_time(wanted.captured_to, zone, "captured_to", DayEdge.END))
        )
    return found


def _feeling_conditions(wanted: MemoryFilter) -> list[ColumnElement[bool]]:
    found: list[ColumnElement[bool]] = []
    if wanted.min_emotion_valence is not None:
        found.append(memories.c.emotion_valence >= wanted.min_emotion_valence)
    if wanted.max_emotion_valence is not None:
        found.append(memories.c.emotion_valence <= wanted.max_emotion_valence)
    if wanted.min_salience is not None:
        found.append(memories.c.salience_score >= wanted.min_salience)
    return found


def _list_nearby(
    mine: PersonTransaction, rows: Select[Any], around: SearchArea, wanted: MemoryFilter
) -> RecordPage[Memory]:
    """The database filters by a box only. Here the exact distance is checked, then the page is cut."""
    spots = rows.where(*_box_conditions(bounding_box(around))).with_only_columns(
        schema_memories.c.id, schema_memories.c.latitude, schema_memories.c.longitude, maintain_column_froms=True
    )
    found = [row.id for row in mine.connection.execute(spots) if is_near(around, row.latitude, row.longitude)]
    ids = found[wanted.offset : wanted.offset + wanted.limit]
    whole = mine.connection.execute(
        MEMORY_ROWS.where(schema_memories.c.user_id == mine.user_id, schema_memories.c.id.in_(ids))
    ).mappings()
    memories = {row["id"]: memory_from_row(row) for row in whole}
    return RecordPage([memories[one] for one in ids], len(found), wanted.offset)


def _box_conditions(box: BoundingBox) -> Sequence[ColumnElement[bool]]:
    latitude, longitude = memories.c.latitude, memories.c.longitude
    within = (latitude >= box.south, latitude <= box.north)
    if box.west <= box.east:
        return (*within, longitude >= box.west, longitude <= box.east)
    return (*within, or_(longitude >= box.west, longitude <= box.east))


def _is_unexpired(mine: PersonTransaction) -> ColumnElement[bool]:
    return or_(memories.c.expires_at.is_(None), memories.c.expires_at > mine.now)


def _is_memory(mine: PersonTransaction, memory_id: str) -> ColumnElement[bool]:
    return and_(memories.c.user_id == mine.user_id, memories.c.id == memory_id)


def _set_columns(mine: PersonTransaction, memory_id: str, **values: str | None) -> None:
    mine.connection.execute(update(memories).where(_is_memory(mine, memory_id)).values(**values))


def _memory_row(memory: Memory) -> dict[str, Any]:
    values = asdict(memory)
    return {name: values[name] for name in MEMORY_COLUMNS}


ANCHOR_FIELDS = tuple(field.name for field in fields(Anchor))


def save_anchor(mine: PersonTransaction, anchor: Anchor) -> None:
    """Insert an anchor, or replace the one of the same relation."""
    this = and_(_is_of_memory(mine, anchor.memory_id), _is_to_item(anchor.anchor_item_id, anchor.relation))
    if mine.connection.execute(update(memory_anchors).where(this).values(**asdict(anchor))).rowcount == 0:
        mine.connection.execute(insert(memory_anchors).values(user_id=mine.user_id, **asdict(anchor)))


def fetch_anchor(mine: PersonTransaction, memory_id: str, item_id: str, relation: AnchorRelation) -> Anchor | None:
    this = and_(_is_of_memory(mine, memory_id), _is_to_item(item_id, relation))
    row = mine.connection.execute(select(memory_anchors).where(this)).mappings().one_or_none()
    return _anchor_from_row(row) if row else None


def list_anchors(mine: PersonTransaction, memory_id: str) -> Sequence[Anchor]:
    """The anchors of a memory, the largest weight first, without those to deleted items."""
    to_item = and_(
        timeline_items.c.user_id == memory_anchors.c.user_id, timeline_items.c.id == memory_anchors.c.anchor_item_id
    )
    shown = (_is_of_memory(mine, memory_id), to_item, timeline_items.c.status != ItemStatus.DELETED)
    found = (
        select(memory_anchors)
        .where(*shown)
        .order_by(memory_anchors.c.weight.desc(), memory_anchors.c.anchor_item_id, memory_anchors.c.relation)
    )
    return [_anchor_from_row(row) for row in mine.connection.execute(found).mappings()]


def list_anchored_memories(mine: PersonTransaction, item_id: str) -> Sequence[AnchoredMemory]:
    """The listed memories that are anchored to an item, the largest weight first."""
    hung = and_(memory_anchors.c.user_id == memories.c.user_id, memory_anchors.c.memory_id == memories.c.id)
    named = [memory_anchors.c[name].label(f"anchor_{name}") for name in ANCHOR_FIELDS]
    mine_alone = (memory_anchors.c.user_id == mine.user_id, memory_anchors.c.anchor_item_id == item_id, hung)
    shown = (memories.c.status != MemoryStatus.DELETED, is_current_memory(mine))
    found = (
        MEMORY_ROWS.add_columns(*named)
        .where(*mine_alone, *shown)
        .order_by(memory_anchors.c.weight.desc(), memories.c.id)
    )
    return [
        AnchoredMemory(anchor=_anchor_from_row(row, "anchor_"), memory=memory_from_row(row))
        for row in mine.connection.execute(found).mappings()
    ]


def delete_anchors(mine: PersonTransaction, memory_id: str, item_id: str, relation: AnchorRelation | None) -> int:
    """Delete all anchors of a memory to an item, or the one of this relation. Returns how many there were."""
    this = and_(_is_of_memory(mine, memory_id), _is_to_item(item_id, relation))
    return mine.connection.execute(delete(memory_anchors).where(this)).rowcount


def _is_of_memory(mine: PersonTransaction, memory_id: str) -> ColumnElement[bool]:
    return and_(memory_anchors.c.user_id == mine.user_id, memory_anchors.c.memory_id == memory_id)


def _is_to_item(item_id: str, relation: AnchorRelation | None) -> ColumnElement[bool]:
    there = memory_anchors.c.anchor_item_id == item_id
    return there if relation is None else and_(there, memory_anchors.c.relation == relation)


def _anchor_from_row(row: RowMapping, prefix: str = "") -> Anchor:
    values: dict[str, Any] = {name: row[f"{prefix}{name}"] for name in ANCHOR_FIELDS}
    values["relation"] = AnchorRelation(values["relation"])
    return Anchor(**values)


MOST_USED = 10


def memory_stats(mine: PersonTransaction, zone: str | None = None) -> MemoryStats:
    """Statistics. This week begins on Monday in the person's time zone."""
    shown = _is_listed(mine)
    sums = select(
        func.count().label("total"),
        func.sum(cast(memories.c.is_highlight, Integer)).label("highlights"),
        func.avg(memories.c.emotion_valence).label("valence"),
        func.avg(memories.c.salience_score).label("salience"),
        *_recent_counts(mine, zone),
    )
    row = mine.connection.execute(sums.where(shown)).one()
    return MemoryStats(
        total=row.total,
        superseded=_count_memories(mine, memories.c.superseded_by.is_not(None)),
        expired=_count_memories(mine, memories.c.superseded_by.is_(None), memories.c.expires_at <= mine.now),
        by_type=_count_by(mine, memories.c.memory_type, shown),
        by_status=_count_by(mine, memories.c.status, shown),
        highlights=row.highlights or 0,
        average_valence=_round_average(row.valence),
        average_salience=_round_average(row.salience),
        by_place=_count_by(mine, memories.c.place_name, and_(shown, memories.c.place_name.is_not(None)), MOST_USED),
        by_tag=_count_tags(mine, shown),
        this_week=row.this_week or 0,
        this_month=row.this_month or 0,
    )


def _recent_counts(mine: PersonTransaction, zone: str | None) -> list[ColumnElement[Any]]:
    where = find_zone(zone, mine.zone_name)
    day = today_in(mine.now, where)
    firsts = {"this_week": day - timedelta(days=day.weekday()), "this_month": day.replace(day=1)}
    since = {name: span_of_days(first, where).start for name, first in firsts.items()}
    return [func.sum(case((memories.c.captured_at >= start, 1), else_=0)).label(name) for name, start in since.items()]


def _count_by(
    mine: PersonTransaction, column: ColumnElement[Any], which: ColumnElement[bool], most: int | None = None
) -> dict[str, int]:
    number = func.count()
    grouped = select(column, number).where(which).group_by(column).order_by(number.desc(), column).limit(most)
    return {value: times for value, times in mine.connection.execute(grouped)}  # noqa: C416 - rows are no pairs


def _count_tags(mine: PersonTransaction, which: ColumnElement[bool]) -> dict[str, int]:
    """Count tags in any case."""
    together = and_(timeline_items.c.user_id == memories.c.user_id, timeline_items.c.id == memories.c.id)
    grouped = select(timeline_items.c.tags, func.count()).where(together, which, timeline_items.c.tags != "")
    found: Counter[str] = Counter()
    for tags, times in mine.connection.execute(grouped.group_by(timeline_items.c.tags)):
        found.update(dict.fromkeys((tag.casefold() for tag in split_tags(tags)), times))
    return most_first(found.most_common(MOST_USED))


def _count_memories(mine: PersonTransaction, *which: ColumnElement[bool]) -> int:
    kept = (memories.c.user_id == mine.user_id, memories.c.status != MemoryStatus.DELETED)
    return mine.connection.execute(select(func.count()).where(*kept, *which)).scalar_one()


def _is_listed(mine: PersonTransaction) -> ColumnElement[bool]:
    return and_(memories.c.user_id == mine.user_id, memories.c.status != MemoryStatus.DELETED, is_current_memory(mine))


def _round_average(value: Any) -> float | None:  # noqa: ANN401 - PostgreSQL's averages are decimals, SQLite's floats
    return None if value is None else round(float(value), 2)
