"""Timeline items in the database: the row that tasks, memories and activities share, and that others have alone."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields
from typing import Any

from sqlalchemy import ColumnElement, RowMapping, and_, delete, insert, or_, select, update

from frontdesk.db.schema import timeline_items as table
from frontdesk.memory.matching.store import contains
from frontdesk.memory.model import Item, ItemStatus, ItemType, Priority
from frontdesk.memory.recall import store as recall
from frontdesk.memory.store import Mine

NAMES = tuple(field.name for field in fields(Item))


def add(mine: Mine, item: Item, text: str) -> None:
    """A new one, found by this text."""
    mine.connection.execute(insert(table).values(user_id=mine.user_id, **_row(item)))
    _let_find(mine, item, text)


def write(mine: Mine, item: Item, text: str) -> None:
    """One that is there, as it is to be."""
    mine.connection.execute(update(table).where(is_mine(mine, item.id)).values(**_row(item)))
    _let_find(mine, item, text)


def get(mine: Mine, item_id: str) -> Item | None:
    """One by its id, unless it was deleted."""
    shown = table.c.status != ItemStatus.DELETED
    row = mine.connection.execute(select(table).where(is_mine(mine, item_id), shown)).mappings().one_or_none()
    return item_of(row) if row else None


def remove(mine: Mine, item_id: str) -> None:
    """For good, with everything that hangs on it."""
    recall.remove(mine, item_id)
    mine.connection.execute(delete(table).where(is_mine(mine, item_id)))


def is_mine(mine: Mine, item_id: str) -> ColumnElement[bool]:
    return and_(table.c.user_id == mine.user_id, table.c.id == item_id)


def item_of(row: RowMapping | Mapping[str, Any]) -> Item:
    """From a row that has the columns of this table, and perhaps others."""
    values = {name: row[name] for name in NAMES}
    values |= {
        "type": ItemType(row["type"]),
        "status": ItemStatus(row["status"]),
        "priority": Priority(row["priority"]),
        "tags": split(row["tags"]),
        "metadata": json.loads(row["metadata"]),
    }
    return Item(**values)


def has_tags(tags: Sequence[str], *, every: bool) -> ColumnElement[bool]:
    """Items with all of these tags, or with one at least, whatever their case."""
    each = [contains(table.c.tags, joined([tag])) for tag in tags]
    return and_(*each) if every else or_(*each)


def joined(tags: Sequence[str]) -> str:
    """A tag a line, each between line breaks."""
    lines = [" ".join(tag.split()) for tag in tags]
    return "".join(f"\n{line}\n" for line in dict.fromkeys(line for line in lines if line))


def split(tags: str) -> tuple[str, ...]:
    return tuple(tag for tag in tags.split("\n") if tag)


def _row(item: Item) -> dict[str, Any]:
    return {**asdict(item), "tags": joined(item.tags), "metadata": json.dumps(item.metadata)}


def _let_find(mine: Mine, item: Item, text: str) -> None:
    if item.status is ItemStatus.DELETED:
        recall.remove(mine, item.id)
    else:
        recall.put(mine, item.id, text)
