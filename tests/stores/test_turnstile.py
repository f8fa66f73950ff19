"""One at a time changes an agent's tools, on both databases, and nobody is kept out for ever."""

from datetime import timedelta

import anyio
import pytest

from frontdesk.db.engine import Database
from frontdesk.db.schema import tool_turns
from frontdesk.errors import Busy
from frontdesk.tools.agent_tools_store import LOCK_LEASE, AgentToolsLock, AgentToolsLockStore
from tests.support.clocks import age, set_clock_ahead

pytestmark = pytest.mark.anyio


async def test_a_lease_is_one_owners_until_it_is_left_or_lapses(database: Database) -> None:
    store = AgentToolsLockStore(database)
    assert await store.acquire("agent-1", "ann", LOCK_LEASE)
    assert not await store.acquire("agent-1", "bob", LOCK_LEASE)
    assert await store.acquire("agent-2", "bob", LOCK_LEASE), "another agent is another matter"
    await store.release("agent-1", "bob")
    assert not await store.acquire("agent-1", "bob", LOCK_LEASE), "nobody leaves for another"
    await store.release("agent-1", "ann")
    assert await store.acquire("agent-1", "bob", LOCK_LEASE)
    await age(database, tool_turns.c.leased_until, LOCK_LEASE + timedelta(seconds=1))
    assert await store.acquire("agent-1", "ann", LOCK_LEASE), "the dead keep nobody out"


@pytest.mark.parametrize("settings", ["postgresql"], indirect=True)
async def test_a_replica_whose_clock_is_ahead_keeps_out_while_another_is_inside(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = AgentToolsLockStore(database)
    assert await store.acquire("agent-1", "ann", LOCK_LEASE)
    set_clock_ahead(monkeypatch)
    assert not await store.acquire("agent-1", "bob", LOCK_LEASE)


async def test_nobody_is_inside_together_whichever_process_they_come_from(database: Database) -> None:
    gates = [AgentToolsLock(AgentToolsLockStore(database)) for _ in range(2)]
    inside = most = entered = 0

    async def enter(gate: AgentToolsLock) -> None:
        nonlocal inside, most, entered
        async with gate("agent-1"):
            inside, entered = inside + 1, entered + 1
            most = max(most, inside)
            await anyio.lowlevel.checkpoint()
            inside -= 1

    with anyio.fail_after(30):
        async with anyio.create_task_group() as tasks:
            for number in range(20):
                tasks.start_soon(enter, gates[number % 2])
    assert (most, entered) == (1, 20)


async def test_who_waits_too_long_is_told_so(database: Database) -> None:
    store = AgentToolsLockStore(database)
    hasty = AgentToolsLock(store, wait=0.05)

    async def enter(agent: str) -> None:
        with pytest.raises(Busy, match=agent):
            await hasty(agent).__aenter__()

    async with AgentToolsLock(store)("agent-1"), hasty("agent-2"), anyio.create_task_group() as tasks:
        tasks.start_soon(enter, "agent-1")
        tasks.start_soon(enter, "agent-2")
    async with hasty("agent-1"), hasty("agent-2"):
        assert len(hasty._locks) == 2
    assert len(hasty._locks) == 0, "nothing is left of an agent that nobody waits for"


async def test_who_fails_inside_lets_the_next_in(database: Database) -> None:
    gate = AgentToolsLock(AgentToolsLockStore(database), wait=10)

    async def fail() -> None:
        async with gate("agent-1"):
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await fail()
    async with gate("agent-1"):
        pass
