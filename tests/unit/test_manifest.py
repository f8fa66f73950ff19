"""Manifests of editors and of Agent 365 projects, and the messages for those that make no sense."""

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frontdesk.errors import ConfigurationError, Invalid
from frontdesk.mcp_client.model import OAuthConfig, RemoteTool
from frontdesk.settings import ToolServer
from frontdesk.tools.manifest import parse_manifest, read_manifest
from frontdesk.tools.servers import (
    ServerOrigin,
    ServerSpec,
    Transport,
    distinct_server_names,
    server_name,
    spec_from_settings,
    to_mcp_server,
)
from tests.requirements import shows

SECRETS = {"TOKEN": "s3cret", "EMPTY": ""}


def only(document: object) -> ServerSpec:
    [found] = parse_manifest(document, "m.json")
    return found


def test_the_common_form_is_read(tmp_path: Path) -> None:
    path = tmp_path / "mcp.json"
    servers = {
        "files": {"command": "npx", "args": ["-y", "files"], "env": {"KEY": "${TOKEN}", "PORT": 7}},
        "Mail Tools_2": {"type": "streamable-http", "url": "https://mail.example/mcp", "headers": {"x": "${TOKEN}"}},
        "old": {"type": "sse", "url": "https://old.example/sse"},
        "off": {"command": "x", "disabled": True},
    }
    path.write_text(json.dumps({"mcpServers": servers, "inputs": []}))
    files, mail, old = read_manifest(path)
    assert (files.name, files.transport) == ("files", Transport.STDIO)
    assert (files.command, files.args) == ("npx", ("-y", "files"))
    assert files.env == {"KEY": "${TOKEN}", "PORT": "7"}
    assert (mail.name, mail.transport, mail.headers) == ("Mail-Tools-2", Transport.HTTP, {"x": "${TOKEN}"})
    assert (old.transport, old.origin) == (Transport.SSE, ServerOrigin.MANIFEST)


def test_vs_codes_form_is_read() -> None:
    found = only({"servers": {"git": {"type": "stdio", "command": "git-mcp", "env": {"K": "${env:TOKEN}"}}}})
    assert to_mcp_server(found, SECRETS).env == {"K": "s3cret"}


def test_agent_365s_form_is_read_and_stands_at_the_platform_where_no_address_is_given() -> None:
    entries = [
        {"mcpServerName": "mcp_../MailTools", "mcpServerUniqueName": "unlike", "scope": "McpServers.Mail.All"},
        {"mcpServerName": "mcp_Files", "url": "https://files.example/mcp", "audience": "api://x"},
    ]
    mail, files = parse_manifest({"mcpServers": entries}, "ToolingManifest.json")
    platform = "https://agent365.svc.cloud.microsoft/agents/servers/mcp_..%2FMailTools"
    assert (mail.name, to_mcp_server(mail, {}).url) == ("mcp-MailTools", platform)
    for endpoint in ("http://localhost:1", "http://localhost:1/"):
        local = to_mcp_server(mail, {"MCP_PLATFORM_ENDPOINT": endpoint})
        assert local.url == "http://localhost:1/agents/servers/mcp_..%2FMailTools"
    assert to_mcp_server(files, {}).url == "https://files.example/mcp"


@shows("KEPT-07")
@pytest.mark.parametrize(
    ("url", "headers", "endpoint", "sends"),
    [
        ("https://agent365.svc.cloud.microsoft/agents/servers/mail", {}, None, True),
        ("https://AGENT365.svc.cloud.microsoft:443/else", {}, "http://localhost:1", True),
        ("http://localhost:1/agents/servers/mail", {}, "http://localhost:1/", True),
        ("http://localhost:1/agents/servers/mail", {}, None, False),
        ("https://agent365.svc.cloud.microsoft.evil.example/mail", {}, None, False),
        ("http://agent365.svc.cloud.microsoft/mail", {}, None, False),
        ("https://files.example/mcp", {}, None, False),
        ("https://files.example/mcp", {"X-MS-AgentId": " "}, None, True),
    ],
)
def test_agent_365s_hosts_and_marked_servers_are_told_which_agent_calls(
    url: str, headers: Mapping[str, str], endpoint: str | None, sends: bool
) -> None:
    server = to_mcp_server(ServerSpec("mail", url=url, headers=headers), {"MCP_PLATFORM_ENDPOINT": endpoint or ""})
    assert (server.sends_agent_id, server.headers) == (sends, {})


def test_a_server_that_the_platform_names_is_one_of_agent_365s() -> None:
    assert to_mcp_server(
        ServerSpec("mail", url="https://mail.example/", origin=ServerOrigin.PLATFORM), {}
    ).sends_agent_id


@shows("A365-TOKENS")
@pytest.mark.parametrize(
    ("environ", "shown"),
    [
        ({}, None),
        ({"BEARER_TOKEN": "shared"}, "Bearer shared"),
        ({"BEARER_TOKEN": "shared", "BEARER_TOKEN_MCP_MAIL-TOOLS": "bEARER own"}, "Bearer own"),
        ({"BEARER_TOKEN": "shared", "BEARER_TOKEN_MCP_MAIL-TOOLS": ""}, "Bearer shared"),
        ({"BEARER_TOKEN": "shared", "ENVIRONMENT": "DEVELOPMENT"}, "Bearer shared"),
        ({"BEARER_TOKEN": "shared", "ENVIRONMENT": "Production"}, None),
        ({"BEARER_TOKEN": "shared", "PYTHON_ENVIRONMENT": "Staging", "ENVIRONMENT": "Development"}, None),
    ],
)
def test_in_development_a_variable_holds_the_token_for_the_platforms_own_address_and_for_no_other(
    environ: Mapping[str, str], shown: str | None
) -> None:
    entries: list[dict[str, Any]] = [
        {"mcpServerName": "mcp_Mail-Tools"},
        {"mcpServerName": "mcp_Mail-Tools 2", "url": "https://elsewhere.example/mcp"},
        {"mcpServerName": "own", "headers": {"Authorization": "Basic x"}},
        {"mcpServerName": "theirs", "user_token": True},
    ]
    at_platform, *others = (to_mcp_server(spec, environ) for spec in parse_manifest({"mcpServers": entries}, "m.json"))
    assert at_platform.headers.get("authorization") == shown
    assert [server.headers for server in others] == [{}, {"Authorization": "Basic x"}, {}]


def test_a_server_of_the_platform_gets_at_no_variable() -> None:
    said = "https://evil.example/${TOKEN}"
    spec = ServerSpec("evil", url=said, headers={"x": "${TOKEN}"}, origin=ServerOrigin.PLATFORM)
    server = to_mcp_server(spec, SECRETS)
    assert (server.url, server.headers) == (said, {"x": "${TOKEN}"})
    with pytest.raises(Invalid, match="address"):
        ServerSpec("evil", url="${TOKEN}", origin=ServerOrigin.PLATFORM)


def test_tools_that_are_listed_are_taken_and_names_alone_are_not() -> None:
    schema: dict[str, Any] = {"type": "object", "properties": {"a": {}}}
    tools: list[dict[str, Any]] = [{"name": "one", "description": "One.", "inputSchema": schema}, {"name": "two"}]
    found = only({"mcpServers": {"s": {"url": "https://s.example", "tools": tools}}})
    assert found.tools == (RemoteTool("one", "One.", schema), RemoteTool("two", "", {"type": "object"}))
    assert only({"mcpServers": {"s": {"url": "https://s.example", "tools": ["*"]}}}).tools is None


@pytest.mark.parametrize(
    ("document", "said"),
    [
        ([], "m.json is no tools manifest"),
        ({"tools": {}}, "mcpServers"),
        ({"mcpServers": 7}, "m.json: mcpServers must be an object or a list"),
        ({"mcpServers": {"s": 7}}, "m.json: mcpServers.s"),
        ({"mcpServers": {"s": {"command": "x", "args": "y"}}}, "m.json: mcpServers.s.args"),
        ({"mcpServers": {"s": {"url": "x", "tools": [{"name": 1}]}}}, "m.json: mcpServers.s.tools.0.name"),
        ({"mcpServers": {"s": {"url": "ftp://x"}}}, r"m.json: mcpServers.s: .*http\(s\)"),
        ({"mcpServers": {"s": {"url": "https://a:b@x"}}}, "mcpServers.s: .*without a user name"),
        ({"mcpServers": {"s": {"type": "carrier-pigeon", "url": "https://x"}}}, "mcpServers.s.type: 'carrier-pigeon'"),
        ({"mcpServers": {"s": {"type": "stdio"}}}, "needs a command"),
        ({"mcpServers": {"four": {"headers": {"x": "y"}}}}, "mcpServers.four: 'four' has neither url nor command"),
        ({"servers": {"four": {"type": "http"}}}, "servers.four: 'four' has neither url nor command"),
        ({"servers": [{"name": "four"}]}, "'four' has neither url nor command"),
        ({"mcpServers": {"host": {"url": "https://x"}}}, "cannot be a tool server's name"),
        ({"mcpServers": {"!!": {"url": "https://x"}}}, "cannot be a tool server's name"),
        ({"mcpServers": {"a_b": {"url": "https://x"}, "a b": {"url": "https://y"}}}, "already called 'a-b'"),
        ({"mcpServers": [{"url": "https://x"}]}, r"m.json: mcpServers\[0\] needs mcpServerName"),
        ({"mcpServers": [{"mcpServerName": "s", "url": 7}]}, r"mcpServers\[0\] \(s\).url"),
    ],
)
def test_a_mistake_is_told_with_its_place(document: object, said: str) -> None:
    with pytest.raises(ConfigurationError, match=said):
        parse_manifest(document, "m.json")


@pytest.mark.parametrize(("content", "said"), [(b"{", "not valid JSON"), (b"\xff", "not valid JSON"), (None, "read")])
def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, content: bytes | None, said: str) -> None:
    path = tmp_path / "m.json"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ConfigurationError, match=f"m.json.*{said}"):
        read_manifest(path)


KEYS = ["mcpServers", "servers", "url", "command", "args", "env", "tools", "name", "mcpServerName", "type"]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=4),
    max_leaves=10,
)


@given(JSON)
def test_no_document_is_so_strange_that_it_is_more_than_a_mistake(document: object) -> None:
    found = parsed_or_refused({"mcpServers": document})
    assert "m.json" in found if isinstance(found, str) else all(isinstance(spec, ServerSpec) for spec in found)


def parsed_or_refused(document: object) -> Sequence[ServerSpec] | str:
    try:
        return parse_manifest(document, "m.json")
    except ConfigurationError as error:
        return str(error)


@given(st.text(max_size=60))
def test_every_name_becomes_one_that_ids_take_or_none(said: str) -> None:
    name = server_name(said)
    assert server_name(name) == name
    assert len(name) <= 30


NAMES = st.text(max_size=40) | st.sampled_from(["Mail", "mail", "M ail", "M_ail", "M-ail", "host", "邮件", "x" * 50])


@given(st.lists(st.tuples(NAMES, NAMES), max_size=8, unique=True))
def test_servers_of_whatever_names_are_told_apart_and_no_newcomer_takes_anothers_name(
    said: list[tuple[str, str]],
) -> None:
    names = distinct_server_names(said)
    assert len(set(names)) == len(names) == len(said)
    for name in names:
        ServerSpec(name, url="https://x.example")
    before = dict(zip(said[1:], distinct_server_names(said[1:]), strict=True))
    for one, name in zip(said, names, strict=True):
        assert name not in before.values() or before.get(one) == name


def test_names_that_come_to_the_same_are_kept_apart_by_a_digest() -> None:
    plain, *others = distinct_server_names(
        [("mcp_Mail", "a"), ("mcp_Files", "b"), ("mcp Files", "c"), ("mcp-Files", "d")]
    )
    assert plain == "mcp-Mail"
    assert all(re.fullmatch(r"mcp-Files-[0-9a-f]{10}", name) for name in others)
    assert distinct_server_names([("mcp-Files-0123456789", "x")]) != ["mcp-Files-0123456789"], (
        "nobody can ask for a digest"
    )


def test_secrets_are_looked_up_when_a_server_is_reached_and_never_shown() -> None:
    spec = ServerSpec(
        "shop",
        url="https://${HOST:-shop.example}/mcp?key=${TOKEN}",
        headers={"authorization": "Bearer ${TOKEN}"},
        oauth={},
    )
    server = to_mcp_server(spec, SECRETS)
    assert (server.url, server.headers) == ("https://shop.example/mcp?key=s3cret", {"authorization": "Bearer s3cret"})
    literal = ServerSpec("shop", Transport.STDIO, command="run", args=("s3cret",), env={"A": "s3cret"})
    assert "s3cret" not in f"{spec!r} {spec} {server!r} {server} {literal!r} {literal}"
    assert spec.place == "https://${HOST:-shop.example}/mcp"
    for environ in ({}, {"TOKEN": ""}):
        with pytest.raises(ConfigurationError, match=r"'shop' wants the environment variable TOKEN"):
            to_mcp_server(spec, environ)


@pytest.mark.parametrize("name", ["", "a b", "x" * 31, "host", "a_b", "a::b"])
def test_a_name_that_would_not_tell_tools_apart_is_refused(name: str) -> None:
    with pytest.raises(Invalid, match="cannot be a tool server's name"):
        ServerSpec(name, url="https://x.example")


def test_a_server_of_the_settings_is_reached_as_it_is_set() -> None:
    said: Mapping[str, Any] = {
        "name": "shop",
        "url": "https://shop.example/mcp",
        "transport": "sse",
        "headers": {"x-key": "${TOKEN}"},
        "oauth": {"token_url": "https://id.example/token", "client_id": "desk", "client_secret": "${TOKEN}"},
        "timeout": 5,
    }
    spec = spec_from_settings(ToolServer.model_validate(said))
    server = to_mcp_server(spec, SECRETS)
    assert (server.transport, server.headers, server.timeout) == ("sse", {"x-key": "s3cret"}, 5)
    assert isinstance(server.oauth, OAuthConfig)
    assert server.oauth.client_secret is not None
    assert server.oauth.client_secret.get_secret_value() == "s3cret"
    stdio = spec_from_settings(ToolServer.model_validate({"name": "run", "command": "npx", "args": ["x"]}))
    assert to_mcp_server(stdio, {}).command == ("npx", "x")


def test_a_server_of_the_settings_that_has_no_address_is_told_with_the_settings_name() -> None:
    with pytest.raises(ConfigurationError, match="FRONTDESK_MCP_SERVERS: The address of tool server 'shop'"):
        spec_from_settings(ToolServer.model_validate({"name": "shop", "url": "shop.example"}))


@pytest.mark.parametrize("oauth", [{"token_url": "https://x"}, {"token_url": "https://x", "client_id": "a", "zzz": 1}])
def test_oauth_that_is_not_complete_is_said(oauth: Mapping[str, Any]) -> None:
    with pytest.raises(ConfigurationError, match="'shop': oauth needs token_url and client_id"):
        to_mcp_server(ServerSpec("shop", url="https://shop.example", oauth=oauth), {})
