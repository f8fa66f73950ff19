"""The local platform as an ASGI application: which address leads where."""

import json
from collections.abc import Awaitable, Callable, Mapping
from typing import cast

from starlette.responses import JSONResponse, Response

from frontdesk.loop.text import storable
from frontdesk.platform.constants import SHARED_APP_ID
from frontdesk.platform.declared.model import DeclaredServer
from frontdesk.platform.local.answering import delay_seconds
from frontdesk.platform.local.checking import audience_of
from frontdesk.platform.local.faults import CHAT, DISCOVERY, SERVER
from frontdesk.platform.local.standin import StandIn
from frontdesk.platform.local.watching import find, served
from frontdesk.surfaces.gate import ASGIApp
from frontdesk.surfaces.platform import chat, control, tokens
from frontdesk.surfaces.platform.asked import Asked, problem
from frontdesk.surfaces.platform.entrance import Entrance, Tell
from frontdesk.surfaces.platform.outages import BODILESS, met
from frontdesk.surfaces.platform.servers import Endpoints, tools_of

Door = Callable[[StandIn, Asked], Awaitable[ASGIApp]]
# Each with the methods it takes.
DOORS: Mapping[tuple[str, ...], tuple[str, Door]] = {
    ("",): ("GET", control.page),
    ("health",): ("GET", control.health),
    ("chats",): ("GET", control.chats),
    ("requests",): ("GET, DELETE", control.requests),
    ("faults",): ("GET, PUT, DELETE", control.faults),
    ("oauth2", "v2.0", "token"): ("POST", tokens.issue),
}


def build(standin: StandIn, tell: Tell | None = None) -> ASGIApp:
    """The whole application; `tell` hears of each request when it is answered."""
    endpoints = Endpoints(standin)

    async def route(asked: Asked) -> ASGIApp:
        match asked.parts:
            case ["agents", "v2", app_id, "mcpServers"] if app_id:
                return _only("GET", asked) or await _discovery(standin, asked)
            case ["agents", "servers", name] | ["agents", "servers", name, ""]:
                return await _server(standin, endpoints, asked, name)
            case ["agents", "real-time-threat-protection", "chat-message"]:
                return _only("POST", asked) or await _chat(standin, asked)
            case [tenant, "oauth2", "v2.0", "token"] if tenant:
                return _only("POST", asked) or await tokens.issue(standin, asked)
            case parts:
                methods, door = DOORS.get(tuple(parts), ("", _nothing))
                return (methods and _only(methods, asked)) or await door(standin, asked)

    return Entrance(standin, route, tell)


async def _discovery(standin: StandIn, asked: Asked) -> ASGIApp:
    answer = await met(standin, DISCOVERY) or tokens.refused(standin, asked, SHARED_APP_ID)
    return answer or JSONResponse({"mcpServers": [dict(server.entry) for server in served(standin.manifest.now())]})


async def _chat(standin: StandIn, asked: Asked) -> ASGIApp:
    return await met(standin, CHAT) or await chat.take(standin, asked)


async def _server(standin: StandIn, endpoints: Endpoints, asked: Asked, name: str) -> ASGIApp:
    declared = standin.manifest.now()
    server = find(declared, name)
    _overhear(asked)
    if server is None:
        there = [server.name for server in served(declared)]
        return problem(404, "not_found", f"There is no such server; there are: {', '.join(there)}", servers=there)
    asked.server = server.name
    return (
        await met(standin, f"{SERVER}{server.name}")
        or tokens.refused(standin, asked, audience_of(server))
        or await _failing(standin, asked, server)
        or endpoints.at(declared, server)
    )


async def _failing(standin: StandIn, asked: Asked, server: DeclaredServer) -> ASGIApp | None:
    """A call of a tool whose requests are to fail as such: by then no MCP has been spoken."""
    tool = tools_of(server).get(asked.tool or "")
    if tool is None or tool.status_code == 200:
        return None
    if tool.delay_ms:
        await standin.sleep(delay_seconds(tool.delay_ms))
    if tool.status_code in BODILESS:
        return Response(status_code=tool.status_code)
    return problem(tool.status_code, "on_purpose", f"{tool.name} has the statusCode {tool.status_code}")


def _overhear(asked: Asked) -> None:
    """Note which method and which tool a frame is about; whether it makes sense is for others to say."""
    try:
        frame = json.loads(asked.body) if asked.body else None
    except (ValueError, RecursionError):
        return
    if not isinstance(frame, dict):
        return
    said = cast("dict[str, object]", frame)
    method, params = said.get("method"), said.get("params")
    asked.rpc_method = storable(method) if isinstance(method, str) else None
    name = cast("dict[str, object]", params).get("name") if isinstance(params, dict) else None
    asked.tool = storable(name) if asked.rpc_method == "tools/call" and isinstance(name, str) else None


def _only(methods: str, asked: Asked) -> ASGIApp | None:
    if asked.method in methods.split(", "):
        return None
    answer = problem(405, "method_not_allowed", f"This address takes {methods}")
    answer.headers["allow"] = methods
    return answer


async def _nothing(_standin: StandIn, _asked: Asked) -> ASGIApp:
    return problem(404, "not_found", "There is nothing at this address; GET / says what is where")
