"""Serves the tools that were attached to agents of a Letta server."""

from collections.abc import Mapping, Sequence
from typing import Any

import mcp_types as types
from mcp.server.context import CallNext, HandlerResult
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError

from frontdesk import __version__
from frontdesk.agents.letta.handed_store import HANDED_TOOLS_PATH, HandedTool
from frontdesk.app import App
from frontdesk.interfaces.mcp.context import SdkContext, call_context
from frontdesk.interfaces.mcp.server import bearer_challenge
from frontdesk.interfaces.mcp.tools import IGNORED_ARGUMENTS, McpCall, wrap_tool_call
from frontdesk.operations import Answer
from frontdesk.text import closest_name
from frontdesk.tools.model import tool_id
from frontdesk.tools.responses import call_answer


def build_handed_tools_server(app: App) -> Server[Any]:
    """An MCP server whose tools change while it runs. Its list is the same for everybody, and cached."""
    cache = HandedToolCache(app)
    challenge = bearer_challenge(app, HANDED_TOOLS_PATH)

    async def list_tools(_ctx: SdkContext, _params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[_tool_definition(handed) for handed in cache.tools.values()])

    async def call_tool(ctx: SdkContext, params: types.CallToolRequestParams) -> HandlerResult:
        handed = await cache.find(params.name)
        if handed is None:
            meant = closest_name(params.name, cache.tools)
            near = f"; did you mean '{meant}'?" if meant else ""
            raise MCPError(types.INVALID_PARAMS, f"Unknown tool: {params.name}{near}")
        arguments = _own_arguments(handed, params.arguments or {})

        async def work(call: McpCall, _arguments: Mapping[str, Any]) -> Answer:
            app.identity.require_agent(call.caller)
            # Look it up by its id, since a name could later mean another tool.
            meant = tool_id(handed.server, handed.remote_name)
            return call_answer(
                await app.tools.dispatcher.call(call.caller, meant, arguments, token=call.token, progress=call.progress)
            )

        # The arguments are the tool's own: an agent_id among them does not name the caller.
        return await wrap_tool_call(app, "held_tool", challenge, work)(call_context(ctx), {})

    server = Server[Any]("frontdesk-held", version=__version__, on_list_tools=list_tools)
    server.add_request_handler("tools/call", types.CallToolRequestParams, call_tool)
    server.middleware.append(cache.cache_listing)
    return server


class HandedToolCache:
    """Caches the tools that were handed out, and their list in each revision of the protocol."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._seen: Sequence[HandedTool] = ()
        self._told: dict[str, HandlerResult] = {}
        self.tools: Mapping[str, HandedTool] = {}

    async def find(self, name: str) -> HandedTool | None:
        """The tool of a name. A name never changes its tool, so only an unknown name needs a database query."""
        if name not in self.tools:
            await self.refresh()
        return self.tools.get(name)

    async def refresh(self) -> None:
        seen = await self._app.handed.listed()
        if seen is not self._seen:
            self._seen, self.tools, self._told = seen, {handed.name: handed for handed in seen}, {}

    async def cache_listing(self, ctx: SdkContext, call_next: CallNext) -> HandlerResult:
        """Cache the list: Letta requests it after each call, and checking several hundred tools takes longer than most
        calls."""
        if ctx.method != "tools/list":
            return await call_next(ctx)
        await self.refresh()
        # A local variable, since another list may replace this one before there is an answer.
        told = self._told
        if ctx.protocol_version not in told:
            told[ctx.protocol_version] = await call_next(ctx)
        return told[ctx.protocol_version]


def _tool_definition(handed: HandedTool) -> types.Tool:
    return types.Tool(
        name=handed.name, description=handed.description, input_schema={**handed.parameters, "type": "object"}
    )


def _own_arguments(handed: HandedTool, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    """The arguments without those that Letta adds to every call, unless the tool has them."""
    own = handed.parameters.get("properties", {})
    return {name: value for name, value in arguments.items() if name in own or name not in IGNORED_ARGUMENTS}
