"""What the environment says of the platform: where it stands, which scope its tokens have, and whether to use it."""

import os
import re
from collections.abc import Mapping

from frontdesk.loop.mcp.model import is_plain_address
from frontdesk.platform.constants import SHARED_APP_ID
from frontdesk.platform.errors import InvalidArgument

BASE_URL = "https://agent365.svc.cloud.microsoft"
SHARED_SCOPE = f"{SHARED_APP_ID}/.default"
OBSERVABILITY_SCOPE = "api://9b975845-388f-4429-889e-eab1ef63949c/.default"
# The first that says anything counts.
ENVIRONMENT_VARIABLES = ("PYTHON_ENVIRONMENT", "ENVIRONMENT", "ASPNETCORE_ENVIRONMENT", "DOTNET_ENVIRONMENT")
DEVELOPMENT = "development"
# An address is one line of visible characters; what else it needs is looked at when it is used.
VISIBLE = re.compile(r"[!-~]{1,2000}")


def is_development_environment(environ: Mapping[str, str] = os.environ) -> bool:
    """Whether servers come from the manifest and tokens from variables: so, unless the environment says otherwise."""
    said = next((environ[name] for name in ENVIRONMENT_VARIABLES if environ.get(name)), DEVELOPMENT)
    return said.lower() == DEVELOPMENT


def platform_base_url(environ: Mapping[str, str] = os.environ) -> str:
    """Where the platform stands, without a slash at the end."""
    said = environ.get("MCP_PLATFORM_ENDPOINT", "").strip().rstrip("/") or BASE_URL
    if not VISIBLE.fullmatch(said) or not is_plain_address(said) or "?" in said or "#" in said:
        raise InvalidArgument("MCP_PLATFORM_ENDPOINT must be http(s)://host, without a login, a query or a fragment")
    return said


def get_mcp_platform_authentication_scope(environ: Mapping[str, str] = os.environ) -> list[str]:
    """The scope of the token that discovery and the servers of the first kind share."""
    return [environ.get("MCP_PLATFORM_AUTHENTICATION_SCOPE") or SHARED_SCOPE]


def get_observability_authentication_scope(environ: Mapping[str, str] = os.environ) -> list[str]:
    """The scope of tokens for what is observed."""
    return [environ.get("A365_OBSERVABILITY_SCOPE_OVERRIDE", "").strip() or OBSERVABILITY_SCOPE]
