"""Tests the platform's addresses, from its defaults and the environment, and the servers that it names."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from microsoft_agents_a365.runtime import environment_utils as runtime
from microsoft_agents_a365.tooling.utils import utility as tooling

from frontdesk.agent365 import (
    InvalidArgument,
    build_mcp_server_url,
    get_chat_history_endpoint,
    get_mcp_base_url,
    get_mcp_platform_authentication_scope,
    get_observability_authentication_scope,
    get_tooling_gateway_for_digital_worker,
    is_development_environment,
)
from frontdesk.agent365.discovery import ServerDiscovery
from frontdesk.agent365.environment import ENVIRONMENT_VARIABLES, platform_base_url
from frontdesk.agent365.errors import DiscoveryFailed, PlatformUnreachable
from frontdesk.mcp_client.connections import PLAIN_URL
from tests.requirements import shows
from tests.support.agent365 import LocalPlatform, local_platform

# The platform's addresses


BASE = "https://agent365.svc.cloud.microsoft"
BASES = st.sampled_from(["", "https://host", "http://127.0.0.1:5309/", "https://host/a/b/"])
NAMES = st.text(st.characters(), max_size=300) | st.sampled_from(
    ["..", ".", "../x?y=1", "%2e%2e", "a/b", "a\\b", "a#b", "a?b", "@evil", "//evil", "a\r\nb", "\x00", "\ud800", " "]
)


def test_each_purpose_has_its_address() -> None:
    assert get_tooling_gateway_for_digital_worker("app", {}) == f"{BASE}/agents/v2/app/mcpServers"
    assert get_mcp_base_url({}) == f"{BASE}/agents/servers"
    assert build_mcp_server_url("mail", {}) == f"{BASE}/agents/servers/mail"
    assert get_chat_history_endpoint({}) == f"{BASE}/agents/real-time-threat-protection/chat-message"


@shows("A365-HOSTILE")
@given(NAMES, BASES)
@settings(deadline=None)
def test_whatever_goes_into_an_address_stays_one_part_of_its_path(name: str, base: str) -> None:
    environ = {"MCP_PLATFORM_ENDPOINT": base}
    start = base.rstrip("/") or BASE
    for make, before, after in (
        (get_tooling_gateway_for_digital_worker, "/agents/v2/", "/mcpServers"),
        (build_mcp_server_url, "/agents/servers/", ""),
    ):
        try:
            url = make(name, environ)
        except InvalidArgument:
            assert not name.strip(".") or len(name) > 256
            continue
        parts, expected = urlsplit(url), urlsplit(f"{start}{before}name{after}")
        assert (parts.scheme, parts.netloc, parts.query, parts.fragment) == (expected.scheme, expected.netloc, "", "")
        assert parts.path.count("/") == expected.path.count("/")
        part = parts.path.removeprefix(urlsplit(start).path + before).removesuffix(after)
        assert unquote(part) == name.encode(errors="replace").decode()
        assert PLAIN_URL.fullmatch(url)


@pytest.mark.parametrize("name", ["", ".", "..", "." * 300, "x" * 257])
def test_what_cannot_be_a_part_of_a_path_is_refused(name: str) -> None:
    with pytest.raises(InvalidArgument, match="agentic_app_id must be 1 to 256 characters"):
        get_tooling_gateway_for_digital_worker(name, {})
    with pytest.raises(ValueError, match="the name of an MCP server must be"):
        build_mcp_server_url(name, {})


# The platform's variables in the environment


SHARED = "ea9ffc3e-8a23-4a7d-836d-234d7c7565c1/.default"
OBSERVED = "api://9b975845-388f-4429-889e-eab1ef63949c/.default"


@shows("A365-DISCOVER")
@pytest.mark.parametrize(
    ("environ", "developing"),
    [
        ({}, True),
        ({"PYTHON_ENVIRONMENT": "Production"}, False),
        ({"PYTHON_ENVIRONMENT": "dEvElOpMeNt", "ENVIRONMENT": "Production"}, True),
        ({"PYTHON_ENVIRONMENT": "", "ENVIRONMENT": "Production"}, False),
        ({"ENVIRONMENT": "Staging", "ASPNETCORE_ENVIRONMENT": "Development"}, False),
        ({"ASPNETCORE_ENVIRONMENT": "Production", "DOTNET_ENVIRONMENT": "Development"}, False),
        ({"DOTNET_ENVIRONMENT": "Production"}, False),
        ({"DOTNET_ENVIRONMENT": "Developmentt"}, False),
    ],
)
def test_the_first_variable_that_says_anything_counts(environ: dict[str, str], developing: bool) -> None:
    assert is_development_environment(environ) is developing


@shows("KEPT-15")
@pytest.mark.parametrize("said", [None, "", "Production", "dEvElOpMeNt", "Staging"])
@pytest.mark.parametrize("name", ["PYTHON_ENVIRONMENT", "ENVIRONMENT", "ASPNETCORE_ENVIRONMENT", "DOTNET_ENVIRONMENT"])
def test_the_environment_is_told_as_by_the_sdks_tooling(
    name: str, said: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable in ENVIRONMENT_VARIABLES:
        monkeypatch.delenv(variable, raising=False)
    if said is not None:
        monkeypatch.setenv(name, said)
    assert is_development_environment() is tooling.is_development_environment()
    if name == "PYTHON_ENVIRONMENT" and said:
        assert is_development_environment() is runtime.is_development_environment()
    # Without settings the SDK contradicts itself; the table of differences describes it.
    assert said or (tooling.is_development_environment(), runtime.is_development_environment()) == (True, False)


def test_scopes_have_their_defaults_and_variables() -> None:
    assert get_mcp_platform_authentication_scope({}) == [SHARED]
    assert get_mcp_platform_authentication_scope({"MCP_PLATFORM_AUTHENTICATION_SCOPE": ""}) == [SHARED]
    assert get_mcp_platform_authentication_scope({"MCP_PLATFORM_AUTHENTICATION_SCOPE": "a/b"}) == ["a/b"]
    assert get_observability_authentication_scope({}) == [OBSERVED]
    assert get_observability_authentication_scope({"A365_OBSERVABILITY_SCOPE_OVERRIDE": " "}) == [OBSERVED]
    assert get_observability_authentication_scope({"A365_OBSERVABILITY_SCOPE_OVERRIDE": " a/b\n"}) == ["a/b"]


@pytest.mark.parametrize(
    ("said", "base"),
    [
        ("", "https://agent365.svc.cloud.microsoft"),
        ("  ", "https://agent365.svc.cloud.microsoft"),
        ("https://host", "https://host"),
        ("https://host//", "https://host"),
        (" http://127.0.0.1:5309/base/ ", "http://127.0.0.1:5309/base"),
    ],
)
def test_the_address_has_no_slash_at_its_end(said: str, base: str) -> None:
    assert platform_base_url({"MCP_PLATFORM_ENDPOINT": said}) == base


@pytest.mark.parametrize(
    "said",
    ["host", "ftp://host", "https://", "https://user:secret@host", "https://host?a=b", "https://host#a", "http://[::1"],
)
def test_what_is_no_plain_address_is_refused_unquoted(said: str) -> None:
    with pytest.raises(InvalidArgument, match="MCP_PLATFORM_ENDPOINT must be") as refused:
        platform_base_url({"MCP_PLATFORM_ENDPOINT": said})
    assert "secret" not in str(refused.value)


@shows("A365-HOSTILE")
@given(st.text(st.characters()) | st.text(st.characters()).map(lambda text: f"https://host{text}"))
@example("https://ho st")
@example("https://host/a\r\nb")
@example("https://höst")
@settings(deadline=None)
def test_whatever_it_is_the_address_is_one_line_of_visible_text_or_refused(said: str) -> None:
    try:
        base = platform_base_url({"MCP_PLATFORM_ENDPOINT": said})
    except InvalidArgument:
        return
    assert re.fullmatch("[!-~]+", base)
    assert urlsplit(base).hostname


# Discovery at the platform: servers, the token for each, and steps that a person has to take first


SERVERS: list[dict[str, Any]] = [
    {"mcpServerName": "mail"},
    {"mcpServerName": "files", "audience": "API://Files", "scope": "Read"},
    {
        "mcpServerName": "crm",
        "connectivityStatus": "Pending",
        "missingConnectionsUrl": "https://connect.example/crm",
    },
    {"mcpServerName": "calendar", "connectivityStatus": "READY"},
]


class Tokens:
    """Fetches tokens of a platform; records the scopes."""

    def __init__(self, platform: LocalPlatform) -> None:
        self.platform = platform
        self.asked: list[tuple[str, bool]] = []
        self.stale = False

    async def __call__(self, scope: str, refused: str | None) -> str:
        self.asked.append((scope, refused is not None))
        return "x.y.z" if self.stale and refused is None else self.platform.token()


@pytest.fixture(scope="module")
def platform() -> Iterator[LocalPlatform]:
    with local_platform({"mcpServers": SERVERS}) as running:
        yield running


def environ(platform: LocalPlatform, **more: str) -> Mapping[str, str]:
    return {"PYTHON_ENVIRONMENT": "Production", "MCP_PLATFORM_ENDPOINT": platform.url, **more}


@shows("A365-TOKENS")
async def test_each_server_takes_the_token_of_its_audience(platform: LocalPlatform) -> None:
    tokens = Tokens(platform)
    found = await ServerDiscovery("app", None, tokens, environ(platform)).find()
    assert [(server.name, server.scope) for server in found.servers] == [
        ("mail", SHARED),
        ("files", "api://files/Read"),
        ("calendar", SHARED),
    ]
    assert all(server.fetched and server.bearer is None for server in found.servers)
    assert tokens.asked == [(SHARED, False)]


async def test_a_token_that_is_set_is_for_discovery_and_for_the_servers_that_share_its_audience(
    platform: LocalPlatform,
) -> None:
    token = platform.token()
    found = await ServerDiscovery("app", token, None, environ(platform)).find()
    assert [(server.name, server.bearer, server.fetched) for server in found.servers] == [
        ("mail", token, False),
        ("calendar", token, False),
    ]
    assert token not in repr(found)


@shows("A365-TOKENS")
async def test_where_tokens_are_fetched_the_one_that_is_set_asks_for_servers_and_calls_none(
    platform: LocalPlatform,
) -> None:
    tokens = Tokens(platform)
    discovery = ServerDiscovery("app", platform.token(), tokens, environ(platform))
    found = await discovery.find()
    assert [(server.bearer, server.fetched) for server in found.servers] == [(None, True)] * 3
    assert discovery.with_token("mail", "mail", "https://mail.example", SHARED) == replace(
        found.servers[0], url="https://mail.example"
    )
    assert tokens.asked == []


async def test_where_tokens_are_fetched_one_that_is_set_and_has_expired_is_in_nobodys_way(
    platform: LocalPlatform,
) -> None:
    tokens, expired = Tokens(platform), platform.token(exp=1)
    assert len((await ServerDiscovery("app", expired, tokens, environ(platform)).find()).servers) == 3
    assert tokens.asked == [(SHARED, True)]
    with pytest.raises(DiscoveryFailed, match="401"):
        await ServerDiscovery("app", expired, None, environ(platform)).find()


async def test_servers_that_cannot_be_used_are_left_out_and_told(platform: LocalPlatform) -> None:
    found = await ServerDiscovery("app", platform.token(), None, environ(platform)).find()
    assert [server.name for server in found.servers] == ["mail", "calendar"]
    waiting, wanting = found.notes
    assert "['crm'] are Pending: connect the accounts they need at https://connect.example/crm" in waiting
    assert "'files'" in wanting
    assert "FRONTDESK_PLATFORM_OAUTH" in wanting


async def test_a_token_that_the_platform_refuses_is_renewed_once(platform: LocalPlatform) -> None:
    tokens = Tokens(platform)
    tokens.stale = True
    assert (await ServerDiscovery("app", None, tokens, environ(platform)).find()).servers
    assert tokens.asked == [(SHARED, False), (SHARED, True)]
    platform.fault("discovery", status=403)
    try:
        with pytest.raises(DiscoveryFailed, match="403"):
            await ServerDiscovery("app", None, Tokens(platform), environ(platform)).find()
    finally:
        platform.mend()


async def test_what_is_missing_or_away_is_said(platform: LocalPlatform) -> None:
    with pytest.raises(InvalidArgument, match="FRONTDESK_PLATFORM_TOKEN or FRONTDESK_PLATFORM_OAUTH"):
        await ServerDiscovery("app", None, None, environ(platform)).find()
    nowhere = environ(platform, MCP_PLATFORM_ENDPOINT="http://127.0.0.1:1")
    with pytest.raises(PlatformUnreachable):
        await ServerDiscovery("app", "a.b.c", None, nowhere).find()


@shows("A365-TOKENS")
async def test_in_development_the_manifest_names_servers_and_variables_hold_their_tokens(tmp_path: Path) -> None:
    tmp_path.joinpath("ToolingManifest.json").write_text(json.dumps({"mcpServers": SERVERS}))
    said = {"BEARER_TOKEN": "Bearer shared", "BEARER_TOKEN_CALENDAR": "own"}
    found = await ServerDiscovery("app", None, None, said).find()
    assert {server.name: server.bearer for server in found.servers} == {
        "mail": "shared",
        "files": "shared",
        "calendar": "own",
    }
    assert found.notes[1] == "'files' has an audience of its own, and only BEARER_TOKEN is set; set BEARER_TOKEN_FILES"
    found = await ServerDiscovery("app", None, None, {}).find()
    assert [(server.bearer, server.fetched) for server in found.servers] == [(None, False)] * 3
