"""The HTTP API for programs: FastAPI behind the gate, with its description at /api/openapi.json."""

from collections.abc import Iterator
from typing import cast

import anyio
from fastapi import FastAPI, Request, Security
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute, iter_route_contexts
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.responses import Response
from starlette.routing import Mount, compile_path

from frontdesk import __version__
from frontdesk.app import App
from frontdesk.surfaces.gate import ASGIApp, Message, Receive, Send
from frontdesk.surfaces.rest.calls import CREDENTIAL, recorded
from frontdesk.surfaces.rest.chat import add_chat
from frontdesk.surfaces.rest.keys.routes import add_key_routes
from frontdesk.surfaces.rest.memory.routes import add_memory_routes
from frontdesk.surfaces.rest.refusals import problem
from frontdesk.surfaces.rest.schedules.routes import add_schedule_routes
from frontdesk.surfaces.rest.tools.routes import add_tool_routes
from frontdesk.surfaces.visit import Scope

PREFIX = "/api"
MAX_BODY = 4 * 1024 * 1024
READ_SECONDS = 30


def api_mount(app: App) -> Mount:
    """Everything under /api that no other route answers."""
    api = FastAPI(
        title="Frontdesk",
        version=__version__,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        dependencies=[Security(CREDENTIAL)],
        exception_handlers={HTTPException: tell},
        generate_unique_id_function=lambda route: route.name,
    )
    api.router.route_class = recorded(app, PREFIX)
    add_chat(api, app.chat)
    add_tool_routes(api, app, PREFIX)
    add_schedule_routes(api, app, PREFIX)
    add_key_routes(api, app, PREFIX)
    add_memory_routes(api, app, PREFIX)
    return Mount(PREFIX, api, middleware=[Middleware(bounded)])


def scopes_of_route(mount: Mount, path: str) -> list[str]:
    """The scopes that the routes at an address of the API say they need, whatever the method."""
    inner = path.removeprefix(mount.path)
    routes = [context.original_route for context in iter_route_contexts(mount.routes)]
    # The more exact route stands first; one with a parameter in its place is another address.
    found = [route for route in routes if isinstance(route, APIRoute) and route.path_regex.match(inner)]
    here = [route for route in found if route.path == found[0].path]
    return sorted({scope for route in here for scope in _scopes(route.dependant)})


def _scopes(dependant: Dependant) -> Iterator[str]:
    yield from dependant.own_oauth_scopes or ()
    for inner in dependant.dependencies:
        yield from _scopes(inner)


def bounded(inner: ASGIApp) -> ASGIApp:
    """Takes bodies of a certain size, within a certain time."""

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


async def tell(request: Request, error: Exception) -> Response:
    """What Starlette and FastAPI refuse themselves: paths and methods that are not there."""
    refused = cast("HTTPException", error)
    headers = {"allow": _allowed(request)} if refused.status_code == 405 else refused.headers
    return problem(refused.status_code, refused.detail, headers)


def _allowed(request: Request) -> str:
    """Every method of an address; they name those of its first route alone."""
    path = request.scope["path"].removeprefix(request.scope["root_path"])
    routes = [*iter_route_contexts(request.app.routes)]
    first = next(route.path for route in routes if compile_path(route.path or "")[0].match(path))
    return ", ".join(sorted({method for route in routes if route.path == first for method in route.methods or ()}))
