"""Prompts, resources of each kind, and completion of arguments, as the MCP conformance suite requires them."""

import json
import re
from collections.abc import Awaitable, Callable
from typing import Any

import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError

from frontdesk.interfaces.mcp.context import SdkContext
from tests.conformance.tools import RED_PIXEL_PNG, accepted, ask, elicitation, embedded, image

# Prompts, and completion of their arguments


Rendered = types.GetPromptResult | types.InputRequiredResult
Render = Callable[[SdkContext, dict[str, str]], Awaitable[Rendered]]

ASK_CONTEXT = elicitation("What context should the prompt use?", {"context": {"type": "string"}}, ("context",))
COMPLETIONS = ("paris", "park", "party", "testing", "test-value")


def messages(*content: types.ContentBlock) -> types.GetPromptResult:
    return types.GetPromptResult(messages=[types.PromptMessage(role="user", content=block) for block in content])


async def simple(_ctx: SdkContext, _arguments: dict[str, str]) -> Rendered:
    return messages(types.TextContent(text="This is a simple prompt for testing."))


async def with_arguments(_ctx: SdkContext, arguments: dict[str, str]) -> Rendered:
    first, second = arguments.get("arg1", ""), arguments.get("arg2", "")
    return messages(types.TextContent(text=f"Prompt with arguments: arg1='{first}', arg2='{second}'"))


async def with_resource(_ctx: SdkContext, arguments: dict[str, str]) -> Rendered:
    resource = embedded(arguments.get("resourceUri", ""), "text/plain", "Embedded resource content for testing.")
    return messages(resource, types.TextContent(text="Please process the embedded resource above."))


async def with_image(_ctx: SdkContext, _arguments: dict[str, str]) -> Rendered:
    return messages(image(), types.TextContent(text="Please analyze the image above."))


async def with_input(ctx: SdkContext, _arguments: dict[str, str]) -> Rendered:
    content = accepted(ctx, "user_context")
    if content is None:
        return ask({"user_context": ASK_CONTEXT})
    return messages(types.TextContent(text=f"Use this context: {content.get('context')}"))


PROMPTS: dict[str, tuple[Render, tuple[str, ...]]] = {
    "test_simple_prompt": (simple, ()),
    "test_prompt_with_arguments": (with_arguments, ("arg1", "arg2")),
    "test_prompt_with_embedded_resource": (with_resource, ("resourceUri",)),
    "test_prompt_with_image": (with_image, ()),
    "test_input_required_result_prompt": (with_input, ()),
}


def declared(name: str, arguments: tuple[str, ...]) -> types.Prompt:
    needed = [types.PromptArgument(name=argument, description=argument, required=True) for argument in arguments]
    return types.Prompt(name=name, description=name.replace("_", " "), arguments=needed)


async def list_prompts(_ctx: SdkContext, _params: types.PaginatedRequestParams) -> types.ListPromptsResult:
    return types.ListPromptsResult(prompts=[declared(name, arguments) for name, (_, arguments) in PROMPTS.items()])


async def get_prompt(ctx: SdkContext, params: types.GetPromptRequestParams) -> Rendered:
    if params.name not in PROMPTS:
        raise MCPError(types.INVALID_PARAMS, f"Unknown prompt: {params.name}")
    render, _ = PROMPTS[params.name]
    return await render(ctx, params.arguments or {})


async def complete(_ctx: SdkContext, params: types.CompleteRequestParams) -> types.CompleteResult:
    values = [value for value in COMPLETIONS if value.startswith(params.argument.value)]
    return types.CompleteResult(completion=types.Completion(values=values, total=len(values), has_more=False))


def add_prompts(server: Server[Any]) -> None:
    server.add_request_handler("prompts/list", types.PaginatedRequestParams, list_prompts)
    server.add_request_handler("prompts/get", types.GetPromptRequestParams, get_prompt)
    server.add_request_handler("completion/complete", types.CompleteRequestParams, complete)


# Resources of each kind, and a resource template


Contents = types.TextResourceContents | types.BlobResourceContents


def text(uri: str, content: str, mime_type: str = "text/plain") -> types.TextResourceContents:
    return types.TextResourceContents(uri=uri, mime_type=mime_type, text=content)


BINARY = "test://static-binary"
RESOURCES: dict[str, Contents] = {
    found.uri: found
    for found in (
        text("test://static-text", "This is the content of the static text resource."),
        text("test://watched-resource", "This resource can be subscribed to."),
        types.BlobResourceContents(uri=BINARY, mime_type="image/png", blob=RED_PIXEL_PNG),
    )
}
TEMPLATE = types.ResourceTemplate(
    uri_template="test://template/{id}/data", name="Template data", mime_type="application/json"
)
OF_TEMPLATE = re.compile(r"test://template/(?P<id>[^/]+)/data")


def contents(uri: str) -> Contents:
    """The contents of `uri`; the error for a missing resource carries its address."""
    if uri in RESOURCES:
        return RESOURCES[uri]
    match = OF_TEMPLATE.fullmatch(uri)
    if match is None:
        raise MCPError(types.INVALID_PARAMS, "Resource not found", {"uri": uri})
    data = {"id": match["id"], "templateTest": True, "data": f"Data for ID: {match['id']}"}
    return text(uri, json.dumps(data), "application/json")


async def list_resources(_ctx: SdkContext, _params: types.PaginatedRequestParams) -> types.ListResourcesResult:
    listed = [types.Resource(uri=uri, name=uri, mime_type=found.mime_type) for uri, found in RESOURCES.items()]
    return types.ListResourcesResult(resources=listed)


async def list_templates(_ctx: SdkContext, _params: types.PaginatedRequestParams) -> types.ListResourceTemplatesResult:
    return types.ListResourceTemplatesResult(resource_templates=[TEMPLATE])


async def read(_ctx: SdkContext, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
    return types.ReadResourceResult(contents=[contents(params.uri)])


async def subscribe(_ctx: SdkContext, _params: types.SubscribeRequestParams) -> types.EmptyResult:
    return types.EmptyResult()


async def unsubscribe(_ctx: SdkContext, _params: types.UnsubscribeRequestParams) -> types.EmptyResult:
    return types.EmptyResult()


def add_resources(server: Server[Any]) -> None:
    server.add_request_handler("resources/list", types.PaginatedRequestParams, list_resources)
    server.add_request_handler("resources/templates/list", types.PaginatedRequestParams, list_templates)
    server.add_request_handler("resources/read", types.ReadResourceRequestParams, read)
    server.add_request_handler("resources/subscribe", types.SubscribeRequestParams, subscribe)
    server.add_request_handler("resources/unsubscribe", types.UnsubscribeRequestParams, unsubscribe)
