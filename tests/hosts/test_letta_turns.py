"""Tests turns on the Letta host: its requests to the server, Letta's peculiarities, and several people."""

import json
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from contextlib import aclosing
from datetime import UTC, datetime
from itertools import product
from pathlib import Path
from random import Random
from typing import Any, cast

import anyio
import pytest
from letta_client import AsyncLetta

from frontdesk.agents.host import Agent, AgentHost, Approval, HostFeatures, Media, MemoryBlock, NewAgent
from frontdesk.agents.letta import conversation, server
from frontdesk.agents.letta.connect import KEY_NAME
from frontdesk.agents.letta.handed_store import agent_lock
from frontdesk.agents.letta.host import FREE_MODEL, LettaHost
from frontdesk.agents.letta.server import KEY_SECRET, find_working_key
from frontdesk.agents.turns.model import NewTurn
from frontdesk.agents.turns.service import TurnWork
from frontdesk.app import App, open_app
from frontdesk.errors import Denied, Invalid, NotFound
from frontdesk.identity.authority import Authority
from frontdesk.identity.model import KEY_CREDENTIAL_PREFIX, Caller
from frontdesk.identity.rights import HEALTH_READ
from frontdesk.interfaces.app_runner import local_caller
from frontdesk.interfaces.cli.agents import conversation_state
from frontdesk.interfaces.http.application import build_application
from frontdesk.llm.events import (
    ApprovalRequest,
    Event,
    Failed,
    FailureKind,
    StopReason,
    TextChunk,
    ToolCall,
    ToolReturn,
    ToolStatus,
    TurnEnd,
    Usage,
)
from frontdesk.memory.model import PersonScope
from tests.conftest import settings_with
from tests.hosts.conftest import NOBODY_THERE, PASSWORD
from tests.hosts.lab import client_tool, of_kind, opened, said, script, take
from tests.requirements import shows
from tests.support.chat import key, somebody, text_of
from tests.support.chat import script as people_script
from tests.support.letta import AGENT, TALK, LettaServer, MoodyLetta, open_moody_letta
from tests.support.models.application import ModelServer
from tests.support.postgres import Postgres

# The Letta host's requests for a turn, and the person in them


OTHER = "agent-22222222-2222-4222-8222-222222222222"
PERSON = Caller("req-1", user_id="ann")


@pytest.fixture
def moody_letta() -> Iterator[MoodyLetta]:
    with open_moody_letta() as server:
        yield server


@pytest.fixture
async def app(tmp_path: Path, moody_letta: MoodyLetta) -> AsyncGenerator[App]:
    settings = settings_with(
        FRONTDESK_DATA=tmp_path / "data", LETTA_BASE_URL=moody_letta.url, AGENT365_APPLICATION_NAME="the-desk"
    )
    async with open_app(settings) as opened:
        yield opened


@pytest.fixture
def host(app: App) -> AgentHost:
    return app.host


def asked(letta: MoodyLetta) -> list[str]:
    return [f"{request.method} {request.url.path.removeprefix('/v1/')}" for request in letta.requests]


@pytest.mark.parametrize("conversation", [None, TALK])
async def test_every_request_of_a_persons_turn_names_the_agent_and_the_request(
    host: AgentHost, moody_letta: MoodyLetta, conversation: str | None
) -> None:
    events = await take(host, AGENT, "hello", caller=PERSON, conversation_id=conversation)
    assert said(events) == "All is well."
    assert "POST" in {request.method for request in moody_letta.requests}
    named = ("x-agent-id", "x-request-id", "x-ms-agentid")
    told = {tuple(request.headers.get(name) for name in named) for request in moody_letta.requests}
    # The last is for Agent 365's hosts.
    assert told == {(AGENT, "req-1", None)}


async def test_who_took_a_turn_is_not_said_with_what_comes_after(host: AgentHost, moody_letta: MoodyLetta) -> None:
    await take(host, AGENT, "hello", caller=PERSON)
    moody_letta.requests.clear()
    await host.find(AGENT)
    [request] = moody_letta.requests
    assert not {"x-agent-id", "x-request-id", "x-ms-agentid"} & set(request.headers)


async def test_whose_a_conversation_is_is_asked_once_for_a_message(host: AgentHost, moody_letta: MoodyLetta) -> None:
    await host.pending(AGENT, TALK)
    await take(host, AGENT, "hello", caller=PERSON, conversation_id=TALK)
    await host.history(AGENT, TALK)
    with pytest.raises(NotFound):
        await host.pending(OTHER, TALK)
    assert asked(moody_letta) == [
        f"GET conversations/{TALK}",
        f"GET conversations/{TALK}/messages",
        f"GET conversations/{TALK}/messages",
        f"GET agents/{AGENT}",
        f"POST conversations/{TALK}/messages",
        f"GET conversations/{TALK}/messages",
    ]


async def test_a_message_in_a_chat_asks_for_what_waits_and_for_memory_and_no_more(
    app: App, moody_letta: MoodyLetta
) -> None:
    session = (await app.chat.open(PERSON, AGENT)).session
    moody_letta.requests.clear()
    await app.chat.send_message(PERSON, session.id, "hello")
    async with aclosing(await app.chat.listen(PERSON, session.id, None)) as words:
        await anext(words)
    # Pending approvals are checked before the message is accepted, and again when its turn begins.
    assert asked(moody_letta) == [
        f"GET conversations/{TALK}/messages",
        f"GET conversations/{TALK}/messages",
        f"GET agents/{AGENT}",
        f"POST conversations/{TALK}/messages",
    ]


async def test_a_conversation_that_may_be_gone_by_now_is_asked_for_again(
    host: AgentHost, moody_letta: MoodyLetta, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "OWNER_SECONDS", 0)
    await host.pending(AGENT, TALK)
    await host.pending(AGENT, TALK)
    assert asked(moody_letta) == [f"GET conversations/{TALK}", f"GET conversations/{TALK}/messages"] * 2


async def test_so_many_conversations_are_known_and_no_more(
    host: AgentHost, moody_letta: MoodyLetta, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "MAX_OWNERS", 2)
    for number in (1, 2, 3, 3, 1):
        await host.pending(AGENT, f"conv-{number}")
    looked_up = [one.rpartition("-")[2] for one in asked(moody_letta) if not one.endswith("/messages")]
    assert looked_up == ["1", "2", "3", "1"]


@shows("KEPT-03")
async def test_what_waits_on_the_word_of_a_key_that_was_revoked_is_given_up(
    app: App, host: AgentHost, moody_letta: MoodyLetta
) -> None:
    text = await key(app, "ann")
    credential = await app.identity.authenticate(text)
    request = ApprovalRequest("call-1", "send_mail", {})
    new = NewTurn("turn-1", agent_lock(AGENT), AGENT, TALK, "ann", None, Authority((credential.id,)))

    async def begin(_connection: object) -> None:
        return None

    async def run(_begun: None, _emit: object) -> TurnEnd:
        return TurnEnd(StopReason.REQUIRES_APPROVAL, (request,))

    async with aclosing(app.turns.take(new, TurnWork(begin, run))) as events:
        _ = [event async for event in events]
    assert (await app.turns.find("turn-1")).waits
    await app.identity.revoke_key(credential.id.removeprefix(KEY_CREDENTIAL_PREFIX))
    word = Approval(request.call_id, approve=True)
    with pytest.raises(Denied, match="was revoked"):
        await take(host, AGENT, approvals=[word], caller=PERSON, conversation_id=TALK)
    assert not (await app.turns.find("turn-1")).waits
    assert moody_letta.asked == []


# Peculiarities of Letta that Frontdesk evens out or reports unchanged


RISKY = client_tool("risky", lambda _: "it is done", needs_approval=True)
SEARCH = {"name": "conversation_search", "args": {"query": "tea"}}
ASK = {"name": "risky", "args": {"x": "1"}}


@pytest.fixture
async def client(letta: LettaServer) -> AsyncGenerator[AsyncLetta]:
    async with AsyncLetta(base_url=letta.url, api_key=PASSWORD) as opened_client:
        yield opened_client


@pytest.fixture
async def real_host(tmp_path: Path, letta: LettaServer) -> AsyncGenerator[AgentHost]:
    settings = settings_with(FRONTDESK_DATA=tmp_path / "data", LETTA_BASE_URL=letta.url, LETTA_SERVER_PASSWORD=PASSWORD)
    async with opened(settings) as opened_host:
        yield opened_host


@pytest.fixture
async def agent(real_host: AgentHost) -> Agent:
    return await real_host.create(NewAgent("Ada", model="openai-proxy/fake-1"))


async def test_the_memory_of_a_deleted_agent_goes_with_it_but_for_what_another_shares(
    real_host: AgentHost, agent: Agent, client: AsyncLetta
) -> None:
    other = await real_host.create(NewAgent("Ben", model="openai-proxy/fake-1"))
    shared = await client.blocks.create(label="shared", value="for both")
    for one in (agent, other):
        await client.agents.blocks.attach(shared.id, agent_id=one.id)
    held = {block.id for block in (await client.agents.retrieve(agent.id, include=["agent.blocks"])).blocks or ()}

    await real_host.delete(agent.id)

    kept = {block.id for block in (await client.blocks.list(limit=1000)).items}
    assert len(held) == 3
    assert held & kept == {shared.id}
    await real_host.delete(other.id)
    assert shared.id not in {block.id for block in (await client.blocks.list(limit=1000)).items}


@pytest.mark.parametrize("approve", [True, False])
async def test_a_call_beside_one_that_waits_is_told_as_run_once_and_never_as_failed(
    real_host: AgentHost, agent: Agent, approve: bool
) -> None:
    events = await take(real_host, agent.id, script({"tools": [SEARCH, ASK]}, {"text": "so be it"}), tools=[RISKY])
    search = of_kind(events, ToolCall)[0]
    assert search.name == "conversation_search"
    assert not of_kind(events, ToolReturn)
    assert not of_kind([one.event for one in await real_host.history(agent.id)], ToolReturn)
    assert await conversation_state(real_host, agent.id, "default") == "waits for approval"

    request = of_kind(events, ApprovalRequest)[0]
    events = await take(real_host, agent.id, approvals=[Approval(request.call_id, approve=approve)], tools=[RISKY])

    assert returned(events)[search.call_id] is ToolStatus.OK
    assert returned(events)[request.call_id] is (ToolStatus.OK if approve else ToolStatus.DENIED)
    assert await conversation_state(real_host, agent.id, "default") is None


async def test_a_call_that_letta_drops_beside_one_that_waits_is_told_as_not_run(
    real_host: AgentHost, agent: Agent, client: AsyncLetta
) -> None:
    await client.agents.update(agent.id, parallel_tool_calls=False)

    events = await take(real_host, agent.id, script({"tools": [ASK, SEARCH]}, {"text": "so be it"}), tools=[RISKY])

    search = of_kind(events, ToolCall)[0]
    assert returned(events) == {search.call_id: ToolStatus.INTERRUPTED}


def returned(events: Sequence[Event]) -> dict[str, ToolStatus]:
    return {event.call_id: event.status for event in of_kind(events, ToolReturn)}


async def test_a_whole_conversation_is_told_however_many_pages_it_has(
    real_host: AgentHost, agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    talk = await real_host.start_conversation(agent.id)
    for conversation_id in (None, talk.id):
        for number in range(4):
            await take(real_host, agent.id, script({"text": f"answer {number}"}), conversation_id=conversation_id)
        whole = await real_host.history(agent.id, conversation_id)
        monkeypatch.setattr(conversation, "MESSAGE_PAGE", 3)

        told = await real_host.history(agent.id, conversation_id, limit=100_000)
        newest = await real_host.history(agent.id, conversation_id, limit=3)

        monkeypatch.undo()
        assert told == whole
        assert [event.text for event in of_kind([one.event for one in told], TextChunk)][-4:] == [
            f"answer {number}" for number in range(4)
        ]
        assert newest == whole[-len(newest) :]
        assert 0 < len(newest) < len(whole)


async def test_what_letta_cannot_do_is_refused_with_what_to_do_instead(real_host: AgentHost, agent: Agent) -> None:
    assert real_host.features == HostFeatures(keeps_context=True)
    with pytest.raises(Invalid, match="audio/wav"):
        await take(real_host, agent.id, "listen", media=[Media("audio/wav", b"RIFF")])
    with pytest.raises(Invalid, match="copy one that was begun after it"):
        await real_host.fork(agent.id, None)
    with pytest.raises(Invalid, match="begin a new conversation"):
        await real_host.rewind(agent.id, None, 1)
    with pytest.raises(NotFound):
        await real_host.fork(agent.id, "conv-00000000-0000-4000-8000-000000000000")


async def test_a_model_that_letta_does_not_have_is_named(real_host: AgentHost, agent: Agent) -> None:
    events = await take(real_host, agent.id, "hello", model="nobody/nothing-1")

    assert [(one.trouble, "'nobody/nothing-1'" in one.message) for one in of_kind(events, Failed)] == [
        (FailureKind.NOT_FOUND, True)
    ]


async def test_the_models_that_letta_has_are_listed_and_the_free_one_is_not_the_first(real_host: AgentHost) -> None:
    found = await real_host.models()

    assert found[0].name == "openai-proxy/fake-1"
    assert (found[0].title, found[0].images, found[0].sounds) == ("fake-1", False, False)
    assert FREE_MODEL in {one.name for one in found[1:]}


async def test_nothing_waits_in_a_copy(real_host: AgentHost, agent: Agent) -> None:
    talk = await real_host.start_conversation(agent.id)
    await take(real_host, agent.id, script({"tools": [ASK]}), tools=[RISKY], conversation_id=talk.id)

    copy = await real_host.fork(agent.id, talk.id)

    assert await real_host.pending(agent.id, talk.id)
    assert not await real_host.pending(agent.id, copy.id)
    events = await take(real_host, agent.id, script({"text": "on"}), conversation_id=copy.id)
    assert of_kind(events, TextChunk)


async def test_how_full_the_model_is_comes_with_how_much_it_takes(real_host: AgentHost, agent: Agent) -> None:
    events = await take(real_host, agent.id, script({"text": "full"}))

    usage = of_kind(events, Usage)[-1]
    assert usage.window > usage.context_tokens > 0


# Several people and the agents of a real Letta server: what an agent learns of one person reaches no other


MODEL = "openai-proxy/fake-1"
PEOPLE = ("ann", "bob@example.org")
ROUNDS = 2


@pytest.fixture(params=["sqlite", "postgresql"])
async def people_app(request: pytest.FixtureRequest, tmp_path: Path, letta: LettaServer) -> AsyncGenerator[App]:
    where: dict[str, object] = {"FRONTDESK_DATA": tmp_path / "data"}
    if request.param == "postgresql":
        server: Postgres = request.getfixturevalue("postgres")
        where["FRONTDESK_DATABASE_URL"] = server.create_database()
    async with open_app(settings_with(**where, LETTA_BASE_URL=letta.url, LETTA_SERVER_PASSWORD=PASSWORD)) as opened:
        yield opened


@pytest.fixture
def people_host(people_app: App) -> LettaHost:
    assert isinstance(people_app.host, LettaHost)
    return people_app.host


@pytest.fixture
async def template(people_host: LettaHost) -> str:
    """A template with a persona of its own."""
    memory = [MemoryBlock("persona", "I am the concierge."), MemoryBlock("human", "Nothing is known yet.")]
    made = await people_host.create(NewAgent("Concierge", "Books trains.", MODEL, memory))
    await people_host.assignments.make_template(made.id, as_it_is=False)
    return made.id


def storing(chance: Random, secret: str) -> str:
    """A turn that keeps a secret wherever an agent can: the message contains the instructions."""
    block, new = chance.choice(["human", "persona"]), {"new_string": f"The word is {secret}."}
    steps: Sequence[dict[str, Any]] = [
        {"tool": "memory_insert", "args": {"label": block, **new}},
        {"text": f"I will remember {secret}"},
    ]
    return people_script(*steps)


def told(models: ModelServer) -> Sequence[str]:
    """All texts of each request to the model, decoded."""
    return ["\n".join(_texts(seen.body)) for seen in models.seen]


def _texts(part: object) -> Iterator[str]:
    if isinstance(part, str):
        # Text that Letta packs into JSON is text as well.
        yield part.replace('\\"', '"')
    elif isinstance(part, Mapping):
        for one in cast("Mapping[str, object]", part).values():
            yield from _texts(one)
    elif isinstance(part, list):
        for one in cast("list[object]", part):
            yield from _texts(one)


RECALLING = people_script(
    {"tool": "conversation_search", "args": {"query": "the word is"}}, {"text": "that is all I know"}
)


@shows("KEPT-01")
async def test_no_secret_of_one_person_is_in_any_request_or_answer_made_for_another(
    people_app: App, template: str, letta_models: ModelServer
) -> None:
    chance, asgi = Random(20261119), build_application(people_app)
    secrets = {person: [f"SECRET-{chance.getrandbits(48):x}" for _ in range(ROUNDS)] for person in PEOPLE}
    keys = {person: await key(people_app, person) for person in PEOPLE}
    turns = [*product(PEOPLE, range(ROUNDS))]
    chance.shuffle(turns)
    for person, number in turns:
        async with somebody(asgi, keys[person]) as speaker:
            letta_models.seen.clear()
            session = await speaker.open(template)
            for text in (storing(chance, secrets[person][number]), *([RECALLING] if number else [])):
                await speaker.say(session, text)
                await speaker.listen(session)
            shown = (await speaker.get("/sessions", sessionId=session)).text
        asked = told(letta_models)
        foreign = {one for other in PEOPLE if other != person for one in secrets[other]}
        assert any(secrets[person][number] in one for one in asked), "the scripted model was asked for this person"
        assert not [one for one in foreign for said in (*asked, shown) if one in said]
        assert f"You speak with {json.dumps(person)} in this turn." in told(letta_models)[0]


@shows("KEPT-01")
async def test_an_agent_that_serves_one_person_is_refused_to_the_next_with_advice_until_it_is_shared(
    people_app: App, people_host: LettaHost, letta_models: ModelServer
) -> None:
    agent = (await people_host.create(NewAgent("Concierge", model=MODEL))).id
    asgi = build_application(people_app)
    async with somebody(asgi, await key(people_app, "ann")) as ann, somebody(asgi, await key(people_app, "bob")) as bob:
        early = await bob.open(agent)
        session = await ann.open(agent)
        await ann.say(session, storing(Random(1), "SECRET-of-ann"))
        await ann.listen(session)
        letta_models.seen.clear()
        for refused in (
            await bob.post("/sessions", agentId=agent),
            await bob.post("/messages", sessionId=early, message=RECALLING),
            await bob.get("/sessions", sessionId=early),
        ):
            assert refused.status_code == 403
            assert f"frontdesk letta template {agent}" in refused.json()["error"]
            assert f"frontdesk letta share {agent}" in refused.json()["error"]
            assert "ann" not in refused.json()["error"]
        assert not letta_models.seen
        await take(people_host, agent, people_script({"text": "for whoever runs it"}))
        await people_host.assignments.share(agent)
        session = await bob.open(agent)
        await bob.say(session, people_script({"text": "now we share"}))
        assert text_of(await bob.listen(session)) == "now we share"


@shows("KEPT-01")
async def test_a_persons_agent_is_like_its_template_and_made_once_however_many_ask(
    people_app: App, people_host: LettaHost, letta: LettaServer
) -> None:
    async with AsyncLetta(base_url=letta.url, api_key=PASSWORD) as client:
        made = await people_host.create(
            NewAgent("Concierge", "Books trains.", MODEL, [MemoryBlock("house rules", "No smoking.", read_only=True)])
        )
        tools = (await client.agents.retrieve(made.id, include=["agent.tools"])).tools
        await client.agents.tools.detach(tools[0].id, agent_id=made.id)
        rules: Any = [{"type": "requires_approval", "tool_name": "memory_insert"}]
        scopes = frozenset({HEALTH_READ})
        _, text = await people_app.identity.create_key(name=KEY_NAME, agent_id=made.id, user_id=None, scopes=scopes)
        await client.agents.update(
            made.id, system="Be brief.", tool_rules=rules, tags=["desk"], secrets={KEY_SECRET: text, "PORT": "Rye"}
        )
        await people_host.assignments.make_template(made.id, as_it_is=False)
        found: set[str] = set()

        async def ask() -> None:
            found.add(await people_host.agent_for_person(made.id, "ann"))

        async with anyio.create_task_group() as tasks:
            for _ in range(4):
                tasks.start_soon(ask)

        [mine] = found
        assert mine != made.id
        parts: Any = ["agent.blocks", "agent.secrets", "agent.tags", "agent.tools"]
        old, new = [await client.agents.retrieve(one, include=parts) for one in (made.id, mine)]
        same = ("system", "description", "model", "embedding", "agent_type", "tool_rules")
        assert [getattr(new, name) for name in same] == [getattr(old, name) for name in same]
        assert new.llm_config.model_dump() == old.llm_config.model_dump()
        assert {tool.id for tool in new.tools} == {tool.id for tool in old.tools}
        assert {(block.label, block.value, block.limit, block.read_only) for block in new.blocks} == {
            (block.label, block.value, block.limit, block.read_only) for block in old.blocks
        }
        assert {block.id for block in new.blocks}.isdisjoint({block.id for block in old.blocks})
        assert new.name == "Concierge - ann"
        assert set(old.tags) < set(new.tags)
        assert len((await client.agents.list(tags=list(set(new.tags) - set(old.tags)), order="asc")).items) == 1
        kept = {one.key: one.value for one in new.secrets or ()}
        assert kept["PORT"] == "Rye"
        own = await find_working_key(people_app.keys, kept[KEY_SECRET], mine, datetime.now(UTC))
        assert own is not None
        assert own.scopes == scopes

        await client.agents.delete(mine)
        assert await people_host.agent_for_person(made.id, "ann") not in (mine, made.id), (
            "one that was deleted there is made anew"
        )


@shows("KEPT-01")
async def test_what_is_planned_for_a_template_goes_to_the_persons_own_agent_and_a_person_can_be_erased(
    people_app: App, people_host: LettaHost, template: str, letta_models: ModelServer
) -> None:
    caller = Caller("req-test", user_id="ann")
    mine = await people_host.agent_for_person(template, "ann")
    talk = await people_host.start_conversation(template, "ann")
    assert talk.agent_id == mine
    letta_models.seen.clear()
    await take(people_host, template, storing(Random(2), "SECRET-planned"), caller=caller, conversation_id=talk.id)
    assert 'You speak with "ann" in this turn.' in told(letta_models)[0]
    assert "SECRET-planned" in str(await people_host.blocks(mine))
    assert "SECRET-planned" not in str(await people_host.blocks(template))
    scope = PersonScope.for_caller(local_caller(user="ann"))

    exported = await people_app.memory.people.export(scope)
    erased = await people_app.memory.people.erase(scope)

    assert [one["id"] for one in exported["elsewhere"]["letta_agents"]] == [mine]
    assert "SECRET-planned" in str(exported["elsewhere"]["letta_agents"])
    assert erased.left == []
    assert await people_host.find(mine) is None
    assert await people_host.agent_for_person(template, "ann") != mine


@shows("KEPT-01")
async def test_an_erasure_that_does_not_reach_letta_says_so_and_is_finished_later(
    tmp_path: Path, letta: LettaServer
) -> None:
    def on(url: str) -> Any:
        return settings_with(FRONTDESK_DATA=tmp_path / "data", LETTA_BASE_URL=url, LETTA_SERVER_PASSWORD=PASSWORD)

    scope = PersonScope.for_caller(local_caller(user="ann"))
    async with open_app(on(letta.url)) as app:
        agents = [(await app.host.create(NewAgent(name, model=MODEL))).id for name in ("Own", "Shared")]
        assert isinstance(app.host, LettaHost)
        await app.host.assignments.share(agents[1])
        for agent in agents:
            await take(app.host, agent, people_script({"text": "hello"}), caller=Caller("req-test", user_id="ann"))
    async with open_app(on(NOBODY_THERE)) as app, somebody(build_application(app), await key(app, "ann")) as ann:
        body = {"confirm": "erase"}
        answer = await ann.client.request("DELETE", "http://127.0.0.1:3020/api/user/data", json=body)
    told = answer.json()
    assert answer.status_code == 202
    assert told["message"] != "Everything is erased"
    assert [next(agent for agent in agents if agent in one) for one in told["left"]] == [agents[1], agents[0]]
    async with open_app(on(letta.url)) as app:
        assert (await app.memory.people.erase(scope)).left == []
        assert await app.host.find(agents[0]) is None
        assert await app.host.find(agents[1]) is not None
