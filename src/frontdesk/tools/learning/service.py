"""Learning from use: a tool that was found, and then was of use, is found more easily for queries like that one."""

import hashlib
from collections import OrderedDict, deque
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import islice
from uuid import uuid4

import anyio
import numpy as np
import structlog
from numpy.typing import NDArray

from frontdesk.background import Chore
from frontdesk.db.engine import Database
from frontdesk.errors import Unavailable
from frontdesk.identity.model import Caller
from frontdesk.tools.learning.memory import Memory
from frontdesk.tools.learning.model import PastSearch, Use, key_of, tenant_of
from frontdesk.tools.learning.recall import recall
from frontdesk.tools.learning.store import LearningStore
from frontdesk.tools.packing import packed

FLUSH_SECONDS = 0.5
DRAIN_SECONDS = 3
PRUNE_SECONDS = 3600.0
BATCH = 200
WAITING = 5_000
# Searches of one caller that a use is looked for among, before the database is asked; and callers that have any.
RECENT = 20
CALLERS = 2_000
SEARCH_KEPT = timedelta(hours=1)
# Where no search is behind a use, the database is not asked again for so long.
NO_SEARCH_SECONDS = 10.0
USE_KEPT = timedelta(days=365)

log = structlog.get_logger("frontdesk.tools.learning")
CHORE = Chore(log, "learning_waits", "learning_failed")


class Learning:
    """`model` names the embedder; without one, or where learning is off, nothing is remembered."""

    def __init__(
        self,
        database: Database,
        model: str | None,
        *,
        enabled: bool = True,
        clock: Callable[[], float] = anyio.current_time,
    ) -> None:
        self._on = enabled and model is not None
        self._clock = clock
        self._store = LearningStore(database, model or "")
        self._memory = Memory(self._store, clock)
        self._recent: OrderedDict[str, deque[PastSearch]] = OrderedDict()
        self._waiting: deque[PastSearch] = deque(maxlen=WAITING)
        self._unsearched: dict[tuple[str, str], float] = {}

    def searched(self, caller: Caller, vector: NDArray[np.float32], offered: Sequence[str]) -> None:
        """Keep a search in mind for an hour; a database that is slow or away holds nobody up."""
        if not self._on or not offered:
            return
        [kept] = packed(vector[np.newaxis])
        digest = hashlib.sha256(kept).hexdigest()[:32]
        now, tenant, key = datetime.now(UTC), tenant_of(caller), key_of(caller)
        found = PastSearch(uuid4().hex, tenant, key, digest, kept, tuple(offered), now)
        self._recent.setdefault(key, deque(maxlen=RECENT)).append(found)
        self._recent.move_to_end(key)
        if len(self._recent) > CALLERS:
            self._recent.popitem(last=False)
        self._waiting.append(found)

    async def used(self, caller: Caller, tool_id: str, weight: float, at: datetime | None = None) -> bool:
        """Credit the newest search of this caller that offered the tool; whether there was one."""
        if not self._on:
            return False
        now = at or datetime.now(UTC)
        since, key = now - SEARCH_KEPT, key_of(caller)
        here = (one for one in reversed(self._recent.get(key, ())) if tool_id in one.offered and one.at >= since)
        found = next(here, None) or await self._search_elsewhere(key, tool_id, since)
        if found is None:
            return False
        await self._store.record(found.tenant, Use(tool_id, found.query_digest, found.vector, weight, now))
        self._memory.look_again(found.tenant)
        return True

    async def _search_elsewhere(self, key: str, tool_id: str, since: datetime) -> PastSearch | None:
        """A search that came to another replica, or before this process began; most uses have none behind them."""
        now, this = self._clock(), (key, tool_id)
        if now - self._unsearched.get(this, -NO_SEARCH_SECONDS) < NO_SEARCH_SECONDS:
            return None
        found = await self._store.search_for(key, tool_id, since)
        if found is None:
            if len(self._unsearched) >= CALLERS:
                self._unsearched.clear()
            self._unsearched[this] = now
        return found

    async def recall(self, caller: Caller, vector: NDArray[np.float32]) -> Mapping[str, float]:
        """Which tools were of use for queries like this one, and how surely."""
        if not self._on:
            return {}
        try:
            uses = await self._memory.of(tenant_of(caller))
        except Unavailable as error:
            log.warning("search_without_past", error=str(error))
            return {}
        return recall(uses, vector, datetime.now(UTC)) if len(uses) else {}

    async def forget(self, tenant: str) -> None:
        """Everything that was learned for one tenant: `user:ID`, `agent:ID` or `local`."""
        for key in [key for key, recent in self._recent.items() if any(one.tenant == tenant for one in recent)]:
            del self._recent[key]
        self._waiting = deque((one for one in self._waiting if one.tenant != tenant), maxlen=WAITING)
        await self._store.forget(tenant)
        self._memory.look_again(tenant)

    async def run(self) -> None:
        """Write searches down until cancelled, then what is left, so that a use may come to any replica."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(partial(CHORE.every, PRUNE_SECONDS, self.prune, at_once=True))
            await CHORE.written(FLUSH_SECONDS, self.flush, DRAIN_SECONDS)

    async def flush(self) -> None:
        """Write down the searches that wait."""
        while self._waiting:
            batch = list(islice(self._waiting, BATCH))
            await self._store.add_searches(batch)
            for done in batch:
                if self._waiting and self._waiting[0] is done:
                    self._waiting.popleft()

    async def prune(self) -> None:
        """Forget what is too old to count."""
        now = datetime.now(UTC)
        await self._store.prune(now - USE_KEPT, now - SEARCH_KEPT)
