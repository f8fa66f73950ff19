"""What Letta does in a way of its own, and Frontdesk evens out or tells as it is."""

from collections.abc import AsyncGenerator, Sequence
from pathlib import Path

import pytest
from letta_client import AsyncLetta

from frontdesk.agents.host import Agent, AgentHost, Approval, HostFeatures, Media, NewAgent
from frontdesk.agents.letta import conversation
from frontdesk.agents.letta.host import FREE_MODEL
from frontdesk.errors import Invalid, NotFound
from frontdesk.interfaces.cli.agents import conversation_state
from frontdesk.llm.events import (
    ApprovalRequest,
    Event,
    Failed,
    FailureKind,
    TextChunk,
    ToolCall,
    ToolReturn,
    ToolStatus,
    Usage,
)
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
    assert await conversation_state(host, agent.id, "default") == "waits for approval"

    request = of_kind(events, ApprovalRequest)[0]
    events = await take(host, agent.id, approvals=[Approval(request.call_id, approve=approve)], tools=[RISKY])

    assert returned(events)[search.call_id] is ToolStatus.OK
    assert returned(events)[request.call_id] is (ToolStatus.OK if approve else ToolStatus.DENIED)
    assert await conversation_state(host, agent.id, "default") is None


async def test_a_call_that_letta_drops_beside_one_that_waits_is_told_as_not_run(
    host: AgentHost, agent: Agent, client: AsyncLetta
) -> None:
    await client.agents.update(agent.id, parallel_tool_calls=False)

    events = await take(host, agent.id, script({"tools": [ASK, SEARCH]}, {"text": "so be it"}), tools=[RISKY])

    search = of_kind(events, ToolCall)[0]
    assert returned(events) == {search.call_id: ToolStatus.INTERRUPTED}


def returned(events: Sequence[Event]) -> dict[str, ToolStatus]:
    return {event.call_id: event.status for event in of_kind(events, ToolReturn)}


async def test_a_whole_conversation_is_told_however_many_pages_it_has(
    host: AgentHost, agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    talk = await host.start_conversation(agent.id)
    for conversation_id in (None, talk.id):
        for number in range(4):
            await take(host, agent.id, script({"text": f"answer {number}"}), conversation_id=conversation_id)
        whole = await host.history(agent.id, conversation_id)
        monkeypatch.setattr(conversation, "MESSAGE_PAGE", 3)

        told = await host.history(agent.id, conversation_id, limit=100_000)
        newest = await host.history(agent.id, conversation_id, limit=3)

        monkeypatch.undo()
        assert told == whole
        assert [event.text for event in of_kind([one.event for one in told], TextChunk)][-4:] == [
            f"answer {number}" for number in range(4)
        ]
        assert newest == whole[-len(newest) :]
        assert 0 < len(newest) < len(whole)


async def test_what_letta_cannot_do_is_refused_with_what_to_do_instead(host: AgentHost, agent: Agent) -> None:
    assert host.features == HostFeatures(keeps_context=True)
    with pytest.raises(Invalid, match="audio/wav"):
        await take(host, agent.id, "listen", media=[Media("audio/wav", b"RIFF")])
    with pytest.raises(Invalid, match="copy one that was begun after it"):
        await host.fork(agent.id, None)
    with pytest.raises(Invalid, match="begin a new conversation"):
        await host.rewind(agent.id, None, 1)
    with pytest.raises(NotFound):
        await host.fork(agent.id, "conv-00000000-0000-4000-8000-000000000000")


async def test_a_model_that_letta_does_not_have_is_named(host: AgentHost, agent: Agent) -> None:
    events = await take(host, agent.id, "hello", model="nobody/nothing-1")

    assert [(one.trouble, "'nobody/nothing-1'" in one.message) for one in of_kind(events, Failed)] == [
        (FailureKind.NOT_FOUND, True)
    ]


async def test_the_models_that_letta_has_are_listed_and_the_free_one_is_not_the_first(host: AgentHost) -> None:
    found = await host.models()

    assert found[0].name == "openai-proxy/fake-1"
    assert (found[0].title, found[0].images, found[0].sounds) == ("fake-1", False, False)
    assert FREE_MODEL in {one.name for one in found[1:]}


async def test_nothing_waits_in_a_copy(host: AgentHost, agent: Agent) -> None:
    talk = await host.start_conversation(agent.id)
    await take(host, agent.id, script({"tools": [ASK]}), tools=[RISKY], conversation_id=talk.id)

    copy = await host.fork(agent.id, talk.id)

    assert await host.pending(agent.id, talk.id)
    assert not await host.pending(agent.id, copy.id)
    events = await take(host, agent.id, script({"text": "on"}), conversation_id=copy.id)
    assert of_kind(events, TextChunk)


async def test_how_full_the_model_is_comes_with_how_much_it_takes(host: AgentHost, agent: Agent) -> None:
    events = await take(host, agent.id, script({"text": "full"}))

    usage = of_kind(events, Usage)[-1]
    assert usage.window > usage.context_tokens > 0
