"""Keeps this replica's index in step with the database: loads it at the start, then follows by revision."""

import ctypes
import sys
from collections.abc import Mapping, Sequence

import anyio

from frontdesk.tools.catalogue.store import Indexed, ToolStore
from frontdesk.tools.packing import unpacked
from frontdesk.tools.search.index import Index
from frontdesk.tools.search.model import Doc

# A chunk is a few megabytes with its vectors, and a fraction of a second's work.
CHUNK = 1000
# Up to so many are taken in on the spot; more would keep the event loop waiting.
IN_PLACE = 20


class Sync:
    """`revision` is the last one that the index shows whole."""

    def __init__(self, store: ToolStore, index: Index, model: str | None) -> None:
        self._store = store
        self._index = index
        self._model = model
        self._place = (0, "")
        self._turn = anyio.Lock()
        self.revision = 0
        self._newer: set[str] | None = None

    async def behind(self) -> bool:
        """Whether anything happened since; one small query."""
        return await self._store.revision() != self.revision

    async def pull(self) -> Sequence[str]:
        """Take in what changed; the ids of the tools that did."""
        changed: list[str] = []
        async with self._turn:
            reached = await self._store.revision()
            while rows := await self._store.changed_since(*self._place, CHUNK, self._model):
                await self._take_in(rows)
                changed += [row.id for row in rows]
                self._place = (rows[-1].revision, rows[-1].id)
                if len(rows) < CHUNK:
                    break
            self.revision = max(reached, self._place[0])
        return changed

    def watch(self) -> None:
        """Note from now on which tools change: vectors that are being made are not meant for them."""
        self._newer = set()

    async def give(self, vectors: Mapping[str, bytes]) -> None:
        """Set what tools mean, but for those that changed since `watch`."""
        async with self._turn:
            still = {found: vector for found, vector in vectors.items() if found not in (self._newer or ())}
            self._newer = None
            if still:
                matrix = unpacked(list(still.values()))
                await anyio.to_thread.run_sync(self._index.set_vectors, list(still), matrix)

    async def _take_in(self, rows: Sequence[Indexed]) -> None:
        if self._newer is not None:
            self._newer.update(row.id for row in rows)
        if len(rows) <= IN_PLACE:
            self._index_all(rows)
        else:
            await anyio.to_thread.run_sync(self._index_all, rows)

    def _index_all(self, rows: Sequence[Indexed]) -> None:
        self._index.put([_doc(row) for row in rows if row.usable])
        self._index.remove([row.id for row in rows if not row.usable])
        known = [(row.id, row.vector) for row in rows if row.usable and row.vector is not None]
        if known:
            self._index.set_vectors([found for found, _ in known], unpacked([vector for _, vector in known]))
        if len(rows) == CHUNK:
            _give_back()


def _give_back() -> None:
    """Hand memory that is free again to the system: glibc keeps it, and a large load leaves as much as it needs."""
    if sys.platform == "linux":
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
        if trim is not None:
            trim(0)


def _doc(row: Indexed) -> Doc:
    return Doc(row.id, row.server, row.name, row.description, row.inputs, row.kind, row.input_texts)
