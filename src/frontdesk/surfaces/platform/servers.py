"""The tool servers of the local platform: each one a real MCP server, whose tools answer as the manifest says."""

from collections.abc import Mapping
from typing import Any

import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError

from frontdesk import __version__
from frontdesk.errors import Invalid
from frontdesk.loop.text import json_object
from frontdesk.platform.declared.model import Declared, DeclaredServer, DeclaredTool
from frontdesk.platform.local.answering import Told, delay_seconds, tell
from frontdesk.platform.local.seen import caller_of
from frontdesk.platform.local.standin import StandIn
from frontdesk.surfaces.mcp.http import McpEndpoint
from frontdesk.surfaces.mcp.signals import Context, exchange_of
from frontdesk.tools.gateway.arguments import ArgumentCheck

INSTRUCTIONS = "A stand-in on this machine: what its tools answer was written in a manifest, and nothing is done."


class Endpoints:
    """The endpoint of each server, made anew when the manifest is."""

    def __init__(self, standin: StandIn) -> None:
        self._standin = standin
        self._check = ArgumentCheck()
        self._of: Declared | None = None
        self._made: dict[str, McpEndpoint] = {}

    def at(self, declared: Declared, server: DeclaredServer) -> McpEndpoint:
        if declared is not self._of:
            self._of, self._made = declared, {}
        if server.name not in self._made:
            self._made[server.name] = McpEndpoint(Bench(self._standin, server, self._check).mcp_server())
        return self._made[server.name]


def tools_of(server: DeclaredServer) -> Mapping[str, DeclaredTool]:
    """The tools that can be called, by name."""
    return {tool.name: tool for tool in server.tools or () if tool.enabled}


class Bench:
    """One server at work."""

    def __init__(self, standin: StandIn, server: DeclaredServer, check: ArgumentCheck) -> None:
        self._standin = standin
        self._server = server
        self._tools = tools_of(server)
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
        # Not by the SDK's own argument for it: clients still send what the newest revision no longer has.
        server.add_request_handler("logging/setLevel", types.SetLevelRequestParams, _heard)
        return server

    async def _list(self, _ctx: Context, _params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[_definition(tool) for tool in self._tools.values()])

    async def _call(self, ctx: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
        tool = self._tools.get(params.name)
        if tool is None:
            known = ", ".join(self._tools) or "none"
            raise MCPError(types.INVALID_PARAMS, f"Unknown tool: {params.name}; {self._server.name} has: {known}")
        arguments = json_object(params.arguments or {})
        if arguments is None:
            return _failure("The arguments are nested too deep, or hold a number that JSON does not know", tool)
        try:
            await self._check.check(tool.name, _schema(tool), arguments)
        except Invalid as error:
            return _failure(str(error), tool)
        if tool.delay_ms:
            await self._standin.sleep(delay_seconds(tool.delay_ms))
        agent = caller_of(exchange_of(ctx).visit.said)
        states = self._standin.states
        told = tell(tool, states.of(self._server.name, agent), arguments, self._standin.luck.random())
        states.move(self._server.name, agent, told.state)
        return _result(told, tool, arguments)


def _result(told: Told, tool: DeclaredTool, arguments: Mapping[str, Any]) -> types.CallToolResult:
    # Some clients show a model this alone, so the answer is in it too.
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


def _failure(message: str, tool: DeclaredTool) -> types.CallToolResult:
    about = {"isMock": True, "tool": tool.name, "error": message}
    content = types.TextContent(type="text", text=message)
    return types.CallToolResult(content=[content], structured_content=about, is_error=True)


def _definition(tool: DeclaredTool) -> types.Tool:
    return types.Tool(name=tool.name, description=tool.description, input_schema=_schema(tool))


def _schema(tool: DeclaredTool) -> dict[str, Any]:
    return {**tool.input_schema, "type": "object"}


async def _no_prompts(_ctx: Context, _params: types.PaginatedRequestParams | None) -> types.ListPromptsResult:
    return types.ListPromptsResult(prompts=[])


async def _no_resources(_ctx: Context, _params: types.PaginatedRequestParams | None) -> types.ListResourcesResult:
    return types.ListResourcesResult(resources=[])


async def _no_templates(
    _ctx: Context, _params: types.PaginatedRequestParams | None
) -> types.ListResourceTemplatesResult:
    return types.ListResourceTemplatesResult(resource_templates=[])


async def _heard(_ctx: Context, _params: types.SetLevelRequestParams) -> types.EmptyResult:
    return types.EmptyResult()
