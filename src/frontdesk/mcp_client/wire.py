"""Encodes and parses the frames of MCP, and reads tools, texts and errors from them; no I/O."""

import base64
import json
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, cast

from pydantic_core import from_json

from frontdesk import __version__
from frontdesk.mcp_client.model import RemoteTool

Frame = Mapping[str, Any]

HANDSHAKE_VERSIONS = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")
MODERN_VERSION = "2026-07-28"
SESSION_HEADER = "mcp-session-id"
VERSION_HEADER = "mcp-protocol-version"
METHOD_NOT_FOUND = -32601
# From this size on, parsing a body would delay other tasks.
LARGE_BODY = 64 * 1024
# What a server without a handshake answers to one: unknown method, no envelope, mismatched headers, unknown version.
NO_HANDSHAKE_CODES = frozenset({METHOD_NOT_FOUND, -32602, -32020, -32022})
CLIENT_INFO = {"name": "frontdesk", "version": __version__}
HANDSHAKE: Frame = {"protocolVersion": HANDSHAKE_VERSIONS[0], "capabilities": {}, "clientInfo": CLIENT_INFO}
ENVELOPE: Frame = {
    "io.modelcontextprotocol/protocolVersion": MODERN_VERSION,
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": CLIENT_INFO,
}

# MCP reserves the names of W3C trace context without a prefix.
META_NAMES: Mapping[str, str] = {
    "x-agent-id": "dev.frontdesk/agentId",
    "x-ms-agentid": "dev.frontdesk/platformAgentId",
    "x-request-id": "dev.frontdesk/requestId",
    "traceparent": "traceparent",
    "tracestate": "tracestate",
}

LINE_END = re.compile(rb"\r\n|\n|\r")
# A stream of events may begin with this byte order mark, which has no meaning.
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
PLAIN_HEADER = re.compile(r"[\x20-\x7e]*")
WRAPPED_HEADER = re.compile(r"=\?base64\?.*\?=")


def encode_request(number: int, method: str, params: Frame) -> bytes:
    return _encode({"jsonrpc": "2.0", "id": number, "method": method, "params": params})


def encode_notification(method: str, params: Frame | None = None) -> bytes:
    return _encode({"jsonrpc": "2.0", "method": method, **({} if params is None else {"params": params})})


def encode_cancellation(number: int) -> bytes:
    """A notification that a request is cancelled."""
    return encode_notification("notifications/cancelled", {"requestId": number, "reason": "the caller gave up"})


def encode_reply(asked: Frame) -> bytes:
    """The answer to a request of the server: a result for a ping, an error for any other."""
    if asked["method"] == "ping":
        return _encode({"jsonrpc": "2.0", "id": asked["id"], "result": {}})
    error = {"code": METHOD_NOT_FOUND, "message": f"This client does not answer {asked['method']}"}
    return _encode({"jsonrpc": "2.0", "id": asked["id"], "error": error})


def add_meta(params: Frame, meta: Frame) -> Frame:
    """Add entries to the `_meta` of parameters."""
    return {**params, "_meta": {**params.get("_meta", {}), **meta}} if meta else params


def add_envelope(params: Frame) -> Frame:
    """The parameters for revision 2026-07-28, in which each request repeats the content of the handshake."""
    return add_meta(params, ENVELOPE)


def headers_as_meta(said: Mapping[str, str]) -> Frame:
    """The identity headers of a call as `_meta` entries, for transports without headers."""
    return {META_NAMES[name]: value for name, value in said.items() if name in META_NAMES}


def routing_headers(method: str, params: Frame) -> dict[str, str]:
    """The headers in which revision 2026-07-28 repeats parts of the body."""
    headers = {VERSION_HEADER: MODERN_VERSION, "mcp-method": method}
    name = params.get("name")
    return headers | {"mcp-name": _header_text(name)} if isinstance(name, str) else headers


def parse_frame(body: bytes) -> Frame | None:
    """The JSON object in a body or an event; None if it is not an object."""
    try:
        found = _read_json(body)
    except (ValueError, RecursionError):
        return None
    return cast("Frame", found) if isinstance(found, dict) else None


def _read_json(body: bytes) -> object:
    # No other task runs while a body is parsed. This parser takes a seventh of the time, but accepts less than json.
    if len(body) > LARGE_BODY:
        with suppress(ValueError):
            return from_json(body)
    return json.loads(body)


def frame_error(frame: Frame | None) -> tuple[int, str] | None:
    """(code, message) of a JSON-RPC error."""
    error: object = (frame or {}).get("error")
    if not isinstance(error, dict):
        return None
    told = cast("Frame", error)
    code = told.get("code")
    return (code if isinstance(code, int) else 0), str(told.get("message") or "the server gave no reason")


def is_request_frame(frame: Frame) -> bool:
    return isinstance(frame.get("method"), str) and frame.get("id") is not None


def is_answer_to(frame: Frame, number: int) -> bool:
    """Whether this frame answers request `number`; an error may lack the number."""
    if "method" in frame:
        return False
    return frame.get("id") == number or ("error" in frame and frame.get("id") is None)


def frame_progress(frame: Frame, number: int) -> tuple[float, float | None, str | None] | None:
    """The progress of request `number` in a frame: (done, total, message)."""
    params: object = frame.get("params")
    if frame.get("method") != "notifications/progress" or not isinstance(params, dict):
        return None
    told = cast("Frame", params)
    if told.get("progressToken") != number or not _is_number(told.get("progress")):
        return None
    total, message = told.get("total"), told.get("message")
    return told["progress"], total if _is_number(total) else None, message if isinstance(message, str) else None


class SseParser:
    """Parses server-sent events as they arrive; `waiting` is the size of the incomplete event."""

    def __init__(self) -> None:
        self.pending_bytes = 0
        self._partial: list[bytes] = []
        self._data: list[bytes] = []
        self._kind = b""
        self._after_return = False
        self._begun = False

    def feed_messages(self, chunk: bytes) -> list[bytes]:
        """The data of each message that this chunk completes."""
        return [data for kind, data in self.feed_events(chunk) if kind in (b"", b"message")]

    def feed_events(self, chunk: bytes) -> list[tuple[bytes, bytes]]:
        """(kind, data) of each event that this chunk completes."""
        if not chunk:
            return []
        self.pending_bytes += len(chunk)
        if self._after_return:
            chunk = chunk.removeprefix(b"\n")
        self._after_return = chunk.endswith(b"\r")
        first, *others = LINE_END.split(chunk)
        self._partial.append(first)
        found: list[tuple[bytes, bytes]] = []
        for piece in others:
            found += self._line(b"".join(self._partial))
            self._partial = [piece]
        return found

    def _line(self, line: bytes) -> list[tuple[bytes, bytes]]:
        if not self._begun:
            self._begun, line = True, line.removeprefix(BYTE_ORDER_MARK)
        if not line:
            return self._dispatch()
        name, _, value = line.partition(b":")
        if name == b"data":
            self._data.append(value.removeprefix(b" "))
        elif name == b"event":
            self._kind = value.removeprefix(b" ")
        return []

    def _dispatch(self) -> list[tuple[bytes, bytes]]:
        data, kind = b"\n".join(self._data), self._kind
        self._data, self._kind, self.pending_bytes = [], b"", 0
        return [(kind, data)] if data else []


def _header_text(value: str) -> str:
    # A value that a header cannot contain is sent as base64, in the form that the revision defines.
    if PLAIN_HEADER.fullmatch(value) and value == value.strip() and not WRAPPED_HEADER.fullmatch(value):
        return value
    return f"=?base64?{base64.b64encode(value.encode(errors='replace')).decode()}?="


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


_encoder = json.JSONEncoder(separators=(",", ":"))


def _encode(frame: Frame) -> bytes:
    return _encoder.encode(frame).encode()


JsonObject = Mapping[str, Any]

PRIMING_TOOL = "set_access_token"
# A server that keeps the token in its session offers these tools to people; Frontdesk signs in for agents.
AUTH_TOOLS = frozenset(
    {
        "authenticate",
        "exchange_code_for_token",
        "refresh_token",
        PRIMING_TOOL,
        "clear_auth",
        "get_auth_status",
        "get_user_info",
    }
)
AUTH_PATTERN = re.compile(r"unauthorized|auth|认证|token", re.IGNORECASE)
RESULT_COMPLETE = "complete"
ANY_OBJECT_SCHEMA: JsonObject = {"type": "object"}


def tools_on_page(page: JsonObject) -> list[RemoteTool]:
    """The tools on one page of a listing, without entries that have no name."""
    return [_parse_tool(item) for item in json_objects(page.get("tools")) if isinstance(item.get("name"), str)]


def count_entries(page: JsonObject) -> int:
    """The number of entries on a page; a value that is not a list counts as one entry."""
    listed: object = page.get("tools")
    return len(cast("list[object]", listed)) if isinstance(listed, list) else 1


def without_sign_in_tools(tools: Sequence[RemoteTool]) -> Sequence[RemoteTool]:
    """Remove the sign-in tools of a server that keeps the token in its session."""
    return [tool for tool in tools if tool.name not in AUTH_TOOLS] if keeps_token_in_session(tools) else tools


def keeps_token_in_session(tools: Sequence[RemoteTool]) -> bool:
    return any(tool.name == PRIMING_TOOL for tool in tools)


def is_error_result(result: JsonObject) -> bool:
    return result.get("isError") is True


def is_success_result(result: JsonObject) -> bool:
    return not is_error_result(result) and result.get("resultType", RESULT_COMPLETE) == RESULT_COMPLETE


def mentions_authentication(text: str) -> bool:
    return AUTH_PATTERN.search(text) is not None


def result_text(result: JsonObject) -> str:
    """The text of a result's blocks; if no block is text, its structured content."""
    blocks = json_objects(result.get("content"))
    lines = [_block_text(block) for block in blocks]
    structured: object = result.get("structuredContent")
    if structured is not None and not any(block.get("type") == "text" for block in blocks):
        lines.insert(0, json.dumps(structured, ensure_ascii=False))
    return "\n".join(lines)


def _parse_tool(item: JsonObject) -> RemoteTool:
    schema, notes = item.get("inputSchema"), item.get("annotations")
    return RemoteTool(
        name=str(item["name"]),
        description=str(item.get("description") or item.get("title") or ""),
        parameters=cast("JsonObject", schema) if isinstance(schema, dict) else ANY_OBJECT_SCHEMA,
        annotations=cast("JsonObject", notes) if isinstance(notes, dict) else {},
    )


def _block_text(block: JsonObject) -> str:
    match block:
        case {"type": "text", "text": str(text)}:
            return text
        case {"type": "image" | "audio" as kind, "data": str(data)}:
            return f"[{kind} {block.get('mimeType', 'of unknown type')}, {_decoded_size(data)} bytes]"
        case {"type": "resource", "resource": {"uri": str(uri)}}:
            return f"[resource {uri}]"
        case {"type": "resource_link", "uri": str(uri)}:
            return f"[resource {uri}]"
        case _:
            return f"[{block.get('type', 'unknown content')}]"


def _decoded_size(data: str) -> int:
    return len(data) * 3 // 4 - data[-2:].count("=")


def json_objects(value: object) -> list[JsonObject]:
    """The items of a list that are objects; empty if the value is not a list."""
    if not isinstance(value, list):
        return []
    return [cast("JsonObject", item) for item in cast("list[object]", value) if isinstance(item, dict)]
