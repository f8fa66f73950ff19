"""Wraps every route of the HTTP API: identify the caller, apply rate limits, run, journal, map errors."""

from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import replace
from typing import Annotated, Any, cast

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
from frontdesk.interfaces.http.context import request_context
from frontdesk.interfaces.rest.errors import error_response, problem_response, validation_response
from frontdesk.journal.model import Outcome
from frontdesk.journal.service import CallRecord

CALLER_KEY = "frontdesk.caller"
# Only for the OpenAPI description: the middleware has checked the credential before.
CREDENTIAL_SCHEME = HTTPBearer(
    auto_error=False, description="An API key (fd_… or zm_…), or a token of a configured issuer."
)
LOCAL_USER = "local"

log = structlog.get_logger("frontdesk.rest")


def recorded_route(
    app: App, prefix: str, identify: Callable[[App, Request], Awaitable[Caller]] | None = None
) -> type[APIRoute]:
    """A route class that identifies callers and journals calls; `prefix` is where the routes are mounted."""
    who = identify or identify_person

    class Recorded(APIRoute):
        @override
        def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
            inner = super().get_route_handler()
            path = prefix + self.path_format

            async def handle(request: Request) -> Response:
                context = request_context(request.scope)
                record = CallRecord(app.journal, "rest", f"{request.method} {path}", Caller(context.request_id))
                record.signals = Signals(
                    context.request_id, context.headers.get("x-agent-id"), credential=context.credential
                )
                try:
                    record.caller = request.scope[CALLER_KEY] = await who(app, request)
                    answer = await inner(request)
                    record.outcome = Outcome.OK
                except FrontdeskError as error:
                    record.fail(error)
                    answer = error_response(error)
                except RequestValidationError as error:
                    record.outcome, record.reason = Outcome.REFUSED, "InvalidArguments"
                    answer = validation_response(error)
                except HTTPException as error:
                    record.outcome, record.reason = Outcome.REFUSED, f"HTTP {error.status_code}"
                    answer = problem_response(error.status_code, error.detail, error.headers)
                except Exception as error:
                    record.fail(error)
                    log.exception("call_failed", action=record.action, request_id=context.request_id)
                    answer = problem_response(500, "Internal server error")
                finally:
                    record.write()
                return answer

            return handle

    return Recorded


async def identify_person(app: App, request: Request) -> Caller:
    """The person who calls, after their rate limit; without a credential the middleware admits only local callers."""
    context = request_context(request.scope)
    credential = context.credential or Credential(LOCAL_USER, user_id=LOCAL_USER)
    # People talk with agents here, and do not act as one: so, as for a stranger, no default agent applies.
    signals = Signals(context.request_id, credential=replace(credential, agent_id=None), forwarded=True)
    return replace(await app.identity.identify(signals), verified=context.credential is not None)


def _caller_of(request: Request) -> Caller:
    return request.scope[CALLER_KEY]


def _token_of(request: Request) -> SecretStr | None:
    return request_context(request.scope).token


CurrentCaller = Annotated[Caller, Depends(_caller_of)]
CurrentToken = Annotated[SecretStr | None, Depends(_token_of)]


def check_user_id(caller: Caller, claimed: str | None) -> None:
    """Check the person in a body: the credential identifies the caller, and a body may only repeat the same id."""
    if claimed is not None and claimed != caller.user_id:
        raise Denied("userId is not the person whose credential this is; leave it out")


async def identify_caller(app: App, request: Request) -> Caller:
    """Identify the caller as over MCP: credential, `x-agent-id` header, `agent_id` in the body."""
    return await app.identity.identify(replace(_request_signals(request), parameter=await _body_agent_id(request)))


async def identify_by_header(app: App, request: Request) -> Caller:
    """Identify the caller in the same way, where a body's `agent_id` names the target and not the caller."""
    return await app.identity.identify(_request_signals(request))


def _request_signals(request: Request) -> Signals:
    context = request_context(request.scope)
    return Signals(
        context.request_id,
        header=context.headers.get("x-agent-id"),
        credential=context.credential,
        forwarded=context.forwarded,
    )


async def _body_agent_id(request: Request) -> object:
    """The agent that the body names; an invalid body is reported later."""
    if request.method == "GET":
        return None
    try:
        body: object = await request.json()
    except (ValueError, RecursionError):
        return None
    return cast("dict[str, object]", body).get("agent_id") if isinstance(body, dict) else None
