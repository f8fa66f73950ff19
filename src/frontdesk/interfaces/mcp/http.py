"""Serves MCP over HTTP: one POST in, one JSON answer or stream out, for both eras of the protocol, without state.

The SDK checks a request twice and its result once against models of every revision. This costs more than all the work
of Frontdesk for a call. Calls that are clearly well-formed skip these checks; all others go through the SDK.
"""

import asyncio
import contextvars
import json
from collections import deque
from collections.abc import Coroutine, Mapping
from dataclasses import dataclass, field
from typing import Any, NoReturn, cast

import anyio
import structlog
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from mcp.server.connection import Connection
from mcp.server.lowlevel import Server
from mcp.server.runner import serve_one
from mcp.server.sse import SseServerTransport
from mcp.shared.dispatcher import CallOptions
from mcp.shared.exceptions import MCPError, NoBackChannelError
from mcp.shared.inbound import (
    ERROR_CODE_HTTP_STATUS,
    MCP_PROTOCOL_VERSION_HEADER,
    X_MCP_HEADER_KEY,
    InboundLadderRejection,
    InboundModernRoute,
    classify_inbound_request,
    unsupported_protocol_version_rejection,
    validate_mcp_param_headers,
)
from mcp.shared.message import MessageMetadata, ServerMessageMetadata
from mcp.shared.transport_context import TransportContext
from mcp_types import (
    DEFAULT_NEGOTIATED_VERSION,
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    PARSE_ERROR,
    SERVER_INFO_META_KEY,
    ErrorData,
    ProgressToken,
    RequestId,
)
from mcp_types.methods import serialize_server_result
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, MODERN_PROTOCOL_VERSIONS
from opentelemetry import context as otel
from opentelemetry import propagate, trace
from opentelemetry.trace import SpanKind, StatusCode
from pydantic import ValidationError
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Mount, Route

from frontdesk.identity.mcp_sessions import McpSessionTokens
from frontdesk.interfaces.http.context import (
    SESSION_HEADER,
    URL_PREFIX_KEY,
    Receive,
    RequestContext,
    Scope,
    Send,
    request_context,
)
from frontdesk.interfaces.mcp.context import CallContext
from frontdesk.interfaces.mcp.tools import ToolHandler

MAX_BODY = 4 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class McpRequestFrame:
    """A request that needs an answer."""

    id: int | str
    method: str
    params: dict[str, Any] | None
    frame: dict[str, Any]


@dataclass(frozen=True, slots=True)
class McpNotificationFrame:
    """A frame without an answer: a notification, or a reply to a request that we never sent."""


@dataclass(frozen=True, slots=True)
class McpInvalidFrame:
    """A body that is not a valid frame."""

    code: int
    message: str


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


_decode = json.JSONDecoder(parse_constant=_refuse_constant).decode
# Created once: `json.dumps` with these separators creates an encoder for every call.
_to_json = json.JSONEncoder(separators=(",", ":")).encode


def parse_frame(body: bytes) -> McpRequestFrame | McpNotificationFrame | McpInvalidFrame:
    """Parse the frame in a body; an error is returned as a value, not raised."""
    try:
        frame: object = _decode(body.decode())
    except (ValueError, RecursionError):
        return McpInvalidFrame(PARSE_ERROR, "Parse error: the body is not JSON")
    if not isinstance(frame, dict):
        return McpInvalidFrame(INVALID_REQUEST, "The body must be one JSON-RPC object; batches are not accepted")
    return _classify_frame(cast("dict[str, Any]", frame))


def _classify_frame(frame: dict[str, Any]) -> McpRequestFrame | McpNotificationFrame | McpInvalidFrame:
    method, number, params = frame.get("method"), frame.get("id"), frame.get("params")
    if frame.get("jsonrpc") != "2.0" or not (params is None or isinstance(params, dict)):
        return McpInvalidFrame(INVALID_REQUEST, "Not a JSON-RPC 2.0 frame")
    if method is None and ("result" in frame or "error" in frame):
        return McpNotificationFrame()
    if not isinstance(method, str):
        return McpInvalidFrame(INVALID_REQUEST, "A JSON-RPC frame needs a method")
    if "id" not in frame:
        return McpNotificationFrame()
    if isinstance(number, bool) or not isinstance(number, int | str):
        return McpInvalidFrame(INVALID_REQUEST, "A JSON-RPC id is a string or an integer")
    return McpRequestFrame(number, method, cast("dict[str, Any] | None", params), frame)


def result_frame(number: int | str, result: dict[str, Any]) -> bytes:
    return _encode({"jsonrpc": "2.0", "id": number, "result": result})


def error_frame(number: int | str | None, error: ErrorData) -> bytes:
    return _encode({"jsonrpc": "2.0", "id": number, "error": error.model_dump(mode="json", exclude_none=True)})


def notification_frame(method: str, params: dict[str, Any] | None) -> bytes:
    body: dict[str, Any] = {"jsonrpc": "2.0", "method": method}
    return _encode(body if params is None else {**body, "params": params})


def sse_event(frame: bytes) -> bytes:
    """A frame as one server-sent event."""
    return b"event: message\r\ndata: " + frame + b"\r\n\r\n"


def error_status(code: int, *, modern: bool) -> int:
    """The HTTP status of a JSON-RPC error: older clients expect 200, newer ones the status that fits the error."""
    return ERROR_CODE_HTTP_STATUS.get(code, 200) if modern else 200


def _encode(value: object) -> bytes:
    return _to_json(value).encode()


TOOLS_CALL = "tools/call"
PLAIN_PARAMS = frozenset({"name", "arguments", "_meta"})
# The SDK acts on these keys of a request's metadata.
SDK_META = frozenset({"progressToken", "traceparent", "tracestate", "io.modelcontextprotocol/logLevel"})
# Revisions whose results may have structured content.
STRUCTURED_VERSIONS = frozenset({"2025-06-18", "2025-11-25", *MODERN_PROTOCOL_VERSIONS})

tracer = trace.get_tracer("frontdesk")


@dataclass(frozen=True, slots=True)
class PlainCall:
    """A call that needs no check by the SDK."""

    number: int | str
    name: str
    arguments: Mapping[str, Any]
    context: CallContext
    handler: ToolHandler


@dataclass(frozen=True, slots=True)
class FastPath:
    """The tools of an endpoint that can be called without the SDK, and the server's name and version."""

    handlers: Mapping[str, ToolHandler]
    server_info: Mapping[str, Any]

    def match(self, call: McpRequestFrame, version: str, context: RequestContext) -> PlainCall | None:
        """The call, if its tool is among ours and the call is plain in every respect; else None."""
        params = call.params
        if (
            call.method != TOOLS_CALL
            or params is None
            or version not in STRUCTURED_VERSIONS
            or not params.keys() <= PLAIN_PARAMS
        ):
            return None
        name, arguments, meta = params.get("name"), cast("object", params.get("arguments")), params.get("_meta")
        handler = self.handlers.get(name) if isinstance(name, str) else None
        if handler is None or not (arguments is None or isinstance(arguments, dict)):
            return None
        if meta is not None and not (isinstance(meta, dict) and SDK_META.isdisjoint(cast("dict[str, object]", meta))):
            return None
        given = cast("dict[str, Any]", arguments or {})
        return PlainCall(call.id, str(name), given, CallContext(context, version, params), handler)

    async def answer(self, call: PlainCall) -> dict[str, Any]:
        """Run the call; the result is in wire form."""
        version = call.context.version
        with tracer.start_as_current_span(
            f"{TOOLS_CALL} {call.name}",
            kind=SpanKind.SERVER,
            attributes={
                "mcp.method.name": TOOLS_CALL,
                "mcp.protocol.version": version,
                "jsonrpc.request.id": str(call.number),
                "gen_ai.operation.name": "execute_tool",
                "gen_ai.tool.name": call.name,
            },
            # An exception may quote the call's arguments.
            record_exception=False,
            set_status_on_exception=False,
        ) as span:
            try:
                result = await call.handler(call.context, call.arguments)
            except MCPError as error:
                span.set_attributes({"error.type": str(error.error.code)})
                span.set_status(StatusCode.ERROR, error.error.message)
                raise
            except Exception as error:
                span.set_attribute("error.type", type(error).__qualname__)
                span.set_status(StatusCode.ERROR)
                raise
            if result.get("isError"):
                span.set_attribute("error.type", "tool_error")
                span.set_status(StatusCode.ERROR)
        return self.wire_result(result, version)

    def wire_result(self, result: dict[str, Any], version: str) -> dict[str, Any]:
        """The result in the form of this revision."""
        modern = version in MODERN_PROTOCOL_VERSIONS
        if not all(map(_is_text, result["content"])):
            result = serialize_server_result(TOOLS_CALL, version, result)
        elif not modern:
            del result["resultType"]
        if modern:
            result["_meta"] = {SERVER_INFO_META_KEY: self.server_info}
        return result


def _is_text(block: Mapping[str, Any]) -> bool:
    return len(block) == 2 and block.get("type") == "text" and isinstance(block.get("text"), str)


# Most tools finish earlier; only the others need a second task that watches the connection.
QUICK_SECONDS = 0.05
QUICK_TURNS = 2
# A proxy closes a connection without data after about a minute; a comment line keeps it open.
PING_SECONDS = 15.0
JSON_HEADERS = [(b"content-type", b"application/json")]
STREAM_HEADERS = [
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-cache, no-transform"),
    (b"x-accel-buffering", b"no"),
]

log = structlog.get_logger("frontdesk.mcp")


@dataclass
class Outbox:
    """The output of one HTTP exchange: the answer to the request, and the frames before it."""

    request_id: RequestId
    http_request_id: str
    frames: deque[bytes] = field(default_factory=deque[bytes])
    woken: asyncio.Event = field(default_factory=asyncio.Event)


@dataclass(kw_only=True)
class SdkChannel(Outbox):
    """The SDK's view of one HTTP exchange: notifications are sent with the answer; requests to the client are
    impossible."""

    transport: TransportContext
    message_metadata: MessageMetadata
    progress_token: ProgressToken | None = None
    can_send_request: bool = False
    cancel_requested: anyio.Event = field(default_factory=anyio.Event)

    async def send_raw_request(
        self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None
    ) -> dict[str, Any]:
        raise NoBackChannelError(method)

    async def notify(self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None) -> None:
        self.frames.append(notification_frame(method, None if params is None else dict(params)))
        self.woken.set()

    async def progress(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        if self.progress_token is None:
            return
        said = {
            "progressToken": self.progress_token,
            "progress": progress,
            "total": total,
            "message": message,
        }
        await self.notify("notifications/progress", {key: value for key, value in said.items() if value is not None})


async def run_request(work: Coroutine[Any, Any, dict[str, Any]], outbox: Outbox, *, modern: bool) -> tuple[int, bytes]:
    """(status, frame) of a finished request; details of internal errors are never sent."""
    try:
        return 200, result_frame(outbox.request_id, await work)
    except MCPError as error:
        told = error.error
    except ValidationError:
        told = ErrorData(code=INVALID_PARAMS, message="Invalid request parameters")
    except Exception:
        log.exception("request_failed", request_id=outbox.http_request_id)
        told = ErrorData(code=INTERNAL_ERROR, message="Internal server error")
    return error_status(told.code, modern=modern), error_frame(outbox.request_id, told)


async def send_reply(task: asyncio.Task[tuple[int, bytes]], outbox: Outbox, receive: Receive, send: Send) -> None:
    """Send the task's answer; cancel the task if the client disconnects."""
    try:
        await _wait_briefly(task)
        if task.done() and not outbox.frames:
            await _send_json(send, *task.result())
        else:
            await _send_stream(task, outbox, receive, send)
    finally:
        task.cancel()


async def _wait_briefly(task: asyncio.Task[tuple[int, bytes]]) -> None:
    """Let the task run: most finish within a few turns of the loop, so a timer for them would cost too much."""
    for _ in range(QUICK_TURNS):
        if task.done():
            return
        await asyncio.sleep(0)
    # This does the same as asyncio.wait, for one task and at half its price.
    loop = asyncio.get_running_loop()
    waiter: asyncio.Future[None] = loop.create_future()

    def wake(_: object = None) -> None:
        if not waiter.done():
            waiter.set_result(None)

    limit = loop.call_later(QUICK_SECONDS, wake)
    task.add_done_callback(wake)
    try:
        await waiter
    finally:
        limit.cancel()
        task.remove_done_callback(wake)


async def _send_stream(task: asyncio.Task[tuple[int, bytes]], outbox: Outbox, receive: Receive, send: Send) -> None:
    gone = asyncio.create_task(_wait_for_disconnect(receive))
    try:
        waited = await _wait_for_any(task, gone, outbox)
        if gone.done():
            return
        if task.done() and not outbox.frames:
            await _send_json(send, *task.result())
            return
        await send({"type": "http.response.start", "status": 200, "headers": STREAM_HEADERS})
        while not gone.done():
            body = b"".join(sse_event(outbox.frames.popleft()) for _ in range(len(outbox.frames)))
            done = task.done() and not outbox.frames
            if done:
                body += sse_event(task.result()[1])
            elif not body and not waited:
                body = b": ping\r\n\r\n"
            if body:
                await send({"type": "http.response.body", "body": body, "more_body": not done})
            if done:
                return
            waited = await _wait_for_any(task, gone, outbox)
    finally:
        gone.cancel()


async def _wait_for_any(task: asyncio.Task[tuple[int, bytes]], gone: asyncio.Task[None], outbox: Outbox) -> bool:
    """Wait for the answer, a notification or a disconnect; False when nothing came in time."""
    if outbox.frames:
        return True
    outbox.woken.clear()
    woken = asyncio.create_task(outbox.woken.wait())
    try:
        done, _ = await asyncio.wait((task, gone, woken), timeout=PING_SECONDS, return_when=asyncio.FIRST_COMPLETED)
    finally:
        woken.cancel()
    return bool(done)


async def _wait_for_disconnect(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _send_json(send: Send, status: int, body: bytes) -> None:
    headers = [*JSON_HEADERS, (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


READ_SECONDS = 30
NO_HANDLERS: Mapping[str, ToolHandler] = {}


class McpEndpoint:
    """The ASGI application of one endpoint. With `sessions`, clients of the older era get a session id."""

    def __init__(
        self,
        server: Server[Any],
        fast_handlers: Mapping[str, ToolHandler] = NO_HANDLERS,
        sessions: McpSessionTokens | None = None,
    ) -> None:
        self._server = server
        self._sessions = sessions
        self._fast_path = FastPath(fast_handlers, server.server_info_stamp)
        self._declares: dict[str, bool] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        context = request_context(scope)
        headers = context.headers
        if scope["method"] == "DELETE" and self._sessions is not None:
            await (await _end_session(self._sessions, context))(scope, receive, send)
            return
        refused = _refuse_headers(scope["method"], headers)
        if refused is not None:
            await refused(scope, receive, send)
            return
        body = await _read_body(receive)
        if isinstance(body, Response):
            await body(scope, receive, send)
            return
        version = headers.get(MCP_PROTOCOL_VERSION_HEADER)
        modern = version is not None and version not in HANDSHAKE_PROTOCOL_VERSIONS
        match parse_frame(body):
            case McpInvalidFrame(code, message):
                told = ErrorData(code=code, message=message)
                await _respond(400, error_frame(None, told))(scope, receive, send)
            case McpNotificationFrame():
                await _acknowledge(version if modern else None)(scope, receive, send)
            case McpRequestFrame() as call:
                route = self._route(call, headers) if modern else _legacy_route(version)
                if call.method == "initialize" and self._sessions is not None and not modern:
                    context.answer_headers.append((SESSION_HEADER.encode(), self._sessions.new_id().encode()))
                if isinstance(route, InboundLadderRejection):
                    await _reject(route, call.id)(scope, receive, send)
                else:
                    await self._serve(call, route, Request(scope, receive), send, modern=modern)

    def _route(self, call: McpRequestFrame, headers: Mapping[str, str]) -> InboundModernRoute | InboundLadderRejection:
        route = classify_inbound_request(call.frame, headers=headers)
        if isinstance(route, InboundLadderRejection) or call.method != "tools/call":
            return route
        return self._parameter_mismatch(call, headers) or route

    def _parameter_mismatch(self, call: McpRequestFrame, headers: Mapping[str, str]) -> InboundLadderRejection | None:
        params = call.params or {}
        name, arguments = params.get("name"), cast("object", params.get("arguments") or {})
        lookup = self._server.get_tool_input_schema
        schema = lookup(name) if lookup is not None and isinstance(name, str) else None
        if schema is None or not isinstance(arguments, dict) or not self._declares_headers(str(name), schema):
            return None
        return validate_mcp_param_headers(schema, cast("dict[str, Any]", arguments), headers)

    def _declares_headers(self, name: str, schema: Mapping[str, Any]) -> bool:
        """Whether any parameter of a tool must be repeated in a header; computed once, as most tools have none."""
        if name not in self._declares:
            self._declares[name] = X_MCP_HEADER_KEY in json.dumps(schema)
        return self._declares[name]

    async def _serve(
        self, call: McpRequestFrame, route: InboundModernRoute, request: Request, send: Send, *, modern: bool
    ) -> None:
        context = request_context(request.scope)
        plain = self._fast_path.match(call, route.protocol_version, context)
        if plain is not None:
            outbox, work = Outbox(call.id, context.request_id), self._fast_path.answer(plain)
        else:
            outbox, work = self._by_sdk(call, route, request)
        task = asyncio.create_task(run_request(work, outbox, modern=modern), context=_trace_context(context.headers))
        await send_reply(task, outbox, request.receive, send)

    def _by_sdk(
        self, call: McpRequestFrame, route: InboundModernRoute, request: Request
    ) -> tuple[Outbox, Coroutine[Any, Any, dict[str, Any]]]:
        outbox = SdkChannel(
            transport=TransportContext(kind="streamable-http", can_send_request=False, headers=request.headers),
            request_id=call.id,
            message_metadata=ServerMessageMetadata(request_context=request),
            http_request_id=request_context(request.scope).request_id,
            progress_token=_progress_token(call.params),
        )
        connection = Connection.from_envelope(route.protocol_version, route.client_info, route.client_capabilities)
        work = serve_one(self._server, outbox, call.method, call.params, connection=connection, lifespan_state=None)
        return outbox, work


async def _end_session(sessions: McpSessionTokens, context: RequestContext) -> Response:
    """End the session of a client; the answer does not show whether it existed."""
    if context.session_id is None:
        return Response("Which session is to end? Send its mcp-session-id", 400)
    await sessions.forget(context.session_id)
    return Response(status_code=204)


def _trace_context(headers: Mapping[str, str]) -> contextvars.Context:
    """The tracing context: the client's trace, if it sent one."""
    context = contextvars.copy_context()
    if "traceparent" in headers:
        context.run(otel.attach, propagate.extract(headers))
    return context


def _refuse_headers(method: str, headers: Mapping[str, str]) -> Response | None:
    if method != "POST":
        return Response(
            "This address takes POST alone: there are no sessions and no standalone streams",
            405,
            {"allow": "POST"},
        )
    if not headers.get("content-type", "").lower().startswith("application/json"):
        return Response("The Content-Type must be application/json", 415)
    accept = headers.get("accept", "*/*").lower()
    if not any(kind in accept for kind in ("*/*", "application/*", "application/json")):
        return Response("The Accept header must allow application/json and text/event-stream", 406)
    return None


async def _read_body(receive: Receive) -> bytes | Response:
    """The whole body, or the refusal of one that is too large or too slow."""
    body = bytearray()
    more = True
    try:
        async with asyncio.timeout(READ_SECONDS):
            while more:
                message = await receive()
                if message["type"] == "http.disconnect":
                    return Response("The body was cut off", 400)
                body += message.get("body", b"")
                more = message.get("more_body", False)
                if len(body) > MAX_BODY:
                    return Response("The body is too large; 4 MiB is the limit", 413)
    except TimeoutError:
        return Response(f"The body did not arrive within {READ_SECONDS} s", 408)
    return bytes(body)


def _legacy_route(version: str | None) -> InboundModernRoute:
    return InboundModernRoute(
        protocol_version=version or DEFAULT_NEGOTIATED_VERSION, client_info=None, client_capabilities=None
    )


def _acknowledge(version: str | None) -> Response:
    rejection = unsupported_protocol_version_rejection(version) if version is not None else None
    return _reject(rejection, None) if rejection is not None else Response(status_code=202)


def _reject(rejection: InboundLadderRejection, number: int | str | None) -> Response:
    told = ErrorData(code=rejection.code, message=rejection.message, data=rejection.data)
    return _respond(error_status(rejection.code, modern=True), error_frame(number, told))


def _respond(status: int, body: bytes) -> Response:
    return Response(body, status, media_type="application/json")


def _progress_token(params: dict[str, Any] | None) -> int | str | None:
    meta = cast("object", (params or {}).get("_meta"))
    token = cast("dict[str, object]", meta).get("progressToken") if isinstance(meta, dict) else None
    return token if isinstance(token, int | str) and not isinstance(token, bool) else None


def sse_routes(server: Server[Any]) -> list[Route | Mount]:
    """The routes. A stream belongs to the credential that opened it; each message still carries its own identity."""
    transport = SseServerTransport("/messages/")

    async def message(scope: Scope, receive: Receive, send: Send) -> None:
        _set_owner(scope)
        await transport.handle_post_message(scope, receive, send)

    return [Route("/sse", SseEndpoint(server, transport)), Mount("/messages", message)]


@dataclass(frozen=True, slots=True)
class SseEndpoint:
    """The ASGI application behind GET /sse; it is an instance, since Starlette would pass a request to a function."""

    server: Server[Any]
    transport: SseServerTransport

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] != "GET":
            await Response(status_code=405, headers={"allow": "GET"})(scope, receive, send)
            return
        _set_owner(scope)
        # The stream begins with the address for messages.
        scope = {**scope, "root_path": scope.get(URL_PREFIX_KEY, "")}
        async with self.transport.connect_sse(scope, receive, send) as (incoming, outgoing):
            await self.server.run(incoming, outgoing, self.server.create_initialization_options())


def _set_owner(scope: Scope) -> None:
    credential = request_context(scope).credential
    if credential is not None:
        owner = f"{credential.id}/{credential.agent_id}/{credential.user_id}"
        scope["user"] = AuthenticatedUser(AccessToken(token="", client_id=owner, scopes=[]))
