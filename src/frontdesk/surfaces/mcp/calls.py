"""The walk of one `tools/call`: signals, caller, arguments, service, answer, journal."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import structlog
from mcp.server.context import HandlerResult
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from opentelemetry import trace
from pydantic import ValidationError
from pydantic_core import to_json

from frontdesk.app import App
from frontdesk.errors import FrontdeskError
from frontdesk.identity.model import Caller
from frontdesk.journal.model import Outcome
from frontdesk.surfaces.mcp.refusals import refusal, refuse
from frontdesk.surfaces.mcp.signals import Context, gather, visit_for
from frontdesk.surfaces.mcp.tool import IGNORED, Answer, ToolSpec
from frontdesk.surfaces.record import Record

log = structlog.get_logger("frontdesk.mcp")


def caller_of(
    spec: ToolSpec, app: App, challenge: str
) -> Callable[[Context, Mapping[str, Any]], Awaitable[HandlerResult]]:
    """What answers calls of one tool."""

    async def call(ctx: Context, arguments: Mapping[str, Any]) -> HandlerResult:
        visit = visit_for(ctx)
        record = Record(app, "mcp", spec.name, Caller(visit.request_id))
        try:
            caller = record.caller = await app.identity.identify(gather(ctx, visit, arguments))
            _mark_span(caller)
            given = spec.arguments.model_validate({key: arguments[key] for key in arguments if key not in IGNORED})
            answer = await spec.run(app, caller, given)
            record.outcome = Outcome.OK
            return _success(answer)
        except ValidationError as error:
            record.outcome, record.reason = Outcome.REFUSED, "InvalidArguments"
            return _failure(_explain(spec.name, error))
        except FrontdeskError as error:
            how = refusal(error, spec.error_shape)
            record.outcome, record.reason = how.outcome, type(error).__name__
            if how.code is None:
                return _failure(how.message or str(error))
            modern = ctx.protocol_version in MODERN_PROTOCOL_VERSIONS
            raise refuse(error, how, visit, challenge, modern=modern) from error
        finally:
            record.write()
            log.debug("tool_called", tool=spec.name, outcome=record.outcome, request_id=visit.request_id)

    return call


def _success(answer: Answer) -> dict[str, Any]:
    structured = answer.model_dump(mode="json")
    text = to_json(structured).decode()
    return {
        "resultType": "complete",
        "content": [{"type": "text", "text": text}],
        "structuredContent": structured,
    }


def _failure(message: str) -> dict[str, Any]:
    structured = {"error": message}
    text = to_json(structured).decode()
    content = [{"type": "text", "text": text}]
    return {"resultType": "complete", "content": content, "structuredContent": structured, "isError": True}


def _explain(tool: str, error: ValidationError) -> str:
    problems = error.errors(include_url=False, include_input=False, include_context=False)
    told = "; ".join(f"{'.'.join(map(str, problem['loc'])) or 'arguments'}: {problem['msg']}" for problem in problems)
    return f"Invalid arguments for {tool}: {told}"


def _mark_span(caller: Caller) -> None:
    span = trace.get_current_span()
    if span.is_recording():
        span.set_attributes(
            {
                "frontdesk.agent_id": caller.agent_id or "",
                "frontdesk.user_id": caller.user_id or "",
                "frontdesk.source": caller.source,
                "frontdesk.verified": caller.verified,
                "frontdesk.request_id": caller.request_id,
            }
        )
