"""The walk of one page: who looks, what the form says, the page or a refusal, one row of the journal."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import aclosing
from datetime import UTC, datetime
from typing import Any

import structlog
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from frontdesk.app import App
from frontdesk.errors import FrontdeskError
from frontdesk.identity.model import Caller
from frontdesk.journal.model import Outcome
from frontdesk.journal.record import Record
from frontdesk.surfaces.visit import Visit, visit_of
from frontdesk.surfaces.waits import retry_after
from frontdesk.surfaces.web import forms, who
from frontdesk.surfaces.web.live import require_room, stream
from frontdesk.surfaces.web.model import Act, Asked, Done, Live, Page, Sent, Shown
from frontdesk.surfaces.web.refusals import status_of
from frontdesk.surfaces.web.window import Window

log = structlog.get_logger("frontdesk.web")

Work = Callable[[Asked], Awaitable[Shown | Done | Sent]]


def route(app: App, thing: Page | Act | Live) -> Route:
    """The route of something to look at, to do, or to be told as it happens."""
    match thing:
        case Live(path, _):
            return Route(path, _told(app, thing), methods=["GET"])
        case Page(path, view):
            return Route(path, _handler(app, "GET", path, view), methods=["GET"])
        case Act(path, deed):
            return Route(path, _handler(app, "POST", path, deed), methods=["POST"])


def _handler(app: App, method: str, path: str, work: Work) -> Callable[[Request], Awaitable[Response]]:
    async def handle(request: Request) -> Response:
        window = Window.on(app, request)
        record = Record(app.journal, "web", f"{method} {path}", Caller(window.visit.request_id))
        try:
            record.caller = who.operator(app, window.visit)
            form = await forms.read(request, window.token) if method == "POST" else forms.NOTHING
            answer = window.answer(await work(_asked(app, request, record.caller, form)))
            record.outcome = Outcome.OK
        except FrontdeskError as error:
            record.ended_by(error)
            answer = window.refuse(error.in_full, status_of(error))
        except Exception as error:
            record.ended_by(error)
            log.exception("page_failed", action=record.action, request_id=window.visit.request_id)
            told = f"A fault of ours. The log has it under the request id {window.visit.request_id}"
            answer = window.refuse(told, 500)
        finally:
            record.write()
        return answer

    return handle


def _told(app: App, live: Live) -> Callable[[Request], Awaitable[Response]]:
    async def handle(request: Request) -> Response:
        visit = visit_of(request.scope)
        record = Record(app.journal, "web", f"GET {live.path}", Caller(visit.request_id))
        try:
            record.caller = who.operator(app, visit)
            require_room()
            record.outcome = Outcome.OK
        except FrontdeskError as error:
            record.ended_by(error)
            return Response(error.public, status_of(error), retry_after(error), "text/plain")
        finally:
            record.write()
        asked = _asked(app, request, record.caller, forms.NOTHING)
        return stream(while_let_in(app, visit, live.tell(asked)))

    return handle


async def while_let_in(
    app: App, visit: Visit, told: AsyncGenerator[Mapping[str, Any]]
) -> AsyncGenerator[Mapping[str, Any]]:
    """What is told, to nobody who has been shut out meanwhile."""
    async with aclosing(told) as heard:
        async for one in heard:
            if not await who.may_go_on(app, visit):
                return
            yield one


def _asked(app: App, request: Request, caller: Caller, form: Mapping[str, str]) -> Asked:
    part = request.headers.get("hx-request") == "true" and request.headers.get("hx-boosted") != "true"
    at = {name: str(value) for name, value in request.path_params.items()}
    return Asked(app, caller, datetime.now(UTC), at, dict(request.query_params), form, part)
