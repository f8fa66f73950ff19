"""Tests the problems of a manifest, by itself and compared with the live tools."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frontdesk.agent365.manifest.model import DeclaredTool, ProblemLevel
from frontdesk.agent365.verify import ServerVerification, ToolFinding, ToolState, compare_tools, schema_differences
from frontdesk.mcp_client.model import RemoteTool
from tests.requirements import shows
from tests.unit.agent365.test_declared import declared

# Each problem of a manifest is reported with its place, and with a solution


GUID = "05879165-0320-489e-b644-f72b33f3edf0"
OBJECT: dict[str, Any] = {"type": "object", "properties": {"to": {}}}


def told(folder: Path, *servers: object, **mocks: object) -> list[str]:
    return [str(problem) for problem in declared(folder, *servers, **mocks).problems]


def server(**said: object) -> dict[str, object]:
    return {"mcpServerName": "m", **said}


def tool(**said: object) -> dict[str, object]:
    """An otherwise valid server with one tool."""
    return server(tools=[{"name": "send", "description": "Sends.", **said}])


ENTRIES: list[tuple[object, str]] = [
    (7, "error: mcpServers[0]: must be an object with mcpServerName, not a number"),
    ({}, "error: mcpServers[0].mcpServerName: is missing"),
    ({"mcpServerName": 7}, "error: mcpServers[0].mcpServerName: must be a text, not a number"),
    ({"mcpServerName": " "}, "error: mcpServers[0].mcpServerName: is blank"),
    (
        {"mcpServerUniqueName": "m"},
        "warning: mcpServers[0]: has only mcpServerUniqueName; Microsoft's Python SDK",
    ),
    (server(mcpServerUniqueName=""), "warning: mcpServers[0].mcpServerUniqueName: is blank"),
    ({"mcpServerName": " m"}, "warning: mcpServers[0].mcpServerName: 'm' begins or ends with a blank"),
    ({"mcpServerName": "a b"}, "warning: mcpServers[0].mcpServerName: 'a b' must be encoded in an address"),
    ({"mcpServerName": "a-b"}, "warning: mcpServers[0].mcpServerName: no shell can set BEARER_TOKEN_A-B"),
    ({"mcpServerName": "a..b"}, "warning: mcpServers[0].mcpServerName: 'a..b' must be encoded"),
    (server(url="http://mail.example/mcp"), "warning: mcpServers[0].url: sends the token over plain HTTP"),
    (server(audience="mail"), "warning: mcpServers[0].audience: 'mail' is no application"),
    (server(audience=GUID, scope="a b"), "warning: mcpServers[0].scope: names more than one scope"),
    (server(scope="Mail.All"), "warning: mcpServers[0].scope: is not used without an audience"),
    (server(audience=["x"]), "error: mcpServers[0].audience: must be a text, not a list"),
    (server(publisher=5), "warning: mcpServers[0].publisher: must be a text, not a number"),
    (server(audiense="x"), "warning: mcpServers[0].audiense: is not read by anybody; did you mean 'audience'?"),
    (server(wholly="x"), "warning: mcpServers[0].wholly: is not read by anybody; leave it out"),
    (
        server(connectivityStatus="ready"),
        "warning: mcpServers[0].connectivityStatus: 'ready' is no state of a",
    ),
    (server(connectivityStatus="Pending"), "warning: mcpServers[0].connectivityStatus: is Pending, and nothing says"),
    (server(allConnectionsUrl="x"), "warning: mcpServers[0].allConnectionsUrl: is no address"),
    (server(tools="send"), "error: mcpServers[0].tools: must be a list, not a text"),
    (server(mockFile="../x.json"), "error: mcpServers[0].mockFile: '../x.json' is not inside the manifest's folder"),
    (server(mockFile="x.json"), "error: mcpServers[0].mockFile: there is no file 'x.json'"),
]
TOOLS: list[tuple[object, str]] = [
    (server(tools=[7]), "error: mcpServers[0].tools[0]: must be a tool's name or an object, not a number"),
    (server(tools=[dict[str, object]()]), "error: mcpServers[0].tools[0].name: is missing or blank"),
    (server(tools=["a", "a"]), "error: mcpServers[0].tools[1]: 'a' is declared twice"),
    (server(tools=["send mail"]), "error: mcpServers[0].tools[0]: 'send mail' is refused by MCP clients"),
    (tool(name="x" * 129), "error: mcpServers[0].tools[0].name: 'xxx"),
    (tool(description=" "), "warning: mcpServers[0].tools[0].description: is empty"),
    (tool(descripton="x"), "warning: mcpServers[0].tools[0].descripton: is not read by anybody; did you mean 'desc"),
    (tool(Name="send"), "warning: mcpServers[0].tools[0].Name: is name once more"),
    (tool(inputSchema=[]), "error: mcpServers[0].tools[0].inputSchema: must be an object, not a list"),
    (tool(inputSchema={"type": "array"}), "error: mcpServers[0].tools[0].inputSchema: is for 'array'"),
    (tool(inputSchema={}), 'warning: mcpServers[0].tools[0].inputSchema: does not say "type": "object"'),
    (
        tool(inputSchema={"type": "object", "properties": {"to": {"type": "strin"}}}),
        "error: mcpServers[0].tools[0].inputSchema: is no JSON Schema at $.properties.to.type: 'strin'",
    ),
    (
        tool(inputSchema={"type": "object", "required": "to"}),
        "error: mcpServers[0].tools[0].inputSchema: is no JSON",
    ),
    (
        tool(inputSchema={**OBJECT, "required": ["too"]}),
        "warning: mcpServers[0].tools[0].inputSchema.required: asks for 'too', which no property describes; did you",
    ),
    (
        tool(inputSchema=OBJECT, responseTemplate="{{ TO }} {{too}}"),
        "warning: mcpServers[0].tools[0].responseTemplate: '{{too}}' is no argument of the tool; did you mean 'to'?",
    ),
    (tool(responseTemplate={}), "error: mcpServers[0].tools[0].responseTemplate: must be a text, not an object"),
    (tool(errorRate=1.5), "error: mcpServers[0].tools[0].errorRate: must be a number from 0 to 1"),
    (tool(errorRate=True), "error: mcpServers[0].tools[0].errorRate: must be a number from 0 to 1, not true or false"),
    (tool(delayMs=-1), "error: mcpServers[0].tools[0].delayMs: must be a number from 0 to 60000"),
    (tool(delayMs=0.5), "error: mcpServers[0].tools[0].delayMs: must be a whole number"),
    (tool(statusCode=99), "error: mcpServers[0].tools[0].statusCode: must be a number from 200 to 599"),
    (tool(enabled="yes"), "error: mcpServers[0].tools[0].enabled: must be true or false, not a text"),
]
STATES: list[tuple[object, str]] = [
    (7, "error: mcpServers[0].tools[0].states: must be a list, not a number"),
    ([7], "error: mcpServers[0].tools[0].states[0]: must be an object like"),
    ([{"in": "start"}], "warning: mcpServers[0].tools[0].states[0]: has no responseTemplate"),
    ([{"in": " ", "responseTemplate": ""}], "error: mcpServers[0].tools[0].states[0].in: is blank"),
    ([{"in": "sent", "responseTemplate": ""}], "warning: mcpServers[0].tools[0].states[0].in: nothing leads to 'sent'"),
    (
        [{"in": "start", "responseTemplate": "", "next": "sent"}],
        "warning: mcpServers[0].tools[0].states[0].next: no tool of the server speaks of 'sent'",
    ),
    (
        [{"in": "start", "responseTemplate": ""}, {"in": "start", "responseTemplate": ""}],
        "warning: mcpServers[0].tools[0].states[1]: is never given",
    ),
    (
        [{"responseTemplate": "", "then": "start"}],
        "warning: mcpServers[0].tools[0].states[0].then: is not read by anybody",
    ),
]


@shows("A365-LINT")
@pytest.mark.parametrize(("entry", "said"), [*ENTRIES, *TOOLS, *((tool(states=one), said) for one, said in STATES)])
def test_a_mistake_is_told_with_its_place(tmp_path: Path, entry: object, said: str) -> None:
    assert [problem for problem in told(tmp_path, entry) if problem.startswith(said)]


@pytest.mark.parametrize(
    "entry",
    [
        server(url="http://127.0.0.1:5309/mcp", audience=GUID.upper()),
        server(url="http://localhost/mcp", audience=f"api://{GUID}", scope="x"),
        server(url="http://[::1]:1/", audience="default"),
        server(connectivityStatus="Pending", missingConnectionsUrl="https://connect.example"),
        tool(inputSchema={**OBJECT, "additionalProperties": True}, responseTemplate="{{anything}}"),
        tool(responseTemplate="{{anything}}"),
        tool(inputSchema={**OBJECT, "required": ["to"]}, responseTemplate="Sent."),
        tool(
            responseTemplate="Nothing to do.",
            states=[{"in": "start", "responseTemplate": "Sent.", "next": "over"}],
        ),
    ],
)
def test_what_is_right_is_not_complained_about(tmp_path: Path, entry: object) -> None:
    assert told(tmp_path, entry) == []


@shows("A365-LINT")
def test_servers_that_cannot_be_told_apart_are_told(tmp_path: Path) -> None:
    entries = [
        {"mcpServerName": "mail", "mcpServerUniqueName": "one"},
        {"mcpServerName": "mail"},
        {"mcpServerName": "Mail", "mcpServerUniqueName": "one"},
    ]
    found = declared(tmp_path, *entries)
    assert [one.name for one in found.servers] == ["mail", "Mail"]
    twice, variable, unique = found.problems
    assert (twice.level, twice.where) == (ProblemLevel.ERROR, "mcpServers[1]")
    assert (variable.level, variable.where) == (ProblemLevel.WARNING, "mcpServers[2]")
    assert "BEARER_TOKEN_MAIL with mcpServers[0]" in variable.what
    assert "mcpServerUniqueName 'one'" in unique.what


@shows("A365-LINT")
def test_states_are_those_of_the_server_and_not_of_one_tool(tmp_path: Path) -> None:
    draft = {"name": "draft", "description": "Drafts.", "states": [{"next": "drafted", "responseTemplate": "Ok."}]}
    send: dict[str, Any] = {"name": "send", "description": "Sends."}
    right = {**send, "states": [{"in": "drafted", "responseTemplate": "Sent.", "next": "start"}]}
    assert told(tmp_path, server(tools=[draft, right])) == []
    wrong = {**send, "states": [{"in": "draftd", "responseTemplate": "Sent."}]}
    there, back = told(tmp_path, server(tools=[draft, wrong]))
    assert there.endswith("no tool of the server speaks of 'drafted'; did you mean 'draftd'?")
    assert back.endswith("nothing leads to 'draftd' from 'start'; did you mean 'drafted'?")


@shows("A365-LINT")
def test_what_is_wrong_in_a_mock_file_is_told_there(tmp_path: Path) -> None:
    assert told(tmp_path, server(), m=7) == [
        'error: mocks/m.json: must be a list of tools, or {"tools": […]}, not a number'
    ]
    assert told(tmp_path, server(), m={"Tools": [{"NAME": 7}]})[0].startswith(
        "error: mocks/m.json: Tools[0].NAME: must be a text"
    )
    (tmp_path / "mocks" / "m.json").write_text("[")
    assert told(tmp_path, server())[0].startswith("error: mocks/m.json: it is not JSON")


@shows("A365-LINT")
def test_a_mock_file_that_belongs_to_nobody_is_told(tmp_path: Path) -> None:
    assert told(tmp_path, server(mcpServerName="mcp_Mail"), mcp_mail=[], odd=[]) == [
        "warning: mocks/mcp_mail.json: belongs to no server of the manifest; did you mean 'mcp_Mail'?",
        "warning: mocks/odd.json: belongs to no server of the manifest; name it after its server",
    ]


# Declared tools compared with live ones: missing ones, other arguments, undeclared ones


WORDS = ["type", "properties", "required", "items", "anyOf", "oneOf", "$ref", "to", "cc", "body"]
TYPES = ["object", "string", "array", "integer", "number", "null"]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.sampled_from([*TYPES, "to", "cc"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(WORDS), inner, max_size=5),
    max_leaves=20,
)
SCHEMAS = st.dictionaries(st.sampled_from(WORDS), JSON, max_size=5)
NAMES = st.sampled_from(["send", "sendMail", "mail_send", "read", "drop", "x"])

DECLARED = st.builds(DeclaredTool, NAMES, input_schema=SCHEMAS, enabled=st.booleans())


def takes(required: tuple[str, ...] = (), **properties: Any) -> dict[str, Any]:
    named = {name: {"type": kind} if isinstance(kind, str) else kind for name, kind in properties.items()}
    return {"type": "object", "properties": named, "required": list(required)}


def live(*names: str) -> list[RemoteTool]:
    return [RemoteTool(name, "", {"type": "object"}) for name in names]


@shows("A365-VERIFY")
def test_each_tool_is_found_or_missing_and_others_are_told() -> None:
    declared = [
        DeclaredTool("send"),
        DeclaredTool("readMail"),
        DeclaredTool("wholly"),
        DeclaredTool("off", enabled=False),
    ]
    assert compare_tools(declared, live("send", "read_mail", "off", "new")) == (
        ToolFinding(ToolState.FOUND, "send"),
        ToolFinding(ToolState.MISSING, "readMail", "the server has 'read_mail'"),
        ToolFinding(ToolState.MISSING, "wholly"),
        ToolFinding(ToolState.UNDECLARED, "read_mail"),
        ToolFinding(ToolState.UNDECLARED, "new"),
    )


@pytest.mark.parametrize(
    ("name", "now"),
    [
        ("sendMail", "SendMail"),
        ("sendMail", "send_mail"),
        ("sendMail", "mcp_MailTools_graph_mail_sendMail"),
        ("mcp_MailTools_graph_mail_sendMail", "send-mail"),
        ("createEvent", "createEvents"),
    ],
)
def test_a_name_that_drifted_is_found_again(name: str, now: str) -> None:
    [missing, *_] = compare_tools([DeclaredTool(name)], live("entirely", now, "other"))
    assert missing == ToolFinding(ToolState.MISSING, name, f"the server has '{now}'")


@shows("A365-VERIFY")
@pytest.mark.parametrize(
    ("declared", "there", "said"),
    [
        (takes(to="string"), takes(), ["the server has no argument 'to'"]),
        (takes(("to",), to="string"), takes(), ["the server has no argument 'to', though the declaration requires it"]),
        (takes(to="string"), {"type": "object"}, ["the server has no argument 'to'"]),
        (takes(), takes(("to",), to="string"), ["the server requires 'to', which is not declared"]),
        (takes(to="string"), takes(("to",), to="string"), ["the server requires 'to', which is declared as optional"]),
        (takes(to="string"), takes(to="array"), ["'to' is array there, and declared as string"]),
        (takes(to="number"), takes(to="integer"), ["'to' is integer there, and declared as number"]),
        (takes(to=takes(a="string")), takes(to=takes(b="string")), ["the server has no argument 'to.a'"]),
        (
            takes(to={"type": "array", "items": {"type": "string"}}),
            takes(to={"type": "array", "items": takes(("a",), a="string")}),
            ["'to[]' is object there, and declared as string"],
        ),
    ],
)
def test_a_call_by_the_declaration_that_would_go_wrong_is_told(declared: Any, there: Any, said: list[str]) -> None:
    [finding] = compare_tools([DeclaredTool("send", input_schema=declared)], [RemoteTool("send", "", there)])
    assert finding == ToolFinding(ToolState.DRIFTED, "send", "; ".join(said))


@pytest.mark.parametrize(
    ("declared", "there"),
    [
        ({"type": "object"}, takes(("to",), to="string")),
        (takes(to="integer"), takes(to="number")),
        (takes(to="string"), takes(to={"type": ["string", "null"]}, cc="string")),
        (takes(to={"type": ["string", "null"]}), takes(to={"anyOf": [{"type": "string"}, {"type": "null"}]})),
        (takes(to="string"), takes(to={"anyOf": [{"type": "array"}, {"$ref": "#/x"}]})),
        (takes(("to",), to="string"), takes(to="string")),
        (takes(to="string"), {"type": "object", "$ref": "#/$defs/x"}),
        (takes(to="string"), takes(to=True)),
    ],
)
def test_what_does_no_harm_to_a_call_is_no_drift(declared: Any, there: Any) -> None:
    assert schema_differences(declared, there, 10) == []


@given(SCHEMAS)
def test_a_schema_never_drifts_from_itself(schema: dict[str, Any]) -> None:
    assert schema_differences(schema, schema, 10) == []


@shows("A365-VERIFY")
@given(
    st.lists(
        st.builds(DeclaredTool, NAMES, input_schema=SCHEMAS, enabled=st.booleans()), unique_by=lambda one: one.name
    ),
    st.lists(st.builds(RemoteTool, NAMES, st.just(""), SCHEMAS)),
)
def test_every_tool_has_exactly_one_finding(declared: list[DeclaredTool], there: list[RemoteTool]) -> None:
    found = compare_tools(declared, there)
    wanted, offered = {tool.name for tool in declared if tool.enabled}, {tool.name for tool in there}
    by_state = {state: {one.tool for one in found if one.state is state} for state in ToolState}
    assert len(found) == len({one.tool for one in found})
    assert by_state[ToolState.MISSING] == wanted - offered
    assert by_state[ToolState.FOUND] | by_state[ToolState.DRIFTED] == wanted & offered
    assert by_state[ToolState.UNDECLARED] == offered - {tool.name for tool in declared}
    assert ServerVerification("m", "", found).ok == (not by_state[ToolState.MISSING] | by_state[ToolState.DRIFTED])
