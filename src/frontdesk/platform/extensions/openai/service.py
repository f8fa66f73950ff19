"""The adapter for OpenAI Agents, with the names of the SDK's own: changing the import is enough."""

from collections.abc import Iterable
from functools import partial
from typing import TypeVar

from agents import Agent
from agents.items import TResponseInputItem
from agents.mcp import MCPServer
from agents.memory import Session

from frontdesk.platform.errors import InvalidArgument
from frontdesk.platform.extensions.connections import Link
from frontdesk.platform.extensions.openai.servers import addresses_of, link_to
from frontdesk.platform.extensions.registration import Registration
from frontdesk.platform.extensions.tooling import new_ones
from frontdesk.platform.model import ToolOptions
from frontdesk.platform.result import OperationResult
from frontdesk.platform.tokens import Authorization

T = TypeVar("T")


class McpToolRegistrationService(Registration):
    """Gives agents the tools of their servers, and keeps the connections until it is told to clean up.

    Use it in `async with`, or call `cleanup_all_servers` in the end.
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
        """A copy of the agent that has its servers too, or the agent itself where there is none to add.

        The copy keeps all that the agent has. The SDK builds an agent from a few of its fields, and so loses handoffs,
        guardrails, the type of its output, hooks and more. A server that the agent has already is not added again, and
        one that cannot be connected is left out.
        """
        links = await self._links(agent, auth, auth_handler_name, context, auth_token)
        async with self._connections.opened(links) as servers:
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
        """Send what a session holds, or its last `limit` items. What it raises is in the result."""
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
        """Send messages; calls of tools and thoughts among them are left out."""
        return await self._tooling.send(turn_context, messages, options)

    async def _links(
        self,
        agent: Agent[T],
        auth: Authorization | None,
        auth_handler_name: str,
        context: object,
        auth_token: str | None,
    ) -> list[Link[MCPServer]]:
        found = await self._tooling.find(auth, auth_handler_name, context, auth_token)
        for server in found:
            if not server.is_ready:
                self._logger.warning("MCP server %r is left out until somebody connects its account", server.name)
        ready = [server for server in found if server.is_ready]
        return [link_to(server) for server in new_ones(ready, addresses_of(agent.mcp_servers))]
