"""The pieces that the fixtures of the conformance suite are made of."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import mcp_types as types
from mcp.server.context import HandlerResult

from frontdesk.interfaces.mcp.context import SdkContext
from frontdesk.interfaces.mcp.tool_spec import OfferedTool

Json = dict[str, Any]
Call = Callable[[SdkContext, Mapping[str, Any]], Awaitable[HandlerResult]]

RED_PIXEL_PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4z8AAAAMBAQDJ/pLvAAAAAElFTkSuQmCC"
NO_ARGUMENTS: Json = {"type": "object", "properties": {}}


def offer(name: str, description: str, call: Call, input_schema: Json = NO_ARGUMENTS) -> tuple[str, OfferedTool]:
    """An entry of what an endpoint offers."""
    return name, OfferedTool(types.Tool(name=name, description=description, input_schema=input_schema), call)


def fixed(*content: types.ContentBlock, is_error: bool = False) -> Call:
    """A tool that always answers the same."""
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
    """The text of what the client's model said."""
    return reply.content.text if isinstance(reply.content, types.TextContent) else ""
