"""Tests the MCP client's handling of names, results and streams, also from servers of the older revision."""

import gzip
import json
from collections.abc import AsyncGenerator, Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import anyio
import httpx2
import pytest
import structlog
from hypothesis import example, given
from hypothesis import strategies as st
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Route

from frontdesk.errors import ConfigurationError, Unavailable
from frontdesk.llm.tools import ToolOutcome
from frontdesk.mcp_client import client
from frontdesk.mcp_client.http import MAX_ANSWER
from frontdesk.mcp_client.model import (
    API_NAME,
    McpServer,
    McpServerUnavailable,
    McpUnauthorized,
    api_name,
    bare_token,
    is_plain_address,
)
from frontdesk.mcp_client.pool import McpClientPool
from frontdesk.mcp_client.wire import (
    AUTH_TOOLS,
    LARGE_BODY,
    SseParser,
    parse_frame,
    tools_on_page,
    without_sign_in_tools,
)
from frontdesk.tools.calls import read_result
from tests.requirements import shows
from tests.support.serving import serve
from tests.support.upstreams import TOOLS, Upstream, open_upstream
from tests.support.waiting import until
from tests.support.wire import call_upstream

# Names, results and streams, and servers that misbehave


TOKEN = "token-of-ada"
SECRETS = (TOKEN, "fixed-secret", "query-secret")


@pytest.mark.usefixtures("nothing_received")
@pytest.mark.parametrize("written", [f"Bearer {TOKEN}", f"bearer {TOKEN}", f" BEARER \t{TOKEN} ", TOKEN])
def test_a_token_is_taken_without_its_scheme(written: str) -> None:
    assert bare_token(written) == TOKEN


@pytest.mark.usefixtures("nothing_received")
@pytest.mark.parametrize("written", [None, "", " ", "Bearer "])
def test_nothing_is_no_token(written: str | None) -> None:
    assert bare_token(written) is None


@pytest.mark.usefixtures("nothing_received")
def test_the_word_before_a_token_is_taken_off_where_it_stands_first_alone() -> None:
    assert bare_token("abc bearer xyz") == "abc bearer xyz"
    assert bare_token("Bearer") is None
    assert bare_token("Bearer bearer abc") == "abc"
    assert bare_token("bearer-token") == "bearer-token"


@pytest.mark.usefixtures("nothing_received")
@pytest.mark.parametrize("url", ["http://host:port/", "http://host:99999999/", "http://[::1/", "ftp://host/"])
def test_an_address_that_nobody_could_connect_to_is_not_plain(url: str) -> None:
    assert not is_plain_address(url)


@pytest.mark.usefixtures("nothing_received")
@pytest.mark.parametrize(
    ("url", "headers"),
    [
        ("ftp://host/mcp", {}),
        ("host/mcp", {}),
        ("http://[::1/mcp", {}),
        ("https://ada:fixed-secret@host/mcp", {}),
        ("https://host/mcp", {"x-key": "fixed-secret\r\nx: y"}),
        ("https://host/mcp", {"x key": "fixed-secret"}),
    ],
)
def test_a_server_that_cannot_be_reached_as_set_is_refused_without_its_secrets(
    url: str, headers: Mapping[str, str]
) -> None:
    with pytest.raises(ConfigurationError, match="MCP server 'shop'") as refused:
        McpServer("shop", url, headers)
    assert "fixed-secret" not in str(refused.value)


@pytest.mark.usefixtures("nothing_received")
@shows("KEPT-08")
@given(
    texts=st.lists(st.text(alphabet='aé:{}" \x00', min_size=1)),
    end=st.sampled_from(["\r\n", "\n", "\r"]),
    mark=st.sampled_from(["", "\ufeff"]),
    sizes=st.lists(st.integers(1, 9), min_size=1),
)
@example(texts=["a"], end="\n", mark="\ufeff", sizes=[1])
def test_events_are_the_same_however_they_are_cut(texts: list[str], end: str, mark: str, sizes: list[int]) -> None:
    body = "".join(f"data: {text}{end}data: x{end}event: message{end}: note{end}id: 1{end}{end}" for text in texts)
    rest, events, found = (mark + body).encode(), SseParser(), list[bytes]()
    while rest:
        for size in sizes:
            found += events.feed_messages(rest[:size])
            rest = rest[size:]
    assert found == [f"{text}\nx".encode() for text in texts]


@pytest.mark.usefixtures("nothing_received")
def test_events_of_another_kind_and_unfinished_ones_are_no_messages() -> None:
    assert SseParser().feed_messages(b"event: endpoint\ndata: /sse\n\nid: 1\ndata:\n\ndata: cut") == []


NAMES = st.text(alphabet="ab_-. é", min_size=1, max_size=40)


@pytest.mark.usefixtures("nothing_received")
@given(st.lists(st.tuples(NAMES, NAMES), unique=True))
def test_every_tool_gets_a_name_of_its_own_that_apis_take(pairs: list[tuple[str, str]]) -> None:
    names = [api_name(server, tool, {}) for server, tool in pairs]
    assert len(set(names)) == len(pairs)
    assert all(API_NAME.fullmatch(name) for name in names)


@pytest.mark.usefixtures("nothing_received")
def test_names_stay_as_they_are_where_they_can() -> None:
    assert api_name("memory", "create_task", {}) == "memory__create_task"
    assert api_name("a", "b__c", {}) == "a__b__c" != api_name("a__b", "c", {})
    assert api_name("memory", "x" * 80, {}) == api_name("memory", "x" * 80, {})
    taken = {"memory__create_task": None}
    assert api_name("memory", "create_task", taken).startswith("memory__create_task_")


@pytest.mark.usefixtures("nothing_received")
@pytest.mark.parametrize(
    ("result", "outcome"),
    [
        ({"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}, ToolOutcome("a\nb")),
        ({"content": [{"type": "text", "text": "a"}], "structuredContent": {"b": 1}}, ToolOutcome("a")),
        ({"content": [], "structuredContent": {"b": "ü"}}, ToolOutcome('{"b": "ü"}')),
        (
            {"content": [{"type": "audio", "mimeType": "audio/wav", "data": "AAAA"}], "structuredContent": [1]},
            ToolOutcome("[1]\n[audio audio/wav, 3 bytes]"),
        ),
        ({"content": [{"type": "resource", "resource": {"uri": "file:///a"}}]}, ToolOutcome("[resource file:///a]")),
        ({"content": [{"type": "resource_link", "uri": "file:///b"}]}, ToolOutcome("[resource file:///b]")),
        ({"content": [{"type": "hologram"}, "no block", {}]}, ToolOutcome("[hologram]\n[unknown content]")),
        ({"content": "nothing"}, ToolOutcome("")),
        ({"content": [{"type": "text", "text": "no"}], "isError": True}, ToolOutcome("no", ok=False)),
        ({"isError": True}, ToolOutcome("work: the tool failed and gave no reason", ok=False)),
    ],
)
def test_what_a_result_says_to_a_model(result: Mapping[str, Any], outcome: ToolOutcome) -> None:
    found = read_result("work", result, len(json.dumps(result)))
    assert ToolOutcome(found.text, ok=found.ok) == outcome


@pytest.mark.usefixtures("nothing_received")
def test_a_tool_that_wants_more_input_has_failed() -> None:
    assert not read_result("work", {"resultType": "input_required", "inputRequests": {}}, 60).ok


@pytest.mark.usefixtures("nothing_received")
def test_tools_without_a_name_are_none_and_a_missing_schema_takes_anything() -> None:
    page = {"tools": [{"name": "a", "title": "A"}, {"description": "nameless"}, 7]}
    assert [(tool.name, tool.description, tool.parameters) for tool in tools_on_page(page)] == [
        ("a", "A", {"type": "object"})
    ]


@pytest.mark.usefixtures("nothing_received")
def test_tools_to_sign_in_are_hidden_only_where_the_server_keeps_the_token() -> None:
    plain = tools_on_page({"tools": [{"name": "authenticate"}, {"name": "work"}]})
    assert without_sign_in_tools(plain) == plain
    keeping = tools_on_page({"tools": [{"name": name} for name in (*AUTH_TOOLS, "work")]})
    assert [tool.name for tool in without_sign_in_tools(keeping)] == ["work"]


RECEIVED: list[Mapping[str, Any]] = []
NOTE = {"jsonrpc": "2.0", "method": "notifications/progress"}
QUESTIONS = [{"jsonrpc": "2.0", "id": ask, "method": ask} for ask in ("ping", "sampling/createMessage")]


def stream(*chunks: bytes) -> Response:
    return StreamingResponse(iter(chunks), media_type="text/event-stream")


def sse(*frames: Mapping[str, Any]) -> Response:
    return stream(*(f": note\nevent: message\ndata: {json.dumps(frame)}\n\n".encode() for frame in frames))


def asked(tool: str) -> int:
    return sum(frame.get("params", {}).get("name") == tool for frame in RECEIVED)


def keep(_request: Request, answer: Mapping[str, Any]) -> Response:
    """Keeps tokens in sessions, and accepts a token only when it is sent twice."""
    if RECEIVED[-1]["method"] == "tools/list":
        return JSONResponse({**answer, "result": {"tools": [{"name": "set_access_token"}, {"name": "work"}]}})
    if RECEIVED[-1]["params"]["name"] == "work" and asked("set_access_token") < 2:
        return JSONResponse(
            {**answer, "result": {"content": [{"type": "text", "text": "Token expired"}], "isError": True}}
        )
    return JSONResponse(answer)


def packed(frame: Mapping[str, Any]) -> Response:
    headers = {"content-encoding": "gzip", "content-type": "application/json"}
    return Response(gzip.compress(json.dumps(frame).encode()), headers=headers)


def echo(request: Request, frame: Mapping[str, Any]) -> Response:
    told = f"bad token {request.headers['x-user-auth-token']}"
    return JSONResponse({"jsonrpc": "2.0", "id": frame["id"], "error": {"code": -32603, "message": told}})


# What a server does after a correct handshake, by path, given the request and a valid answer.
MANNERS: Mapping[str, Callable[[Request, Mapping[str, Any]], Response]] = {
    "fine": lambda _request, answer: JSONResponse(answer),
    "asks": lambda _request, answer: sse(*QUESTIONS, NOTE, answer),
    "redirects": lambda request, _answer: RedirectResponse(f"{request.base_url}fine", 307),
    "garbage": lambda _request, _answer: Response("<html>", media_type="text/html"),
    "garbled": lambda _request, _answer: stream(b"data: {\n\n"),
    "huge": lambda _request, _answer: Response(bytes(MAX_ANSWER + 1), media_type="application/json"),
    "endless": lambda _request, _answer: stream(*[b": more" * 100_000] * 100),
    "packed": lambda _request, answer: packed(answer),
    "cut": lambda _request, _answer: sse(NOTE),
    "down": lambda _request, _answer: Response("down", 503),
    "strange": lambda _request, answer: JSONResponse({**answer, "result": None}),
    "pages": lambda _request, answer: JSONResponse({**answer, "result": {"tools": [{"name": "a"}], "nextCursor": "b"}}),
    "doubts": lambda _request, answer: Response(status_code=401) if asked("work") == 1 else JSONResponse(answer),
    "misses": lambda _request, answer: JSONResponse({**answer, "error": {"code": -32603, "message": "no such author"}}),
    "echoes": echo,
    "keeps": keep,
    "sessionless": keep,
}


async def misbehave(request: Request) -> Response:
    """Answers the handshake, then does as the path says."""
    frame = await request.json()
    RECEIVED.append({**frame, "headers": dict(request.headers)})
    answer = {"jsonrpc": "2.0", "id": frame.get("id"), "result": {"content": [{"type": "text", "text": "fine"}]}}
    if frame.get("method") == "initialize":
        told = {"protocolVersion": request.query_params.get("version", "2025-06-18")}
        kept = {} if request.path_params["how"] == "sessionless" else {"mcp-session-id": "s-1"}
        return JSONResponse({**answer, "result": told}, headers={"set-cookie": "user=ada", **kept})
    if "id" not in frame or "method" not in frame:
        return Response(status_code=202)
    if request.path_params["how"] == "silent":
        while (await request.receive())["type"] != "http.disconnect":
            pass
        return Response()
    return MANNERS[request.path_params["how"]](request, answer)


@pytest.fixture(scope="module")
async def clients() -> AsyncGenerator[McpClientPool]:
    pool = McpClientPool()
    yield pool
    await pool.close()


@pytest.fixture(scope="module")
def broken() -> Iterator[str]:
    with serve(Starlette(routes=[Route("/{how}", misbehave, methods=["POST"])])) as url:
        yield url


@pytest.fixture
def nothing_received() -> None:
    RECEIVED.clear()


@contextmanager
def nothing_secret() -> Generator[list[str]]:
    """Texts to search, including everything logged meanwhile."""
    texts: list[str] = []
    with structlog.testing.capture_logs() as logged:
        yield texts
    shown = "\n".join([*texts, str(logged)])
    assert not any(secret in shown for secret in SECRETS), shown


@pytest.mark.usefixtures("nothing_received")
@pytest.mark.parametrize(
    ("how", "reason"),
    [
        ("redirects", "HTTP 307"),
        ("garbage", "not JSON-RPC"),
        ("garbled", "not JSON-RPC"),
        ("huge", "more than 16 MiB"),
        ("endless", "more than 16 MiB"),
        ("packed", "compressed"),
        ("silent", "longer than 0.1 s"),
        ("cut", "without a result"),
        ("down", "HTTP 503"),
        ("strange", "without a result"),
        ("echoes", "bad token [token]"),
        ("version", "'1999-01-01'"),
        ("dead", "ConnectError"),
    ],
)
async def test_a_broken_server_is_told_of_and_gives_no_secret_away(
    broken: str, clients: McpClientPool, how: str, reason: str
) -> None:
    address = "http://127.0.0.1:1" if how == "dead" else broken
    query = "version=1999-01-01&" if how == "version" else ""
    server = McpServer(
        how, f"{address}/{how}?{query}key=query-secret", {"x-api-key": "fixed-secret"}, user_token=how == "echoes"
    )
    pool = McpClientPool(timeout=0.1) if how == "silent" else clients
    client = pool.client(server, "ada", TOKEN)
    with nothing_secret() as texts:
        outcome = await call_upstream(client, "work", {})
        assert (outcome.ok, reason in outcome.text) == (False, True), outcome.text
        assert outcome.text.startswith("Error calling work: ")
        with pytest.raises(Unavailable) as raised:
            await client.tools()
        assert reason in str(raised.value)
        assert f"MCP server '{how}' at {address}/{how}" in str(raised.value)
        texts += [outcome.text, repr(raised.value), repr(server), str(server), repr(client), repr(vars(pool))]
    await client.close()
    if pool is not clients:
        await pool.close()


@pytest.mark.usefixtures("nothing_received")
async def test_what_a_server_asks_in_between_is_answered(broken: str, clients: McpClientPool) -> None:
    server = McpServer("asking", f"{broken}/asks")
    assert await call_upstream(clients.client(server, None, None), "work", {}) == ToolOutcome("fine")
    assert [frame["id"] for frame in RECEIVED if "params" in frame] == [1, 2]
    answers = {frame["id"]: frame for frame in RECEIVED if "method" not in frame}
    assert answers["ping"]["result"] == {}
    assert answers["sampling/createMessage"]["error"]["code"] == -32601
    assert answers["ping"]["headers"]["mcp-session-id"] == "s-1"
    assert answers["ping"]["headers"]["mcp-protocol-version"] == "2025-06-18"


@pytest.mark.usefixtures("nothing_received")
async def test_a_cookie_of_one_user_is_not_shown_for_another(broken: str, clients: McpClientPool) -> None:
    for user in ("ada", "ben"):
        assert (await call_upstream(clients.client(McpServer("cookies", f"{broken}/fine"), user, None), "work", {})).ok
    assert not any("cookie" in frame["headers"] for frame in RECEIVED)


@pytest.mark.usefixtures("nothing_received")
async def test_a_token_that_no_header_can_hold_stays_out_of_the_message(broken: str, clients: McpClientPool) -> None:
    server = McpServer("strict", f"{broken}/fine", user_token=True)
    for token in (f"{TOKEN}\r\nx-agent-id: other", f"{TOKEN}-ü"):
        outcome = await call_upstream(clients.client(server, "ada", token), "work", {})
        assert (outcome.ok, "'x-user-auth-token'" in outcome.text, TOKEN in outcome.text) == (False, True, False)


@pytest.mark.usefixtures("nothing_received")
async def test_a_client_is_of_one_server_one_user_and_one_token(clients: McpClientPool) -> None:
    first, second = (McpServer("shop", "http://host/mcp", {"x-key": key}) for key in "ab")
    asked_for = [(first, "ada", "1"), (second, "ada", "1"), (first, "ben", "1"), (first, "ada", "2")]
    asked_for += [(first, None, "1"), (first, "ada", None), (first, None, None)]
    assert len({id(clients.client(*one)) for one in asked_for}) == len(asked_for)
    assert clients.client(first, "ada", "Bearer 1") is clients.client(first, "ada", "1")


@pytest.mark.usefixtures("nothing_received")
async def test_a_tool_that_fails_over_the_token_is_called_again_with_it(broken: str, clients: McpClientPool) -> None:
    server = McpServer("keeps", f"{broken}/keeps", user_token=True)
    assert await call_upstream(clients.client(server, "ada", TOKEN), "work", {}) == ToolOutcome("fine")
    assert (asked("work"), asked("set_access_token")) == (2, 2)


@pytest.mark.usefixtures("nothing_received")
async def test_no_token_is_left_with_a_server_that_would_keep_it_for_everybody(
    broken: str, clients: McpClientPool
) -> None:
    server = McpServer("sessionless", f"{broken}/sessionless", user_token=True)
    client = clients.client(server, "ada", TOKEN)
    with structlog.testing.capture_logs() as logged:
        assert (
            await call_upstream(client, "work", {})
            == await call_upstream(client, "work", {})
            == ToolOutcome("Token expired", ok=False)
        )
    assert (asked("work"), asked("set_access_token")) == (2, 0)
    assert [entry["event"] for entry in logged] == ["mcp_token_not_left"]


@pytest.mark.usefixtures("nothing_received")
@pytest.mark.parametrize(("user_token", "calls"), [(True, 2), (False, 1)])
async def test_a_refused_request_is_repeated_once_where_there_is_a_token(
    broken: str, clients: McpClientPool, *, user_token: bool, calls: int
) -> None:
    server = McpServer("doubts", f"{broken}/doubts", user_token=user_token)
    outcome = await call_upstream(clients.client(server, "ada", TOKEN), "work", {})
    assert (outcome.ok, asked("work")) == (user_token, calls)


@pytest.mark.usefixtures("nothing_received")
async def test_an_error_that_merely_sounds_like_authentication_is_not_repeated(
    broken: str, clients: McpClientPool
) -> None:
    server = McpServer("misses", f"{broken}/misses")
    outcome = await call_upstream(clients.client(server, "ada", TOKEN), "work", {})
    assert (outcome, asked("work")) == (ToolOutcome("Error calling work: no such author", ok=False), 1)


@pytest.mark.usefixtures("nothing_received")
@shows("KEPT-12")
async def test_a_listing_without_end_is_cut_and_that_is_said(broken: str, clients: McpClientPool) -> None:
    listing = await clients.client(McpServer("pages", f"{broken}/pages"), "ada", None).listing()
    assert listing.left_out == ["its list repeats its page after 2 pages and 2 tools; the rest is left out"]


@pytest.mark.usefixtures("nothing_received")
async def test_a_listing_that_is_too_large_is_cut_long_before_its_last_page(
    broken: str, clients: McpClientPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "MAX_LISTING", 200)
    assert len(await clients.client(McpServer("pages", f"{broken}/pages"), "ada", None).tools()) < 5


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(exclude_categories=())),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)


@pytest.mark.usefixtures("nothing_received")
@shows("KEPT-08")
@given(VALUES, st.booleans())
@example("\ud800 \udc00", True)
@example(10**400, False)
@example(1.7976931348623157e308, False)
def test_a_large_answer_is_read_as_a_small_one_is(value: object, ascii_alone: bool) -> None:
    said = json.dumps({"result": value}, ensure_ascii=ascii_alone).encode(errors="surrogatepass")
    small, large = parse_frame(said), parse_frame(said + b" " * LARGE_BODY)
    assert repr(small) == repr(large)


@pytest.mark.usefixtures("nothing_received")
@shows("KEPT-08")
@pytest.mark.parametrize(
    "body",
    [
        b'{"a": 1, "a": 2}',
        b'{"a": "\xff"}',
        b'{"a": 1} {}',
        b'\xef\xbb\xbf{"a": 1}',
        b'{"a":' + b"[" * 5_000 + b"]" * 5_000 + b"}",
        b'{"a": 1',
        b"[1]",
        '{"a": "é"}'.encode("utf-16"),
    ],
)
def test_a_large_answer_that_is_odd_is_taken_or_refused_as_a_small_one_is(body: bytes) -> None:
    padding = b" " * LARGE_BODY if b"\x00" not in body else " ".encode("utf-16-le") * LARGE_BODY
    assert repr(parse_frame(body + padding)) == repr(parse_frame(body))


# Servers of the older revision, whose answers come on one long stream while requests are posted beside it


SECONDS = 10


@pytest.fixture(scope="module")
def running() -> Iterator[Upstream]:
    with open_upstream() as server:
        yield server


@pytest.fixture
def upstream(running: Upstream) -> Upstream:
    running.elsewhere, running.guarded = None, False
    running.notes.clear()
    return running


@pytest.fixture
async def sse_clients() -> AsyncGenerator[McpClientPool]:
    pool = McpClientPool()
    yield pool
    await pool.close()


def sse_server(upstream: Upstream, path: str = "/sse", **headers: str) -> McpServer:
    return McpServer("old", f"{upstream.url}{path}", headers, transport="sse", timeout=SECONDS)


async def test_tools_are_listed_and_called_over_one_stream(upstream: Upstream, sse_clients: McpClientPool) -> None:
    client = sse_clients.client(sse_server(upstream), "ada", None)
    assert tuple(tool.name for tool in await client.tools()) == TOOLS
    before = len(upstream.streams)

    async def one(number: int) -> None:
        assert json.loads((await call_upstream(client, "echo", {"n": number})).text) == {"n": number}

    async with anyio.create_task_group() as tasks:
        for number in range(20):
            tasks.start_soon(one, number)
    assert len(upstream.streams) == before
    assert await call_upstream(client, "nothing", {}) == ToolOutcome("Error calling nothing: No tool nothing", ok=False)


async def test_what_a_call_says_of_itself_is_in_the_headers_of_its_request(
    upstream: Upstream, sse_clients: McpClientPool
) -> None:
    client = sse_clients.client(sse_server(upstream, **{"x-api-key": "fixed"}), "ada", None)
    seen = json.loads(
        (await call_upstream(client, "headers", {}, {"x-agent-id": "agent-1", "authorization": "no"})).text
    )
    assert (seen["x-agent-id"], seen["x-api-key"], "authorization" in seen) == ("agent-1", "fixed", False)


async def test_a_stream_that_ends_fails_the_calls_on_it_and_the_next_call_opens_another(
    upstream: Upstream, sse_clients: McpClientPool
) -> None:
    client = sse_clients.client(sse_server(upstream), "ada", None)
    assert (await call_upstream(client, "echo", {})).ok
    outcomes: list[ToolOutcome] = []

    async def hold() -> None:
        outcomes.append(await call_upstream(client, "hold", {}))

    held = upstream.held
    with anyio.fail_after(SECONDS):
        async with httpx2.AsyncClient() as other, anyio.create_task_group() as tasks:
            tasks.start_soon(hold)
            await until(lambda: upstream.held > held)
            await other.post(f"{upstream.url}/end")
    assert "ended its stream" in outcomes[0].text
    assert (await call_upstream(client, "echo", {})).ok


@pytest.mark.parametrize("elsewhere", ["http://127.0.0.1:1/messages", "//example.com/messages", "https:/messages"])
async def test_requests_are_never_posted_to_another_origin(
    upstream: Upstream, sse_clients: McpClientPool, elsewhere: str
) -> None:
    upstream.elsewhere = elsewhere
    with pytest.raises(McpServerUnavailable, match="another origin"):
        await sse_clients.client(sse_server(upstream), "eve", None).call_tool("echo", {})


async def test_a_server_that_gives_no_stream_is_told_of(upstream: Upstream, sse_clients: McpClientPool) -> None:
    with pytest.raises(McpServerUnavailable, match=r"no stream of events \(HTTP 405\).*transport to http"):
        await sse_clients.client(sse_server(upstream, "/mcp"), None, None).call_tool("echo", {})
    with pytest.raises(McpServerUnavailable, match="ConnectError"):
        await sse_clients.client(McpServer("gone", "http://127.0.0.1:1/sse", transport="sse"), None, None).call_tool(
            "echo", {}
        )
    upstream.guarded = True
    with pytest.raises(McpUnauthorized, match="HTTP 401"):
        await sse_clients.client(sse_server(upstream), "ben", None).call_tool("echo", {})


async def test_progress_is_handed_on_and_a_call_that_nobody_waits_for_is_cancelled(
    upstream: Upstream, sse_clients: McpClientPool
) -> None:
    client, steps = sse_clients.client(sse_server(upstream), "ada", None), list[float]()

    async def progress(done: float, _total: float | None, _message: str | None) -> None:
        steps.append(done)

    await client.call_tool("steps", {}, progress=progress)
    assert steps == [1, 2, 3]
    held, left = upstream.held, upstream.left
    with anyio.fail_after(SECONDS):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(client.call_tool, "hold", dict[str, object]())
            await until(lambda: upstream.held > held)
            tasks.cancel_scope.cancel()
        await until(lambda: upstream.left > left)
    assert "notifications/cancelled" in [note["method"] for note in upstream.notes]
