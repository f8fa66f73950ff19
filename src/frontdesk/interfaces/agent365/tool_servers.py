"""Serves each tool server of a manifest as a real MCP server whose answers come from the manifest."""

from collections.abc import Mapping
from typing import Any

import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError

from frontdesk import __version__
from frontdesk.agent365.local_platform import (
    LocalPlatformState,
    MockResponse,
    answer_call,
    delay_seconds,
    identify_caller,
)
from frontdesk.agent365.manifest.model import DeclaredManifest, DeclaredServer, DeclaredTool
from frontdesk.errors import Invalid
from frontdesk.interfaces.mcp.context import SdkContext, call_context
from frontdesk.interfaces.mcp.http import McpEndpoint
from frontdesk.text import parse_json_object
from frontdesk.tools.arguments import ArgumentCheck

INSTRUCTIONS = "A stand-in on this machine: what its tools answer was written in a manifest, and nothing is done."


class ServerEndpoints:
    """The endpoint of each server; all are built again when the manifest changes."""

    def __init__(self, standin: LocalPlatformState) -> None:
        self._standin = standin
        self._check = ArgumentCheck()
        self._of: DeclaredManifest | None = None
        self._made: dict[str, McpEndpoint] = {}

    def endpoint_of(self, declared: DeclaredManifest, server: DeclaredServer) -> McpEndpoint:
        if declared is not self._of:
            self._of, self._made = declared, {}
        if server.name not in self._made:
            self._made[server.name] = McpEndpoint(ManifestServerTools(self._standin, server, self._check).mcp_server())
        return self._made[server.name]


def callable_tools(server: DeclaredServer) -> Mapping[str, DeclaredTool]:
    """The tools that can be called, by name."""
    return {tool.name: tool for tool in server.tools or () if tool.enabled}


class ManifestServerTools:
    """The tools of one server, as MCP serves them."""

    def __init__(self, standin: LocalPlatformState, server: DeclaredServer, check: ArgumentCheck) -> None:
        self._standin = standin
        self._server = server
        self._tools = callable_tools(server)
        self._check = check

    def mcp_server(self) -> Server[Any]:
        schemas = {name: _schema(tool) for name, tool in self._tools.items()}
        server = Server[Any](
            self._server.name,
            version=__version__,
            instructions=INSTRUCTIONS,
            get_tool_input_schema=schemas.get,
            on_list_tools=self._list,
            on_call_tool=self._call,
            on_list_prompts=_no_prompts,
            on_list_resources=_no_resources,
            on_list_resource_templates=_no_templates,
        )
        # The SDK's own argument for this is not used: clients still send requests that the newest revision no longer
        # has.
        server.add_request_handler("logging/setLevel", types.SetLevelRequestParams, _ignore_log_level)
        return server

    async def _list(self, _ctx: SdkContext, _params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[_definition(tool) for tool in self._tools.values()])

    async def _call(self, ctx: SdkContext, params: types.CallToolRequestParams) -> types.CallToolResult:
        tool = self._tools.get(params.name)
        if tool is None:
            known = ", ".join(self._tools) or "none"
            raise MCPError(types.INVALID_PARAMS, f"Unknown tool: {params.name}; {self._server.name} has: {known}")
        arguments = parse_json_object(params.arguments or {})
        if arguments is None:
            return _failed_result("The arguments are nested too deep, or hold a number that JSON does not know", tool)
        try:
            await self._check.check(tool.name, _schema(tool), arguments)
        except Invalid as error:
            return _failed_result(str(error), tool)
        if tool.delay_ms:
            await self._standin.sleep(delay_seconds(tool.delay_ms))
        agent = identify_caller(call_context(ctx).request_context.headers)
        states = self._standin.states
        told = answer_call(tool, states.current(self._server.name, agent), arguments, self._standin.rng.random())
        states.move(self._server.name, agent, told.state)
        return _tool_result(told, tool, arguments)


def _tool_result(told: MockResponse, tool: DeclaredTool, arguments: Mapping[str, Any]) -> types.CallToolResult:
    # Some clients show a model only this text, so the answer is in it too.
    about = {
        "response": told.text,
        "isMock": True,
        "tool": tool.name,
        "usedArguments": dict(arguments),
        "template": told.template,
        "missingPlaceholders": list(told.missing),
        "state": told.state,
    }
    content = types.TextContent(type="text", text=told.text)
    return types.CallToolResult(content=[content], structured_content=about, is_error=told.is_error)


def _failed_result(message: str, tool: DeclaredTool) -> types.CallToolResult:
    about = {"isMock": True, "tool": tool.name, "error": message}
    content = types.TextContent(type="text", text=message)
    return types.CallToolResult(content=[content], structured_content=about, is_error=True)


def _definition(tool: DeclaredTool) -> types.Tool:
    return types.Tool(name=tool.name, description=tool.description, input_schema=_schema(tool))


def _schema(tool: DeclaredTool) -> dict[str, Any]:
    return {**tool.input_schema, "type": "object"}


async def _no_prompts(_ctx: SdkContext, _params: types.PaginatedRequestParams | None) -> types.ListPromptsResult:
    return types.ListPromptsResult(prompts=[])


async def _no_resources(_ctx: SdkContext, _params: types.PaginatedRequestParams | None) -> types.ListResourcesResult:
    return types.ListResourcesResult(resources=[])


async def _no_templates(
    _ctx: SdkContext, _params: types.PaginatedRequestParams | None
) -> types.ListResourceTemplatesResult:
    return types.ListResourceTemplatesResult(resource_templates=[])


async def _ignore_log_level(_ctx: SdkContext, _params: types.SetLevelRequestParams) -> types.EmptyResult:
    return types.EmptyResult()
