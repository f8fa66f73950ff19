"""Tests the local platform: discovery, tokens and tool servers, with any input."""

import base64
import json
import socket
from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from mcp_types import TextContent

from frontdesk.agent365.environment import SHARED_APP_ID
from frontdesk.agent365.local_platform import delay_seconds, fill_template
from frontdesk.identity.tokens import unverified_claims
from frontdesk.mcp_client.model import McpServer
from frontdesk.mcp_client.pool import McpClientPool
from tests.requirements import shows
from tests.support.agent365 import SECONDS, LocalPlatform, local_platform
from tests.support.wire import call_upstream

# Discovery: the servers of the manifest, for callers with a valid token


MAIL = {"mcpServerName": "Mail", "publisher": "Contoso", "tools": [{"name": "send", "description": "Sends."}]}
CALENDAR = {"mcpServerName": "Calendar", "mcpServerUniqueName": "calendar-1", "url": "https://calendar.example/mcp"}
OWN = {"mcpServerName": "Own", "audience": " API://Own-App "}
MANIFEST = {"mcpServers": [MAIL, CALENDAR, OWN, {"mcpServerName": "Closed", "enabled": False}]}


@pytest.fixture(scope="module")
def platform() -> Iterator[LocalPlatform]:
    with local_platform(MANIFEST) as running:
        yield running


def part(value: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()


def unsigned(**claims: object) -> dict[str, str]:
    said = {"aud": SHARED_APP_ID, "exp": 4_000_000_000, **claims}
    return {"authorization": f"Bearer {part({'alg': 'none'})}.{part(said)}."}


@shows("A365-LOCAL")
def test_servers_are_given_out_as_they_were_written_without_what_is_for_the_stand_in(platform: LocalPlatform) -> None:
    found = platform.discover()
    assert found.status_code == 200
    assert found.json() == {"mcpServers": [{key: MAIL[key] for key in MAIL if key != "tools"}, CALENDAR, OWN]}


@pytest.mark.parametrize("app_id", ["an app", "ä/../x", "a%2fb", "x\n", "…"])
def test_any_app_id_can_ask(platform: LocalPlatform, app_id: str) -> None:
    assert platform.discover(app_id=app_id).status_code == 200


def test_an_empty_app_id_cannot(platform: LocalPlatform) -> None:
    assert platform.discover(app_id="").status_code == 404


@pytest.mark.parametrize(
    "aud", [SHARED_APP_ID, f"api://{SHARED_APP_ID}", f" {SHARED_APP_ID.upper()} ", [SHARED_APP_ID]]
)
def test_the_shared_audience_may_be_spelt_as_the_platform_takes_it(platform: LocalPlatform, aud: object) -> None:
    assert platform.discover(unsigned(aud=aud)).status_code == 200


@pytest.mark.parametrize(
    ("headers", "check", "why"),
    [
        ({}, "none", f"made for the audience {SHARED_APP_ID}"),
        ({"authorization": ""}, "none", "no token"),
        ({"authorization": "Basic YTpi"}, "scheme", "the word Bearer"),
        ({"authorization": "Bearer"}, "scheme", "the word Bearer"),
        ({"authorization": "Bearer Bearer x.y.z"}, "scheme", "twice"),
        ({"authorization": "Bearer garbage"}, "form", "no JWT"),
        ({"authorization": "Bearer a.b.c"}, "form", "no JWT"),
        ({"authorization": f"Bearer {part({})}.{part([1])}.x"}, "form", "no JWT"),
        (unsigned(exp=1_700_000_000), "expiry", "expired at 2023-11-14T22:13:20"),
        (unsigned(exp=-(10**400)), "expiry", "expired at -1000"),
        (unsigned(exp=float("nan")), "expiry", "expired at nan"),
        (unsigned(exp=None), "expiry", "exp must be a number"),
        (unsigned(exp="tomorrow"), "expiry", "exp must be a number"),
        (unsigned(exp=True), "expiry", "exp must be a number"),
        (unsigned(aud="other"), "audience", f"is for the audience other; expected is {SHARED_APP_ID}"),
        (unsigned(aud=None), "audience", "is for the audience none"),
        (unsigned(aud=["a", 5]), "audience", "is for the audience a, 5"),
        (unsigned(aud='"\r\nx: \ud800'), "audience", "is for the audience"),
        (unsigned(aud=f"{SHARED_APP_ID}x"), "audience", "expected"),
    ],
)
@shows("A365-LOCAL")
def test_a_token_that_is_not_good_is_told_which_check_it_failed(
    platform: LocalPlatform, headers: dict[str, str], check: str, why: str
) -> None:
    found = platform.discover(headers)
    told: Any = found.json()
    assert (found.status_code, told["check"], told["expected"]) == (401, check, {"audience": SHARED_APP_ID})
    assert why in told["error_description"]
    assert found.headers["www-authenticate"].startswith("Bearer error=")
    token = headers.get("authorization", "").rpartition(" ")[2]
    assert not token or token == "Bearer" or token not in found.text
    assert platform.requests()[-1]["token"] == ("none" if check == "none" else told["error_description"])


def test_a_server_of_its_own_audience_takes_no_shared_token_and_others_do(platform: LocalPlatform) -> None:
    refused = platform.rpc("Own", "tools/list")
    assert (refused.status_code, refused.json()["expected"]) == (401, {"audience": "api://own-app"})
    for spelt in ("own-app", "api://own-app", "API://OWN-APP"):
        assert platform.rpc("Own", "tools/list", headers=platform.headers(spelt)).status_code == 200
    assert platform.rpc("Mail", "tools/list").status_code == 200
    assert platform.rpc("Mail", "tools/list", headers=platform.headers("own-app")).status_code == 401


def test_a_server_that_is_switched_off_is_not_there(platform: LocalPlatform) -> None:
    assert platform.rpc("Closed", "tools/list").status_code == 404


def test_without_checks_nobody_needs_a_token() -> None:
    with local_platform(MANIFEST, tokens="off") as platform:
        assert platform.discover({}).status_code == 200
        assert platform.rpc("Own", "tools/list", headers={"authorization": "nonsense"}).status_code == 200
        assert [seen["token"] for seen in platform.requests()] == ["not checked", "not checked"]


def test_where_tokens_must_be_signed_only_those_of_this_platform_are_taken() -> None:
    with local_platform(MANIFEST, tokens="signed") as platform, local_platform(MANIFEST) as other:
        assert platform.discover().status_code == 200
        head, body, signature = platform.token().split(".")
        forged = part({"aud": SHARED_APP_ID, "exp": 4_000_000_000, "appid": "somebody-else"})
        for token in (
            f"{head}.{forged}.{signature}",
            f"{part({'alg': 'none'})}.{body}.",
            f"{part({'alg': 'HS256', 'typ': 'JWT'})}.{body}.{signature}",
            f"{part({'alg': 5, 'kid': []})}.{body}.{signature}",
            f"{part({'alg': 'ES256', 'crit': ['x'], 'x': 1})}.{body}.{signature}",
            f"{head}.{body}.{signature[:-4]}",
            f"{head}.{body}.!!",
            f"{head}.{body}.",
            other.token(),
        ):
            found = platform.discover({"authorization": f"Bearer {token}"})
            assert (found.status_code, found.json()["check"]) == (401, "signature")
        expired = platform.discover(platform.headers(exp=1))
        assert expired.json()["check"] == "expiry"
        assert platform.discover(platform.headers("other")).json()["check"] == "audience"


# Tokens: the grants that agents use, and the checks at the platform's own endpoints


TOKENS_MANIFEST = {"mcpServers": [{"mcpServerName": "Mail"}, {"mcpServerName": "Own", "audience": "api://own"}]}
SHARED = f"{SHARED_APP_ID}/.default"
ON_BEHALF_OF = "urn:ietf:params:oauth:grant-type:jwt-bearer"
EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange"


@pytest.fixture(scope="module")
def tokens_platform() -> Iterator[LocalPlatform]:
    with local_platform(TOKENS_MANIFEST, tokens="signed") as running:
        yield running


def ask(platform: LocalPlatform, path: str = "/oauth2/v2.0/token", login: str = "", **form: str) -> httpx2.Response:
    headers = {"authorization": f"Basic {base64.b64encode(login.encode()).decode()}"} if login else {}
    return platform.http.post(f"{platform.url}{path}", data=form, headers=headers)


def granted(platform: LocalPlatform, **form: str) -> tuple[str, Mapping[str, Any]]:
    found = ask(platform, **form)
    assert found.status_code == 200, found.text
    assert found.headers["cache-control"] == "no-store"
    told = found.json()
    assert (told["token_type"], told["expires_in"]) == ("Bearer", 3600)
    return told["access_token"], unverified_claims(told["access_token"])


@shows("A365-LOCAL")
def test_an_application_gets_a_token_that_is_good_for_what_it_asked(tokens_platform: LocalPlatform) -> None:
    token, claims = granted(tokens_platform, grant_type="client_credentials", client_id="app-1", scope=SHARED)
    assert (claims["aud"], claims["appid"], claims["azp"]) == (SHARED_APP_ID, "app-1", "app-1")
    assert claims["exp"] - claims["iat"] == 3600
    assert "xms_par_app_azp" not in claims
    said = {"authorization": f"Bearer {token}"}
    assert tokens_platform.discover(said).status_code == 200
    assert tokens_platform.rpc("Mail", "tools/list", headers=said).status_code == 200
    assert tokens_platform.rpc("Own", "tools/list", headers=said).json()["check"] == "audience"


def test_a_scope_of_a_servers_own_audience_gives_a_token_for_it(tokens_platform: LocalPlatform) -> None:
    token, claims = granted(
        tokens_platform, grant_type="client_credentials", client_id="a", scope="api://own/Mail.Read"
    )
    assert (claims["aud"], claims["scp"]) == ("api://own", "Mail.Read")
    assert tokens_platform.rpc("Own", "tools/list", headers={"authorization": f"Bearer {token}"}).status_code == 200


def test_a_token_on_behalf_of_somebody_speaks_of_them(tokens_platform: LocalPlatform) -> None:
    theirs = tokens_platform.token("app-1", sub="ann", oid="ann-1", xms_par_app_azp="blueprint-1")
    form = {"grant_type": ON_BEHALF_OF, "requested_token_use": "on_behalf_of", "client_id": "a", "scope": SHARED}
    _, claims = granted(tokens_platform, assertion=theirs, **form)
    assert (claims["sub"], claims["oid"], claims["xms_par_app_azp"]) == ("ann", "ann-1", "blueprint-1")
    assert claims["appid"] == "a"
    _, claims = granted(tokens_platform, assertion=theirs, xms_par_app_azp="blueprint-2", **form)
    assert claims["xms_par_app_azp"] == "blueprint-2"


def test_a_token_is_exchanged_for_one_of_another_audience(tokens_platform: LocalPlatform) -> None:
    theirs = tokens_platform.token("app-1", sub="ann")
    form = {"grant_type": EXCHANGE, "client_id": "a", "subject_token": theirs}
    _, claims = granted(tokens_platform, audience="api://own", **form)
    assert (claims["aud"], claims["sub"]) == ("api://own", "ann")
    _, claims = granted(tokens_platform, scope=SHARED, **form)
    assert claims["aud"] == SHARED_APP_ID


def test_a_tenant_and_a_basic_login_are_taken_too(tokens_platform: LocalPlatform) -> None:
    found = ask(
        tokens_platform, "/t-1/oauth2/v2.0/token", "app%2D2:hush", grant_type="client_credentials", scope=SHARED
    )
    assert unverified_claims(found.json()["access_token"])["appid"] == "app-2"
    assert "hush" not in str(tokens_platform.requests())


@pytest.mark.parametrize(
    ("form", "fault"),
    [
        ({}, "unsupported_grant_type"),
        ({"grant_type": "password"}, "unsupported_grant_type"),
        ({"grant_type": "client_credentials", "scope": SHARED}, "invalid_client"),
        ({"grant_type": "client_credentials", "client_id": "a" * 501, "scope": SHARED}, "invalid_client"),
        ({"grant_type": "client_credentials", "client_id": "a"}, "invalid_scope"),
        ({"grant_type": "client_credentials", "client_id": "a", "scope": ".default"}, "invalid_scope"),
        ({"grant_type": "client_credentials", "client_id": "a", "scope": "x/"}, "invalid_scope"),
        ({"grant_type": "client_credentials", "client_id": "a", "scope": "x/.default y/z"}, "invalid_scope"),
        ({"grant_type": ON_BEHALF_OF, "client_id": "a", "scope": SHARED, "assertion": "x"}, "invalid_request"),
        ({"grant_type": EXCHANGE, "client_id": "a", "scope": SHARED}, "invalid_request"),
        ({"grant_type": EXCHANGE, "client_id": "a", "scope": SHARED, "subject_token": "x"}, "invalid_grant"),
    ],
)
def test_what_cannot_be_granted_is_refused_in_oauths_words(
    tokens_platform: LocalPlatform, form: dict[str, str], fault: str
) -> None:
    found = ask(tokens_platform, **form)
    assert (found.status_code, found.json()["error"]) == (400, fault)
    assert found.json()["error_description"]


def test_an_expired_assertion_is_refused(tokens_platform: LocalPlatform) -> None:
    form = {"grant_type": EXCHANGE, "client_id": "a", "scope": SHARED}
    assert ask(tokens_platform, subject_token=tokens_platform.token(exp=1), **form).json()["error"] == "invalid_grant"


@pytest.mark.parametrize("body", [b"\xff\xfe", b"&".join(b"a=1" for _ in range(200)), b'{"grant_type": 1}'])
def test_what_is_no_form_is_refused(tokens_platform: LocalPlatform, body: bytes) -> None:
    assert tokens_platform.http.post(f"{tokens_platform.url}/oauth2/v2.0/token", content=body).status_code == 400


# Tool servers: real MCP servers, whose tools answer as the manifest says


SCHEMA = {"type": "object", "properties": {"to": {"type": "string"}, "count": {"type": "integer"}}, "required": ["to"]}
TOOLS: list[dict[str, Any]] = [
    {"name": "send", "description": "Sends.", "inputSchema": SCHEMA, "responseTemplate": "To {{ TO }}: {{subject}}!"},
    {"name": "off", "description": "Is not there.", "enabled": False, "responseTemplate": "never"},
    {"name": "any", "description": "Takes all.", "responseTemplate": "{{a}}|{{b}}|{{c}}|{{d}}"},
    {"name": "mute", "description": "Says nothing."},
    {"name": "slow", "description": "Takes its time.", "delayMs": 60_000, "responseTemplate": "at last"},
    {"name": "down", "description": "Fails.", "statusCode": 503, "delayMs": 2000, "responseTemplate": "never"},
    {"name": "gone", "description": "Fails.", "statusCode": 204},
    {"name": "dice", "description": "Fails at times.", "errorRate": 0.5, "responseTemplate": "well"},
    {
        "name": "door",
        "description": "Opens and shuts.",
        "states": [
            {"in": "start", "next": "open", "responseTemplate": "opened by {{who}}"},
            {"in": "open", "next": "start", "responseTemplate": "shut"},
        ],
    },
    {"name": "walk", "description": "In.", "states": [{"in": "open", "responseTemplate": "in"}]},
    {"name": "knock", "description": "Fails.", "states": [{"responseTemplate": "nobody home", "isError": True}]},
]
SERVERS_MANIFEST = {
    "mcpServers": [
        {"mcpServerName": "Mail", "mcpServerUniqueName": "mail-1", "tools": TOOLS},
        {"mcpServerName": "Bare"},
        {"mcpServerName": "a/b ../ä", "tools": TOOLS[:1]},
    ]
}
slept: list[float] = []


async def note_sleep(seconds: float) -> None:
    slept.append(seconds)


@pytest.fixture(scope="module")
def servers_platform() -> Iterator[LocalPlatform]:
    with local_platform(SERVERS_MANIFEST, seed=7, sleep=note_sleep) as running:
        yield running


@asynccontextmanager
async def client(platform: LocalPlatform, mode: str, server: str = "Mail") -> AsyncGenerator[Client]:
    async with (
        httpx2.AsyncClient(headers=platform.headers(), timeout=SECONDS) as http,
        Client(
            streamable_http_client(f"{platform.url}/agents/servers/{server}", http_client=http), mode=mode
        ) as connected,
    ):
        yield connected


@shows("A365-LOCAL")
@pytest.mark.anyio
@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
@pytest.mark.parametrize("server", ["Mail", "Mail/", "mail-1"])
async def test_a_client_of_either_era_lists_and_calls(servers_platform: LocalPlatform, mode: str, server: str) -> None:
    async with client(servers_platform, mode, server) as connected:
        listed = [tool.name for tool in (await connected.list_tools()).tools]
        assert listed == [tool["name"] for tool in TOOLS if tool.get("enabled", True)]
        result = await connected.call_tool("send", {"to": "ann"})
        prompts, resources = await connected.list_prompts(), await connected.list_resources()
        templates = await connected.list_resource_templates()
    assert isinstance(result.content[0], TextContent)
    assert result.content[0].text == "To ann: !"
    assert result.structured_content == {
        "response": "To ann: !",
        "isMock": True,
        "tool": "send",
        "usedArguments": {"to": "ann"},
        "template": "To {{ TO }}: {{subject}}!",
        "missingPlaceholders": ["subject"],
        "state": "start",
    }
    assert (prompts.prompts, resources.resources, templates.resource_templates) == ([], [], [])


@pytest.mark.anyio
async def test_our_own_client_calls_too(servers_platform: LocalPlatform) -> None:
    clients = McpClientPool(timeout=SECONDS)
    server = McpServer("mail", f"{servers_platform.url}/agents/servers/Mail", servers_platform.headers())
    ours = clients.client(server, None, None)
    told = await call_upstream(ours, "send", {"to": "bob"})
    refused = await call_upstream(ours, "send", {"too": "bob"})
    await clients.close()
    assert told.ok
    assert "To bob" in told.text
    assert not refused.ok
    assert "did you mean 'to'?" in refused.text


@pytest.mark.anyio
@pytest.mark.parametrize("name", ["off", "unknown"])
async def test_a_tool_that_is_switched_off_is_unknown(servers_platform: LocalPlatform, name: str) -> None:
    async with client(servers_platform, "legacy") as connected:
        with pytest.raises(MCPError, match=f"Unknown tool: {name}; Mail has: send"):
            await connected.call_tool(name, {})


def test_what_clients_send_besides_is_answered(servers_platform: LocalPlatform) -> None:
    assert servers_platform.rpc("Mail", "ping").json()["result"] == {}
    assert servers_platform.rpc("Mail", "logging/setLevel", {"level": "debug"}).json()["result"] == {}
    url, notice = (
        f"{servers_platform.url}/agents/servers/Mail",
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
    )
    assert servers_platform.http.post(url, json=notice, headers=servers_platform.headers()).status_code == 202
    assert servers_platform.requests()[-1]["rpcMethod"] == "notifications/initialized"
    assert servers_platform.http.get(url, headers=servers_platform.headers()).status_code == 405


def test_a_server_without_tools_lists_none(servers_platform: LocalPlatform) -> None:
    assert servers_platform.rpc("Bare", "tools/list").json()["result"]["tools"] == []


def test_a_name_of_any_kind_is_found_when_it_is_encoded(servers_platform: LocalPlatform) -> None:
    assert servers_platform.call("a/b ../ä", "send", to="x")["content"][0]["text"] == "To x: !"


@pytest.mark.parametrize("name", ["mail", "MAIL", "Mail ", "../Mail", "x\ny", "%2e%2e", "Mail/x", "Mail\0"])
def test_an_unknown_server_is_told_which_there_are(servers_platform: LocalPlatform, name: str) -> None:
    found = servers_platform.rpc(name, "tools/list")
    assert found.status_code == 404
    assert found.json()["servers"] == ["Mail", "Bare", "a/b ../ä"]


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({}, "to: is missing (string)"),
        ({"to": 5}, "to: expected string, got 5"),
        ({"to": "x", "count": "y"}, "integer"),
    ],
)
def test_arguments_that_do_not_fit_are_an_error_of_the_tool(
    servers_platform: LocalPlatform, arguments: dict[str, object], problem: str
) -> None:
    result = servers_platform.call("Mail", "send", **arguments)
    assert result["isError"]
    assert problem in result["content"][0]["text"]


def test_values_are_put_in_as_text_once_and_are_never_looked_at_again(servers_platform: LocalPlatform) -> None:
    values: dict[str, object] = {"A": "{{b}} {{c}}", "b": {"x": ["ü", None]}, "C": None, "c": "own case first"}
    result = servers_platform.call("Mail", "any", **values)
    assert result["content"][0]["text"] == '{{b}} {{c}}|{"x": ["ü", null]}|own case first|'
    assert result["structuredContent"]["missingPlaceholders"] == ["d"]


def test_half_a_character_and_depth_without_end_break_nothing(servers_platform: LocalPlatform) -> None:
    assert "�" in servers_platform.call("Mail", "any", a="\ud800")["content"][0]["text"]
    deep: object = "x"
    for _ in range(200):
        deep = [deep]
    result = servers_platform.call("Mail", "any", a=deep)
    assert result["isError"]
    assert "nested too deep" in result["content"][0]["text"]


def test_what_a_few_placeholders_make_of_a_long_value_has_an_end() -> None:
    tools = [{"name": "echo", "description": "Echoes.", "responseTemplate": "{{a}}" * 100}]
    with local_platform({"mcpServers": [{"mcpServerName": "S", "tools": tools}]}) as platform:
        text = platform.call("S", "echo", a="x" * 1_000_000)["content"][0]["text"]
    assert len(text) == 4 * 1024 * 1024


def test_a_tool_of_which_nothing_is_said_says_so(servers_platform: LocalPlatform) -> None:
    assert "says nothing" in servers_platform.call("Mail", "mute")["content"][0]["text"]


def test_a_delay_is_waited_for(servers_platform: LocalPlatform) -> None:
    slept.clear()
    assert servers_platform.call("Mail", "slow")["content"][0]["text"] == "at last"
    assert slept == [60.0]


def test_a_status_code_fails_the_request_itself(servers_platform: LocalPlatform) -> None:
    slept.clear()
    failed = servers_platform.rpc("Mail", "tools/call", {"name": "down", "arguments": {}})
    assert (failed.status_code, slept) == (503, [2.0])
    assert "statusCode 503" in failed.text
    empty = servers_platform.rpc("Mail", "tools/call", {"name": "gone", "arguments": {}})
    assert (empty.status_code, empty.content) == (204, b"")
    assert [seen["status"] for seen in servers_platform.requests()[-2:]] == [503, 204]


def test_chance_is_the_same_with_the_same_seed() -> None:
    def fates() -> list[bool]:
        with local_platform(SERVERS_MANIFEST, seed=3) as platform:
            return [platform.call("Mail", "dice").get("isError", False) for _ in range(30)]

    first = fates()
    assert first == fates()
    assert set(first) == {True, False}


@shows("A365-LOCAL")
def test_the_state_of_a_server_is_each_agents_own() -> None:
    ann, bob = {"x-ms-agentid": "ann"}, {"x-ms-agentid": "bob"}
    with local_platform(SERVERS_MANIFEST) as platform:

        def said(tool: str, who: dict[str, str]) -> tuple[str, str]:
            result = platform.call("Mail", tool, who, who="me")
            return result["content"][0]["text"], result["structuredContent"]["state"]

        assert said("walk", ann) == ("walk has no answer in the state 'start', only in: open", "start")
        assert said("door", ann) == ("opened by me", "open")
        assert said("walk", ann) == ("in", "open")
        assert said("walk", bob)[1] == "start"
        assert said("walk", platform.headers(appid="ann")) == ("in", "open")
        assert said("door", ann) == ("shut", "start")
        knocked = platform.call("Mail", "knock", ann)
        assert (knocked["isError"], knocked["content"][0]["text"]) == (True, "nobody home")


# Any input: the platform survives it, and answers this machine only


HOSTILE_TOOLS = [{"name": "send", "description": "Sends.", "responseTemplate": "sent to {{to}}"}]
HOSTILE_MANIFEST = {"mcpServers": [{"mcpServerName": "Mail", "tools": HOSTILE_TOOLS}]}
ENDPOINTS = ["/agents/servers/Mail", "/agents/real-time-threat-protection/chat-message", "/oauth2/v2.0/token"]
BROKEN = [
    b"",
    b"null",
    b"[]",
    b"\xff\xfe",
    b"{",
    b"[" * 100_000,
    b'{"jsonrpc":"2.0","id":1,"method":5}',
    b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":[]}}',
    b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"send","arguments":[]}}',
    b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"\\ud800"}}',
    b'{"jsonrpc":"2.0","id":1,"method":"\\ud800"}',
    b'{"jsonrpc":"2.0","id":NaN,"method":"ping"}',
]
JSON = {"content-type": "application/json"}


@pytest.fixture(scope="module")
def hostile_platform() -> Iterator[LocalPlatform]:
    with local_platform(HOSTILE_MANIFEST) as running:
        yield running


@pytest.mark.parametrize("body", BROKEN)
@pytest.mark.parametrize("path", [*ENDPOINTS, "/faults"])
@shows("A365-LOCAL")
def test_a_broken_body_is_refused_and_nothing_breaks(hostile_platform: LocalPlatform, path: str, body: bytes) -> None:
    method = "PUT" if path == "/faults" else "POST"
    found = hostile_platform.http.request(
        method, f"{hostile_platform.url}{path}", content=body, headers={**hostile_platform.headers(), **JSON}
    )
    assert found.status_code in {200, 400}
    assert found.status_code == 400 or "error" in found.json()
    assert hostile_platform.requests()


@pytest.mark.parametrize("path", [*ENDPOINTS, "/faults"])
def test_a_huge_body_is_refused(hostile_platform: LocalPlatform, path: str) -> None:
    method = "PUT" if path == "/faults" else "POST"
    body = b" " * (4 * 1024 * 1024 + 1)
    found = hostile_platform.http.request(
        method, f"{hostile_platform.url}{path}", content=body, headers={**hostile_platform.headers(), **JSON}
    )
    assert found.status_code == 413


def test_a_head_without_end_is_cut_off(hostile_platform: LocalPlatform) -> None:
    port = int(hostile_platform.url.rpartition(":")[2])
    with socket.create_connection(("127.0.0.1", port), SECONDS) as connection:
        connection.sendall(b"GET /health HTTP/1.1\r\nhost: 127.0.0.1\r\n")
        try:
            for _ in range(100):
                connection.sendall(b"x-filler: " + b"x" * 8000 + b"\r\n")
            assert connection.recv(1) == b""
        except (ConnectionResetError, BrokenPipeError):
            pass


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1.evil.example", "10.0.0.1:80", "", "localhost.evil.example"]
)
def test_a_host_that_is_not_this_machine_is_not_answered(hostile_platform: LocalPlatform, host: str) -> None:
    for path in ("/requests", "/agents/v2/x/mcpServers", "/oauth2/v2.0/token"):
        assert hostile_platform.http.get(f"{hostile_platform.url}{path}", headers={"host": host}).status_code == 421


@pytest.mark.parametrize("host", ["localhost", "localhost:5309", "127.0.0.1", "[::1]:5309"])
def test_every_name_of_this_machine_is(hostile_platform: LocalPlatform, host: str) -> None:
    assert hostile_platform.http.get(f"{hostile_platform.url}/health", headers={"host": host}).status_code == 200


@pytest.mark.parametrize(("method", "path"), [("GET", "/requests"), ("PUT", "/faults"), ("GET", "/chats")])
def test_a_page_from_elsewhere_controls_nothing(hostile_platform: LocalPlatform, method: str, path: str) -> None:
    for origin, status in (("https://evil.example", 403), ("null", 403), ("http://localhost:3000", 200)):
        found = hostile_platform.http.request(
            method, f"{hostile_platform.url}{path}", headers={"origin": origin}, content=b"{}"
        )
        assert found.status_code == status


@pytest.mark.parametrize(
    "path", ["/agents/v2//mcpServers", "/agents", "//", "/agents/servers/", "/x/y/z", "/%00", "/faults/"]
)
def test_other_addresses_are_not_found(hostile_platform: LocalPlatform, path: str) -> None:
    assert hostile_platform.http.get(f"{hostile_platform.url}{path}").status_code == 404


@pytest.mark.parametrize(
    ("method", "path"), [("POST", "/health"), ("GET", ENDPOINTS[1]), ("GET", ENDPOINTS[2]), ("POST", "/faults")]
)
def test_another_method_is_told_which_there_are(hostile_platform: LocalPlatform, method: str, path: str) -> None:
    found = hostile_platform.http.request(method, f"{hostile_platform.url}{path}")
    assert found.status_code == 405
    assert found.headers["allow"] in found.json()["error_description"]


def test_headers_as_long_as_can_be_are_remembered_in_part(hostile_platform: LocalPlatform) -> None:
    long = {"x-ms-agentid": "a" * 20_000, "user-agent": "(" * 20_000, "x-ms-correlation-id": "ä".encode() * 100}
    hostile_platform.discover({**hostile_platform.headers(), **{name: str(value) for name, value in long.items()}})
    seen = hostile_platform.requests()[-1]
    assert (len(seen["agentId"]), seen["orchestrator"]) == (1000, None)
    assert max(map(len, seen["headers"].values())) <= 1000


@settings(max_examples=200)
@given(
    st.text(alphabet="{} abA\n", max_size=60),
    st.dictionaries(st.text("abA ", max_size=2), st.text("{}ab", max_size=8) | st.integers() | st.none()),
)
def test_whatever_the_template_every_placeholder_is_filled_or_named(template: str, values: dict[str, object]) -> None:
    filled = fill_template(template, values)
    assert fill_template(template, {}).missing or filled.text == template
    assert fill_template(template.replace("{", "(").replace("}", ")"), values).missing == ()
    assert set(filled.missing) <= set(fill_template(template, {}).missing)


def test_a_value_is_not_expanded_again() -> None:
    assert fill_template("{{a}}", {"a": "{{b}}", "b": "no"}).text == "{{b}}"
    assert fill_template("{{{{a}}}}", {"a": "b", "b": "no"}).text == "{{b}}"
    assert json.loads(fill_template("{{a}}", {"a": {"x": 1}}).text) == {"x": 1}


@pytest.mark.parametrize(("asked", "waited"), [(-5, 0.0), (0, 0.0), (250, 0.25), (10**12, 60.0)])
def test_no_delay_is_longer_than_a_minute(asked: int, waited: float) -> None:
    assert delay_seconds(asked) == waited
