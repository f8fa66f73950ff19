"""The adapter for Agent Framework, with the names of the SDK's own: changing the import is enough."""

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

from agent_framework import (
    AgentSession,
    HistoryProvider,
    Message,
    RawAgent,
    SupportsChatGetResponse,
)

from frontdesk.platform.errors import InvalidArgument
from frontdesk.platform.extensions.agentframework.servers import addresses_of, link_to, require_ready
from frontdesk.platform.extensions.history import with_role
from frontdesk.platform.extensions.registration import Registration
from frontdesk.platform.extensions.tooling import new_ones
from frontdesk.platform.model import ToolOptions
from frontdesk.platform.result import OperationResult
from frontdesk.platform.tokens import Authorization
from frontdesk.platform.turns import said


class McpToolRegistrationService(Registration):
    """Makes agents that have the tools of their servers, and keeps the connections until it is told to clean up.

    Use it in `async with`, or call `cleanup` in the end.
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
        """An agent that has these tools, and those of its servers.

        Servers are connected here, not at the first run as with the SDK, where one that is away fails every run: it is
        left out instead. One that is among the tools already is not added again. Raises `McpConnectionsRequiredError`
        where servers wait for somebody to connect an account.
        """
        found = await self._tooling.find(auth, auth_handler_name, turn_context, auth_token)
        require_ready(found)
        links = [link_to(server) for server in new_ones(found, addresses_of(initial_tools))]
        async with self._connections.opened(links) as servers:
            return RawAgent(chat_client, agent_instructions, tools=[*initial_tools, *servers])

    async def send_chat_history_messages(
        self,
        chat_messages: Iterable[Message] | None,
        turn_context: object,
        tool_options: ToolOptions | None = None,
    ) -> OperationResult:
        """Send messages; those of tools, and as with the SDK those without a role, are left out."""
        if chat_messages is None:
            raise InvalidArgument("chat_messages cannot be None")
        return await self._tooling.send(turn_context, with_role(chat_messages, self._logger), tool_options)

    async def send_chat_history_from_store(
        self,
        chat_message_store: HistoryProvider | None,
        turn_context: object,
        tool_options: ToolOptions | None = None,
        *,
        session: AgentSession | None = None,
    ) -> OperationResult:
        """Send what a store holds of `session`, or of the session that has the conversation's id for its own.

        A store that keeps its messages in the session, as the framework's own does, needs `session`. The SDK names
        neither, which stores do not take. What the store raises is in the result.
        """
        if chat_message_store is None:
            raise InvalidArgument("chat_message_store cannot be None")
        if session is None:
            conversation = said(turn_context, "activity", "conversation", "id")
            session = AgentSession(session_id=conversation if isinstance(conversation, str) else None)
        state: dict[str, Any] = session.state.get(chat_message_store.source_id, {})
        fetch = partial(chat_message_store.get_messages, session.session_id, state=state)

        async def read() -> Iterable[object]:
            return with_role(await fetch(), self._logger)

        return await self._tooling.read_and_send(turn_context, read, tool_options)

    async def cleanup(self) -> None:
        """Close all connections. Never raises, and may be called from any task."""
        await self._connections.close()
