"""Builds the HTTP application: middleware, dispatch by path, and the routes of every interface."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.routing import BaseRoute, Mount, Route

from frontdesk.agents.letta.handed_store import HANDED_TOOLS_PATH
from frontdesk.app import App
from frontdesk.identity import rights
from frontdesk.interfaces.http.context import ASGIApp, Receive, Scope, Send
from frontdesk.interfaces.http.middleware import AuthMiddleware, MemoryPaths, PageAccess
from frontdesk.interfaces.mcp.handed_tools import build_handed_tools_server
from frontdesk.interfaces.mcp.http import McpEndpoint, sse_routes
from frontdesk.interfaces.mcp.login_tools import with_login_tools
from frontdesk.interfaces.mcp.server import (
    bearer_challenge,
    build_server,
    card_routes,
    fast_handlers,
    metadata_routes,
    offer_tools,
    scopes_at_path,
    tools_by_path,
    url_path,
)
from frontdesk.interfaces.oauth import OPEN_PATHS, oauth_routes
from frontdesk.interfaces.rest.api import (
    API_PREFIX,
    HEALTH_PATHS,
    METRICS_PATH,
    answer_http_exception,
    mount_api,
    scopes_of_route,
    status_routes,
)
from frontdesk.interfaces.web.model import is_page, is_public
from frontdesk.interfaces.web.rendering import SECURITY_HEADERS
from frontdesk.interfaces.web.routes import page_error_handler, web_routes
from frontdesk.interfaces.web.sessions import redirect_to_sign_in, signed_in_credential
from frontdesk.operations import BoundOperation, McpPath
from frontdesk.settings import Settings

MEMORY_PATH = url_path(McpPath.MEMORY)
# Clients of zmemory append this to the address that they are configured with.
ZMEMORY_SUFFIX = "/api/mcp"
ZMEMORY_PATHS = frozenset({ZMEMORY_SUFFIX, f"{MEMORY_PATH}{ZMEMORY_SUFFIX}"})
SSE_PATHS = frozenset({"/sse", "/messages"})
# Addresses outside MCP whose routes do not declare the scopes that they need.
SCOPES_BY_PATH: Mapping[str, Sequence[str]] = {
    METRICS_PATH: (rights.METRICS_READ,),
    HANDED_TOOLS_PATH: (rights.IDENTITY_READ, rights.TOOLS_CALL),
    f"{API_PREFIX}/agents": rights.AGENT_SCOPES,
    f"{API_PREFIX}/v1/tools": rights.TOOL_SCOPES,
    f"{API_PREFIX}/v1/schedules": rights.SCHEDULE_SCOPES,
    **dict.fromkeys(ZMEMORY_PATHS, rights.PERSON_SCOPES),
}


def build_application(app: App, operations: Sequence[BoundOperation] | None = None) -> ASGIApp:
    """The HTTP application with all interfaces. Without `operations` it offers every operation of the app."""
    offering = with_login_tools(app, app.operations()) if operations is None else operations
    found = tools_by_path(offering)
    offered = {path: offer_tools(app, of_path, path) for path, of_path in found.items()}
    servers = {path: build_server(of_path, path) for path, of_path in offered.items()}
    endpoints = {
        path: McpEndpoint(server, fast_handlers(offered[path]), app.identity.sessions if path == MEMORY_PATH else None)
        for path, server in servers.items()
    }
    if MEMORY_PATH in endpoints:
        endpoints |= dict.fromkeys(ZMEMORY_PATHS, endpoints[MEMORY_PATH])
    if app.settings.letta_base_url is not None:
        # Only the Letta server uses it, so it is not listed in the metadata documents.
        endpoints[HANDED_TOOLS_PATH] = McpEndpoint(build_handed_tools_server(app))
    return assemble_application(app, endpoints, list(found), offering, sse_routes(servers["/mcp"]))


def assemble_application(
    app: App,
    endpoints: Mapping[str, ASGIApp],
    paths: list[str],
    operations: Sequence[BoundOperation] = (),
    more: Iterable[BaseRoute] = (),
) -> ASGIApp:
    """Combine the given endpoints with the routes that every installation has, behind the authentication middleware."""
    documents = [*card_routes(app, paths), *metadata_routes(app, paths)]
    api = mount_api(app, operations)
    routes = [*more, *status_routes(app), *oauth_routes(app), api, *documents, *web_routes(app)]
    addresses = frozenset({*endpoints, *_fixed_paths(routes)})
    known = frozenset(path[1:].split("/")[0] for path in addresses)
    starlette = Starlette(
        routes=routes, exception_handlers={HTTPException: page_error_handler(app, answer_http_exception, known)}
    )
    starlette.router.redirect_slashes = False
    open_paths = frozenset({*HEALTH_PATHS, *OPEN_PATHS, *(route.path for route in documents)})
    guarded = AuthMiddleware(
        PathDispatcher(endpoints, starlette),
        app,
        addresses,
        open_paths,
        AuthChallenges(app, tuple(paths), api),
        MemoryPaths(frozenset({MEMORY_PATH, *ZMEMORY_PATHS}), ZMEMORY_PATHS),
        PageAccess(
            is_page, is_public, partial(signed_in_credential, app), partial(redirect_to_sign_in, app), SECURITY_HEADERS
        ),
    )
    return _with_cors(guarded, app.settings)


def _fixed_paths(routes: Sequence[BaseRoute], prefix: str = "") -> Iterator[str]:
    """The paths without parameters."""
    for route in routes:
        if isinstance(route, Mount):
            yield prefix + route.path
            yield from _fixed_paths(route.routes, prefix + route.path)
        elif isinstance(route, Route) and "{" not in route.path:
            yield prefix + route.path


@dataclass(frozen=True, slots=True)
class PathDispatcher:
    """Sends a request to the endpoint with exactly its path, or else to the router."""

    endpoints: Mapping[str, ASGIApp]
    fallback: ASGIApp

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self.endpoints.get(scope.get("path", ""), self.fallback)(scope, receive, send)


@dataclass(frozen=True, slots=True)
class AuthChallenges:
    """The `WWW-Authenticate` header of a 401: the address of the metadata, and the scopes that the path needs."""

    app: App
    paths: Sequence[str]
    api: Mount

    def __call__(self, path: str, shown: bool) -> str:
        described = path if path in self.paths else self.paths[0]
        scopes = self._needed(path)
        scope = f', scope="{" ".join(scopes)}"' if scopes else ""
        why = ', error="invalid_token", error_description="The credential is not valid"' if shown else ""
        return f"{bearer_challenge(self.app, described)}{scope}{why}"

    def _needed(self, path: str) -> Sequence[str]:
        if path in self.paths or path.removesuffix("/") in SSE_PATHS:
            return scopes_at_path(path)
        for beginning, scopes in SCOPES_BY_PATH.items():
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
