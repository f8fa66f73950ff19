"""Mounts the HTTP API under /api, and adds the routes of health and metrics."""

from collections.abc import Sequence

import anyio
from prometheus_client import CONTENT_TYPE_LATEST
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Mount, Route

from frontdesk import __version__
from frontdesk.app import App
from frontdesk.errors import MissingScope
from frontdesk.identity.inbound import resolve_caller, trace_refusal
from frontdesk.identity.model import Caller, Signals
from frontdesk.identity.rights import METRICS_READ, require_local_or_granted
from frontdesk.interfaces.http.context import ASGIApp, Message, Receive, Scope, Send, request_context
from frontdesk.interfaces.rest.chat_stream import STREAM_OPERATION
from frontdesk.interfaces.rest.errors import BodyRefused, error_response, problem_response
from frontdesk.interfaces.rest.openapi import openapi_document
from frontdesk.interfaces.rest.routing import OperationEndpoint, operation_routes
from frontdesk.journal.service import CallRecord
from frontdesk.operations import BoundOperation

HEALTH_PATH = "/api/health"
# Clients of zmemory append /health to their configured address, which may be that of the server or of its memory.
HEALTH_PATHS = (HEALTH_PATH, "/health", "/mcp/memory/health")
METRICS_PATH = "/metrics"


def status_routes(app: App) -> list[Route]:
    """The routes of health and metrics. Health is open and reveals little; metrics need a grant."""

    async def health(_request: Request) -> JSONResponse:
        parts = await app.check_parts()
        well = all(state == "ok" for state in parts.values())
        shown = {name: "ok" if state == "ok" else "unavailable" for name, state in parts.items()}
        body = {"status": "ok" if well else "unavailable", "version": __version__, "parts": shown}
        return JSONResponse(body, 200 if well else 503)

    async def metrics(request: Request) -> Response:
        context = request_context(request.scope)
        signals = Signals(context.request_id, credential=context.credential, forwarded=context.forwarded)
        try:
            require_local_or_granted(resolve_caller(signals, app.identity.policy), METRICS_READ)
        except MissingScope as error:
            with CallRecord(app.journal, "http", METRICS_PATH, Caller(context.request_id)) as record:
                record.add_trace(trace_refusal(signals))
                record.fail(error)
            return error_response(error)
        await app.schedules.executor.update_metrics()
        return Response(app.journal.render_metrics(), headers={"content-type": CONTENT_TYPE_LATEST})

    return [
        *(Route(path, health, methods=["GET"]) for path in HEALTH_PATHS),
        Route(METRICS_PATH, metrics, methods=["GET"]),
    ]


API_PREFIX = "/api"
OPENAPI_PATH = "/openapi.json"
MAX_BODY = 4 * 1024 * 1024
READ_SECONDS = 30


def mount_api(app: App, operations: Sequence[BoundOperation]) -> Mount:
    """Mount everything under /api that no other route answers."""
    offered = [*operations, app.bind(STREAM_OPERATION, app.chat)]
    description: dict[str, object] = {}

    async def describe(_request: Request) -> JSONResponse:
        # It takes a while, and few clients ask for it.
        if not description:
            description.update(openapi_document((bound.operation for bound in offered), API_PREFIX))
        return JSONResponse(description)

    api = Starlette(
        routes=[*operation_routes(app, offered, API_PREFIX), Route(OPENAPI_PATH, describe, methods=["GET"])],
        exception_handlers={HTTPException: answer_http_exception},
    )
    api.router.redirect_slashes = False
    return Mount(API_PREFIX, api, middleware=[Middleware(limit_bodies)])


def scopes_of_route(mount: Mount, path: str) -> list[str]:
    """The scopes that the operations at an address of the API need, for all methods together."""
    inner = path.removeprefix(mount.path)
    # The more exact route stands first; a route with a parameter in that place has another address.
    found = [route for route in _routes(mount) if route.path_regex.match(inner)]
    here = [route.endpoint for route in found if route.path == found[0].path]
    return sorted({scope for one in here if isinstance(one, OperationEndpoint) for scope in one.operation.scopes})


def _routes(mount: Mount) -> list[Route]:
    return [route for route in mount.routes or () if isinstance(route, Route)]


def limit_bodies(inner: ASGIApp) -> ASGIApp:
    """Limit the size of bodies, and the time in which they must arrive."""

    async def outer(scope: Scope, receive: Receive, send: Send) -> None:
        size, complete = 0, False
        deadline = anyio.current_time() + READ_SECONDS

        async def bounded_receive() -> Message:
            nonlocal size, complete
            if complete:
                return await receive()
            with anyio.CancelScope(deadline=deadline):
                message = await receive()
                size += len(message.get("body", b""))
                if size > MAX_BODY:
                    raise BodyRefused(413, "The body is too large; 4 MiB is the limit")
                complete = not message.get("more_body", False)
                return message
            raise BodyRefused(408, f"The body did not arrive within {READ_SECONDS} s")

        await inner(scope, bounded_receive, send)

    return outer


async def answer_http_exception(request: Request, error: Exception) -> Response:
    """Answer errors that Starlette raises itself: unknown paths and methods."""
    assert isinstance(error, HTTPException)  # noqa: S101 - it is registered for nothing else
    headers = {"allow": _allowed_methods(request)} if error.status_code == 405 else error.headers
    return problem_response(error.status_code, error.detail, headers)


def _allowed_methods(request: Request) -> str:
    """Every method of an address; Starlette names only the methods of its first route."""
    path = request.scope["path"].removeprefix(request.scope["root_path"])
    routes = [route for route in request.app.routes if isinstance(route, Route) and route.path_regex.match(path)]
    return ", ".join(
        sorted({method for route in routes if route.path == routes[0].path for method in route.methods or ()})
    )
