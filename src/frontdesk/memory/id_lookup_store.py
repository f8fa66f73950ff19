"""Finds a record's id from its first characters."""

import re
import uuid
from collections.abc import Callable, Sequence
from functools import partial

from sqlalchemy import select

from frontdesk.db.schema import ai_tasks, timeline_items
from frontdesk.errors import Invalid, NotFound
from frontdesk.identity import rights
from frontdesk.memory.model import ItemType, PersonScope
from frontdesk.memory.store import PersonDatabase, PersonTransaction


def item_ids_starting(mine: PersonTransaction, kind: ItemType, first: str, most: int) -> Sequence[str]:
    """The ids of items of one kind, at most `most`."""
    ids = select(timeline_items.c.id).where(
        timeline_items.c.user_id == mine.user_id,
        timeline_items.c.type == kind,
        timeline_items.c.id.startswith(first, autoescape=True),
    )
    return mine.connection.execute(ids.order_by(timeline_items.c.id).limit(most)).scalars().all()


def ai_task_ids_starting(mine: PersonTransaction, first: str, most: int) -> Sequence[str]:
    """The ids of pieces of work for agents, at most `most`."""
    ids = select(ai_tasks.c.id).where(
        ai_tasks.c.user_id == mine.user_id, ai_tasks.c.id.startswith(first, autoescape=True)
    )
    return mine.connection.execute(ids.order_by(ai_tasks.c.id).limit(most)).scalars().all()


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
        found = await self._records.read(scope, lambda mine: look(mine, first, MAX_NAMED))
        return _single_id(found, first, what)


def _item_ids(kind: ItemType, mine: PersonTransaction, first: str, most: int) -> Sequence[str]:
    return item_ids_starting(mine, kind, first, most)


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
