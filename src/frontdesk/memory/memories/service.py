"""Memories as the doors use them."""

from collections.abc import Mapping, Sequence
from functools import partial

from frontdesk.identity import rights
from frontdesk.memory.given import Fields, Page
from frontdesk.memory.memories import making, store
from frontdesk.memory.memories.anchors import making as anchors
from frontdesk.memory.memories.figures import store as figures
from frontdesk.memory.memories.wanted import Anchored, MemoryStats, MemoryWanted
from frontdesk.memory.model import Anchor, Memory
from frontdesk.memory.scope import Scope
from frontdesk.memory.store import Records


class Memories:
    """What a person wants remembered; nothing is lost but by their word."""

    def __init__(self, records: Records) -> None:
        self._records = records

    async def create(self, scope: Scope, fields: Fields, zone: str | None = None) -> Memory:
        """`fields` are those of a `Memory`; the title is made from the note where there is none."""
        scope.require(rights.MEMORIES_WRITE)
        return await self._records.change(scope, partial(making.create, fields=fields, zone=zone))

    async def get(self, scope: Scope, memory_id: str) -> Memory:
        """Also one that was superseded or has expired."""
        scope.require(rights.MEMORIES_READ)
        return await self._records.read(scope, partial(making.get, memory_id=memory_id))

    async def some(self, scope: Scope, ids: Sequence[str]) -> Mapping[str, Memory]:
        """Those of these that were not deleted, by their ids: what a search has found."""
        scope.require(rights.MEMORIES_READ)
        return await self._records.read(scope, partial(store.some, ids=ids))

    async def list(self, scope: Scope, wanted: MemoryWanted) -> Page[Memory]:
        scope.require(rights.MEMORIES_READ)
        return await self._records.read(scope, partial(store.find, wanted=wanted))

    async def update(self, scope: Scope, memory_id: str, fields: Fields, zone: str | None = None) -> Memory:
        """`fields` are those to be different; a deleted memory that is given a status is there again."""
        scope.require(rights.MEMORIES_WRITE)
        work = partial(making.update, memory_id=memory_id, fields=fields, zone=zone)
        return await self._records.change(scope, work)

    async def delete(self, scope: Scope, memory_id: str) -> None:
        """It is kept, and listed only for who asks for deleted ones; what it superseded is found again."""
        scope.require(rights.MEMORIES_WRITE)
        await self._records.change(scope, partial(making.delete, memory_id=memory_id))

    async def stats(self, scope: Scope, zone: str | None = None) -> MemoryStats:
        scope.require(rights.MEMORIES_READ)
        return await self._records.read(scope, partial(figures.stats, zone=zone))

    async def anchor(self, scope: Scope, memory_id: str, fields: Fields, zone: str | None = None) -> Anchor:
        """`fields` are those of an `Anchor`: `anchor_item_id`, and what else is to be said of it."""
        scope.require(rights.MEMORIES_WRITE)
        return await self._records.change(scope, partial(anchors.put, memory_id=memory_id, fields=fields, zone=zone))

    async def anchors(self, scope: Scope, memory_id: str) -> Sequence[Anchor]:
        scope.require(rights.MEMORIES_READ)
        return await self._records.read(scope, partial(anchors.of_memory, memory_id=memory_id))

    async def unanchor(self, scope: Scope, memory_id: str, item_id: str, relation: str | None = None) -> None:
        """From an item altogether, or of one relation."""
        scope.require(rights.MEMORIES_WRITE)
        work = partial(anchors.remove, memory_id=memory_id, item_id=item_id, relation=relation)
        await self._records.change(scope, work)

    async def anchored_to(self, scope: Scope, item_id: str) -> Sequence[Anchored]:
        """The memories that hang on an item, and how."""
        scope.require(rights.MEMORIES_READ)
        return await self._records.read(scope, partial(anchors.to_item, item_id=item_id))
