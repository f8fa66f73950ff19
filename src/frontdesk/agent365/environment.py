"""Reads the platform's variables and builds its addresses; a value in an address always stays one part of the path."""

import os
import re
from collections.abc import Mapping
from urllib.parse import quote

from frontdesk.agent365.errors import InvalidArgument
from frontdesk.mcp_client.model import is_plain_address


class Constants:
    """Constants, grouped as in the SDK."""

    class Headers:
        """Names of headers, and the scheme before a token."""

        AUTHORIZATION = "Authorization"
        BEARER_PREFIX = "Bearer"
        USER_AGENT = "User-Agent"
        AGENT_ID = "x-ms-agentid"
        CHANNEL_ID = "x-ms-channel-id"
        SUBCHANNEL_ID = "x-ms-subchannel-id"
        CORRELATION_ID = "x-ms-correlation-id"


HEADER_AGENT_ID = Constants.Headers.AGENT_ID
HEADER_CHANNEL_ID = Constants.Headers.CHANNEL_ID

# The application that all V1 servers share; its tokens are valid for discovery too.
SHARED_APP_ID = "ea9ffc3e-8a23-4a7d-836d-234d7c7565c1"
SHARED_APP_URI = f"api://{SHARED_APP_ID}"
MANIFEST_NAME = "ToolingManifest.json"

BASE_URL = "https://agent365.svc.cloud.microsoft"
SHARED_SCOPE = f"{SHARED_APP_ID}/.default"
OBSERVABILITY_SCOPE = "api://9b975845-388f-4429-889e-eab1ef63949c/.default"
# The first variable that has a value counts.
ENVIRONMENT_VARIABLES = ("PYTHON_ENVIRONMENT", "ENVIRONMENT", "ASPNETCORE_ENVIRONMENT", "DOTNET_ENVIRONMENT")
DEVELOPMENT = "development"
# An address is one line of visible characters; other rules are checked when it is used.
VISIBLE_ASCII = re.compile(r"[!-~]{1,2000}")


def is_development_environment(environ: Mapping[str, str] = os.environ) -> bool:
    """Whether servers come from the manifest and tokens from variables; true unless the environment says otherwise."""
    said = next((environ[name] for name in ENVIRONMENT_VARIABLES if environ.get(name)), DEVELOPMENT)
    return said.lower() == DEVELOPMENT


def platform_base_url(environ: Mapping[str, str] = os.environ) -> str:
    """The address of the platform, without a slash at the end."""
    said = environ.get("MCP_PLATFORM_ENDPOINT", "").strip().rstrip("/") or BASE_URL
    if not VISIBLE_ASCII.fullmatch(said) or not is_plain_address(said) or "?" in said or "#" in said:
        raise InvalidArgument("MCP_PLATFORM_ENDPOINT must be http(s)://host, without a login, a query or a fragment")
    return said


def get_mcp_platform_authentication_scope(environ: Mapping[str, str] = os.environ) -> list[str]:
    """The scope of the token that discovery and the V1 servers share."""
    return [environ.get("MCP_PLATFORM_AUTHENTICATION_SCOPE") or SHARED_SCOPE]


def get_observability_authentication_scope(environ: Mapping[str, str] = os.environ) -> list[str]:
    """The scope of tokens for observability."""
    return [environ.get("A365_OBSERVABILITY_SCOPE_OVERRIDE", "").strip() or OBSERVABILITY_SCOPE]


CHAT_HISTORY_PATH = "/agents/real-time-threat-protection/chat-message"
LONGEST_PATH_PART = 256


def get_tooling_gateway_for_digital_worker(agentic_app_id: str, environ: Mapping[str, str] = os.environ) -> str:
    """The address that lists the servers of an agent."""
    return f"{platform_base_url(environ)}/agents/v2/{_path_part(agentic_app_id, 'agentic_app_id')}/mcpServers"


def get_mcp_base_url(environ: Mapping[str, str] = os.environ) -> str:
    """The base address for servers that have no address of their own."""
    return f"{platform_base_url(environ)}/agents/servers"


def build_mcp_server_url(server_name: str, environ: Mapping[str, str] = os.environ) -> str:
    """The address of a server that has none of its own."""
    return f"{get_mcp_base_url(environ)}/{_path_part(server_name, 'the name of an MCP server')}"


def get_chat_history_endpoint(environ: Mapping[str, str] = os.environ) -> str:
    """The address to which chats are sent."""
    return f"{platform_base_url(environ)}{CHAT_HISTORY_PATH}"


def _path_part(text: str, what: str) -> str:
    # Callers may pass a UUID object.
    text = str(text)
    # A part that consists only of dots could be read as `..`, encoded or not.
    if not text or not text.strip(".") or len(text) > LONGEST_PATH_PART:
        raise InvalidArgument(f"{what} must be 1 to {LONGEST_PATH_PART} characters, and not only dots")
    return quote(text, safe="", errors="replace")
