"""Tests the middleware: Host, Origin, credentials, scopes, rates, and the message of each refusal."""

import re
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from frontdesk.agents.host import NewAgent
from frontdesk.agents.letta.handed_store import HANDED_TOOLS_PATH as HELD_PATH
from frontdesk.app import App, open_app, token_audiences
from frontdesk.errors import Unavailable
from frontdesk.identity import rights
from frontdesk.identity.model import Credential
from frontdesk.interfaces.http.application import build_application
from frontdesk.interfaces.http.context import ASGIApp
from frontdesk.interfaces.mcp.login_tools import with_login_tools
from frontdesk.interfaces.mcp.server import scopes_at_path, tools_by_path, url_path
from frontdesk.interfaces.mcp.tools import input_schema, tool_name
from frontdesk.operations import McpPath
from tests.conftest import settings_with
from tests.requirements import shows
from tests.support.postgres import Ready
from tests.support.wire import ERAS, MODERN, Answer, Era, call, send

MCP_PATHS = tuple(map(url_path, McpPath))
ENDPOINTS = (*MCP_PATHS, HELD_PATH, "/sse", "/messages", "/metrics")


@asynccontextmanager
async def opened(tmp_path: Path, **values: object) -> AsyncGenerator[tuple[App, ASGIApp]]:
    async with open_app(settings_with(FRONTDESK_DATA=tmp_path / "data", **values)) as app:
        yield app, build_application(app)


async def key(app: App, agent: str | None = None, user: str | None = None, *scopes: str) -> dict[str, str]:
    limits = frozenset(scopes) if scopes else None
    _, text = await app.identity.create_key(name="", agent_id=agent, user_id=user, scopes=limits)
    return {"authorization": f"Bearer {text}"}


async def an_agent(app: App) -> str:
    return (await app.host.create(NewAgent("Only"))).id


@shows("HTTP-GATE")
@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("127.0.0.1:3020", 200),
        ("localhost", 200),
        ("LOCALHOST:9", 200),
        ("[::1]:3020", 200),
        ("evil.example", 421),
        ("127.0.0.1.evil.example", 421),
        ("localhost.evil.example:3020", 421),
        ("", 421),
        ("desk.local:3020", 200),
    ],
)
async def test_only_known_hosts_are_answered(tmp_path: Path, host: str, status: int) -> None:
    async with opened(tmp_path, FRONTDESK_ALLOWED_HOSTS="desk.local", FRONTDESK_REQUIRE_AUTH=True) as (app, asgi):
        said, body = call(MODERN)
        answer = await send(asgi, said | await key(app, "agent-1") | {"host": host}, body)
    assert answer.status == status


@shows("HTTP-GATE")
@pytest.mark.parametrize(
    ("origin", "status"),
    [
        ("http://localhost:5173", 200),
        ("https://app.example", 200),
        ("https://app.example.evil", 403),
        ("https://evil.example", 403),
        ("null", 403),
        ("http://[broken", 403),
    ],
)
async def test_only_known_origins_may_call(tmp_path: Path, origin: str, status: int) -> None:
    async with opened(tmp_path, FRONTDESK_ALLOWED_ORIGINS="https://app.example") as (_, asgi):
        said, body = call(MODERN, arguments={"agent_id": "agent-1"})
        answer = await send(asgi, said | {"origin": origin}, body)
    assert answer.status == status


async def test_a_server_on_every_address_goes_by_any_of_them(tmp_path: Path) -> None:
    async with opened(tmp_path, FRONTDESK_HOST="0.0.0.0") as (app, asgi):
        said, body = call(MODERN)
        shown = await key(app, "agent-1")
        for host, status in (("192.0.2.7:3020", 200), ("[2001:db8::1]:3020", 200), ("evil.example:3020", 421)):
            assert (await send(asgi, said | shown | {"host": host}, body)).status == status


async def test_a_call_that_a_proxy_passed_on_needs_a_credential_even_on_loopback(tmp_path: Path) -> None:
    async with opened(tmp_path, REQUIRE_AGENT_ID=False) as (app, asgi):
        said, body = call(MODERN)
        passed_on = said | {"x-forwarded-for": "198.51.100.7"}
        assert (await send(asgi, passed_on, body)).status == 401
        assert (await send(asgi, passed_on | await key(app, "agent-1"), body)).structured["verified"] is True
        assert (await send(asgi, passed_on, b"", path="/metrics", method="GET")).status == 401


async def test_a_browser_of_a_known_origin_gets_its_preflight(tmp_path: Path) -> None:
    async with opened(tmp_path, FRONTDESK_ALLOWED_ORIGINS="https://app.example") as (_, asgi):
        asked = {"origin": "https://app.example", "access-control-request-method": "POST"}
        answer = await send(asgi, asked, b"", method="OPTIONS")
    assert answer.headers["access-control-allow-origin"] == "https://app.example"


@pytest.mark.parametrize("era", ERAS)
async def test_without_a_credential_a_guarded_desk_says_how_to_get_in(tmp_path: Path, era: Era) -> None:
    async with opened(tmp_path, FRONTDESK_REQUIRE_AUTH=True) as (_, asgi):
        said, body = call(era, arguments={"agent_id": "agent-1"})
        answer = await send(asgi, said, body)
    assert answer.status == 401
    challenge = answer.headers["www-authenticate"]
    assert 'resource_metadata="http://127.0.0.1:3020/.well-known/oauth-protected-resource/mcp"' in challenge
    assert 'scope="' in challenge
    assert "invalid_token" not in challenge


async def test_a_credential_that_does_not_hold_is_refused_even_where_none_is_needed(tmp_path: Path) -> None:
    async with opened(tmp_path) as (_, asgi):
        said, body = call(MODERN, arguments={"agent_id": "agent-1"})
        for shown in ("Bearer nonsense", "Bearer fd_a_b_c", "Basic dTpw"):
            answer = await send(asgi, said | {"authorization": shown}, body)
            assert answer.status == 401
            assert 'error="invalid_token"' in answer.headers["www-authenticate"]


async def test_health_and_metadata_are_open_to_everybody(tmp_path: Path) -> None:
    async with opened(tmp_path, FRONTDESK_REQUIRE_AUTH=True) as (_, asgi):
        for path in (
            "/api/health",
            "/.well-known/oauth-protected-resource",
            "/.well-known/oauth-protected-resource/mcp",
            "/.well-known/mcp/catalog.json",
            "/mcp/server-card",
        ):
            assert (await send(asgi, {}, b"", path=path, method="GET")).status == 200, path


@pytest.mark.parametrize("era", ERAS)
async def test_beyond_loopback_a_key_speaks_for_its_own_agent_alone(tmp_path: Path, era: Era) -> None:
    async with opened(tmp_path, FRONTDESK_HOST="0.0.0.0") as (app, asgi):
        shown = await key(app, "agent-1", "ann")
        said, body = call(era)
        mine = await send(asgi, said | shown, body)
        assert (mine.structured["agent_id"], mine.structured["verified"], mine.structured["source"]) == (
            "agent-1",
            True,
            "credential",
        )
        other = await send(asgi, said | shown | {"x-agent-id": "agent-2"}, body)
        assert other.error[0] == -32011
        assert other.status == (403 if era == MODERN else 200)
        person = await send(asgi, said | await key(app, None, "ann"), body)
        assert (person.structured["user_id"], person.structured["agent_id"]) == ("ann", None)


async def test_where_credentials_are_asked_for_a_persons_key_speaks_for_no_agent(tmp_path: Path) -> None:
    async with opened(tmp_path, FRONTDESK_REQUIRE_AUTH=True) as (app, asgi):
        said, body = call(MODERN)
        answer = await send(asgi, said | await key(app, None, "ann") | {"x-agent-id": "agent-1"}, body)
    assert (answer.status, answer.error[0]) == (403, -32011)


async def test_a_limited_key_may_not_even_ask_for_health(tmp_path: Path) -> None:
    async with opened(tmp_path) as (app, asgi):
        said, body = call(MODERN, "health")
        assert (await send(asgi, said | await key(app, "agent-1", None, "metrics:read"), body)).status == 403
        assert (await send(asgi, said | await key(app, "agent-1", None, "health:read"), body)).status == 200


async def test_documents_that_are_open_are_open_to_every_page(app: App) -> None:
    asked = {"origin": "https://anywhere.example"}
    answer = await send(build_application(app), asked, b"", path="/mcp/server-card", method="GET")
    assert (answer.status, answer.headers["access-control-allow-origin"]) == (200, "*")


@pytest.mark.parametrize("name", ["via", "cf-connecting-ip", "x-forwarded-proto", "forwarded"])
async def test_every_trace_of_a_proxy_counts(app: App, name: str) -> None:
    said, body = call(MODERN)
    assert (await send(build_application(app), said | {"x-agent-id": "agent-1", name: "x"}, body)).status == 401


async def test_a_server_with_an_ipv6_address_goes_by_it(tmp_path: Path) -> None:
    async with opened(tmp_path, FRONTDESK_HOST="2001:db8::1") as (app, asgi):
        said, body = call(MODERN)
        answer = await send(asgi, said | await key(app, "agent-1") | {"host": "[2001:db8::1]:3020"}, body)
    assert answer.status == 200


@shows("RIGHTS")
@pytest.mark.parametrize("era", ERAS)
async def test_a_scope_that_is_missing_is_named(tmp_path: Path, era: Era) -> None:
    async with opened(tmp_path) as (app, asgi):
        said, body = call(era)
        answer = await send(asgi, said | await key(app, "agent-1", None, "metrics:read"), body)
        assert answer.status == 403
        challenge = answer.headers["www-authenticate"]
        assert 'error="insufficient_scope"' in challenge
        assert 'scope="identity:read"' in challenge
        assert "resource_metadata=" in challenge
        allowed = await send(asgi, said | await key(app, "agent-1", None, "identity:read"), body)
        assert allowed.structured["scopes"] == ["identity:read"]


@shows("RATE")
@pytest.mark.parametrize("era", ERAS)
async def test_too_many_calls_are_told_when_to_come_back(tmp_path: Path, era: Era) -> None:
    async with opened(tmp_path, FRONTDESK_RATE_AGENT="2/hour") as (_, asgi):
        said, body = call(era)
        answers = [await send(asgi, said | {"x-agent-id": "agent-1"}, body) for _ in range(3)]
        other = await send(asgi, said | {"x-agent-id": "agent-2"}, body)
    assert [answer.status for answer in answers[:2]] == [200, 200]
    limited = answers[2]
    assert limited.status == (429 if era == MODERN else 200)
    assert limited.error[0] == -32012
    assert 0 < int(limited.headers["retry-after"]) <= 1800
    assert 0 < limited.json["error"]["data"]["retryAfterMs"] <= 1_800_000
    assert other.status == 200


async def test_metrics_are_open_on_loopback_and_granted_by_name_elsewhere(tmp_path: Path) -> None:
    async with opened(tmp_path / "open") as (_, asgi):
        assert (await send(asgi, {}, b"", path="/metrics", method="GET")).status == 200
    async with opened(tmp_path / "guarded", FRONTDESK_REQUIRE_AUTH=True) as (app, asgi):
        for shown, status in (
            ({}, 401),
            (await key(app, "agent-1"), 403),
            (await key(app, "agent-1", None, "identity:read"), 403),
            (await key(app, "agent-1", None, "metrics:read"), 200),
        ):
            assert (await send(asgi, shown, b"", path="/metrics", method="GET")).status == status


@shows("ID-SWITCHES")
@pytest.mark.parametrize(
    ("values", "agent", "error"),
    [
        ({"REQUIRE_AGENT_ID": False}, None, None),
        ({"ENABLE_AGENT_ID_HEADER": False}, "agent-1", -32602),
        ({"STRICT_AGENT_ID_VALIDATION": True}, "agent-nobody", -32602),
        ({"LETTA_AGENT_ID": "agent-env"}, None, None),
        ({"PROMPTYOSELF_USE_SINGLE_AGENT_FALLBACK": True}, None, None),
    ],
)
async def test_the_switches_do_what_they_say(
    tmp_path: Path, values: dict[str, object], agent: str | None, error: int | None
) -> None:
    async with opened(tmp_path, **values) as (app, asgi):
        made = await an_agent(app)
        said, body = call(MODERN)
        answer = await send(asgi, said | ({"x-agent-id": agent} if agent else {}), body)
        if error is not None:
            assert answer.error[0] == error
            return
        fallback = made if "PROMPTYOSELF_USE_SINGLE_AGENT_FALLBACK" in values else None
        expected = values.get("LETTA_AGENT_ID") or fallback
        assert answer.structured["agent_id"] == expected
        known = await send(asgi, said | {"x-agent-id": made}, body)
        assert known.status == 200


@pytest.mark.parametrize("era", ERAS)
async def test_a_strict_desk_lets_known_agents_in(tmp_path: Path, era: Era) -> None:
    async with opened(tmp_path, STRICT_AGENT_ID_VALIDATION=True) as (app, asgi):
        made = await an_agent(app)
        said, body = call(era)
        answer = await send(asgi, said | {"x-agent-id": made}, body)
    assert answer.structured["agent_id"] == made


@pytest.mark.parametrize(
    ("method", "headers", "status"),
    [
        ("GET", {}, 405),
        ("DELETE", {}, 405),
        ("POST", {"content-type": "text/plain"}, 415),
        ("POST", {"content-type": "application/json", "accept": "text/html"}, 406),
    ],
)
async def test_what_is_not_an_mcp_post_is_refused(app: App, method: str, headers: dict[str, str], status: int) -> None:
    assert (await send(build_application(app), headers, b"{}", method=method)).status == status


async def test_a_body_that_does_not_come_is_not_waited_for(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("frontdesk.interfaces.mcp.http.READ_SECONDS", 0.01)
    said, _ = call(MODERN)
    assert (await send(build_application(app), said, None)).status == 408


async def test_what_an_endpoint_refuses_is_counted_under_its_name(tmp_path: Path) -> None:
    async with opened(tmp_path, FRONTDESK_REQUIRE_AUTH=True, LETTA_BASE_URL="http://127.0.0.1:9") as (app, asgi):
        known = [*ENDPOINTS, *await addresses(asgi, await key(app, "agent-1", None, "metrics:read"))]
        for path in known:
            assert (await send(asgi, {}, b"", path=path)).status == 401
        for path in ("/messages/", "/api/v1/schedules/7", "/api/v1/tools/servers/shop", "/nowhere"):
            assert (await send(asgi, {}, b"", path=path)).status == 401
        counted = [row.action for row in app.journal._waiting if row.reason == "Unauthenticated"]
    assert len(known) > 20
    assert counted == [*known, "/messages", "other", "other", "other"]


async def addresses(asgi: ASGIApp, said: dict[str, str]) -> list[str]:
    """The HTTP API's paths without an id in them, from its own description."""
    described = await send(asgi, said, b"", path="/api/openapi.json", method="GET")
    return [f"/api{path}" for path in described.json["paths"] if "{" not in path]


async def test_a_token_for_any_endpoint_is_a_token_for_us(tmp_path: Path) -> None:
    async with opened(tmp_path) as (app, _):
        base = "http://127.0.0.1:3020"
        assert {f"{base}{path}" for path in (*MCP_PATHS, HELD_PATH, "")} <= token_audiences(app.settings)


@pytest.mark.parametrize(("asked", "told"), [(None, "2"), (16.2, "17")])
async def test_while_credentials_cannot_be_checked_the_answer_says_how_long_to_wait(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, asked: float | None, told: str
) -> None:
    async def away(_text: str) -> Credential:
        raise Unavailable("The issuer does not answer", retry_after=asked)

    async with opened(tmp_path) as (app, asgi):
        said, body = call(MODERN)
        said |= await key(app, "agent-1")
        monkeypatch.setattr(app.identity, "authenticate", away)
        answer = await send(asgi, said, body)
    assert (answer.status, answer.headers["retry-after"]) == (503, told)


def challenged(answer: Answer) -> set[str]:
    """The scopes in a challenge."""
    found = re.search(r'scope="([^"]*)"', answer.headers.get("www-authenticate", ""))
    return set(found[1].split()) if found else set()


def smallest(schema: Mapping[str, Any]) -> dict[str, object]:
    """The smallest set of arguments that a tool accepts."""
    promised: Mapping[str, Any] = schema.get("properties", {})
    return {name: _some(promised[name]) for name in schema.get("required", ())}


PLAIN = {"integer": 1, "number": 1, "boolean": True}
TEXTS = {"date-time": "2026-01-01T00:00:00Z", "date": "2026-01-01"}


def _some(promised: Mapping[str, Any]) -> object:
    if "anyOf" in promised:
        return _some(promised["anyOf"][0])
    kind = promised.get("type")
    if kind in ("array", "object"):
        return [_some(promised["items"])] if kind == "array" else smallest(promised)
    text = TEXTS.get(promised.get("format", ""), "00000000-0000-4000-8000-000000000000")
    return promised["enum"][0] if "enum" in promised else PLAIN.get(str(kind), text)


@shows("KEPT-07")
@pytest.mark.parametrize("path", MCP_PATHS)
async def test_a_challenge_names_the_scopes_that_its_tools_need_and_no_others(
    tmp_path: Path, ready: Ready, path: str
) -> None:
    data = ready.in_folder(tmp_path / "data")
    async with open_app(settings_with(FRONTDESK_DATA=data, FRONTDESK_REQUIRE_AUTH=True)) as app:
        asgi = build_application(app)
        said, body = call(MODERN)
        named = challenged(await send(asgi, said, body, path=path))
        with_none = await key(app, "agent-1", "ann", "metrics:read")
        with_all = await key(app, "agent-1", "ann", *named)
        wanted: set[str] = set()
        for bound in tools_by_path(with_login_tools(app, app.operations()))[path]:
            name = tool_name(bound.operation)
            said, body = call(MODERN, name, smallest(input_schema(bound.operation)))
            wanted |= challenged(await send(asgi, said | with_none, body, path=path))
            assert not challenged(await send(asgi, said | with_all, body, path=path)), name
        document = await send(asgi, {}, b"", path=f"/.well-known/oauth-protected-resource{path}", method="GET")
    assert named == wanted
    assert set(document.json["scopes_supported"]) == named


@shows("KEPT-07")
@pytest.mark.parametrize(
    ("path", "scopes"),
    [
        ("/metrics", "metrics:read"),
        ("/api/agents/sessions", "agents:chat agents:read"),
        ("/api/v1/tools", "tools:attach tools:call tools:read"),
        ("/api/v1/schedules/abc/history", "schedules:read schedules:write"),
        ("/api/memories", "memories.read memories.write"),
        ("/api/memories/stats", "memories.read"),
        ("/api/tasks/1/time-entries", "tasks.time"),
        ("/api/user/export", "admin"),
        ("/api/nowhere", ""),
        ("/messages/", "identity:read health:read tools:attach tools:call schedules:read schedules:write"),
        ("/sse", "identity:read health:read tools:attach tools:call schedules:read schedules:write"),
    ],
)
async def test_each_address_asks_for_its_own_scopes(tmp_path: Path, ready: Ready, path: str, scopes: str) -> None:
    data = ready.in_folder(tmp_path / "data")
    async with open_app(settings_with(FRONTDESK_DATA=data, FRONTDESK_REQUIRE_AUTH=True)) as app:
        answer = await send(build_application(app), {}, b"", path=path, method="GET")
    assert (answer.status, challenged(answer)) == (401, set(scopes.split()))


@shows("KEPT-07")
@pytest.mark.parametrize("era", ERAS)
async def test_where_nobody_has_to_prove_who_they_are_a_call_about_ones_own_is_challenged_alike(
    tmp_path: Path, ready: Ready, era: Era
) -> None:
    async with open_app(settings_with(FRONTDESK_DATA=ready.in_folder(tmp_path / "data"))) as app:
        asgi = build_application(app)
        said, body = call(era, "search_tasks")
        answer = await send(asgi, said, body, path="/mcp/memory")
        assert (answer.status, challenged(answer)) == (401, set(scopes_at_path("/mcp/memory")))
        assert 'oauth-protected-resource/mcp/memory"' in answer.headers["www-authenticate"]
        answer = await send(asgi, said, body, path="/api/mcp")
        assert challenged(answer) == (set(rights.PERSON_SCOPES) if answer.status == 401 else set())
        answer = await send(asgi, {}, b"", path="/api/tasks", method="GET")
        assert (answer.status, challenged(answer)) == (401, {"tasks.read", "tasks.write"})
