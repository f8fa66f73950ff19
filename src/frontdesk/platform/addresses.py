"""The platform's addresses; whatever is put into one stays one part of its path."""

import os
from collections.abc import Mapping
from urllib.parse import quote

from frontdesk.platform.environment import platform_base_url
from frontdesk.platform.errors import InvalidArgument

CHAT_HISTORY_PATH = "/agents/real-time-threat-protection/chat-message"
LONGEST = 256


def get_tooling_gateway_for_digital_worker(agentic_app_id: str, environ: Mapping[str, str] = os.environ) -> str:
    """Where the servers of an agent are listed."""
    return f"{platform_base_url(environ)}/agents/v2/{_part(agentic_app_id, 'agentic_app_id')}/mcpServers"


def get_mcp_base_url(environ: Mapping[str, str] = os.environ) -> str:
    """The address below which servers stand that name none of their own."""
    return f"{platform_base_url(environ)}/agents/servers"


def build_mcp_server_url(server_name: str, environ: Mapping[str, str] = os.environ) -> str:
    """Where a server stands that names no address of its own."""
    return f"{get_mcp_base_url(environ)}/{_part(server_name, 'the name of an MCP server')}"


def get_chat_history_endpoint(environ: Mapping[str, str] = os.environ) -> str:
    """Where chats are sent."""
    return f"{platform_base_url(environ)}{CHAT_HISTORY_PATH}"


def _part(text: str, what: str) -> str:
    # Whoever keeps ids as UUIDs gives one.
    text = str(text)
    # A part that is only dots would be taken for a way up, encoded or not.
    if not text or not text.strip(".") or len(text) > LONGEST:
        raise InvalidArgument(f"{what} must be 1 to {LONGEST} characters, and not only dots")
    return quote(text, safe="", errors="replace")
