"""Tests reading servers from ToolingManifest.json and from the platform's answers."""

import asyncio
import json
import logging
import os
import re
import tempfile
from contextlib import chdir, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from frontdesk.agent365 import (
    ChatHistoryMessage,
    ChatMessageRequest,
    InvalidArgument,
    ManifestUnreadable,
    MCPServerConfig,
    McpToolServerConfigurationService,
    PlatformError,
    ToolOptions,
)
from frontdesk.agent365.servers import parse_server, parse_servers
from tests.requirements import shows

# Servers from ToolingManifest.json, through the endpoint that an agent uses during development


NAME = "ToolingManifest.json"
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters()),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
ENTRIES = st.lists(st.dictionaries(st.sampled_from(["mcpServerName", "url", "audience", "scope"]), JSON) | JSON)
DOCUMENTS = (st.fixed_dictionaries({"mcpServers": ENTRIES}) | JSON).map(json.dumps)
FILES = (
    st.binary()
    | DOCUMENTS.map(str.encode)
    | DOCUMENTS.map(lambda text: text.encode("utf-16"))
    | st.just(b"[" * 100_000)
)


def listed(environ: dict[str, str] | None = None) -> list[MCPServerConfig]:
    service = McpToolServerConfigurationService(environ={} if environ is None else environ)
    return asyncio.run(service.list_tool_servers(""))


def names() -> list[str]:
    return [server.mcp_server_name for server in listed()]


def manifest(*entries: object) -> str:
    return json.dumps({"mcpServers": entries})


@shows("A365-HOSTILE")
@given(FILES)
@settings(deadline=None)
def test_whatever_bytes_the_manifest_holds_there_is_a_list_or_one_typed_error(content: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        Path(NAME).write_bytes(content)
        service = McpToolServerConfigurationService()
        with suppress(ManifestUnreadable):
            assert isinstance(asyncio.run(service.list_tool_servers("")), list)


@shows("A365-HOSTILE")
@pytest.mark.parametrize("wrap", ['{"mcpServers": %s}', '{"mcpServers": [{"mcpServerName": "a", "publisher": %s}]}'])
def test_however_deeply_it_is_nested_there_is_a_list_or_a_typed_error(wrap: str) -> None:
    for depth in range(800, 1_010):
        Path(NAME).write_text(wrap % ("[" * depth + "]" * depth))
        with suppress(ManifestUnreadable):
            assert len(listed()) <= 1


@shows("A365-DISCOVER")
def test_the_manifest_of_this_folder_comes_before_that_of_the_one_above(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inner = tmp_path / "inner"
    inner.mkdir()
    monkeypatch.chdir(inner)
    assert names() == []
    tmp_path.joinpath(NAME).write_text(manifest({"mcpServerName": "above"}))
    assert names() == ["above"]
    inner.joinpath(NAME).write_text(manifest({"mcpServerName": "here"}))
    assert names() == ["here"]
    deeper = inner / "b" / "c"
    deeper.mkdir(parents=True)
    monkeypatch.chdir(deeper)
    assert names() == []


@pytest.mark.parametrize(
    "content", ["{}", '{"mcpServers": {}}', '{"mcpServers": null}', '{"servers": []}', "[]", "[{}]"]
)
def test_a_manifest_without_a_list_of_servers_has_none_and_that_is_told(
    content: str, caplog: pytest.LogCaptureFixture
) -> None:
    Path(NAME).write_text(content)
    with caplog.at_level(logging.WARNING, "frontdesk.agent365"):
        assert names() == []
    assert NAME in caplog.text


@pytest.mark.parametrize("content", [b"", b"{", b"5", b"null", b'"x"', b"\xff\xfe\x00", b"NaN,", b"9" * 5000])
def test_a_manifest_that_cannot_be_read_says_so(content: bytes) -> None:
    Path(NAME).write_bytes(content)
    with pytest.raises(ManifestUnreadable, match=f"Failed to read MCP servers from {NAME}: ."):
        names()


def test_a_manifest_from_windows_is_read() -> None:
    Path(NAME).write_bytes(b"\xef\xbb\xbf" + manifest({"mcpServerName": "mail"}).replace(" ", "\r\n").encode())
    assert names() == ["mail"]


def test_a_folder_or_a_pipe_of_that_name_is_no_manifest() -> None:
    Path(NAME).mkdir()
    with pytest.raises(ManifestUnreadable):
        names()
    Path(NAME).rmdir()
    os.mkfifo(NAME)
    with pytest.raises(ManifestUnreadable, match="it is no file"):
        names()


def test_a_manifest_of_many_megabytes_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    with Path(NAME).open("wb") as file:
        file.truncate(50_000_001)
    with pytest.raises(ManifestUnreadable, match="larger than 50 MB"):
        names()


def test_a_folder_that_is_gone_is_told_as_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    with pytest.raises(PlatformError, match=NAME):
        names()


@shows("A365-TOKENS")
def test_half_a_character_in_a_name_reaches_no_variable() -> None:
    Path(NAME).write_text('{"mcpServers": [{"mcpServerName": "\\ud800"}, {"mcpServerName": "mail"}]}')
    service = McpToolServerConfigurationService(environ=os.environ)
    assert [server.mcp_server_name for server in asyncio.run(service.list_tool_servers(""))] == ["mail"]


# Entries of a manifest and of the platform's answers


BASE = "https://agent365.svc.cloud.microsoft/agents/servers"
TEXT = st.text(st.characters()) | st.sampled_from(
    ["", " ", "mail", "null", "DEFAULT", "http://host/mcp", "http://u:p@host/", "javascript:x", "http://[::1", "\ud800"]
)
PARSING_JSON = st.recursive(
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
ENTRY = st.dictionaries(st.sampled_from(FIELDS), TEXT | PARSING_JSON) | PARSING_JSON
DOCUMENT = st.lists(ENTRY) | st.fixed_dictionaries({"mcpServers": st.lists(ENTRY) | PARSING_JSON}) | PARSING_JSON


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


# The client's own types


CHAT: dict[str, Any] = {"conversation_id": "c", "message_id": "m", "user_message": "u", "chat_history": []}


@pytest.mark.parametrize(
    ("name", "unique", "what"), [("", "u", "mcp_server_name"), ("n", "", "mcp_server_unique_name")]
)
def test_a_server_has_two_names(name: str, unique: str, what: str) -> None:
    with pytest.raises(InvalidArgument, match=f"{what} cannot be empty") as refused:
        MCPServerConfig(name, unique)
    assert isinstance(refused.value, ValueError)


@shows("A365-TOKENS")
def test_a_server_does_not_show_its_headers() -> None:
    server = MCPServerConfig("mail", "mail", headers={"Authorization": "Bearer secret"})
    assert "secret" not in f"{server} {server!r} {[server]}"


def test_a_server_says_nothing_of_what_is_not_known_of_it() -> None:
    server = MCPServerConfig("mail", "mcp_mail")
    rest = (server.url, server.headers, server.audience, server.scope, server.publisher, server.id)
    assert rest == (None,) * 6
    assert ToolOptions().orchestrator_name is None


@shows("A365-CHAT")
@pytest.mark.parametrize("role", ["user", "assistant", "system"])
def test_a_message_has_a_role_and_words(role: Any) -> None:
    message = ChatHistoryMessage(role=role, content=" hello ")
    assert (message.id, message.role, message.content, message.timestamp) == (None, role, " hello ", None)


@pytest.mark.parametrize(
    "wrong",
    [{"role": "tool"}, {"role": "User"}, {"content": ""}, {"content": " \n"}, {"content": None}, {"role": None}],
)
def test_a_message_without_them_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        ChatHistoryMessage.model_validate({"role": "user", "content": "hello", **wrong})


@shows("A365-CHAT")
def test_a_chat_is_made_by_either_name_of_a_field_and_sent_by_one() -> None:
    said = ChatHistoryMessage(
        id="1", role="user", content="hello", timestamp=datetime(2026, 11, 2, 3, 4, 5, tzinfo=UTC)
    )
    chat = ChatMessageRequest.model_validate({**CHAT, "chat_history": [said, {"role": "system", "content": "x"}]})
    sent = chat.model_dump(by_alias=True, mode="json")
    assert sent == {
        "conversationId": "c",
        "messageId": "m",
        "userMessage": "u",
        "chatHistory": [
            {"id": "1", "role": "user", "content": "hello", "timestamp": "2026-11-02T03:04:05Z"},
            {"id": None, "role": "system", "content": "x", "timestamp": None},
        ],
    }
    assert ChatMessageRequest.model_validate(sent) == chat


@pytest.mark.parametrize("field", ["conversation_id", "message_id", "user_message"])
@pytest.mark.parametrize("blank", ["", "  ", None])
def test_a_chat_lacks_nothing(field: str, blank: str | None) -> None:
    with pytest.raises(ValidationError):
        ChatMessageRequest.model_validate({**CHAT, field: blank})
    with pytest.raises(ValidationError):
        ChatMessageRequest.model_validate({name: value for name, value in CHAT.items() if name != field})


def test_a_chat_may_be_empty_but_not_missing() -> None:
    assert ChatMessageRequest.model_validate(CHAT).chat_history == []
    wrongs: list[object] = [None, "x", {}]
    for wrong in wrongs:
        with pytest.raises(ValidationError):
            ChatMessageRequest.model_validate({**CHAT, "chat_history": wrong})
