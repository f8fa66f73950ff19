"""The id that is meant by what somebody typed."""

import re
import uuid
from collections.abc import Callable, Sequence
from functools import partial

from frontdesk.errors import Invalid, NotFound
from frontdesk.identity import rights
from frontdesk.memory.model import ItemType
from frontdesk.memory.naming import store
from frontdesk.memory.scope import Scope
from frontdesk.memory.store import Mine, Records

LEAST = 8
NAMED = 3
BEGINNING = re.compile(r"[0-9a-f-]+")
Look = Callable[[Mine, str, int], Sequence[str]]


class Names:
    """Takes a whole id, or as many of its first characters as no other has, and eight at least."""

    def __init__(self, records: Records) -> None:
        self._records = records

    async def task(self, scope: Scope, text: str) -> str:
        scope.require(rights.TASKS_READ)
        return await self._meant(scope, text, "Task", partial(_items, ItemType.TASK))

    async def memory(self, scope: Scope, text: str) -> str:
        scope.require(rights.MEMORIES_READ)
        return await self._meant(scope, text, "Memory", partial(_items, ItemType.MEMORY))

    async def work(self, scope: Scope, text: str) -> str:
        """Of a piece of work for an agent."""
        scope.require(rights.AI_TASKS_READ)
        return await self._meant(scope, text, "AI task", store.work)

    async def _meant(self, scope: Scope, text: str, what: str, look: Look) -> str:
        first = text.strip().lower()
        if _is_whole(first):
            return first
        if len(first) < LEAST or not BEGINNING.fullmatch(first):
            raise Invalid(f"'{text.strip()[:100]}' is no id; give one as it is listed, or its first {LEAST} characters")
        found = await self._records.read(scope, lambda mine: look(mine, first, NAMED))
        return _only(found, first, what)


def _items(kind: ItemType, mine: Mine, first: str, most: int) -> Sequence[str]:
    return store.items(mine, kind, first, most)


def _is_whole(text: str) -> bool:
    try:
        return str(uuid.UUID(text)) == text
    except ValueError:
        return False


def _only(found: Sequence[str], first: str, what: str) -> str:
    if not found:
        raise NotFound(f"{what} not found: no id begins with {first}")
    if len(found) > 1:
        raise Invalid(f"Several ids begin with {first}: {', '.join(found)}; give more of the one that is meant")
    return found[0]
