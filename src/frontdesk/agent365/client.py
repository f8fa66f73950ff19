"""Asks the platform for an agent's tool servers and sends it chats, under the SDK's names."""

import asyncio
import json
import logging
import os
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from types import TracebackType
from typing import Self

import anyio.to_thread

from frontdesk.agent365 import headers
from frontdesk.agent365.agent_identity import read_attribute_path
from frontdesk.agent365.environment import (
    get_chat_history_endpoint,
    get_tooling_gateway_for_digital_worker,
    is_development_environment,
)
from frontdesk.agent365.errors import (
    ChatHistoryRefused,
    DiscoveryFailed,
    InvalidArgument,
    OperationError,
    OperationResult,
    PlatformError,
    PlatformTimeout,
    PlatformUnreachable,
    PlatformUnreadable,
)
from frontdesk.agent365.headers import (
    Authorization,
    require_shared_tokens,
    tokens_by_exchange,
    tokens_from_environment,
    with_tokens,
)
from frontdesk.agent365.http_requests import (
    LONGEST_WAIT,
    RETRIES,
    PlatformReply,
    get_with_retries,
    post_with_retries,
    send_request,
)
from frontdesk.agent365.model import ChatHistoryMessage, ChatMessageRequest, MCPServerConfig, ToolOptions
from frontdesk.agent365.servers import log, parse_servers, read_manifest_servers
from frontdesk.mcp_client.http import HttpClient, HttpFailure, proxies_of_environment


def build_chat_request(turn_context: object, messages: Sequence[ChatHistoryMessage] | None) -> ChatMessageRequest:
    """Build the request; where the turn lacks something, the error names the attribute that should hold it."""
    if turn_context is None:
        raise InvalidArgument("turn_context cannot be None")
    if messages is None:
        raise InvalidArgument("chat_history_messages cannot be None")
    if not read_attribute_path(turn_context, "activity"):
        raise InvalidArgument("turn_context.activity cannot be None")
    return ChatMessageRequest.model_validate(
        {
            "conversation_id": _required_value(turn_context, "conversation_id", "conversation", "id"),
            "message_id": _required_value(turn_context, "message_id", "id"),
            "user_message": _required_value(turn_context, "user_message", "text"),
            "chat_history": list(messages),
        }
    )


def _required_value(turn_context: object, what: str, *path: str) -> object:
    found = read_attribute_path(turn_context, "activity", *path)
    if found is None or (isinstance(found, str) and not found.strip()):
        raise InvalidArgument(f"{what} cannot be empty or None (from turn_context.activity.{'.'.join(path)})")
    return found


TIMEOUT_SECONDS = 30.0
# How much of the platform's error text is shown.
SHOWN_BODY = 2_000
OK = 200


class McpToolServerConfigurationService:
    """Calls the platform. It stores nothing about its callers; inside `async with` it keeps connections."""

    def __init__(
        self,
        logger: logging.Logger | None = None,
        *,
        timeout: float = TIMEOUT_SECONDS,
        retries: int = RETRIES,
        environ: Mapping[str, str] = os.environ,
        http: HttpClient | None = None,
    ) -> None:
        self._logger = logger or log
        self._timeout = timeout
        self._retries = retries
        self._environ = environ
        self._http = http
        self._own: HttpClient | None = None
        self._proxies = proxies_of_environment()

    async def __aenter__(self) -> Self:
        if self._http is None:
            self._http = self._own = HttpClient(proxies=self._proxies)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        own, self._own = self._own, None
        if own is not None:
            self._http = None
            await own.close()

    async def list_tool_servers(
        self,
        agentic_app_id: str,
        auth_token: str | None = None,
        options: ToolOptions | None = None,
        authorization: Authorization | None = None,
        auth_handler_name: str | None = None,
        turn_context: object = None,
    ) -> list[MCPServerConfig]:
        """The servers of an agent, each with its token: from the manifest during development, else from the platform.

        With `authorization`, `auth_handler_name` and `turn_context` together, tokens are exchanged, one for each scope.
        Raises a `PlatformError`; an error about an argument is a `ValueError` too.
        """
        servers = await self.servers_of(agentic_app_id, auth_token, options, turn_context)
        if is_development_environment(self._environ):
            return await with_tokens(servers, tokens_from_environment(self._environ, self._logger))
        if authorization is None or auth_handler_name is None or turn_context is None:
            return require_shared_tokens(servers)
        acquire = tokens_by_exchange(authorization, auth_handler_name, turn_context, self._environ, self._timeout)
        return await with_tokens(servers, acquire)

    async def servers_of(
        self,
        agentic_app_id: str,
        auth_token: str | None = None,
        options: ToolOptions | None = None,
        turn_context: object = None,
    ) -> list[MCPServerConfig]:
        """The servers of an agent, without tokens."""
        if is_development_environment(self._environ):
            return await anyio.to_thread.run_sync(read_manifest_servers, self._environ, self._logger)
        if not agentic_app_id:
            raise InvalidArgument("agentic_app_id cannot be empty or None")
        if not auth_token:
            raise InvalidArgument("auth_token cannot be empty or None")
        said = self._prepare_gateway_headers(auth_token, options or ToolOptions(), turn_context)
        url = get_tooling_gateway_for_digital_worker(agentic_app_id, self._environ)
        reply = await self._asked(url, said)
        if reply.status != OK:
            shown = headers.require_sendable_token(auth_token, "auth_token")
            raise DiscoveryFailed(reply.status, reply.text.replace(shown, "[token]")[:SHOWN_BODY])
        return self._read(reply.text)

    async def send_chat_history(
        self,
        turn_context: object,
        chat_history_messages: Sequence[ChatHistoryMessage] | None,
        options: ToolOptions | None = None,
    ) -> OperationResult:
        """Send a turn's message and the messages before it to the platform.

        Raises `ValueError` where the turn lacks something; any later error is in the result.
        """
        chat = build_chat_request(turn_context, chat_history_messages)
        said = headers.chat_headers(options or ToolOptions(), turn_context)
        body = json.dumps(chat.model_dump(by_alias=True, mode="json")).encode()
        try:
            url = get_chat_history_endpoint(self._environ)
            async with asyncio.timeout(self._timeout):
                reply = await self._post(url, said, body)
        except TimeoutError:
            return self._failed(PlatformTimeout(f"The platform took over {self._timeout:g} s for the chat history"))
        except HttpFailure as failure:
            return self._failed(PlatformUnreachable(f"The platform does not answer ({failure}); check its address"))
        except PlatformError as error:
            return self._failed(error)
        if reply.status != OK:
            return self._failed(ChatHistoryRefused(reply.status, reply.text[:SHOWN_BODY]))
        return OperationResult.success()

    def _prepare_gateway_headers(
        self, auth_token: str, options: ToolOptions, turn_context: object = None
    ) -> dict[str, str]:
        agent_id = self._resolve_agent_id_for_header(auth_token, turn_context)
        return headers.gateway_headers(auth_token, options, agent_id, turn_context)

    def _resolve_agent_id_for_header(self, auth_token: str | None, turn_context: object = None) -> str | None:
        return headers.agent_id_for_header(auth_token, turn_context, self._environ)

    async def _asked(self, url: str, headers: Mapping[str, str]) -> PlatformReply:
        try:
            async with asyncio.timeout(self._timeout):
                return await self._get(url, headers)
        except TimeoutError:
            reason = f"no whole answer in {self._timeout:g} s"
            raise PlatformTimeout(f"Failed to read MCP servers from endpoint: {reason}") from None
        except HttpFailure as failure:
            raise PlatformUnreachable(f"Failed to connect to MCP configuration endpoint: {failure}") from None
        except PlatformUnreadable as error:
            raise PlatformUnreadable(f"Failed to read MCP servers from endpoint: {error}") from None

    def _read(self, text: str) -> list[MCPServerConfig]:
        try:
            # An empty answer means no servers, as `null` does.
            document: object = json.loads(text) if text.strip() else None
        except json.JSONDecodeError as error:
            raise PlatformUnreadable(f"Failed to parse MCP server configuration response: {error}") from error
        except RecursionError:
            raise PlatformUnreadable("Failed to read MCP servers from endpoint: it is nested too deeply") from None
        except ValueError as error:
            raise PlatformUnreadable(f"Failed to read MCP servers from endpoint: {error}") from error
        servers = parse_servers(document, self._environ, self._logger)
        if servers is None:
            self._logger.warning("The platform's answer is no list of MCP servers: it counts as none")
        return servers or []

    async def _get(self, url: str, headers: Mapping[str, str]) -> PlatformReply:
        longest = min(LONGEST_WAIT, self._timeout / (self._retries + 1))
        async with self._connections() as http:
            return await get_with_retries(lambda: send_request(http, "GET", url, headers, None), self._retries, longest)

    async def _post(self, url: str, headers: Mapping[str, str], body: bytes) -> PlatformReply:
        async with self._connections() as http:
            return await post_with_retries(lambda: send_request(http, "POST", url, headers, body), self._retries)

    @asynccontextmanager
    async def _connections(self) -> AsyncGenerator[HttpClient]:
        """The kept connections, or new ones for a single request."""
        if self._http is not None:
            yield self._http
            return
        http = HttpClient(proxies=self._proxies)
        try:
            yield http
        finally:
            await http.close()

    def _failed(self, error: PlatformError) -> OperationResult:
        self._logger.error("The chat history was not sent: %s", type(error).__name__)
        return OperationResult.failed(OperationError(error))
