"""Stores categories and timeline items, the row that tasks, memories and activities share.

It also finds an item by the first characters of its id.
"""

import json
import re
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, fields
from functools import partial
from typing import Any

from sqlalchemy import ColumnElement, RowMapping, and_, delete, insert, or_, select, update

from frontdesk.db.schema import ai_tasks, categories, time_entries, timeline_items
from frontdesk.errors import Invalid, NotFound
from frontdesk.identity import rights
from frontdesk.memory.model import Category, ItemStatus, ItemType, PersonScope, Priority, TimelineItem
from frontdesk.memory.search.index_store import index_item, unindex_item
from frontdesk.memory.store import PersonDatabase, PersonTransaction, contains_text

ITEM_FIELDS = tuple(field.name for field in fields(TimelineItem))


def insert_item(transaction: PersonTransaction, item: TimelineItem, text: str) -> None:
    """Insert an item, and index it under a text."""
    transaction.connection.execute(insert(timeline_items).values(user_id=transaction.user_id, **_item_row(item)))
    _index_item(transaction, item, text)


def save_item(transaction: PersonTransaction, item: TimelineItem, text: str) -> None:
    """Save a changed item, and index it under a text."""
    transaction.connection.execute(
        update(timeline_items).where(is_item(transaction, item.id)).values(**_item_row(item))
    )
    _index_item(transaction, item, text)


def fetch_item(transaction: PersonTransaction, item_id: str) -> TimelineItem | None:
    """Fetch an item by its id, unless it was deleted."""
    shown = timeline_items.c.status != ItemStatus.DELETED
    row = (
        transaction.connection.execute(select(timeline_items).where(is_item(transaction, item_id), shown))
        .mappings()
        .one_or_none()
    )
    return item_from_row(row) if row else None


def delete_item(transaction: PersonTransaction, item_id: str) -> None:
    """Delete an item for good, with everything that depends on it."""
    unindex_item(transaction, item_id)
    transaction.connection.execute(delete(timeline_items).where(is_item(transaction, item_id)))


def is_item(transaction: PersonTransaction, item_id: str) -> ColumnElement[bool]:
    return and_(timeline_items.c.user_id == transaction.user_id, timeline_items.c.id == item_id)


def item_from_row(row: RowMapping | Mapping[str, Any]) -> TimelineItem:
    """Build an item from a row with the columns of this table, and maybe others."""
    values = {name: row[name] for name in ITEM_FIELDS}
    values |= {
        "type": ItemType(row["type"]),
        "status": ItemStatus(row["status"]),
        "priority": Priority(row["priority"]),
        "tags": split_tags(row["tags"]),
        "metadata": json.loads(row["metadata"]),
    }
    return TimelineItem(**values)


def has_tags(tags: Sequence[str], *, every: bool) -> ColumnElement[bool]:
    """A condition: the item has all of these tags, or at least one of them, in any case."""
    each = [contains_text(timeline_items.c.tags, join_tags([tag])) for tag in tags]
    return and_(*each) if every else or_(*each)


def join_tags(tags: Sequence[str]) -> str:
    """Tags as one text: a line for each, between line breaks."""
    lines = [" ".join(tag.split()) for tag in tags]
    return "".join(f"\n{line}\n" for line in dict.fromkeys(line for line in lines if line))


def split_tags(tags: str) -> tuple[str, ...]:
    return tuple(tag for tag in tags.split("\n") if tag)


def _item_row(item: TimelineItem) -> dict[str, Any]:
    return {**asdict(item), "tags": join_tags(item.tags), "metadata": json.dumps(item.metadata)}


def _index_item(transaction: PersonTransaction, item: TimelineItem, text: str) -> None:
    if item.status is ItemStatus.DELETED:
        unindex_item(transaction, item.id)
    else:
        index_item(transaction, item.id, text)


CATEGORY_FIELDS = tuple(field.name for field in fields(Category))


def category_key(name: str) -> str:
    """A name in the form in which names are compared."""
    return " ".join(name.split()).casefold()


def insert_category(transaction: PersonTransaction, category: Category) -> None:
    transaction.connection.execute(
        insert(categories).values(user_id=transaction.user_id, name_key=category_key(category.name), **asdict(category))
    )


def save_category(transaction: PersonTransaction, category: Category) -> None:
    changed = {**asdict(category), "name_key": category_key(category.name)}
    transaction.connection.execute(update(categories).where(_is_category(transaction, category.id)).values(**changed))


def fetch_category(transaction: PersonTransaction, category_id: str) -> Category | None:
    return _fetch_category(transaction, _is_category(transaction, category_id))


def find_category(transaction: PersonTransaction, name_or_id: str) -> Category | None:
    """Find a category by its id, or by its name in any case."""
    named = or_(categories.c.id == name_or_id.strip().lower(), categories.c.name_key == category_key(name_or_id))
    return _fetch_category(transaction, and_(categories.c.user_id == transaction.user_id, named))


def list_categories(transaction: PersonTransaction) -> Sequence[Category]:
    rows = transaction.connection.execute(
        select(categories).where(categories.c.user_id == transaction.user_id).order_by(categories.c.name_key)
    )
    return [_category_from_row(row) for row in rows.mappings()]


def delete_category(transaction: PersonTransaction, category_id: str) -> None:
    """Delete a category. What was under it stays, without a category."""
    for of in (timeline_items, time_entries):
        held = and_(of.c.user_id == transaction.user_id, of.c.category_id == category_id)
        transaction.connection.execute(update(of).where(held).values(category_id=None))
    transaction.connection.execute(delete(categories).where(_is_category(transaction, category_id)))


def _is_category(transaction: PersonTransaction, category_id: str) -> ColumnElement[bool]:
    return and_(categories.c.user_id == transaction.user_id, categories.c.id == category_id)


def _fetch_category(transaction: PersonTransaction, which: ColumnElement[bool]) -> Category | None:
    row = transaction.connection.execute(select(categories).where(which).limit(1)).mappings().first()
    return _category_from_row(row) if row else None


def _category_from_row(row: RowMapping) -> Category:
    return Category(**{name: row[name] for name in CATEGORY_FIELDS})


def item_text(item: TimelineItem) -> str:
    """The text under which an item that is no task, memory or activity is indexed."""
    return "\n".join(part for part in (item.title, item.description, " ".join(item.tags)) if part)


def item_ids_starting(transaction: PersonTransaction, kind: ItemType, first: str, most: int) -> Sequence[str]:
    """The ids of items of one kind, at most `most`."""
    ids = select(timeline_items.c.id).where(
        timeline_items.c.user_id == transaction.user_id,
        timeline_items.c.type == kind,
        timeline_items.c.id.startswith(first, autoescape=True),
    )
    return transaction.connection.execute(ids.order_by(timeline_items.c.id).limit(most)).scalars().all()


def ai_task_ids_starting(transaction: PersonTransaction, first: str, most: int) -> Sequence[str]:
    """The ids of pieces of work for agents, at most `most`."""
    ids = select(ai_tasks.c.id).where(
        ai_tasks.c.user_id == transaction.user_id, ai_tasks.c.id.startswith(first, autoescape=True)
    )
    return transaction.connection.execute(ids.order_by(ai_tasks.c.id).limit(most)).scalars().all()


MIN_CHARACTERS = 8
MAX_NAMED = 3
ID_PREFIX = re.compile(r"[0-9a-f-]+")
FindIds = Callable[[PersonTransaction, str, int], Sequence[str]]


class IdLookup:
    """Takes a whole id, or at least eight of its first characters if no other id begins with them."""

    def __init__(self, records: PersonDatabase) -> None:
        self._records = records

    async def task(self, scope: PersonScope, text: str) -> str:
        scope.require(rights.TASKS_READ)
        return await self._resolve(scope, text, "Task", partial(_item_ids, ItemType.TASK))

    async def memory(self, scope: PersonScope, text: str) -> str:
        scope.require(rights.MEMORIES_READ)
        return await self._resolve(scope, text, "Memory", partial(_item_ids, ItemType.MEMORY))

    async def ai_task(self, scope: PersonScope, text: str) -> str:
        """The id of a piece of work for an agent."""
        scope.require(rights.AI_TASKS_READ)
        return await self._resolve(scope, text, "AI task", ai_task_ids_starting)

    async def _resolve(self, scope: PersonScope, text: str, what: str, look: FindIds) -> str:
        first = text.strip().lower()
        if _is_full_id(first):
            return first
        if len(first) < MIN_CHARACTERS or not ID_PREFIX.fullmatch(first):
            raise Invalid(
                f"'{text.strip()[:100]}' is no id; give one as it is listed, or its first {MIN_CHARACTERS} characters"
            )
        found = await self._records.read(scope, lambda transaction: look(transaction, first, MAX_NAMED))
        return _single_id(found, first, what)


def _item_ids(kind: ItemType, transaction: PersonTransaction, first: str, most: int) -> Sequence[str]:
    return item_ids_starting(transaction, kind, first, most)


def _is_full_id(text: str) -> bool:
    try:
        return str(uuid.UUID(text)) == text
    except ValueError:
        return False


def _single_id(found: Sequence[str], first: str, what: str) -> str:
    if not found:
        raise NotFound(f"{what} not found: no id begins with {first}")
    if len(found) > 1:
        raise Invalid(f"Several ids begin with {first}: {', '.join(found)}; give more of the one that is meant")
    return found[0]
