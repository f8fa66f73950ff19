"""Gives each server the token that it wants: one exchange a scope, or what a variable holds while developing."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import Protocol

from frontdesk.loop.mcp.model import bare_token
from frontdesk.loop.text import visible
from frontdesk.platform.audiences import is_v2_server, resolve_token_scope_for_server
from frontdesk.platform.constants import Constants
from frontdesk.platform.errors import PlatformTimeout, TokenContextMissing, TokenNotObtained
from frontdesk.platform.headers import bearer, sendable
from frontdesk.platform.model import MCPServerConfig

VARIABLE = "BEARER_TOKEN"

Acquire = Callable[[MCPServerConfig], Awaitable[str | None]]


class Authorization(Protocol):
    """What exchanges tokens: the host's own class has this method, and so may anybody's."""

    async def exchange_token(self, context: object, scopes: list[str], auth_handler_id: str, /) -> object:
        """Something with a `token`, or None."""
        ...


async def with_tokens(servers: Sequence[MCPServerConfig], acquire: Acquire) -> list[MCPServerConfig]:
    """Copies of the servers, each with its token among its headers."""
    return [_with(server, await acquire(server)) for server in servers]


def of_environment(environ: Mapping[str, str], logger: logging.Logger) -> Acquire:
    """Tokens from variables: `BEARER_TOKEN_<NAME>` for one server, `BEARER_TOKEN` for those without."""

    async def acquire(server: MCPServerConfig) -> str | None:
        name, token = development_token(server.mcp_server_name, environ)
        if token is None:
            return None
        if name == VARIABLE and is_v2_server(server):
            logger.warning(
                "MCP server %r wants a token for %s, and only %s is set: expect HTTP 401, and set %s",
                server.mcp_server_name,
                visible(resolve_token_scope_for_server(server, environ)),
                VARIABLE,
                visible(own_variable(server.mcp_server_name)),
            )
        return sendable(token, visible(name))

    return acquire


def development_token(server_name: str, environ: Mapping[str, str]) -> tuple[str, str | None]:
    """The variable that counts for a server, and the bare token in it."""
    own = own_variable(server_name)
    name = own if environ.get(own) else VARIABLE
    return name, bare_token(environ.get(name))


def own_variable(server_name: str) -> str:
    return f"{VARIABLE}_{server_name.upper()}"


def by_exchange(
    authorization: Authorization, handler: str, turn_context: object, environ: Mapping[str, str], seconds: float
) -> Acquire:
    """Tokens in exchange for the turn's own: one request a scope, whatever number of servers share it."""
    known: dict[str, str] = {}

    async def acquire(server: MCPServerConfig) -> str:
        scope = resolve_token_scope_for_server(server, environ)
        if scope not in known:
            known[scope] = await exchanged(authorization, handler, turn_context, server.mcp_server_name, scope, seconds)
        return known[scope]

    return acquire


async def exchanged(
    authorization: Authorization, handler: str, turn_context: object, server: str, scope: str, seconds: float
) -> str:
    """One token for a scope; `server` is who it is for, in words."""
    try:
        async with asyncio.timeout(seconds):
            result = await authorization.exchange_token(turn_context, [scope], handler)
    except TimeoutError:
        what = visible(f"The token for MCP server '{server}' (scope: {scope})")
        raise PlatformTimeout(f"{what} took over {seconds:g} s") from None
    token = getattr(result, "token", None)
    bare = bare_token(token) if isinstance(token, str) else None
    if bare is None:
        raise TokenNotObtained(server, scope)
    return sendable(bare, f"the token for MCP server '{visible(server)}'")


def without_context(servers: Sequence[MCPServerConfig]) -> list[MCPServerConfig]:
    """The servers as they are, which is only good for those that share a token."""
    wanting = [server.mcp_server_name for server in servers if is_v2_server(server)]
    if wanting:
        raise TokenContextMissing(wanting)
    return list(servers)


def _with(server: MCPServerConfig, token: str | None) -> MCPServerConfig:
    headers = dict(server.headers or {})
    if token is not None:
        headers = {name: value for name, value in headers.items() if name.lower() != "authorization"}
        headers[Constants.Headers.AUTHORIZATION] = bearer(token)
    return replace(server, headers=headers or None)
