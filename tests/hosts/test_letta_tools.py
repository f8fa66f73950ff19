"""Tests a Letta agent's tools: found, called, held, uploaded, and called back with a key."""

import json
import socket
import threading
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import anyio
import pytest
import uvicorn
from anyio.abc import TaskGroup
from letta_client import AsyncLetta
from letta_client.types import StreamableHTTPMcpServer
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from structlog.testing import capture_logs

from frontdesk.agents.host import AgentHost, HeldTool, NewAgent
from frontdesk.agents.letta.connect import ConnectRequest, LettaConnector
from frontdesk.agents.letta.handed_store import HANDED_TOOLS_PATH, HandedTool, HandedToolStore
from frontdesk.agents.letta.host import LettaHost
from frontdesk.agents.letta.server import key_from_headers, key_headers
from frontdesk.agents.letta.tools import McpRegistration, choose_registration, without_boolean_schemas
from frontdesk.agents.turns.operations import run_follow_up
from frontdesk.app import App, open_app, running
from frontdesk.db.engine import Database
from frontdesk.errors import Denied, FrontdeskError, Invalid, Unavailable
from frontdesk.identity.model import AgentIdSource, Caller
from frontdesk.interfaces.http.application import build_application
from frontdesk.interfaces.http.uvicorn_server import UvicornServer
from frontdesk.interfaces.mcp.server import main_tools
from frontdesk.interfaces.mcp.tools import tool_name
from frontdesk.journal.service import Journal
from frontdesk.llm.events import Done, StopReason, TextChunk, ToolReturn, ToolStatus
from frontdesk.schedules.requests import NewSchedule
from frontdesk.settings import Settings
from tests.conftest import settings_with
from tests.hosts.conftest import NOBODY_THERE, PASSWORD
from tests.hosts.lab import of_kind, opened, script, take
from tests.requirements import shows
from tests.support.desk import Desk, frontdesk, open_desk
from tests.support.letta import LettaServer, forget_servers
from tests.support.models.application import ModelServer
from tests.support.scheduling import OPERATOR
from tests.support.serving import serve
from tests.support.waiting import until
from tests.support.wire import MODERN, call, send

# Tools of the catalogue: found, called immediately, and held from the next turn on


MODEL = "openai-proxy/fake-1"
SECONDS = 90
STOP_SECONDS = 10
TRIES = 3
TIDES = {"tides": "Says when the tide is high at a port."}
BERTHS = {f"berth_{number}": f"Reserves berth number {number}." for number in range(499)}
SCHEMA = {"type": "object", "properties": {"port": {"type": "string"}}, "required": ["port"]}
UNREADABLE = {"type": "object", "properties": {"port": {"type": "string"}, "day": True}, "required": ["port"]}
NOW = datetime(2026, 11, 16, tzinfo=UTC)
OURS = key_headers("fd_registrar")
BASE = "http://127.0.0.1:3020"


@dataclass(slots=True)
class Harbour:
    """An MCP server whose tools wait until a test lets them answer; the answer names the server."""

    name: str
    tools: Mapping[str, str]
    schema: Mapping[str, Any] = field(default_factory=lambda: SCHEMA)
    called: threading.Event = field(default_factory=threading.Event)
    may_answer: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        self.may_answer.set()

    def application(self) -> Starlette:
        return Starlette(routes=[Route("/mcp", self.answer, methods=["POST"])])

    async def answer(self, request: Request) -> Response:
        frame = await request.json()
        if "id" not in frame:
            return Response(status_code=202)
        return JSONResponse({"jsonrpc": "2.0", "id": frame["id"], "result": await self._result(frame)})

    async def _result(self, frame: Mapping[str, Any]) -> Mapping[str, Any]:
        match frame["method"]:
            case "initialize":
                server = {"name": self.name, "version": "1"}
                return {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": server}
            case "tools/list":
                return {"tools": self._listed()}
            case _:
                self.called.set()
                assert await anyio.to_thread.run_sync(self.may_answer.wait, SECONDS)
                text = f"{self.name}: {frame['params']['arguments']['port']} at noon"
                return {"content": [{"type": "text", "text": text}]}

    def _listed(self) -> Sequence[Mapping[str, Any]]:
        return [{"name": name, "description": text, "inputSchema": self.schema} for name, text in self.tools.items()]


def registered(name: str, url: str, headers: Mapping[str, str] = OURS) -> StreamableHTTPMcpServer:
    return StreamableHTTPMcpServer(server_name=name, server_url=url, custom_headers=dict(headers))


def handed(name: str = "sea__tides", description: str = "When it is high.", **parameters: Any) -> HandedTool:
    server, _, remote_name = name.partition("__")
    return HandedTool(name, server, remote_name, description, parameters)


def test_the_header_that_letta_fills_gives_back_the_key_that_stands_in() -> None:
    assert key_from_headers(OURS) == "fd_registrar"
    assert key_from_headers(None) is None
    assert key_from_headers({"Authorization": "Bearer sk-somebody-elses"}) is None


def test_handed_tools_are_registered_beside_what_was_connected_with_its_address_and_headers() -> None:
    connected = registered("desk", "https://desk.example/door/mcp")
    assert choose_registration([connected], {"desk"}, BASE) == McpRegistration(
        "desk-held", "https://desk.example/door/mcp/held", OURS
    )


def test_without_a_connection_handed_tools_are_registered_at_our_own_address() -> None:
    assert choose_registration([], {"others"}, f"{BASE}/") == McpRegistration("frontdesk-held", f"{BASE}/mcp/held")


def test_of_several_connections_the_one_stays_that_handed_tools_are_known_under() -> None:
    connected = [registered(name, f"https://{name}.example/mcp") for name in ("a", "b")]
    assert choose_registration(connected, {"a", "b"}, BASE).name == "a-held"
    assert choose_registration(connected, {"a", "b", "b-held"}, BASE).name == "b-held"


@pytest.mark.parametrize(
    ("name", "url"),
    [
        ("frontdesk-held", "https://desk.example/mcp/held"),
        ("with:colon", "https://desk.example/mcp"),
        ("frontdesk", "https://desk.example/another-name"),
    ],
)
def test_an_entry_that_cannot_be_an_endpoint_of_this_installation_is_passed_over(name: str, url: str) -> None:
    assert choose_registration([registered(name, url)], {name}, BASE).url == f"{BASE}/mcp/held"


def test_an_entry_of_letta_is_left_alone_only_if_address_and_headers_are_right() -> None:
    entry = McpRegistration("frontdesk-held", f"{BASE}/mcp/held", OURS)
    assert entry.matches(registered("frontdesk-held", f"{BASE}/mcp/held"))
    assert not entry.matches(registered("frontdesk-held", f"{BASE}/mcp/held", {}))
    assert not entry.matches(registered("frontdesk-held", "http://127.0.0.1:3021/mcp/held"))


def test_a_schema_that_letta_could_not_read_is_told_in_other_words() -> None:
    odd = {"type": "object", "properties": {"a": True, "b": {"anyOf": [False, {"items": {"properties": {"c": True}}}]}}}
    assert without_boolean_schemas({**odd, "additionalProperties": False}) == {
        "type": "object",
        "properties": {"a": {}, "b": {"anyOf": [{}, {"items": {"properties": {"c": {}}}}]}},
        "additionalProperties": False,
    }


async def test_what_was_handed_out_is_listed_by_every_replica_until_it_changes(database: Database) -> None:
    here, there = HandedToolStore(database), HandedToolStore(database)
    assert list(await there.listed()) == []
    await here.put([handed("sea__tides"), handed("air__wind")], NOW)
    listed = await there.listed()
    assert [tool.name for tool in listed] == ["air__wind", "sea__tides"]
    await here.put([handed("sea__tides")], NOW)
    assert await there.listed() is listed
    await here.put([handed("sea__tides", "When it is low.", type="object")], NOW)
    assert [tool.description for tool in await there.listed()] == ["When it is high.", "When it is low."]
    assert (await HandedToolStore(database).named(["sea__tides"]))["sea__tides"].parameters == {"type": "object"}


async def test_letta_is_told_of_a_tool_again_only_when_it_changed(database: Database) -> None:
    store = HandedToolStore(database)
    await store.put([handed()], NOW)
    await store.mark_registered("sea__tides", "frontdesk-held")
    assert (await store.put([handed()], NOW))["sea__tides"].registered_as == "frontdesk-held"
    assert (await store.put([handed(description="Else.")], NOW))["sea__tides"].registered_as is None
    assert (await store.named(["sea__tides"]))["sea__tides"].registered_as is None


async def test_the_endpoint_lists_the_handed_tools_and_says_when_the_catalogue_no_longer_has_one(
    tmp_path: Path,
) -> None:
    settings = settings_with(FRONTDESK_DATA=tmp_path / "data", LETTA_BASE_URL=NOBODY_THERE)
    async with open_app(settings) as app:
        application = build_application(app)
        headers, body = call(MODERN, "sea__tides", {"port": "Rye"})
        headers |= {"x-agent-id": "agent-1"}
        unknown = await send(application, headers, body, path=HANDED_TOOLS_PATH)
        assert unknown.error[1] == "Unknown tool: sea__tides"
        await app.handed.put([handed("sea__tides", type="object")], NOW)
        lost = await send(application, headers, body, path=HANDED_TOOLS_PATH)
        assert lost.json["result"]["isError"] is True
        assert "There is no tool 'sea::tides'" in lost.json["result"]["content"][0]["text"]


async def test_a_follow_up_that_cannot_be_sent_disturbs_nobody(tmp_path: Path) -> None:
    settings = settings_with(FRONTDESK_DATA=tmp_path / "data", LETTA_BASE_URL=NOBODY_THERE)
    with capture_logs() as logs:
        async with open_app(settings) as app:
            await run_follow_up(app.host, app.journal, Caller("req-1", agent_id="agent-1"), "Go on.")
            await run_follow_up(app.host, app.journal, Caller("req-1"), "Go on.")
    assert [(line["event"], line["reason"]) for line in logs] == [("follow_up_not_sent", "LettaFailure")]


@shows("TOOLS-LETTA")
async def test_a_letta_agent_finds_a_tool_among_500_calls_it_at_once_and_holds_it_in_the_next_turn(
    tmp_path: Path, letta: LettaServer, letta_models: ModelServer
) -> None:
    sea, rival = (
        Harbour("sea", TIDES | BERTHS, UNREADABLE),
        Harbour("rival", TIDES | {"sea__berth_1": "Not what you think."}),
    )
    async with AsyncExitStack() as stack:
        client = await stack.enter_async_context(AsyncLetta(base_url=letta.url, api_key=PASSWORD))
        stack.push_async_callback(forget_servers, client)
        sea_url, rival_url = [stack.enter_context(serve(one.application())) for one in (sea, rival)]
        app, url = await stack.enter_async_context(installation(tmp_path / "data", letta, f"{sea_url}/mcp"))
        host = app.host
        assert isinstance(host, LettaHost)
        ann, ben = [await host.create(NewAgent(name, model=MODEL)) for name in ("Ann", "Ben")]
        names = [tool_name(tool) for tool in main_tools(bound.operation for bound in app.operations())]
        await LettaConnector(host, app.identity, app.keys).connect(
            ConnectRequest(f"{url}/mcp", "frontdesk", names, [ann.id])
        )
        await rival_holds(client, f"{rival_url}/mcp", ben.id)

        found = script(
            {"tool": "find_tools", "args": {"query": "when is the tide high at a port", "limit": 3}},
            {"tool": "call_tool", "args": {"name": "sea::tides", "arguments": {"port": "Rye"}}},
            {"text": "high at noon"},
        )
        events = await take(host, ann.id, found)
        assert events[-1] == Done(StopReason.END_TURN), events
        finding, calling = of_kind(events, ToolReturn)
        assert (finding.status, calling.status) == (ToolStatus.OK, ToolStatus.OK), events
        assert "sea__tides" in finding.text
        assert calling.text == "sea: Rye at noon"
        assert "sea__tides" not in offered_last(letta_models)

        held = {tool.name: tool for tool in await host.tools(ann.id)}
        assert (held["sea__tides"].server, held["sea__tides"].remote_name) == ("sea", "tides")
        events = await take(host, ann.id, script({"tool": "sea__tides", "args": {"port": "Deal"}}, {"text": "done"}))
        assert [(one.status, one.text) for one in of_kind(events, ToolReturn)] == [
            (ToolStatus.OK, "sea: Deal at noon")
        ], events
        assert {"find_tools", "call_tool", "sea__tides"} <= offered_last(letta_models)

        events = await take(host, ben.id, script({"tool": "tides", "args": {"port": "Hove"}}, {"text": "done"}))
        assert [one.text for one in of_kind(events, ToolReturn)] == ["rival: Hove at noon"], events
        await keeps_its_name(host, ann.id)
        await stays_through_a_refresh(client, host, ann.id)
        await comes_after_what_was_begun_elsewhere(client, host, app.journal, rival, ben.id)


async def rival_holds(client: AsyncLetta, url: str, agent_id: str) -> None:
    """Another user's MCP server on the same Letta server, with a tool of the same name."""
    server = await client.mcp_servers.create(
        server_name="rival", config={"mcp_server_type": "streamable_http", "server_url": url}
    )
    tools = {tool.name: tool.id for tool in await client.mcp_servers.tools.list(server.id or "")}
    await client.agents.tools.attach(tools["tides"], agent_id=agent_id)


def offered_last(models: ModelServer) -> set[str]:
    """The names of the tools in the newest request to the model."""
    return {tool["function"]["name"] for tool in models.seen[-1].body.get("tools", ())}


async def keeps_its_name(host: LettaHost, agent_id: str) -> None:
    """Another user's tool with the name of one of ours stays theirs, and the others are attached."""
    wanted = [
        HeldTool(f"sea__{name}", "", server="sea", remote_name=name, parameters=SCHEMA)
        for name in ("berth_1", "berth_2")
    ]
    change = await host.change_tools(agent_id, [*wanted, HeldTool("web_search", "")], ["nothing"])
    assert set(change.attached) == {"sea__berth_2", "web_search"}
    assert "of the MCP server 'rival'" in change.failed["sea__berth_1"]
    assert change.failed.keys() == {"sea__berth_1", "nothing"}


async def stays_through_a_refresh(client: AsyncLetta, host: LettaHost, agent_id: str) -> None:
    """Letta drops the tools that a server no longer lists; the address and key are those of the connection."""
    servers = {one.server_name: one for one in await client.mcp_servers.list()}
    entry, connected = servers["frontdesk-held"], servers["frontdesk"]
    assert isinstance(entry, StreamableHTTPMcpServer)
    assert isinstance(connected, StreamableHTTPMcpServer)
    assert (entry.server_url, entry.custom_headers) == (f"{connected.server_url}/held", connected.custom_headers)
    await client.mcp_servers.refresh(entry.id or "")
    assert "sea__tides" in {tool.name for tool in await host.tools(agent_id)}


async def comes_after_what_was_begun_elsewhere(
    client: AsyncLetta, host: LettaHost, journal: Journal, rival: Harbour, agent_id: str
) -> None:
    """A follow-up waits for a run that Frontdesk did not begin."""
    rival.called.clear()
    rival.may_answer.clear()
    try:
        async with anyio.create_task_group() as tasks:
            await begin_elsewhere(client, host, rival, agent_id, tasks)
            tasks.start_soon(run_follow_up, host, journal, Caller("req-1", agent_id=agent_id), "Go on.")
            rival.may_answer.set()
    finally:
        # Otherwise its thread would wait on, and keep the server from stopping.
        rival.may_answer.set()
    texts = [one.event.text for one in await host.history(agent_id) if isinstance(one.event, TextChunk)]
    assert texts[-2:] == ["the first is done", "echo: Go on."]


async def begin_elsewhere(client: AsyncLetta, host: LettaHost, rival: Harbour, agent_id: str, tasks: TaskGroup) -> None:
    """Start a run outside Frontdesk, and return during its tool call.

    Letta sometimes abandons a run before its tool call; this gives up such a run, and starts another.
    """
    words = script({"tool": "tides", "args": {"port": "Ryde"}}, {"text": "the first is done"})
    # If the client sent it twice, there would be two runs.
    once = client.with_options(timeout=SECONDS, max_retries=0)
    ended: list[object] = []

    async def send(given_up: anyio.CancelScope) -> None:
        with given_up:
            ended.append(await once.agents.messages.create(agent_id, input=words))

    for _ in range(TRIES):
        before, given_up = len(ended), anyio.CancelScope()
        tasks.start_soon(send, given_up)
        with anyio.move_on_after(SECONDS / TRIES):
            await until(lambda: rival.called.is_set() or len(ended) > before, SECONDS)  # noqa: B023 - awaited within
        if rival.called.is_set():
            return
        given_up.cancel()
        await host.cancel(agent_id)
    raise AssertionError(f"Letta came to the tool in none of {TRIES} runs; those that ended: {ended}")


@asynccontextmanager
async def installation(data: Path, letta: LettaServer, tools_url: str) -> AsyncGenerator[tuple[App, str]]:
    """A Frontdesk that Letta reaches, with the tools of one server in its catalogue."""
    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]
    settings = settings_with(
        FRONTDESK_DATA=data,
        FRONTDESK_PORT=port,
        FRONTDESK_EMBEDDINGS="off",
        FRONTDESK_MCP_SERVERS=[{"name": "sea", "url": tools_url}],
        LETTA_BASE_URL=letta.url,
        LETTA_SERVER_PASSWORD=PASSWORD,
    )
    async with open_app(settings) as app, running(app):
        server = UvicornServer(
            uvicorn.Config(build_application(app), lifespan="off", log_config=None, access_log=False)
        )
        stopped = anyio.Event()

        async def serve_until_told() -> None:
            await server.serve([listener])
            stopped.set()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(serve_until_told)
            try:
                await app.tools.catalogue.refresh()
                yield app, f"http://127.0.0.1:{port}"
            finally:
                # Also after a failure: without this, its open sockets would fail another test.
                server.should_exit = True
                with anyio.move_on_after(STOP_SECONDS, shield=True):
                    await stopped.wait()


# Tools uploaded to the real Letta server as Python source, and its list of agents


SOURCE = '''
def add_up_for_frontdesk(first: int, second: int) -> int:
    """Add two numbers.

    Args:
        first (int): One of them.
        second (int): The other.
    """
    return first + second
'''


@pytest.fixture
async def app(letta: LettaServer, tmp_path: Path) -> AsyncGenerator[App]:
    settings = settings_with(FRONTDESK_DATA=tmp_path / "data", LETTA_BASE_URL=letta.url, LETTA_SERVER_PASSWORD=PASSWORD)
    async with open_app(settings) as opened:
        yield opened


async def test_a_tool_is_uploaded_and_replaced(app: App) -> None:
    made = await app.schedules.host.upload_tool(OPERATOR, SOURCE, "sum", "Adds up.")
    assert made.tool_id.startswith("tool-")
    assert made.name == "add_up_for_frontdesk"
    assert "add_up_for_frontdesk" in {tool.name for tool in await app.host.host_tools()}
    again = await app.schedules.host.upload_tool(OPERATOR, SOURCE.replace("first + second", "second + first"))
    assert again == made


async def test_what_is_no_function_is_refused(app: App) -> None:
    for source in ("", "   ", "x" * 1_000_001):
        with pytest.raises(Invalid, match="one top-level Python function"):
            await app.schedules.host.upload_tool(OPERATOR, source)
    with pytest.raises(FrontdeskError):
        await app.schedules.host.upload_tool(OPERATOR, "this is no python(")


async def test_callers_from_elsewhere_upload_nothing_without_being_granted_it(app: App) -> None:
    with pytest.raises(Denied, match="schedules:admin"):
        await app.schedules.host.upload_tool(
            Caller("1", "agent-1", verified=True, source=AgentIdSource.CREDENTIAL), SOURCE
        )


async def test_agents_are_listed_to_those_who_could_name_them(app: App) -> None:
    ada, bob = [(await app.host.create(NewAgent(name, model="openai-proxy/fake-1"))).id for name in ("Ada", "Bob")]
    assert {ada, bob} <= {agent.id for agent in await app.schedules.host.agents(OPERATOR)}
    narrow = Caller("1", ada, verified=True, source=AgentIdSource.CREDENTIAL)
    assert [agent.id for agent in await app.schedules.host.agents(narrow)] == [ada]
    assert list(await app.schedules.host.agents(Caller("1", user_id="ann", verified=True))) == []


async def test_a_persons_prompt_gets_a_conversation_and_an_agents_own_are_known(app: App) -> None:
    ada = (await app.host.create(NewAgent("Ada", model="openai-proxy/fake-1"))).id
    ann = Caller("1", ada, "ann", AgentIdSource.CREDENTIAL, verified=True)
    hers = (await app.schedules.add(ann, NewSchedule("Hi", every="5m"))).schedule.what.conversation_id
    assert hers
    itself = Caller("1", ada, source=AgentIdSource.HEADER, local=True)
    for conversation in (hers, "default"):
        added = await app.schedules.add(itself, NewSchedule("Hi", every="5m", conversation_id=conversation))
        assert added.schedule.what.conversation_id == conversation


async def test_the_host_is_tested(app: App, letta: LettaServer, tmp_path: Path) -> None:
    told = await app.schedules.host.test(OPERATOR)
    assert (told.message, told.details) == ("Connected", {"host": "letta", "base_url": letta.url})
    away = settings_with(FRONTDESK_DATA=tmp_path / "away", LETTA_BASE_URL="http://127.0.0.1:9")
    async with open_app(away) as other:
        with pytest.raises(Unavailable, match="does not answer"):
            await other.schedules.host.test(OPERATOR)
        with pytest.raises(Unavailable, match="Agent validation failed: The Letta server"):
            await other.schedules.add(OPERATOR, NewSchedule("Hi", "agent-1", every="5m"))
        with pytest.raises(Invalid, match="Missing LETTA_API_KEY or LETTA_SERVER_PASSWORD"):
            await other.schedules.host.upload_tool(OPERATOR, SOURCE)


# A real Letta agent calls Frontdesk's tools: identified by its header, and proven after it has a key


CALL = script({"tool": "whoami", "args": {}}, {"text": "so that is me"})


@pytest.fixture
def reach(letta: LettaServer) -> dict[str, str]:
    return {"LETTA_BASE_URL": letta.url, "LETTA_SERVER_PASSWORD": PASSWORD}


@pytest.fixture
def desk(tmp_path: Path, reach: dict[str, str]) -> Iterator[Desk]:
    with open_desk(tmp_path / "data", STRICT_AGENT_ID_VALIDATION="true", **reach) as running:
        yield running


@shows("LETTA-PROOF")
async def test_an_agent_of_letta_is_known_by_header_and_after_connect_it_is_proven(
    desk: Desk, reach: dict[str, str]
) -> None:
    settings: Settings = settings_with(FRONTDESK_DATA=desk.data, **reach)
    async with opened(settings) as host, AsyncLetta(base_url=reach["LETTA_BASE_URL"], api_key=PASSWORD) as client:
        plain, connected = [await host.create(NewAgent(name, model=MODEL)) for name in ("Ann", "Ben")]
        server = await client.mcp_servers.create(
            server_name="plain", config={"mcp_server_type": "streamable_http", "server_url": desk.mcp}
        )
        assert server.id is not None
        tools = {tool.name: tool.id for tool in await client.mcp_servers.tools.list(server.id)}
        await client.agents.tools.attach(tools["whoami"], agent_id=plain.id)
        who = await whoami(host, plain.id)
        assert (who["agent_id"], who["source"], who["verified"]) == (plain.id, "header", False)
        await client.mcp_servers.delete(server.id)
        told = frontdesk("letta", "connect", connected.id, "--url", desk.mcp, data=desk.data, **reach)
        assert told.returncode == 0, told.stderr
        who = await whoami(host, connected.id)
        assert (who["agent_id"], who["source"], who["verified"]) == (connected.id, "credential", True)
        again = frontdesk("letta", "connect", connected.id, "--url", desk.mcp, data=desk.data, **reach)
        assert again.returncode == 0, again.stderr
        assert (await whoami(host, connected.id))["verified"] is True
        assert len([one for one in await client.mcp_servers.list() if one.server_name == "frontdesk"]) == 1
    assert "fd_" not in desk.logged()


async def test_where_letta_cannot_reach_frontdesk_it_is_said_in_words_and_nothing_stays_registered(
    tmp_path: Path, reach: dict[str, str]
) -> None:
    data = tmp_path / "data"
    async with AsyncLetta(base_url=reach["LETTA_BASE_URL"], api_key=PASSWORD) as client:
        for server in await client.mcp_servers.list():
            await client.mcp_servers.delete(server.id or "")
        told = frontdesk("letta", "connect", "--url", f"{NOBODY_THERE}/mcp", data=data, **reach)
        assert not await client.mcp_servers.list()
    assert told.returncode == 2
    assert f"could not read the tools at {NOBODY_THERE}/mcp. Frontdesk must run there" in told.stderr
    assert told.stderr.count(NOBODY_THERE) == 1
    keys = frontdesk("keys", "list", data=data).stdout.splitlines()[1:]
    assert ["revoked" in key for key in keys] == [True]


async def whoami(host: AgentHost, agent_id: str) -> dict[str, Any]:
    events = await take(host, agent_id, CALL)
    assert events[-1] == Done(StopReason.END_TURN)
    return json.loads(of_kind(events, ToolReturn)[0].text)
