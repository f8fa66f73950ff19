"""The HTTP API for programs: FastAPI behind the gate, with its description at /api/openapi.json."""

from typing import cast

import anyio
from fastapi import FastAPI, Request, Security
from fastapi.security import HTTPBearer
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.responses import Response
from starlette.routing import Mount

from frontdesk import __version__
from frontdesk.app import App
from frontdesk.surfaces.gate import ASGIApp, Message, Receive, Send
from frontdesk.surfaces.rest.calls import recorded
from frontdesk.surfaces.rest.chat import add_chat
from frontdesk.surfaces.rest.refusals import problem
from frontdesk.surfaces.rest.schedules.routes import add_schedule_routes
from frontdesk.surfaces.rest.tools.routes import add_tool_routes
from frontdesk.surfaces.visit import Scope

PREFIX = "/api"
MAX_BODY = 4 * 1024 * 1024
READ_SECONDS = 30


def api_mount(app: App) -> Mount:
    """Everything under /api that no other route answers."""
    credential = HTTPBearer(auto_error=False, description="An API key (fd_…), or a token of a configured issuer.")
    api = FastAPI(
        title="Frontdesk",
        version=__version__,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        dependencies=[Security(credential)],
        exception_handlers={HTTPException: _tell},
        generate_unique_id_function=lambda route: route.name,
    )
    api.router.route_class = recorded(app, PREFIX)
    add_chat(api, app.chat)
    add_tool_routes(api, app, PREFIX)
    add_schedule_routes(api, app, PREFIX)
    return Mount(PREFIX, api, middleware=[Middleware(bounded)])


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


async def _tell(_request: Request, error: Exception) -> Response:
    """What FastAPI itself refuses: paths and methods that are not there."""
    refused = cast("HTTPException", error)
    return problem(refused.status_code, refused.detail, refused.headers)
