"""Wraps every `tools/call`: identify the caller, validate, run, journal, and turn errors into the protocol's form."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import structlog
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from opentelemetry import trace
from pydantic import ValidationError
from pydantic_core import to_json

from frontdesk.app import App
from frontdesk.errors import FrontdeskError, IdentityError
from frontdesk.identity.model import Caller
from frontdesk.interfaces.http.context import RequestContext
from frontdesk.interfaces.mcp.context import CallContext, gather_signals
from frontdesk.interfaces.mcp.errors import build_error, error_rule
from frontdesk.interfaces.mcp.tool_spec import ErrorFormat, McpToolOutput, McpToolResult, ToolSpec
from frontdesk.journal.model import Outcome
from frontdesk.journal.service import CallRecord
from frontdesk.llm.tools import describe_validation_errors

# Answers a call of one tool, given the call and its arguments; the result is in wire form.
ToolHandler = Callable[[CallContext, Mapping[str, Any]], Awaitable[dict[str, Any]]]
# Does the work of a call for an identified caller.
ToolWork = Callable[[Caller, CallContext, Mapping[str, Any]], Awaitable[McpToolOutput | McpToolResult]]
AfterFailure = Callable[[RequestContext], Awaitable[None]]

log = structlog.get_logger("frontdesk.mcp")


def make_tool_handler(spec: ToolSpec, app: App, challenge: str) -> ToolHandler:
    """The handler of a declared tool."""
    ignored = spec.ignored_arguments

    async def work(caller: Caller, call: CallContext, arguments: Mapping[str, Any]) -> McpToolOutput | McpToolResult:
        given = spec.arguments.model_validate({key: arguments[key] for key in arguments if key not in ignored})
        return await (spec.run(app, caller, given, call) if spec.needs_context else spec.run(app, caller, given))

    return wrap_tool_call(
        app,
        spec.name,
        challenge,
        work,
        spec.error_format,
        plain=spec.plain_errors,
        naming=not spec.about_agent,
        any_id=spec.accepts_any_agent_id,
        after_failure=None if spec.after_failure is None else partial(spec.after_failure, app),
    )


def wrap_tool_call(
    app: App,
    name: str,
    challenge: str,
    work: ToolWork,
    error_format: ErrorFormat = ErrorFormat.RPC,
    *,
    plain: bool = False,
    naming: bool = True,
    any_id: bool = False,
    after_failure: AfterFailure | None = None,
) -> ToolHandler:
    """Wrap the work of a tool: identify the caller, run, journal, and report errors in the tool's format.

    `plain`: error results are text, not JSON. `naming`: the arguments may name the caller (`agent_id`). `any_id`: a
    malformed agent id is ignored. `after_failure` runs after a call that failed, before its answer is sent.
    """
    marked = error_format is not ErrorFormat.ANSWER

    async def handle(call: CallContext, arguments: Mapping[str, Any]) -> dict[str, Any]:
        request = call.request_context
        record = CallRecord(app.journal, "mcp", name, Caller(request.request_id))
        try:
            signals = record.signals = gather_signals(call, arguments if naming else {})
            if request.call_refusal is not None:
                raise request.call_refusal
            try:
                caller = await app.identity.identify(signals)
            except IdentityError as error:
                if not any_id:
                    raise
                caller = await app.identity.identify(replace(signals, header=None, parameter=None, metadata={}))
                call = replace(call, ignored_agent_id=str(error))
            record.caller = caller
            _mark_span(caller)
            result = _as_result(await work(caller, call, arguments))
            record.outcome = Outcome.OK if result.ok else Outcome.FAILED
            return _wire_result(result)
        except ValidationError as error:
            record.outcome, record.reason = Outcome.REFUSED, "InvalidArguments"
            message = f"Invalid arguments for {name}: {describe_validation_errors(error)}"
            return _error_result(message, plain=plain, marked=marked)
        except FrontdeskError as error:
            rule = error_rule(error, error_format)
            record.fail(error)
            if rule.code is None:
                # The contracts require the whole message. Errors with confidential details have a code instead.
                return _error_result(rule.message or str(error), plain=plain, marked=marked)
            modern = call.version in MODERN_PROTOCOL_VERSIONS
            raise build_error(error, rule, request, challenge, modern=modern) from error
        finally:
            record.write()
            log.debug("tool_called", tool=name, outcome=record.outcome, request_id=request.request_id)
            if after_failure is not None and record.outcome is not Outcome.OK:
                await after_failure(request)

    return handle


def _as_result(answer: McpToolOutput | McpToolResult) -> McpToolResult:
    """The answer as a result, with its JSON as text too, for clients that read only text."""
    if isinstance(answer, McpToolResult):
        return answer
    structured = answer.model_dump(mode="json")
    return McpToolResult([{"type": "text", "text": to_json(structured).decode()}], structured)


def _wire_result(result: McpToolResult, *, marked: bool = True) -> dict[str, Any]:
    wire: dict[str, Any] = {"resultType": "complete", "content": list(result.content)}
    if result.structured is not None:
        wire["structuredContent"] = result.structured
    if marked and not result.ok:
        wire["isError"] = True
    return wire


def _error_result(message: str, *, plain: bool, marked: bool) -> dict[str, Any]:
    structured = {"error": message}
    text = message if plain else to_json(structured).decode()
    return _wire_result(McpToolResult([{"type": "text", "text": text}], structured, ok=False), marked=marked)


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
