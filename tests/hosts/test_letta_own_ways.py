"""What Letta does in a way of its own, and Frontdesk evens out or tells as it is."""

from collections.abc import AsyncGenerator, Sequence
from pathlib import Path

import pytest
from letta_client import AsyncLetta

from frontdesk.agents.host import Agent, AgentHost, Approval, NewAgent
from frontdesk.loop.events import ApprovalRequest, Event, ToolCall, ToolReturn, ToolStatus
from frontdesk.surfaces.cli.chat.turns import left
from tests.conftest import settings_with
from tests.hosts.conftest import PASSWORD
from tests.hosts.lab import client_tool, of_kind, opened, script, take
from tests.support.letta import LettaServer

pytestmark = pytest.mark.anyio
RISKY = client_tool("risky", lambda _: "it is done", needs_approval=True)
SEARCH = {"name": "conversation_search", "args": {"query": "tea"}}
ASK = {"name": "risky", "args": {"x": "1"}}


@pytest.fixture
async def client(letta: LettaServer) -> AsyncGenerator[AsyncLetta]:
    async with AsyncLetta(base_url=letta.url, api_key=PASSWORD) as opened_client:
        yield opened_client


@pytest.fixture
async def host(tmp_path: Path, letta: LettaServer) -> AsyncGenerator[AgentHost]:
    settings = settings_with(FRONTDESK_DATA=tmp_path / "data", LETTA_BASE_URL=letta.url, LETTA_SERVER_PASSWORD=PASSWORD)
    async with opened(settings) as opened_host:
        yield opened_host


@pytest.fixture
async def agent(host: AgentHost) -> Agent:
    return await host.create(NewAgent("Ada", model="openai-proxy/fake-1"))


async def test_the_memory_of_a_deleted_agent_goes_with_it_but_for_what_another_shares(
    host: AgentHost, agent: Agent, client: AsyncLetta
) -> None:
    other = await host.create(NewAgent("Ben", model="openai-proxy/fake-1"))
    shared = await client.blocks.create(label="shared", value="for both")
    for one in (agent, other):
        await client.agents.blocks.attach(shared.id, agent_id=one.id)
    held = {block.id for block in (await client.agents.retrieve(agent.id, include=["agent.blocks"])).blocks or ()}

    await host.delete(agent.id)

    kept = {block.id for block in (await client.blocks.list(limit=1000)).items}
    assert len(held) == 3
    assert held & kept == {shared.id}
    await host.delete(other.id)
    assert shared.id not in {block.id for block in (await client.blocks.list(limit=1000)).items}


@pytest.mark.parametrize("approve", [True, False])
async def test_a_call_beside_one_that_waits_is_told_as_run_once_and_never_as_failed(
    host: AgentHost, agent: Agent, approve: bool
) -> None:
    events = await take(host, agent.id, script({"tools": [SEARCH, ASK]}, {"text": "so be it"}), tools=[RISKY])
    search = of_kind(events, ToolCall)[0]
    assert search.name == "conversation_search"
    assert not of_kind(events, ToolReturn)
    assert not of_kind([one.event for one in await host.history(agent.id)], ToolReturn)
    assert await left(host, agent.id, "default") == "waits for approval"

    request = of_kind(events, ApprovalRequest)[0]
    events = await take(host, agent.id, approvals=[Approval(request.call_id, approve=approve)], tools=[RISKY])

    assert returned(events)[search.call_id] is ToolStatus.OK
    assert returned(events)[request.call_id] is (ToolStatus.OK if approve else ToolStatus.DENIED)
    assert await left(host, agent.id, "default") is None


async def test_a_call_that_letta_drops_beside_one_that_waits_is_told_as_not_run(
    host: AgentHost, agent: Agent, client: AsyncLetta
) -> None:
    await client.agents.update(agent.id, parallel_tool_calls=False)

    events = await take(host, agent.id, script({"tools": [ASK, SEARCH]}, {"text": "so be it"}), tools=[RISKY])

    search = of_kind(events, ToolCall)[0]
    assert returned(events) == {search.call_id: ToolStatus.INTERRUPTED}


def returned(events: Sequence[Event]) -> dict[str, ToolStatus]:
    return {event.call_id: event.status for event in of_kind(events, ToolReturn)}
