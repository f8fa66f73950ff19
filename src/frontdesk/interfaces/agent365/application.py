"""Serves the local platform as an ASGI application, only to this machine, and records every request."""

import json
import time
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime
from typing import cast

from pydantic import ValidationError
from starlette.responses import JSONResponse, Response

from frontdesk.agent365.environment import SHARED_APP_ID, Constants
from frontdesk.agent365.local_platform import (
    CHAT_PART,
    DISCOVERY_PART,
    SERVER_PART_PREFIX,
    LocalPlatformState,
    LoggedRequest,
    delay_seconds,
    describe_agent_source,
    enabled_servers,
    find_server,
    read_agent_id,
    read_orchestrator,
    redact_headers,
    redact_text,
)
from frontdesk.agent365.local_tokens import audience_of
from frontdesk.agent365.manifest.model import DeclaredServer
from frontdesk.agent365.model import ChatMessageRequest
from frontdesk.interfaces.agent365 import control
from frontdesk.interfaces.agent365.control import STATUSES_WITHOUT_BODY, apply_fault
from frontdesk.interfaces.agent365.request import (
    METHODS_WITH_BODY,
    PlatformRequest,
    error_response,
    invalid_body_response,
    issue_token,
    note_token,
    read_body,
    refuse_token,
    replay_body,
)
from frontdesk.interfaces.agent365.tool_servers import ServerEndpoints, callable_tools
from frontdesk.interfaces.http.context import (
    CONTEXT_KEY,
    ASGIApp,
    Message,
    Receive,
    RequestContext,
    Scope,
    Send,
    ensure_request_id,
    parse_headers,
)
from frontdesk.interfaces.http.middleware import WRONG_HOST, HostOriginPolicy
from frontdesk.text import storable

HOST_POLICY = HostOriginPolicy(frozenset(), frozenset(), any_loopback=True, any_address=False)
ONLY_HOSTS = "The local platform answers to localhost and loopback addresses alone; send one of them as Host"
ONLY_ORIGINS = "Pages of this Origin may not call; the local platform is for programs and pages of this machine"
# The log leaves out requests to the testers' own endpoints.
UNLOGGED_PATHS = frozenset({"", "health", "requests", "chats", "faults"})

RouteRequest = Callable[[PlatformRequest], Awaitable[ASGIApp]]
OnRequest = Callable[[LoggedRequest], None]


class PlatformApplication:
    """The ASGI application; `tell` is called for each request when it is answered."""

    def __init__(self, standin: LocalPlatformState, route: RouteRequest, tell: OnRequest | None = None) -> None:
        self._standin = standin
        self._route = route
        self._tell = tell

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        headers = parse_headers((name, value.strip(b" \t")) for name, value in scope["headers"])
        scope[CONTEXT_KEY] = RequestContext(ensure_request_id(headers.get("x-request-id")), headers)
        asked, start = PlatformRequest(scope), time.perf_counter()
        note_token(asked)
        noted = _RecordingSend(send, asked, lambda: self._note(asked, (time.perf_counter() - start) * 1000))
        try:
            answer = _refuse_origin(asked) or await self._answer(asked, receive)
            await answer(scope, replay_body(asked.body, receive), noted.send)
        finally:
            noted.end()

    async def _answer(self, request: PlatformRequest, receive: Receive) -> ASGIApp:
        if request.method in METHODS_WITH_BODY:
            body = await read_body(receive)
            if not isinstance(body, bytes):
                return body
            request.body = body
        return await self._route(request)

    def _note(self, request: PlatformRequest, milliseconds: float) -> None:
        match request.parts:
            case [part] if part in UNLOGGED_PATHS:
                return
            case _:
                pass
        seen = _logged_request(request, milliseconds)
        self._standin.seen.append(seen)
        if self._tell is not None:
            self._tell(seen)


class _RecordingSend:
    """Logs a request before the last part of its answer is sent: a client that has the answer finds it in the log."""

    def __init__(self, send: Send, request: PlatformRequest, note: Callable[[], None]) -> None:
        self._send = send
        self._asked = request
        self._note: Callable[[], None] | None = note

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._asked.status = message["status"]
            identity = (b"x-request-id", self._asked.context.request_id.encode())
            message["headers"] = [*message.get("headers", ()), identity]
        elif not message.get("more_body", False):
            self.end()
        await self._send(message)

    def end(self) -> None:
        note, self._note = self._note, None
        if note is not None:
            note()


def _refuse_origin(request: PlatformRequest) -> ASGIApp | None:
    turned = HOST_POLICY.check(request.context.headers)
    if turned is None:
        return None
    return error_response(turned.status, turned.code, ONLY_HOSTS if turned is WRONG_HOST else ONLY_ORIGINS)


def _logged_request(request: PlatformRequest, milliseconds: float) -> LoggedRequest:
    said, names = request.context.headers, Constants.Headers
    agent = read_agent_id(said)
    user_agent = redact_text(said.get("user-agent"))
    return LoggedRequest(
        time=datetime.now(UTC).isoformat(timespec="milliseconds"),
        method=request.method,
        path=request.raw_path[:2000],
        status=request.status,
        ms=round(milliseconds, 1),
        agent_id=agent,
        agent_from=describe_agent_source(agent, request.claims),
        correlation_id=redact_text(said.get(names.CORRELATION_ID)),
        channel_id=redact_text(said.get(names.CHANNEL_ID)),
        subchannel_id=redact_text(said.get(names.SUBCHANNEL_ID)),
        user_agent=user_agent,
        orchestrator=read_orchestrator(user_agent),
        server=request.server,
        rpc_method=redact_text(request.rpc_method),
        tool=redact_text(request.tool),
        token=request.token,
        headers=redact_headers(said),
    )


async def receive_chat(standin: LocalPlatformState, request: PlatformRequest) -> ASGIApp:
    """`POST /agents/real-time-threat-protection/chat-message`."""
    if not request.context.headers.get("content-type", "").lower().startswith("application/json"):
        return error_response(415, "unsupported_media_type", "The Content-Type must be application/json")
    try:
        said = ChatMessageRequest.model_validate_json(request.body, by_alias=True, by_name=False)
    except ValidationError as error:
        return invalid_body_response("The chat message is not as it should be", error)
    kept = said.model_dump(mode="json", by_alias=True)
    standin.chats.append({**kept, "agentId": request.context.headers.get("x-ms-agentid")})
    return JSONResponse({})


Endpoint = Callable[[LocalPlatformState, PlatformRequest], Awaitable[ASGIApp]]
# Each endpoint with the methods that it accepts.
CONTROL_ROUTES: Mapping[tuple[str, ...], tuple[str, Endpoint]] = {
    ("",): ("GET", control.overview),
    ("health",): ("GET", control.health),
    ("chats",): ("GET", control.list_chats),
    ("requests",): ("GET, DELETE", control.list_requests),
    ("faults",): ("GET, PUT, DELETE", control.change_faults),
    ("oauth2", "v2.0", "token"): ("POST", issue_token),
}


def build_platform_application(standin: LocalPlatformState, tell: OnRequest | None = None) -> ASGIApp:
    """The whole application; `tell` is called for each request when it is answered."""
    endpoints = ServerEndpoints(standin)

    async def route(request: PlatformRequest) -> ASGIApp:
        match request.parts:
            case ["agents", "v2", app_id, "mcpServers"] if app_id:
                return _require_method("GET", request) or await _discovery(standin, request)
            case ["agents", "servers", name] | ["agents", "servers", name, ""]:
                return await _call_server(standin, endpoints, request, name)
            case ["agents", "real-time-threat-protection", "chat-message"]:
                return _require_method("POST", request) or await _chat(standin, request)
            case [tenant, "oauth2", "v2.0", "token"] if tenant:
                return _require_method("POST", request) or await issue_token(standin, request)
            case parts:
                methods, endpoint = CONTROL_ROUTES.get(tuple(parts), ("", _not_found))
                return (methods and _require_method(methods, request)) or await endpoint(standin, request)

    return PlatformApplication(standin, route, tell)


async def _discovery(standin: LocalPlatformState, request: PlatformRequest) -> ASGIApp:
    answer = await apply_fault(standin, DISCOVERY_PART) or refuse_token(standin, request, SHARED_APP_ID)
    return answer or JSONResponse(
        {"mcpServers": [dict(server.entry) for server in enabled_servers(standin.manifest.current())]}
    )


async def _chat(standin: LocalPlatformState, request: PlatformRequest) -> ASGIApp:
    return await apply_fault(standin, CHAT_PART) or await receive_chat(standin, request)


async def _call_server(
    standin: LocalPlatformState, endpoints: ServerEndpoints, request: PlatformRequest, name: str
) -> ASGIApp:
    declared = standin.manifest.current()
    server = find_server(declared, name)
    _note_mcp_call(request)
    if server is None:
        there = [server.name for server in enabled_servers(declared)]
        return error_response(
            404, "not_found", f"There is no such server; there are: {', '.join(there)}", servers=there
        )
    request.server = server.name
    return (
        await apply_fault(standin, f"{SERVER_PART_PREFIX}{server.name}")
        or refuse_token(standin, request, audience_of(server))
        or await _failing_tool(standin, request, server)
        or endpoints.endpoint_of(declared, server)
    )


async def _failing_tool(
    standin: LocalPlatformState, request: PlatformRequest, server: DeclaredServer
) -> ASGIApp | None:
    """The failed response of a tool with an HTTP status other than 200, before MCP handles the call; None for other
    tools."""
    tool = callable_tools(server).get(request.tool or "")
    if tool is None or tool.status_code == 200:
        return None
    if tool.delay_ms:
        await standin.sleep(delay_seconds(tool.delay_ms))
    if tool.status_code in STATUSES_WITHOUT_BODY:
        return Response(status_code=tool.status_code)
    return error_response(tool.status_code, "on_purpose", f"{tool.name} has the statusCode {tool.status_code}")


def _note_mcp_call(request: PlatformRequest) -> None:
    """Note the method and the tool of a frame; other code decides whether it is valid."""
    try:
        frame = json.loads(request.body) if request.body else None
    except (ValueError, RecursionError):
        return
    if not isinstance(frame, dict):
        return
    said = cast("dict[str, object]", frame)
    method, params = said.get("method"), said.get("params")
    request.rpc_method = storable(method) if isinstance(method, str) else None
    name = cast("dict[str, object]", params).get("name") if isinstance(params, dict) else None
    request.tool = storable(name) if request.rpc_method == "tools/call" and isinstance(name, str) else None


def _require_method(methods: str, request: PlatformRequest) -> ASGIApp | None:
    if request.method in methods.split(", "):
        return None
    answer = error_response(405, "method_not_allowed", f"This address takes {methods}")
    answer.headers["allow"] = methods
    return answer


async def _not_found(_standin: LocalPlatformState, _asked: PlatformRequest) -> ASGIApp:
    return error_response(404, "not_found", "There is nothing at this address; GET / says what is where")
