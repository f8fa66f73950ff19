"""Ids in the database that begin with the same characters."""

from collections.abc import Sequence

from sqlalchemy import select

from frontdesk.db.schema import ai_tasks, timeline_items
from frontdesk.memory.model import ItemType
from frontdesk.memory.store import Mine


def items(mine: Mine, kind: ItemType, first: str, most: int) -> Sequence[str]:
    """Of items of one kind, so many at most."""
    ids = select(timeline_items.c.id).where(
        timeline_items.c.user_id == mine.user_id,
        timeline_items.c.type == kind,
        timeline_items.c.id.startswith(first, autoescape=True),
    )
    return mine.connection.execute(ids.order_by(timeline_items.c.id).limit(most)).scalars().all()


def work(mine: Mine, first: str, most: int) -> Sequence[str]:
    """Of the agents' work."""
    ids = select(ai_tasks.c.id).where(
        ai_tasks.c.user_id == mine.user_id, ai_tasks.c.id.startswith(first, autoescape=True)
    )
    return mine.connection.execute(ids.order_by(ai_tasks.c.id).limit(most)).scalars().all()
