"""Several people and the agents of a real Letta server: what an agent learns of one of them reaches nobody else."""

import json
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import product
from pathlib import Path
from random import Random
from typing import Any, cast

import anyio
import pytest
from letta_client import AsyncLetta

from frontdesk.agents.host import MemoryBlock, NewAgent
from frontdesk.agents.letta.connect import KEY_NAME
from frontdesk.agents.letta.host import LettaHost
from frontdesk.agents.letta.server import KEY_SECRET, find_working_key
from frontdesk.app import App, open_app
from frontdesk.identity.model import Caller
from frontdesk.identity.rights import HEALTH_READ
from frontdesk.interfaces.app_runner import local_caller
from frontdesk.interfaces.http.application import build_application
from frontdesk.memory.model import PersonScope
from tests.conftest import settings_with
from tests.hosts.conftest import NOBODY_THERE, PASSWORD
from tests.hosts.lab import take
from tests.requirements import shows
from tests.support.chat import key, script, somebody, text_of
from tests.support.letta import LettaServer
from tests.support.models import ModelServer
from tests.support.postgres import Postgres

pytestmark = pytest.mark.anyio
MODEL = "openai-proxy/fake-1"
PEOPLE = ("ann", "bob@example.org")
ROUNDS = 2


@pytest.fixture(params=["sqlite", "postgresql"])
async def app(request: pytest.FixtureRequest, tmp_path: Path, letta: LettaServer) -> AsyncGenerator[App]:
    where: dict[str, object] = {"FRONTDESK_DATA": tmp_path / "data"}
    if request.param == "postgresql":
        server: Postgres = request.getfixturevalue("postgres")
        where["FRONTDESK_DATABASE_URL"] = server.create_database()
    async with open_app(settings_with(**where, LETTA_BASE_URL=letta.url, LETTA_SERVER_PASSWORD=PASSWORD)) as opened:
        yield opened


@pytest.fixture
def host(app: App) -> LettaHost:
    assert isinstance(app.host, LettaHost)
    return app.host


@pytest.fixture
async def template(host: LettaHost) -> str:
    """A template with a persona of its own."""
    memory = [MemoryBlock("persona", "I am the concierge."), MemoryBlock("human", "Nothing is known yet.")]
    made = await host.create(NewAgent("Concierge", "Books trains.", MODEL, memory))
    await host.assignments.make_template(made.id, as_it_is=False)
    return made.id


def storing(chance: Random, secret: str) -> str:
    """A turn that keeps a secret wherever an agent can: what it is told to do stands in the message."""
    block, new = chance.choice(["human", "persona"]), {"new_string": f"The word is {secret}."}
    steps: Sequence[dict[str, Any]] = [
        {"tool": "memory_insert", "args": {"label": block, **new}},
        {"text": f"I will remember {secret}"},
    ]
    return script(*steps)


def told(models: ModelServer) -> Sequence[str]:
    """All texts of each request that the model had, as it reads them."""
    return ["\n".join(_texts(seen.body)) for seen in models.seen]


def _texts(part: object) -> Iterator[str]:
    if isinstance(part, str):
        # What Letta packs into JSON is text as well.
        yield part.replace('\\"', '"')
    elif isinstance(part, Mapping):
        for one in cast("Mapping[str, object]", part).values():
            yield from _texts(one)
    elif isinstance(part, list):
        for one in cast("list[object]", part):
            yield from _texts(one)


RECALLING = script({"tool": "conversation_search", "args": {"query": "the word is"}}, {"text": "that is all I know"})


@shows("KEPT-01")
async def test_no_secret_of_one_person_is_in_any_request_or_answer_made_for_another(
    app: App, template: str, letta_models: ModelServer
) -> None:
    chance, asgi = Random(20261119), build_application(app)
    secrets = {person: [f"SECRET-{chance.getrandbits(48):x}" for _ in range(ROUNDS)] for person in PEOPLE}
    keys = {person: await key(app, person) for person in PEOPLE}
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
    app: App, host: LettaHost, letta_models: ModelServer
) -> None:
    agent = (await host.create(NewAgent("Concierge", model=MODEL))).id
    asgi = build_application(app)
    async with somebody(asgi, await key(app, "ann")) as ann, somebody(asgi, await key(app, "bob")) as bob:
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
        await take(host, agent, script({"text": "for whoever runs it"}))
        await host.assignments.share(agent)
        session = await bob.open(agent)
        await bob.say(session, script({"text": "now we share"}))
        assert text_of(await bob.listen(session)) == "now we share"


@shows("KEPT-01")
async def test_a_persons_agent_is_like_its_template_and_made_once_however_many_ask(
    app: App, host: LettaHost, letta: LettaServer
) -> None:
    async with AsyncLetta(base_url=letta.url, api_key=PASSWORD) as client:
        made = await host.create(
            NewAgent("Concierge", "Books trains.", MODEL, [MemoryBlock("house rules", "No smoking.", read_only=True)])
        )
        tools = (await client.agents.retrieve(made.id, include=["agent.tools"])).tools
        await client.agents.tools.detach(tools[0].id, agent_id=made.id)
        rules: Any = [{"type": "requires_approval", "tool_name": "memory_insert"}]
        scopes = frozenset({HEALTH_READ})
        _, text = await app.identity.create_key(name=KEY_NAME, agent_id=made.id, user_id=None, scopes=scopes)
        await client.agents.update(
            made.id, system="Be brief.", tool_rules=rules, tags=["desk"], secrets={KEY_SECRET: text, "PORT": "Rye"}
        )
        await host.assignments.make_template(made.id, as_it_is=False)
        found: set[str] = set()

        async def ask() -> None:
            found.add(await host.agent_for_person(made.id, "ann"))

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
        own = await find_working_key(app.keys, kept[KEY_SECRET], mine, datetime.now(UTC))
        assert own is not None
        assert own.scopes == scopes

        await client.agents.delete(mine)
        assert await host.agent_for_person(made.id, "ann") not in (mine, made.id), (
            "one that was deleted there is made anew"
        )


@shows("KEPT-01")
async def test_what_is_planned_for_a_template_goes_to_the_persons_own_agent_and_a_person_can_be_erased(
    app: App, host: LettaHost, template: str, letta_models: ModelServer
) -> None:
    caller = Caller("req-test", user_id="ann")
    mine = await host.agent_for_person(template, "ann")
    talk = await host.start_conversation(template, "ann")
    assert talk.agent_id == mine
    letta_models.seen.clear()
    await take(host, template, storing(Random(2), "SECRET-planned"), caller=caller, conversation_id=talk.id)
    assert 'You speak with "ann" in this turn.' in told(letta_models)[0]
    assert "SECRET-planned" in str(await host.blocks(mine))
    assert "SECRET-planned" not in str(await host.blocks(template))
    scope = PersonScope.for_caller(local_caller(user="ann"))

    exported = await app.memory.people.export(scope)
    erased = await app.memory.people.erase(scope)

    assert [one["id"] for one in exported["elsewhere"]["letta_agents"]] == [mine]
    assert "SECRET-planned" in str(exported["elsewhere"]["letta_agents"])
    assert erased.left == []
    assert await host.find(mine) is None
    assert await host.agent_for_person(template, "ann") != mine


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
            await take(app.host, agent, script({"text": "hello"}), caller=Caller("req-test", user_id="ann"))
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
