"""The MCP endpoint over HTTP: one POST in, one answer out, for both eras, with no state in between."""

import asyncio
import contextvars
import json
from collections.abc import Coroutine, Mapping
from typing import Any, cast

from mcp.server.connection import Connection
from mcp.server.lowlevel import Server
from mcp.server.runner import serve_one
from mcp.shared.inbound import (
    MCP_PROTOCOL_VERSION_HEADER,
    X_MCP_HEADER_KEY,
    InboundLadderRejection,
    InboundModernRoute,
    classify_inbound_request,
    unsupported_protocol_version_rejection,
    validate_mcp_param_headers,
)
from mcp.shared.message import ServerMessageMetadata
from mcp.shared.transport_context import TransportContext
from mcp_types import DEFAULT_NEGOTIATED_VERSION, ErrorData
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS
from opentelemetry import context as otel
from opentelemetry import propagate
from starlette.requests import Request
from starlette.responses import Response

from frontdesk.identity.sessions.service import Sessions
from frontdesk.surfaces.gate import Receive, Send
from frontdesk.surfaces.mcp import frames
from frontdesk.surfaces.mcp.reply import Channel, Outbox, answer, reply
from frontdesk.surfaces.mcp.straight import Straight, Way
from frontdesk.surfaces.visit import SESSION_HEADER, Scope, Visit, visit_of

READ_SECONDS = 30
NO_WAYS: Mapping[str, Way] = {}


class McpEndpoint:
    """The ASGI application of one door. With `sessions`, clients of the older era get an id to leave a token under."""

    def __init__(
        self, server: Server[Any], straight: Mapping[str, Way] = NO_WAYS, sessions: Sessions | None = None
    ) -> None:
        self._server = server
        self._sessions = sessions
        self._straight = Straight(straight, server.server_info_stamp)
        self._declares: dict[str, bool] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        visit = visit_of(scope)
        headers = visit.said
        if scope["method"] == "DELETE" and self._sessions is not None:
            await (await _forget(self._sessions, visit))(scope, receive, send)
            return
        refused = _unacceptable(scope["method"], headers)
        if refused is not None:
            await refused(scope, receive, send)
            return
        body = await _read(receive)
        if isinstance(body, Response):
            await body(scope, receive, send)
            return
        version = headers.get(MCP_PROTOCOL_VERSION_HEADER)
        modern = version is not None and version not in HANDSHAKE_PROTOCOL_VERSIONS
        match frames.parse(body):
            case frames.Malformed(code, message):
                told = ErrorData(code=code, message=message)
                await _respond(400, frames.error_frame(None, told))(scope, receive, send)
            case frames.Notice():
                await _acknowledge(version if modern else None)(scope, receive, send)
            case frames.Call() as call:
                route = self._route(call, headers) if modern else _legacy_route(version)
                if call.method == "initialize" and self._sessions is not None and not modern:
                    visit.answer_headers.append((SESSION_HEADER.encode(), self._sessions.begin().encode()))
                if isinstance(route, InboundLadderRejection):
                    await _reject(route, call.id)(scope, receive, send)
                else:
                    await self._serve(call, route, Request(scope, receive), send, modern=modern)

    def _route(self, call: frames.Call, headers: Mapping[str, str]) -> InboundModernRoute | InboundLadderRejection:
        route = classify_inbound_request(call.frame, headers=headers)
        if isinstance(route, InboundLadderRejection) or call.method != "tools/call":
            return route
        return self._parameter_mismatch(call, headers) or route

    def _parameter_mismatch(self, call: frames.Call, headers: Mapping[str, str]) -> InboundLadderRejection | None:
        params = call.params or {}
        name, arguments = params.get("name"), cast("object", params.get("arguments") or {})
        lookup = self._server.get_tool_input_schema
        schema = lookup(name) if lookup is not None and isinstance(name, str) else None
        if schema is None or not isinstance(arguments, dict) or not self._declares_headers(str(name), schema):
            return None
        return validate_mcp_param_headers(schema, cast("dict[str, Any]", arguments), headers)

    def _declares_headers(self, name: str, schema: Mapping[str, Any]) -> bool:
        """Whether any parameter of a tool is to be repeated in a header; looked for once, as most have none."""
        if name not in self._declares:
            self._declares[name] = X_MCP_HEADER_KEY in json.dumps(schema)
        return self._declares[name]

    async def _serve(
        self, call: frames.Call, route: InboundModernRoute, request: Request, send: Send, *, modern: bool
    ) -> None:
        visit = visit_of(request.scope)
        plain = self._straight.look(call, route.protocol_version, visit)
        if plain is not None:
            outbox, work = Outbox(call.id, visit.request_id), self._straight.answer(plain)
        else:
            outbox, work = self._by_sdk(call, route, request)
        task = asyncio.create_task(answer(work, outbox, modern=modern), context=_trace(visit.said))
        await reply(task, outbox, request.receive, send)

    def _by_sdk(
        self, call: frames.Call, route: InboundModernRoute, request: Request
    ) -> tuple[Outbox, Coroutine[Any, Any, dict[str, Any]]]:
        outbox = Channel(
            transport=TransportContext(kind="streamable-http", can_send_request=False, headers=request.headers),
            request_id=call.id,
            message_metadata=ServerMessageMetadata(request_context=request),
            visit_id=visit_of(request.scope).request_id,
            progress_token=_progress_token(call.params),
        )
        connection = Connection.from_envelope(route.protocol_version, route.client_info, route.client_capabilities)
        work = serve_one(self._server, outbox, call.method, call.params, connection=connection, lifespan_state=None)
        return outbox, work


async def _forget(sessions: Sessions, visit: Visit) -> Response:
    """A client that is done with its session; whether there was anything to forget is nobody's business."""
    if visit.session_id is None:
        return Response("Which session is to end? Send its mcp-session-id", 400)
    await sessions.forget(visit.session_id)
    return Response(status_code=204)


def _trace(headers: Mapping[str, str]) -> contextvars.Context:
    """The context to work in: as part of the client's trace where it sent one."""
    context = contextvars.copy_context()
    if "traceparent" in headers:
        context.run(otel.attach, propagate.extract(headers))
    return context


def _unacceptable(method: str, headers: Mapping[str, str]) -> Response | None:
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


async def _read(receive: Receive) -> bytes | Response:
    """The whole body, or what to answer when it is larger, or comes more slowly, than we take."""
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
                if len(body) > frames.MAX_BODY:
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
    return _respond(frames.error_status(rejection.code, modern=True), frames.error_frame(number, told))


def _respond(status: int, body: bytes) -> Response:
    return Response(body, status, media_type="application/json")


def _progress_token(params: dict[str, Any] | None) -> int | str | None:
    meta = cast("object", (params or {}).get("_meta"))
    token = cast("dict[str, object]", meta).get("progressToken") if isinstance(meta, dict) else None
    return token if isinstance(token, int | str) and not isinstance(token, bool) else None
