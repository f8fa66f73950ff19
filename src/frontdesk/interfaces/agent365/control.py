"""Serves endpoints for testers: logged requests and chats, injected faults, health, and an overview."""

import re
from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Annotated
from urllib.parse import parse_qs

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, field_validator
from pydantic.alias_generators import to_camel
from starlette.responses import JSONResponse, PlainTextResponse, Response
from typing_extensions import override

from frontdesk import __version__
from frontdesk.agent365.local_platform import (
    CHAT_PART,
    DISCOVERY_PART,
    MOST_DELAY_MS,
    SERVER_PART_PREFIX,
    InjectedFault,
    LocalPlatformState,
    delay_seconds,
    enabled_servers,
    find_server,
)
from frontdesk.agent365.local_tokens import audience_of
from frontdesk.interfaces.agent365.request import PlatformRequest, error_response, invalid_body_response
from frontdesk.interfaces.agent365.tool_servers import callable_tools
from frontdesk.interfaces.http.context import ASGIApp, Receive, Scope, Send
from frontdesk.interfaces.http.uvicorn_server import BoundedHeadProtocol

HANG_UP = "frontdesk.hang_up"


class HangUpProtocol(BoundedHeadProtocol):
    """Lets a request end its own connection."""

    @override
    def on_headers_complete(self) -> None:
        extensions: dict[str, dict[object, object]] = {HANG_UP: {"now": self.transport.abort}}
        self.scope["extensions"] = extensions
        super().on_headers_complete()


async def hang_up(scope: Scope, receive: Receive, _send: Send) -> None:
    """An ASGI application that closes the connection without an answer."""
    now: Callable[[], None] = scope["extensions"][HANG_UP]["now"]
    now()
    # Wait until the server knows too, or it would still try to answer.
    while (await receive())["type"] != "http.disconnect":
        pass


MOST_BODY = 1024 * 1024
MOST_TIMES = 1_000_000
HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,200}")
HEADER_VALUE = re.compile(r"[\t\x20-\x7e\x80-\xff]{0,4000}")
# The server itself sets the length of the answer.
FRAMING_HEADERS = frozenset({"content-length", "transfer-encoding", "connection"})
STATUSES_WITHOUT_BODY = frozenset({204, 205, 304})


class FaultRequest(BaseModel):
    """A fault as a request contains it."""

    model_config = ConfigDict(extra="forbid", alias_generator=to_camel)

    status: Annotated[int, Field(ge=200, le=599)] = 503
    body: Annotated[str, Field(max_length=MOST_BODY)] = ""
    headers: dict[str, str] = Field(default_factory=dict[str, str])
    delay_ms: Annotated[int, Field(ge=0, le=MOST_DELAY_MS)] = 0
    times: Annotated[int, Field(ge=1, le=MOST_TIMES)] | None = None
    close: bool = False

    @field_validator("headers", mode="after")
    @classmethod
    def _sendable(cls, value: dict[str, str]) -> dict[str, str]:
        for name, text in value.items():
            if not HEADER_NAME.fullmatch(name) or not HEADER_VALUE.fullmatch(text) or name.lower() in FRAMING_HEADERS:
                raise ValueError(f"the header {name!r} cannot be sent so")
        return value

    def fault(self) -> InjectedFault:
        return InjectedFault(self.status, self.body, self.headers, self.delay_ms, self.times, self.close)


FAULTS_ADAPTER: TypeAdapter[dict[str, FaultRequest | None]] = TypeAdapter(dict[str, FaultRequest | None])


def describe_faults(faults: Mapping[str, InjectedFault]) -> dict[str, dict[str, object]]:
    """The faults in the format of a request."""
    return {
        part: FaultRequest.model_validate(_fault_fields(fault)).model_dump(by_alias=True)
        for part, fault in faults.items()
    }


async def apply_fault(standin: LocalPlatformState, part: str) -> ASGIApp | None:
    """The answer to a request to this part, once its delay is over; None without a fault."""
    fault = standin.faults.take(part)
    if fault is None:
        return None
    if fault.delay_ms:
        await standin.sleep(delay_seconds(fault.delay_ms))
    if fault.close:
        return hang_up
    # A given content type is sent; without one, the answer is plain text.
    typed = any(name.lower() == "content-type" for name in fault.headers)
    body = "" if fault.status in STATUSES_WITHOUT_BODY else fault.body
    return Response(body, fault.status, dict(fault.headers), media_type=None if typed else "text/plain")


def _fault_fields(fault: InjectedFault) -> dict[str, object]:
    return {
        "status": fault.status,
        "body": fault.body,
        "headers": dict(fault.headers),
        "delayMs": fault.delay_ms,
        "times": fault.times,
        "close": fault.close,
    }


OVERVIEW_TEXT = """Frontdesk {version}: a local stand-in for the Agent 365 tooling platform.

GET    /agents/v2/<app id>/mcpServers                       the servers of the manifest
POST   /agents/servers/<name>                               one of them, over MCP
POST   /agents/real-time-threat-protection/chat-message     a chat message and what was said before
POST   /oauth2/v2.0/token                                   a token; scope is <audience>/.default

GET    /requests?agent=<id>&limit=<n>                       who asked for what; DELETE forgets it
GET    /chats                                               the chat messages so far
PUT    /faults    {{"discovery": {{"status": 503, "times": 3}}}}  outages on purpose; GET shows, DELETE ends them
GET    /health                                              servers, tools, and what is wrong with the manifest

Tokens: {mode}. Servers: {servers}.
"""


async def list_requests(standin: LocalPlatformState, request: PlatformRequest) -> ASGIApp:
    """`/requests`, the oldest first."""
    if request.method == "DELETE":
        standin.seen.clear()
        return Response(status_code=204)
    query = parse_qs(request.scope["query_string"].decode("latin-1"))
    agent, limit = query.get("agent", [""])[-1], query.get("limit", ["1000"])[-1]
    if not (limit.isascii() and limit.isdigit()):
        return error_response(400, "invalid_request", "limit must be a whole number")
    found = [seen for seen in standin.seen if not agent or seen.agent_id == agent]
    wanted = found[-int(limit[:9]) :] if int(limit[:9]) else []
    shown = [{to_camel(name): value for name, value in asdict(seen).items()} for seen in wanted]
    return JSONResponse({"requests": shown})


async def list_chats(standin: LocalPlatformState, _asked: PlatformRequest) -> ASGIApp:
    return JSONResponse({"chats": list(standin.chats)})


async def change_faults(standin: LocalPlatformState, request: PlatformRequest) -> ASGIApp:
    """`/faults`: replace the named faults; null removes one, and the others stay."""
    if request.method == "DELETE":
        standin.faults.clear()
    elif request.method == "PUT":
        try:
            wanted = FAULTS_ADAPTER.validate_json(request.body)
        except ValidationError as error:
            return invalid_body_response("The faults are not as they should be", error)
        parts = {part: _fault_part(standin, part) for part in wanted}
        for part, known in parts.items():
            if known is None:
                names = ", ".join(
                    f"{SERVER_PART_PREFIX}{server.name}" for server in enabled_servers(standin.manifest.current())
                )
                return error_response(
                    400, "invalid_request", f"There is no part {part!r}; there are: discovery, chat, {names}"
                )
        for part, fault in wanted.items():
            standin.faults.put(parts[part] or "", fault and fault.fault())
    return JSONResponse(describe_faults(standin.faults.present))


async def health(standin: LocalPlatformState, _asked: PlatformRequest) -> ASGIApp:
    declared = standin.manifest.current()
    servers = [
        {
            "name": server.name,
            "uniqueName": server.unique_name,
            "audience": audience_of(server),
            "tools": list(callable_tools(server)),
        }
        for server in enabled_servers(declared)
    ]
    trouble = standin.manifest.problem
    problems = [*([trouble] if trouble else []), *map(str, declared.problems)]
    return JSONResponse(
        {
            "status": "stale" if trouble else "ok" if declared.is_valid else "flawed",
            "version": __version__,
            "manifest": str(declared.path),
            "tokens": standin.mode,
            "servers": servers,
            "problems": problems,
            "faults": len(standin.faults.present),
        }
    )


async def overview(standin: LocalPlatformState, _asked: PlatformRequest) -> ASGIApp:
    names = ", ".join(server.name for server in enabled_servers(standin.manifest.current())) or "none"
    return PlainTextResponse(OVERVIEW_TEXT.format(version=__version__, mode=standin.mode, servers=names))


def _fault_part(standin: LocalPlatformState, named: str) -> str | None:
    """The part that a fault is for; both names of a server mean the same part."""
    if named in (DISCOVERY_PART, CHAT_PART):
        return named
    server = (
        find_server(standin.manifest.current(), named.removeprefix(SERVER_PART_PREFIX))
        if named.startswith(SERVER_PART_PREFIX)
        else None
    )
    return f"{SERVER_PART_PREFIX}{server.name}" if server is not None else None
