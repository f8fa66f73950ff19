"""Reads the items that a search may return, and the items around a hit."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import (
    Column,
    ColumnElement,
    Float,
    Select,
    Table,
    and_,
    bindparam,
    case,
    cast,
    extract,
    func,
    literal,
    or_,
    select,
    union_all,
)

from frontdesk.db.schema import memories, memory_anchors, people, recall_docs, task_relations, tasks, timeline_items
from frontdesk.db.statements import one_of
from frontdesk.errors import Invalid
from frontdesk.memory.items_store import has_tags, item_from_row
from frontdesk.memory.model import ContextItem, ContextRelation, ItemSearch, ItemStatus, ItemType, TimelineItem
from frontdesk.memory.store import PersonTransaction, contains_text, not_after
from frontdesk.memory.times import DayEdge, find_zone, parse_time
from frontdesk.memory.validation import find_category_id
from frontdesk.search.vectors import Floats, Mask, Numbers

Condition = ColumnElement[bool]

HIDDEN_STATUSES = (ItemStatus.DELETED, ItemStatus.ARCHIVED)
# If the filters leave at most this many items, all of them are ranked.
FEW_ITEMS = 1_000
ITEM_TIME = func.coalesce(timeline_items.c.start_time, timeline_items.c.created_at)
DOCUMENTS_WITH_ITEMS = recall_docs.join(
    timeline_items,
    and_(timeline_items.c.user_id == recall_docs.c.user_id, timeline_items.c.id == recall_docs.c.item_id),
)
DOCUMENTS_WITH_MEMORIES = DOCUMENTS_WITH_ITEMS.outerjoin(
    memories, and_(memories.c.user_id == timeline_items.c.user_id, memories.c.id == timeline_items.c.id)
)
_IS_OWN = recall_docs.c.user_id == bindparam("whose")
_SELECT_COUNTS = select(people.c.found, people.c.numbered).where(people.c.user_id == bindparam("whose"))
_SELECT_CANDIDATES = (
    select(
        recall_docs.c.n,
        cast(extract("epoch", ITEM_TIME), Float),
        case((timeline_items.c.type == ItemType.MEMORY, 1), else_=0),
        func.coalesce(memories.c.salience_score, 0.0),
    )
    .select_from(DOCUMENTS_WITH_MEMORIES)
    .where(_IS_OWN, one_of(recall_docs.c.n, "numbers"))
    .order_by(recall_docs.c.n)
)
_SELECT_ITEMS = (
    select(timeline_items, recall_docs.c.n, recall_docs.c.text)
    .select_from(DOCUMENTS_WITH_ITEMS)
    .where(_IS_OWN, one_of(recall_docs.c.n, "numbers"))
)


@dataclass(frozen=True, slots=True)
class SearchCandidates:
    """Items that may be hits, in ascending order of their numbers, with their times in Unix seconds.

    `allowed` marks those that pass the filters; the others count only as neighbours.
    """

    numbers: Numbers
    seconds: NDArray[np.float64]
    memories: Mask
    salience: Floats
    allowed: Mask


def fetch_index_counts(transaction: PersonTransaction) -> tuple[int, int]:
    """How many items of the person are indexed, and the number of the last one."""
    row = transaction.connection.execute(_SELECT_COUNTS, {"whose": transaction.user_id}).one_or_none()
    return (0, 0) if row is None else (row.found, row.numbered)


def search_conditions(transaction: PersonTransaction, query: ItemSearch) -> list[Condition]:
    """The filters of a search as conditions, those with a database index first."""
    return [*_indexed_conditions(transaction, query), *_item_conditions(query), *_memory_conditions(transaction, query)]


def fetch_few_numbers(transaction: PersonTransaction, query: ItemSearch, items: int) -> Sequence[int] | None:
    """The numbers of all items that pass one of the indexed filters; None if they are not few among `items`."""
    if items <= FEW_ITEMS:
        return None
    for condition in _indexed_conditions(transaction, query):
        inside = and_(timeline_items.c.user_id == transaction.user_id, condition)
        counted = select(literal(1)).select_from(timeline_items).where(inside).limit(FEW_ITEMS + 1).subquery()
        if transaction.connection.execute(select(func.count()).select_from(counted)).scalar_one() <= FEW_ITEMS:
            wanted = (
                select(recall_docs.c.n)
                .select_from(DOCUMENTS_WITH_ITEMS)
                .where(recall_docs.c.user_id == transaction.user_id, inside)
            )
            return transaction.connection.execute(wanted).scalars().all()
    return None


def fetch_candidates(
    transaction: PersonTransaction, numbers: Sequence[int], conditions: Sequence[Condition]
) -> SearchCandidates:
    """The items with these numbers as candidates, without deleted ones."""
    wanted = _SELECT_CANDIDATES.add_columns(case((and_(*conditions), 1), else_=0))
    rows = transaction.connection.execute(wanted, {"whose": transaction.user_id, "numbers": list(numbers)}).all()
    columns = np.array([tuple(row) for row in rows], np.float64).reshape(-1, 5).T
    return SearchCandidates(
        columns[0].astype(np.int32), columns[1], columns[2] > 0, columns[3].astype(np.float32), columns[4] > 0
    )


def fetch_items(transaction: PersonTransaction, numbers: Sequence[int]) -> Mapping[int, tuple[TimelineItem, str]]:
    """Items by their numbers, each with its indexed text."""
    rows = transaction.connection.execute(
        _SELECT_ITEMS, {"whose": transaction.user_id, "numbers": list(numbers)}
    ).mappings()
    return {row["n"]: (item_from_row(row), row["text"]) for row in rows}


def _indexed_conditions(transaction: PersonTransaction, query: ItemSearch) -> list[Condition]:
    found: list[Condition] = []
    if query.types is not None:
        found.append(timeline_items.c.type.in_(sorted(query.types)))
    if query.category:
        found.append(timeline_items.c.category_id == find_category_id(transaction, query.category))
    zone = find_zone(query.zone, transaction.zone_name)
    start = parse_time(query.date_from, zone, "date_from") if query.date_from else None
    end = parse_time(query.date_to, zone, "date_to", DayEdge.END) if query.date_to else None
    if start is not None or end is not None:
        found.append(_time_condition(lambda column: _between_times(column, start, end)))
    return found


def _time_condition(holds: Callable[[ColumnElement[datetime]], Condition]) -> Condition:
    """A condition on an item's start, or on its creation if it has no start. In this form both indexes are used."""
    made, begun = timeline_items.c.created_at, timeline_items.c.start_time
    return or_(holds(begun), and_(begun.is_(None), holds(made)))


def _between_times(column: ColumnElement[datetime], start: datetime | None, end: datetime | None) -> Condition:
    bounds = ([] if start is None else [column >= start]) + ([] if end is None else [not_after(column, end)])
    return and_(*bounds)


def _item_conditions(query: ItemSearch) -> list[Condition]:
    status = timeline_items.c.status
    found: list[Condition] = []
    found.append(status.not_in(HIDDEN_STATUSES) if query.statuses is None else status.in_(sorted(query.statuses)))
    if query.tags:
        found.append(has_tags(query.tags, every=query.every_tag))
    return found


def _memory_conditions(transaction: PersonTransaction, query: ItemSearch) -> list[Condition]:
    equal = {"memory_type": query.memory_type, "is_highlight": query.is_highlight}
    found: list[Condition] = [memories.c[name] == value for name, value in equal.items() if value is not None]
    if not query.include_superseded:
        found.append(memories.c.superseded_by.is_(None))
    if not query.include_expired:
        found.append(or_(memories.c.expires_at.is_(None), memories.c.expires_at > transaction.now))
    if query.place_name:
        found.append(contains_text(func.coalesce(memories.c.place_name, ""), query.place_name.strip()))
    if query.min_salience is not None:
        found.append(memories.c.salience_score >= query.min_salience)
    if query.min_emotion_valence is not None:
        found.append(memories.c.emotion_valence >= query.min_emotion_valence)
    if query.max_emotion_valence is not None:
        found.append(memories.c.emotion_valence <= query.max_emotion_valence)
    return found


# An item, an item near it, and the relation of the second to the first.
ContextPair: TypeAlias = tuple[str, str, ContextRelation]

MAX_DEPTH, MAX_ITEMS = 5, 100
# For all items together: one item may have thousands of relations.
MAX_RELATED = 1_000
_USER_ID = bindparam("whose", type_=recall_docs.c.user_id.type)
_SELECT_NUMBERS = select(recall_docs.c.n, recall_docs.c.item_id).where(recall_docs.c.user_id == _USER_ID)
_NOW = bindparam("now", type_=memories.c.expires_at.type)
_SELECT_SHOWN = (
    select(timeline_items)
    .select_from(DOCUMENTS_WITH_MEMORIES)
    .where(
        recall_docs.c.user_id == _USER_ID,
        one_of(recall_docs.c.item_id, "ids"),
        timeline_items.c.status.not_in(HIDDEN_STATUSES),
        memories.c.superseded_by.is_(None),
        or_(memories.c.expires_at.is_(None), memories.c.expires_at > _NOW),
    )
)


def _pair_queries(table: Table, one: str, other: str) -> list[Select[str, str]]:
    """The pairs of a table in both directions."""
    return [_pair_query(table, table.c[one], table.c[other]), _pair_query(table, table.c[other], table.c[one])]


def _pair_query(table: Table, one: Column[str], other: Column[str]) -> Select[str, str]:
    return select(one.label("one"), other.label("other")).where(table.c.user_id == _USER_ID, one_of(one, "ids"))


_SELECT_ANCHORED = union_all(*_pair_queries(memory_anchors, "memory_id", "anchor_item_id")).limit(MAX_RELATED)
_SELECT_RELATED = union_all(
    *_pair_queries(task_relations, "task_id", "related_task_id"), *_pair_queries(tasks, "id", "parent_task_id")
).limit(MAX_RELATED)


def fetch_context(
    transaction: PersonTransaction, item_ids: Sequence[str], depth: int
) -> Mapping[str, Sequence[ContextItem]]:
    """For each item, up to `depth` items before it, after it, and for each kind of relation; the nearest first."""
    if not 1 <= depth <= MAX_DEPTH:
        raise Invalid(f"The depth must be from 1 to {MAX_DEPTH}")
    ids = list(dict.fromkeys(item_ids))[:MAX_ITEMS]
    pairs = [*_related_pairs(transaction, ids), *_neighbour_pairs(transaction, ids, depth)]
    shown = _fetch_shown(transaction, {other for _, other, _ in pairs})
    found: dict[str, dict[str, ContextItem]] = {one: {} for one in ids}
    for one, other, tie in pairs:
        near = found[one]
        if other in shown and other not in near and sum(had.tie is tie for had in near.values()) < depth:
            near[other] = ContextItem(item=shown[other], tie=tie)
    return {one: list(near.values()) for one, near in found.items()}


def _related_pairs(transaction: PersonTransaction, ids: Sequence[str]) -> list[ContextPair]:
    given = {"whose": transaction.user_id, "ids": list(ids)}
    anchored = [
        (row.one, row.other, ContextRelation.ANCHORED)
        for row in transaction.connection.execute(_SELECT_ANCHORED, given)
    ]
    related = [
        (row.one, row.other, ContextRelation.RELATED) for row in transaction.connection.execute(_SELECT_RELATED, given)
    ]
    return [(one, other, tie) for one, other, tie in (*anchored, *related) if other is not None and other != one]


def _neighbour_pairs(transaction: PersonTransaction, ids: Sequence[str], depth: int) -> list[ContextPair]:
    """The items stored before and after each item, the nearest first."""
    given = {"whose": transaction.user_id, "ids": list(ids)}
    middle = transaction.connection.execute(_SELECT_NUMBERS.where(one_of(recall_docs.c.item_id, "ids")), given).all()
    steps = sorted((step for step in range(-depth, depth + 1) if step), key=abs)
    numbers = sorted({row.n + step for row in middle for step in steps})
    given = {"whose": transaction.user_id, "numbers": numbers}
    rows = transaction.connection.execute(_SELECT_NUMBERS.where(one_of(recall_docs.c.n, "numbers")), given)
    at = {row.n: row.item_id for row in rows}
    return [
        (row.item_id, at[row.n + step], ContextRelation.BEFORE if step < 0 else ContextRelation.AFTER)
        for step in steps
        for row in middle
        if row.n + step in at
    ]


def _fetch_shown(transaction: PersonTransaction, ids: Collection[str]) -> dict[str, TimelineItem]:
    rows = transaction.connection.execute(
        _SELECT_SHOWN, {"whose": transaction.user_id, "ids": list(ids), "now": transaction.now}
    ).mappings()
    return {row["id"]: item_from_row(row) for row in rows}
