"""Builds the headers of requests, and gets the token that each server needs."""

import asyncio
import logging
import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import Protocol
from uuid import uuid4

from frontdesk.agent365.agent_identity import (
    activity_id,
    blueprint_id,
    channel_names,
    get_application_name,
    get_user_agent_header,
)
from frontdesk.agent365.environment import Constants
from frontdesk.agent365.errors import InvalidArgument, PlatformTimeout, TokenContextMissing, TokenNotObtained
from frontdesk.agent365.model import MCPServerConfig, ToolOptions, is_v2_server, resolve_token_scope_for_server
from frontdesk.identity.outbound import agent_id_from_token, header_value
from frontdesk.mcp_client.model import HEADER_VALUE, bare_token
from frontdesk.text import escape_invisible

HeaderNames = Constants.Headers


def gateway_headers(
    token: str, options: ToolOptions, agent_id: str | None, turn_context: object = None
) -> dict[str, str]:
    """The headers of the request that lists servers."""
    headers = {
        HeaderNames.AUTHORIZATION: bearer_header(require_sendable_token(token, "auth_token")),
        HeaderNames.USER_AGENT: get_user_agent_header(options.orchestrator_name),
        HeaderNames.AGENT_ID: agent_id,
        HeaderNames.CORRELATION_ID: activity_id(turn_context) or str(uuid4()),
        **_channel_headers(turn_context),
    }
    return {name: value for name, value in headers.items() if value}


def chat_headers(options: ToolOptions, turn_context: object) -> dict[str, str]:
    """The headers of the request that sends a chat: it carries no token, and so does not name the agent."""
    headers = {
        HeaderNames.USER_AGENT: get_user_agent_header(options.orchestrator_name),
        "Content-Type": "application/json",
        **_channel_headers(turn_context),
    }
    return {name: value for name, value in headers.items() if value}


def server_headers(
    server: MCPServerConfig,
    auth_token: str | None,
    options: ToolOptions,
    turn_context: object = None,
    environ: Mapping[str, str] = os.environ,
) -> dict[str, str]:
    """The headers of all requests to one server: with its own token, else the shared one."""
    own = dict(server.headers or {})
    shown = next((value for name, value in own.items() if name.lower() == "authorization"), None) or auth_token
    kept = {name: value for name, value in own.items() if value and name.lower() != "authorization"}
    headers = {
        HeaderNames.USER_AGENT: get_user_agent_header(options.orchestrator_name),
        **_channel_headers(turn_context),
    }
    if bare_token(shown):
        token = require_sendable_token(shown, f"the token for MCP server '{escape_invisible(server.mcp_server_name)}'")
        headers[HeaderNames.AUTHORIZATION] = bearer_header(token)
        headers[HeaderNames.AGENT_ID] = agent_id_for_header(token, turn_context, environ)
    # A name that stands twice, in any case, would give two headers.
    said = {name.lower() for name in kept}
    return kept | {name: value for name, value in headers.items() if value and name.lower() not in said}


def agent_id_for_header(
    token: str | None, turn_context: object = None, environ: Mapping[str, str] = os.environ
) -> str | None:
    """The best known id of the caller: the turn's blueprint, the token's claims, or the application's name."""
    found = blueprint_id(turn_context) or agent_id_from_token(bare_token(token))
    return found or header_value(get_application_name(environ) or "") or None


def require_sendable_token(token: str | None, what: str) -> str:
    """The token without its scheme; the error says why a token cannot be sent, and never quotes it."""
    bare = bare_token(token)
    if bare is None:
        raise InvalidArgument(f"{what} cannot be empty or None")
    if not HEADER_VALUE.fullmatch(bare):
        raise InvalidArgument(f"{what} holds characters that no header can; check where it comes from")
    return bare


def bearer_header(token: str) -> str:
    return f"{HeaderNames.BEARER_PREFIX} {token}"


def _channel_headers(turn_context: object) -> dict[str, str | None]:
    channel, sub_channel = channel_names(turn_context)
    return {HeaderNames.CHANNEL_ID: channel, HeaderNames.SUBCHANNEL_ID: sub_channel}


TOKEN_VARIABLE = "BEARER_TOKEN"  # noqa: S105

AcquireToken = Callable[[MCPServerConfig], Awaitable[str | None]]


class Authorization(Protocol):
    """Exchanges tokens: the host's own class has this method, and any other class may have it."""

    async def exchange_token(self, context: object, scopes: list[str], auth_handler_id: str, /) -> object:
        """Return an object with a `token`, or None."""
        ...


async def with_tokens(servers: Sequence[MCPServerConfig], acquire: AcquireToken) -> list[MCPServerConfig]:
    """Copies of the servers, each with its token among its headers."""
    return [_with_token(server, await acquire(server)) for server in servers]


def tokens_from_environment(environ: Mapping[str, str], logger: logging.Logger) -> AcquireToken:
    """Tokens from variables: `BEARER_TOKEN_<NAME>` for one server, `BEARER_TOKEN` for those without."""

    async def acquire(server: MCPServerConfig) -> str | None:
        name, token = development_token(server.mcp_server_name, environ)
        if token is None:
            return None
        if name == TOKEN_VARIABLE and is_v2_server(server):
            logger.warning(
                "MCP server %r wants a token for %s, and only %s is set: expect HTTP 401, and set %s",
                server.mcp_server_name,
                escape_invisible(resolve_token_scope_for_server(server, environ)),
                TOKEN_VARIABLE,
                escape_invisible(token_variable_of(server.mcp_server_name)),
            )
        return require_sendable_token(token, escape_invisible(name))

    return acquire


def development_token(server_name: str, environ: Mapping[str, str]) -> tuple[str, str | None]:
    """The variable that counts for a server, and its token without the scheme."""
    own = token_variable_of(server_name)
    name = own if environ.get(own) else TOKEN_VARIABLE
    return name, bare_token(environ.get(name))


def token_variable_of(server_name: str) -> str:
    return f"{TOKEN_VARIABLE}_{server_name.upper()}"


def tokens_by_exchange(
    authorization: Authorization, handler: str, turn_context: object, environ: Mapping[str, str], seconds: float
) -> AcquireToken:
    """Exchange the turn's own token: one request for each scope, however many servers share it."""
    known: dict[str, str] = {}

    async def acquire(server: MCPServerConfig) -> str:
        scope = resolve_token_scope_for_server(server, environ)
        if scope not in known:
            known[scope] = await exchange_server_token(
                authorization, handler, turn_context, server.mcp_server_name, scope, seconds
            )
        return known[scope]

    return acquire


async def exchange_server_token(
    authorization: Authorization, handler: str, turn_context: object, server: str, scope: str, seconds: float
) -> str:
    """Exchange one token for a scope; `server` names the server in messages."""
    try:
        async with asyncio.timeout(seconds):
            result = await authorization.exchange_token(turn_context, [scope], handler)
    except TimeoutError:
        what = escape_invisible(f"The token for MCP server '{server}' (scope: {scope})")
        raise PlatformTimeout(f"{what} took over {seconds:g} s") from None
    token = getattr(result, "token", None)
    bare = bare_token(token) if isinstance(token, str) else None
    if bare is None:
        raise TokenNotObtained(server, scope)
    return require_sendable_token(bare, f"the token for MCP server '{escape_invisible(server)}'")


def require_shared_tokens(servers: Sequence[MCPServerConfig]) -> list[MCPServerConfig]:
    """The unchanged servers; this works only for servers that share a token."""
    wanting = [server.mcp_server_name for server in servers if is_v2_server(server)]
    if wanting:
        raise TokenContextMissing(wanting)
    return list(servers)


def _with_token(server: MCPServerConfig, token: str | None) -> MCPServerConfig:
    headers = dict(server.headers or {})
    if token is not None:
        headers = {name: value for name, value in headers.items() if name.lower() != "authorization"}
        headers[Constants.Headers.AUTHORIZATION] = bearer_header(token)
    return replace(server, headers=headers or None)
