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
from frontdesk.interfaces.mcp.context import CallContext, ToolRequest, call_context, gather_signals
from frontdesk.interfaces.mcp.errors import build_error, error_rule
from frontdesk.interfaces.mcp.tool_spec import ErrorFormat, McpToolOutput, McpToolResult, ToolSpec
from frontdesk.journal.model import Outcome
from frontdesk.journal.record import CallRecord
from frontdesk.llm.tools import describe_validation_errors

# What answers a call of one tool, with what goes on the wire.
ToolHandler = Callable[[ToolRequest, Mapping[str, Any]], Awaitable[dict[str, Any]]]
# The caller, the line to it, and what it said.
ToolWork = Callable[[Caller, CallContext, Mapping[str, Any]], Awaitable[McpToolOutput | McpToolResult]]

log = structlog.get_logger("frontdesk.mcp")


def make_tool_handler(spec: ToolSpec, app: App, challenge: str) -> ToolHandler:
    """What answers calls of one tool."""
    passed_over = spec.ignored_arguments

    async def work(caller: Caller, line: CallContext, arguments: Mapping[str, Any]) -> McpToolOutput | McpToolResult:
        given = spec.arguments.model_validate({key: arguments[key] for key in arguments if key not in passed_over})
        return await (spec.run(app, caller, given, line) if spec.needs_context else spec.run(app, caller, given))

    naming, shape = not spec.about_agent, spec.error_format
    called = wrap_tool_call(
        app, spec.name, challenge, work, shape, plain=spec.plain_errors, naming=naming, any_id=spec.accepts_any_agent_id
    )
    return called if spec.after_failure is None else _with_failure_hook(called, partial(spec.after_failure, app))


def _with_failure_hook(called: ToolHandler, after_failure: Callable[[RequestContext], Awaitable[None]]) -> ToolHandler:
    """The same, and what is to be done where it did not go well, for whatever reason and before that is told."""

    async def call(exchange: ToolRequest, arguments: Mapping[str, Any]) -> dict[str, Any]:
        went_well = False
        try:
            result = await called(exchange, arguments)
            went_well = not result.get("isError", False)
        finally:
            if not went_well:
                await after_failure(exchange.request_context)
        return result

    return call


def wrap_tool_call(
    app: App,
    name: str,
    challenge: str,
    work: ToolWork,
    shape: ErrorFormat = ErrorFormat.RPC,
    *,
    plain: bool = False,
    naming: bool = True,
    any_id: bool = False,
) -> ToolHandler:
    """Wraps a piece of work: it runs for the caller that the request names, and the journal has it.

    What goes wrong is told as JSON, or as `plain` words. `naming`: the arguments may name who calls. `any_id`: an agent
    id that is none is passed over.
    """
    marked = shape is not ErrorFormat.ANSWER

    async def call(exchange: ToolRequest, arguments: Mapping[str, Any]) -> dict[str, Any]:
        context = exchange.request_context
        record = CallRecord(app.journal, "mcp", name, Caller(context.request_id))
        try:
            signals = record.signals = gather_signals(exchange, arguments if naming else {})
            if context.call_refusal is not None:
                raise context.call_refusal
            line = call_context(exchange)
            try:
                caller = await app.identity.identify(signals)
            except IdentityError as error:
                if not any_id:
                    raise
                caller = await app.identity.identify(replace(signals, header=None, parameter=None, metadata={}))
                line = replace(line, ignored_agent_id=str(error))
            record.caller = caller
            _mark_span(caller)
            result = _as_result(await work(caller, line, arguments))
            record.outcome = Outcome.OK if result.ok else Outcome.FAILED
            return _wire_result(result)
        except ValidationError as error:
            record.outcome, record.reason = Outcome.REFUSED, "InvalidArguments"
            return _error_result(
                f"Invalid arguments for {name}: {describe_validation_errors(error)}", plain=plain, marked=marked
            )
        except FrontdeskError as error:
            how = error_rule(error, shape)
            record.fail(error)
            if how.code is None:
                # To the letter of the contracts; errors that only the operator may read have a code from `build_error`.
                return _error_result(how.message or str(error), plain=plain, marked=marked)
            modern = exchange.version in MODERN_PROTOCOL_VERSIONS
            raise build_error(error, how, context, challenge, modern=modern) from error
        finally:
            record.write()
            log.debug("tool_called", tool=name, outcome=record.outcome, request_id=context.request_id)

    return call


def _as_result(answer: McpToolOutput | McpToolResult) -> McpToolResult:
    """An answer also stands there as text, for clients that read nothing else."""
    if isinstance(answer, McpToolResult):
        return answer
    structured = answer.model_dump(mode="json")
    return McpToolResult([{"type": "text", "text": to_json(structured).decode()}], structured)


def _wire_result(result: McpToolResult, *, marked: bool = True) -> dict[str, Any]:
    told: dict[str, Any] = {"resultType": "complete", "content": list(result.content)}
    if result.structured is not None:
        told["structuredContent"] = result.structured
    if marked and not result.ok:
        told["isError"] = True
    return told


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
