"""Tests that an agent that serves several people keeps each person's data with that person."""

import hashlib
import json
import re
import socket
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import anyio
import httpx2
import pytest
from sqlalchemy import Table, create_engine, inspect, select, text
from websockets.asyncio.client import ClientConnection, connect

from frontdesk.agents.host import EVERYONE, AgentHost, HeldTool, MemoryBlock, NewAgent
from frontdesk.agents.letta.connect import ConnectRequest, LettaConnector
from frontdesk.agents.letta.host import LettaHost
from frontdesk.app import App, open_app, running
from frontdesk.db.schema import metadata
from frontdesk.errors import Invalid, NotFound
from frontdesk.identity.model import Caller
from frontdesk.identity.rights import INSTALLATION_ADMIN, SCHEDULES_ADMIN, SCOPES, TOOLS_ADMIN
from frontdesk.interfaces.acp.websocket import ACP_PATH, WebSocketEndpoint
from frontdesk.interfaces.http.application import build_application
from frontdesk.interfaces.http.context import ASGIApp
from frontdesk.interfaces.http.uvicorn_server import UvicornServer, uvicorn_config
from frontdesk.interfaces.mcp.server import main_tools
from frontdesk.interfaces.mcp.tools import tool_name
from frontdesk.llm.events import Started, ToolReturn, UserText
from frontdesk.schedules.model import RunStatus
from frontdesk.schedules.requests import ListRuns
from frontdesk.settings import Settings
from tests.hosts.conftest import KEY, PASSWORD
from tests.hosts.lab import Lab, of_kind, script, take
from tests.hosts.lab import said as persons_said
from tests.requirements import shows
from tests.support.chat import Person, key
from tests.support.chat import script as apart_script
from tests.support.letta import LettaServer, forget_servers
from tests.support.models.application import ModelServer
from tests.support.scheduling import OPERATOR as APART_OPERATOR
from tests.support.upstreams import SCHEMA, Upstream, open_upstream
from tests.support.waiting import POLL_SECONDS
from tests.support.wire import MODERN, call

# What an agent learns of each person stays with that person, on both databases


on_both_databases = pytest.mark.parametrize("lab", ["sqlite", "postgresql"], indirect=True)

OPERATOR = Caller("req-operator", local=True)
NOBODY = Caller("req-nobody")


def person(name: str) -> Caller:
    return Caller(f"req-{name}", user_id=name, verified=True, credential_id=f"key:{name}")


def insert(label: str, text: str) -> dict[str, Any]:
    return {"tool": "memory_insert", "args": {"label": label, "new_string": text}}


def asked_of(lab: Lab) -> str:
    """The texts of all requests to models since the last call."""
    said_so_far = [str(message["content"]) for seen in lab.models.seen for message in seen.body["messages"]]
    lab.models.seen.clear()
    return "\n".join(said_so_far)


async def values(host: AgentHost, agent_id: str, who: Any) -> dict[str, str]:
    return {block.label: block.value for block in await host.blocks(agent_id, who)}


def told(events: Sequence[Any]) -> list[str]:
    return [back.text for back in of_kind(events, ToolReturn)]


@on_both_databases
@shows("KEPT-01")
async def test_what_a_turn_learns_of_one_person_is_in_no_request_for_another(lab: Lab) -> None:
    async with lab.open() as host:
        agent = (await host.create(NewAgent("Concierge", blocks=[MemoryBlock("human", "Speaks French")]))).id
        await take(host, agent, script(insert("human", "ann-secret"), {"text": "ann-said"}), caller=person("ann"))
        await take(host, agent, script(insert("human", "nobody-secret"), {"text": "ok"}), caller=NOBODY)
        asked_of(lab)
        search = {"tool": "conversation_search", "args": {"query": "said"}}
        await take(host, agent, script(search, insert("human", "bob-secret"), {"text": "ok"}), caller=person("bob"))
        asked = asked_of(lab)
        assert "Speaks French" in asked
        assert not [word for word in ("ann-secret", "ann-said", "nobody-secret") if word in asked]
        assert 'the user id "bob"' in asked
        assert (await values(host, agent, "ann"))["human"] == "Speaks French\nann-secret"
        assert (await values(host, agent, "bob"))["human"] == "Speaks French\nbob-secret"
        assert (await values(host, agent, None))["human"] == "Speaks French\nnobody-secret"
        assert (await values(host, agent, EVERYONE))["human"] == "Speaks French"
        assert await host.people(agent) == ["ann", "bob"]
        asked_of(lab)
        await take(host, agent, "hello", caller=NOBODY)
        assert "names no person" in asked_of(lab)
        versions = await host.block_versions(agent, "human", "ann")
        assert [version.value for version in versions] == ["Speaks French"]


@on_both_databases
@shows("KEPT-01")
async def test_shared_blocks_are_changed_only_for_those_who_run_the_agent_or_where_they_allowed_it(lab: Lab) -> None:
    async with lab.open() as host:
        agent = (await host.create(NewAgent("Ada", blocks=[MemoryBlock("team", "Ann leads")], owner="olga"))).id
        asked_of(lab)
        for caller in (person("ann"), NOBODY):
            [answer] = told(await take(host, agent, script(insert("persona", "obey"), {"text": "ok"}), caller=caller))
            assert "shared by everybody" in answer
            assert "human" in answer
        asked = asked_of(lab)
        assert '<block label="persona" limit="5000" read_only>' in asked
        for caller in (OPERATOR, person("olga"), Caller("req-local", user_id="local", credential_id="local")):
            await take(host, agent, script(insert("persona", caller.request_id), {"text": "ok"}), caller=caller)
        persona = (await values(host, agent, "ann"))["persona"]
        assert persona.splitlines()[1:] == ["req-operator", "req-olga", "req-local"]
        with pytest.raises(Invalid, match="shared by everybody"):
            await host.write_block(agent, "team", "Bob leads", None, "ann", runs=False)
        assert (await host.set_block(agent, "team", people_write=True)).people_write
        await take(host, agent, script(insert("team", "Bob cooks"), {"text": "ok"}), caller=person("ann"))
        assert (await values(host, agent, "bob"))["team"] == "Ann leads\nBob cooks"
        # Any block can become one for each person; its present text is the initial text for all.
        await host.set_block(agent, "team", per_person=True)
        await take(host, agent, script(insert("team", "mine"), {"text": "ok"}), caller=person("ann"))
        assert "mine" not in (await values(host, agent, "bob"))["team"]


@on_both_databases
@shows("KEPT-01")
async def test_nobody_is_let_into_anothers_conversation_but_the_operator(lab: Lab) -> None:
    async with lab.open() as host:
        agent = (await host.create(NewAgent("Ada"))).id
        for name in ("ann", "bob"):
            await take(host, agent, script({"text": f"hello {name}"}), caller=person(name))
        [ann] = await host.conversations(agent, 10, "ann")
        [bob] = await host.conversations(agent, 10, "bob")
        assert ann.id != bob.id
        assert {one.user_id for one in await host.conversations(agent, 10)} == {None, "ann", "bob"}
        for asks in (
            lambda: take(host, agent, "what did Ann say?", caller=person("bob"), conversation_id=ann.id),
            lambda: take(host, agent, "what did Ann say?", caller=NOBODY, conversation_id=ann.id),
            lambda: host.history(agent, ann.id, user_id="bob"),
            lambda: host.pending(agent, ann.id, None),
            lambda: host.cancel(agent, ann.id, "bob"),
            lambda: host.fork(agent, ann.id, "bob"),
            lambda: host.rewind(agent, ann.id, 1, "bob"),
            lambda: host.compact(agent, ann.id, "bob"),
        ):
            with pytest.raises(NotFound):
                await asks()
        await host.forget(agent, ann.id, "bob")
        assert "hello ann" in persons_said([one.event for one in await host.history(agent, user_id="ann")])
        # A helper acts in Ann's name: with her memory, and in her turn.
        asked_of(lab)
        events = await take(
            host, agent, script(insert("human", "x"), {"text": "ok"}), caller=OPERATOR, conversation_id=ann.id
        )
        assert 'user id "ann"' in asked_of(lab)
        assert (await values(host, agent, "ann"))["human"] == "x"
        assert (await values(host, agent, None))["human"] == ""
        turn_id = of_kind(events, Started)[0].turn_id
        theirs = await host.history(agent, ann.id, user_id="ann")
        assert [one.turn_id for one in theirs if isinstance(one.event, UserText)][-1] == turn_id
        with pytest.raises(Invalid, match="shared by everybody"):
            await host.write_block(agent, "persona", "x", None, "ann", runs=False)


# Several people with one agent: whatever they write and store, none receives another's data
#
# On either host and either database the model does all it can: in each turn it calls every offered tool, with the
# person's secret in every text field, and then searches for the secrets of all people.


PEOPLE = ("ann", "ben", "cleo")
# The operator at this machine: a turn of theirs names no person.
APART_NOBODY = "nobody"
EVERYBODY = (*PEOPLE, APART_NOBODY)
ROUNDS = 2
# Part of every secret, so that a search for it finds everything that a caller may find.
WORD = "quincewood"
RIGHTS = sorted(frozenset(SCOPES) - {INSTALLATION_ADMIN, SCHEDULES_ADMIN, TOOLS_ADMIN})
LABEL = re.compile(r'<block label="([^"]+)"')
CHANGES = re.compile(
    r"(promptyoself_)?(create|add|update|delete|memory_|complete|fail|accept|start|stop|schedule|register|cancel|pause|run)"
)
UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
# Over how many model requests the calls of a turn are spread.
STEPS = 4
SECONDS = 120
# What a person can also request, besides the described routes: pages, and lists about the installation.
PAGES = ("/", "/agents", "/tools/use", "/schedule", "/schedule?show=runs", "/people", "/turns", "/access", "/live/now")
LISTS = ("/metrics", "/api/health", "/api/agents/sessions", "/api/v1/schedules", "/api/v1/schedules/runs")
UPSTREAM = "port"
LETTA_MODEL = "openai-proxy/fake-1"


def mark(person: str) -> str:
    """Part of every message of a person: it shows which person's turn a model request belongs to."""
    return "sender" + hashlib.sha256(person.encode()).hexdigest()[:10]


def secret(person: str, number: int) -> str:
    return f"{WORD} hidden{hashlib.sha256(f'{person}/{number}'.encode()).hexdigest()[:12]}"


def proofs(person: str) -> Sequence[str]:
    """Text that only this person's data contains."""
    return (mark(person), *(secret(person, number).split()[1] for number in range(ROUNDS)))


def whose(text: str) -> set[str]:
    return {person for person in EVERYBODY if any(one in text for one in proofs(person))}


@dataclass(slots=True)
class Editor:
    """A person's editor on a socket; it allows everything, and records everything that it receives."""

    socket: ClientConnection
    heard: list[str] = field(default_factory=list[str])
    _next: int = 0

    async def ask(self, method: str, **params: object) -> Mapping[str, Any]:
        self._next += 1
        await self._say(id=self._next, method=method, params=params)
        while True:
            self.heard.append(str(await self.socket.recv()))
            frame = json.loads(self.heard[-1])
            if frame.get("method") == "session/request_permission":
                outcome = {"outcome": {"outcome": "selected", "optionId": "allow_once"}}
                await self._say(id=frame["id"], result=outcome)
            elif "method" not in frame and frame["id"] == self._next:
                return frame["result"]

    async def _say(self, **frame: object) -> None:
        await self.socket.send(json.dumps({"jsonrpc": "2.0", **frame}))


@dataclass(slots=True)
class Installation:
    """A server with one agent for all people, and each person's key, client and session."""

    app: App
    url: str
    models: ModelServer
    upstream: Upstream
    letta: LettaServer | None
    agent_id: str = ""
    keys: dict[str, str] = field(default_factory=dict[str, str])
    clients: dict[str, httpx2.AsyncClient] = field(default_factory=dict[str, httpx2.AsyncClient])
    sessions: dict[str, str] = field(default_factory=dict[str, str])

    @property
    def talkers(self) -> Sequence[str]:
        """Fewer with Letta, which is slower. A turn there that names no person changes everybody's initial text."""
        return EVERYBODY if self.letta is None else PEOPLE[:2]

    async def say(self, person: str, *steps: Mapping[str, Any]) -> Mapping[str, Any]:
        """Make the agent take a turn for a person; gives the last request to the model in it."""
        words = f"{mark(person)} says {apart_script(*steps)}"
        with anyio.fail_after(SECONDS):
            if person == APART_NOBODY:
                await take(self.app.host, self.agent_id, words, caller=Caller("req-test", local=True))
            else:
                await self._chat(person, words)
        return next(one for one in reversed(self.asked()) if mark(person) in json.dumps(one))

    async def _chat(self, person: str, words: str) -> None:
        client = Person(self.clients[person])
        if person not in self.sessions:
            self.sessions[person] = await client.open(self.agent_id)
        await client.say(self.sessions[person], words)
        events = await client.listen(self.sessions[person])
        assert events[-1]["type"] == "end", events[-1]

    def asked(self) -> Sequence[Mapping[str, Any]]:
        """The requests to the model, in order."""
        return [one.body for one in list(self.models.seen) if "messages" in one.body]

    async def get(self, person: str, path: str) -> httpx2.Response:
        return await self.clients[person].get(f"{self.url}{path}")

    @asynccontextmanager
    async def editor(self, person: str) -> AsyncGenerator[Editor]:
        headers = {"authorization": f"Bearer {self.keys[person]}"}
        address = self.url.replace("http", "ws", 1) + ACP_PATH
        async with connect(address, additional_headers=headers, max_size=None) as socket:
            editor = Editor(socket)
            await editor.ask("initialize", protocolVersion=1, clientCapabilities={})
            yield editor


@pytest.fixture(scope="module")
def upstream() -> Iterator[Upstream]:
    with open_upstream() as server:
        yield server


@pytest.fixture(params=["built-in", "letta"])
async def installation(
    request: pytest.FixtureRequest, settings: Settings, models: ModelServer, upstream: Upstream
) -> AsyncGenerator[Installation]:
    with_letta = request.param == "letta"
    letta: LettaServer | None = request.getfixturevalue("letta") if with_letta else None
    thinking: ModelServer = request.getfixturevalue("letta_models") if with_letta else models
    thinking.seen.clear()
    upstream.calls.clear()
    async with AsyncExitStack() as stack:
        listener = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        port = listener.getsockname()[1]
        given: dict[str, object] = {
            **settings.model_dump(exclude_unset=True),
            "FRONTDESK_REQUIRE_AUTH": True,
            "FRONTDESK_PORT": port,
            "FRONTDESK_MCP_SERVERS": [{"name": UPSTREAM, "url": f"{upstream.url}/mcp"}],
        }
        if letta is None:
            given |= {"FRONTDESK_MODEL": "openai:fake-1", "OPENAI_BASE_URL": models.openai_url, "OPENAI_API_KEY": KEY}
        else:
            given |= {"LETTA_BASE_URL": letta.url, "LETTA_SERVER_PASSWORD": PASSWORD}
        app = await stack.enter_async_context(open_app(Settings.model_validate(given)))
        await stack.enter_async_context(running(app))
        place = Installation(app, f"http://127.0.0.1:{port}", thinking, upstream, letta)
        await app.tools.catalogue.refresh()
        await stack.enter_async_context(_served(place, listener))
        place.agent_id = await _agent(place)
        for person in PEOPLE:
            place.keys[person] = await key(app, person, *RIGHTS)
            headers = {"authorization": f"Bearer {place.keys[person]}"}
            client = httpx2.AsyncClient(base_url=f"{place.url}/api/agents", headers=headers, timeout=SECONDS)
            place.clients[person] = await stack.enter_async_context(client)
        yield place
        if isinstance(app.host, LettaHost):
            await forget_servers(app.host.server.client)


@asynccontextmanager
async def _served(place: Installation, listener: socket.socket) -> AsyncGenerator[None]:
    """For HTTP clients, for editors, and for the agents of a Letta server."""
    pages = build_application(place.app)

    async def asgi(scope: Any, receive: Any, send: Any) -> None:
        editors = WebSocketEndpoint(place.app, place.agent_id).asgi()
        await (editors if scope["type"] == "websocket" else pages)(scope, receive, send)

    served: ASGIApp = asgi
    server, stopped = UvicornServer(uvicorn_config(served, sockets=True)), anyio.Event()

    async def serve() -> None:
        await server.serve([listener])
        stopped.set()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(serve)
        try:
            yield
        finally:
            server.should_exit = True
            with anyio.move_on_after(SECONDS, shield=True):
                await stopped.wait()


async def _agent(place: Installation) -> str:
    """The agent that all people name, with a server's tool among its own."""
    host, letta = place.app.host, place.letta
    new = NewAgent(
        "Concierge", model=LETTA_MODEL if letta else None, blocks=[MemoryBlock("team", "Everybody is welcome.")]
    )
    agent_id = (await host.create(new)).id
    if isinstance(host, LettaHost):
        names = [tool_name(tool) for tool in main_tools(bound.operation for bound in place.app.operations())]
        connector = LettaConnector(host, place.app.identity, place.app.keys)
        await connector.connect(ConnectRequest(f"{place.url}/mcp", "frontdesk", names, [agent_id]))
    await host.attach(
        agent_id,
        HeldTool(f"{UPSTREAM}__echo", "Says it again.", server=UPSTREAM, remote_name="echo", parameters=SCHEMA),
    )
    if isinstance(host, LettaHost):
        await host.assignments.make_template(agent_id, as_it_is=False)
    return agent_id


@shows("KEPT-01")
async def test_nobody_meets_what_is_anothers_though_the_model_stores_and_looks_wherever_it_can(
    installation: Installation,
) -> None:
    for person in installation.talkers:
        await _do_all(installation, person, 0)
    # First one person after the other, then all at the same time.
    for number in range(1, ROUNDS):
        async with anyio.create_task_group() as tasks:
            for person in installation.talkers:
                tasks.start_soon(_do_all, installation, person, number)
    await _delivered(installation.app, len(installation.talkers) * ROUNDS)
    async with anyio.create_task_group() as tasks:
        for person in installation.talkers:
            tasks.start_soon(_look, installation, person, await installation.say(person))
    _check_requests(installation)
    await _check_answers(installation)
    await _check_erasure(installation)


async def _do_all(place: Installation, person: str, number: int) -> None:
    """A person with a secret makes the agent do all it can, in a chat and in an editor."""
    words, offered = secret(person, number), await place.say(person)
    await _store(place, person, number, offered)
    await _schedule(place, person, words, offered)
    await _look(place, person, offered)
    if person != APART_NOBODY:
        await _edit(place, person, words)


async def _edit(place: Installation, person: str, words: str) -> None:
    """The same agent in the person's editor, which receives nothing of the others."""
    learn = {"tool": "memory_insert", "args": {"label": "human", "new_string": words}}
    look = {"tool": "conversation_search", "args": {"query": WORD}}
    with anyio.fail_after(SECONDS):
        async with place.editor(person) as editor:
            opened = await editor.ask("session/new", cwd=f"/work/{person}", mcpServers=[])
            for said in (
                f"{mark(person)} {apart_script(learn, look, {'text': words})}",
                "/memory",
                "/schedule",
                "/compact",
            ):
                prompt = [{"type": "text", "text": said}]
                done = await editor.ask("session/prompt", sessionId=opened["sessionId"], prompt=prompt)
                assert done["stopReason"] == "end_turn", editor.heard[-1]
            await editor.ask("session/list")
    heard = "\n".join(editor.heard)
    assert whose(heard) == {person}, _around(heard)


async def _store(place: Installation, person: str, number: int, offered: Mapping[str, Any]) -> None:
    """Every tool with the secret in every text field, once with the required arguments and once with all."""
    ids, words = UUID.findall(json.dumps(offered["messages"]))[-1:], secret(person, number)
    least, most = (_calls(person, offered, words, ids, full=full) for full in (False, True))
    if place.letta is not None:
        # Letta is slow at each call.
        least, most = ([], most) if number else (least, [])
    calls = [*least, *(one for one in most if one not in least)]
    await place.say(person, *_in_steps(calls))


async def _look(place: Installation, person: str, offered: Mapping[str, Any]) -> None:
    """Every tool once more, to search it for other people's data."""
    await place.say(person, *_in_steps(_calls(person, offered, WORD, (), full=False, only_reading=True)))


async def _schedule(place: Installation, person: str, words: str, offered: Mapping[str, Any]) -> None:
    """Make the agent schedule a prompt for the person."""
    script = json.dumps([{"tool": "conversation_search", "args": {"query": WORD}}, {"text": f"Heard {words}"}])
    prompt = f"{mark(person)} {words} @@{script}@@"
    known = {tool["function"]["name"] for tool in offered["tools"]}
    plans = {"schedule_prompt": "when", "promptyoself_schedule_time": "time"}
    [(name, when)] = [(name, when) for name, when in plans.items() if name in known]
    await place.say(person, {"tool": name, "args": {"prompt": prompt, when: "in 1 second"}}, {"text": "done"})


async def _delivered(app: App, count: int) -> None:
    """Wait until that many scheduled prompts have an answer."""
    wanted = ListRuns(standing=RunStatus.DELIVERED, limit=100)
    with anyio.fail_after(SECONDS):
        while True:
            if len((await app.schedules.queries.history(APART_OPERATOR, wanted)).runs) >= count:
                return
            await anyio.sleep(POLL_SECONDS)


def _calls(
    person: str, offered: Mapping[str, Any], words: str, ids: Sequence[str], *, full: bool, only_reading: bool = False
) -> list[Mapping[str, Any]]:
    """A call of each offered tool; one for each memory block if a tool needs a block's label."""
    labels = LABEL.findall(json.dumps(offered["messages"]).replace('\\"', '"')) or ["human", "persona"]
    if person == APART_NOBODY:
        # They run the agent, and their text in the other blocks is for everybody.
        labels = ["human"]
    found: list[Mapping[str, Any]] = []
    for tool in offered["tools"]:
        name, schema = tool["function"]["name"], tool["function"]["parameters"]
        if only_reading and CHANGES.match(name):
            continue
        filling = Filling(words, ids, full, schema.get("$defs", {}))
        made = filling.value(schema)
        if name == "call_tool":
            made = {"name": f"{UPSTREAM}::echo", "arguments": {"city": words}}
        several = [{**made, "label": label} for label in labels] if "label" in made else [made]
        found += [{"name": name, "args": arguments} for arguments in several]
    return found


def _in_steps(calls: Sequence[Mapping[str, Any]]) -> Sequence[Mapping[str, Any]]:
    size = -(-len(calls) // STEPS)
    return [*({"tools": calls[at : at + size]} for at in range(0, len(calls), size)), {"text": "done"}]


@dataclass(frozen=True, slots=True)
class Filling:
    """Makes values that a JSON schema allows, as far as it says, with the words in every text field."""

    words: str
    ids: Sequence[str]
    full: bool
    definitions: Mapping[str, Any]

    def value(self, schema: Mapping[str, Any], name: str = "") -> Any:
        schema = self._resolved(schema)
        plain = {
            "integer": max(1, schema.get("minimum", 1)),
            "number": max(1, schema.get("minimum", 1)),
            "boolean": True,
        }
        match schema:
            case {"const": fixed} | {"enum": [fixed, *_]}:
                return fixed
            case {"type": "object"}:
                fields = schema.get("properties", {})
                wanted = fields if self.full else schema.get("required", ())
                return {field: self.value(fields.get(field, {}), field) for field in wanted}
            case {"type": "array"}:
                return [self.value(schema.get("items", {}), name)]
            case _:
                return plain.get(schema.get("type", "string"), self._text(name))

    def _resolved(self, schema: Mapping[str, Any]) -> Mapping[str, Any]:
        while True:
            match schema:
                case {"$ref": where}:
                    schema = self.definitions[where.rpartition("/")[2]]
                case {"anyOf": [first, *_]} | {"oneOf": [first, *_]} | {"allOf": [first, *_]}:
                    schema = first
                case _:
                    return schema

    def _text(self, name: str) -> str:
        """The words, except in fields that accept only an id or a time."""
        if name == "id" or name.endswith("_id"):
            return next(iter(self.ids), self.words)
        if name.endswith(("_at", "_date", "date_from", "date_to")):
            return "2030-01-01T10:00:00Z"
        return {"date": "2026-11-20", "when": "every day at 9", "zone": "UTC", "timezone": "UTC"}.get(name, self.words)


def _check_requests(place: Installation) -> None:
    """Each model request belongs to one person, and contains nothing of another."""
    asked = [json.dumps(one, ensure_ascii=False) for one in place.asked()]
    mixed = [text for text in asked if len(whose(text)) != 1]
    assert not mixed, f"{len(mixed)} of {len(asked)} requests hold the words of {whose(mixed[0])}: {_around(mixed[0])}"
    # The model tried everything, and a person's data came back to that person: so the test would notice a leak.
    for person in place.talkers:
        theirs = [one for one in place.asked() if mark(person) in json.dumps(one)]
        offered = {tool["function"]["name"] for tool in theirs[0]["tools"]}
        called = {made["function"]["name"] for one in theirs for said in one["messages"] for made in _made(said)}
        assert offered - called == set(), f"{person}: {offered - called}"
        assert any("hidden" in _system(one) for one in theirs), person
    shown = [json.dumps(one["params"]["arguments"]) for one in place.upstream.calls if one["method"] == "tools/call"]
    assert {person for text in shown for person in whose(text)} == set(place.talkers)


def _made(said: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    return said.get("tool_calls") or ()


def _system(body: Mapping[str, Any]) -> str:
    return json.dumps([one for one in body.get("messages", ()) if one["role"] in ("system", "developer")])


def _around(text: str) -> str:
    found = [at for person in EVERYBODY for one in proofs(person) if (at := text.find(one)) >= 0]
    return " … ".join(text[max(0, at - 200) : at + 60] for at in found)


async def _check_answers(place: Installation) -> None:
    """No request of a person, of all possible ones, returns anything of another person."""
    rows = await _rows(place.app)
    ids = sorted({one for found in rows.values() for one in _ids(found)})
    described = (await place.get("ben", "/api/openapi.json")).json()["paths"]
    routes = [path for path, operations in described.items() if "get" in operations and not path.endswith("/stream")]
    asked = [f"/api{path}" if not path.startswith("/api") else path for path in routes]
    plain = [path for path in asked if "{" not in path]
    filled = [re.sub(r"{[^}]+}", one, path) for path in asked if "{" in path for one in ids]
    queries = [f"{path}?q={WORD}&from=2020-01-01&to=2031-01-01&limit=100" for path in plain]
    wrong: list[str] = []
    heard = ""
    for path in (*PAGES, *LISTS, *plain, *queries, *filled):
        answer = await place.get("ben", path)
        heard += answer.text
        if whose(answer.text) - {"ben"}:
            wrong.append(f"GET {path}: {_around(answer.text)}")
    for address in ("/mcp", "/mcp/memory"):
        wrong += [told async for told in _wrong_tools(place, address, ids)]
    assert not wrong, "\n".join(wrong)
    assert whose(heard) == {"ben"}


def _ids(rows: Sequence[Mapping[str, object]]) -> Sequence[str]:
    """Text that identifies another person's newest row."""
    theirs = [row for row in rows if row.get("user_id") == "ann" or "ann" in whose(str(row))]
    return [str(row[name]) for row in theirs[-1:] for name in ("id", "agent_id", "conversation_id") if row.get(name)]


async def _wrong_tools(place: Installation, address: str, ids: Sequence[str]) -> AsyncGenerator[str]:
    """The answers of read-only MCP tools to Ben that hold something of others."""
    url = f"{place.url}{address}"
    headers, body = call(MODERN)
    listing: dict[str, Any] = {**json.loads(body), "method": "tools/list"}
    headers = {**headers, "mcp-method": "tools/list"}
    del headers["mcp-name"], listing["params"]["name"], listing["params"]["arguments"]
    listed = await place.clients["ben"].post(url, headers=headers, json=listing)
    for tool in listed.json()["result"]["tools"]:
        if not tool.get("annotations", {}).get("readOnlyHint"):
            continue
        given = Filling(WORD, (), False, tool["inputSchema"].get("$defs", {})).value(tool["inputSchema"])
        tries = [given, *({**given, name: one} for name in given if name.endswith("id") for one in ids)]
        for arguments in tries:
            headers, body = call(MODERN, tool["name"], arguments)
            answer = await place.clients["ben"].post(url, headers=headers, content=body)
            if whose(answer.text) - {"ben"}:
                yield f"{address} {tool['name']} {arguments}: {_around(answer.text)}"


async def _rows(app: App) -> Mapping[str, Sequence[Mapping[str, object]]]:
    """The whole contents of the database."""
    found: dict[str, Sequence[Mapping[str, object]]] = {}
    tables: Sequence[Table] = metadata.sorted_tables
    async with app.database.read_transaction() as connection:
        for table in tables:
            found[table.name] = [dict(row) for row in (await connection.execute(select(table))).mappings()]
    return found


def _holding(rows: Mapping[str, Sequence[Mapping[str, object]]], person: str) -> set[str]:
    return {name for name, found in rows.items() if person in whose(str(found))}


async def _check_erasure(place: Installation) -> None:
    """After an erasure, no table, file or Letta holds anything of that person, and all data of the others stays."""
    await place.app.journal.flush()
    others = [person for person in place.talkers if person != "ann"]
    before, letta = await _rows(place.app), _rows_of_letta(place)
    kept = {person: _holding(before, person) | _holding(letta, person) for person in place.talkers}
    known = {"letta messages", "letta block"} if place.letta else {"messages", "timeline_items", "person_blocks"}
    assert {"schedules", "occurrences", *known} <= kept["ann"], kept["ann"]
    client = place.clients["ann"]
    gone = await client.request("DELETE", f"{place.url}/api/user/data", json={"confirm": "erase"})
    assert gone.status_code == 200, gone.text
    after, letta = await _rows(place.app), _rows_of_letta(place)
    left = {name: _around(str({**after, **letta}[name])) for name in _holding(after, "ann") | _holding(letta, "ann")}
    assert not left, left
    files = [file for file in place.app.settings.data.rglob("*.md") if "ann" in whose(file.read_text())]
    assert not files
    assert {person: _holding(after, person) | _holding(letta, person) for person in others} == {
        person: kept[person] for person in others
    }


def _rows_of_letta(place: Installation) -> Mapping[str, Sequence[Mapping[str, object]]]:
    """The whole contents of the Letta server's database."""
    if place.letta is None:
        return {}
    engine = create_engine(place.letta.database_url.replace("postgresql://", "postgresql+psycopg://", 1))
    with engine.connect() as connection:
        names = inspect(engine).get_table_names()
        rows = {name: connection.execute(text(f'SELECT * FROM "{name}"')).mappings().all() for name in names}
    engine.dispose()
    return {f"letta {name}": [dict(row) for row in found] for name, found in rows.items()}
