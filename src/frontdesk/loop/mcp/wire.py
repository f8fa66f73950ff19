"""MCP as bytes: the frames we send, the headers around them, and the frames in an answer; no I/O."""

import base64
import json
import re
from collections.abc import Mapping
from typing import Any, cast

from frontdesk import __version__

Frame = Mapping[str, Any]

HANDSHAKE_VERSIONS = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")
MODERN_VERSION = "2026-07-28"
SESSION_HEADER = "mcp-session-id"
VERSION_HEADER = "mcp-protocol-version"
METHOD_NOT_FOUND = -32601
# What a server that knows no handshake says to one: unknown method, no envelope, no matching headers, no such version.
NO_HANDSHAKE = frozenset({METHOD_NOT_FOUND, -32602, -32020, -32022})
CLIENT = {"name": "frontdesk", "version": __version__}
HANDSHAKE: Frame = {"protocolVersion": HANDSHAKE_VERSIONS[0], "capabilities": {}, "clientInfo": CLIENT}
ENVELOPE: Frame = {
    "io.modelcontextprotocol/protocolVersion": MODERN_VERSION,
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": CLIENT,
}

LINE_END = re.compile(rb"\r\n|\n|\r")
PLAIN = re.compile(r"[\x20-\x7e]*")
WRAPPED = re.compile(r"=\?base64\?.*\?=")


def request(number: int, method: str, params: Frame) -> bytes:
    return _encode({"jsonrpc": "2.0", "id": number, "method": method, "params": params})


def notification(method: str) -> bytes:
    return _encode({"jsonrpc": "2.0", "method": method})


def reply(asked: Frame) -> bytes:
    """The answer to a request of the server: to a ping a pong, to all else that we do not do this."""
    if asked["method"] == "ping":
        return _encode({"jsonrpc": "2.0", "id": asked["id"], "result": {}})
    error = {"code": METHOD_NOT_FOUND, "message": f"This client does not answer {asked['method']}"}
    return _encode({"jsonrpc": "2.0", "id": asked["id"], "error": error})


def in_envelope(params: Frame) -> Frame:
    """Parameters as revision 2026-07-28 wants them: each request says what a handshake would have said."""
    return {**params, "_meta": ENVELOPE}


def routing_headers(method: str, params: Frame) -> dict[str, str]:
    """The headers in which revision 2026-07-28 repeats what the body says."""
    headers = {VERSION_HEADER: MODERN_VERSION, "mcp-method": method}
    name = params.get("name")
    return headers | {"mcp-name": _header_text(name)} if isinstance(name, str) else headers


def parse(body: bytes) -> Frame | None:
    """The JSON object in a body or an event, if it is one."""
    try:
        found: object = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return cast("Frame", found) if isinstance(found, dict) else None


def error_of(frame: Frame | None) -> tuple[int, str] | None:
    """(code, message) of a JSON-RPC error."""
    error: object = (frame or {}).get("error")
    if not isinstance(error, dict):
        return None
    told = cast("Frame", error)
    code = told.get("code")
    return (code if isinstance(code, int) else 0), str(told.get("message") or "the server gave no reason")


def is_request(frame: Frame) -> bool:
    return isinstance(frame.get("method"), str) and frame.get("id") is not None


def answers(frame: Frame, number: int) -> bool:
    """Whether this frame is what became of request `number`; an error may have lost the number."""
    if "method" in frame:
        return False
    return frame.get("id") == number or ("error" in frame and frame.get("id") is None)


class Events:
    """Takes server-sent events apart as they come in."""

    def __init__(self) -> None:
        self._partial: list[bytes] = []
        self._data: list[bytes] = []
        self._kind = b""
        self._after_return = False

    def feed(self, chunk: bytes) -> list[bytes]:
        """The data of each message that this chunk completes."""
        if not chunk:
            return []
        if self._after_return:
            chunk = chunk.removeprefix(b"\n")
        self._after_return = chunk.endswith(b"\r")
        first, *others = LINE_END.split(chunk)
        self._partial.append(first)
        found: list[bytes] = []
        for piece in others:
            found += self._line(b"".join(self._partial))
            self._partial = [piece]
        return found

    def _line(self, line: bytes) -> list[bytes]:
        if not line:
            return self._dispatch()
        name, _, value = line.partition(b":")
        if name == b"data":
            self._data.append(value.removeprefix(b" "))
        elif name == b"event":
            self._kind = value.removeprefix(b" ")
        return []

    def _dispatch(self) -> list[bytes]:
        data, kind = b"\n".join(self._data), self._kind
        self._data, self._kind = [], b""
        return [data] if data and kind in (b"", b"message") else []


def _header_text(value: str) -> str:
    # What a header cannot hold as it is travels as base64, in the form the revision prescribes.
    if PLAIN.fullmatch(value) and value == value.strip() and not WRAPPED.fullmatch(value):
        return value
    return f"=?base64?{base64.b64encode(value.encode(errors='replace')).decode()}?="


def _encode(frame: Frame) -> bytes:
    return json.dumps(frame, separators=(",", ":")).encode()
