"""Gives the platform's tools to agents of Microsoft's Agent Framework, with the names of the SDK's own extension."""

from importlib import import_module

try:
    import_module("agent_framework")
    # Without this package the framework connects to no MCP server, but does not install it.
    import_module("tenacity")
except ImportError as missing:
    raise ImportError(
        "Tools for Agent Framework need its packages: pip install 'frontdesk[agent-framework]'", name=missing.name
    ) from missing

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

import httpx2
from agent_framework import (
    AgentSession,
    HistoryProvider,
    MCPStreamableHTTPTool,
    Message,
    RawAgent,
    SupportsChatGetResponse,
)

from frontdesk.agent365.agent_identity import read_attribute_path
from frontdesk.agent365.errors import InvalidArgument, McpConnectionsRequiredError, OperationResult
from frontdesk.agent365.extensions.adapter import McpToolRegistrationBase, ReachableServer, ServerLink, new_servers
from frontdesk.agent365.extensions.history import messages_with_role, read_field
from frontdesk.agent365.headers import Authorization
from frontdesk.agent365.model import ToolOptions

__all__ = ["McpToolRegistrationService"]

REQUEST_SECONDS = 30.0
CALL_SECONDS = 90


def require_ready(found: Sequence[ReachableServer]) -> None:
    """Raise where servers wait for a person to connect an account."""
    waiting = [server.config for server in found if not server.is_ready]
    if waiting:
        where = next((server.missing_connections_url for server in waiting if server.missing_connections_url), None)
        names = [server.mcp_server_name for server in waiting]
        raise McpConnectionsRequiredError(where, waiting[0].connectivity_status or "", names)


def server_link(server: ReachableServer) -> ServerLink[MCPStreamableHTTPTool]:
    """A server that is not connected yet, and the function that connects it."""
    # No redirects: the token is for this server only. `CALL_SECONDS` limits the wait between two events of a
    # connection.
    client = httpx2.AsyncClient(timeout=httpx2.Timeout(REQUEST_SECONDS, read=None))
    tool = MCPStreamableHTTPTool(
        server.name,
        server.url,
        description=f"Tools of {server.name}",
        request_timeout=CALL_SECONDS,
        http_client=client,
        static_headers=server.headers,
    )

    async def close() -> None:
        # A request that hangs ends with its client; otherwise the framework would wait for it before it closes
        # anything.
        await client.aclose()
        await tool.close()

    async def connect() -> None:
        try:
            await tool.connect()
        except BaseException:
            await close()
            raise

    async def close_in_order() -> None:
        try:
            await tool.close()
        finally:
            await client.aclose()

    return ServerLink(server.name, tool, connect, close_in_order)


def connected_addresses(tools: Iterable[object]) -> set[str]:
    """The addresses of servers that are already among the tools."""
    found = (read_field(tool, "url") for tool in tools if isinstance(tool, MCPStreamableHTTPTool))
    return {address for address in found if isinstance(address, str)}


class McpToolRegistrationService(McpToolRegistrationBase):
    """Makes agents with the tools of their servers, and keeps the connections until cleanup.

    Use it in `async with`, or call `cleanup` at the end.
    """

    orchestrator = "AgentFramework"

    async def add_tool_servers_to_agent(
        self,
        chat_client: SupportsChatGetResponse[Any],
        agent_instructions: str | None,
        initial_tools: Sequence[object],
        auth: Authorization | None,
        auth_handler_name: str,
        turn_context: object,
        auth_token: str | None = None,
    ) -> RawAgent[Any]:
        """An agent that has the given tools and those of its servers.

        Servers are connected here. The SDK connects them at the first run, so that one unavailable server fails every
        run; here such a server is left out. A server that is already among the tools is not added again. Raises
        `McpConnectionsRequiredError` where servers wait for a person to connect an account.
        """
        found = await self._tooling.find(auth, auth_handler_name, turn_context, auth_token)
        require_ready(found)
        links = [server_link(server) for server in new_servers(found, connected_addresses(initial_tools))]
        async with self._connections.open(links) as servers:
            return RawAgent(chat_client, agent_instructions, tools=[*initial_tools, *servers])

    async def send_chat_history_messages(
        self,
        chat_messages: Iterable[Message] | None,
        turn_context: object,
        tool_options: ToolOptions | None = None,
    ) -> OperationResult:
        """Send messages; messages of tools and, as in the SDK, messages without a role are left out."""
        if chat_messages is None:
            raise InvalidArgument("chat_messages cannot be None")
        return await self._tooling.send(turn_context, messages_with_role(chat_messages, self._logger), tool_options)

    async def send_chat_history_from_store(
        self,
        chat_message_store: HistoryProvider | None,
        turn_context: object,
        tool_options: ToolOptions | None = None,
        *,
        session: AgentSession | None = None,
    ) -> OperationResult:
        """Send the messages of `session` in a store, or of the session whose id is the conversation's id.

        A store that keeps its messages in the session, as the framework's own does, needs `session`. The SDK passes
        neither, and stores do not accept that. An exception of the store is in the result.
        """
        if chat_message_store is None:
            raise InvalidArgument("chat_message_store cannot be None")
        if session is None:
            conversation = read_attribute_path(turn_context, "activity", "conversation", "id")
            session = AgentSession(session_id=conversation if isinstance(conversation, str) else None)
        state: dict[str, Any] = session.state.get(chat_message_store.source_id, {})
        fetch = partial(chat_message_store.get_messages, session.session_id, state=state)

        async def read() -> Iterable[object]:
            return messages_with_role(await fetch(), self._logger)

        return await self._tooling.read_and_send(turn_context, read, tool_options)

    async def cleanup(self) -> None:
        """Close all connections. Never raises, and may be called from any task."""
        await self._connections.close()
