"""What a manifest declares: servers, their tools, and how a stand-in answers for them."""

import json
from pathlib import Path

import pytest

from frontdesk.agent365.errors import ManifestUnreadable
from frontdesk.agent365.manifest.model import ANY_OBJECT_SCHEMA, DeclaredManifest, DeclaredTool, MockAnswer
from frontdesk.agent365.manifest.reader import read_manifest

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
    """What a manifest with these entries declares; each mock is a file `mocks/<name>.json` beside it."""
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
