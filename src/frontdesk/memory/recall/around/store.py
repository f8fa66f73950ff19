"""What lies around an item, in the database: what was written down before and after it, and what is tied to it."""

from collections.abc import Collection, Mapping, Sequence
from typing import TypeAlias

from sqlalchemy import Column, Select, Table, bindparam, or_, select, union_all

from frontdesk.db.lists import one_of
from frontdesk.db.schema import memories, memory_anchors, recall_docs, task_relations, tasks, timeline_items
from frontdesk.errors import Invalid
from frontdesk.memory.items import store as items
from frontdesk.memory.model import Item
from frontdesk.memory.recall.looking.store import HIDDEN, ROWS
from frontdesk.memory.recall.model import Near, Tie
from frontdesk.memory.store import Mine

# One item, another near it, and what that is to it.
Pair: TypeAlias = tuple[str, str, Tie]

DEEPEST, MOST_ITEMS = 5, 100
# Of all ties together: an item may have thousands.
MOST_TIES = 1_000
_WHOSE = bindparam("whose", type_=recall_docs.c.user_id.type)
_NUMBERS = select(recall_docs.c.n, recall_docs.c.item_id).where(recall_docs.c.user_id == _WHOSE)
_NOW = bindparam("now", type_=memories.c.expires_at.type)
_SHOWN = (
    select(timeline_items)
    .select_from(ROWS)
    .where(
        recall_docs.c.user_id == _WHOSE,
        one_of(recall_docs.c.item_id, "ids"),
        timeline_items.c.status.not_in(HIDDEN),
        memories.c.superseded_by.is_(None),
        or_(memories.c.expires_at.is_(None), memories.c.expires_at > _NOW),
    )
)


def _ties(table: Table, one: str, other: str) -> list[Select[str, str]]:
    """Both ways."""
    return [_tie(table, table.c[one], table.c[other]), _tie(table, table.c[other], table.c[one])]


def _tie(table: Table, one: Column[str], other: Column[str]) -> Select[str, str]:
    return select(one.label("one"), other.label("other")).where(table.c.user_id == _WHOSE, one_of(one, "ids"))


_ANCHORED = union_all(*_ties(memory_anchors, "memory_id", "anchor_item_id")).limit(MOST_TIES)
_RELATED = union_all(*_ties(task_relations, "task_id", "related_task_id"), *_ties(tasks, "id", "parent_task_id")).limit(
    MOST_TIES
)


def around(mine: Mine, item_ids: Sequence[str], depth: int) -> Mapping[str, Sequence[Near]]:
    """For each item, the nearest first: `depth` before it, as many after it, and as many that are tied to it."""
    if not 1 <= depth <= DEEPEST:
        raise Invalid(f"The depth must be from 1 to {DEEPEST}")
    ids = list(dict.fromkeys(item_ids))[:MOST_ITEMS]
    pairs = [*_tied(mine, ids), *_beside(mine, ids, depth)]
    shown = _shown(mine, {other for _, other, _ in pairs})
    found: dict[str, dict[str, Near]] = {one: {} for one in ids}
    for one, other, tie in pairs:
        near = found[one]
        if other in shown and other not in near and sum(had.tie is tie for had in near.values()) < depth:
            near[other] = Near(item=shown[other], tie=tie)
    return {one: list(near.values()) for one, near in found.items()}


def _tied(mine: Mine, ids: Sequence[str]) -> list[Pair]:
    given = {"whose": mine.user_id, "ids": list(ids)}
    anchored = [(row.one, row.other, Tie.ANCHORED) for row in mine.connection.execute(_ANCHORED, given)]
    related = [(row.one, row.other, Tie.RELATED) for row in mine.connection.execute(_RELATED, given)]
    return [(one, other, tie) for one, other, tie in (*anchored, *related) if other is not None and other != one]


def _beside(mine: Mine, ids: Sequence[str], depth: int) -> list[Pair]:
    """By the order in which they were kept, the nearest first."""
    given = {"whose": mine.user_id, "ids": list(ids)}
    middle = mine.connection.execute(_NUMBERS.where(one_of(recall_docs.c.item_id, "ids")), given).all()
    steps = sorted((step for step in range(-depth, depth + 1) if step), key=abs)
    numbers = sorted({row.n + step for row in middle for step in steps})
    given = {"whose": mine.user_id, "numbers": numbers}
    rows = mine.connection.execute(_NUMBERS.where(one_of(recall_docs.c.n, "numbers")), given)
    at = {row.n: row.item_id for row in rows}
    return [
        (row.item_id, at[row.n + step], Tie.BEFORE if step < 0 else Tie.AFTER)
        for step in steps
        for row in middle
        if row.n + step in at
    ]


def _shown(mine: Mine, ids: Collection[str]) -> dict[str, Item]:
    rows = mine.connection.execute(_SHOWN, {"whose": mine.user_id, "ids": list(ids), "now": mine.now}).mappings()
    return {row["id"]: items.item_of(row) for row in rows}
