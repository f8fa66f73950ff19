"""Declared tools held against live ones: what is missing, what takes other arguments, what nobody declared."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frontdesk.agent365.manifest.model import DeclaredTool
from frontdesk.agent365.verify import ServerVerification, ToolFinding, ToolState, compare_tools, schema_differences
from frontdesk.mcp_client.model import RemoteTool
from tests.requirements import shows

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
