"""Which token a server wants: the one that all of the first kind share (V1), or one for its own audience (V2)."""

import os
from collections.abc import Mapping

from frontdesk.platform.constants import SHARED_APP_ID, SHARED_APP_URI
from frontdesk.platform.environment import get_mcp_platform_authentication_scope
from frontdesk.platform.model import MCPServerConfig

SHARED = frozenset({"default", SHARED_APP_ID, SHARED_APP_URI})


def is_v2_server(server: MCPServerConfig) -> bool:
    """Whether a server has an audience of its own."""
    return own_audience(server) is not None


def resolve_token_scope_for_server(server: MCPServerConfig, environ: Mapping[str, str] = os.environ) -> str:
    """The scope to ask a token for."""
    audience = own_audience(server)
    if audience is None:
        return get_mcp_platform_authentication_scope(environ)[0]
    return f"{audience}/{server.scope or '.default'}"


def own_audience(server: MCPServerConfig) -> str | None:
    """The audience that is a server's own, as scopes spell it; None for the shared one."""
    if server.audience is None:
        return None
    audience = server.audience.strip().lower()
    return None if audience in SHARED else audience
