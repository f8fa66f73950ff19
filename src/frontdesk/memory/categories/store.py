"""Categories in the database."""

from collections.abc import Sequence
from dataclasses import asdict, fields

from sqlalchemy import ColumnElement, RowMapping, and_, delete, insert, or_, select, update

from frontdesk.db.schema import categories as table
from frontdesk.db.schema import time_entries, timeline_items
from frontdesk.memory.model import Category
from frontdesk.memory.store import Mine

NAMES = tuple(field.name for field in fields(Category))


def key(name: str) -> str:
    """A name as it is looked for."""
    return " ".join(name.split()).casefold()


def add(mine: Mine, category: Category) -> None:
    mine.connection.execute(insert(table).values(user_id=mine.user_id, name_key=key(category.name), **asdict(category)))


def write(mine: Mine, category: Category) -> None:
    changed = {**asdict(category), "name_key": key(category.name)}
    mine.connection.execute(update(table).where(_is_mine(mine, category.id)).values(**changed))


def get(mine: Mine, category_id: str) -> Category | None:
    return _one(mine, _is_mine(mine, category_id))


def find(mine: Mine, name_or_id: str) -> Category | None:
    """By its id, or by its name, whatever its case."""
    named = or_(table.c.id == name_or_id.strip().lower(), table.c.name_key == key(name_or_id))
    return _one(mine, and_(table.c.user_id == mine.user_id, named))


def every(mine: Mine) -> Sequence[Category]:
    rows = mine.connection.execute(select(table).where(table.c.user_id == mine.user_id).order_by(table.c.name_key))
    return [_category(row) for row in rows.mappings()]


def remove(mine: Mine, category_id: str) -> None:
    """What was under it stays, under none."""
    for of in (timeline_items, time_entries):
        held = and_(of.c.user_id == mine.user_id, of.c.category_id == category_id)
        mine.connection.execute(update(of).where(held).values(category_id=None))
    mine.connection.execute(delete(table).where(_is_mine(mine, category_id)))


def _is_mine(mine: Mine, category_id: str) -> ColumnElement[bool]:
    return and_(table.c.user_id == mine.user_id, table.c.id == category_id)


def _one(mine: Mine, which: ColumnElement[bool]) -> Category | None:
    row = mine.connection.execute(select(table).where(which).limit(1)).mappings().first()
    return _category(row) if row else None


def _category(row: RowMapping) -> Category:
    return Category(**{name: row[name] for name in NAMES})
