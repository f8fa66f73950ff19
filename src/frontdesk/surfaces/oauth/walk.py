"""The walk of one request to the authorization server: the answer or a refusal, and one row of the journal."""

from collections.abc import Awaitable, Callable
from dataclasses import replace

import structlog
from starlette.requests import Request
from starlette.responses import Response

from frontdesk.app import App
from frontdesk.errors import FrontdeskError
from frontdesk.identity.model import Caller
from frontdesk.journal.model import Outcome
from frontdesk.journal.record import Record
from frontdesk.surfaces.oauth.refusals import broken, refuse
from frontdesk.surfaces.visit import visit_of

Endpoint = Callable[[Request], Awaitable[Response]]
Work = Callable[[Request, Record], Awaitable[Response]]

log = structlog.get_logger("frontdesk.oauth")


def walked(app: App, action: str, work: Work, tell: Callable[[FrontdeskError], Response] = refuse) -> Endpoint:
    """`tell` makes an answer of an error; a program is told JSON."""

    async def endpoint(request: Request) -> Response:
        visit = visit_of(request.scope)
        record = Record(app.journal, "oauth", action, Caller(visit.request_id))
        try:
            answer = await work(request, record)
            record.outcome = record.outcome or Outcome.OK
        except FrontdeskError as error:
            record.ended_by(error)
            answer = tell(error)
        except Exception as error:
            record.ended_by(error)
            log.exception("call_failed", action=action, request_id=visit.request_id)
            answer = broken()
        finally:
            record.write()
        return answer

    return endpoint


def note(record: Record, user_id: str) -> None:
    """Whom it was about."""
    record.caller = replace(record.caller, user_id=user_id, verified=True)
