"""What a client sends, as the protocol has it; and what it is told where it is not."""

from collections.abc import Callable
from typing import Any

import acp.schema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

from frontdesk.interfaces.acp import schema as words
from frontdesk.interfaces.acp.jsonrpc import RpcError
from frontdesk.interfaces.acp.schema import MAX_PROBLEMS, __all__, parse, parse_config_option, parse_elicitation

TEXT = {"type": "text", "text": "hi"}
MODELS: list[type[BaseModel]] = [word for name in __all__ if isinstance(word := getattr(words, name), type)]


texts = st.text(max_size=4) | st.sampled_from(["text", "resource", "http", "selected", "accept", "boolean", "/a"])
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts | st.sampled_from(["type", "_meta"]), inner),
    max_leaves=6,
)


@st.composite
def sent(draw: st.DrawFn) -> tuple[type[BaseModel], dict[str, Any]]:
    """Something for each field of a model, as often as not of its type."""
    model = draw(st.sampled_from([model for model in MODELS if model is not words.OtherElicitationResponse]))
    names = [field.alias or name for name, field in model.model_fields.items()]
    return model, draw(st.fixed_dictionaries({}, optional=dict.fromkeys(names, values)))


def refused(model: type[BaseModel], params: dict[str, Any]) -> str:
    with pytest.raises(RpcError) as raised:
        parse(model, params)
    assert raised.value.code == -32602
    assert raised.value.__cause__ is None
    return raised.value.message


def test_fields_are_taken_by_the_names_of_the_protocol() -> None:
    got = parse(words.PromptRequest, {"sessionId": "a", "prompt": [TEXT], "_meta": {"x": 1}})
    assert got.session_id == "a"
    assert got.prompt == [words.TextContentBlock(type="text", text="hi")]
    assert got.field_meta == {"x": 1}


def test_nothing_in_meta_and_no_name_of_python_stands_for_a_field() -> None:
    sly: dict[str, Any] = {"session_id": "evil", "sessionId": "evil", "cwd": "/evil", "field_meta": {}}
    params: dict[str, Any] = {"cwd": "/a", "mcpServers": [], "_meta": sly}
    got = parse(words.LoadSessionRequest, {**params, "sessionId": "a", "session_id": "evil", "field_meta": {"y": 1}})
    assert (got.session_id, got.cwd, got.field_meta) == ("a", "/a", sly)
    assert refused(words.LoadSessionRequest, {**params, "session_id": "evil"}) == (
        "Invalid params: sessionId: Field required"
    )
    block = parse(words.PromptRequest, {"sessionId": "a", "prompt": [{**TEXT, "field_meta": sly}]}).prompt[0]
    assert block.field_meta is None


@pytest.mark.parametrize("meta", [5, "text", [1], None])
def test_a_meta_that_is_no_object_is_as_good_as_none(meta: object) -> None:
    assert parse(words.LogoutRequest, {"_meta": meta}).field_meta is None


def test_what_does_not_fit_is_named_and_not_repeated() -> None:
    secret = "secret-value"
    odd = [{"type": secret}, {"type": "text", "text": [secret]}]
    message = refused(words.PromptRequest, {"sessionId": {secret: secret}, "prompt": odd, secret: 1})
    assert message == (
        "Invalid params: sessionId: Input should be a valid string; "
        "prompt.0: expected one of 'text', 'image', 'audio', 'resource_link', 'resource'; "
        "prompt.1.text.text: Input should be a valid string"
    )


def test_many_problems_are_told_in_one_short_line() -> None:
    message = refused(words.PromptRequest, {"sessionId": "a", "prompt": [5] * 100})
    assert message.count(";") == MAX_PROBLEMS
    assert message.endswith("; and 95 more")
    name = "x\n" * 10_000
    assert len(refused(words.AcceptElicitationResponse, {"action": "accept", "content": {name: {}}})) < 1000


def test_a_server_that_is_no_server_is_left_out() -> None:
    stdio = {"name": "a", "command": "/bin/a", "args": [], "env": [{"name": "K", "value": "v"}]}
    http: dict[str, Any] = {"type": "http", "name": "h", "url": "http://h", "headers": []}
    sse = {**http, "type": "sse"}
    got = parse(words.NewSessionRequest, {"cwd": "/a", "mcpServers": [stdio, http, sse, 5, {"type": "pigeon"}]})
    assert [type(server) for server in got.mcp_servers] == [
        words.McpServerStdio,
        words.HttpMcpServer,
        words.SseMcpServer,
    ]


def test_an_option_is_set_to_a_word_or_to_yes_or_no() -> None:
    option = {"sessionId": "s", "configId": "c"}
    chosen = parse_config_option({**option, "value": "true"})
    assert isinstance(chosen, words.SetSessionConfigOptionSelectRequest)
    assert chosen.value == "true"
    switched = parse_config_option({**option, "type": "boolean", "value": False})
    assert isinstance(switched, words.SetSessionConfigOptionBooleanRequest)
    assert switched.value is False
    for odd in (True, 5, None, ["a"]):
        with pytest.raises(RpcError, match="value: Input should be a valid string"):
            parse_config_option({**option, "value": odd})


@pytest.mark.parametrize(
    ("result", "kind"),
    [
        ({"action": "accept", "content": {"a": "b", "n": 1}}, words.AcceptElicitationResponse),
        ({"action": "accept"}, words.AcceptElicitationResponse),
        ({"action": "decline"}, words.DeclineElicitationResponse),
        ({"action": "cancel"}, words.CancelElicitationResponse),
        ({"action": "later"}, words.OtherElicitationResponse),
    ],
)
def test_an_elicitation_is_accepted_declined_cancelled_or_something_new(result: dict[str, Any], kind: type) -> None:
    assert type(parse_elicitation(result)) is kind


@pytest.mark.parametrize("result", [{}, {"action": 5}, {"action": ["accept"]}, {"action": "accept", "content": 5}])
def test_an_elicitation_that_says_nothing_known_is_refused(result: dict[str, Any]) -> None:
    with pytest.raises(RpcError):
        parse_elicitation(result)


@pytest.mark.parametrize("model", MODELS)
def test_the_words_are_those_of_the_sdk(model: type[BaseModel]) -> None:
    assert getattr(acp.schema, model.__name__) is model


def test_something_nested_too_deeply_is_refused_or_taken_and_never_fails() -> None:
    deep: dict[str, Any] = {}
    for _ in range(5000):
        deep = {"a": deep}
    assert parse(words.LogoutRequest, {"_meta": deep}).field_meta is not None
    assert refused(words.PromptRequest, {"sessionId": deep, "prompt": deep})


@settings(deadline=None, derandomize=True, database=None, max_examples=500)
@given(sent())
def test_whatever_is_sent_fits_or_is_refused_in_a_line(given: tuple[type[BaseModel], dict[str, Any]]) -> None:
    model, params = given
    got = outcome(lambda: parse(model, params))
    assert type(got) is model or str(got).startswith("Invalid params: ")


@settings(deadline=None, derandomize=True, database=None)
@given(st.fixed_dictionaries({}, optional=dict.fromkeys(["action", "content", "type", "value", "configId"], values)))
def test_whatever_is_said_of_options_and_elicitations_fits_or_is_refused(said: dict[str, Any]) -> None:
    for read in (parse_elicitation, parse_config_option):
        assert isinstance(outcome(lambda read=read: read(said)), BaseModel | str)


def outcome(read: Callable[[], BaseModel]) -> BaseModel | str:
    """What was read, or the one line that says why not."""
    try:
        return read()
    except RpcError as error:
        return error.message if error.code == -32602 else pytest.fail(f"refused as {error.code}")
