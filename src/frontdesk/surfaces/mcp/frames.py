"""JSON-RPC frames in and out of an HTTP body, for both eras of the protocol."""

import json
from dataclasses import dataclass
from typing import Any, NoReturn, cast

from mcp.shared.inbound import ERROR_CODE_HTTP_STATUS
from mcp_types import INVALID_REQUEST, PARSE_ERROR, ErrorData

MAX_BODY = 4 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Call:
    """A request that is owed an answer."""

    id: int | str
    method: str
    params: dict[str, Any] | None
    frame: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Notice:
    """A frame that is owed none: a notification, or a reply to a request we never made."""


@dataclass(frozen=True, slots=True)
class Malformed:
    """Not a frame."""

    code: int
    message: str


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


_decode = json.JSONDecoder(parse_constant=_refuse_constant).decode
# Made once: the module's own function makes one for every call that does not want the usual form.
_written = json.JSONEncoder(separators=(",", ":")).encode


def parse(body: bytes) -> Call | Notice | Malformed:
    """The frame in a body; whatever is wrong with it is a value, not an exception."""
    try:
        frame: object = _decode(body.decode())
    except (ValueError, RecursionError):
        return Malformed(PARSE_ERROR, "Parse error: the body is not JSON")
    if not isinstance(frame, dict):
        return Malformed(INVALID_REQUEST, "The body must be one JSON-RPC object; batches are not accepted")
    return _classify(cast("dict[str, Any]", frame))


def _classify(frame: dict[str, Any]) -> Call | Notice | Malformed:
    method, number, params = frame.get("method"), frame.get("id"), frame.get("params")
    if frame.get("jsonrpc") != "2.0" or not (params is None or isinstance(params, dict)):
        return Malformed(INVALID_REQUEST, "Not a JSON-RPC 2.0 frame")
    if method is None and ("result" in frame or "error" in frame):
        return Notice()
    if not isinstance(method, str):
        return Malformed(INVALID_REQUEST, "A JSON-RPC frame needs a method")
    if "id" not in frame:
        return Notice()
    if isinstance(number, bool) or not isinstance(number, int | str):
        return Malformed(INVALID_REQUEST, "A JSON-RPC id is a string or an integer")
    return Call(number, method, cast("dict[str, Any] | None", params), frame)


def result_frame(number: int | str, result: dict[str, Any]) -> bytes:
    return _encode({"jsonrpc": "2.0", "id": number, "result": result})


def error_frame(number: int | str | None, error: ErrorData) -> bytes:
    return _encode({"jsonrpc": "2.0", "id": number, "error": error.model_dump(mode="json", exclude_none=True)})


def notice_frame(method: str, params: dict[str, Any] | None) -> bytes:
    body: dict[str, Any] = {"jsonrpc": "2.0", "method": method}
    return _encode(body if params is None else {**body, "params": params})


def event(frame: bytes) -> bytes:
    """A frame as one server-sent event."""
    return b"event: message\r\ndata: " + frame + b"\r\n\r\n"


def error_status(code: int, *, modern: bool) -> int:
    """Older clients expect 200 around a JSON-RPC error, newer ones the status that fits it."""
    return ERROR_CODE_HTTP_STATUS.get(code, 200) if modern else 200


def _encode(value: object) -> bytes:
    return _written(value).encode()
