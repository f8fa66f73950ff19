"""Anchors in the database."""

from collections.abc import Sequence
from dataclasses import asdict, fields
from typing import Any

from sqlalchemy import ColumnElement, RowMapping, and_, delete, insert, select, update

from frontdesk.db.schema import memories, timeline_items
from frontdesk.db.schema import memory_anchors as table
from frontdesk.memory.memories.store import ROWS, current, memory_of
from frontdesk.memory.memories.wanted import Anchored
from frontdesk.memory.model import Anchor, AnchorRelation, ItemStatus, MemoryStatus
from frontdesk.memory.store import Mine

NAMES = tuple(field.name for field in fields(Anchor))


def put(mine: Mine, anchor: Anchor) -> None:
    """A new one, or another in the place of one like it."""
    this = and_(_of_memory(mine, anchor.memory_id), _to(anchor.anchor_item_id, anchor.relation))
    if mine.connection.execute(update(table).where(this).values(**asdict(anchor))).rowcount == 0:
        mine.connection.execute(insert(table).values(user_id=mine.user_id, **asdict(anchor)))


def get(mine: Mine, memory_id: str, item_id: str, relation: AnchorRelation) -> Anchor | None:
    this = and_(_of_memory(mine, memory_id), _to(item_id, relation))
    row = mine.connection.execute(select(table).where(this)).mappings().one_or_none()
    return _anchor(row) if row else None


def of_memory(mine: Mine, memory_id: str) -> Sequence[Anchor]:
    """The weightiest first; those to items that were deleted are not shown."""
    to_item = and_(timeline_items.c.user_id == table.c.user_id, timeline_items.c.id == table.c.anchor_item_id)
    shown = (_of_memory(mine, memory_id), to_item, timeline_items.c.status != ItemStatus.DELETED)
    found = select(table).where(*shown).order_by(table.c.weight.desc(), table.c.anchor_item_id, table.c.relation)
    return [_anchor(row) for row in mine.connection.execute(found).mappings()]


def to_item(mine: Mine, item_id: str) -> Sequence[Anchored]:
    """The memories that hang on an item, the weightiest first, of those that are listed."""
    hung = and_(table.c.user_id == memories.c.user_id, table.c.memory_id == memories.c.id)
    named = [table.c[name].label(f"anchor_{name}") for name in NAMES]
    mine_alone = (table.c.user_id == mine.user_id, table.c.anchor_item_id == item_id, hung)
    shown = (memories.c.status != MemoryStatus.DELETED, current(mine))
    found = ROWS.add_columns(*named).where(*mine_alone, *shown).order_by(table.c.weight.desc(), memories.c.id)
    return [
        Anchored(anchor=_anchor(row, "anchor_"), memory=memory_of(row))
        for row in mine.connection.execute(found).mappings()
    ]


def remove(mine: Mine, memory_id: str, item_id: str, relation: AnchorRelation | None) -> int:
    """All of a memory's anchors to an item, or the one of this relation; how many there were."""
    this = and_(_of_memory(mine, memory_id), _to(item_id, relation))
    return mine.connection.execute(delete(table).where(this)).rowcount


def _of_memory(mine: Mine, memory_id: str) -> ColumnElement[bool]:
    return and_(table.c.user_id == mine.user_id, table.c.memory_id == memory_id)


def _to(item_id: str, relation: AnchorRelation | None) -> ColumnElement[bool]:
    there = table.c.anchor_item_id == item_id
    return there if relation is None else and_(there, table.c.relation == relation)


def _anchor(row: RowMapping, prefix: str = "") -> Anchor:
    values: dict[str, Any] = {name: row[f"{prefix}{name}"] for name in NAMES}
    values["relation"] = AnchorRelation(values["relation"])
    return Anchor(**values)
