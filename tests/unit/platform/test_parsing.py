"""What a manifest or the platform says of servers, read."""

import json
import logging
import re
from typing import Any
from urllib.parse import urlsplit

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from frontdesk.agent365 import MCPServerConfig
from frontdesk.agent365.servers import parse_server, parse_servers
from tests.requirements import shows

BASE = "https://agent365.svc.cloud.microsoft/agents/servers"
TEXT = st.text(st.characters()) | st.sampled_from(
    ["", " ", "mail", "null", "DEFAULT", "http://host/mcp", "http://u:p@host/", "javascript:x", "http://[::1", "\ud800"]
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=6,
)
FIELDS = (
    "mcpServerName",
    "mcpServerUniqueName",
    "url",
    "scope",
    "audience",
    "publisher",
    "id",
    "allConnectionsUrl",
    "missingConnectionsUrl",
    "connectivityStatus",
)
ENTRY = st.dictionaries(st.sampled_from(FIELDS), TEXT | JSON) | JSON
DOCUMENT = st.lists(ENTRY) | st.fixed_dictionaries({"mcpServers": st.lists(ENTRY) | JSON}) | JSON


def read(**entry: object) -> MCPServerConfig:
    found = parse_server({"mcpServerName": "mail", **entry}, {})
    assert found is not None
    return found


@shows("A365-HOSTILE")
@given(DOCUMENT)
@settings(deadline=None)
def test_whatever_a_document_says_servers_have_plain_addresses_and_names(document: Any) -> None:
    for said in (document, json.loads(json.dumps(document))):
        found = parse_servers(said, {})
        assert found is None or isinstance(found, list)
        for server in found or []:
            assert server.mcp_server_name.strip()
            assert server.mcp_server_unique_name.strip()
            assert f"{server.mcp_server_name}{server.mcp_server_unique_name}".encode()
            assert server.url
            assert re.fullmatch(r"[!-~]{1,2000}", server.url)
            parts = urlsplit(server.url)
            assert parts.scheme in {"http", "https"}
            assert parts.hostname
            assert parts.username is parts.password is None
            assert server.headers is None


@shows("A365-DISCOVER")
def test_a_bare_list_and_a_wrapped_one_are_read_alike() -> None:
    listed: list[object] = [{"mcpServerName": "a"}, 5, None, [], "b", {}, {"mcpServerName": "c"}]
    found = parse_servers(listed, {})
    assert found is not None
    assert [server.mcp_server_name for server in found] == ["a", "c"]
    assert parse_servers({"mcpServers": listed}, {}) == found


@pytest.mark.parametrize("document", [None, 5, "x", {}, {"mcpServers": {}}, {"mcpServers": None}, {"servers": []}])
def test_anything_else_is_no_list_of_servers(document: object) -> None:
    assert parse_servers(document, {}) is None


@pytest.mark.parametrize(
    ("entry", "names"),
    [
        ({"mcpServerName": "mail"}, ("mail", "mail")),
        ({"mcpServerName": "mail", "mcpServerUniqueName": "mcp_mail"}, ("mail", "mcp_mail")),
        ({"mcpServerName": "mail", "mcpServerUniqueName": 5}, ("mail", "mail")),
        ({"mcpServerUniqueName": "mcp_mail"}, ("mcp_mail", "mcp_mail")),
    ],
)
def test_where_one_name_is_not_said_the_other_stands_for_it(entry: dict[str, object], names: tuple[str, str]) -> None:
    found = parse_server(entry, {})
    assert found is not None
    assert (found.mcp_server_name, found.mcp_server_unique_name) == names


@pytest.mark.parametrize(
    "entry",
    [
        {},
        {"mcpServerName": ""},
        {"mcpServerName": "  "},
        {"mcpServerName": 5},
        {"mcpServerName": 5, "mcpServerUniqueName": "mcp_mail"},
        {"mcpServerName": "\ud800"},
    ],
)
def test_an_entry_without_a_name_is_left_out_and_told(
    entry: dict[str, object], caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "frontdesk.agent365"):
        assert parse_server(entry, {}) is None
    assert "give it mcpServerName" in caplog.text


@pytest.mark.parametrize(
    ("url", "found"),
    [
        ("http://host:1/mcp", "http://host:1/mcp"),
        ("", f"{BASE}/mail"),
        (None, f"{BASE}/mail"),
        (5, f"{BASE}/mail"),
        ([], f"{BASE}/mail"),
    ],
)
def test_the_address_is_its_own_else_made_of_the_name(url: object, found: str) -> None:
    assert read(url=url).url == found


@pytest.mark.parametrize(
    "entry",
    [
        {"url": "ftp://host/"},
        {"url": "file:///etc/passwd"},
        {"url": "http://user:secret@host/"},
        {"url": "http://host/a b"},
        {"url": "http://host/\r\nx: y"},
        {"url": "x" * 3000},
        {"mcpServerName": ".."},
        {"mcpServerName": "x" * 300},
    ],
)
def test_an_entry_that_cannot_be_reached_is_left_out_and_told(
    entry: dict[str, object], caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "frontdesk.agent365"):
        assert parse_server({"mcpServerName": "mail", **entry}, {}) is None
    assert "was left out" in caplog.text
    assert "secret" not in caplog.text
    assert len(caplog.messages[0]) < 300


@pytest.mark.parametrize(
    ("field", "said", "found"),
    [
        ("scope", "Mail.Read", "Mail.Read"),
        ("scope", "NULL", None),
        ("scope", "", None),
        ("scope", None, None),
        ("audience", "api://mail", "api://mail"),
        ("audience", "Default", None),
        ("audience", 0, None),
        ("publisher", "Contoso", "Contoso"),
        ("publisher", 5, "5"),
        ("publisher", None, None),
        ("id", "1", "1"),
        ("id", 1, None),
    ],
)
def test_each_part_is_read_as_the_platform_means_it(field: str, said: object, found: str | None) -> None:
    assert getattr(read(**{field: said}), field) == found


def test_what_waits_for_a_connection_is_told() -> None:
    found = read(
        allConnectionsUrl="https://host/all", missingConnectionsUrl="https://host/missing", connectivityStatus="Pending"
    )
    assert found.all_connections_url == "https://host/all"
    assert found.missing_connections_url == "https://host/missing"
    assert found.connectivity_status == "Pending"
