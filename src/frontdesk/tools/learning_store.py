"""Stores which tools were used after which searches, and caches the latest uses of each tenant in memory."""

import hashlib
import json
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Executable, RowMapping, delete, func, insert, select

from frontdesk.db.engine import Database, Transaction
from frontdesk.db.schema import tool_searches, tool_uses
from frontdesk.db.statements import increase_counter, per_dialect, read_counter
from frontdesk.search.vectors import unpack_vectors


@dataclass(frozen=True, slots=True)
class LearnedUse:
    """A use of a tool for a query. `weight` grows with each repetition."""

    tool_id: str
    query_digest: str
    vector: bytes
    weight: float
    at: datetime


@dataclass(frozen=True, slots=True)
class LearnedUses:
    """The uses of a tenant as arrays: the tool, the query's vector, the weight, and the time in Unix seconds."""

    tools: Sequence[str]
    vectors: NDArray[np.float32]
    weights: NDArray[np.float32]
    at: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.tools)


@dataclass(frozen=True, slots=True)
class PastSearch:
    """A search of the last hour: the caller, and the tools that it offered."""

    id: str
    tenant: str
    caller: str
    query_digest: str
    vector: bytes
    offered: Sequence[str]
    at: datetime


def uses_as_arrays(found: Sequence[LearnedUse]) -> LearnedUses:
    """Convert the uses to arrays."""
    return LearnedUses(
        tuple(use.tool_id for use in found),
        unpack_vectors([use.vector for use in found]),
        np.array([use.weight for use in found], np.float32),
        np.array([use.at.timestamp() for use in found], np.float64),
    )


# How many uses count per tool and per tenant. Twice as many are stored, so that deleting is rare.
PER_TOOL = 50
PER_TENANT = 5_000
HEAVIEST_USE = 3.0
SEARCHES_READ = 100


def _upsert_use(insert: Any) -> Executable:  # noqa: ANN401 - the two dialects' inserts have no common type
    new = insert(tool_uses)
    change = {name: new.excluded[name] for name in ("weight", "at", "revision")}
    return new.on_conflict_do_update(index_elements=["tenant", "tool_id", "query_digest"], set_=change)


UPSERT_USE = per_dialect(_upsert_use)


class LearningStore:
    """Stores uses and searches. `model` names the embedder: vectors of two embedders must not be compared."""

    def __init__(self, database: Database, model: str) -> None:
        self._database = database
        self._model = model

    async def add_searches(self, searches: Sequence[PastSearch]) -> None:
        rows = [
            {
                "id": search.id,
                "tenant": search.tenant,
                "caller": search.caller,
                "query_digest": search.query_digest,
                "model": self._model,
                "vector": search.vector,
                "offered": json.dumps(search.offered),
                "at": search.at,
            }
            for search in searches
        ]
        async with self._database.transaction() as connection:
            await connection.execute(insert(tool_searches), rows)

    async def search_for(self, caller: str, tool_id: str, since: datetime) -> PastSearch | None:
        """The newest search of this caller that offered the tool."""
        theirs = (tool_searches.c.caller == caller, tool_searches.c.at >= since, tool_searches.c.model == self._model)
        query = select(tool_searches).where(*theirs).order_by(tool_searches.c.at.desc()).limit(SEARCHES_READ)
        async with self._database.read_transaction() as connection:
            rows = (await connection.execute(query)).mappings().all()
        return next((found for row in rows if tool_id in (found := _search_from_row(row)).offered), None)

    async def record(self, tenant: str, use: LearnedUse) -> None:
        """Store a use. A use for the same query adds to the weight."""
        row = {
            "tenant": tenant,
            "tool_id": use.tool_id,
            "query_digest": use.query_digest,
            "model": self._model,
            "vector": use.vector,
            "at": use.at,
        }
        async with self._database.brief_transaction() as connection:
            revision = await increase_counter(connection, _uses_counter(tenant))
            known = (tool_uses.c.tenant == tenant, tool_uses.c.tool_id == use.tool_id)
            this = (*known, tool_uses.c.query_digest == use.query_digest)
            before = (await connection.execute(select(tool_uses.c.weight).where(*this))).scalar_one_or_none()
            weight = min(HEAVIEST_USE, use.weight + (before or 0.0))
            await connection.execute(
                UPSERT_USE[connection.dialect.name], {**row, "weight": weight, "revision": revision}
            )
            await _make_room(connection, tenant, use.tool_id)

    async def state(self, tenant: str) -> tuple[int, int]:
        """The number of additions, and the number of deletions."""
        async with self._database.read_transaction() as connection:
            return await read_counter(connection, _uses_counter(tenant)), await read_counter(
                connection, _forgotten_counter(tenant)
            )

    async def since(self, tenant: str, revision: int) -> Sequence[LearnedUse]:
        """The newest uses that were added or changed after this revision."""
        theirs = (tool_uses.c.tenant == tenant, tool_uses.c.revision > revision, tool_uses.c.model == self._model)
        query = select(tool_uses).where(*theirs).order_by(tool_uses.c.revision.desc()).limit(PER_TENANT)
        async with self._database.read_transaction() as connection:
            rows = (await connection.execute(query)).mappings()
            return [_use_from_row(row) for row in rows]

    async def forget(self, tenant: str) -> None:
        """Forget everything that was learned for one tenant."""
        async with self._database.transaction() as connection:
            await increase_counter(connection, _forgotten_counter(tenant))
            for table in (tool_uses, tool_searches):
                await connection.execute(delete(table).where(table.c.tenant == tenant))

    async def prune(self, uses_before: datetime, searches_before: datetime) -> None:
        """Delete uses and searches that are older than these times."""
        old = tool_uses.c.at < uses_before
        async with self._database.transaction() as connection:
            for tenant in (await connection.execute(select(tool_uses.c.tenant).where(old).distinct())).scalars().all():
                await increase_counter(connection, _forgotten_counter(tenant))
            await connection.execute(delete(tool_uses).where(old))
            await connection.execute(delete(tool_searches).where(tool_searches.c.at < searches_before))


async def _make_room(connection: Transaction, tenant: str, tool_id: str) -> None:
    """Delete the oldest uses of a tool, and of the tenant, if there are far too many."""
    theirs = tool_uses.c.tenant == tenant
    for which, most in (((theirs, tool_uses.c.tool_id == tool_id), PER_TOOL), ((theirs,), PER_TENANT)):
        count = (await connection.execute(select(func.count()).select_from(tool_uses).where(*which))).scalar_one()
        if count >= 2 * most:
            kept = select(tool_uses.c.revision).where(*which).order_by(tool_uses.c.revision.desc()).limit(most)
            oldest = select(func.min(kept.subquery().c.revision)).scalar_subquery()
            await connection.execute(delete(tool_uses).where(*which, tool_uses.c.revision < oldest))
            await increase_counter(connection, _forgotten_counter(tenant))


def _uses_counter(tenant: str) -> str:
    return f"tool_uses:{tenant}"


def _forgotten_counter(tenant: str) -> str:
    # This counter outlives the person, so that replicas notice the deletion; the hash hides the person's id.
    return f"tool_uses_forgotten:{hashlib.sha256(tenant.encode(errors='surrogatepass')).hexdigest()[:32]}"


def _search_from_row(row: RowMapping) -> PastSearch:
    values: dict[str, Any] = {name: row[name] for name in ("id", "tenant", "caller", "query_digest", "vector", "at")}
    return PastSearch(**values, offered=json.loads(row["offered"]))


def _use_from_row(row: RowMapping) -> LearnedUse:
    return LearnedUse(row["tool_id"], row["query_digest"], row["vector"], row["weight"], row["at"])


CACHE_SECONDS = 2.0
# Uses held in memory for all tenants together: about 50 MB.
USES_CACHED = 20_000


@dataclass(slots=True)
class TenantUses:
    """The uses of one tenant that were read so far. `arrays` is built from them on the next request."""

    revision: int = 0
    forgotten: int = 0
    looked_at: float = 0.0
    uses: dict[tuple[str, str], LearnedUse] = field(default_factory=dict[tuple[str, str], LearnedUse])
    arrays: LearnedUses | None = None


class LearnedUseCache:
    """Caches uses by tenant, and drops the tenants that were not used for the longest time."""

    def __init__(self, store: LearningStore, clock: Callable[[], float]) -> None:
        self._store = store
        self._clock = clock
        self._tenants: OrderedDict[str, TenantUses] = OrderedDict()

    async def uses_of_tenant(self, tenant: str) -> LearnedUses:
        """The uses of this tenant that count."""
        found = self._tenants.get(tenant)
        if found is None:
            found = self._tenants[tenant] = TenantUses(looked_at=-CACHE_SECONDS)
        self._tenants.move_to_end(tenant)
        now = self._clock()
        if now - found.looked_at >= CACHE_SECONDS:
            # Set before the refresh: meanwhile, other callers use the old data.
            found.looked_at = now
            await self._refresh(tenant, found)
            self._make_room(tenant)
        if found.arrays is None:
            found.arrays = uses_as_arrays(_uses_that_count(found))
        return found.arrays

    def invalidate(self, tenant: str) -> None:
        """Read this tenant's uses again on the next request."""
        if tenant in self._tenants:
            self._tenants[tenant].looked_at = -CACHE_SECONDS

    async def _refresh(self, tenant: str, found: TenantUses) -> None:
        revision, forgotten = await self._store.state(tenant)
        if forgotten != found.forgotten:
            found.uses, found.revision, found.forgotten, found.arrays = {}, 0, forgotten, None
        if revision > found.revision:
            newer = await self._store.since(tenant, found.revision)
            if forgotten != found.forgotten:
                # A concurrent refresh has already noticed that these were deleted.
                return
            for use in reversed(newer):
                key = (use.tool_id, use.query_digest)
                found.uses.pop(key, None)
                found.uses[key] = use
            found.revision, found.arrays = revision, None

    def _make_room(self, newest: str) -> None:
        held = sum(len(one.uses) for one in self._tenants.values())
        while held > USES_CACHED or len(self._tenants) > USES_CACHED:
            oldest = next(iter(self._tenants))
            if oldest == newest:
                return
            held -= len(self._tenants.pop(oldest).uses)


def _uses_that_count(found: TenantUses) -> list[LearnedUse]:
    """The newest few uses of each tool, and of all tools."""
    counts: dict[str, int] = {}
    kept: list[LearnedUse] = []
    for use in reversed(found.uses.values()):
        counts[use.tool_id] = counts.get(use.tool_id, 0) + 1
        if counts[use.tool_id] <= PER_TOOL and len(kept) < PER_TENANT:
            kept.append(use)
    return kept
