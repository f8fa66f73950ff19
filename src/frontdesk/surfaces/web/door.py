"""The routes of the pages, and what they are drawn with."""

from collections.abc import Awaitable, Callable, Collection
from pathlib import Path

from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import BaseRoute, Mount
from starlette.staticfiles import StaticFiles

from frontdesk.app import App
from frontdesk.surfaces.web import places
from frontdesk.surfaces.web.entrance import entrance
from frontdesk.surfaces.web.pages.every import EVERY
from frontdesk.surfaces.web.walk import route
from frontdesk.surfaces.web.window import Window

FILES = Path(__file__).with_name("static")
NO_PAGE = "There is no such page"
NOT_SO = "This address is for a form, or is to be looked at; begin at the page itself"

Telling = Callable[[Request, Exception], Awaitable[Response]]


def web_routes(app: App) -> list[BaseRoute]:
    """Every page, in front of which the gate asks who comes."""
    return [
        *(route(app, thing) for thing in EVERY),
        *entrance(app),
        # Pages themselves go as they are: what is secret in them must not show in how well they compress.
        Mount("/static", _Files(directory=FILES), middleware=[Middleware(GZipMiddleware)]),
    ]


def telling(app: App, others: Telling, doors: Collection[str]) -> Telling:
    """How an address that is not there, or not for that method, is told: to people on a page.

    Below none of the other `doors` whoever would rather read a page is shown one too.
    """

    async def tell(request: Request, error: Exception) -> Response:
        path = request.scope["path"]
        for_people = places.is_page(path) or (path[1:].split("/")[0] not in doors and _prefers_pages(request))
        if not for_people or not isinstance(error, HTTPException):
            return await others(request, error)
        if path.startswith(places.STATIC):
            return PlainTextResponse(error.detail, error.status_code, error.headers)
        answer = Window.on(app, request).refuse(NOT_SO if error.status_code == 405 else NO_PAGE, error.status_code)
        answer.headers.update(error.headers or {})
        return answer

    return tell


def _prefers_pages(request: Request) -> bool:
    said = dict(_weighed(part) for part in ",".join(request.headers.getlist("accept")).lower().split(","))
    return said.get("text/html", 0) > said.get("application/json", 0)


def _weighed(part: str) -> tuple[str, float]:
    """A kind of answer, and how much it is wanted."""
    kind, *parameters = (word.strip() for word in part.split(";"))
    weight = next((word.removeprefix("q=") for word in parameters if word.startswith("q=")), "1")
    try:
        return kind, float(weight)
    except ValueError:
        return kind, 0


class _Files(StaticFiles):
    """Files that never change: their addresses carry a version."""

    def file_response(self, *args: object, **more: object) -> Response:
        answer = super().file_response(*args, **more)  # pyright: ignore[reportArgumentType] - handed on as they came
        answer.headers["cache-control"] = "public, max-age=3600"
        return answer
