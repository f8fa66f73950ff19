"""The tools of MCP servers, bound to the person and the agent of one turn."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from pydantic import SecretStr

from frontdesk.agents.embedded.model import AttachedTool
from frontdesk.agents.host import HeldTool
from frontdesk.errors import Invalid, NotFound
from frontdesk.identity import outbound
from frontdesk.identity.model import Caller
from frontdesk.loop.mcp.model import McpServer, RemoteTool
from frontdesk.loop.mcp.names import api_name
from frontdesk.loop.mcp.pool import McpClients
from frontdesk.loop.tools import Tool, ToolOutcome


class Toolbox:
    """Which servers there are, and the clients that reach them; who is behind a call is said anew each time."""

    def __init__(self, servers: Sequence[McpServer], application_name: str | None = None) -> None:
        self._servers = {server.name: server for server in servers}
        self._application_name = application_name
        self._clients = McpClients()

    def bound(self, tools: Sequence[AttachedTool], caller: Caller, token: SecretStr | None) -> Sequence[Tool]:
        """These tools for one turn."""
        return [
            Tool(tool.name, tool.description, tool.parameters, self._runner(tool, caller, token), tool.needs_approval)
            for tool in tools
        ]

    async def look_up(self, wanted: HeldTool) -> AttachedTool:
        """The tool as its server describes it now."""
        server = self._servers.get(wanted.server or "")
        if server is None:
            raise Invalid(
                f"There is no MCP server '{wanted.server}'; FRONTDESK_MCP_SERVERS names: "
                f"{', '.join(self._servers) or 'none'}"
            )
        listed = await self._clients.client(server, None, None).tools()
        found = next((tool for tool in listed if tool.name == wanted.remote_name), None)
        if found is None:
            raise NotFound(f"{server} has no tool '{wanted.remote_name}'; it has: {_named(listed)}")
        name = api_name(server.name, found.name, {})
        return AttachedTool(name, found.description, found.parameters, server.name, found.name, wanted.needs_approval)

    async def close(self) -> None:
        await self._clients.close()

    def _runner(
        self, tool: AttachedTool, caller: Caller, token: SecretStr | None
    ) -> Callable[[Mapping[str, Any]], Awaitable[ToolOutcome]]:
        async def run(arguments: Mapping[str, Any]) -> ToolOutcome:
            server = self._servers.get(tool.server)
            if server is None:
                return ToolOutcome(f"The MCP server '{tool.server}' is not set up any more", ok=False)
            secret = token.get_secret_value() if token and server.user_token else None
            client = self._clients.client(server, caller.user_id, secret)
            headers = outbound.headers(caller, token=secret, application_name=self._application_name)
            return await client.call(tool.remote_name, arguments, headers)

        return run


def _named(tools: Sequence[RemoteTool]) -> str:
    names = [tool.name for tool in tools]
    return ", ".join(names[:20]) + (", …" if len(names) > 20 else "") if names else "none"
