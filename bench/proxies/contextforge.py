"""Runs ContextForge set up for speed: by its tuning guide, and without features that a single caller does not need."""

import json
import secrets
import urllib.request
from collections.abc import Mapping
from pathlib import Path

ADMINISTRATOR = "admin@example.com"
REGISTER_SECONDS = 60
# It refuses to start with a guessable secret, or with a password that lacks one kind of characters.
SECRET = secrets.token_urlsafe(48)
PASSWORD = f"aA1-{secrets.token_urlsafe(12)}"


def variables(folder: Path) -> Mapping[str, str]:
    return {
        "DATABASE_URL": f"sqlite:///{folder / 'contextforge.db'}",
        "CACHE_TYPE": "memory",
        "ENVIRONMENT": "production",
        "LOG_LEVEL": "ERROR",
        # Kept sessions: without them it connects to the upstream for each call, at eight times the cost.
        "USE_STATEFUL_SESSIONS": "true",
        # Its default limit allows fewer calls a minute.
        "RATE_LIMITING_ENABLED": "false",
        "MCPGATEWAY_UI_ENABLED": "false",
        "MCPGATEWAY_ADMIN_API_ENABLED": "false",
        "PLUGINS_ENABLED": "false",
        "SSRF_ALLOW_LOCALHOST": "true",
        # No sign-in: it trusts every caller.
        "AUTH_REQUIRED": "false",
        "MCP_REQUIRE_AUTH": "false",
        "MCP_CLIENT_AUTH_ENABLED": "false",
        "TRUST_PROXY_AUTH": "true",
        "TRUST_PROXY_AUTH_DANGEROUSLY": "true",
        "JWT_SECRET_KEY": SECRET,
        "AUTH_ENCRYPTION_SECRET": SECRET,
        "BASIC_AUTH_PASSWORD": PASSWORD,
        "PLATFORM_ADMIN_EMAIL": ADMINISTRATOR,
        "PLATFORM_ADMIN_PASSWORD": PASSWORD,
        "DEFAULT_USER_PASSWORD": PASSWORD,
    }


def register(port: int, name: str, url: str) -> None:
    """Register the upstream; its tools are available when this returns."""
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}/gateways",
        data=json.dumps({"name": name, "url": url, "transport": "STREAMABLEHTTP"}).encode(),
        headers={"Content-Type": "application/json", "X-Authenticated-User": ADMINISTRATOR},
    )
    # An answer other than 200 raises an OSError.
    urllib.request.urlopen(request, timeout=REGISTER_SECONDS).close()


def tool_name(upstream: str, tool: str) -> str:
    return f"{upstream}-{tool}"
