"""The door for agents of a Letta server: it lists the tools that were handed to them, each under the name it got."""

from collections.abc import Mapping, Sequence
from typing import Any

import mcp_types as types
from mcp.server.context import CallNext, HandlerResult
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError

from frontdesk import __version__
from frontdesk.agents.letta.handed.model import PATH, Handed
from frontdesk.app import App
from frontdesk.identity.model import Caller
from frontdesk.loop.text import closest
from frontdesk.surfaces.mcp.calls import walk
from frontdesk.surfaces.mcp.line import Line
from frontdesk.surfaces.mcp.relay import relayed
from frontdesk.surfaces.mcp.server import challenge_for
from frontdesk.surfaces.mcp.signals import Context, exchange_of
from frontdesk.surfaces.mcp.tool import IGNORED, Result
from frontdesk.tools.model import tool_id


def held_server(app: App) -> Server[Any]:
    """An MCP server whose tools come to be while it runs; what it lists is the same for everybody, and costs little."""
    shelf = Shelf(app)
    challenge = challenge_for(app, PATH)

    async def list_tools(_ctx: Context, _params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[_definition(handed) for handed in shelf.tools.values()])

    async def call_tool(ctx: Context, params: types.CallToolRequestParams) -> HandlerResult:
        handed = await shelf.find(params.name)
        if handed is None:
            meant = closest(params.name, shelf.tools)
            near = f"; did you mean '{meant}'?" if meant else ""
            raise MCPError(types.INVALID_PARAMS, f"Unknown tool: {params.name}{near}")
        arguments = _meant(handed, params.arguments or {})

        async def work(caller: Caller, line: Line, _said: Mapping[str, Any]) -> Result:
            app.identity.require_agent(caller)
            # By its id, never by a name that could come to mean another tool.
            meant = tool_id(handed.server, handed.remote_name)
            result = await app.tools.calling.call(caller, meant, arguments, token=line.token, progress=line.progress)
            return relayed(result, line.version)

        # The arguments are the tool's own: an agent_id among them says nothing about who is calling.
        return await walk(app, "held_tool", challenge, work)(exchange_of(ctx), {})

    server = Server[Any]("frontdesk-held", version=__version__, on_list_tools=list_tools)
    server.add_request_handler("tools/call", types.CallToolRequestParams, call_tool)
    server.middleware.append(shelf.listed_once)
    return server


class Shelf:
    """What was handed out, and how that was told in each revision of the protocol."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._seen: Sequence[Handed] = ()
        self._told: dict[str, HandlerResult] = {}
        self.tools: Mapping[str, Handed] = {}

    async def find(self, name: str) -> Handed | None:
        """What has this name never changes, so only one that is new to this replica is looked for."""
        if name not in self.tools:
            await self.look()
        return self.tools.get(name)

    async def look(self) -> None:
        seen = await self._app.handed.listed()
        if seen is not self._seen:
            self._seen, self.tools, self._told = seen, {handed.name: handed for handed in seen}, {}

    async def listed_once(self, ctx: Context, call_next: CallNext) -> HandlerResult:
        """Letta asks for the list after each call, and to check several hundred tools takes longer than most calls."""
        if ctx.method != "tools/list":
            return await call_next(ctx)
        await self.look()
        # Not by way of self: by the time there is an answer, another list may have taken the place of this one.
        told = self._told
        if ctx.protocol_version not in told:
            told[ctx.protocol_version] = await call_next(ctx)
        return told[ctx.protocol_version]


def _definition(handed: Handed) -> types.Tool:
    return types.Tool(
        name=handed.name, description=handed.description, input_schema={**handed.parameters, "type": "object"}
    )


def _meant(handed: Handed, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    """Without what Letta sends along with any call, where the tool does not ask for it."""
    own = handed.parameters.get("properties", {})
    return {name: value for name, value in arguments.items() if name in own or name not in IGNORED}
