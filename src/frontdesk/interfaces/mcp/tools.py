"""Offers operations as MCP tools: their definitions, and the handler of a `tools/call`."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from typing import Any, Literal

import mcp_types as types
import structlog
from mcp.server.context import HandlerResult
from mcp_types.methods import serialize_server_result
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import BaseModel, ValidationError
from pydantic_core import to_json

from frontdesk.app import App
from frontdesk.errors import FrontdeskError, IdentityError, InvalidArguments
from frontdesk.identity.model import Caller, Signals
from frontdesk.interfaces.calls import run_call
from frontdesk.interfaces.http.context import RequestContext
from frontdesk.interfaces.http.errors import error_name_header
from frontdesk.interfaces.mcp.context import CallContext, SdkContext, gather_signals
from frontdesk.interfaces.mcp.errors import build_error, error_rule
from frontdesk.llm.tools import describe_validation_errors, inline_definitions
from frontdesk.mcp_client.wire import result_text
from frontdesk.operations import Answer, BoundOperation, Call, Effect, ErrorFormat, McpTool, Operation

# Clients send these with any call. Tools do not use them.
IGNORED_ARGUMENTS = frozenset({"agent_id", "mcp_server_id", "mcp_server_name", "request_heartbeat", "heartbeat"})
AGENT_ID_SCHEMA = {
    "type": "string",
    "description": "Your agent id; not needed when the x-agent-id header or a key carries it.",
}

log = structlog.get_logger("frontdesk.mcp")


@dataclass(frozen=True, slots=True)
class McpCall(Call):
    """A call that came over MCP, for operations that concern its session or its client."""

    context: CallContext = field(kw_only=True)

    @property
    def request_context(self) -> RequestContext:
        return self.context.request_context


# Answers a call of one tool, given the call and its arguments; the result is in wire form.
ToolHandler = Callable[[CallContext, Mapping[str, Any]], Awaitable[dict[str, Any]]]
# Does the work of a call for an identified caller.
ToolWork = Callable[[McpCall, Mapping[str, Any]], Awaitable[BaseModel | Answer]]


@dataclass(frozen=True, eq=False)
class OfferedTool:
    """A tool that a server offers: its definition, and the function that answers calls through the SDK.

    `define` makes the definition when a client first asks for it, since schemas take a while. `describe` gives a
    description that may change. `handler` answers calls without the SDK. A tool that is not `listed` can still be
    called.
    """

    define: Callable[[], types.Tool]
    call: Callable[[SdkContext, Mapping[str, Any]], Awaitable[HandlerResult]]
    describe: Callable[[], str] | None = None
    handler: ToolHandler | None = None
    listed: bool = True

    @cached_property
    def definition(self) -> types.Tool:
        return self.define()


def mcp_tool(operation: Operation) -> McpTool:
    """How MCP offers an operation that it does offer."""
    assert operation.mcp is not None, operation.name  # noqa: S101 - the table is filtered by it
    return operation.mcp


def tool_name(operation: Operation) -> str:
    return mcp_tool(operation).name or operation.name


def tool_request(operation: Operation) -> type[BaseModel]:
    return mcp_tool(operation).request or operation.request


def tool_definition(operation: Operation, description: str) -> types.Tool:
    """The definition that clients list."""
    tool = mcp_tool(operation)
    reads, destructive = operation.effect is Effect.READS, operation.effect is Effect.CHANGES
    return types.Tool(
        name=tool_name(operation),
        title=tool.title,
        description=description,
        input_schema=input_schema(operation),
        output_schema=None if tool.response is None else _output_schema(tool.response, tool.error_format),
        annotations=types.ToolAnnotations(
            read_only_hint=reads,
            destructive_hint=tool.destructive if reads else destructive,
            open_world_hint=tool.open_world,
        ),
    )


def input_schema(operation: Operation) -> dict[str, Any]:
    schema = dict(_model_schema(tool_request(operation), "validation"))
    if mcp_tool(operation).for_agent:
        schema["properties"] = {**schema.get("properties", {}), "agent_id": AGENT_ID_SCHEMA}
    return schema


def _output_schema(response: type[BaseModel], error_format: ErrorFormat) -> dict[str, Any]:
    """The output schema. Clients that check results must find errors in it where an error is a result too."""
    schema = dict(_model_schema(response, "serialization"))
    if error_format is not ErrorFormat.ANSWER:
        return schema
    properties = {**schema.get("properties", {}), "error": {"type": "string", "description": "What went wrong."}}
    promised = [{"required": schema.pop("required", [])}, {"required": ["error"]}]
    return {**schema, "properties": properties, "anyOf": promised}


@cache
def _model_schema(model: type[BaseModel], mode: Literal["validation", "serialization"]) -> Mapping[str, Any]:
    """The schema without references and without the docstring of the class, which is of no use to a model. Cached."""
    return {
        key: value
        for key, value in inline_definitions(model.model_json_schema(mode=mode)).items()
        if key != "description"
    }


def make_tool_handler(bound: BoundOperation, app: App, challenge: str) -> ToolHandler:
    """The handler of an operation's tool."""
    operation, tool, model = bound.operation, mcp_tool(bound.operation), tool_request(bound.operation)
    ignored = IGNORED_ARGUMENTS - model.model_fields.keys()

    async def work(call: McpCall, arguments: Mapping[str, Any]) -> BaseModel | Answer:
        bound.check(call.caller, tool.requires)
        try:
            request = model.model_validate({key: arguments[key] for key in arguments if key not in ignored})
            return await (tool.run or operation.run)(bound.service, call, request)
        except ValidationError as error:
            problems = describe_validation_errors(error)
            raise InvalidArguments(f"Invalid arguments for {tool_name(operation)}: {problems}") from error

    # An `agent_id` among a tool's own arguments names the agent that the call is about, and not the caller.
    return wrap_tool_call(
        app, tool_name(operation), challenge, work, tool, names_caller="agent_id" not in model.model_fields
    )


FORWARDED_TOOL = McpTool(title="", description="")


def wrap_tool_call(
    app: App,
    name: str,
    challenge: str,
    work: ToolWork,
    tool: McpTool = FORWARDED_TOOL,
    *,
    names_caller: bool = True,
) -> ToolHandler:
    """Wrap the work of a tool: identify the caller, run, and report errors in the tool's format.

    `names_caller`: the arguments may name the caller (`agent_id`).
    """
    marked = tool.error_format is not ErrorFormat.ANSWER

    async def handle(context: CallContext, arguments: Mapping[str, Any]) -> dict[str, Any]:
        request, ignored_agent_id, failed = context.request_context, None, True

        async def identify(signals: Signals) -> Caller:
            nonlocal ignored_agent_id
            if request.call_refusal is not None:
                raise request.call_refusal
            try:
                return await app.identity.identify(signals)
            except IdentityError as error:
                if not tool.accepts_any_agent_id:
                    raise
                ignored_agent_id = str(error)
                return await app.identity.identify(replace(signals, header=None, parameter=None, metadata={}))

        async def run(caller: Caller) -> Answer:
            call = McpCall(caller, request.token, context.progress, context.metadata, ignored_agent_id, context=context)
            return _as_answer(await work(call, arguments))

        try:
            signals = gather_signals(context, arguments if names_caller else {})
            answer = await run_call(app, "mcp", name, signals, run, identify)
            failed = not answer.ok
            return wire_result(answer, context.version)
        except FrontdeskError as error:
            request.set_answer_status(None, error_name_header(error).items())
            rule = error_rule(error, tool.error_format)
            if rule.code is None:
                # The contracts require the whole message. Errors with confidential details have a code instead.
                return _error_result(rule.message or str(error), plain=tool.plain_errors, marked=marked)
            modern = context.version in MODERN_PROTOCOL_VERSIONS
            raise build_error(error, rule, request, challenge, modern=modern) from error
        finally:
            log.debug("tool_called", tool=name, failed=failed, request_id=request.request_id)
            if failed and tool.after_failure is not None:
                await tool.after_failure(app, McpCall(Caller(request.request_id), context=context))

    return handle


def _as_answer(answer: BaseModel | Answer) -> Answer:
    """The answer with its JSON as text too, for clients that read only text."""
    if isinstance(answer, Answer):
        return answer
    data = answer.model_dump(mode="json")
    return Answer(to_json(data).decode(), data)


def wire_result(answer: Answer, version: str, *, marked: bool = True) -> dict[str, Any]:
    """The result in wire form. A block that the client's revision does not know becomes text."""
    blocks = answer.content if answer.content is not None else ({"type": "text", "text": answer.text},)
    content = [block if _is_known_block(block, version) else _as_text_block(block) for block in blocks]
    wire: dict[str, Any] = {"resultType": "complete", "content": content}
    if answer.data is not None:
        wire["structuredContent"] = (
            answer.data.model_dump(mode="json") if isinstance(answer.data, BaseModel) else answer.data
        )
    if marked and not answer.ok:
        wire["isError"] = True
    return wire


def _is_known_block(block: Mapping[str, Any], version: str) -> bool:
    # Nearly every block is only text, and a closer look at those would double the cost of this function.
    if len(block) == 2 and block.get("type") == "text" and isinstance(block.get("text"), str):
        return True
    try:
        # For a result with an unknown block, the newest revision drops the content; the others refuse it.
        shaped = serialize_server_result("tools/call", version, {"resultType": "complete", "content": [block]})
    except ValidationError:
        return False
    return "content" in shaped


def _as_text_block(block: Mapping[str, Any]) -> Mapping[str, Any]:
    return {"type": "text", "text": result_text({"content": [block]})}


def _error_result(message: str, *, plain: bool, marked: bool) -> dict[str, Any]:
    data = {"error": message}
    text = message if plain else to_json(data).decode()
    return wire_result(Answer(text, data, ok=False), "", marked=marked)


def described(bound: BoundOperation) -> Callable[[], str] | str:
    """The description of an operation's tool: a text, or a function where it depends on the service."""
    description = mcp_tool(bound.operation).description
    return description if isinstance(description, str) else lambda: description(bound.service)
