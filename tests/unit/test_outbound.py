"""Tests how outgoing requests identify Frontdesk and its agent."""

import base64
import json
from collections.abc import AsyncGenerator, Generator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from frontdesk.identity import outbound
from frontdesk.identity.model import Caller
from frontdesk.identity.tokens import unverified_claims
from frontdesk.mcp_client import http
from frontdesk.mcp_client.model import McpServer, OAuthConfig
from frontdesk.mcp_client.pool import McpClientPool
from tests.requirements import shows
from tests.support.serving import serve


def token(**claims: object) -> str:
    parts = [base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=").decode() for part in ({}, claims)]
    return ".".join([*parts, "sig"])


@pytest.mark.parametrize(
    ("claims", "expected"),
    [
        ({"xms_par_app_azp": "blueprint", "appid": "app", "azp": "azp"}, "blueprint"),
        ({"appid": "app", "azp": "azp"}, "app"),
        ({"azp": "azp"}, "azp"),
        ({"sub": "x"}, ""),
        ({"appid": 123, "azp": "azp"}, "azp"),
    ],
)
def test_claims_are_tried_in_order(claims: dict[str, object], expected: str) -> None:
    assert outbound.agent_id_from_token(token(**claims)) == expected


@pytest.mark.parametrize("broken", [None, "", " ", "x", "a.b.c", "Bearer x.y.z", "é.é.é"])
def test_a_broken_token_says_nothing(broken: str | None) -> None:
    assert outbound.agent_id_from_token(broken) == ""


def test_a_token_that_comes_again_is_read_once_and_what_is_kept_of_it_is_no_token(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    read: list[str] = []

    def reading(shown: str) -> Mapping[str, object]:
        read.append(shown)
        return unverified_claims(shown)

    monkeypatch.setattr(outbound, "unverified_claims", reading)
    unsigned = token(appid="read-once").removesuffix("sig")
    for signature in ("one", "one", "two"):
        assert outbound.agent_id_from_token(unsigned + signature) == "read-once"
    assert read == [unsigned], "what it says does not hang on the signature, which is not there"
    assert outbound.agent_id_from_token(unsigned + "one", ("azp",)) == ""


@pytest.mark.parametrize("strange", ["{0}", "{0}.x.y", "x.{0}", "{0}" + "x" * 16_384])
def test_what_is_no_token_is_none_whatever_was_read_before(strange: str) -> None:
    known = token(appid="known")
    assert outbound.agent_id_from_token(known) == "known"
    assert outbound.agent_id_from_token(strange.format(known.rpartition(".")[0])) == ""


@shows("ID-OUTBOUND")
def test_turn_beats_token_beats_application(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tmp_path.joinpath("pyproject.toml").write_text('[project]\nname = "from-file"  # a comment\n')
    monkeypatch.chdir(tmp_path)
    told = token(appid="app")
    assert outbound.platform_agent_id(told, "blueprint", "named") == "blueprint"
    assert outbound.platform_agent_id(told, None, "named") == "app"
    assert outbound.platform_agent_id(None, None, "named") == "named"
    assert outbound.platform_agent_id(None) == "from-file"
    tmp_path.joinpath("pyproject.toml").unlink()
    assert outbound.platform_agent_id(None) == "from-file", "the file is read once"


@pytest.mark.parametrize(
    "content", ["", "project = 'x'", "[project]", "[project]\nname = ''", "[tool]\nname = 'x'", "not toml ["]
)
def test_a_header_that_would_be_empty_is_left_out(
    content: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "project"
    folder.mkdir()
    folder.joinpath("pyproject.toml").write_text(content)
    monkeypatch.chdir(folder)
    assert outbound.platform_headers() == outbound.caller_headers() == {}


def test_caller_and_request_go_along(tmp_path: Path) -> None:
    caller = Caller("r-1", agent_id="agent-1")
    said = {"x-agent-id": "agent-1", "x-request-id": "r-1"}
    assert outbound.caller_headers(caller) == said
    assert outbound.platform_headers(caller, application_name="naïve\r\nname") == {**said, "x-ms-agentid": "naive name"}


def test_the_trace_goes_along() -> None:
    from opentelemetry.sdk.trace import TracerProvider  # noqa: PLC0415

    with TracerProvider().get_tracer("test").start_as_current_span("outer") as span:
        said = outbound.caller_headers(Caller("r-1"))
    assert format(span.get_span_context().trace_id, "032x") in said["traceparent"]


@dataclass(slots=True)
class Recorder:
    """An MCP server with sessions that records which agent each request names."""

    url: str = ""
    agents: list[tuple[str, str | None]] = field(default_factory=list[tuple[str, str | None]])
    refuses: int = 0

    async def post(self, request: Request) -> Response:
        frame: dict[str, Any] = await request.json() if request.method == "POST" else {"method": request.method}
        self.agents.append((frame["method"], request.headers.get("x-ms-agentid")))
        if frame["method"] == "tools/call" and self.refuses:
            self.refuses -= 1
            return Response(status_code=401)
        about: Mapping[str, Any] = {"protocolVersion": "2025-06-18", "capabilities": {}, "serverInfo": {"name": "r"}}
        results: Mapping[str, Any] = {"initialize": about, "tools/list": {"tools": []}, "tools/call": {"content": []}}
        if "id" not in frame:
            return Response(status_code=202)
        result = {"jsonrpc": "2.0", "id": frame["id"], "result": results[frame["method"]]}
        return JSONResponse(result, headers={"mcp-session-id": "s-1"})


@contextmanager
def open_recorder() -> Generator[Recorder]:
    recorder = Recorder()
    with serve(Starlette(routes=[Route("/mcp", recorder.post, methods=["POST", "DELETE"])])) as address:
        recorder.url = f"{address}/mcp"
        yield recorder


@asynccontextmanager
async def opened(application: str | None = None, **options: Any) -> AsyncGenerator[McpClientPool]:
    pool = McpClientPool(application=application, **options)
    try:
        yield pool
    finally:
        await pool.close()


@shows("A365-AGENTID")
@pytest.mark.anyio
async def test_every_request_to_a_marked_server_names_the_agent_of_the_token_that_it_carries() -> None:
    with open_recorder() as recorder:
        async with opened("desk") as pool:
            server = McpServer(
                "r", recorder.url, {"Authorization": f"bearer {token(appid='app')}"}, sends_agent_id=True
            )
            client = pool.client(server, None, None)
            await client.tools()
            await client.call_tool("x", {}, {"X-MS-AgentId": "said"})
        kinds = ("initialize", "notifications/initialized", "tools/list", "tools/call", "DELETE")
        assert recorder.agents == [(kind, "app") for kind in kinds]


@shows("KEPT-07")
@pytest.mark.anyio
async def test_no_request_to_another_server_names_it() -> None:
    with open_recorder() as recorder:
        async with opened("desk") as pool:
            server = McpServer("r", recorder.url, {"Authorization": f"bearer {token(appid='app')}"})
            client = pool.client(server, None, None)
            await client.tools()
            await client.call_tool("x", {}, {"X-MS-AgentId": "said"})
        assert {agent for _, agent in recorder.agents} == {None}


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("headers", "user_token", "said", "application", "named"),
    [
        ({}, token(azp="azp"), "said", "desk", "azp"),
        ({"authorization": f"Bearer {token(appid='fixed')}"}, token(appid="person"), "said", "desk", "person"),
        ({"authorization": f"Bearer {token(appid='fixed')}"}, "opaque", None, "desk", "desk"),
        ({"authorization": "Basic x"}, None, "said", "desk", "said"),
        ({}, None, None, "dësk", "desk"),
        ({}, None, None, None, None),
        ({"x-ms-agentid": "set"}, token(appid="person"), "said", "desk", "set"),
        ({}, token(appid="a\r\nb: c", azp="é"), None, "desk", "desk"),
    ],
)
async def test_a_token_beats_what_the_call_says_and_that_the_application(
    headers: Mapping[str, str], user_token: str | None, said: str | None, application: str | None, named: str | None
) -> None:
    with open_recorder() as recorder:
        async with opened(application) as pool:
            server = McpServer("r", recorder.url, headers, user_token=user_token is not None, sends_agent_id=True)
            await pool.client(server, "ada", user_token).call_tool("x", {}, {"x-ms-agentid": said} if said else {})
        assert dict(recorder.agents)["tools/call"] == named


@shows("A365-AGENTID")
@pytest.mark.anyio
async def test_a_token_that_is_renewed_names_its_own_agent_and_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str | None] = []

    def reading(shown: str | None) -> str:
        read.append(shown)
        return outbound.agent_id_from_token(shown)

    async def authorize(_server: McpServer, _user: str | None, _token: str | None, refused: str | None) -> str:
        return token(appid="first") if refused is None and not recorder.agents[3:] else token(appid="second")

    monkeypatch.setattr(http, "agent_id_from_token", reading)
    with open_recorder() as recorder:
        async with opened("desk", authorize=authorize) as pool:
            oauth = OAuthConfig("https://issuer/token", "desk")
            client = pool.client(McpServer("r", recorder.url, oauth=oauth, sends_agent_id=True), None, None)
            recorder.refuses = 1
            for _ in range(5):
                await client.call_tool("x", {})
        named = [agent for kind, agent in recorder.agents if kind == "tools/call"]
        assert named == ["first", *["second"] * 5]
        assert [found for found in read if found] == [token(appid="first"), token(appid="second")]
