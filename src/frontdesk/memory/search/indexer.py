"""Embeds texts that were stored or changed, in the background, each person's by itself.

Until an item was read it is found by its words. Replicas may read at once: what one has read, another finds read.
"""

from collections.abc import Sequence
from contextlib import suppress
from functools import partial

import anyio
import numpy as np
import structlog

from frontdesk.background import BackgroundJob
from frontdesk.embedding.embedder import Embedder
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
from frontdesk.memory.search.vectors_store import NumberedVectors, model_number
from frontdesk.memory.store import PersonDatabase

BATCH = 64
# What others left unread, as one that was stopped midway does, is looked for so often.
CHECK_SECONDS = 30.0
FIRST_SECONDS = 1.0
# An embedder or a database that is away is not asked more often than this, however much changes meanwhile.
PAUSE_SECONDS = 1.0
# Nobody's records: all that can be seen from here is who there is.
NO_PERSON = PersonScope("")

log = structlog.get_logger("frontdesk.memory")
JOB = BackgroundJob(log, "reading_waits", "reading_failed")


class MemoryIndexer:
    """`wake` it after a change; without an embedder there is nothing to do."""

    def __init__(self, records: PersonDatabase, embedder: Embedder | None) -> None:
        self._records = records
        self._embedder = embedder
        self._woken = anyio.Event()

    def wake(self) -> None:
        self._woken.set()

    async def run(self) -> None:
        """Until cancelled."""
        if self._embedder is None:
            return
        # One that is stopped in a moment leaves no question half asked.
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
        """Have read again what another embedder read; once, or two replicas with two embedders would take turns."""
        if self._embedder is None:
            return
        model = model_number(self._embedder.name)
        for person in await self._records.read(NO_PERSON, partial(people_of_other_models, model=model)):
            # Who has gone since is nobody to adopt.
            with suppress(NotFound):
                await self._records.change(PersonScope(person), partial(assign_model, model=model))

    async def index_all(self) -> None:
        """Everything that is unread now."""
        if self._embedder is None:
            return
        model = model_number(self._embedder.name)
        while people := await self._records.read(NO_PERSON, partial(people_with_pending, model=model)):
            for person in people:
                with suppress(NotFound):
                    await self._index_batch(PersonScope(person), self._embedder, model)

    async def _index_batch(self, scope: PersonScope, embedder: Embedder, model: int) -> None:
        """A batch of one person's."""
        texts: Sequence[PendingText] = await self._records.read(scope, partial(fetch_pending, model=model, count=BATCH))
        # Another replica may have read them just now; then it is only counted what is left.
        vectors = await embedder.embed([one.text for one in texts]) if texts else np.empty((0, 1), np.float32)
        given = NumberedVectors.encode([one.n for one in texts], vectors)
        keep = partial(save_embedded, model=model, texts=texts, given=given, last=len(texts) < BATCH)
        await self._records.change(scope, keep, small=False)
