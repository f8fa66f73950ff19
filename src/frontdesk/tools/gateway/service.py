"""Calls a tool where it lives, in the name of whoever asks: checked, bounded, and never with somebody else's token."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import SecretStr

from frontdesk.errors import Invalid, Unavailable
from frontdesk.identity import outbound
from frontdesk.identity.model import Caller
from frontdesk.loop.mcp.client import McpClient
from frontdesk.loop.mcp.model import McpServer, Unfit
from frontdesk.loop.mcp.pool import McpClients
from frontdesk.loop.mcp.servers import Servers
from frontdesk.loop.mcp.session import Progress
from frontdesk.tools.gateway.arguments import ArgumentCheck
from frontdesk.tools.gateway.lane import Lane, Manners
from frontdesk.tools.gateway.result import CallResult, failure, read
from frontdesk.tools.model import CatalogueTool, Kind, Standing

USUAL = Manners()


class Gateway:
    """One for the process: it knows how each server does, and hands its clients what is theirs alone."""

    def __init__(
        self,
        servers: Servers,
        clients: McpClients,
        application_name: str | None = None,
        manners: Manners = USUAL,
    ) -> None:
        self._servers = servers
        self._clients = clients
        # What outbound headers fall back to, looked up once and not on every call.
        self._application_name = application_name or outbound.project_name(Path.cwd())
        self._manners = manners
        self._arguments = ArgumentCheck()
        self._lanes: dict[str, Lane] = {}
        servers.watch(self._forget)

    async def call(
        self,
        caller: Caller,
        tool: CatalogueTool,
        arguments: Mapping[str, Any],
        *,
        token: SecretStr | None = None,
        progress: Progress | None = None,
    ) -> CallResult:
        """Call a tool of an MCP server. A caller's mistake is `Invalid`; trouble with the server is a result.

        `token` is the person's own. It goes to servers that were set up to have it. For a server with token exchange
        another is fetched with it; it is never sent to that server itself.
        """
        _check_callable(tool)
        server = self._servers.get(tool.server)
        if server is None:
            return failure(f"The MCP server '{tool.server}' is not set up any more; use another tool")
        arguments = dict(arguments)
        await self._arguments.check(tool.id, tool.parameters, arguments)
        secret = _secret(server, token)
        if secret is None and server.oauth is not None and server.oauth.for_person:
            return failure(f"{server} acts for a person; call it with that person's token")
        # Over HTTP the client itself knows which agent the token names, and has read it once.
        told = secret if server.user_token and server.transport == "stdio" else None
        if server.sends_agent_id:
            said = outbound.platform_headers(caller, token=told, application_name=self._application_name)
        else:
            said = outbound.headers(caller)

        async def work() -> CallResult:
            client = self._client(server, caller.user_id, secret)
            result = await client.raw(tool.name, arguments, said, progress)
            return read(tool.name, result.value, result.size, self._manners.max_result)

        try:
            return await self._lane(server.name).run(work)
        except Unavailable as error:
            return failure(f"Error calling {tool.name}: {error.public}")

    def _client(self, server: McpServer, user_id: str | None, secret: str | None) -> McpClient:
        """The client for a call whose turn it is: while it waited, the server may have gone, or moved."""
        current = self._servers.get(server.name)
        if current is None or current.digest != server.digest:
            raise Unfit(f"{server} was removed or defined anew meanwhile; try again")
        return self._clients.client(server, user_id, secret)

    def _lane(self, server: str) -> Lane:
        lane = self._lanes.get(server)
        if lane is None:
            lane = self._lanes[server] = Lane(server, self._manners)
        return lane

    def _forget(self, server: McpServer) -> None:
        self._lanes.pop(server.name, None)
        self._clients.retire(server)


def _check_callable(tool: CatalogueTool) -> None:
    if tool.kind is not Kind.MCP:
        raise Invalid(f"'{tool.name}' is a tool of the agent host itself: attach it to the agent, which then calls it")
    if tool.standing is Standing.HELD:
        raise Invalid(f"'{tool.id}' has changed and waits for somebody to look at the change; use another tool")


def _secret(server: McpServer, token: SecretStr | None) -> str | None:
    """The token that the client of this server is made with: none where the server has no use for one."""
    exchanged = server.oauth is not None and server.oauth.for_person
    return token.get_secret_value() if token is not None and (server.user_token or exchanged) else None
