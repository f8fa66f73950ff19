"""The walk of one call of the HTTP API: who calls, at what rate; the answer or a refusal; one row of the journal."""

from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import replace
from typing import Annotated, Any

import structlog
from fastapi import Depends, Request
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from fastapi.security import HTTPBearer
from pydantic import SecretStr
from starlette.exceptions import HTTPException
from starlette.responses import Response
from typing_extensions import override

from frontdesk.app import App
from frontdesk.errors import Denied, FrontdeskError
from frontdesk.identity.model import Caller, Credential, Signals
from frontdesk.journal.model import Outcome
from frontdesk.journal.record import Record
from frontdesk.surfaces.rest.refusals import invalid, problem, refuse
from frontdesk.surfaces.visit import visit_of

CALLER = "frontdesk.caller"
# For the description: the gate has checked it long before.
CREDENTIAL = HTTPBearer(auto_error=False, description="An API key (fd_… or zm_…), or a token of a configured issuer.")
LOCAL_USER = "local"

log = structlog.get_logger("frontdesk.rest")


def recorded(
    app: App, prefix: str, identify: Callable[[App, Request], Awaitable[Caller]] | None = None
) -> type[APIRoute]:
    """The kind of route whose calls are walked so; `prefix` is where the routes are mounted."""
    who = identify or person

    class Recorded(APIRoute):
        @override
        def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
            inner = super().get_route_handler()
            path = prefix + self.path_format

            async def handle(request: Request) -> Response:
                visit = visit_of(request.scope)
                record = Record(app.journal, "rest", f"{request.method} {path}", Caller(visit.request_id))
                record.signals = Signals(visit.request_id, visit.said.get("x-agent-id"), credential=visit.credential)
                try:
                    record.caller = request.scope[CALLER] = await who(app, request)
                    answer = await inner(request)
                    record.outcome = Outcome.OK
                except FrontdeskError as error:
                    record.ended_by(error)
                    answer = refuse(error)
                except RequestValidationError as error:
                    record.outcome, record.reason = Outcome.REFUSED, "InvalidArguments"
                    answer = invalid(error)
                except HTTPException as error:
                    record.outcome, record.reason = Outcome.REFUSED, f"HTTP {error.status_code}"
                    answer = problem(error.status_code, error.detail, error.headers)
                except Exception as error:
                    record.ended_by(error)
                    log.exception("call_failed", action=record.action, request_id=visit.request_id)
                    answer = problem(500, "Internal server error")
                finally:
                    record.write()
                return answer

            return handle

    return Recorded


async def person(app: App, request: Request) -> Caller:
    """The person who calls, within their rate; the gate lets nobody in without a credential who is not local."""
    visit = visit_of(request.scope)
    credential = visit.credential or Credential(LOCAL_USER, user_id=LOCAL_USER)
    # People talk with agents here, they do not speak for one: as for a stranger, no default agent stands in.
    signals = Signals(visit.request_id, credential=replace(credential, agent_id=None), forwarded=True)
    return replace(await app.identity.identify(signals), verified=visit.credential is not None)


def _caller(request: Request) -> Caller:
    return request.scope[CALLER]


def _token(request: Request) -> SecretStr | None:
    return visit_of(request.scope).token


Who = Annotated[Caller, Depends(_caller)]
Token = Annotated[SecretStr | None, Depends(_token)]


def same_person(caller: Caller, claimed: str | None) -> None:
    """Who calls is known from the credential; a body may repeat it and nothing else."""
    if claimed is not None and claimed != caller.user_id:
        raise Denied("userId is not the person whose credential this is; leave it out")
