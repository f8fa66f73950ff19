"""Learns from use: a tool that was used after a search ranks higher in similar searches."""

import hashlib
from collections import OrderedDict, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import islice
from uuid import uuid4

import anyio
import numpy as np
import structlog
from numpy.typing import NDArray

from frontdesk.background import BackgroundJob
from frontdesk.db.engine import Database
from frontdesk.errors import Unavailable
from frontdesk.identity.model import Caller
from frontdesk.search.vectors import pack_vectors
from frontdesk.tools.agent_tools_store import ToolAttachmentStore
from frontdesk.tools.learning_store import LearnedUse, LearnedUseCache, LearnedUses, LearningStore, PastSearch

LOCAL_TENANT = "local"


def tenant_of(caller: Caller) -> str:
    """The key under which learning is shared: a person, else an agent, else the installation."""
    return (
        f"user:{caller.user_id}" if caller.user_id else f"agent:{caller.agent_id}" if caller.agent_id else LOCAL_TENANT
    )


def caller_key(caller: Caller) -> str:
    """The key of the caller whose searches a use belongs to: this agent, working for this person."""
    return f"{caller.agent_id or ''}/{caller.user_id or ''}"


# A query with a smaller cosine is unrelated.
UNRELATED_COSINE = 0.3
# Only the nearest few uses count. Otherwise a tool that is used often would be found for every query.
NEAREST_USES = 20
HALF_LIFE_DAYS = 90.0
# The highest weight of the uses of a tool for the same query.
LARGEST_WEIGHT = 3.0
DAY_SECONDS = 86_400.0


def recall_tools(uses: LearnedUses, vector: NDArray[np.float32], now: datetime) -> Mapping[str, float]:
    """How certainly each tool fits, from 0 to 1: more with each use for a similar query, less with its age."""
    if not len(uses):
        return {}
    likeness = np.clip((uses.vectors @ vector - UNRELATED_COSINE) / (1 - UNRELATED_COSINE), 0, 1)
    nearest = _nearest_rows(likeness)
    says = likeness[nearest] * _decayed_weights(uses, nearest, now)
    summed: dict[str, float] = {}
    for row, said in zip(map(int, nearest), map(float, says), strict=True):
        if said > 0:
            tool_id = uses.tools[row]
            summed[tool_id] = summed.get(tool_id, 0.0) + said
    return {tool_id: float(-np.expm1(-said)) for tool_id, said in summed.items()}


def _nearest_rows(likeness: NDArray[np.float32]) -> NDArray[np.intp]:
    if len(likeness) <= NEAREST_USES:
        return np.arange(len(likeness))
    return np.argpartition(-likeness, NEAREST_USES)[:NEAREST_USES]


def _decayed_weights(uses: LearnedUses, rows: NDArray[np.intp], now: datetime) -> NDArray[np.float64]:
    days = np.maximum(now.timestamp() - uses.at[rows], 0) / DAY_SECONDS
    return np.clip(uses.weights[rows], 0, LARGEST_WEIGHT) * 0.5 ** (days / HALF_LIFE_DAYS)


FLUSH_SECONDS = 0.5
DRAIN_SECONDS = 3
PRUNE_SECONDS = 3600.0
SEARCHES_AT_ONCE = 200
MOST_WAITING_SEARCHES = 5_000
# How many searches of a caller are kept in memory, and for how many callers.
RECENT_SEARCHES = 20
CALLERS_CACHED = 2_000
SEARCH_KEPT = timedelta(hours=1)
# After a use without a previous search, the database is not queried again for this long.
NO_SEARCH_SECONDS = 10.0
USE_KEPT = timedelta(days=365)

log = structlog.get_logger("frontdesk.tools.learning")
LEARNING_JOB = BackgroundJob(log, "learning_waits", "learning_failed")


class ToolLearning:
    """Records searches and uses. `model` names the embedder. Without one, or if learning is off, it stores nothing."""

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
        self._memory = LearnedUseCache(self._store, clock)
        self._recent: OrderedDict[str, deque[PastSearch]] = OrderedDict()
        self._waiting: deque[PastSearch] = deque(maxlen=MOST_WAITING_SEARCHES)
        self._unsearched: dict[tuple[str, str], float] = {}

    def note_search(self, caller: Caller, vector: NDArray[np.float32], offered: Sequence[str]) -> None:
        """Keep a search for an hour. It is written to the database later."""
        if not self._on or not offered:
            return
        [kept] = pack_vectors(vector[np.newaxis])
        digest = hashlib.sha256(kept).hexdigest()[:32]
        now, tenant, key = datetime.now(UTC), tenant_of(caller), caller_key(caller)
        found = PastSearch(uuid4().hex, tenant, key, digest, kept, tuple(offered), now)
        self._recent.setdefault(key, deque(maxlen=RECENT_SEARCHES)).append(found)
        self._recent.move_to_end(key)
        if len(self._recent) > CALLERS_CACHED:
            self._recent.popitem(last=False)
        self._waiting.append(found)

    async def note_use(self, caller: Caller, tool_id: str, weight: float, at: datetime | None = None) -> bool:
        """Credit the newest search of this caller that offered the tool. Returns whether there was one."""
        if not self._on:
            return False
        now = at or datetime.now(UTC)
        since, key = now - SEARCH_KEPT, caller_key(caller)
        here = (one for one in reversed(self._recent.get(key, ())) if tool_id in one.offered and one.at >= since)
        found = next(here, None) or await self._search_elsewhere(key, tool_id, since)
        if found is None:
            return False
        await self._store.record(found.tenant, LearnedUse(tool_id, found.query_digest, found.vector, weight, now))
        self._memory.invalidate(found.tenant)
        return True

    async def _search_elsewhere(self, key: str, tool_id: str, since: datetime) -> PastSearch | None:
        """A search on another replica, or from before this process started. Most uses have no search before them."""
        now, this = self._clock(), (key, tool_id)
        if now - self._unsearched.get(this, -NO_SEARCH_SECONDS) < NO_SEARCH_SECONDS:
            return None
        found = await self._store.search_for(key, tool_id, since)
        if found is None:
            if len(self._unsearched) >= CALLERS_CACHED:
                self._unsearched.clear()
            self._unsearched[this] = now
        return found

    async def recall(self, caller: Caller, vector: NDArray[np.float32]) -> Mapping[str, float]:
        """The tools that were used for similar queries, and how certainly each fits."""
        if not self._on:
            return {}
        try:
            uses = await self._memory.uses_of_tenant(tenant_of(caller))
        except Unavailable as error:
            log.warning("search_without_past", error=str(error))
            return {}
        return recall_tools(uses, vector, datetime.now(UTC)) if len(uses) else {}

    async def forget(self, tenant: str) -> None:
        """Delete everything that was learned for one tenant: `user:ID`, `agent:ID` or `local`."""
        for key in [key for key, recent in self._recent.items() if any(one.tenant == tenant for one in recent)]:
            del self._recent[key]
        self._waiting = deque((one for one in self._waiting if one.tenant != tenant), maxlen=MOST_WAITING_SEARCHES)
        await self._store.forget(tenant)
        self._memory.invalidate(tenant)

    async def run(self) -> None:
        """Write searches until cancelled, then the remaining ones, so that a use on any replica finds its search."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(partial(LEARNING_JOB.run_every, PRUNE_SECONDS, self.prune, at_once=True))
            await LEARNING_JOB.flush_every(FLUSH_SECONDS, self.flush, DRAIN_SECONDS)

    async def flush(self) -> None:
        """Write the waiting searches."""
        while self._waiting:
            batch = list(islice(self._waiting, SEARCHES_AT_ONCE))
            await self._store.add_searches(batch)
            for done in batch:
                if self._waiting and self._waiting[0] is done:
                    self._waiting.popleft()

    async def prune(self) -> None:
        """Delete searches and uses that are too old to count."""
        now = datetime.now(UTC)
        await self._store.prune(now - USE_KEPT, now - SEARCH_KEPT)


MOST_WAITING_USES = 10_000
# The last use of a frequently called tool is recorded once in this many seconds.
TOUCH_SECONDS = 10.0
# How strongly each kind of use shows that the tool fits the query.
CALLED_WEIGHT, PICKED_WEIGHT, KEPT_BY_NAME_WEIGHT = 1.0, 0.8, 0.5

usage_log = structlog.get_logger("frontdesk.tools")
USAGE_JOB = BackgroundJob(usage_log, "use_not_remembered", "use_not_remembered")


@dataclass(frozen=True, slots=True)
class RecordedUse:
    """Who used which tool, how, and when."""

    caller: Caller
    tool_id: str
    weight: float
    at: datetime


class UsageRecorder:
    """Records uses in the background: `note` only appends to a list, `run` writes it."""

    def __init__(self, learning: ToolLearning, holdings: ToolAttachmentStore) -> None:
        self._learning = learning
        self._holdings = holdings
        self._waiting: deque[RecordedUse] = deque(maxlen=MOST_WAITING_USES)
        self._touched: dict[tuple[str, str], float] = {}

    def note(self, caller: Caller, tool_id: str, weight: float) -> None:
        self._waiting.append(RecordedUse(caller, tool_id, weight, datetime.now(UTC)))

    async def run(self) -> None:
        """Write until cancelled, then write the rest."""
        await USAGE_JOB.flush_every(FLUSH_SECONDS, self.flush, DRAIN_SECONDS)

    async def close(self) -> None:
        """Write the rest, within a few seconds."""
        with anyio.move_on_after(DRAIN_SECONDS, shield=True):
            await self.flush()

    async def flush(self) -> None:
        """Write the waiting uses. Uses that cannot be written are dropped, because only convenience depends on them."""
        uses, self._waiting = self._waiting, deque(maxlen=MOST_WAITING_USES)
        # One record is enough for a tool that is called all the time.
        once = {(use.caller.agent_id, use.caller.user_id, use.tool_id, use.weight): use for use in uses}
        for use in once.values():
            await USAGE_JOB.attempt(partial(self._remember, use))

    async def _remember(self, use: RecordedUse) -> None:
        if use.caller.agent_id is not None:
            await self._touch(use.caller.agent_id, use)
        await self._learning.note_use(use.caller, use.tool_id, use.weight, use.at)

    async def _touch(self, agent_id: str, use: RecordedUse) -> None:
        now, this = anyio.current_time(), (agent_id, use.tool_id)
        if now - self._touched.get(this, -TOUCH_SECONDS) < TOUCH_SECONDS:
            return
        await self._holdings.touch(agent_id, use.tool_id, use.at)
        if len(self._touched) >= MOST_WAITING_USES:
            self._touched.clear()
        self._touched[this] = now
