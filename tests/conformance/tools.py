"""Tools that the MCP conformance suite requires of every server: answers, notifications, and requests to the client."""

import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar

import mcp_types as types
from mcp.server.context import HandlerResult
from mcp.server.lowlevel import Server
from mcp.server.subscriptions import (
    InMemorySubscriptionBus,
    ListenHandler,
    PromptsListChanged,
    ServerEvent,
    SubscriptionBus,
    ToolsListChanged,
)
from mcp.shared.exceptions import MCPError
from mcp.shared.message import ServerMessageMetadata
from mcp_types import AudioContent, CreateMessageResult, TextContent

from frontdesk.interfaces.mcp.context import SdkContext
from frontdesk.interfaces.mcp.tools import OfferedTool

# Building blocks of the fixtures


Json = dict[str, Any]
Call = Callable[[SdkContext, Mapping[str, Any]], Awaitable[HandlerResult]]

RED_PIXEL_PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4z8AAAAMBAQDJ/pLvAAAAAElFTkSuQmCC"
NO_ARGUMENTS: Json = {"type": "object", "properties": {}}


def offer(name: str, description: str, call: Call, input_schema: Json = NO_ARGUMENTS) -> tuple[str, OfferedTool]:
    """An entry of what an endpoint offers."""
    definition = types.Tool(name=name, description=description, input_schema=input_schema)
    return name, OfferedTool(lambda: definition, call)


def fixed(*content: types.ContentBlock, is_error: bool = False) -> Call:
    """A tool that always gives the same answer."""
    result = types.CallToolResult(content=list(content), is_error=is_error)

    async def call(_ctx: SdkContext, _arguments: Mapping[str, Any]) -> HandlerResult:
        return result

    return call


def said(text: str) -> types.CallToolResult:
    """A result of one text block."""
    return types.CallToolResult(content=[types.TextContent(text=text)])


def object_schema(properties: Json, required: tuple[str, ...] = ()) -> Json:
    return {"type": "object", "properties": properties, "required": list(required)}


def image() -> types.ImageContent:
    return types.ImageContent(data=RED_PIXEL_PNG, mime_type="image/png")


def embedded(uri: str, mime_type: str, text: str) -> types.EmbeddedResource:
    return types.EmbeddedResource(resource=types.TextResourceContents(uri=uri, mime_type=mime_type, text=text))


def elicitation(message: str, properties: Json, required: tuple[str, ...] = ()) -> types.ElicitRequest:
    """A form that asks a person for `properties`."""
    schema = object_schema(properties, required)
    return types.ElicitRequest(params=types.ElicitRequestFormParams(message=message, requested_schema=schema))


def sampling(prompt: str, max_tokens: int) -> types.CreateMessageRequest:
    """A question to the client's model."""
    message = types.SamplingMessage(role="user", content=types.TextContent(text=prompt))
    return types.CreateMessageRequest(
        params=types.CreateMessageRequestParams(messages=[message], max_tokens=max_tokens)
    )


def text_of(reply: types.CreateMessageResult) -> str:
    """The text of the client's model."""
    return reply.content.text if isinstance(reply.content, types.TextContent) else ""


# Tools that answer immediately, with every kind of content


SILENT_WAV = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQIAAACAgA=="

# One use of each keyword that the suite looks for; an endpoint must pass it on unchanged.
JSON_SCHEMA_2020_12: Json = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }
    },
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}
REGION = object_schema({"region": {"type": "string", "x-mcp-header": "Region"}}, ("region",))


async def echo_region(_ctx: SdkContext, arguments: Mapping[str, Any]) -> HandlerResult:
    return said(f"Region: {arguments.get('region', 'none')}")


SIMPLE_TEXT = fixed(TextContent(text="This is a simple text response for testing."))
AUDIO = fixed(AudioContent(data=SILENT_WAV, mime_type="audio/wav"))
RESOURCE = fixed(embedded("test://embedded-resource", "text/plain", "This is an embedded resource content."))
MIXED = fixed(
    TextContent(text="Multiple content types test:"),
    image(),
    embedded("test://mixed-content-resource", "application/json", '{"test":"data","value":123}'),
)
ERROR = fixed(TextContent(text="This tool intentionally returns an error for testing"), is_error=True)
ACCEPTED = fixed(TextContent(text="Schema accepted"))

CONTENT: dict[str, OfferedTool] = dict(
    (
        offer("test_simple_text", "Returns simple text", SIMPLE_TEXT),
        offer("test_image_content", "Returns an image", fixed(image())),
        offer("test_audio_content", "Returns audio", AUDIO),
        offer("test_embedded_resource", "Returns an embedded resource", RESOURCE),
        offer("test_multiple_content_types", "Returns several content types", MIXED),
        offer("test_error_handling", "Returns a tool error", ERROR),
        offer("json_schema_2020_12_tool", "Has a schema of many keywords", ACCEPTED, JSON_SCHEMA_2020_12),
        offer("test_x_mcp_header", "Mirrors an argument into a header", echo_region, REGION),
    )
)


# Tools that send notifications: progress and logs on their own stream, changes to all subscribers


BUS = InMemorySubscriptionBus()


async def with_progress(ctx: SdkContext, _arguments: Mapping[str, Any]) -> HandlerResult:
    for step in (0, 50, 100):
        await ctx.session.report_progress(step, 100)
    return said("Tool with progress executed")


async def with_logging(ctx: SdkContext, _arguments: Mapping[str, Any]) -> HandlerResult:
    for message in ("Tool execution started", "Tool processing data", "Tool execution completed"):
        # Deprecated, and still part of both revisions.
        await ctx.session.send_log_message("info", message, related_request_id=ctx.request_id)  # pyright: ignore[reportDeprecated]
    return said("Tool with logging executed")


def publish(bus: SubscriptionBus, event: ServerEvent) -> Call:
    """A tool that announces `event` to every open subscription."""

    async def call(_ctx: SdkContext, _arguments: Mapping[str, Any]) -> HandlerResult:
        await bus.publish(event)
        return said("Announced")

    return call


async def set_level(_ctx: SdkContext, _params: types.SetLevelRequestParams) -> types.EmptyResult:
    return types.EmptyResult()


def add_listening(server: Server[Any]) -> None:
    """Let clients open a stream of changes, and set the log level that they want."""
    server.add_request_handler("subscriptions/listen", types.SubscriptionsListenRequestParams, ListenHandler(BUS))
    server.add_request_handler("logging/setLevel", types.SetLevelRequestParams, set_level)


RECONNECTED = fixed(types.TextContent(text="Reconnection test completed"))

NOTIFYING: dict[str, OfferedTool] = dict(
    (
        offer("test_tool_with_progress", "Reports progress", with_progress),
        offer("test_tool_with_logging", "Sends log messages", with_logging),
        offer("test_logging_tool", "Sends log messages when the request opts in", with_logging),
        offer("test_reconnection", "Answers on the stream of its request", RECONNECTED),
        offer("test_trigger_tool_change", "Announces another tool list", publish(BUS, ToolsListChanged())),
        offer("test_trigger_prompt_change", "Announces another prompt list", publish(BUS, PromptsListChanged())),
    )
)


# Tools that send the client a request during the call, as the revisions with sessions allow


PERSON: Json = {
    "username": {"type": "string", "description": "User's response"},
    "email": {"type": "string", "description": "User's email address"},
}
DEFAULTS: Json = {
    "name": {"type": "string", "default": "John Doe"},
    "age": {"type": "integer", "default": 30},
    "score": {"type": "number", "default": 95.5},
    "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
    "verified": {"type": "boolean", "default": True},
}
OPTIONS = ["option1", "option2", "option3"]
TITLED = [{"const": "value1", "title": "First Option"}, {"const": "value2", "title": "Second Option"}]
ENUMS: Json = {
    "untitledSingle": {"type": "string", "enum": OPTIONS},
    "titledSingle": {"type": "string", "oneOf": TITLED},
    "legacyEnum": {"type": "string", "enum": OPTIONS, "enumNames": ["Option One", "Option Two", "Option Three"]},
    "untitledMulti": {"type": "array", "items": {"type": "string", "enum": OPTIONS}},
    "titledMulti": {"type": "array", "items": {"anyOf": TITLED}},
}


async def sample(ctx: SdkContext, arguments: Mapping[str, Any]) -> HandlerResult:
    request = sampling(str(arguments.get("prompt", "")), 100)
    related = ServerMessageMetadata(related_request_id=ctx.request_id)
    reply = await ctx.session.send_request(request, CreateMessageResult, metadata=related)
    return said(f"LLM response: {text_of(reply)}")


def elicit(properties: Json, required: tuple[str, ...] = ()) -> Call:
    """A tool that asks the person for `properties` and reports the reply."""

    async def call(ctx: SdkContext, arguments: Mapping[str, Any]) -> HandlerResult:
        schema = object_schema(properties, required)
        message = str(arguments.get("message", "Please fill this in"))
        reply = await ctx.session.elicit_form(message, schema, related_request_id=ctx.request_id)
        return said(f"User response: action={reply.action}, content={json.dumps(reply.content)}")

    return call


PROMPT = object_schema({"prompt": {"type": "string"}}, ("prompt",))
MESSAGE = object_schema({"message": {"type": "string"}}, ("message",))

CALLING_BACK: dict[str, OfferedTool] = dict(
    (
        offer("test_sampling", "Asks the client's model", sample, PROMPT),
        offer("test_elicitation", "Asks the person", elicit(PERSON, ("username", "email")), MESSAGE),
        offer("test_elicitation_sep1034_defaults", "Asks with default values", elicit(DEFAULTS)),
        offer("test_elicitation_sep1330_enums", "Asks with every kind of enum", elicit(ENUMS)),
    )
)


# Tools that ask for input through their result, as in 2026-07-28


Reply = TypeVar("Reply", types.ElicitResult, types.CreateMessageResult, types.ListRootsResult)

ASK_NAME = elicitation("What is your name?", {"name": {"type": "string"}}, ("name",))
ASK_CONFIRMATION = elicitation("Please confirm", {"ok": {"type": "boolean"}}, ("ok",))
ASK_FIRST = elicitation("Step 1: What is your name?", {"name": {"type": "string"}}, ("name",))
ASK_SECOND = elicitation("Step 2: What is your favorite color?", {"color": {"type": "string"}}, ("color",))
ASK_CAPITAL = sampling("What is the capital of France?", 100)
ASK_GREETING = sampling("Generate a greeting", 50)
ASK_ROOTS = types.ListRootsRequest()

NEEDED: dict[str, tuple[types.ClientCapabilities, types.InputRequest]] = {
    "user_name": (types.ClientCapabilities(elicitation=types.ElicitationCapability()), ASK_NAME),
    "greeting": (types.ClientCapabilities(sampling=types.SamplingCapability()), ASK_GREETING),
    "client_roots": (types.ClientCapabilities(roots=types.RootsCapability()), ASK_ROOTS),
}


def ask(requests: Mapping[str, types.InputRequest], state: str | None = None) -> types.InputRequiredResult:
    """A result that asks the client for more input, and to send `state` back."""
    return types.InputRequiredResult(input_requests=dict(requests), request_state=state)


def retried(ctx: SdkContext) -> types.InputResponseRequestParams:
    """What a client adds to its repeated request; the state is unsealed by then."""
    return types.InputResponseRequestParams.model_validate(ctx.params or {}, by_name=False)


def replied(ctx: SdkContext, key: str, kind: type[Reply]) -> Reply | None:
    """The client's reply under `key`, if there is one of this kind."""
    reply = (retried(ctx).input_responses or {}).get(key)
    return reply if isinstance(reply, kind) else None


def accepted(ctx: SdkContext, key: str) -> dict[str, Any] | None:
    """The person's entries under `key`, if they filled in the form."""
    reply = replied(ctx, key, types.ElicitResult)
    return None if reply is None or reply.action != "accept" else dict(reply.content or {})


async def require_sampling(ctx: SdkContext, _arguments: Mapping[str, Any]) -> HandlerResult:
    required = types.ClientCapabilities(sampling=types.SamplingCapability())
    if ctx.session.check_client_capability(required):
        return said("The client declared the sampling capability")
    data = types.MissingRequiredClientCapabilityErrorData(required_capabilities=required)
    raise MCPError(
        types.MISSING_REQUIRED_CLIENT_CAPABILITY,
        "This tool requires the sampling capability",
        data.model_dump(by_alias=True, mode="json", exclude_none=True),
    )


async def ask_name(ctx: SdkContext, _arguments: Mapping[str, Any]) -> HandlerResult:
    name = (accepted(ctx, "user_name") or {}).get("name")
    return said(f"Hello, {name}!") if isinstance(name, str) else ask({"user_name": ASK_NAME})


async def ask_model(ctx: SdkContext, _arguments: Mapping[str, Any]) -> HandlerResult:
    reply = replied(ctx, "capital_question", types.CreateMessageResult)
    return ask({"capital_question": ASK_CAPITAL}) if reply is None else said(f"Sampling response: {text_of(reply)}")


async def ask_roots(ctx: SdkContext, _arguments: Mapping[str, Any]) -> HandlerResult:
    reply = replied(ctx, "client_roots", types.ListRootsResult)
    if reply is None:
        return ask({"client_roots": ASK_ROOTS})
    return said("Roots: " + ", ".join(str(root.uri) for root in reply.roots))


async def ask_with_state(ctx: SdkContext, _arguments: Mapping[str, Any]) -> HandlerResult:
    if accepted(ctx, "confirm") is None or retried(ctx).request_state != "confirming":
        return ask({"confirm": ASK_CONFIRMATION}, "confirming")
    return said("state-ok")


async def ask_several(ctx: SdkContext, _arguments: Mapping[str, Any]) -> HandlerResult:
    name = accepted(ctx, "user_name")
    greeting = replied(ctx, "greeting", types.CreateMessageResult)
    roots = replied(ctx, "client_roots", types.ListRootsResult)
    if name is None or greeting is None or roots is None:
        return ask({key: request for key, (_, request) in NEEDED.items()}, "gathering")
    return said(f"Gathered inputs for {name.get('name')} with {len(roots.roots)} root(s)")


async def ask_in_rounds(ctx: SdkContext, _arguments: Mapping[str, Any]) -> HandlerResult:
    state = json.loads(retried(ctx).request_state or "{}")
    first, second = accepted(ctx, "step1"), accepted(ctx, "step2")
    if "name" in state and second is not None:
        return said(f"{state['name']} likes {second.get('color')}")
    if state.get("round") == 1 and first is not None:
        return ask({"step2": ASK_SECOND}, json.dumps({"round": 2, "name": first.get("name")}))
    return ask({"step1": ASK_FIRST}, json.dumps({"round": 1}))


async def ask_what_client_can(ctx: SdkContext, _arguments: Mapping[str, Any]) -> HandlerResult:
    able = {key: request for key, (needs, request) in NEEDED.items() if ctx.session.check_client_capability(needs)}
    if able.keys() <= (retried(ctx).input_responses or {}).keys():
        return said(f"Answered: {', '.join(sorted(able)) or 'nothing to ask'}")
    return ask(able)


PREFIX = "test_input_required_result_"

INPUT_REQUIRED: dict[str, OfferedTool] = dict(
    (
        offer("test_missing_capability", "Requires the sampling capability", require_sampling),
        offer("test_streaming_elicitation", "Asks for a name through its result", ask_name),
        offer(f"{PREFIX}elicitation", "Asks for a name", ask_name),
        offer(f"{PREFIX}sampling", "Asks the client's model", ask_model),
        offer(f"{PREFIX}list_roots", "Asks for the client's roots", ask_roots),
        offer(f"{PREFIX}request_state", "Asks for confirmation and keeps state", ask_with_state),
        offer(f"{PREFIX}tampered_state", "Refuses state that was tampered with", ask_with_state),
        offer(f"{PREFIX}multiple_inputs", "Asks for several inputs at once", ask_several),
        offer(f"{PREFIX}multi_round", "Asks for input in two rounds", ask_in_rounds),
        offer(f"{PREFIX}capabilities", "Asks only for what the client supports", ask_what_client_can),
    )
)
