"""Servers from ToolingManifest.json, through the endpoint that an agent uses while it is developed."""

import asyncio
import json
import logging
import os
import tempfile
from contextlib import chdir, suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from frontdesk.agent365 import ManifestUnreadable, MCPServerConfig, McpToolServerConfigurationService, PlatformError
from tests.requirements import shows

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
