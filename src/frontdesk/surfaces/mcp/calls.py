"""The walk of one `tools/call`: signals, caller, arguments, service, answer, journal."""

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
from frontdesk.journal.model import Outcome
from frontdesk.journal.record import Record
from frontdesk.loop.tools import problems_of
from frontdesk.surfaces.mcp.line import Line, line_of
from frontdesk.surfaces.mcp.refusals import refusal, refuse
from frontdesk.surfaces.mcp.signals import Exchange, gather
from frontdesk.surfaces.mcp.tool import Answer, ErrorShape, Result, ToolSpec
from frontdesk.surfaces.visit import Visit

# What answers a call of one tool, with what goes on the wire.
Walk = Callable[[Exchange, Mapping[str, Any]], Awaitable[dict[str, Any]]]
# The caller, the line to it, and what it said.
Work = Callable[[Caller, Line, Mapping[str, Any]], Awaitable[Answer | Result]]

log = structlog.get_logger("frontdesk.mcp")


def caller_of(spec: ToolSpec, app: App, challenge: str) -> Walk:
    """What answers calls of one tool."""
    passed_over = spec.passed_over

    async def work(caller: Caller, line: Line, arguments: Mapping[str, Any]) -> Answer | Result:
        given = spec.arguments.model_validate({key: arguments[key] for key in arguments if key not in passed_over})
        return await (spec.run(app, caller, given, line) if spec.on_line else spec.run(app, caller, given))

    naming, shape = not spec.about_agent, spec.error_shape
    called = walk(app, spec.name, challenge, work, shape, plain=spec.plain, naming=naming, any_id=spec.any_id)
    return called if spec.after_failure is None else _followed(called, partial(spec.after_failure, app))


def _followed(called: Walk, after_failure: Callable[[Visit], Awaitable[None]]) -> Walk:
    """The same, and what is to be done where it did not go well, for whatever reason and before that is told."""

    async def call(exchange: Exchange, arguments: Mapping[str, Any]) -> dict[str, Any]:
        went_well = False
        try:
            result = await called(exchange, arguments)
            went_well = not result.get("isError", False)
        finally:
            if not went_well:
                await after_failure(exchange.visit)
        return result

    return call


def walk(
    app: App,
    name: str,
    challenge: str,
    work: Work,
    shape: ErrorShape = ErrorShape.RPC,
    *,
    plain: bool = False,
    naming: bool = True,
    any_id: bool = False,
) -> Walk:
    """The walk around a piece of work: it is done for whoever the request says it is, and the journal has it.

    What goes wrong is told as JSON, or as `plain` words. `naming`: the arguments may name who calls. `any_id`: an agent
    id that is none is passed over.
    """
    marked = shape is not ErrorShape.ANSWER

    async def call(exchange: Exchange, arguments: Mapping[str, Any]) -> dict[str, Any]:
        visit = exchange.visit
        record = Record(app.journal, "mcp", name, Caller(visit.request_id))
        try:
            signals = record.signals = gather(exchange, arguments if naming else {})
            if visit.refused is not None:
                raise visit.refused
            line = line_of(exchange)
            try:
                caller = await app.identity.identify(signals)
            except IdentityError as error:
                if not any_id:
                    raise
                caller = await app.identity.identify(replace(signals, header=None, parameter=None, metadata={}))
                line = replace(line, passed_over=str(error))
            record.caller = caller
            _mark_span(caller)
            result = _result(await work(caller, line, arguments))
            record.outcome = Outcome.OK if result.ok else Outcome.FAILED
            return _on_the_wire(result)
        except ValidationError as error:
            record.outcome, record.reason = Outcome.REFUSED, "InvalidArguments"
            return _failure(f"Invalid arguments for {name}: {problems_of(error)}", plain=plain, marked=marked)
        except FrontdeskError as error:
            how = refusal(error, shape)
            record.ended_by(error)
            if how.code is None:
                # To the letter of the contracts; what only the house may know has a code, and is told by `refuse`.
                return _failure(how.message or str(error), plain=plain, marked=marked)
            modern = exchange.version in MODERN_PROTOCOL_VERSIONS
            raise refuse(error, how, visit, challenge, modern=modern) from error
        finally:
            record.write()
            log.debug("tool_called", tool=name, outcome=record.outcome, request_id=visit.request_id)

    return call


def _result(answer: Answer | Result) -> Result:
    """An answer also stands there as text, for clients that read nothing else."""
    if isinstance(answer, Result):
        return answer
    structured = answer.model_dump(mode="json")
    return Result([{"type": "text", "text": to_json(structured).decode()}], structured)


def _on_the_wire(result: Result, *, marked: bool = True) -> dict[str, Any]:
    told: dict[str, Any] = {"resultType": "complete", "content": list(result.content)}
    if result.structured is not None:
        told["structuredContent"] = result.structured
    if marked and not result.ok:
        told["isError"] = True
    return told


def _failure(message: str, *, plain: bool, marked: bool) -> dict[str, Any]:
    structured = {"error": message}
    text = message if plain else to_json(structured).decode()
    return _on_the_wire(Result([{"type": "text", "text": text}], structured, ok=False), marked=marked)


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
