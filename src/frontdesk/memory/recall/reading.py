"""Reads what people keep, so that it is found by its meaning: in the background, each person's by itself.

Until an item was read it is found by its words. Replicas may read at once: what one has read, another finds read.
"""

from collections.abc import Sequence
from contextlib import suppress
from functools import partial

import anyio
import numpy as np
import structlog

from frontdesk.background import Chore
from frontdesk.embedding.port import Embedder
from frontdesk.errors import NotFound
from frontdesk.memory.recall.meaning import store as meaning
from frontdesk.memory.recall.meaning.packing import Bag
from frontdesk.memory.recall.unread import store as unread
from frontdesk.memory.recall.unread.store import Unread
from frontdesk.memory.scope import Scope
from frontdesk.memory.store import Records

BATCH = 64
# What others left unread, as one that was stopped midway does, is looked for so often.
LOOK_SECONDS = 30.0
FIRST_SECONDS = 1.0
# An embedder or a database that is away is not asked more often than this, however much changes meanwhile.
PAUSE_SECONDS = 1.0
# Nobody's records: all that can be seen from here is who there is.
NOBODY = Scope("")

log = structlog.get_logger("frontdesk.memory")
CHORE = Chore(log, "reading_waits", "reading_failed")


class Reader:
    """`wake` it after a change; without an embedder there is nothing to do."""

    def __init__(self, records: Records, embedder: Embedder | None) -> None:
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
            adopted = adopted or await CHORE.attempt(self.adopt)
            if not (adopted and await CHORE.attempt(self.read_all)):
                await anyio.sleep(PAUSE_SECONDS)
            with anyio.move_on_after(LOOK_SECONDS):
                await self._woken.wait()

    async def adopt(self) -> None:
        """Have read again what another embedder read; once, or two replicas with two embedders would take turns."""
        if self._embedder is None:
            return
        model = meaning.number_of(self._embedder.name)
        for person in await self._records.read(NOBODY, partial(unread.of_others, model=model)):
            # Who has gone since is nobody to adopt.
            with suppress(NotFound):
                await self._records.change(Scope(person), partial(unread.adopt, model=model))

    async def read_all(self) -> None:
        """Everything that is unread now."""
        if self._embedder is None:
            return
        model = meaning.number_of(self._embedder.name)
        while people := await self._records.read(NOBODY, partial(unread.people_with, model=model)):
            for person in people:
                with suppress(NotFound):
                    await self._read(Scope(person), self._embedder, model)

    async def _read(self, scope: Scope, embedder: Embedder, model: int) -> None:
        """A batch of one person's."""
        texts: Sequence[Unread] = await self._records.read(scope, partial(unread.some, model=model, count=BATCH))
        # Another replica may have read them just now; then it is only counted what is left.
        vectors = await embedder.embed([one.text for one in texts]) if texts else np.empty((0, 1), np.float32)
        given = Bag.of([one.n for one in texts], vectors)
        keep = partial(unread.keep, model=model, texts=texts, given=given, last=len(texts) < BATCH)
        await self._records.change(scope, keep, small=False)
