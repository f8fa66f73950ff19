"""Provides what every adapter needs: an agent's servers, connections that outlive the call, and sending chats.

Each connection has its own task, because frameworks require that the task that opened a connection also closes it,
while cleanup may be called from any task.
"""

import asyncio
import inspect
import logging
import os
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from types import TracebackType
from typing import ClassVar, Generic, Self, TypeVar

from frontdesk.agent365.agent_identity import resolve_agent_identity
from frontdesk.agent365.client import TIMEOUT_SECONDS, McpToolServerConfigurationService
from frontdesk.agent365.environment import get_mcp_platform_authentication_scope, is_development_environment
from frontdesk.agent365.errors import InvalidArgument, OperationError, OperationResult
from frontdesk.agent365.extensions.history import convert_history
from frontdesk.agent365.headers import Authorization, exchange_server_token, server_headers
from frontdesk.agent365.model import MCPServerConfig, ToolOptions
from frontdesk.agent365.servers import log
from frontdesk.mcp_client.model import bare_token

CLOSE_SECONDS = 10.0

T = TypeVar("T")
Server_co = TypeVar("Server_co", covariant=True)
ConnectionStep = Callable[[], Awaitable[object]]


@dataclass(frozen=True, slots=True)
class ServerLink(Generic[Server_co]):
    """A server in the framework's form, and how to connect and close it."""

    name: str
    server: Server_co
    connect: ConnectionStep
    close: ConnectionStep


class ServerConnections:
    """The open connections. Each limit in seconds is for one server; all servers are waited for at the same time."""

    def __init__(self, logger: logging.Logger, connect_seconds: float, close_seconds: float = CLOSE_SECONDS) -> None:
        self._logger = logger
        self._connect_seconds = connect_seconds
        self._close_seconds = close_seconds
        self._kept: list[_ConnectionTask] = []

    @asynccontextmanager
    async def open(self, links: Sequence[ServerLink[T]]) -> AsyncGenerator[list[T]]:
        """Connect the servers and give those that could be connected, in their order. They stay open, unless the block
        raises."""
        limits = self._connect_seconds, self._close_seconds
        keeping = [(link, _ConnectionTask(link, *limits, self._logger)) for link in links]
        kept = [each for _, each in keeping]
        self._kept += kept
        try:
            if kept:
                await asyncio.wait([each.connected for each in kept])
            yield [link.server for link, each in keeping if each.has_connected()]
        except BaseException:
            await self._close(kept)
            raise
        self._forget([each for each in kept if not each.has_connected()])

    async def close(self) -> None:
        """Close all open connections. Never raises: a failure to close is logged."""
        await self._close(self._kept)

    async def _close(self, kept: "Sequence[_ConnectionTask]") -> None:
        self._forget(kept)
        leaving = [each.leave() for each in kept]
        if waiting := [task for task in leaving if not task.done()]:
            # Each task has its own limit; a task that does not end even after this time is cancelled and left.
            _, stuck = await asyncio.wait(waiting, timeout=2 * self._close_seconds)
            for task in stuck:
                task.cancel()

    def _forget(self, kept: "Sequence[_ConnectionTask]") -> None:
        self._kept = [each for each in self._kept if each not in kept]


class _ConnectionTask:
    """A task that connects to one server, waits for the signal to leave, and closes the connection."""

    def __init__(
        self, link: ServerLink[object], connect_seconds: float, close_seconds: float, logger: logging.Logger
    ) -> None:
        self._link = link
        self._connect_seconds = connect_seconds
        self._close_seconds = close_seconds
        self._logger = logger
        self._told = asyncio.Event()
        self.connected: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._task = asyncio.create_task(self._run(), name=f"keep {link.name}")
        self._task.add_done_callback(self._ended)

    def has_connected(self) -> bool:
        return self.connected.done() and self.connected.result()

    def leave(self) -> asyncio.Task[None]:
        """Signal the task to leave, and return it; it ends soon."""
        self._told.set()
        if not self.connected.done():
            self._task.cancel()
        return self._task

    async def _run(self) -> None:
        async with asyncio.timeout(self._connect_seconds):
            await self._link.connect()
        self.connected.set_result(True)
        try:
            await self._told.wait()
        finally:
            async with asyncio.timeout(self._close_seconds):
                await self._link.close()

    def _ended(self, task: asyncio.Task[None]) -> None:
        closing = self.connected.done()
        if not closing:
            self.connected.set_result(False)
        problem = None if task.cancelled() else task.exception()
        if problem is not None:
            # Log only the type: the message may contain the request, and the request contains the token.
            words = "could not be closed" if closing else "is left out, as it cannot be connected"
            self._logger.warning("MCP server %r %s: %s", self._link.name, words, type(problem).__name__)


ReadMessages = Callable[[], Awaitable[Iterable[object]] | Iterable[object]]


@dataclass(frozen=True, slots=True)
class ReachableServer:
    """A server that an agent may use, and the headers of every request to it."""

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


class FrameworkTooling:
    """The platform's client for the agents of one framework (`orchestrator`)."""

    def __init__(self, orchestrator: str, logger: logging.Logger, environ: Mapping[str, str] = os.environ) -> None:
        self.service = McpToolServerConfigurationService(logger, environ=environ)
        self._orchestrator = orchestrator
        self._logger = logger
        self._environ = environ

    async def find(
        self, authorization: Authorization | None, auth_handler_name: str, turn_context: object, auth_token: str | None
    ) -> list[ReachableServer]:
        """The servers of an agent. Without a token, one is exchanged first, but never during development."""
        once = None if authorization is None else _CachedExchange(authorization)
        development = is_development_environment(self._environ)
        token = bare_token(auth_token)
        if token is None and not development:
            token = await self._shared_token(once, auth_handler_name, turn_context)
        options = ToolOptions(self._orchestrator)
        agent = "" if development else resolve_agent_identity(turn_context, token)
        servers = await self.service.list_tool_servers(agent, token, options, once, auth_handler_name, turn_context)
        self._logger.info("The agent has %d MCP servers", len(servers))
        known = [each for each in servers if each.url]
        return [
            ReachableServer(each, server_headers(each, token, options, turn_context, self._environ)) for each in known
        ]

    async def send(
        self, turn_context: object, messages: Iterable[object] | None, options: ToolOptions | None
    ) -> OperationResult:
        """Send messages, even an empty list: the platform also reads the turn's own message."""
        if turn_context is None:
            raise InvalidArgument("turn_context cannot be None")
        if messages is None:
            raise InvalidArgument("messages cannot be None")
        return await self.read_and_send(turn_context, lambda: messages, options)

    async def read_and_send(
        self, turn_context: object, read: ReadMessages, options: ToolOptions | None
    ) -> OperationResult:
        """Like `send`, for messages that `read` fetches from their store."""
        if turn_context is None:
            raise InvalidArgument("turn_context cannot be None")
        try:
            history = convert_history(await _fetch_messages(read), datetime.now(UTC), self._logger)
        # The store and its messages are foreign code: whatever they raise goes into the result.
        except Exception as error:  # noqa: BLE001
            self._logger.error("The chat history could not be read: %s", type(error).__name__)  # noqa: TRY400
            return OperationResult.failed(OperationError(error))
        return await self.service.send_chat_history(turn_context, history, self._with_orchestrator(options))

    async def _shared_token(self, authorization: Authorization | None, handler: str, turn_context: object) -> str:
        if authorization is None:
            raise InvalidArgument("auth_token cannot be empty or None without auth, which could exchange one")
        [scope] = get_mcp_platform_authentication_scope(self._environ)
        return await exchange_server_token(authorization, handler, turn_context, "(all)", scope, TIMEOUT_SECONDS)

    def _with_orchestrator(self, options: ToolOptions | None) -> ToolOptions:
        """A copy of the options that names the framework, unless the caller's options name one."""
        given = options or ToolOptions()
        return replace(given, orchestrator_name=given.orchestrator_name or self._orchestrator)


class _CachedExchange:
    """Exchanges each scope once: the token for the platform is also the token of V1 servers."""

    def __init__(self, authorization: Authorization) -> None:
        self._authorization = authorization
        self._known: dict[str, object] = {}

    async def exchange_token(self, context: object, scopes: list[str], auth_handler_id: str, /) -> object:
        asked = " ".join(scopes)
        if asked not in self._known:
            self._known[asked] = await self._authorization.exchange_token(context, scopes, auth_handler_id)
        return self._known[asked]


def new_servers(found: Iterable[ReachableServer], taken: AbstractSet[str]) -> list[ReachableServer]:
    """The servers whose addresses are not taken, each address once."""
    first: dict[str, ReachableServer] = {}
    for server in found:
        if server.url not in taken:
            first.setdefault(server.url, server)
    return list(first.values())


async def _fetch_messages(read: ReadMessages) -> Iterable[object]:
    async with asyncio.timeout(TIMEOUT_SECONDS):
        messages = read()
        return await messages if inspect.isawaitable(messages) else messages


class McpToolRegistrationBase:
    """Keeps connections until the end of `async with`, or until cleanup."""

    orchestrator: ClassVar[str]

    def __init__(
        self,
        logger: logging.Logger | None = None,
        *,
        connect_timeout: float = TIMEOUT_SECONDS,
        environ: Mapping[str, str] = os.environ,
    ) -> None:
        self._logger = logger or log
        self._tooling = FrameworkTooling(self.orchestrator, self._logger, environ)
        self._connections = ServerConnections(self._logger, connect_timeout)
        self.config_service = self._tooling.service

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._connections.close()
