"""Asks the servers of a manifest for their tools, several at once, each within its time."""

from collections.abc import Mapping, Sequence
from http import HTTPStatus
from urllib.parse import urlsplit

import anyio

from frontdesk.errors import FrontdeskError
from frontdesk.loop.mcp.model import Broken, McpServer, Unauthorized
from frontdesk.loop.mcp.pool import McpClients
from frontdesk.platform.addresses import build_mcp_server_url
from frontdesk.platform.audiences import resolve_token_scope_for_server
from frontdesk.platform.declared.model import DeclaredServer
from frontdesk.platform.headers import server_headers
from frontdesk.platform.model import MCPServerConfig, ToolOptions
from frontdesk.platform.tokens import VARIABLE, development_token, own_variable
from frontdesk.platform.verifying.comparing import compare
from frontdesk.platform.verifying.model import Verified

AT_ONCE = 8
SECONDS = 30.0


async def verify(
    servers: Sequence[DeclaredServer], environ: Mapping[str, str], seconds: float = SECONDS
) -> Sequence[Verified]:
    """What became of each server, in their order; tokens are those of development."""
    found: dict[int, Verified] = {}
    turn = anyio.Semaphore(AT_ONCE)
    clients = McpClients(timeout=seconds)

    async def one(number: int, server: DeclaredServer) -> None:
        async with turn:
            found[number] = await _verify(server, environ, clients)

    try:
        async with anyio.create_task_group() as asking:
            for number, server in enumerate(servers):
                asking.start_soon(one, number, server)
    finally:
        await clients.close()
    return [found[number] for number in sorted(found)]


async def _verify(server: DeclaredServer, environ: Mapping[str, str], clients: McpClients) -> Verified:
    url = server.url or ""
    _, token = development_token(server.name, environ)
    try:
        url = url or build_mcp_server_url(server.name, environ)
        known = MCPServerConfig(server.name, server.unique_name, url, None, server.audience, server.scope)
        headers = server_headers(known, token, ToolOptions(), None, environ)
        live = await clients.client(McpServer(server.name, url, headers), None, None).tools()
    except FrontdeskError as error:
        told = str(error).replace(token, "[token]") if token else str(error)
        return Verified(server.name, shown(url), failure=f"{told}{_advice(server, error, environ)}")
    return Verified(server.name, shown(url), compare(server.tools or (), live))


def _advice(server: DeclaredServer, error: FrontdeskError, environ: Mapping[str, str]) -> str:
    """What to set, where the server wants another token than it got."""
    forbidden = isinstance(error, Broken) and error.status == HTTPStatus.FORBIDDEN
    if not forbidden and not isinstance(error, Unauthorized):
        return ""
    config = MCPServerConfig(server.name, server.unique_name, audience=server.audience, scope=server.scope)
    scope, own = resolve_token_scope_for_server(config, environ), own_variable(server.name)
    variable, token = development_token(server.name, environ)
    if token is None:
        return f"; no token was sent: set {own} or {VARIABLE} to one for {scope}"
    return f"; the token of {variable} was sent: set {own} to one for {scope}"


def shown(url: str) -> str:
    """An address without what may be secret in it."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"
