"""Tests the MCP client against real servers: one that keeps tokens in its sessions, the SDK's, and our own."""

import base64
import json
import random
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Iterator, Mapping, MutableMapping
from contextlib import asynccontextmanager
from typing import Any

import anyio
import httpx2
import mcp_types as types
import pytest
import uvicorn
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError
from mcp.shared.message import ServerMessageMetadata
from pydantic import SecretStr
from starlette.responses import JSONResponse

from frontdesk.agents.embedded.tools import ToolBinder
from frontdesk.agents.host import HeldTool
from frontdesk.app import open_app
from frontdesk.errors import Invalid, NotFound, Unavailable
from frontdesk.identity import outbound
from frontdesk.identity.model import Caller
from frontdesk.interfaces.http.application import build_application
from frontdesk.interfaces.http.context import ASGIApp, Receive, Send
from frontdesk.llm.tools import ToolOutcome
from frontdesk.mcp_client.client import McpClient
from frontdesk.mcp_client.model import McpServer, RemoteTool
from frontdesk.mcp_client.pool import KnownServers, McpClientPool
from tests.conftest import settings_with
from tests.requirements import shows
from tests.support.serving import address_of, listen, serve
from tests.support.upstreams import TokenServer, open_token_server
from tests.support.wire import call_upstream

CALLS = 80
ADA, BEN = "token-of-ada", "token-of-ben"
USERS = {ADA: "ada", BEN: "ben"}
MODERN = "2026-07-28"


@pytest.fixture
def tokens() -> Iterator[TokenServer]:
    with open_token_server(USERS) as running:
        yield running


@pytest.fixture(scope="module")
async def clients() -> AsyncGenerator[McpClientPool]:
    pool = McpClientPool()
    yield pool
    await pool.close()


def keeper(server: TokenServer) -> McpServer:
    return McpServer("memory", server.url, user_token=True)


async def together(work: Callable[[int], Coroutine[Any, Any, None]], number: int) -> None:
    async with anyio.create_task_group() as group:
        for index in range(number):
            group.start_soon(work, index)


async def misdelivered(ask: Callable[[str], Awaitable[ToolOutcome]]) -> list[tuple[str, ToolOutcome]]:
    """Call as two users in turn, 1 to 4 ms apart; gives each answer that belongs to the other user."""
    wrong: list[tuple[str, ToolOutcome]] = []
    pace = random.Random(11)

    async def one(token: str) -> None:
        outcome = await ask(token)
        if outcome != ToolOutcome(USERS[token]):
            wrong.append((token, outcome))

    async with anyio.create_task_group() as group:
        for index in range(CALLS):
            group.start_soon(one, (ADA, BEN)[index % 2])
            await anyio.sleep(pace.uniform(0.001, 0.004))
    return wrong


@shows("MCP-CLIENT")
async def test_no_answer_reaches_the_other_user(tokens: TokenServer, clients: McpClientPool) -> None:
    async def ask(token: str) -> ToolOutcome:
        return await call_upstream(clients.client(keeper(tokens), USERS[token], token), "whose", {})

    assert await misdelivered(ask) == []
    assert (len(tokens.sessions), tokens.called("set_access_token")) == (2, 2)


class OneForAll:
    """The wrong design: one session and one remembered token for the whole process."""

    def __init__(self, url: str, http: httpx2.AsyncClient) -> None:
        self._url = url
        self._http = http
        self._headers: dict[str, str] = {}
        self._last = ""

    async def open(self) -> None:
        response = await self._post("initialize", {})
        self._headers = {"mcp-session-id": response.headers["mcp-session-id"]}

    async def call(self, token: str) -> ToolOutcome:
        if token != self._last:
            await self._post("tools/call", {"name": "set_access_token", "arguments": {"access_token": token}})
            self._last = token
        told = (await self._post("tools/call", {"name": "whose", "arguments": {}})).json()
        return ToolOutcome(told["result"]["content"][0]["text"]) if "result" in told else ToolOutcome("", ok=False)

    async def _post(self, method: str, params: Mapping[str, object]) -> httpx2.Response:
        frame = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        return await self._http.post(self._url, json=frame, headers=self._headers)


async def test_a_client_with_one_session_for_all_is_caught(tokens: TokenServer) -> None:
    async with httpx2.AsyncClient(timeout=30) as http:
        shared = OneForAll(tokens.url, http)
        await shared.open()
        assert await misdelivered(shared.call)


async def test_calls_that_come_first_together_hand_the_token_over_once(
    tokens: TokenServer, clients: McpClientPool
) -> None:
    client = clients.client(keeper(tokens), "ada", ADA)

    async def one(_index: int) -> None:
        assert await call_upstream(client, "whose", {}) == ToolOutcome("ada")

    await together(one, 20)
    assert (len(tokens.sessions), tokens.called("set_access_token")) == (1, 1)
    assert tokens.seen[0].tool == "set_access_token"


@pytest.mark.parametrize(
    ("event", "sessions"), [(TokenServer.forget_sessions, 2), (TokenServer.expire_tokens, 1)], ids=["lost", "expired"]
)
async def test_a_lost_session_or_token_is_renewed_once_for_all_callers(
    tokens: TokenServer, clients: McpClientPool, event: Callable[[TokenServer], None], sessions: int
) -> None:
    client = clients.client(keeper(tokens), "ada", ADA)
    assert await call_upstream(client, "whose", {}) == ToolOutcome("ada")
    event(tokens)

    async def one(_index: int) -> None:
        assert await call_upstream(client, "whose", {}) == ToolOutcome("ada")

    await together(one, 10)
    assert tokens.called("set_access_token") == 2
    assert len({seen.session for seen in tokens.seen}) == sessions


async def test_a_token_the_server_does_not_know_is_tried_twice_and_no_more(
    tokens: TokenServer, clients: McpClientPool
) -> None:
    outcome = await call_upstream(clients.client(keeper(tokens), "eve", "token-of-eve"), "whose", {})
    assert outcome == ToolOutcome("Error calling whose: 需要认证", ok=False)
    assert (tokens.called("whose"), tokens.called("set_access_token")) == (2, 2)


async def test_signing_in_is_not_for_agents(tokens: TokenServer, clients: McpClientPool) -> None:
    client = clients.client(keeper(tokens), "ada", ADA)
    assert [tool.name for tool in await client.tools()] == ["whose"]
    outcome = await call_upstream(client, "set_access_token", {"access_token": BEN})
    assert not outcome.ok
    assert await call_upstream(client, "whose", {}) == ToolOutcome("ada")
    assert tokens.called("set_access_token") == 1


async def test_the_token_is_sent_bare_and_as_bearer(tokens: TokenServer, clients: McpClientPool) -> None:
    client = clients.client(keeper(tokens), "ada", f"bEARER  {ADA}")
    assert client is clients.client(keeper(tokens), "ada", ADA)
    assert await call_upstream(client, "whose", {}, {"x-agent-id": "agent-1"}) == ToolOutcome("ada")
    seen = tokens.seen[-1].headers
    assert (seen["x-user-auth-token"], seen["authorization"], seen["x-agent-id"]) == (ADA, f"Bearer {ADA}", "agent-1")


async def test_a_server_that_is_not_to_have_the_token_never_sees_it(
    tokens: TokenServer, clients: McpClientPool
) -> None:
    plain = McpServer("plain", tokens.url, {"x-api-key": "fixed"})
    client = clients.client(plain, "ada", ADA)
    smuggled = {"Authorization": f"Bearer {ADA}", "X-User-Auth-Token": ADA, "Cookie": ADA}
    assert not (await call_upstream(client, "whose", {}, smuggled)).ok
    assert tokens.called("set_access_token") == 0
    assert tokens.seen[-1].headers["x-api-key"] == "fixed"
    assert ADA not in str(tokens.seen)
    assert [tool.name for tool in await client.tools()] == ["whose"]


async def test_the_least_recently_used_client_ends_its_session(tokens: TokenServer) -> None:
    pool = McpClientPool(kept=2)
    sessions: dict[str, str] = {}
    for user in ("a", "b", "a", "c"):
        await call_upstream(pool.client(keeper(tokens), user, ADA), "whose", {})
        sessions[user] = tokens.seen[-1].session
    assert len(pool) == 2
    await pool.close()
    assert (tokens.ended[0], sorted(tokens.ended)) == (sessions["b"], sorted(sessions.values()))
    assert tokens.sessions == {}
    with pytest.raises(Unavailable, match="shutting down"):
        pool.client(keeper(tokens), "a", ADA)


async def test_a_client_at_work_keeps_its_session(tokens: TokenServer) -> None:
    pool = McpClientPool(kept=1)

    async def one(index: int) -> None:
        assert await call_upstream(pool.client(keeper(tokens), f"user-{index}", ADA), "whose", {}) == ToolOutcome("ada")

    await together(one, 10)
    assert tokens.called("set_access_token") == 10
    await pool.close()
    assert tokens.sessions == {}


Context = ServerRequestContext[Any]
PNG = base64.b64encode(bytes(1234)).decode()
LISTED = ("say", "picture", "figures", "fails", "raises", "noisy", "headers")


async def listing(_ctx: Context, params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
    start = int(params.cursor) if params is not None and params.cursor else 0
    tools = [types.Tool(name=name, description=f"{name}.", input_schema={"type": "object"}) for name in LISTED]
    following = start + 3
    return types.ListToolsResult(
        tools=tools[start:following], next_cursor=str(following) if following < len(LISTED) else None
    )


async def calling(ctx: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
    match params.name:
        case "say":
            blocks = [types.TextContent(text=part) for part in (params.arguments or {})["parts"]]
            return types.CallToolResult(content=[*blocks])
        case "picture":
            return types.CallToolResult(content=[types.ImageContent(data=PNG, mime_type="image/png")])
        case "figures":
            return types.CallToolResult(content=[], structured_content={"größe": 3})
        case "fails":
            return types.CallToolResult(content=[types.TextContent(text="no such task")], is_error=True)
        case "noisy":
            await ctx.session.report_progress(1, 2)
            related = ServerMessageMetadata(related_request_id=ctx.request_id)
            if (params.arguments or {})["pings"]:
                await ctx.session.send_request(types.PingRequest(), types.EmptyResult, metadata=related)
            return types.CallToolResult(content=[types.TextContent(text="answered")])
        case "headers":
            assert ctx.request is not None
            return types.CallToolResult(content=[types.TextContent(text=json.dumps(dict(ctx.request.headers)))])
        case _:
            raise MCPError(types.INVALID_PARAMS, f"Unknown tool: {params.name}")


def modern_only(inner: ASGIApp, status: int = 404, code: int | None = -32601) -> ASGIApp:
    """The application without the revisions that begin with a handshake."""

    async def app(scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        said = dict(scope["headers"]) if scope["type"] == "http" else {b"mcp-protocol-version": MODERN.encode()}
        if said.get(b"mcp-protocol-version") == MODERN.encode():
            await inner(scope, receive, send)
            return
        error = {"jsonrpc": "2.0", "id": None, "error": {"code": code, "message": "No"}}
        await JSONResponse({} if code is None else error, status)(scope, receive, send)

    return app


@pytest.fixture(scope="module", params=["sse", "json", "stateless", "modern"])
def sdk(request: pytest.FixtureRequest) -> Iterator[McpServer]:
    """The SDK's server in each mode."""
    server = Server[Any]("peer", on_list_tools=listing, on_call_tool=calling)
    app = server.streamable_http_app(json_response=request.param == "json", stateless_http=request.param == "stateless")
    with serve(modern_only(app) if request.param == "modern" else app) as url:
        yield McpServer(request.param, f"{url}/mcp", {"x-api-key": "fixed"}, user_token=True)


async def test_the_sdks_tools_are_listed_over_all_pages(sdk: McpServer, clients: McpClientPool) -> None:
    tools = await clients.client(sdk, "ada", ADA).tools()
    assert tools[0] == RemoteTool("say", "say.", {"type": "object"})
    assert tuple(tool.name for tool in tools) == LISTED


@pytest.mark.parametrize(
    ("tool", "arguments", "outcome"),
    [
        ("say", {"parts": ["one", "zwei 二"]}, ToolOutcome("one\nzwei 二")),
        ("picture", {}, ToolOutcome("[image image/png, 1234 bytes]")),
        ("figures", {}, ToolOutcome('{"größe": 3}')),
        ("fails", {}, ToolOutcome("no such task", ok=False)),
        ("nowhere", {}, ToolOutcome("Error calling nowhere: Unknown tool: nowhere", ok=False)),
        ("名前", {}, ToolOutcome("Error calling 名前: Unknown tool: 名前", ok=False)),
    ],
)
async def test_what_the_sdks_tools_answer(
    sdk: McpServer, clients: McpClientPool, tool: str, arguments: Mapping[str, Any], outcome: ToolOutcome
) -> None:
    assert await call_upstream(clients.client(sdk, "ada", ADA), tool, arguments) == outcome


async def test_what_the_sdk_says_before_its_answer_is_no_answer(sdk: McpServer, clients: McpClientPool) -> None:
    # Only in this mode can a server send a request to its client.
    pings = sdk.name == "sse"
    assert await call_upstream(clients.client(sdk, "ada", ADA), "noisy", {"pings": pings}) == ToolOutcome("answered")


async def test_the_headers_of_a_call_reach_the_sdk(sdk: McpServer, clients: McpClientPool) -> None:
    outcome = await call_upstream(clients.client(sdk, "ada", ADA), "headers", {}, {"x-agent-id": "agent-1"})
    seen = json.loads(outcome.text)
    assert (seen["x-agent-id"], seen["x-api-key"], seen["authorization"]) == ("agent-1", "fixed", f"Bearer {ADA}")
    assert seen["mcp-protocol-version"] == (MODERN if sdk.name == "modern" else "2025-11-25")
    assert ("mcp-session-id" in seen) == (sdk.name in ("sse", "json"))


async def test_a_session_that_the_sdk_ended_is_opened_again(sdk: McpServer, clients: McpClientPool) -> None:
    client = clients.client(sdk, "ada", ADA)
    first = json.loads((await call_upstream(client, "headers", {})).text)
    async with httpx2.AsyncClient() as other:
        await other.delete(sdk.url, headers={"mcp-session-id": first.get("mcp-session-id", "none")})
    again = json.loads((await call_upstream(client, "headers", {})).text)
    assert (first.get("mcp-session-id") != again.get("mcp-session-id")) == (sdk.name in ("sse", "json"))


async def test_tools_for_a_turn_call_the_server_for_its_agent(sdk: McpServer, clients: McpClientPool) -> None:
    async def attached(
        caller: Caller, server: str, name: str, arguments: Mapping[str, Any], token: SecretStr | None
    ) -> ToolOutcome:
        assert (server, token) == (sdk.name, SecretStr(ADA))
        return await call_upstream(
            clients.client(sdk, caller.user_id, ADA), name, arguments, outbound.caller_headers(caller)
        )

    toolbox = ToolBinder(attached, KnownServers([sdk]), clients)
    found = [await toolbox.read_from_server(HeldTool("", "", server=sdk.name, remote_name=name)) for name in LISTED]
    tools = toolbox.bind(found, Caller("req-1", agent_id="agent-1", user_id="ada"), SecretStr(ADA))
    assert [tool.name for tool in tools] == [f"{sdk.name}__{name}" for name in LISTED]
    assert await tools[0].run({"parts": ["hello"]}) == ToolOutcome("hello")
    assert json.loads((await tools[-1].run({})).text)["x-agent-id"] == "agent-1"
    with pytest.raises(NotFound, match="has no tool 'nothing'; it has"):
        await toolbox.read_from_server(HeldTool("", "", server=sdk.name, remote_name="nothing"))
    with pytest.raises(Invalid, match="FRONTDESK_MCP_SERVERS"):
        await toolbox.read_from_server(HeldTool("", "", server="nowhere", remote_name="nothing"))


KEYS: dict[str, str] = {}


@pytest.fixture(scope="module")
async def installation(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[ASGIApp]:
    """Our own server, with a key for ada."""
    async with open_app(settings_with(FRONTDESK_DATA=tmp_path_factory.mktemp("installation") / "data")) as app:
        made = await app.identity.create_key(name="", agent_id="agent-1", user_id="ada", scopes=None, lifetime=None)
        KEYS["ada"] = made[1]
        yield build_application(app)


@asynccontextmanager
async def in_process(app: ASGIApp, token: str) -> AsyncGenerator[McpClient]:
    """A client of the application, which runs on this event loop, so its objects belong to this loop."""
    config = uvicorn.Config(app, lifespan="off", access_log=False, log_config=None, ws="none")
    listener, running, clients = listen(), uvicorn.Server(config), McpClientPool()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(running.serve, [listener])
        yield clients.client(McpServer("desk", f"{address_of(listener)}/mcp", user_token=True), "ada", token)
        await clients.close()
        running.should_exit = True
    listener.close()


@pytest.mark.parametrize(
    "refusal", [None, (404, -32601), (200, -32601), (400, -32022), (400, -32602), (404, None), (400, None)]
)
async def test_our_own_server_sees_the_agent_and_the_user(
    installation: ASGIApp, refusal: tuple[int, int | None] | None
) -> None:
    async with in_process(modern_only(installation, *refusal) if refusal else installation, KEYS["ada"]) as client:
        assert {tool.name for tool in await client.tools()} >= {"health", "whoami"}
        who = json.loads((await call_upstream(client, "whoami", {}, {"x-request-id": "request-1"})).text)
        assert (who["agent_id"], who["user_id"], who["request_id"]) == ("agent-1", "ada", "request-1")


async def test_our_own_server_refuses_a_wrong_key(installation: ASGIApp) -> None:
    async with in_process(installation, "no-such-key") as client:
        refused = await call_upstream(client, "whoami", {})
        assert (refused.ok, "HTTP 401" in refused.text, "no-such-key" in refused.text) == (False, True, False)
        with pytest.raises(Unavailable, match="HTTP 401"):
            await client.tools()
