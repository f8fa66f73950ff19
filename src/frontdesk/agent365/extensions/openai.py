"""Gives the platform's tools to agents of OpenAI Agents, with the names of the SDK's own extension."""

from importlib import import_module

try:
    import_module("agents")
except ImportError as missing:
    raise ImportError(
        "Tools for OpenAI Agents need its package: pip install 'frontdesk[openai-agents]'", name=missing.name
    ) from missing

from collections.abc import Iterable
from functools import partial
from typing import TypeVar

from agents import Agent
from agents.items import TResponseInputItem
from agents.mcp import MCPServer, MCPServerStreamableHttp, MCPServerStreamableHttpParams
from agents.memory import Session

from frontdesk.agent365.errors import InvalidArgument, OperationResult
from frontdesk.agent365.extensions.adapter import McpToolRegistrationBase, ReachableServer, ServerLink, new_servers
from frontdesk.agent365.extensions.history import read_field
from frontdesk.agent365.headers import Authorization
from frontdesk.agent365.model import ToolOptions

__all__ = ["McpToolRegistrationService"]

REQUEST_SECONDS = 30.0
# The framework's own limit of 5 s is too short for a tool that searches a mailbox.
CALL_SECONDS = 90.0


def server_link(found: ReachableServer) -> ServerLink[MCPServer]:
    """A server that is not connected yet, and the functions that connect and close it."""
    params = MCPServerStreamableHttpParams(url=found.url, headers=dict(found.headers), timeout=REQUEST_SECONDS)
    server = MCPServerStreamableHttp(params, name=found.name, client_session_timeout_seconds=CALL_SECONDS)
    return ServerLink(found.name, server, server.connect, server.cleanup)


def connected_addresses(servers: Iterable[MCPServer]) -> set[str]:
    """The addresses of the servers that an agent has already; servers that are programs have none."""
    found = (read_field(read_field(server, "params"), "url") or read_field(server, "url") for server in servers)
    return {address for address in found if isinstance(address, str)}


T = TypeVar("T")


class McpToolRegistrationService(McpToolRegistrationBase):
    """Gives agents the tools of their servers, and keeps the connections until cleanup.

    Use it in `async with`, or call `cleanup_all_servers` at the end.
    """

    orchestrator = "OpenAI"

    async def add_tool_servers_to_agent(
        self,
        agent: Agent[T],
        auth: Authorization | None,
        auth_handler_name: str,
        context: object,
        auth_token: str | None = None,
    ) -> Agent[T]:
        """A copy of the agent with its servers added, or the agent itself where there is none to add.

        The copy keeps every field of the agent. The SDK builds an agent from a few of the fields, and so loses
        handoffs, guardrails, the output type, hooks and more. A server that the agent has already is not added again,
        and a server that cannot be connected is left out.
        """
        links = await self._links(agent, auth, auth_handler_name, context, auth_token)
        async with self._connections.open(links) as servers:
            return agent.clone(mcp_servers=[*agent.mcp_servers, *servers]) if servers else agent

    async def cleanup_all_servers(self) -> None:
        """Close all connections. Never raises, and may be called from any task."""
        await self._connections.close()

    async def send_chat_history(
        self,
        turn_context: object,
        session: Session | None,
        limit: int | None = None,
        options: ToolOptions | None = None,
    ) -> OperationResult:
        """Send the items of a session, or the last `limit` items. An exception of the session is in the result."""
        if session is None:
            raise InvalidArgument("session cannot be None")
        read = session.get_items if limit is None else partial(session.get_items, limit)
        return await self._tooling.read_and_send(turn_context, read, options)

    async def send_chat_history_messages(
        self,
        turn_context: object,
        messages: Iterable[TResponseInputItem] | None,
        options: ToolOptions | None = None,
    ) -> OperationResult:
        """Send messages; calls of tools and reasoning among them are left out."""
        return await self._tooling.send(turn_context, messages, options)

    async def _links(
        self,
        agent: Agent[T],
        auth: Authorization | None,
        auth_handler_name: str,
        context: object,
        auth_token: str | None,
    ) -> list[ServerLink[MCPServer]]:
        found = await self._tooling.find(auth, auth_handler_name, context, auth_token)
        for server in found:
            if not server.is_ready:
                self._logger.warning("MCP server %r is left out until somebody connects its account", server.name)
        ready = [server for server in found if server.is_ready]
        return [server_link(server) for server in new_servers(ready, connected_addresses(agent.mcp_servers))]
