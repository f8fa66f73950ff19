"""Prompts, and completion of their arguments."""

from collections.abc import Awaitable, Callable
from typing import Any

import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError

from frontdesk.interfaces.mcp.context import SdkContext
from tests.conformance.input_required import accepted, ask
from tests.conformance.shapes import elicitation, embedded, image

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
