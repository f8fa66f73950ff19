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


def insert_memory(transaction: PersonTransaction, memory: Memory) -> None:
    insert_item(transaction, item_from_memory(memory), memory_text(memory))
    transaction.connection.execute(insert(memories).values(user_id=transaction.user_id, **_memory_row(memory)))


def save_memory(transaction: PersonTransaction, memory: Memory) -> None:
    was = fetch_item(transaction, memory.id)
    save_item(transaction, item_from_memory(memory, was), memory_text(memory))
    transaction.connection.execute(
        update(memories).where(_is_memory(transaction, memory.id)).values(**_memory_row(memory))
    )


def fetch_memory(transaction: PersonTransaction, memory_id: str, *, deleted: bool = False) -> Memory | None:
    """Fetch a memory that was not deleted; with `deleted`, any memory."""
    wanted = MEMORY_ROWS.where(_is_memory(transaction, memory_id))
    wanted = wanted if deleted else wanted.where(memories.c.status != MemoryStatus.DELETED)
    row = transaction.connection.execute(wanted).mappings().one_or_none()
    return memory_from_row(row) if row else None


def fetch_memories(transaction: PersonTransaction, ids: Sequence[str]) -> dict[str, Memory]:
    """Fetch the memories with these ids that were not deleted, by their ids."""
    shown = (
        memories.c.user_id == transaction.user_id,
        memories.c.id.in_(ids),
        memories.c.status != MemoryStatus.DELETED,
    )
    return {
        row["id"]: memory_from_row(row) for row in transaction.connection.execute(MEMORY_ROWS.where(*shown)).mappings()
    }


def link_superseded(transaction: PersonTransaction, older: str, newer: str) -> None:
    """Note that the newer memory supersedes the older one."""
    _set_columns(transaction, older, superseded_by=newer)
    _set_columns(transaction, newer, supersedes=older)


def unlink_superseded(transaction: PersonTransaction, memory: Memory) -> None:
    """Take a memory out of its chain, and join the ends."""
    if memory.supersedes is not None:
        _set_columns(transaction, memory.supersedes, superseded_by=memory.superseded_by)
    if memory.superseded_by is not None:
        _set_columns(transaction, memory.superseded_by, supersedes=memory.supersedes)


def list_memories(transaction: PersonTransaction, filters: MemoryFilter) -> RecordPage[Memory]:
    """A page of the memories that pass a filter, in its order."""
    check_page(filters.limit, filters.offset)
    rows = MEMORY_ROWS.where(memories.c.user_id == transaction.user_id, *_filter_conditions(transaction, filters))
    by = parse_choice(MemorySort, "sort_by", filters.sort_by)
    rows = order_rows(rows, SORT_COLUMNS[by], memories.c.id, filters.sort_order, nullable=by in NULLABLE_SORTS)
    around = parse_search_area(filters.near_lat, filters.near_lng, filters.distance_km)
    if around is not None:
        return _list_nearby(transaction, rows, around, filters)
    found, total = fetch_page(transaction, rows, filters.limit, filters.offset)
    return RecordPage([memory_from_row(row) for row in found], total, filters.offset)


def is_current_memory(transaction: PersonTransaction) -> ColumnElement[bool]:
    """A condition: neither superseded nor expired."""
    return and_(memories.c.superseded_by.is_(None), _is_unexpired(transaction))


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


def _filter_conditions(transaction: PersonTransaction, filters: MemoryFilter) -> list[ColumnElement[bool]]:
    found = [
        memories.c.status == filters.status,
        *_capture_conditions(transaction, filters),
        *_feeling_conditions(filters),
    ]
    for name in ("memory_type", "is_highlight"):
        value = getattr(filters, name)
        if value is not None:
            found.append(memories.c[name] == value)
    if filters.among is not None:
        found.append(memories.c.id.in_(filters.among))
    if filters.search:
        found += contains_words(SEARCHED_COLUMNS, filters.search)
    if filters.tags:
        found.append(has_tags(filters.tags, every=filters.every_tag))
    if filters.place_name:
        found.append(contains_text(func.coalesce(memories.c.place_name, ""), filters.place_name.strip()))
    if filters.category_id:
        found.append(timeline_items.c.category_id == find_category_id(transaction, filters.category_id))
    if not filters.include_superseded:
        found.append(memories.c.superseded_by.is_(None))
    if not filters.include_expired:
        found.append(_is_unexpired(transaction))
    return found


def _capture_conditions(transaction: PersonTransaction, filters: MemoryFilter) -> list[ColumnElement[bool]]:
    zone = find_zone(filters.timezone, transaction.zone_name)
    found: list[ColumnElement[bool]] = []
    if filters.captured_from:
        found.append(memories.c.captured_at >= parse_time(filters.captured_from, zone, "captured_from"))
    if filters.captured_to:
        found.append(
            not_after(memories.c.captured_at, parse_time(filters.captured_to, zone, "captured_to", DayEdge.END))
        )
    return found


def _feeling_conditions(filters: MemoryFilter) -> list[ColumnElement[bool]]:
    found: list[ColumnElement[bool]] = []
    if filters.min_emotion_valence is not None:
        found.append(memories.c.emotion_valence >= filters.min_emotion_valence)
    if filters.max_emotion_valence is not None:
        found.append(memories.c.emotion_valence <= filters.max_emotion_valence)
    if filters.min_salience is not None:
        found.append(memories.c.salience_score >= filters.min_salience)
    return found


def _list_nearby(
    transaction: PersonTransaction, rows: Select[Any], around: SearchArea, filters: MemoryFilter
) -> RecordPage[Memory]:
    """The database filters by a box only. Here the exact distance is checked, then the page is cut."""
    spots = rows.where(*_box_conditions(bounding_box(around))).with_only_columns(
        schema_memories.c.id, schema_memories.c.latitude, schema_memories.c.longitude, maintain_column_froms=True
    )
    found = [row.id for row in transaction.connection.execute(spots) if is_near(around, row.latitude, row.longitude)]
    ids = found[filters.offset : filters.offset + filters.limit]
    whole = transaction.connection.execute(
        MEMORY_ROWS.where(schema_memories.c.user_id == transaction.user_id, schema_memories.c.id.in_(ids))
    ).mappings()
    memories = {row["id"]: memory_from_row(row) for row in whole}
    return RecordPage([memories[one] for one in ids], len(found), filters.offset)


def _box_conditions(box: BoundingBox) -> Sequence[ColumnElement[bool]]:
    latitude, longitude = memories.c.latitude, memories.c.longitude
    within = (latitude >= box.south, latitude <= box.north)
    if box.west <= box.east:
        return (*within, longitude >= box.west, longitude <= box.east)
    return (*within, or_(longitude >= box.west, longitude <= box.east))


def _is_unexpired(transaction: PersonTransaction) -> ColumnElement[bool]:
    return or_(memories.c.expires_at.is_(None), memories.c.expires_at > transaction.now)


def _is_memory(transaction: PersonTransaction, memory_id: str) -> ColumnElement[bool]:
    return and_(memories.c.user_id == transaction.user_id, memories.c.id == memory_id)


def _set_columns(transaction: PersonTransaction, memory_id: str, **values: str | None) -> None:
    transaction.connection.execute(update(memories).where(_is_memory(transaction, memory_id)).values(**values))


def _memory_row(memory: Memory) -> dict[str, Any]:
    values = asdict(memory)
    return {name: values[name] for name in MEMORY_COLUMNS}


ANCHOR_FIELDS = tuple(field.name for field in fields(Anchor))


def save_anchor(transaction: PersonTransaction, anchor: Anchor) -> None:
    """Insert an anchor, or replace the one of the same relation."""
    this = and_(_is_of_memory(transaction, anchor.memory_id), _is_to_item(anchor.anchor_item_id, anchor.relation))
    if transaction.connection.execute(update(memory_anchors).where(this).values(**asdict(anchor))).rowcount == 0:
        transaction.connection.execute(insert(memory_anchors).values(user_id=transaction.user_id, **asdict(anchor)))


def fetch_anchor(
    transaction: PersonTransaction, memory_id: str, item_id: str, relation: AnchorRelation
) -> Anchor | None:
    this = and_(_is_of_memory(transaction, memory_id), _is_to_item(item_id, relation))
    row = transaction.connection.execute(select(memory_anchors).where(this)).mappings().one_or_none()
    return _anchor_from_row(row) if row else None


def list_anchors(transaction: PersonTransaction, memory_id: str) -> Sequence[Anchor]:
    """The anchors of a memory, the largest weight first, without those to deleted items."""
    to_item = and_(
        timeline_items.c.user_id == memory_anchors.c.user_id, timeline_items.c.id == memory_anchors.c.anchor_item_id
    )
    shown = (_is_of_memory(transaction, memory_id), to_item, timeline_items.c.status != ItemStatus.DELETED)
    query = (
        select(memory_anchors)
        .where(*shown)
        .order_by(memory_anchors.c.weight.desc(), memory_anchors.c.anchor_item_id, memory_anchors.c.relation)
    )
    return [_anchor_from_row(row) for row in transaction.connection.execute(query).mappings()]


def list_anchored_memories(transaction: PersonTransaction, item_id: str) -> Sequence[AnchoredMemory]:
    """The listed memories that are anchored to an item, the largest weight first."""
    hung = and_(memory_anchors.c.user_id == memories.c.user_id, memory_anchors.c.memory_id == memories.c.id)
    named = [memory_anchors.c[name].label(f"anchor_{name}") for name in ANCHOR_FIELDS]
    mine_alone = (memory_anchors.c.user_id == transaction.user_id, memory_anchors.c.anchor_item_id == item_id, hung)
    shown = (memories.c.status != MemoryStatus.DELETED, is_current_memory(transaction))
    found = (
        MEMORY_ROWS.add_columns(*named)
        .where(*mine_alone, *shown)
        .order_by(memory_anchors.c.weight.desc(), memories.c.id)
    )
    return [
        AnchoredMemory(anchor=_anchor_from_row(row, "anchor_"), memory=memory_from_row(row))
        for row in transaction.connection.execute(found).mappings()
    ]


def delete_anchors(
    transaction: PersonTransaction, memory_id: str, item_id: str, relation: AnchorRelation | None
) -> int:
    """Delete all anchors of a memory to an item, or the one of this relation. Returns how many there were."""
    this = and_(_is_of_memory(transaction, memory_id), _is_to_item(item_id, relation))
    return transaction.connection.execute(delete(memory_anchors).where(this)).rowcount


def _is_of_memory(transaction: PersonTransaction, memory_id: str) -> ColumnElement[bool]:
    return and_(memory_anchors.c.user_id == transaction.user_id, memory_anchors.c.memory_id == memory_id)


def _is_to_item(item_id: str, relation: AnchorRelation | None) -> ColumnElement[bool]:
    there = memory_anchors.c.anchor_item_id == item_id
    return there if relation is None else and_(there, memory_anchors.c.relation == relation)


def _anchor_from_row(row: RowMapping, prefix: str = "") -> Anchor:
    values: dict[str, Any] = {name: row[f"{prefix}{name}"] for name in ANCHOR_FIELDS}
    values["relation"] = AnchorRelation(values["relation"])
    return Anchor(**values)


MOST_USED = 10


def memory_stats(transaction: PersonTransaction, zone: str | None = None) -> MemoryStats:
    """Statistics. This week begins on Monday in the person's time zone."""
    shown = _is_listed(transaction)
    sums = select(
        func.count().label("total"),
        func.sum(cast(memories.c.is_highlight, Integer)).label("highlights"),
        func.avg(memories.c.emotion_valence).label("valence"),
        func.avg(memories.c.salience_score).label("salience"),
        *_recent_counts(transaction, zone),
    )
    row = transaction.connection.execute(sums.where(shown)).one()
    return MemoryStats(
        total=row.total,
        superseded=_count_memories(transaction, memories.c.superseded_by.is_not(None)),
        expired=_count_memories(
            transaction, memories.c.superseded_by.is_(None), memories.c.expires_at <= transaction.now
        ),
        by_type=_count_by(transaction, memories.c.memory_type, shown),
        by_status=_count_by(transaction, memories.c.status, shown),
        highlights=row.highlights or 0,
        average_valence=_round_average(row.valence),
        average_salience=_round_average(row.salience),
        by_place=_count_by(
            transaction, memories.c.place_name, and_(shown, memories.c.place_name.is_not(None)), MOST_USED
        ),
        by_tag=_count_tags(transaction, shown),
        this_week=row.this_week or 0,
        this_month=row.this_month or 0,
    )


def _recent_counts(transaction: PersonTransaction, zone: str | None) -> list[ColumnElement[Any]]:
    where = find_zone(zone, transaction.zone_name)
    day = today_in(transaction.now, where)
    firsts = {"this_week": day - timedelta(days=day.weekday()), "this_month": day.replace(day=1)}
    since = {name: span_of_days(first, where).start for name, first in firsts.items()}
    return [func.sum(case((memories.c.captured_at >= start, 1), else_=0)).label(name) for name, start in since.items()]


def _count_by(
    transaction: PersonTransaction, column: ColumnElement[Any], which: ColumnElement[bool], most: int | None = None
) -> dict[str, int]:
    number = func.count()
    grouped = select(column, number).where(which).group_by(column).order_by(number.desc(), column).limit(most)
    return {value: times for value, times in transaction.connection.execute(grouped)}  # noqa: C416 - rows are no pairs


def _count_tags(transaction: PersonTransaction, which: ColumnElement[bool]) -> dict[str, int]:
    """Count tags in any case."""
    together = and_(timeline_items.c.user_id == memories.c.user_id, timeline_items.c.id == memories.c.id)
    grouped = select(timeline_items.c.tags, func.count()).where(together, which, timeline_items.c.tags != "")
    found: Counter[str] = Counter()
    for tags, times in transaction.connection.execute(grouped.group_by(timeline_items.c.tags)):
        found.update(dict.fromkeys((tag.casefold() for tag in split_tags(tags)), times))
    return most_first(found.most_common(MOST_USED))


def _count_memories(transaction: PersonTransaction, *which: ColumnElement[bool]) -> int:
    kept = (memories.c.user_id == transaction.user_id, memories.c.status != MemoryStatus.DELETED)
    return transaction.connection.execute(select(func.count()).where(*kept, *which)).scalar_one()


def _is_listed(transaction: PersonTransaction) -> ColumnElement[bool]:
    return and_(
        memories.c.user_id == transaction.user_id,
        memories.c.status != MemoryStatus.DELETED,
        is_current_memory(transaction),
    )


def _round_average(value: Any) -> float | None:  # noqa: ANN401 - PostgreSQL's averages are decimals, SQLite's floats
    return None if value is None else round(float(value), 2)
