"""The built-in host's agents, on both databases."""

import pytest

from frontdesk.agents.embedded import EmbeddedHost
from frontdesk.agents.host import only_agent
from frontdesk.agents.store import AgentStore
from frontdesk.db.engine import Database

pytestmark = pytest.mark.anyio


async def test_an_agent_is_found_by_its_id(database: Database) -> None:
    host = EmbeddedHost(AgentStore(database))
    made = await host.create("Support", "answers questions")
    assert await host.find(made.id) == made
    assert await host.find("agent-nobody") is None
    assert await host.list(10) == [made]


async def test_only_a_single_agent_can_stand_in_for_all(database: Database) -> None:
    host = EmbeddedHost(AgentStore(database))
    assert await only_agent(host) is None
    made = await host.create("Support")
    assert await only_agent(host) == made.id
    await host.create("Research")
    assert await only_agent(host) is None
