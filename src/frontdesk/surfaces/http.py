"""The HTTP surface: every door behind one gate."""

import signal
import socket
from collections.abc import Generator, Iterable
from contextlib import contextmanager

import anyio
import structlog
import uvicorn
from starlette.applications import Starlette
from starlette.middleware.cors import CORSMiddleware
from starlette.routing import BaseRoute, Route
from typing_extensions import override

from frontdesk.app import App, running
from frontdesk.errors import ConfigurationError
from frontdesk.identity.rights import SCOPES
from frontdesk.settings import Settings
from frontdesk.surfaces.gate import ASGIApp, Gate
from frontdesk.surfaces.mcp import cards
from frontdesk.surfaces.mcp.http import McpEndpoint
from frontdesk.surfaces.mcp.server import build_server, challenge_for, doors, offers
from frontdesk.surfaces.mcp.sse import sse_routes
from frontdesk.surfaces.mcp.tool import ToolSpec
from frontdesk.surfaces.rest import routes as rest

DRAIN_SECONDS = 10
BACKLOG = 2048

log = structlog.get_logger("frontdesk.http")


def build(app: App, specs: Iterable[ToolSpec] | None = None) -> ASGIApp:
    """The whole HTTP application of a house."""
    found = doors() if specs is None else doors(specs)
    servers = {path: build_server(offers(app, of_door, path)) for path, of_door in found.items()}
    routes: list[BaseRoute] = [Route(path, McpEndpoint(server)) for path, server in servers.items()]
    return assemble(app, [*routes, *sse_routes(servers["/mcp"])], list(found))


def assemble(app: App, doors_routes: Iterable[BaseRoute], paths: list[str]) -> ASGIApp:
    """Put the gate before the given doors and the routes that every house has."""
    documents = [*cards.card_routes(app, paths), *cards.metadata_routes(app, paths)]
    starlette = Starlette(routes=[*doors_routes, *rest.routes(app), *documents])
    starlette.router.redirect_slashes = False
    open_paths = frozenset({rest.HEALTH, *(route.path for route in documents)})
    gate = Gate(
        starlette,
        app,
        open_paths,
        lambda path, shown: _challenge(app, path if path in paths else paths[0], shown=shown),
    )
    return _with_cors(gate, app.settings)


async def serve(app: App, listener: socket.socket, asgi: ASGIApp) -> None:
    """Serve until told to stop; then let what is under way finish."""
    config = uvicorn.Config(
        asgi,
        http="httptools",
        lifespan="off",
        access_log=False,
        log_config=None,
        server_header=False,
        timeout_graceful_shutdown=DRAIN_SECONDS,
    )
    server = Server(config)
    async with running(app), anyio.create_task_group() as tasks:
        tasks.start_soon(_stop_on_signal, server)
        await server.serve(sockets=[listener])
        tasks.cancel_scope.cancel()


class Server(uvicorn.Server):
    """Uvicorn, but for signals: it would pass them on once it has stopped, and so end us before we have."""

    @contextmanager
    @override
    def capture_signals(self) -> Generator[None]:
        yield


async def _stop_on_signal(server: Server) -> None:
    with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        async for _ in signals:
            # Asked once, what is under way may finish; asked twice, it may not.
            server.force_exit = server.should_exit
            server.should_exit = True


def listen(settings: Settings) -> socket.socket:
    """The listening socket; a port that is taken is said in words."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    # The protocol by name: without it asyncio leaves Nagle's algorithm on, and every answer waits 40 ms.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((settings.host, settings.port))
        listener.listen(BACKLOG)
    except OSError as error:
        listener.close()
        raise ConfigurationError(
            f"Cannot listen on {settings.host}:{settings.port}: {error.strerror}. Set FRONTDESK_PORT to a free one"
        ) from error
    return listener


def _challenge(app: App, path: str, *, shown: bool) -> str:
    scope = f'scope="{" ".join(SCOPES)}"'
    why = ', error="invalid_token", error_description="The credential is not valid"' if shown else ""
    return f"{challenge_for(app, path)}, {scope}{why}"


def _with_cors(inner: ASGIApp, settings: Settings) -> ASGIApp:
    if not settings.allowed_origins:
        return inner
    return CORSMiddleware(
        inner,
        allow_origins=settings.allowed_origins,
        allow_methods=["GET", "POST"],
        allow_headers=["*"],
        expose_headers=["x-request-id", "www-authenticate", "retry-after"],
    )
