"""JSON-RPC frames in and out of bytes; no I/O."""

import json
from dataclasses import dataclass
from typing import Any, NoReturn, cast

from frontdesk.surfaces.acp.wire.model import INVALID_REQUEST, PARSE_ERROR, Json, RpcError

Id = int | str | None


@dataclass(frozen=True, slots=True)
class Call:
    """A request that is owed an answer, also where its id is null."""

    id: Id
    method: str
    params: Json


@dataclass(frozen=True, slots=True)
class Notice:
    """A frame that is owed none."""

    method: str
    params: Json


@dataclass(frozen=True, slots=True)
class Reply:
    """What came of a request of ours; `id` is None where it is none that we give."""

    id: int | None
    result: object = None
    error: object = None


@dataclass(frozen=True, slots=True)
class Malformed:
    """Not a frame; `id` is that of the request it may have been."""

    code: int
    message: str
    id: Id = None


Frame = Call | Notice | Reply | Malformed


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _to_null(_name: str) -> None:
    return None


# Made once: the module's own functions make one for every call that does not want the usual form.
_decode = json.JSONDecoder(parse_constant=_refuse_constant).decode
_written = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode


def parse(data: bytes) -> Frame:
    """The frame in one line; whatever is wrong with it is a value, not an exception."""
    try:
        frame = _read(data.decode())
    except (ValueError, RecursionError):
        return Malformed(PARSE_ERROR, "Parse error: a frame is one JSON text in UTF-8")
    if not isinstance(frame, dict):
        return Malformed(INVALID_REQUEST, "A frame is one JSON-RPC object; batches are not accepted")
    return _classify(cast("dict[str, Any]", frame))


def result_frame(number: Id, result: Json) -> bytes:
    return encode({"jsonrpc": "2.0", "id": number, "result": result})


def error_frame(number: Id, error: RpcError) -> bytes:
    told: dict[str, Any] = {"code": error.code, "message": error.message}
    if error.data is not None:
        told["data"] = error.data
    return encode({"jsonrpc": "2.0", "id": number, "error": told})


def call_frame(number: Id, method: str, params: Json) -> bytes:
    return encode({"jsonrpc": "2.0", "id": number, "method": method, "params": params})


def notice_frame(method: str, params: Json) -> bytes:
    return encode({"jsonrpc": "2.0", "method": method, "params": params})


def encode(value: Json) -> bytes:
    """One line of JSON that every reader takes: no NaN, no half characters, nothing that ends a line in JavaScript."""
    text = _text(value)
    if text.isascii():
        return text.encode()
    return _mended(text).replace("\u2028", "\\u2028").replace("\u2029", "\\u2029").encode()


def _text(value: Json) -> str:
    try:
        return _written(value)
    except ValueError:
        return _written(json.loads(json.dumps(value), parse_constant=_to_null))


def _read(text: str) -> object:
    frame: object = _decode(text)
    # Half of a pair can only come as an escape, and what has one could be neither stored nor sent on.
    if "\\ud" in text or "\\uD" in text:
        plain = json.dumps(frame, ensure_ascii=False)
        mended = _mended(plain)
        return frame if mended is plain else _decode(mended)
    return frame


def _mended(text: str) -> str:
    """The text with a replacement character for each half of a surrogate pair that stands alone."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def _classify(frame: dict[str, Any]) -> Frame:
    method, params = frame.get("method"), frame.get("params")
    # What is no request has an id of ours: in an answer it would be taken for one of theirs.
    number = _id_of(frame) if "method" in frame else None
    if frame.get("jsonrpc") != "2.0":
        return Malformed(INVALID_REQUEST, 'A frame needs "jsonrpc": "2.0"', number)
    if "method" not in frame and ("result" in frame or "error" in frame):
        return Reply(_own(frame.get("id")), frame.get("result"), frame.get("error"))
    if not isinstance(method, str):
        return Malformed(INVALID_REQUEST, "A frame needs a method, which is a string", number)
    if "id" not in frame:
        return Notice(method, _object(params) or {})
    return _call(frame, number, method)


def _call(frame: dict[str, Any], number: Id, method: str) -> Call | Malformed:
    if number is None and frame["id"] is not None:
        return Malformed(INVALID_REQUEST, "An id is a string, an integer or null")
    params: object = frame.get("params")
    # Lua writes an object without fields as a list.
    known = _object({} if params is None or params == [] else params)
    if known is None:
        return Malformed(INVALID_REQUEST, "The params of a frame are an object", number)
    return Call(number, method, known)


def _id_of(frame: dict[str, Any]) -> Id:
    number: object = frame.get("id")
    return number if isinstance(number, int | str) and not isinstance(number, bool) else None


def _own(number: object) -> int | None:
    return number if isinstance(number, int) and not isinstance(number, bool) else None


def _object(params: object) -> Json | None:
    return cast("dict[str, Any]", params) if isinstance(params, dict) else None
