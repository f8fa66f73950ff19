"""Frames out of bytes and into bytes, whatever is in them."""

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frontdesk.interfaces.acp.jsonrpc import (
    InvalidFrame,
    NotificationFrame,
    RequestFrame,
    ResponseFrame,
    RpcError,
    encode_frame,
    error_frame,
    notification_frame,
    parse_frame,
    request_frame,
    result_frame,
)

PARSE_ERROR, INVALID_REQUEST = -32700, -32600
HEAD = b'{"jsonrpc":"2.0","id":1,"method":"m","params":'

# With halves of surrogate pairs, which no text of Hypothesis' own has.
texts = st.text(st.characters(exclude_categories=())) | st.text()
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=12,
)
keys = st.sampled_from(["jsonrpc", "id", "method", "params", "result", "error"]) | st.text(max_size=3)
framelike = st.dictionaries(keys, st.sampled_from(["2.0", 1, None, True, 1.5, "m"]) | values, max_size=6)


def frame(**changes: Any) -> bytes:
    whole: dict[str, Any] = {"jsonrpc": "2.0", "id": 1, "method": "m", "params": {}, **changes}
    return json.dumps({name: value for name, value in whole.items() if value is not ...}).encode()


@given(st.binary() | values.map(lambda value: json.dumps(value).encode()) | framelike.map(lambda it: frame(**it)))
def test_whatever_comes_is_a_frame_or_is_told_why_not(data: bytes) -> None:
    match parse_frame(data):
        case RequestFrame(number, method, params):
            assert type(number) in (int, str, type(None))
            assert (type(method), type(params)) == (str, dict)
        case NotificationFrame(method, params):
            assert (type(method), type(params)) == (str, dict)
        case ResponseFrame(number):
            assert type(number) in (int, type(None))
        case InvalidFrame(code, message, number):
            assert code in (PARSE_ERROR, INVALID_REQUEST)
            assert message
            assert type(number) in (int, str, type(None))


@pytest.mark.parametrize("number", [0, 1, -1, 2**70, "", "1", None])
def test_a_request_has_an_id_even_if_it_is_null(number: object) -> None:
    assert parse_frame(frame(id=number, params={"a": 1})) == RequestFrame(number, "m", {"a": 1})  # pyright: ignore[reportArgumentType] - the cases are ids


@pytest.mark.parametrize("params", [..., None, {}, []])
def test_params_may_be_left_out(params: object) -> None:
    assert parse_frame(frame(params=params)) == RequestFrame(1, "m", {})
    assert parse_frame(frame(id=..., params=params)) == NotificationFrame("m", {})


def test_answers_are_told_from_requests() -> None:
    assert parse_frame(frame(method=..., params=..., result={"a": 1})) == ResponseFrame(1, {"a": 1})
    assert parse_frame(frame(method=..., params=..., result=None)) == ResponseFrame(1)
    assert parse_frame(frame(method=..., params=..., error={"code": 1})) == ResponseFrame(1, None, {"code": 1})
    for odd in ("1", True, 1.0, None, [1], ...):
        assert parse_frame(frame(id=odd, method=..., params=..., result={})) == ResponseFrame(None, {})


@pytest.mark.parametrize(
    "data",
    [
        *(b"{", b"", b"nonsense", b'"', b'{"a":1}}', b"\xff\xfe", b'{"a":"\xc3"}', b"{'a':1}", b'{"a":1,}', b'"\x00"'),
        *(HEAD + b"NaN}", HEAD + b"Infinity}", HEAD + b"-Infinity}", HEAD + b"9" * 5000 + b"}"),
        *(b"[" * 100_000, b'{"a":' * 100_000, HEAD + b"[" * 100_000 + b"]" * 100_000 + b"}"),
    ],
)
def test_what_is_no_json_is_a_parse_error(data: bytes) -> None:
    got = parse_frame(data)
    assert isinstance(got, InvalidFrame)
    assert (got.code, got.id) == (PARSE_ERROR, None)


@pytest.mark.parametrize(
    ("data", "number"),
    [
        *((data, None) for data in (b"[]", b"42", b"null", b'"text"', b"true", b"{}", b"[" + frame() + b"]")),
        *((frame(jsonrpc=odd), 1) for odd in (..., None, 2, 2.0, "1.0", ["2.0"])),
        *((frame(method=odd), 1) for odd in (None, 5, ["m"], {"a": 1}, True)),
        *((frame(id=odd), None) for odd in (True, False, 1.5, 1.0, [1], {"a": 1})),
        *((frame(params=odd), 1) for odd in ([1], 0, False, "text", 1.5)),
        (frame(method=...), None),
        (frame(id="mine", jsonrpc=...), "mine"),
        # An id of ours, not of theirs: to repeat it would answer another request.
        (frame(jsonrpc=..., method=..., result={}), None),
    ],
)
def test_json_that_is_no_frame_is_an_invalid_request(data: bytes, number: object) -> None:
    got = parse_frame(data)
    assert isinstance(got, InvalidFrame)
    assert (got.code, got.id) == (INVALID_REQUEST, number)


def test_a_notification_is_owed_no_answer_whatever_its_params_are() -> None:
    assert parse_frame(frame(id=..., params=[1])) == NotificationFrame("m", {})


def test_the_last_of_two_keys_counts() -> None:
    assert parse_frame(b'{"jsonrpc":"2.0","id":1,"id":2,"method":"m"}') == RequestFrame(2, "m", {})


def test_half_a_character_comes_in_as_a_replacement_and_a_whole_one_as_it_is() -> None:
    data = rb'{"jsonrpc":"2.0","id":"\uDFFF","method":"m","params":{"\ud800":["a\ud83d\ude00\udc00b", "\\ud800"]}}'
    assert parse_frame(data) == RequestFrame("\ufffd", "m", {"\ufffd": ["a\U0001f600\ufffdb", "\\ud800"]})


@given(st.dictionaries(texts, values))
def test_whatever_we_say_is_one_line_that_every_reader_takes(value: dict[str, Any]) -> None:
    data = encode_frame(value)
    text = data.decode()
    assert text.splitlines() == [text] or not {"\n", "\r", "\u2028", "\u2029"} & set(text)
    assert json.loads(text, parse_constant=pytest.fail) == _fit(value)


@given(st.sampled_from([1, "a", None]), st.text(), st.dictionaries(st.text(), st.integers() | st.text()))
def test_what_one_side_writes_the_other_reads(number: Any, method: str, params: dict[str, Any]) -> None:
    assert parse_frame(request_frame(number, method, params)) == RequestFrame(number, method, params)
    assert parse_frame(notification_frame(method, params)) == NotificationFrame(method, params)
    assert parse_frame(result_frame(1, params)) == ResponseFrame(1, params)
    told = {"code": 5, "message": "no", "data": params}
    assert parse_frame(error_frame(1, RpcError(5, "no", params))) == ResponseFrame(1, None, told)


def test_frames_are_compact() -> None:
    assert notification_frame("m", {"a": [1, "ü"]}) == '{"jsonrpc":"2.0","method":"m","params":{"a":[1,"ü"]}}'.encode()
    assert error_frame(None, RpcError(5, "no")) == b'{"jsonrpc":"2.0","id":null,"error":{"code":5,"message":"no"}}'


def _fit(value: Any) -> Any:
    """As it must arrive: no NaN, no infinity, no half characters."""
    match value:
        case str():
            return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        case float():
            return value if math.isfinite(value) else None
        case list():
            return [_fit(item) for item in value]  # pyright: ignore[reportUnknownVariableType] - whatever is in it
        case dict():
            return {_fit(key): _fit(item) for key, item in value.items()}  # pyright: ignore[reportUnknownVariableType] - whatever is in it
        case _:
            return value
