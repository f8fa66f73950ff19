"""What stood in an agent's memory before."""

from datetime import UTC, datetime, timedelta

from frontdesk.agents.embedded.store import KEPT_VERSIONS, AgentStore
from frontdesk.agents.host import Agent, MemoryBlock
from frontdesk.db.engine import Database

NOW = datetime(2030, 5, 17, 9, 0, tzinfo=UTC)


async def test_each_change_of_a_block_keeps_what_stood_there_and_the_oldest_go(database: Database) -> None:
    store = AgentStore(database)
    for agent in ("agent-1", "agent-2"):
        await store.add(Agent(agent, agent, ""), [MemoryBlock("human", "0"), MemoryBlock("notes", "x")], NOW)
    for number in range(1, KEPT_VERSIONS + 6):
        at = NOW + timedelta(minutes=number)
        await store.edit_block("agent-1", "human", lambda _before, number=number: str(number), at)
    await store.edit_block("agent-1", "human", lambda before: before, NOW)
    found = await store.versions("agent-1", "human")
    assert [version.value for version in found] == [str(number) for number in range(KEPT_VERSIONS + 4, 4, -1)]
    assert found[0].until == NOW + timedelta(minutes=KEPT_VERSIONS + 5)
    assert await store.versions("agent-1", "notes") == []
    assert await store.versions("agent-2", "human") == []
    await store.delete("agent-1")
    assert await store.versions("agent-1", "human") == []
