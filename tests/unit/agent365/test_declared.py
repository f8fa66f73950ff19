"""Tests what a manifest declares of servers, tools and answers, whatever it contains."""

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
from frontdesk.agent365.manifest.model import (
    ANY_OBJECT_SCHEMA,
    MOST_PROBLEMS,
    DeclaredManifest,
    DeclaredTool,
    MockAnswer,
)
from frontdesk.agent365.manifest.reader import read_manifest
from tests.requirements import shows

# Declarations: servers, their tools, and the answers of their stand-ins


SCHEMA = {"type": "object", "properties": {"to": {"type": "string"}}, "required": ["to"]}
MAIL = {
    "mcpServerName": "mcp_MailTools",
    "mcpServerUniqueName": "mail_unique",
    "url": "https://mail.example/mcp",
    "audience": "api://05879165-0320-489e-b644-f72b33f3edf0",
    "scope": "McpServers.Mail.All",
    "publisher": "Microsoft",
    "id": "7",
    "allConnectionsUrl": "https://connect.example/all",
    "missingConnectionsUrl": "https://connect.example/missing",
    "connectivityStatus": "Ready",
}


def declared(folder: Path, *servers: object, **mocks: object) -> DeclaredManifest:
    """The declarations of a manifest with these entries; each mock is a file `mocks/<name>.json` beside it."""
    (folder / "mocks").mkdir(exist_ok=True)
    for name, content in mocks.items():
        (folder / "mocks" / f"{name}.json").write_text(json.dumps(content))
    path = folder / "ToolingManifest.json"
    path.write_text(json.dumps({"mcpServers": servers}))
    return read_manifest(path)


def tools(folder: Path, *servers: object, **mocks: object) -> list[DeclaredTool]:
    """The tools of the one server."""
    found = declared(folder, *servers, **mocks)
    assert found.problems == ()
    [server] = found.servers
    return list(server.tools or ())


def test_an_entry_is_read_whole(tmp_path: Path) -> None:
    found = declared(tmp_path, MAIL)
    [server] = found.servers
    assert found.problems == ()
    assert found.is_valid
    assert (server.name, server.unique_name, server.url) == ("mcp_MailTools", "mail_unique", MAIL["url"])
    assert (server.audience, server.scope, server.tools) == (MAIL["audience"], MAIL["scope"], None)
    assert server.entry == MAIL


def test_what_stands_for_nothing_is_nothing(tmp_path: Path) -> None:
    found = declared(tmp_path, {"mcpServerName": "m", "audience": "Default", "scope": "NULL", "url": "", "id": None})
    [server] = found.servers
    assert found.problems == ()
    assert (server.audience, server.scope, server.url, server.unique_name) == (None, None, None, "m")


def test_what_says_how_a_stand_in_answers_is_not_given_out(tmp_path: Path) -> None:
    found = declared(tmp_path, {"mcpServerName": "m", "tools": ["send"], "x-ours": 1})
    assert found.servers[0].entry == {"mcpServerName": "m", "x-ours": 1}


def test_tools_may_be_names_or_objects(tmp_path: Path) -> None:
    listed = ["send", {"name": "read", "description": "Reads.", "inputSchema": SCHEMA, "title": "Read"}]
    assert tools(tmp_path, {"mcpServerName": "m", "tools": listed}) == [
        DeclaredTool("send"),
        DeclaredTool("read", "Reads.", SCHEMA),
    ]


def test_no_tools_is_something_else_than_nothing_said(tmp_path: Path) -> None:
    silent, empty = declared(tmp_path, {"mcpServerName": "a"}, {"mcpServerName": "b", "tools": []}).servers
    assert (silent.tools, empty.tools) == (None, ())


@pytest.mark.parametrize("key", [None, "tools", "Tools"])
def test_mock_files_are_read_in_every_form_and_case(tmp_path: Path, key: str | None) -> None:
    mock = {
        "Name": "send",
        "DESCRIPTION": "Sends.",
        "InputSchema": SCHEMA,
        "responsetemplate": "Sent to {{TO}}.",
        "DelayMs": 50,
        "errorRate": 0.25,
        "StatusCode": 503,
        "Enabled": False,
    }
    [send] = tools(tmp_path, {"mcpServerName": "m"}, m={key: [mock]} if key else [mock])
    assert send == DeclaredTool("send", "Sends.", SCHEMA, (MockAnswer("Sent to {{TO}}."),), 50, 0.25, 503, False)


def test_states_come_before_the_answer_for_all_others(tmp_path: Path) -> None:
    states = [
        {"in": "start", "responseTemplate": "Drafted.", "next": "draft"},
        {"in": "draft", "next": "start", "isError": True},
    ]
    mock = [{"name": "send", "description": "Sends.", "responseTemplate": "Sent.", "states": states}]
    [send] = tools(tmp_path, {"mcpServerName": "m"}, m=mock)
    assert send.answers == (
        MockAnswer("Drafted.", "start", "draft"),
        MockAnswer("Sent.", "draft", "start", True),
        MockAnswer("Sent."),
    )


def test_a_manifest_and_a_mock_file_complete_each_other(tmp_path: Path) -> None:
    mocks = [{"name": "send", "responseTemplate": "Sent."}, {"name": "drop", "description": "Drops."}]
    listed = ["note", {"name": "send", "description": "Sends.", "inputSchema": SCHEMA}]
    assert tools(tmp_path, {"mcpServerName": "m", "tools": listed}, m=mocks) == [
        DeclaredTool("note"),
        DeclaredTool("send", "Sends.", SCHEMA, (MockAnswer("Sent."),)),
        DeclaredTool("drop", "Drops."),
    ]


def test_what_both_say_the_manifest_decides_and_it_is_told(tmp_path: Path) -> None:
    entry = {"mcpServerName": "m", "tools": [{"name": "send", "description": "Sends."}]}
    found = declared(tmp_path, entry, m=[{"name": "send", "description": "Throws away."}])
    [problem] = found.problems
    assert [one.description for one in found.servers[0].tools or ()] == ["Sends."]
    assert problem.where == "mocks/m.json: [0].description"


def test_another_mock_file_may_be_named(tmp_path: Path) -> None:
    (tmp_path / "other.json").write_text('["send"]')
    found = declared(tmp_path, {"mcpServerName": "m", "mockFile": "other.json"})
    assert (found.problems, found.servers[0].tools) == ((), (DeclaredTool("send"),))
    assert found.files == (tmp_path / "ToolingManifest.json", tmp_path / "other.json")


def test_a_byte_order_mark_is_no_problem(tmp_path: Path) -> None:
    path = tmp_path / "m.json"
    path.write_bytes(b'\xef\xbb\xbf{"$schema": "x", "mcpServers": [{"mcpServerName": "caf\xc3\xa9"}]}')
    assert read_manifest(path).servers[0].name == "café"


def test_a_schema_that_makes_no_sense_takes_anything(tmp_path: Path) -> None:
    found = declared(tmp_path, {"mcpServerName": "m", "tools": [{"name": "a", "inputSchema": {"type": "strin"}}]})
    assert [one.input_schema for one in found.servers[0].tools or ()] == [ANY_OBJECT_SCHEMA]
    assert not found.is_valid


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "there is no such file"),
        (b"", "it is not JSON"),
        (b"{", "it is not JSON: .*line 1 column 2"),
        (b'{"mcpServers": []}'.decode().encode("utf-16"), "it is not in UTF-8"),
        (b"\xff", "it is not in UTF-8"),
        (b"[" * 100_000, "it is nested too deep"),
        (b"9" * 10_000, "it is not JSON"),
        (b"7", "it is a number; write"),
        (b"[]", "it is a list; write"),
        (b"null", "it is null; write"),
        (b"{}", "it needs"),
        (b'{"mcpservers": []}', "it has 'mcpservers' where it needs"),
        (b'{"mcpServers": {"mail": {}}}', "mcpServers is an object, as editors write it; make it a list"),
        (b'{"mcpServers": null}', "mcpServers is null; make it a list"),
    ],
)
def test_a_file_that_is_no_manifest_is_told_by_its_name(tmp_path: Path, content: bytes | None, said: str) -> None:
    path = tmp_path / "m.json"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ManifestUnreadable, match=f"m.json: {said}"):
        read_manifest(path)


def test_a_folder_is_no_manifest(tmp_path: Path) -> None:
    with pytest.raises(ManifestUnreadable, match="not a file"):
        read_manifest(tmp_path)


def test_a_file_that_is_too_large_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "m.json"
    with path.open("wb") as file:
        file.truncate(50_000_001)
    with pytest.raises(ManifestUnreadable, match="larger than 50 MB"):
        read_manifest(path)


# Manifests with any content: a clear error or a safe value, and no file read from elsewhere


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
        # A strict reader accepts the output of discovery
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
