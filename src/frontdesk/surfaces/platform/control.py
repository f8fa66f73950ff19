"""For whoever tests an agent: the requests and chats so far, faults, health, and a page that says what is where."""

from dataclasses import asdict
from urllib.parse import parse_qs

from pydantic import ValidationError
from pydantic.alias_generators import to_camel
from starlette.responses import JSONResponse, PlainTextResponse, Response

from frontdesk import __version__
from frontdesk.platform.local.checking import audience_of
from frontdesk.platform.local.faults import CHAT, DISCOVERY, SERVER
from frontdesk.platform.local.standin import StandIn
from frontdesk.platform.local.watching import find, served
from frontdesk.surfaces.gate import ASGIApp
from frontdesk.surfaces.platform.asked import Asked, problem, unfit
from frontdesk.surfaces.platform.outages import FAULTS, told
from frontdesk.surfaces.platform.servers import tools_of

PAGE = """Frontdesk {version}: a local stand-in for the Agent 365 tooling platform.

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


async def requests(standin: StandIn, asked: Asked) -> ASGIApp:
    """`/requests`, the oldest first."""
    if asked.method == "DELETE":
        standin.seen.clear()
        return Response(status_code=204)
    query = parse_qs(asked.scope["query_string"].decode("latin-1"))
    agent, limit = query.get("agent", [""])[-1], query.get("limit", ["1000"])[-1]
    if not (limit.isascii() and limit.isdigit()):
        return problem(400, "invalid_request", "limit must be a whole number")
    found = [seen for seen in standin.seen if not agent or seen.agent_id == agent]
    wanted = found[-int(limit[:9]) :] if int(limit[:9]) else []
    shown = [{to_camel(name): value for name, value in asdict(seen).items()} for seen in wanted]
    return JSONResponse({"requests": shown})


async def chats(standin: StandIn, _asked: Asked) -> ASGIApp:
    return JSONResponse({"chats": list(standin.chats)})


async def faults(standin: StandIn, asked: Asked) -> ASGIApp:
    """`/faults`: what is named is replaced, null removes it, the rest stays."""
    if asked.method == "DELETE":
        standin.faults.clear()
    elif asked.method == "PUT":
        try:
            wanted = FAULTS.validate_json(asked.body)
        except ValidationError as error:
            return unfit("The faults are not as they should be", error)
        parts = {part: _part(standin, part) for part in wanted}
        for part, known in parts.items():
            if known is None:
                names = ", ".join(f"{SERVER}{server.name}" for server in served(standin.manifest.now()))
                return problem(
                    400, "invalid_request", f"There is no part {part!r}; there are: discovery, chat, {names}"
                )
        for part, fault in wanted.items():
            standin.faults.put(parts[part] or "", fault and fault.fault())
    return JSONResponse(told(standin.faults.present))


async def health(standin: StandIn, _asked: Asked) -> ASGIApp:
    declared = standin.manifest.now()
    servers = [
        {
            "name": server.name,
            "uniqueName": server.unique_name,
            "audience": audience_of(server),
            "tools": list(tools_of(server)),
        }
        for server in served(declared)
    ]
    trouble = standin.manifest.trouble
    problems = [*([trouble] if trouble else []), *map(str, declared.problems)]
    return JSONResponse(
        {
            "status": "stale" if trouble else "ok" if declared.sound else "flawed",
            "version": __version__,
            "manifest": str(declared.path),
            "tokens": standin.mode,
            "servers": servers,
            "problems": problems,
            "faults": len(standin.faults.present),
        }
    )


async def page(standin: StandIn, _asked: Asked) -> ASGIApp:
    names = ", ".join(server.name for server in served(standin.manifest.now())) or "none"
    return PlainTextResponse(PAGE.format(version=__version__, mode=standin.mode, servers=names))


def _part(standin: StandIn, named: str) -> str | None:
    """The part that a fault is of; a server's two names mean the same."""
    if named in (DISCOVERY, CHAT):
        return named
    server = find(standin.manifest.now(), named.removeprefix(SERVER)) if named.startswith(SERVER) else None
    return f"{SERVER}{server.name}" if server is not None else None
