"""The platform's servers as Agent Framework has them, and which of them somebody has to look after first."""

from collections.abc import Iterable, Sequence

import httpx2
from agent_framework import MCPStreamableHTTPTool

from frontdesk.platform.errors import McpConnectionsRequiredError
from frontdesk.platform.extensions.connections import Link
from frontdesk.platform.extensions.reading import field
from frontdesk.platform.extensions.tooling import Found

REQUEST_SECONDS = 30.0
CALL_SECONDS = 90


def require_ready(found: Sequence[Found]) -> None:
    """Raise where servers wait for somebody to connect an account."""
    waiting = [server.config for server in found if not server.is_ready]
    if waiting:
        where = next((server.missing_connections_url for server in waiting if server.missing_connections_url), None)
        names = [server.mcp_server_name for server in waiting]
        raise McpConnectionsRequiredError(where, waiting[0].connectivity_status or "", names)


def link_to(found: Found) -> Link[MCPStreamableHTTPTool]:
    """A server that is not connected yet, and how to do so."""
    # No redirects: the token is for this server. What a connection waits for between two events is up to CALL_SECONDS.
    client = httpx2.AsyncClient(timeout=httpx2.Timeout(REQUEST_SECONDS, read=None))
    tool = MCPStreamableHTTPTool(
        found.name,
        found.url,
        description=f"Tools of {found.name}",
        request_timeout=CALL_SECONDS,
        http_client=client,
        static_headers=found.headers,
    )

    async def close() -> None:
        # A request that hangs ends with its client; else the framework would wait for it before it closes anything.
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

    return Link(found.name, tool, connect, close_in_order)


def addresses_of(tools: Iterable[object]) -> set[str]:
    """Where servers stand that are among the tools already."""
    found = (field(tool, "url") for tool in tools if isinstance(tool, MCPStreamableHTTPTool))
    return {address for address in found if isinstance(address, str)}
