"""Stores which tools Frontdesk attached to which agent, and locks an agent's tools across replicas."""

from collections.abc import AsyncGenerator, Generator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import uuid4
from weakref import WeakValueDictionary

import anyio
import structlog
from sqlalchemy import Executable, bindparam, delete, select, update

from frontdesk.db.engine import Database
from frontdesk.db.schema import held_tools, tool_turns
from frontdesk.db.statements import lease_time, per_dialect
from frontdesk.errors import Busy, Unavailable


def _upsert_attachment(insert: Any) -> Executable:  # noqa: ANN401 - the two dialects' inserts have no common type
    new = insert(held_tools)
    again = {"attached_by": new.excluded.attached_by, "attached_at": new.excluded.attached_at}
    return new.on_conflict_do_update(index_elements=[held_tools.c.agent_id, held_tools.c.tool_id], set_=again)


UPSERT_ATTACHMENT = per_dialect(_upsert_attachment)


@dataclass(frozen=True, slots=True)
class ToolAttachment:
    """A tool that Frontdesk attached to an agent: when, and when the agent last used it."""

    attached_at: datetime
    used_at: datetime | None = None
    by: str = ""


class ToolAttachmentStore:
    """Stores the attachments by Frontdesk. Tools that a person attached are not stored, so they are not detached."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def attachments(self, agent_id: str) -> Mapping[str, ToolAttachment]:
        """The attached tools of an agent, by tool id."""
        async with self._database.read_transaction() as connection:
            rows = await connection.execute(select(held_tools).where(held_tools.c.agent_id == agent_id))
            return {row.tool_id: ToolAttachment(row.attached_at, row.used_at, row.attached_by) for row in rows}

    async def record(
        self, agent_id: str, attached: Sequence[str], detached: Sequence[str], now: datetime, by: str = "find_tools"
    ) -> None:
        """Record attached and detached tools. A tool that is attached again counts as new."""
        rows = [
            {"agent_id": agent_id, "tool_id": tool_id, "attached_by": by, "attached_at": now} for tool_id in attached
        ]
        async with self._database.brief_transaction() as connection:
            if detached:
                taken = (held_tools.c.agent_id == agent_id, held_tools.c.tool_id.in_(detached))
                await connection.execute(delete(held_tools).where(*taken))
            if rows:
                await connection.execute(UPSERT_ATTACHMENT[connection.dialect.name], rows)

    async def touch(self, agent_id: str, tool_id: str, now: datetime) -> None:
        """Record a use of a tool, if it is attached."""
        this = (held_tools.c.agent_id == agent_id, held_tools.c.tool_id == tool_id)
        async with self._database.brief_transaction() as connection:
            await connection.execute(update(held_tools).where(*this).values(used_at=now))

    async def forget(self, agent_id: str) -> None:
        """Delete the stored data of a deleted agent."""
        async with self._database.brief_transaction() as connection:
            await connection.execute(delete(held_tools).where(held_tools.c.agent_id == agent_id))


RELEASE_LOCK = delete(tool_turns).where(
    tool_turns.c.agent_id == bindparam("the_agent"), tool_turns.c.owner == bindparam("the_owner")
)


def _acquire_lock(insert: Any) -> Executable:  # noqa: ANN401 - the two dialects' inserts have no common type
    first = insert(tool_turns)
    return first.on_conflict_do_update(
        index_elements=[tool_turns.c.agent_id],
        set_={"owner": first.excluded.owner, "leased_until": first.excluded.leased_until},
        where=tool_turns.c.leased_until < bindparam("now", type_=tool_turns.c.leased_until.type),
    ).returning(tool_turns.c.owner)


ACQUIRE_LOCK = per_dialect(_acquire_lock)


class AgentToolsLockStore:
    """Stores the lock as a lease. It ends even if it is not released, so a process that dies blocks nobody for long."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def acquire(self, agent_id: str, owner: str, lease: timedelta) -> bool:
        """Take the lock of an agent's tools. False if another owner has it."""
        async with self._database.brief_transaction() as connection:
            now = await lease_time(connection)
            given = {"agent_id": agent_id, "owner": owner, "leased_until": now + lease, "now": now}
            return (await connection.execute(ACQUIRE_LOCK[connection.dialect.name], given)).one_or_none() is not None

    async def release(self, agent_id: str, owner: str) -> None:
        """Release the lock, unless the lease ended and another owner already has it."""
        async with self._database.brief_transaction() as connection:
            await connection.execute(RELEASE_LOCK, {"the_agent": agent_id, "the_owner": owner})


# Longer than any holder keeps the lock, including the time that a slow database takes to get and release it.
LOCK_LEASE = timedelta(seconds=45)
LOCK_WAIT_SECONDS = 60
LOCK_RELEASE_SECONDS = 5
LOCK_PAUSES = (0.005, 0.01, 0.02, 0.05)

log = structlog.get_logger("frontdesk.tools")


class AgentToolsLock:
    """`async with lock(agent_id)` holds the lock of an agent's tools; leave it within the lease."""

    def __init__(self, store: AgentToolsLockStore, wait: float = LOCK_WAIT_SECONDS) -> None:
        self._store = store
        self._wait = wait
        # A local lock exists as long as a task waits for it or holds it.
        self._locks: WeakValueDictionary[str, anyio.Lock] = WeakValueDictionary()

    @asynccontextmanager
    async def __call__(self, agent_id: str) -> AsyncGenerator[None]:
        lock = self._locks.setdefault(agent_id, anyio.Lock())
        owner = uuid4().hex
        until = anyio.current_time() + self._wait
        with self._limit_wait(agent_id, until):
            await lock.acquire()
        try:
            with self._limit_wait(agent_id, until):
                await self._acquire(agent_id, owner)
            yield
        finally:
            # Also if the acquisition was cancelled, because then it is unknown whether the lease was taken.
            await self._release(agent_id, owner)
            lock.release()

    async def _acquire(self, agent_id: str, owner: str) -> None:
        pauses = iter(LOCK_PAUSES)
        while True:
            if await self._store.acquire(agent_id, owner, LOCK_LEASE):
                return
            await anyio.sleep(next(pauses, LOCK_PAUSES[-1]))

    async def _release(self, agent_id: str, owner: str) -> None:
        with anyio.move_on_after(LOCK_RELEASE_SECONDS, shield=True):
            try:
                await self._store.release(agent_id, owner)
            except Unavailable as error:
                log.warning("turnstile_waits_for_its_lease", agent_id=agent_id, error=str(error))

    @contextmanager
    def _limit_wait(self, agent_id: str, until: float) -> Generator[None]:
        try:
            with anyio.fail_after(until - anyio.current_time()):
                yield
        except TimeoutError as error:
            raise Busy(
                f"Others have been changing the tools of agent '{agent_id}' for {self._wait:.0f} s; try again later"
            ) from error
