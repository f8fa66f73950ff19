"""Keeps the index in memory up to date with the database, and embeds tools that have no vector yet."""

import ctypes
import random
import sys
from collections.abc import Mapping, Sequence

import anyio
import structlog

from frontdesk.db.statements import in_slices
from frontdesk.embedding import Embedder
from frontdesk.errors import FrontdeskError
from frontdesk.search.vectors import pack_vectors, unpack_vectors
from frontdesk.tools.catalogue_store import IndexedTool, ToolStore, ToolVectorStore
from frontdesk.tools.index import ToolIndex
from frontdesk.tools.index_segments import ToolDocument
from frontdesk.tools.model import tool_text

# With its vectors, a chunk has a few megabytes and takes a fraction of a second.
ROWS_AT_ONCE = 1000
# At most this many rows are indexed without a thread; more would block the event loop.
ROWS_IN_PLACE = 20


class IndexSync:
    """Copies changes from the database to the index. `revision` is the last revision that the index has completely."""

    def __init__(self, store: ToolStore, index: ToolIndex, model: str | None) -> None:
        self._store = store
        self._index = index
        self._model = model
        self._place = (0, "")
        self._turn = anyio.Lock()
        self.revision = 0
        self._newer: set[str] | None = None

    async def behind(self) -> bool:
        """Whether there are changes; this takes one small query."""
        return await self._store.revision() != self.revision

    async def pull(self) -> Sequence[str]:
        """Index what changed. Returns the ids of the changed tools."""
        changed: list[str] = []
        async with self._turn:
            reached = await self._store.revision()
            while rows := await self._store.changed_since(*self._place, ROWS_AT_ONCE, self._model):
                await self._take_in(rows)
                changed += [row.id for row in rows]
                self._place = (rows[-1].revision, rows[-1].id)
                if len(rows) < ROWS_AT_ONCE:
                    break
            self.revision = max(reached, self._place[0])
        return changed

    def watch(self) -> None:
        """From now on, record which tools change: vectors that are being computed are outdated for them."""
        self._newer = set()

    async def set_vectors(self, vectors: Mapping[str, bytes]) -> None:
        """Set the vectors of tools, except tools that changed since `watch`."""
        async with self._turn:
            still = {found: vector for found, vector in vectors.items() if found not in (self._newer or ())}
            self._newer = None
            if still:
                matrix = unpack_vectors(list(still.values()))
                await anyio.to_thread.run_sync(self._index.set_vectors, list(still), matrix)

    async def _take_in(self, rows: Sequence[IndexedTool]) -> None:
        if self._newer is not None:
            self._newer.update(row.id for row in rows)
        if len(rows) <= ROWS_IN_PLACE:
            self._index_all(rows)
        else:
            await anyio.to_thread.run_sync(self._index_all, rows)

    def _index_all(self, rows: Sequence[IndexedTool]) -> None:
        self._index.put([_make_document(row) for row in rows if row.usable])
        self._index.remove([row.id for row in rows if not row.usable])
        known = [(row.id, row.vector) for row in rows if row.usable and row.vector is not None]
        if known:
            self._index.set_vectors([found for found, _ in known], unpack_vectors([vector for _, vector in known]))
        if len(rows) == ROWS_AT_ONCE:
            _return_free_memory()


def _return_free_memory() -> None:
    """Return free memory to the system. glibc keeps it, and a large load frees as much as it uses."""
    if sys.platform == "linux":
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
        if trim is not None:
            trim(0)


def _make_document(row: IndexedTool) -> ToolDocument:
    return ToolDocument(row.id, row.server, row.name, row.description, row.inputs, row.kind, row.input_texts)


# Small enough that a concurrent query hardly waits.
EMBED_BATCH = 32
# A large index copies itself whenever vectors are set, so they are set in this many batches.
VECTOR_LOTS = 100
LOOK_SECONDS = 0.5
LOG_SECONDS = 3.0
EMBED_PAUSES = (1.0, 2.0, 5.0, 15.0, 60.0)

log = structlog.get_logger("frontdesk.tools.meaning")


class ToolEmbedding:
    """Embeds new tools. Without an embedder, or while it fails, search uses only terms; `trouble` says why."""

    def __init__(
        self, index: ToolIndex, tools: ToolStore, vectors: ToolVectorStore, sync: IndexSync, embedder: Embedder | None
    ) -> None:
        self._index = index
        self._tools = tools
        self._vectors = vectors
        self._sync = sync
        self._embedder = embedder
        self.trouble = ""

    async def run(self) -> None:
        """Look for tools without a vector repeatedly, less often while it fails."""
        failures = 0
        while self._embedder is not None:
            try:
                await self.embed_missing()
            except Exception as error:
                # A model is foreign code. If it fails in any way, search by terms and everything else must continue.
                self.trouble = (
                    str(error) if isinstance(error, FrontdeskError) else "the model fails; the log says where"
                )
                log.warning(
                    "meaning_waits",
                    error=self.trouble,
                    missing=len(self._index.missing_vectors()),
                    exc_info=not isinstance(error, FrontdeskError),
                )
                await anyio.sleep(EMBED_PAUSES[min(failures, len(EMBED_PAUSES) - 1)])
                failures += 1
            else:
                self.trouble, failures = "", 0
                await anyio.sleep(LOOK_SECONDS)

    async def embed_missing(self) -> None:
        """Embed every tool that has no vector."""
        missing = self._index.missing_vectors()
        if missing and self._embedder is not None:
            # Each replica starts at a random place, so that they share the work.
            start = random.randrange(len(missing))  # noqa: S311 - it needs no secrecy
            lot = max(EMBED_BATCH, len(self._index) // VECTOR_LOTS)
            told = anyio.current_time()
            for number, some in enumerate(in_slices([*missing[start:], *missing[:start]], lot)):
                await self._embed(self._embedder, some)
                if anyio.current_time() - told > LOG_SECONDS:
                    told = anyio.current_time()
                    log.info("tools_being_read", read=min((number + 1) * lot, len(missing)), of=len(missing))
            log.info("tools_read", tools=len(missing))

    async def _embed(self, embedder: Embedder, ids: Sequence[str]) -> None:
        self._sync.watch()
        found: dict[str, bytes] = {}
        for some in in_slices(ids, EMBED_BATCH):
            found |= await self._vectors_of(embedder, some)
        await self._sync.set_vectors(found)

    async def _vectors_of(self, embedder: Embedder, ids: Sequence[str]) -> Mapping[str, bytes]:
        tools = await self._tools.texts(ids)
        texts = {tool.digest: tool_text(tool.server, tool.name, tool.description, tool.inputs) for tool in tools}
        known = dict(await self._vectors.get(embedder.name, list(texts)))
        new = {digest: text for digest, text in texts.items() if digest not in known}
        if new:
            made = dict(zip(new, pack_vectors(await embedder.embed(list(new.values()))), strict=True))
            await self._vectors.put(embedder.name, made)
            known |= made
        return {tool.id: known[tool.digest] for tool in tools}
