"""Tests requests in both directions and their parameters: each gets one answer, whatever the others do."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

import acp.schema
import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

from frontdesk.interfaces.acp import schema as words
from frontdesk.interfaces.acp.jsonrpc import MOST_REQUESTS, OVERLONG, ConnectionClosed, Json, RpcError, RpcRequest
from frontdesk.interfaces.acp.schema import MAX_PROBLEMS, __all__, parse, parse_config_option, parse_elicitation
from tests.unit.acp.lab import SECONDS, Talk, call, echo, notice, reply, talking

# Incoming requests: each gets one answer in its own time, whatever the others do


def error(number: object, code: int, message: str) -> dict[str, Any]:
    return {"id": number, "error": {"code": code, "message": message}}


CUT_OFF = "The request was cancelled"


class Held:
    """Handlers that wait until they are released, and report when they began and ended."""

    def __init__(self) -> None:
        self.begun: list[object] = []
        self.cleaned: list[object] = []
        self.release = anyio.Event()

    async def answer(self, request: RpcRequest) -> Json:
        if request.method == "echo":
            return request.params
        self.begun.append(request.id)
        try:
            await self.release.wait()
        finally:
            with anyio.CancelScope(shield=True):
                await anyio.lowlevel.checkpoint()
            self.cleaned.append(request.id)
        return {"held": True}


@pytest.mark.parametrize("number", [0, 1, -5, 2**70, "a", "", "1", "ü\n", None])
async def test_an_answer_has_the_id_of_its_request(number: object) -> None:
    async with talking() as talk:
        talk.say(call(number, "echo", a=1))
        assert await talk.hear() == {"id": number, "result": {"a": 1}}


async def test_requests_begin_in_the_order_they_came_and_end_in_their_own() -> None:
    held = Held()
    async with talking(held.answer) as talk:
        talk.say(*(call(number, "hold") for number in range(20)), call("quick", "echo"))
        assert await talk.hear() == {"id": "quick", "result": {}}
        assert held.begun == list(range(20))
        held.release.set()
        assert sorted([(await talk.hear())["id"] for _ in range(20)]) == list(range(20))


async def test_what_a_handler_sends_goes_out_before_its_answer_and_what_it_leaves_for_later_after() -> None:
    async def answer(request: RpcRequest) -> Json:
        async def later() -> None:
            await talk.peer.notify("later", {})

        async def failing() -> None:
            raise ValueError("secret")

        request.after_answer += [failing, later]
        for number in range(3):
            await talk.peer.notify("now", {"number": number})
        return {}

    async with talking(answer) as talk:
        talk.say(call(1, "any"))
        heard = [await talk.hear() for _ in range(5)]
    assert [frame.get("method") for frame in heard] == ["now", "now", "now", None, "later"]
    assert [frame["params"]["number"] for frame in heard[:3]] == [0, 1, 2]
    assert [str(bug) for bug in talk.bugs] == ["secret"]


async def test_an_error_is_told_and_a_bug_is_not() -> None:
    async def answer(request: RpcRequest) -> Json:
        match request.method:
            case "refused":
                raise RpcError(-32002, "No such\nsession", {"hint": "look"})
            case "unwritable":
                return {"what": object()}
            case _:
                raise ValueError("secret")

    async with talking(answer) as talk:
        talk.say(call(1, "refused"))
        told = {"code": -32002, "message": "No such session", "data": {"hint": "look"}}
        assert await talk.hear() == {"id": 1, "error": told}
        for method in ("unwritable", "bug"):
            talk.say(call(method, method))
            assert await talk.hear() == error(method, -32603, "Internal error")
    assert [type(bug) for bug in talk.bugs] == [TypeError, ValueError]


async def test_a_cancelled_request_is_cut_off_once_it_has_cleaned_up() -> None:
    held = Held()
    async with talking(held.answer) as talk:
        talk.say(call(1, "hold"), call("1", "hold"), notice("$/cancel_request", requestId="1"))
        assert await talk.hear() == error("1", -32800, CUT_OFF)
        assert held.cleaned == ["1"]
        held.release.set()
        assert await talk.hear() == {"id": 1, "result": {"held": True}}
    assert talk.bugs == []


async def test_a_request_that_wants_to_end_itself_is_asked_to() -> None:
    async def answer(request: RpcRequest) -> Json:
        stopped = anyio.Event()
        request.on_cancel = stopped.set
        await stopped.wait()
        return {"stopReason": "cancelled"}

    async with talking(answer) as talk:
        # In one piece: the cancel comes after the start of the request.
        talk.say(call(1, "prompt"), notice("$/cancel_request", requestId=1))
        assert await talk.hear() == {"id": 1, "result": {"stopReason": "cancelled"}}


@pytest.mark.parametrize("odd", [{}, {"requestId": 2}, {"requestId": True}, {"requestId": 1.0}, {"requestId": [1]}])
async def test_a_cancel_of_nothing_that_is_under_way_does_nothing(odd: dict[str, Any]) -> None:
    held = Held()
    async with talking(held.answer) as talk:
        talk.say(call(1, "hold"), notice("$/cancel_request", **odd))
        await talk.left_alone()
        held.release.set()
        assert await talk.hear() == {"id": 1, "result": {"held": True}}


async def test_something_cancelled_under_a_request_is_an_answer_too() -> None:
    async def answer(_request: RpcRequest) -> Json:
        raise asyncio.CancelledError

    async with talking(answer) as talk:
        talk.say(call(1, "any"))
        assert await talk.hear() == error(1, -32800, CUT_OFF)


async def test_an_id_in_use_is_refused_and_may_be_used_again_after_its_answer() -> None:
    held = Held()
    async with talking(held.answer) as talk:
        for number in (7, None):
            talk.say(call(number, "hold"), call(number, "echo"))
            words = "A request with this id is under way; give each an id of its own"
            assert await talk.hear() == error(number, -32600, words)
        held.release.set()
        assert {(await talk.hear())["id"] for _ in range(2)} == {7, None}
        talk.say(call(7, "echo", again=1))
        assert await talk.hear() == {"id": 7, "result": {"again": 1}}


async def test_so_many_requests_are_under_way_and_no_more() -> None:
    held = Held()
    async with talking(held.answer) as talk:
        talk.say(*(call(number, "hold") for number in range(MOST_REQUESTS)), call("more", "echo"))
        words = f"{MOST_REQUESTS} requests are under way; wait for the answer to one of them"
        assert await talk.hear() == error("more", -32600, words)
        held.release.set()
        assert len({(await talk.hear())["id"] for _ in range(MOST_REQUESTS)}) == MOST_REQUESTS
        await talk.left_alone()


async def test_what_is_no_frame_is_answered_and_ends_nothing() -> None:
    async with talking() as talk:
        for data, number, code in [
            (b"{", None, -32700),
            (b"[]", None, -32600),
            (b'{"jsonrpc":"1.0","id":3,"method":"echo"}', 3, -32600),
            (OVERLONG, None, -32600),
        ]:
            talk.say(data)
            heard = await talk.hear()
            assert (heard["id"], heard["error"]["code"]) == (number, code)
        await talk.left_alone()
    assert talk.bugs == []


async def test_notifications_are_heard_in_order_and_never_answered() -> None:
    heard: list[tuple[str, Json]] = []

    def hear(method: str, params: Json) -> None:
        heard.append((method, params))
        if method == "refused":
            raise RpcError(-32602, "Invalid params")
        if method == "bug":
            raise ValueError("secret")

    async with talking(hear=hear) as talk:
        talk.say(notice("refused"), notice("bug"), {"jsonrpc": "2.0", "method": "$/odd", "params": [1]})
        talk.say(*(notice("count", number=number) for number in range(50)))
        await talk.left_alone()
    assert [method for method, _ in heard] == ["refused", "bug", "$/odd", *["count"] * 50]
    assert [params["number"] for _, params in heard[3:]] == list(range(50))
    assert [str(bug) for bug in talk.bugs] == ["secret"]


@pytest.mark.parametrize("number", [1, "1", True, None, 1.0, [1]])
async def test_an_answer_to_nothing_we_asked_is_dropped(number: object) -> None:
    async with talking() as talk:
        talk.say(reply(number, result={}), reply(number, error={"code": 1, "message": ""}))
        await talk.left_alone()


async def test_requests_end_when_the_other_side_leaves() -> None:
    held = Held()
    async with talking(held.answer) as talk:
        talk.say(call(1, "hold"), call(2, "hold"))
        await talk.left_alone()
        talk.leave()
        await talk.ended.wait()
        assert sorted(map(str, held.cleaned)) == ["1", "2"]
        assert talk.carrier.outgoing.empty()
    assert talk.bugs == []


async def test_a_request_that_does_not_want_to_end_is_left_behind() -> None:
    release = anyio.Event()

    async def answer(request: RpcRequest) -> Json:
        with anyio.CancelScope(shield=True):
            await release.wait()
        return {}

    async with talking(answer, cleanup_seconds=0.01) as talk:
        talk.say(call(1, "stubborn"))
        talk.leave()
        await talk.ended.wait()
        release.set()
    assert [str(bug) for bug in talk.bugs] == ["stubborn did not end in 0.01 s"]


async def test_requests_end_with_the_task_that_runs_the_peer() -> None:
    held = Held()
    async with talking(held.answer) as talk:
        talk.say(call(1, "hold"))
        await talk.left_alone()
        talk.running.cancel()
        await talk.ended.wait()
        assert held.cleaned == [1]


async def test_a_peer_that_nobody_listens_to_ends() -> None:
    async def answer(_request: RpcRequest) -> Json:
        talk.carrier.deaf = True
        with pytest.raises(ConnectionClosed):
            await talk.peer.notify("update", {})
        return {}

    async with talking(answer) as talk:
        talk.say(call(1, "any"))
        await talk.ended.wait()
    assert talk.bugs == []


pieces = st.sampled_from(
    [
        *(b'{"jsonrpc":"2.0"', b',"id":1', b',"id":null', b',"method":"echo"', b',"method":"$/cancel_request"'),
        *(b',"params":{"requestId":1}', b',"params":[]', b',"result":{}', b',"error":5', b"}", b"[", b'"\\ud800"'),
    ]
)


@settings(deadline=None, derandomize=True, database=None)
@given(st.lists(st.binary(min_size=1) | st.lists(pieces, min_size=1, max_size=6).map(b"".join), max_size=8))
def test_whatever_comes_the_next_request_is_answered(lines: list[bytes]) -> None:
    async def survive() -> list[dict[str, Any]]:
        async with talking(echo) as talk:
            talk.say(*lines, call("last", "echo"))
            return await _until_last(talk)

    for frame in anyio.run(survive):
        assert ("result" in frame) != ("error" in frame)


async def _until_last(talk: Talk) -> list[dict[str, Any]]:
    heard: list[dict[str, Any]] = []
    with anyio.fail_after(SECONDS):
        while not heard or heard[-1]["id"] != "last":
            heard.append(json.loads(await talk.carrier.outgoing.get()))
    return heard


# Outgoing requests: answered, refused, cancelled, or left without an answer


class SentRequest:
    """One outgoing request, in a task of its own."""

    def __init__(self, talk: Talk, seconds: float = SECONDS) -> None:
        self.scope = anyio.CancelScope()
        self.outcome: Json | Exception | None = None
        self._talk = talk
        self._seconds = seconds

    async def run(self) -> None:
        with self.scope:
            try:
                self.outcome = await self._talk.peer.request("fs/read_text_file", {"path": "/a"}, self._seconds)
            except (RpcError, TimeoutError, ConnectionClosed) as error:
                self.outcome = error


async def outcome_of(**answer: Any) -> Json | Exception | None:
    async with talking() as talk:
        asked = SentRequest(talk)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(asked.run)
            request = await talk.hear()
            talk.say(reply(request["id"], **answer))
    return asked.outcome


async def test_each_question_gets_its_own_answer() -> None:
    requests: list[dict[str, Any]] = []
    async with talking() as talk:
        first, second = SentRequest(talk), SentRequest(talk)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(first.run)
            tasks.start_soon(second.run)
            requests += [await talk.hear(), await talk.hear()]
            assert [request["params"] for request in requests] == [{"path": "/a"}] * 2
            # The same number as an incoming request has: each side counts for itself.
            talk.say(call(requests[0]["id"], "echo"))
            assert await talk.hear() == {"id": requests[0]["id"], "result": {}}
            talk.say(*(reply(request["id"], result={"for": request["id"]}) for request in reversed(requests)))
    assert [first.outcome, second.outcome] == [{"for": request["id"]} for request in requests]
    assert requests[0]["id"] != requests[1]["id"]


@pytest.mark.parametrize("answer", [{"result": None}, {"result": {}}, {"result": None, "error": None}])
async def test_an_answer_without_words_is_an_empty_one(answer: dict[str, Any]) -> None:
    assert await outcome_of(**answer) == {}


@pytest.mark.parametrize(
    ("answer", "code", "message"),
    [
        ({"error": {"code": -32002, "message": "No such\nfile"}}, -32002, "No such file"),
        ({"error": {"code": "x", "message": 5}}, -32603, "fs/read_text_file was refused without a reason"),
        ({"error": "no"}, -32603, "fs/read_text_file was refused without a reason"),
        ({"result": [1]}, -32603, "The answer to fs/read_text_file is not an object"),
        ({"result": "yes"}, -32603, "The answer to fs/read_text_file is not an object"),
    ],
)
async def test_an_error_or_nonsense_is_raised(answer: dict[str, Any], code: int, message: str) -> None:
    error = await outcome_of(**answer)
    assert isinstance(error, RpcError)
    assert (error.code, error.message) == (code, message)


async def test_a_question_that_takes_too_long_is_withdrawn() -> None:
    async with talking() as talk:
        asked = SentRequest(talk, seconds=0.01)
        await asked.run()
        number = (await talk.hear())["id"]
        assert await talk.hear() == {"method": "$/cancel_request", "params": {"requestId": number}}
        talk.say(reply(number, result={"late": 1}))
        await talk.left_alone()
    assert isinstance(asked.outcome, TimeoutError)


async def test_a_question_of_a_cancelled_request_is_withdrawn() -> None:
    async def answer(request: RpcRequest) -> Json:
        return await talk.peer.request("session/request_permission", {}, SECONDS) if request.id == 1 else {}

    async with talking(answer) as talk:
        talk.say(call(1, "prompt"))
        number = (await talk.hear())["id"]
        talk.say({"jsonrpc": "2.0", "method": "$/cancel_request", "params": {"requestId": 1}})
        assert await talk.hear() == {"method": "$/cancel_request", "params": {"requestId": number}}
        assert (await talk.hear())["error"]["code"] == -32800
        talk.say(reply(number, result={}))
        await talk.left_alone()


async def test_nobody_waits_for_one_who_has_left() -> None:
    async with talking() as talk:
        before, after = SentRequest(talk), SentRequest(talk)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(before.run)
            await talk.hear()
            talk.leave()
        await talk.ended.wait()
        await after.run()
        assert talk.carrier.outgoing.empty()
    assert isinstance(before.outcome, ConnectionClosed)
    assert isinstance(after.outcome, ConnectionClosed)


# Parameters of a client by the protocol's schema, and the answers to invalid ones


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
    """A value for each field of a model, often of the wrong type."""
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
    """The parsed value, or the one line with the reason of the failure."""
    try:
        return read()
    except RpcError as error:
        return error.message if error.code == -32602 else pytest.fail(f"refused as {error.code}")
