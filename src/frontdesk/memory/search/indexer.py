"""Embeds texts that were stored or changed, in the background, one person at a time.

Until an item is embedded, it is found by its terms. Several replicas may work at the same time; each skips what another
has done.
"""

from collections.abc import Sequence
from contextlib import suppress
from functools import partial

import anyio
import numpy as np
import structlog

from frontdesk.background import BackgroundJob
from frontdesk.embedding import Embedder
from frontdesk.errors import NotFound
from frontdesk.memory.model import PersonScope
from frontdesk.memory.search.index_store import (
    PendingText,
    assign_model,
    fetch_pending,
    people_of_other_models,
    people_with_pending,
    save_embedded,
)
from frontdesk.memory.search.vectors_store import model_number
from frontdesk.memory.store import PersonDatabase
from frontdesk.search.vectors import NumberedVectors

BATCH = 64
# How often to look for items that another process left, because it was stopped.
CHECK_SECONDS = 30.0
FIRST_SECONDS = 1.0
# The pause after a failure of the embedder or the database.
PAUSE_SECONDS = 1.0
# No person's records are visible in this scope, only the list of people.
NO_PERSON = PersonScope("")

log = structlog.get_logger("frontdesk.memory")
JOB = BackgroundJob(log, "reading_waits", "reading_failed")


class MemoryIndexer:
    """Call `wake` after a change. Without an embedder, it does nothing."""

    def __init__(self, records: PersonDatabase, embedder: Embedder | None) -> None:
        self._records = records
        self._embedder = embedder
        self._woken = anyio.Event()

    def wake(self) -> None:
        self._woken.set()

    async def run(self) -> None:
        """Work until cancelled."""
        if self._embedder is None:
            return
        # A process that is stopped right after its start has not used the database yet.
        with anyio.move_on_after(FIRST_SECONDS):
            await self._woken.wait()
        adopted = False
        while True:
            self._woken = anyio.Event()
            adopted = adopted or await JOB.attempt(self.assign_model)
            if not (adopted and await JOB.attempt(self.index_all)):
                await anyio.sleep(PAUSE_SECONDS)
            with anyio.move_on_after(CHECK_SECONDS):
                await self._woken.wait()

    async def assign_model(self) -> None:
        """Assign everybody to this embedder. Only once: replicas with two embedders would reassign in turn."""
        if self._embedder is None:
            return
        model = model_number(self._embedder.name)
        for person in await self._records.read(NO_PERSON, partial(people_of_other_models, model=model)):
            # Somebody may have been erased since.
            with suppress(NotFound):
                await self._records.change(PersonScope(person), partial(assign_model, model=model))

    async def index_all(self) -> None:
        """Embed every item that has no vector now."""
        if self._embedder is None:
            return
        model = model_number(self._embedder.name)
        while people := await self._records.read(NO_PERSON, partial(people_with_pending, model=model)):
            for person in people:
                with suppress(NotFound):
                    await self._index_batch(PersonScope(person), self._embedder, model)

    async def _index_batch(self, scope: PersonScope, embedder: Embedder, model: int) -> None:
        """Embed one batch of one person's items."""
        texts: Sequence[PendingText] = await self._records.read(scope, partial(fetch_pending, model=model, count=BATCH))
        # Another replica may have embedded them just now. Then only the count is corrected.
        vectors = await embedder.embed([one.text for one in texts]) if texts else np.empty((0, 1), np.float32)
        given = NumberedVectors.encode([one.n for one in texts], vectors)
        keep = partial(save_embedded, model=model, texts=texts, vectors=given, last=len(texts) < BATCH)
        await self._records.change(scope, keep, small=False)
