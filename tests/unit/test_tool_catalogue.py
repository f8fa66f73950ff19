"""Tests what listings and manifests change in the catalogue, and which tool a name means."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from frontdesk.errors import ConfigurationError, Denied, Invalid, NotFound
from frontdesk.mcp_client.model import OAuthConfig, RemoteTool
from frontdesk.settings import ToolServer
from frontdesk.tools import listing
from frontdesk.tools.access import AccessEffect, AccessRule, PermittedTools, find_similar_id, require_one_tool
from frontdesk.tools.listing import (
    MOST_FAULTS,
    MOST_PROBLEMS,
    ListedTool,
    clean_listing,
    find_schema_fault,
    repair_schema,
)
from frontdesk.tools.manifest import parse_manifest, read_manifest
from frontdesk.tools.model import CatalogueTool, ReviewStatus
from frontdesk.tools.servers import (
    ServerOrigin,
    ServerSpec,
    Transport,
    distinct_server_names,
    server_name,
    spec_from_settings,
    to_mcp_server,
)
from frontdesk.tools.versions import ChangeKind, KnownTool, compare_listing
from tests.requirements import shows

# What a listing changes in the catalogue, and the treatment of invalid listings


SCHEMA: Mapping[str, Any] = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
WORDS = ["type", "properties", "required", "items", "anyOf", "$ref", "enum", "pattern", "minimum", "x", "\ud800"]
JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(WORDS), inner, max_size=4),
    max_leaves=12,
)
NAMES = st.text(alphabet=st.sampled_from("ab_ é\x00\ud800\u202e"), max_size=4) | st.just("a" * 300)
TOOLS = st.builds(
    RemoteTool,
    NAMES,
    st.text(st.characters(exclude_categories=()), max_size=8),
    st.dictionaries(st.sampled_from(WORDS), JSON, max_size=4),
    st.dictionaries(st.text(max_size=3), JSON, max_size=2),
)


def tool(name: str, description: str = "Says the weather.", schema: Mapping[str, Any] = SCHEMA) -> RemoteTool:
    return RemoteTool(name, description, schema)


def listed(name: str, description: str = "Says the weather.", schema: Mapping[str, Any] = SCHEMA) -> ListedTool:
    [found] = clean_listing("shop", [tool(name, description, schema)]).tools
    return found


def known(found: ListedTool) -> KnownTool:
    return KnownTool(found.name, found.api_name, found.seal)


def kinds(before: KnownTool, now: ListedTool, *, hold: bool = False) -> list[ChangeKind]:
    return [change.kind for change in compare_listing({before.name: before}, [now], hold=hold).changes]


@given(st.lists(TOOLS, max_size=6))
@settings(max_examples=60)
def test_no_listing_is_so_strange_that_it_cannot_be_sifted(tools: list[RemoteTool]) -> None:
    found = clean_listing("shop", tools)
    assert len({one.api_name for one in found.tools}) == len({one.name for one in found.tools}) == len(found.tools)
    for one in found.tools:
        told = [one.name, one.description, one.input_texts, json.loads(one.parameters), json.loads(one.annotations)]
        json.dumps([*told, *one.inputs, *found.problems], ensure_ascii=False).encode()
        assert "\x00" not in one.name + one.description + "".join(one.inputs)
    again = {one.name: known(one) for one in found.tools}
    assert compare_listing(again, clean_listing("shop", tools).tools, hold=True).changes == []


@settings(max_examples=40)
@given(st.lists(TOOLS, max_size=5), st.lists(TOOLS, max_size=5), st.booleans())
def test_every_tool_is_accounted_for_under_its_own_name(
    before: list[RemoteTool], now: list[RemoteTool], hold: bool
) -> None:
    old, new = ({one.name: one for one in clean_listing("shop", tools).tools} for tools in (before, now))
    found = compare_listing({name: known(one) for name, one in old.items()}, list(new.values()), hold=hold)
    assert {change.name for change in found.changes if change.kind is ChangeKind.GONE} == old.keys() - new.keys()
    assert {change.name for change in found.changes if change.kind is ChangeKind.NEW} <= new.keys() - old.keys()
    changed = {name for name in old.keys() & new.keys() if old[name].seal != new[name].seal}
    assert {change.name for change in found.changes if change.kind in (ChangeKind.TAKEN, ChangeKind.HELD)} == changed
    assert all(change.listed is None or change.listed.name == change.name for change in found.changes)


def test_a_renamed_set_is_gone_and_new() -> None:
    before = {name: known(listed(name)) for name in ("a", "b")}
    found = compare_listing(before, [listed("c"), listed("d")], hold=True)
    assert found.summary == "2 new (c, d); 2 gone (a, b)"


@pytest.mark.parametrize(
    ("now", "what"),
    [
        (listed("a", "Sends your keys."), "description"),
        (listed("a", schema={"type": "object"}), "schema"),
        (listed("a", "Sends your keys.", {"type": "object"}), "description and schema"),
    ],
)
def test_what_changed_is_said(now: ListedTool, what: str) -> None:
    for hold, kind in ((False, ChangeKind.TAKEN), (True, ChangeKind.HELD)):
        [change] = compare_listing({"a": known(listed("a"))}, [now], hold=hold).changes
        assert (change.kind, change.what, change.listed) == (kind, what, now)


def test_the_order_of_words_in_a_schema_is_no_change() -> None:
    turned = {name: SCHEMA[name] for name in reversed(list(SCHEMA))}
    assert kinds(known(listed("a")), listed("a", schema=turned)) == []


def test_a_held_change_is_told_once_and_settled_when_the_server_takes_it_back() -> None:
    good, bad, worse = listed("a"), listed("a", "Bad."), listed("a", "Worse.")
    held = replace(known(good), standing=ReviewStatus.HELD, changed=True, other=bad.seal)
    assert kinds(held, bad, hold=True) == []
    assert kinds(held, worse, hold=True) == [ChangeKind.HELD]
    assert kinds(held, good, hold=True) == [ChangeKind.SETTLED]
    assert kinds(held, bad, hold=False) == [ChangeKind.TAKEN], "nobody wants changes held any more"


def test_a_taken_change_stays_flagged_until_the_server_takes_it_back() -> None:
    good, bad, worse = listed("a"), listed("a", "Bad."), listed("a", "Worse.")
    taken = replace(known(bad), changed=True, other=good.seal)
    assert kinds(taken, bad) == []
    assert kinds(taken, worse) == [ChangeKind.TAKEN]
    assert kinds(taken, worse, hold=True) == [ChangeKind.HELD]
    assert kinds(taken, good) == [ChangeKind.SETTLED]


def test_a_refused_version_is_not_told_again_and_another_is() -> None:
    good, bad, worse = listed("a"), listed("a", "Bad."), listed("a", "Worse.")
    refused = replace(known(good), refused=bad.seal)
    for hold in (False, True):
        assert kinds(refused, bad, hold=hold) == []
        assert kinds(replace(refused, gone=True), bad, hold=hold) == [ChangeKind.BACK]
    assert kinds(refused, worse, hold=True) == [ChangeKind.HELD]


def test_a_tool_that_went_and_came_back_changed_is_no_new_tool() -> None:
    gone = replace(known(listed("a")), gone=True)
    assert kinds(gone, listed("a")) == [ChangeKind.BACK]
    assert kinds(gone, listed("a", "Bad."), hold=True) == [ChangeKind.HELD]
    assert kinds(replace(gone), listed("b")) == [ChangeKind.NEW], "and is not told to be gone once more"


def test_a_name_that_models_could_not_tell_from_a_former_one_is_left_out() -> None:
    former = listed("a é")
    twin = former.api_name.removeprefix("shop__")
    found = compare_listing({former.name: known(former)}, [listed(twin)], hold=False)
    assert [change.kind for change in found.changes] == [ChangeKind.GONE]
    assert "could not tell" in found.problems[0]


def test_what_is_wrong_with_a_listing_is_said_and_the_rest_is_kept() -> None:
    absurd = [
        tool("good"),
        tool("good", "Another."),
        tool("x" * 201),
        tool("nul\x00"),
        tool("long", "d" * 30_000),
        tool("hidden", "Fine\u200b.\U000e0041\x00\U000e0101\ufe03"),
        tool("tagged", schema={"type": "object", "properties": {"a": {"description": "b\U000e0041\ud800"}}}),
        tool("big", schema={"type": "object", "description": "d" * 200_000}),
        tool("nan", schema={"type": "object", "default": float("nan")}),
        tool("liar", schema={"type": "array"}),
    ]
    found = clean_listing("shop", absurd)
    kept = {one.name: one for one in found.tools}
    assert list(kept) == ["good", "long", "hidden", "tagged", "big", "nan", "liar"]
    assert kept["good"].description == "Says the weather."
    assert len(kept["long"].description) == 20_000
    assert kept["hidden"].description == "Fine."
    assert {kept[name].parameters for name in ("big", "nan", "liar")} == {'{"type": "object"}'}
    assert json.loads(kept["tagged"].parameters)["properties"] == {"a": {"description": "b"}}
    assert len(found.problems) == 9


def test_a_listing_without_end_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listing, "MOST_TOOLS", 20)
    found = clean_listing("shop", [tool(str(number)) for number in range(25)])
    assert len(found.tools) == 20
    assert found.problems == ("lists 25 tools; the first 20 are taken",)


def test_a_server_full_of_faults_is_not_looked_into_for_ever() -> None:
    found = clean_listing("shop", [tool(str(number), schema={"type": "x"}) for number in range(MOST_FAULTS + 100)])
    assert len(found.tools) == MOST_FAULTS + 100
    assert len(found.problems) == MOST_PROBLEMS + 1
    assert found.problems[-1] == "and 550 more"


@pytest.mark.parametrize(
    ("part", "said"),
    [
        ({"type": "text"}, "type 'text'"),
        ({"type": ["string", 7]}, "type '7'"),
        ({"required": True}, "required"),
        ({"enum": "a"}, "enum"),
        ({"minimum": "1"}, "minimum"),
        ({"maxLength": True}, "maxLength"),
        ({"pattern": "("}, "pattern"),
        ({"$ref": "https://inside.example/secrets"}, "another document"),
        ({"anyOf": []}, "anyOf"),
        ({"items": [{"type": "string"}]}, "items"),
        ({"properties": []}, "properties"),
        ("string", "no schema"),
    ],
)
def test_a_faulty_parameter_takes_anything_and_the_others_stay(part: object, said: str) -> None:
    schema = {"type": "object", "properties": {"a": part, "b": {"type": "integer"}}, "required": ["b"]}
    assert said in (find_schema_fault(schema) or "")
    assert repair_schema(schema) == {**schema, "properties": {"a": {}, "b": {"type": "integer"}}}
    assert find_schema_fault(repair_schema(schema)) is None


def test_a_sound_schema_is_left_alone() -> None:
    schema = {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "type": "object",
        "properties": {"a": {"$ref": "#/$defs/a"}, "b": {"anyOf": [{"type": ["string", "null"]}, True]}},
        "additionalProperties": False,
        "$defs": {"a": {"type": "array", "items": {"enum": [1, None]}, "minItems": 1}},
    }
    assert find_schema_fault(schema) is None
    assert find_schema_fault({}) is None


def test_a_bottomless_schema_is_a_fault() -> None:
    deep: dict[str, Any] = {"type": "object"}
    for _ in range(100):
        deep = {"type": "object", "properties": {"a": deep}}
    assert find_schema_fault(deep) == "nests too deep"
    assert repair_schema(deep) == {"type": "object", "properties": {"a": {}}}


def test_a_name_that_would_forge_lines_is_left_out_and_escapes_do_not_hide_in_a_schema() -> None:
    schema = {"type": "object", "properties": {"a\x1b[2J": {"description": "red\x1b[31m"}, "b\nc": {"pattern": "\\bx"}}}
    found = clean_listing(
        "shop", [tool("good\n\n2. another"), tool("line\u2028break"), tool("two words", schema=schema)]
    )
    assert [one.name for one in found.tools] == ["two words"]
    assert json.loads(found.tools[0].parameters)["properties"] == {
        "a[2J": {"description": "red[31m"},
        "b c": {"pattern": "\\bx"},
    }
    plain = clean_listing("shop", [tool("a", schema={"type": "object", "properties": {"x": {"pattern": "\\bx\n"}}})])
    assert plain.problems == (), "what may stay is no reason to complain"


# Which tool a name means, among those with that name and those that the caller may use


ONE, OTHER = (CatalogueTool(f"{server}::send", server, "send", "", {}) for server in ("mail", "post"))
EVERYTHING = PermittedTools()
NO_MAIL = PermittedTools([AccessRule("1", "*", AccessEffect.DENY, "mail::*")])


def test_it_is_the_only_one_that_the_caller_may_use() -> None:
    assert require_one_tool([ONE], EVERYTHING, "send") is ONE
    assert require_one_tool([ONE, OTHER], NO_MAIL, "send") is OTHER


def test_none_one_that_is_kept_from_the_caller_and_several_are_told_apart() -> None:
    with pytest.raises(NotFound, match="There is no tool 'send'"):
        require_one_tool([], EVERYTHING, "send")
    with pytest.raises(Denied, match="You may not use the tool 'send'"):
        require_one_tool([ONE], NO_MAIL, "send")
    with pytest.raises(Invalid, match="say which: mail::send, post::send"):
        require_one_tool([ONE, OTHER], EVERYTHING, "send")


def test_a_long_name_and_many_tools_are_cut_short() -> None:
    many = [CatalogueTool(f"s{number}::send", f"s{number}", "send", "", {}) for number in range(20)]
    with pytest.raises(Invalid) as refused:
        require_one_tool(many, EVERYTHING, "send" * 1000)
    assert len(str(refused.value)) < 400


@shows("KEPT-12")
def test_a_tool_that_is_gone_is_not_what_was_meant_by_its_own_name() -> None:
    known = ["mail::send", "mail::send_all"]
    assert find_similar_id(known, EVERYTHING, "mail::sent") == "mail::send"
    assert find_similar_id(known, EVERYTHING, "mail::send") == "mail::send_all"
    assert find_similar_id(known[:1], EVERYTHING, "mail::send") is None


# Manifests of editors and of Agent 365 projects, and the messages for invalid ones


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
MANIFEST_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=4),
    max_leaves=10,
)


@given(MANIFEST_JSON)
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


MANIFEST_NAMES = st.text(max_size=40) | st.sampled_from(
    ["Mail", "mail", "M ail", "M_ail", "M-ail", "host", "邮件", "x" * 50]
)


@given(st.lists(st.tuples(MANIFEST_NAMES, MANIFEST_NAMES), max_size=8, unique=True))
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
