"""Routes requests to pages, forms and server-sent events; journals each, and shows errors as a page."""

import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Mapping
from contextlib import aclosing, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, ClassVar

import structlog
from sse_starlette import EventSourceResponse, ServerSentEvent
from sse_starlette.sse import SendTimeoutError
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import Receive, Scope, Send

from frontdesk.app import App
from frontdesk.errors import FrontdeskError, Unavailable
from frontdesk.identity.model import Caller
from frontdesk.interfaces.http.context import RequestContext, request_context
from frontdesk.interfaces.http.errors import retry_after_header
from frontdesk.interfaces.web.model import (
    STATIC_PATH,
    ActionRoute,
    FileDownload,
    PageContent,
    PageRedirect,
    PageRequest,
    PageRoute,
    StreamRoute,
    is_page,
)
from frontdesk.interfaces.web.pages.access import ACCESS
from frontdesk.interfaces.web.pages.agents import AGENTS
from frontdesk.interfaces.web.pages.now import NOW
from frontdesk.interfaces.web.pages.people import PEOPLE
from frontdesk.interfaces.web.pages.schedule import SCHEDULE
from frontdesk.interfaces.web.pages.sign_in import sign_in_routes
from frontdesk.interfaces.web.pages.start import START
from frontdesk.interfaces.web.pages.tools import TOOLS
from frontdesk.interfaces.web.pages.turns import TURNS
from frontdesk.interfaces.web.rendering import BrowserExchange, status_of
from frontdesk.interfaces.web.sessions import NO_FIELDS, is_still_allowed, page_caller, read_form
from frontdesk.journal.model import Outcome
from frontdesk.journal.service import CallRecord

HEARTBEAT_SECONDS = 15
# A stream whose client reads nothing for this long is closed.
SEND_SECONDS = 30
# Each stream queries the database about once a second.
MOST_STREAMS = 200
RETRY_SECONDS = 30
TOO_MANY_STREAMS = f"{MOST_STREAMS} live pages are open already; close some, or try again later"


class PageStream(EventSourceResponse):
    """A stream of events. `open` counts the open streams of this process."""

    open: ClassVar[int] = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        PageStream.open += 1
        try:
            with suppress(SendTimeoutError):
                await super().__call__(scope, receive, send)
        finally:
            PageStream.open -= 1


def require_free_stream() -> None:
    """Refuse a stream when this process has too many open."""
    if PageStream.open >= MOST_STREAMS:
        raise Unavailable(TOO_MANY_STREAMS, retry_after=RETRY_SECONDS)


def stream_events(told: AsyncGenerator[Mapping[str, Any]]) -> Response:
    """A response with one event for each object, and regular pings."""

    async def events() -> AsyncGenerator[ServerSentEvent]:
        async with aclosing(told) as heard:
            async for one in heard:
                yield ServerSentEvent(json.dumps(one, default=str))

    headers = {"cache-control": "no-store"}
    return PageStream(events(), ping=HEARTBEAT_SECONDS, send_timeout=SEND_SECONDS, headers=headers)


log = structlog.get_logger("frontdesk.web")

PageFunction = Callable[[PageRequest], Awaitable[PageContent | PageRedirect | FileDownload]]


def build_route(app: App, thing: PageRoute | ActionRoute | StreamRoute) -> Route:
    """The Starlette route of a page, an action or a stream."""
    match thing:
        case StreamRoute(path, _):
            return Route(path, _stream_handler(app, thing), methods=["GET"])
        case PageRoute(path, view):
            return Route(path, _page_handler(app, "GET", path, view), methods=["GET"])
        case ActionRoute(path, function):
            return Route(path, _page_handler(app, "POST", path, function), methods=["POST"])


def _page_handler(app: App, method: str, path: str, work: PageFunction) -> Callable[[Request], Awaitable[Response]]:
    async def handle(request: Request) -> Response:
        window = BrowserExchange.of_request(app, request)
        record = CallRecord(app.journal, "web", f"{method} {path}", Caller(window.context.request_id))
        try:
            record.caller = page_caller(window.context)
            form = await read_form(request, window.token) if method == "POST" else NO_FIELDS
            answer = window.respond(await work(_page_request(app, request, record.caller, form)))
            record.outcome = Outcome.OK
        except FrontdeskError as error:
            record.fail(error)
            answer = window.refuse(error.full_message, status_of(error))
        except Exception as error:
            record.fail(error)
            log.exception("page_failed", action=record.action, request_id=window.context.request_id)
            told = f"An internal error. The log has the details under the request id {window.context.request_id}"
            answer = window.refuse(told, 500)
        finally:
            record.write()
        return answer

    return handle


def _stream_handler(app: App, live: StreamRoute) -> Callable[[Request], Awaitable[Response]]:
    async def handle(request: Request) -> Response:
        context = request_context(request.scope)
        record = CallRecord(app.journal, "web", f"GET {live.path}", Caller(context.request_id))
        try:
            record.caller = page_caller(context)
            require_free_stream()
            record.outcome = Outcome.OK
        except FrontdeskError as error:
            record.fail(error)
            return Response(error.public_message, status_of(error), retry_after_header(error), "text/plain")
        finally:
            record.write()
        asked = _page_request(app, request, record.caller, NO_FIELDS)
        return stream_events(while_allowed(app, context, live.events(asked)))

    return handle


async def while_allowed(
    app: App, context: RequestContext, told: AsyncGenerator[Mapping[str, Any]]
) -> AsyncGenerator[Mapping[str, Any]]:
    """The events, until the caller loses access."""
    async with aclosing(told) as heard:
        async for one in heard:
            if not await is_still_allowed(app, context):
                return
            yield one


def _page_request(app: App, request: Request, caller: Caller, form: Mapping[str, str]) -> PageRequest:
    part = request.headers.get("hx-request") == "true" and request.headers.get("hx-boosted") != "true"
    at = {name: str(value) for name, value in request.path_params.items()}
    return PageRequest(app, caller, datetime.now(UTC), at, dict(request.query_params), form, part)


ALL_PAGES: tuple[PageRoute | ActionRoute | StreamRoute, ...] = (
    *START,
    *NOW,
    *ACCESS,
    *AGENTS,
    *SCHEDULE,
    *TURNS,
    *PEOPLE,
    *TOOLS,
)

STATIC_FOLDER = Path(__file__).with_name("static")
NO_PAGE = "There is no such page"
WRONG_METHOD = "This address does not accept this method; open the page itself"

ErrorHandler = Callable[[Request, Exception], Awaitable[Response]]


def web_routes(app: App) -> list[BaseRoute]:
    """The routes of all pages. The authentication middleware runs before them."""
    return [
        *(build_route(app, thing) for thing in ALL_PAGES),
        *sign_in_routes(app),
        # Pages are not compressed: the compressed size could reveal secrets in them (BREACH).
        Mount("/static", _CachedStaticFiles(directory=STATIC_FOLDER), middleware=[Middleware(GZipMiddleware)]),
    ]


def page_error_handler(app: App, others: ErrorHandler, known: Collection[str]) -> ErrorHandler:
    """An error handler that shows unknown addresses and wrong methods as a page to people.

    Outside the `known` first segments, clients that prefer HTML get a page too.
    """

    async def tell(request: Request, error: Exception) -> Response:
        path = request.scope["path"]
        for_people = is_page(path) or (path[1:].split("/")[0] not in known and _prefers_pages(request))
        if not for_people or not isinstance(error, HTTPException):
            return await others(request, error)
        if path.startswith(STATIC_PATH):
            return PlainTextResponse(error.detail, error.status_code, error.headers)
        answer = BrowserExchange.of_request(app, request).refuse(
            WRONG_METHOD if error.status_code == 405 else NO_PAGE, error.status_code
        )
        answer.headers.update(error.headers or {})
        return answer

    return tell


def _prefers_pages(request: Request) -> bool:
    said = dict(_parse_weight(part) for part in ",".join(request.headers.getlist("accept")).lower().split(","))
    return said.get("text/html", 0) > said.get("application/json", 0)


def _parse_weight(part: str) -> tuple[str, float]:
    """A media type of an Accept header and its weight."""
    kind, *parameters = (word.strip() for word in part.split(";"))
    weight = next((word.removeprefix("q=") for word in parameters if word.startswith("q=")), "1")
    try:
        return kind, float(weight)
    except ValueError:
        return kind, 0


class _CachedStaticFiles(StaticFiles):
    """Static files with a long cache time: their addresses contain a version."""

    def file_response(self, *args: object, **more: object) -> Response:
        answer = super().file_response(*args, **more)  # pyright: ignore[reportArgumentType] - handed on as they came
        answer.headers["cache-control"] = "public, max-age=3600"
        return answer
