"""Mounts the HTTP API under /api with FastAPI, and adds the routes of health and metrics."""

from collections.abc import Iterator
from typing import cast

import anyio
from fastapi import FastAPI, Security
from fastapi import Request as fastapi_Request
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute, iter_route_contexts
from prometheus_client import CONTENT_TYPE_LATEST
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Mount, Route, compile_path

from frontdesk import __version__
from frontdesk.app import App
from frontdesk.errors import MissingScope
from frontdesk.identity.inbound import resolve_caller, trace_refusal
from frontdesk.identity.model import Caller, Signals
from frontdesk.identity.rights import METRICS_READ, require_local_or_granted
from frontdesk.interfaces.http.context import ASGIApp, Message, Receive, Scope, Send, request_context
from frontdesk.interfaces.rest.chat import add_chat_routes
from frontdesk.interfaces.rest.errors import error_response, problem_response
from frontdesk.interfaces.rest.keys import add_key_routes
from frontdesk.interfaces.rest.memory.routes import add_memory_routes
from frontdesk.interfaces.rest.routing import CREDENTIAL_SCHEME, recorded_route
from frontdesk.interfaces.rest.schedules import add_schedule_routes
from frontdesk.interfaces.rest.tools import add_tool_routes
from frontdesk.journal.service import CallRecord

HEALTH_PATH = "/api/health"
# Clients of zmemory append /health to their configured address, which may be that of the server or of its memory.
HEALTH_PATHS = (HEALTH_PATH, "/health", "/mcp/memory/health")
METRICS_PATH = "/metrics"


def operation_routes(app: App) -> list[Route]:
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
MAX_BODY = 4 * 1024 * 1024
READ_SECONDS = 30


def mount_api(app: App) -> Mount:
    """Mount everything under /api that no other route answers."""
    api = FastAPI(
        title="Frontdesk",
        version=__version__,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        dependencies=[Security(CREDENTIAL_SCHEME)],
        exception_handlers={HTTPException: answer_http_exception},
        generate_unique_id_function=lambda route: route.name,
    )
    api.router.route_class = recorded_route(app, API_PREFIX)
    add_chat_routes(api, app.chat)
    add_tool_routes(api, app, API_PREFIX)
    add_schedule_routes(api, app, API_PREFIX)
    add_key_routes(api, app, API_PREFIX)
    add_memory_routes(api, app, API_PREFIX)
    return Mount(API_PREFIX, api, middleware=[Middleware(limit_bodies)])


def scopes_of_route(mount: Mount, path: str) -> list[str]:
    """The scopes that the routes at an address of the API declare, for all methods together."""
    inner = path.removeprefix(mount.path)
    routes = [context.original_route for context in iter_route_contexts(mount.routes)]
    # The more exact route stands first; a route with a parameter in that place has another address.
    found = [route for route in routes if isinstance(route, APIRoute) and route.path_regex.match(inner)]
    here = [route for route in found if route.path == found[0].path]
    return sorted({scope for route in here for scope in _dependant_scopes(route.dependant)})


def _dependant_scopes(dependant: Dependant) -> Iterator[str]:
    yield from dependant.own_oauth_scopes or ()
    for inner in dependant.dependencies:
        yield from _dependant_scopes(inner)


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
                    raise HTTPException(413, "The body is too large; 4 MiB is the limit")
                complete = not message.get("more_body", False)
                return message
            raise HTTPException(408, f"The body did not arrive within {READ_SECONDS} s")

        await inner(scope, bounded_receive, send)

    return outer


async def answer_http_exception(request: fastapi_Request, error: Exception) -> Response:
    """Answer errors that Starlette and FastAPI raise themselves: unknown paths and methods."""
    refused = cast("HTTPException", error)
    headers = {"allow": _allowed_methods(request)} if refused.status_code == 405 else refused.headers
    return problem_response(refused.status_code, refused.detail, headers)


def _allowed_methods(request: fastapi_Request) -> str:
    """Every method of an address; the frameworks name only the methods of its first route."""
    path = request.scope["path"].removeprefix(request.scope["root_path"])
    routes = [*iter_route_contexts(request.app.routes)]
    first = next(route.path for route in routes if compile_path(route.path or "")[0].match(path))
    return ", ".join(sorted({method for route in routes if route.path == first for method in route.methods or ()}))
