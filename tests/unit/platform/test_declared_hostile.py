"""Manifests with anything in them: a clear error or a safe value, and nothing read that lies elsewhere."""

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frontdesk.agent365.environment import build_mcp_server_url
from frontdesk.agent365.errors import ManifestUnreadable
from frontdesk.agent365.manifest.model import MOST_PROBLEMS, DeclaredManifest
from frontdesk.agent365.manifest.reader import read_manifest
from tests.requirements import shows
from tests.unit.platform.test_declared import declared

KEYS = [
    *("mcpServers", "mcpServerName", "mcpServerUniqueName", "url", "audience", "scope", "tools", "mockFile"),
    *("name", "Name", "description", "inputSchema", "type", "properties", "required", "$ref", "$schema"),
    *(
        "responseTemplate",
        "delayMs",
        "errorRate",
        "statusCode",
        "enabled",
        "states",
        "in",
        "next",
        "connectivityStatus",
        "publisher",
    ),
]
DRAFT = "http://json-schema.org/draft-03/schema#"
TEXT = st.text(st.characters(exclude_categories=()), max_size=6) | st.sampled_from(
    ["send", "object", "{{a}}", "..", "../m.json", "https://h/x", "http://[", "start", "Pending", "api://x", DRAFT]
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS) | TEXT, inner, max_size=5),
    max_leaves=15,
)


def read_bytes(content: bytes, mock: bytes = b"[]") -> DeclaredManifest:
    with TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "mocks").mkdir()
        (folder / "mocks" / "m.json").write_bytes(mock)
        (folder / "ToolingManifest.json").write_bytes(content)
        return read_manifest(folder / "ToolingManifest.json")


@shows("A365-HOSTILE")
@given(JSON, JSON, JSON)
def test_whatever_a_manifest_says_what_is_kept_can_be_used(entry: Any, listed: Any, mock: Any) -> None:
    known = {"mcpServerName": "m", "tools": [listed, {"name": "t", "inputSchema": listed, "states": [entry]}]}
    document = {"mcpServers": [entry, {"mcpServerName": entry, "url": entry}, {**known, "audience": listed}]}
    found = read_bytes(json.dumps(document).encode(), json.dumps([mock, {"name": "u", "inputSchema": mock}]).encode())
    for server in found.servers:
        parts = urlsplit(build_mcp_server_url(server.name, {}))
        assert parts.path.rpartition("/")[0] == "/agents/servers"
        assert (parts.query, parts.fragment) == ("", "")
        # What discovery gives out, a strict reader takes.
        json.dumps(server.entry, allow_nan=False, ensure_ascii=False).encode()
        for tool in server.tools or ():
            json.dumps(tool.input_schema, allow_nan=False, ensure_ascii=False).encode()
            assert (0 <= tool.error_rate <= 1, tool.delay_ms >= 0, 200 <= tool.status_code < 600) == (True, True, True)
    assert all(problem.where and problem.what for problem in found.problems)
    "\n".join(map(str, found.problems)).encode()


@shows("A365-HOSTILE")
@given(st.binary(max_size=40) | JSON.map(lambda value: json.dumps(value).encode()))
def test_whatever_a_file_holds_it_is_read_or_clearly_refused(content: bytes) -> None:
    found = read_or_refused(content)
    assert found if isinstance(found, str) else all(problem.what for problem in found.problems)


def read_or_refused(content: bytes) -> DeclaredManifest | str:
    try:
        return read_bytes(content, content)
    except ManifestUnreadable as error:
        return str(error)


@shows("A365-HOSTILE")
@pytest.mark.parametrize("name", ["a\nb", "a\r\nX-Evil: 1", "\x7f", "a\u2028b", "..", ".", "...", " ", "", "x" * 300])
def test_a_server_whose_name_no_request_can_carry_is_left_out(tmp_path: Path, name: str) -> None:
    found = declared(tmp_path, {"mcpServerName": name}, {"mcpServerUniqueName": name}, {"mcpServerName": "good"})
    assert [server.name for server in found.servers] == ["good"]
    assert not found.is_valid


@shows("A365-HOSTILE")
@pytest.mark.parametrize("name", ["../../etc", "a/../../b", "a?b=1", "a#b", "a%2e%2e", "\\..\\x"])
def test_a_name_that_leads_elsewhere_is_told_and_reads_no_file_there(tmp_path: Path, name: str) -> None:
    inner = tmp_path / "inner"
    inner.mkdir()
    (tmp_path / "etc.json").write_text('["secret"]')
    found = declared(inner, {"mcpServerName": name})
    assert found.servers[0].tools is None
    assert "must be encoded" in found.problems[0].what


@shows("A365-HOSTILE")
def test_a_mock_file_outside_the_manifests_folder_is_never_read(tmp_path: Path) -> None:
    inner = tmp_path / "inner"
    (inner / "mocks").mkdir(parents=True)
    secret = tmp_path / "secret.json"
    secret.write_text('["secret"]')
    (inner / "link.json").symlink_to(secret)
    (inner / "mocks" / "linked.json").symlink_to(secret)
    named = [
        "../secret.json",
        str(secret),
        "x/../../secret.json",
        "..\\secret.json",
        "link.json",
        ".",
        "a\0b",
        "a" * 999,
    ]
    entries = [{"mcpServerName": f"s{number}", "mockFile": name} for number, name in enumerate(named)]
    found = declared(inner, *entries, {"mcpServerName": "linked"})
    assert [server.tools for server in found.servers] == [None] * (len(named) + 1)
    wrong = [problem.where for problem in found.problems if problem.level == "error"]
    assert {f"mcpServers[{number}].mockFile" for number in range(len(named))} <= set(wrong)
    assert "mocks/linked.json" in wrong


@shows("A365-HOSTILE")
def test_what_json_cannot_hand_on_is_taken_out(tmp_path: Path) -> None:
    path = tmp_path / "m.json"
    deep = '{"a":' * 70 + "1" + "}" * 70
    path.write_text(
        '{"mcpServers": [{"mcpServerName": "m", "mcpServerName": "n", "publisher": "\\ud800", "a": NaN, "b": 1e999,'
        f' "c": {deep}}}]}}'
    )
    found = read_manifest(path)
    assert found.servers[0].entry["a"] is None
    assert found.servers[0].entry["b"] is None
    told = {problem.where: problem.what for problem in found.problems if not problem.what.startswith("is not read")}
    assert told["mcpServers[0].mcpServerName"] == "stands there more than once, and the last one counts; keep one"
    assert "half a character" in told["mcpServers[0].publisher"]
    assert "no number" in told["mcpServers[0].a"]
    assert "no number" in told["mcpServers[0].b"]
    assert any("nested deeper" in what for what in told.values())


@shows("A365-HOSTILE")
def test_words_of_an_old_draft_mean_no_harm(tmp_path: Path) -> None:
    schema = {"$schema": DRAFT, "type": "object", "required": True, "properties": {"a": {"required": True}}}
    found = declared(
        tmp_path, {"mcpServerName": "m", "tools": [{"name": "t", "description": "d", "inputSchema": schema}]}
    )
    assert found.problems == ()


@shows("A365-HOSTILE")
def test_of_a_million_problems_the_first_are_told(tmp_path: Path) -> None:
    found = declared(tmp_path, *range(MOST_PROBLEMS + 5))
    assert len(found.problems) == MOST_PROBLEMS + 1
    assert found.problems[-1].what.startswith("5 more")
    assert not found.is_valid


NOWHERE = ["ftp://x", "mail", "http://", "https://a b/c", "https://h:port/", "https://h\n/", "https://ä.example/"]


@shows("A365-HOSTILE")
@pytest.mark.parametrize(
    ("said", "url"),
    [
        *(("is no address", url) for url in NOWHERE),
        ("must be a text", 7),
        ("holds a login", "https://user:s3cret@mail.example/mcp"),
    ],
)
def test_an_address_that_no_request_can_go_to_is_left_out(tmp_path: Path, said: str, url: object) -> None:
    found = declared(tmp_path, {"mcpServerName": "m", "url": url})
    [problem] = found.problems
    assert (problem.level, problem.where) == ("error", "mcpServers[0].url")
    assert said in problem.what
    assert "s3cret" not in problem.what
    assert (found.servers[0].url, found.servers[0].entry) == (None, {"mcpServerName": "m"})
