"""The platform's servers as OpenAI Agents has them."""

from collections.abc import Iterable

from agents.mcp import MCPServer, MCPServerStreamableHttp, MCPServerStreamableHttpParams

from frontdesk.platform.extensions.connections import Link
from frontdesk.platform.extensions.reading import field
from frontdesk.platform.extensions.tooling import Found

REQUEST_SECONDS = 30.0
# The framework's own limit is 5 s, which a tool that searches a mailbox does not keep.
CALL_SECONDS = 90.0


def link_to(found: Found) -> Link[MCPServer]:
    """A server that is not connected yet, and how to do so."""
    params = MCPServerStreamableHttpParams(url=found.url, headers=dict(found.headers), timeout=REQUEST_SECONDS)
    server = MCPServerStreamableHttp(params, name=found.name, client_session_timeout_seconds=CALL_SECONDS)
    return Link(found.name, server, server.connect, server.cleanup)


def addresses_of(servers: Iterable[MCPServer]) -> set[str]:
    """Where servers stand that an agent has already; those that are programs stand nowhere."""
    found = (field(field(server, "params"), "url") or field(server, "url") for server in servers)
    return {address for address in found if isinstance(address, str)}
