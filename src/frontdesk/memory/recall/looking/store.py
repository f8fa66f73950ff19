"""The items that may be answers, in the database: which of them are asked among, and what they are."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime

import numpy as np
from sqlalchemy import ColumnElement, Float, and_, bindparam, case, cast, extract, func, literal, or_, select

from frontdesk.db.lists import one_of
from frontdesk.db.schema import memories, people, recall_docs, timeline_items
from frontdesk.memory.given import category_id
from frontdesk.memory.items import store as items
from frontdesk.memory.matching.store import contains, up_to
from frontdesk.memory.model import Item, ItemStatus, ItemType
from frontdesk.memory.moments import Edge, moment, zone_of
from frontdesk.memory.recall.model import Query
from frontdesk.memory.recall.rank import Candidates
from frontdesk.memory.store import Mine

Condition = ColumnElement[bool]

HIDDEN = (ItemStatus.DELETED, ItemStatus.ARCHIVED)
# Where so few items are asked among, each of them is looked at.
FEW = 1_000
AT = func.coalesce(timeline_items.c.start_time, timeline_items.c.created_at)
ITEMS = recall_docs.join(
    timeline_items,
    and_(timeline_items.c.user_id == recall_docs.c.user_id, timeline_items.c.id == recall_docs.c.item_id),
)
ROWS = ITEMS.outerjoin(
    memories, and_(memories.c.user_id == timeline_items.c.user_id, memories.c.id == timeline_items.c.id)
)
_IS_MINE = recall_docs.c.user_id == bindparam("whose")
_STANDING = select(people.c.found, people.c.numbered).where(people.c.user_id == bindparam("whose"))
_CANDIDATES = (
    select(
        recall_docs.c.n,
        cast(extract("epoch", AT), Float),
        case((timeline_items.c.type == ItemType.MEMORY, 1), else_=0),
        func.coalesce(memories.c.salience_score, 0.0),
    )
    .select_from(ROWS)
    .where(_IS_MINE, one_of(recall_docs.c.n, "numbers"))
    .order_by(recall_docs.c.n)
)
_WHOLE = (
    select(timeline_items, recall_docs.c.n, recall_docs.c.text)
    .select_from(ITEMS)
    .where(_IS_MINE, one_of(recall_docs.c.n, "numbers"))
)


def standing(mine: Mine) -> tuple[int, int]:
    """How many items of the person can be found, and the number of the last of them."""
    row = mine.connection.execute(_STANDING, {"whose": mine.user_id}).one_or_none()
    return (0, 0) if row is None else (row.found, row.numbered)


def asked_among(mine: Mine, query: Query) -> list[Condition]:
    """What an item must be, apart from its text; those first that an index answers."""
    return [*_indexed(mine, query), *_of_items(query), *_of_memories(mine, query)]


def few(mine: Mine, query: Query) -> Sequence[int] | None:
    """The numbers of all items that are asked among and some more, where these are few."""
    for condition in _indexed(mine, query):
        inside = and_(timeline_items.c.user_id == mine.user_id, condition)
        counted = select(literal(1)).select_from(timeline_items).where(inside).limit(FEW + 1).subquery()
        if mine.connection.execute(select(func.count()).select_from(counted)).scalar_one() <= FEW:
            wanted = select(recall_docs.c.n).select_from(ITEMS).where(recall_docs.c.user_id == mine.user_id, inside)
            return mine.connection.execute(wanted).scalars().all()
    return None


def candidates(mine: Mine, numbers: Sequence[int], conditions: Sequence[Condition]) -> Candidates:
    """These items as candidates; one that is gone is left out."""
    wanted = _CANDIDATES.add_columns(case((and_(*conditions), 1), else_=0))
    rows = mine.connection.execute(wanted, {"whose": mine.user_id, "numbers": list(numbers)}).all()
    columns = np.array([tuple(row) for row in rows], np.float64).reshape(-1, 5).T
    return Candidates(
        columns[0].astype(np.int32), columns[1], columns[2] > 0, columns[3].astype(np.float32), columns[4] > 0
    )


def whole(mine: Mine, numbers: Sequence[int]) -> Mapping[int, tuple[Item, str]]:
    """Items by their numbers, each with the text it is found by."""
    rows = mine.connection.execute(_WHOLE, {"whose": mine.user_id, "numbers": list(numbers)}).mappings()
    return {row["n"]: (items.item_of(row), row["text"]) for row in rows}


def _indexed(mine: Mine, query: Query) -> list[Condition]:
    found: list[Condition] = []
    if query.types is not None:
        found.append(timeline_items.c.type.in_(sorted(query.types)))
    if query.category:
        found.append(timeline_items.c.category_id == category_id(mine, query.category))
    zone = zone_of(query.zone, mine.zone_name)
    start = moment(query.date_from, zone, "date_from") if query.date_from else None
    end = moment(query.date_to, zone, "date_to", Edge.END) if query.date_to else None
    if start is not None or end is not None:
        found.append(_dated(lambda column: _between(column, start, end)))
    return found


def _dated(holds: Callable[[ColumnElement[datetime]], Condition]) -> Condition:
    """An item's time is that of its start, or else of its making; said so that both indexes can be used."""
    made, begun = timeline_items.c.created_at, timeline_items.c.start_time
    return or_(holds(begun), and_(begun.is_(None), holds(made)))


def _between(column: ColumnElement[datetime], start: datetime | None, end: datetime | None) -> Condition:
    bounds = ([] if start is None else [column >= start]) + ([] if end is None else [up_to(column, end)])
    return and_(*bounds)


def _of_items(query: Query) -> list[Condition]:
    status = timeline_items.c.status
    found: list[Condition] = []
    found.append(status.not_in(HIDDEN) if query.statuses is None else status.in_(sorted(query.statuses)))
    if query.tags:
        found.append(items.has_tags(query.tags, every=query.every_tag))
    return found


def _of_memories(mine: Mine, query: Query) -> list[Condition]:
    equal = {"memory_type": query.memory_type, "is_highlight": query.is_highlight}
    found: list[Condition] = [memories.c[name] == value for name, value in equal.items() if value is not None]
    if not query.include_superseded:
        found.append(memories.c.superseded_by.is_(None))
    if not query.include_expired:
        found.append(or_(memories.c.expires_at.is_(None), memories.c.expires_at > mine.now))
    if query.place_name:
        found.append(contains(func.coalesce(memories.c.place_name, ""), query.place_name.strip()))
    if query.min_salience is not None:
        found.append(memories.c.salience_score >= query.min_salience)
    if query.min_emotion_valence is not None:
        found.append(memories.c.emotion_valence >= query.min_emotion_valence)
    if query.max_emotion_valence is not None:
        found.append(memories.c.emotion_valence <= query.max_emotion_valence)
    return found
