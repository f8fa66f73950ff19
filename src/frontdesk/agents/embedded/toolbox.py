"""The tools of MCP servers, bound to the person and the agent of one turn."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any

from pydantic import SecretStr

from frontdesk.agents.embedded.model import AttachedTool
from frontdesk.agents.host import HeldTool
from frontdesk.errors import Invalid, NotFound
from frontdesk.identity.model import Caller
from frontdesk.identity.rights import TOOLS_CALL
from frontdesk.loop.mcp.names import api_name
from frontdesk.loop.mcp.pool import McpClients
from frontdesk.loop.mcp.servers import Servers
from frontdesk.loop.text import closest, not_there, some_of
from frontdesk.loop.tools import Tool, ToolOutcome

NAMED = 20

ReadsOnly = Callable[[str, str], Awaitable[bool]]
Call = Callable[[Caller, str, str, Mapping[str, Any], SecretStr | None], Awaitable[ToolOutcome]]


class Toolbox:
    """`call` runs a tool of a server for a caller; who is behind it is said anew each time.

    `reads_only` says whether a tool of a server changes nothing, as far as is known.
    """

    def __init__(self, call: Call, servers: Servers, clients: McpClients, reads_only: ReadsOnly | None = None) -> None:
        self._call = call
        self._servers = servers
        self._clients = clients
        self._reads_only = reads_only

    def bound(self, tools: Sequence[AttachedTool], caller: Caller, token: SecretStr | None) -> Sequence[Tool]:
        """These tools for one turn."""
        return [
            Tool(
                tool.name,
                tool.description,
                tool.parameters,
                self._runner(tool, caller, token),
                tool.needs_approval,
                reads_only=partial(self._only_reads, tool),
                scope=TOOLS_CALL,
            )
            for tool in tools
        ]

    async def look_up(self, wanted: HeldTool) -> AttachedTool:
        """The tool as its server describes it now."""
        server = self._servers.get(wanted.server or "")
        if server is None:
            said = not_there(f"There is no MCP server '{wanted.server}'", wanted.server or "", self._servers.names())
            raise Invalid(f"{said} Add one with `frontdesk tools add`, or name it in FRONTDESK_MCP_SERVERS")
        listing = await self._clients.client(server, None, None).listing()
        found = next((tool for tool in listing.tools if tool.name == wanted.remote_name), None)
        if found is None:
            names = [tool.name for tool in listing.tools]
            said = [f"it has: {some_of(names, NAMED) or 'none'}", *listing.left_out]
            meant = closest(wanted.remote_name or "", names)
            near = f" Did you mean '{meant}'?" if meant else ""
            raise NotFound(f"{server} has no tool '{wanted.remote_name}'; {'; '.join(said)}.{near}")
        name = api_name(server.name, found.name, {})
        return AttachedTool(name, found.description, found.parameters, server.name, found.name, wanted.needs_approval)

    async def _only_reads(self, tool: AttachedTool, _arguments: Mapping[str, Any]) -> bool:
        return self._reads_only is not None and await self._reads_only(tool.server, tool.remote_name)

    def _runner(
        self, tool: AttachedTool, caller: Caller, token: SecretStr | None
    ) -> Callable[[Mapping[str, Any]], Awaitable[ToolOutcome]]:
        async def run(arguments: Mapping[str, Any]) -> ToolOutcome:
            return await self._call(caller, tool.server, tool.remote_name, arguments, token)

        return run
