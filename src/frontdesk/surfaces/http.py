"""The HTTP surface: every door behind one gate."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from fastapi.routing import iter_route_contexts
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.routing import BaseRoute, Mount

from frontdesk.agents.letta.handed.model import PATH as HELD_PATH
from frontdesk.app import App, Door
from frontdesk.identity import rights
from frontdesk.settings import Settings
from frontdesk.surfaces.gate import ASGIApp, Gate, Pages, Receive, RecordsAt, Send
from frontdesk.surfaces.mcp import cards
from frontdesk.surfaces.mcp.held import held_server
from frontdesk.surfaces.mcp.http import McpEndpoint
from frontdesk.surfaces.mcp.server import build_server, challenge_for, doors, offers, path_of, scopes_at, straight_ways
from frontdesk.surfaces.mcp.sse import sse_routes
from frontdesk.surfaces.mcp.tool import ToolSpec
from frontdesk.surfaces.oauth.routes import OPEN_PATHS, oauth_routes
from frontdesk.surfaces.rest import routes as rest
from frontdesk.surfaces.rest.api import PREFIX, api_mount, scopes_of_route, tell
from frontdesk.surfaces.visit import Scope
from frontdesk.surfaces.web import places, who
from frontdesk.surfaces.web.door import telling, web_routes
from frontdesk.surfaces.web.drawing import SAFETY
from frontdesk.surfaces.web.signing import to_sign_in

MEMORY = path_of(Door.MEMORY)
# Where clients of zmemory call: they are told an address, and put this behind it.
ZMEMORY_CALLS = "/api/mcp"
ZMEMORY_AT = frozenset({ZMEMORY_CALLS, f"{MEMORY}{ZMEMORY_CALLS}"})
SSE_PATHS = frozenset({"/sse", "/messages"})
# Addresses besides those of MCP whose routes do not say themselves which scopes they need.
BESIDES: Mapping[str, Sequence[str]] = {
    rest.METRICS: (rights.METRICS_READ,),
    HELD_PATH: (rights.IDENTITY_READ, rights.TOOLS_CALL),
    f"{PREFIX}/agents": rights.AGENT_SCOPES,
    f"{PREFIX}/v1/tools": rights.TOOL_SCOPES,
    f"{PREFIX}/v1/schedules": rights.SCHEDULE_SCOPES,
    **dict.fromkeys(ZMEMORY_AT, rights.PERSON_SCOPES),
}


def build(app: App, specs: Iterable[ToolSpec] | None = None) -> ASGIApp:
    """The whole HTTP application of a house."""
    found = doors() if specs is None else doors(specs)
    offered = {path: offers(app, of_door, path) for path, of_door in found.items()}
    servers = {path: build_server(of_door, path) for path, of_door in offered.items()}
    endpoints = {
        path: McpEndpoint(server, straight_ways(offered[path]), app.identity.sessions if path == MEMORY else None)
        for path, server in servers.items()
    }
    if MEMORY in endpoints:
        endpoints |= dict.fromkeys(ZMEMORY_AT, endpoints[MEMORY])
    if app.settings.letta_base_url is not None:
        # For that server alone, so it is in none of the documents that tell the world of our doors.
        endpoints[HELD_PATH] = McpEndpoint(held_server(app))
    return assemble(app, endpoints, list(found), sse_routes(servers["/mcp"]))


def assemble(app: App, endpoints: Mapping[str, ASGIApp], paths: list[str], more: Iterable[BaseRoute] = ()) -> ASGIApp:
    """Put the gate before the given doors and the routes that every house has."""
    documents = [*cards.card_routes(app, paths), *cards.metadata_routes(app, paths)]
    api = api_mount(app)
    routes = [*more, *rest.routes(app), *oauth_routes(app), api, *documents, *web_routes(app)]
    addresses = frozenset({*endpoints, *_addresses(routes)})
    known = frozenset(path[1:].split("/")[0] for path in addresses)
    starlette = Starlette(routes=routes, exception_handlers={HTTPException: telling(app, tell, known)})
    starlette.router.redirect_slashes = False
    open_paths = frozenset({*rest.HEALTH_AT, *OPEN_PATHS, *(route.path for route in documents)})
    gate = Gate(
        Hall(endpoints, starlette),
        app,
        addresses,
        open_paths,
        Challenges(app, tuple(paths), api),
        RecordsAt(frozenset({MEMORY, *ZMEMORY_AT}), ZMEMORY_AT),
        Pages(places.is_page, places.is_open, partial(who.shown, app), partial(to_sign_in, app), SAFETY),
    )
    return _with_cors(gate, app.settings)


def _addresses(routes: Sequence[BaseRoute], prefix: str = "") -> Iterator[str]:
    """The paths that are the same for every caller: those with an id in them are not."""
    for route in iter_route_contexts(routes):
        path = prefix + (route.path or "")
        if "{" not in path:
            yield path
        if isinstance(route.original_route, Mount):
            yield from _addresses(route.original_route.routes, path)


@dataclass(frozen=True, slots=True)
class Hall:
    """From the gate to the doors: those with one address are known by it, and others are looked for by pattern."""

    doors: Mapping[str, ASGIApp]
    others: ASGIApp

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self.doors.get(scope.get("path", ""), self.others)(scope, receive, send)


@dataclass(frozen=True, slots=True)
class Challenges:
    """What a 401 says in `WWW-Authenticate`: where the metadata is, and the scopes that its address needs."""

    app: App
    paths: Sequence[str]
    api: Mount

    def __call__(self, path: str, shown: bool) -> str:
        described = path if path in self.paths else self.paths[0]
        scopes = self._needed(path)
        scope = f', scope="{" ".join(scopes)}"' if scopes else ""
        why = ', error="invalid_token", error_description="The credential is not valid"' if shown else ""
        return f"{challenge_for(self.app, described)}{scope}{why}"

    def _needed(self, path: str) -> Sequence[str]:
        if path in self.paths or path.removesuffix("/") in SSE_PATHS:
            return scopes_at(path)
        for beginning, scopes in BESIDES.items():
            if path == beginning or path.startswith(f"{beginning}/"):
                return scopes
        return scopes_of_route(self.api, path)


def _with_cors(inner: ASGIApp, settings: Settings) -> ASGIApp:
    if not settings.allowed_origins:
        return inner
    return CORSMiddleware(
        inner,
        allow_origins=settings.allowed_origins,
        allow_methods=["GET", "POST", "PUT", "PATCH", "DELETE"],
        allow_headers=["*"],
        expose_headers=["x-request-id", "www-authenticate", "retry-after", "mcp-session-id", "x-total-count"],
    )
