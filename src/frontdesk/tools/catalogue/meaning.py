"""Gives tools their vectors behind the scenes: from the database where some replica made them, else from the model."""

import random
from collections.abc import Mapping, Sequence

import anyio
import structlog

from frontdesk.db.lists import sliced
from frontdesk.embedding.port import Embedder
from frontdesk.errors import FrontdeskError
from frontdesk.tools.catalogue.store import ToolStore
from frontdesk.tools.catalogue.sync import Sync
from frontdesk.tools.catalogue.vectors.store import VectorStore
from frontdesk.tools.packing import packed
from frontdesk.tools.search.index import Index
from frontdesk.tools.text import tool_text

# Small enough that a query that comes meanwhile hardly waits.
BATCH = 32
# Whenever vectors are set, a large index copies itself, so it is given them in this many lots.
LOTS = 100
LOOK_SECONDS = 0.5
TELL_SECONDS = 3.0
PAUSES = (1.0, 2.0, 5.0, 15.0, 60.0)

log = structlog.get_logger("frontdesk.tools.meaning")


class Meaning:
    """Without an embedder, or while it fails, search goes by words; `trouble` says why."""

    def __init__(
        self, index: Index, tools: ToolStore, vectors: VectorStore, sync: Sync, embedder: Embedder | None
    ) -> None:
        self._index = index
        self._tools = tools
        self._vectors = vectors
        self._sync = sync
        self._embedder = embedder
        self.trouble = ""

    async def run(self) -> None:
        """Look for tools without a vector again and again, the more rarely the longer it fails."""
        failures = 0
        while self._embedder is not None:
            try:
                await self.fill()
            except Exception as error:
                # A model is foreign code: whatever it does, words go on being found, and so does all else.
                self.trouble = (
                    str(error) if isinstance(error, FrontdeskError) else "the model fails; the log says where"
                )
                log.warning(
                    "meaning_waits",
                    error=self.trouble,
                    missing=len(self._index.missing_vectors()),
                    exc_info=not isinstance(error, FrontdeskError),
                )
                await anyio.sleep(PAUSES[min(failures, len(PAUSES) - 1)])
                failures += 1
            else:
                self.trouble, failures = "", 0
                await anyio.sleep(LOOK_SECONDS)

    async def fill(self) -> None:
        """Give every tool that has none its vector."""
        missing = self._index.missing_vectors()
        if missing and self._embedder is not None:
            # Each replica begins somewhere else, so that they share the work instead of all doing it.
            start = random.randrange(len(missing))  # noqa: S311 - nobody gains from guessing it
            lot = max(BATCH, len(self._index) // LOTS)
            told = anyio.current_time()
            for number, some in enumerate(sliced([*missing[start:], *missing[:start]], lot)):
                await self._give(self._embedder, some)
                if anyio.current_time() - told > TELL_SECONDS:
                    told = anyio.current_time()
                    log.info("tools_being_read", read=min((number + 1) * lot, len(missing)), of=len(missing))
            log.info("tools_read", tools=len(missing))

    async def _give(self, embedder: Embedder, ids: Sequence[str]) -> None:
        self._sync.watch()
        found: dict[str, bytes] = {}
        for some in sliced(ids, BATCH):
            found |= await self._vectors_of(embedder, some)
        await self._sync.give(found)

    async def _vectors_of(self, embedder: Embedder, ids: Sequence[str]) -> Mapping[str, bytes]:
        tools = await self._tools.texts(ids)
        texts = {tool.digest: tool_text(tool.server, tool.name, tool.description, tool.inputs) for tool in tools}
        known = dict(await self._vectors.get(embedder.name, list(texts)))
        new = {digest: text for digest, text in texts.items() if digest not in known}
        if new:
            made = dict(zip(new, packed(await embedder.embed(list(new.values()))), strict=True))
            await self._vectors.put(embedder.name, made)
            known |= made
        return {tool.id: known[tool.digest] for tool in tools}
