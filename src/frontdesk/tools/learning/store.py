"""Past searches and uses in the database; a tenant's uses carry a revision, by which replicas follow them."""

import hashlib
import json
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Executable, RowMapping, delete, func, insert, select

from frontdesk.db import counters
from frontdesk.db.engine import Database, Transaction
from frontdesk.db.schema import tool_searches, tool_uses
from frontdesk.db.upsert import per_dialect
from frontdesk.tools.learning.model import PastSearch, Use

# Uses of one tool that count, for one tenant; twice as many are kept, so that room is made rarely.
PER_TOOL = 50
PER_TENANT = 5_000
HEAVIEST = 3.0
NEWEST = 100


def _record(insert: Any) -> Executable:  # noqa: ANN401 - the two dialects' inserts have no common type
    new = insert(tool_uses)
    change = {name: new.excluded[name] for name in ("weight", "at", "revision")}
    return new.on_conflict_do_update(index_elements=["tenant", "tool_id", "query_digest"], set_=change)


RECORD = per_dialect(_record)


class LearningStore:
    """`model` names what made the vectors: those of two models must not meet."""

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
        wanted = select(tool_searches).where(*theirs).order_by(tool_searches.c.at.desc()).limit(NEWEST)
        async with self._database.reading() as connection:
            rows = (await connection.execute(wanted)).mappings().all()
        return next((found for row in rows if tool_id in (found := _search(row)).offered), None)

    async def record(self, tenant: str, use: Use) -> None:
        """Remember a use; one of the same query adds to what is there."""
        row = {
            "tenant": tenant,
            "tool_id": use.tool_id,
            "query_digest": use.query_digest,
            "model": self._model,
            "vector": use.vector,
            "at": use.at,
        }
        async with self._database.brief() as connection:
            revision = await counters.bump(connection, _uses(tenant))
            known = (tool_uses.c.tenant == tenant, tool_uses.c.tool_id == use.tool_id)
            this = (*known, tool_uses.c.query_digest == use.query_digest)
            before = (await connection.execute(select(tool_uses.c.weight).where(*this))).scalar_one_or_none()
            weight = min(HEAVIEST, use.weight + (before or 0.0))
            await connection.execute(RECORD[connection.dialect.name], {**row, "weight": weight, "revision": revision})
            await _make_room(connection, tenant, use.tool_id)

    async def state(self, tenant: str) -> tuple[int, int]:
        """(how often something was added, how often something was forgotten)."""
        async with self._database.reading() as connection:
            return await counters.read(connection, _uses(tenant)), await counters.read(connection, _forgotten(tenant))

    async def since(self, tenant: str, revision: int) -> Sequence[Use]:
        """The newest uses that were added or changed after this revision."""
        theirs = (tool_uses.c.tenant == tenant, tool_uses.c.revision > revision, tool_uses.c.model == self._model)
        wanted = select(tool_uses).where(*theirs).order_by(tool_uses.c.revision.desc()).limit(PER_TENANT)
        async with self._database.reading() as connection:
            rows = (await connection.execute(wanted)).mappings()
            return [_use(row) for row in rows]

    async def forget(self, tenant: str) -> None:
        """Everything that was learned for one tenant."""
        async with self._database.transaction() as connection:
            await counters.bump(connection, _forgotten(tenant))
            for table in (tool_uses, tool_searches):
                await connection.execute(delete(table).where(table.c.tenant == tenant))

    async def prune(self, uses_before: datetime, searches_before: datetime) -> None:
        """Uses and searches older than these."""
        old = tool_uses.c.at < uses_before
        async with self._database.transaction() as connection:
            for tenant in (await connection.execute(select(tool_uses.c.tenant).where(old).distinct())).scalars().all():
                await counters.bump(connection, _forgotten(tenant))
            await connection.execute(delete(tool_uses).where(old))
            await connection.execute(delete(tool_searches).where(tool_searches.c.at < searches_before))


async def _make_room(connection: Transaction, tenant: str, tool_id: str) -> None:
    """Forget the oldest uses of a tool when there are far too many, and so for the tenant."""
    theirs = tool_uses.c.tenant == tenant
    for which, most in (((theirs, tool_uses.c.tool_id == tool_id), PER_TOOL), ((theirs,), PER_TENANT)):
        count = (await connection.execute(select(func.count()).select_from(tool_uses).where(*which))).scalar_one()
        if count >= 2 * most:
            kept = select(tool_uses.c.revision).where(*which).order_by(tool_uses.c.revision.desc()).limit(most)
            oldest = select(func.min(kept.subquery().c.revision)).scalar_subquery()
            await connection.execute(delete(tool_uses).where(*which, tool_uses.c.revision < oldest))
            await counters.bump(connection, _forgotten(tenant))


def _uses(tenant: str) -> str:
    return f"tool_uses:{tenant}"


def _forgotten(tenant: str) -> str:
    # It stays when all of a person goes, so that replicas hear of it, and does not say who that was.
    return f"tool_uses_forgotten:{hashlib.sha256(tenant.encode(errors='surrogatepass')).hexdigest()[:32]}"


def _search(row: RowMapping) -> PastSearch:
    values: dict[str, Any] = {name: row[name] for name in ("id", "tenant", "caller", "query_digest", "vector", "at")}
    return PastSearch(**values, offered=json.loads(row["offered"]))


def _use(row: RowMapping) -> Use:
    return Use(row["tool_id"], row["query_digest"], row["vector"], row["weight"], row["at"])
