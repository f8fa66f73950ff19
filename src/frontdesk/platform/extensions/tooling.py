"""What every adapter does with the platform: find the servers of an agent, and send what was said."""

import asyncio
import inspect
import logging
import os
from collections.abc import Awaitable, Callable, Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from frontdesk.loop.mcp.model import bare_token
from frontdesk.platform.environment import get_mcp_platform_authentication_scope, is_development_environment
from frontdesk.platform.errors import InvalidArgument
from frontdesk.platform.extensions.history import to_history
from frontdesk.platform.headers import server_headers
from frontdesk.platform.model import MCPServerConfig, ToolOptions
from frontdesk.platform.result import OperationError, OperationResult
from frontdesk.platform.service import TIMEOUT_SECONDS, McpToolServerConfigurationService
from frontdesk.platform.tokens import Authorization, exchanged
from frontdesk.platform.who import resolve_agent_identity

Read = Callable[[], Awaitable[Iterable[object]] | Iterable[object]]


@dataclass(frozen=True, slots=True)
class Found:
    """A server that an agent may use, and what every request to it carries."""

    config: MCPServerConfig
    headers: Mapping[str, str] = field(repr=False)

    @property
    def name(self) -> str:
        return self.config.mcp_server_name

    @property
    def url(self) -> str:
        return self.config.url or ""

    @property
    def is_ready(self) -> bool:
        return self.config.is_ready


class Tooling:
    """The platform, as the agents of one framework (`orchestrator`) ask it."""

    def __init__(self, orchestrator: str, logger: logging.Logger, environ: Mapping[str, str] = os.environ) -> None:
        self.service = McpToolServerConfigurationService(logger, environ=environ)
        self._orchestrator = orchestrator
        self._logger = logger
        self._environ = environ

    async def find(
        self, authorization: Authorization | None, auth_handler_name: str, turn_context: object, auth_token: str | None
    ) -> list[Found]:
        """The servers of an agent. Without a token one is exchanged first, but never while developing."""
        once = None if authorization is None else _Once(authorization)
        development = is_development_environment(self._environ)
        token = bare_token(auth_token)
        if token is None and not development:
            token = await self._shared_token(once, auth_handler_name, turn_context)
        options = ToolOptions(self._orchestrator)
        agent = "" if development else resolve_agent_identity(turn_context, token)
        servers = await self.service.list_tool_servers(agent, token, options, once, auth_handler_name, turn_context)
        self._logger.info("The agent has %d MCP servers", len(servers))
        known = [each for each in servers if each.url]
        return [Found(each, server_headers(each, token, options, turn_context, self._environ)) for each in known]

    async def send(
        self, turn_context: object, messages: Iterable[object] | None, options: ToolOptions | None
    ) -> OperationResult:
        """Send what was said, even if that is nothing: the platform looks at the turn's own message too."""
        if turn_context is None:
            raise InvalidArgument("turn_context cannot be None")
        if messages is None:
            raise InvalidArgument("messages cannot be None")
        return await self.read_and_send(turn_context, lambda: messages, options)

    async def read_and_send(self, turn_context: object, read: Read, options: ToolOptions | None) -> OperationResult:
        """As `send`, of messages that have to be fetched from where they are kept."""
        if turn_context is None:
            raise InvalidArgument("turn_context cannot be None")
        try:
            history = to_history(await _fetched(read), datetime.now(UTC), self._logger)
        # What keeps the messages, and what they are, is somebody else's code: whatever it raises is for the result.
        except Exception as error:  # noqa: BLE001
            self._logger.error("The chat history could not be read: %s", type(error).__name__)  # noqa: TRY400
            return OperationResult.failed(OperationError(error))
        return await self.service.send_chat_history(turn_context, history, self._named(options))

    async def _shared_token(self, authorization: Authorization | None, handler: str, turn_context: object) -> str:
        if authorization is None:
            raise InvalidArgument("auth_token cannot be empty or None without auth, which could exchange one")
        [scope] = get_mcp_platform_authentication_scope(self._environ)
        return await exchanged(authorization, handler, turn_context, "(all)", scope, TIMEOUT_SECONDS)

    def _named(self, options: ToolOptions | None) -> ToolOptions:
        """A copy that names the framework, where the caller's own options name none."""
        given = options or ToolOptions()
        return replace(given, orchestrator_name=given.orchestrator_name or self._orchestrator)


class _Once:
    """Exchanges each scope once: the token to ask the platform with is that of servers of the first kind too."""

    def __init__(self, authorization: Authorization) -> None:
        self._authorization = authorization
        self._known: dict[str, object] = {}

    async def exchange_token(self, context: object, scopes: list[str], auth_handler_id: str, /) -> object:
        asked = " ".join(scopes)
        if asked not in self._known:
            self._known[asked] = await self._authorization.exchange_token(context, scopes, auth_handler_id)
        return self._known[asked]


def new_ones(found: Iterable[Found], taken: AbstractSet[str]) -> list[Found]:
    """Those at addresses that are not taken, each address once."""
    first: dict[str, Found] = {}
    for server in found:
        if server.url not in taken:
            first.setdefault(server.url, server)
    return list(first.values())


async def _fetched(read: Read) -> Iterable[object]:
    async with asyncio.timeout(TIMEOUT_SECONDS):
        messages = read()
        return await messages if inspect.isawaitable(messages) else messages
