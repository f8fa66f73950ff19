"""Limits calls per agent and per user: exact in one process, in leased shares among replicas."""

from collections import OrderedDict

from frontdesk.errors import RateLimited
from frontdesk.identity.model import Caller
from frontdesk.identity.store import BucketStore, TokenBucket
from frontdesk.settings import Rate

# A replica leases this share of a bucket in one step, so that most calls need no database.
LEASED_SHARE = 0.05
MAX_BUCKETS = 10_000


class RateLimiter:
    """Counts calls per agent and per user. With a `store`, the buckets are shared with other replicas."""

    def __init__(self, agent: Rate | None, user: Rate | None, store: BucketStore | None) -> None:
        self._agent = agent
        self._user = user
        self._store = store
        self._buckets: OrderedDict[str, TokenBucket] = OrderedDict()

    async def admit(self, caller: Caller, now: float) -> None:
        """Count one call, or raise `RateLimited` with the time to wait. `now` is in seconds since the epoch."""
        if self._agent and caller.agent_id:
            await self._take(f"agent:{caller.agent_id}", self._agent, now)
        if self._user and caller.user_id:
            await self._take(f"user:{caller.user_id}", self._user, now)

    async def prune(self, now: float) -> None:
        """Delete shared buckets that are full again."""
        longest = max((rate.seconds for rate in (self._agent, self._user) if rate), default=None)
        if self._store is not None and longest is not None:
            await self._store.prune(now - longest)

    async def _take(self, key: str, rate: Rate, now: float) -> None:
        if self._store is None:
            wait = self._take_local(key, rate, now)
        else:
            wait = await self._take_shared(self._store, key, rate, now)
        if wait > 0:
            raise RateLimited(key.replace(":", " ", 1), wait)

    def _take_local(self, key: str, rate: Rate, now: float) -> float:
        bucket, _, wait = self._buckets.get(key, TokenBucket(rate.limit, now)).take_up_to(rate, 1, now)
        self._keep(key, bucket)
        return wait

    async def _take_shared(self, store: BucketStore, key: str, rate: Rate, now: float) -> float:
        held = self._buckets.get(key)
        # A leased share is valid for one period of the bucket; the rest of an older share is discarded.
        if held is not None and held.tokens >= 1 and now - held.at < rate.seconds:
            self._keep(key, TokenBucket(held.tokens - 1, held.at))
            return 0.0
        share = max(1, int(rate.limit * LEASED_SHARE))
        granted, wait = await store.lease(key, rate, share, now)
        if granted:
            self._keep(key, TokenBucket(granted - 1, now))
        return wait

    def _keep(self, key: str, bucket: TokenBucket) -> None:
        self._buckets[key] = bucket
        self._buckets.move_to_end(key)
        if len(self._buckets) > MAX_BUCKETS:
            self._buckets.popitem(last=False)
