"""What goes wrong with the platform, each with a type of its own; the words are those that the SDK's users know.

PlatformError                       everything below, and a FrontdeskError
├── InvalidArgument                 also a ValueError: an argument is missing or cannot be sent
├── DiscoveryFailed                 the platform answered with another status than 200; carries it and the body
├── ChatHistoryRefused              the same of a chat that was sent
├── PlatformTimeout                 also a TimeoutError: no whole answer in time
├── PlatformUnreachable             also a ConnectionError: no answer at all
├── PlatformUnreadable              an answer that is not JSON, or too large
├── ManifestUnreadable              ToolingManifest.json is there and cannot be used
├── TokenNotObtained                the exchange for a server's token gave none; carries server and scope
├── TokenContextMissing             servers with an audience of their own, and nothing to exchange tokens with
└── McpConnectionsRequiredError     servers wait for somebody to connect an account; carries where
"""

from collections.abc import Sequence

from frontdesk.errors import FrontdeskError
from frontdesk.loop.text import visible


class PlatformError(FrontdeskError):
    """Something between us and the platform."""


class InvalidArgument(PlatformError, ValueError):
    """What was given cannot be used."""


class DiscoveryFailed(PlatformError):
    """The platform refuses, or is not well."""

    def __init__(self, status: int, body: str) -> None:
        super().__init__(f"Failed to read MCP servers from endpoint: HTTP {status}: {body}")
        self.status = status
        self.body = body


class ChatHistoryRefused(PlatformError):
    """The platform does not take a chat."""

    def __init__(self, status: int, body: str) -> None:
        super().__init__(f"HTTP {status}: {body}")
        self.status = status
        self.message = body


class PlatformTimeout(PlatformError, TimeoutError):
    """The platform takes too long."""


class PlatformUnreachable(PlatformError, ConnectionError):
    """The platform does not answer."""


class PlatformUnreadable(PlatformError):
    """The platform's answer makes no sense."""


class ManifestUnreadable(PlatformError):
    """The manifest cannot be used."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"Failed to read MCP servers from ToolingManifest.json: {reason}")


class TokenNotObtained(PlatformError):
    """A server's token was refused."""

    def __init__(self, server: str, scope: str) -> None:
        super().__init__(f"Failed to obtain token for MCP server '{visible(server)}' (scope: {visible(scope)})")
        self.server = server
        self.scope = scope


class TokenContextMissing(PlatformError):
    """Servers need tokens of their own, and there is nothing to get them with."""

    def __init__(self, servers: Sequence[str]) -> None:
        names = visible(", ".join(servers))
        super().__init__(
            f"MCP servers [{names}] require per-audience token exchange (V2) but no authorization context "
            "was provided. Pass authorization, auth_handler_name, and turn_context to list_tool_servers()."
        )
        self.servers = tuple(servers)


class McpConnectionsRequiredError(PlatformError):
    """Servers cannot be used before somebody has connected an account with them."""

    def __init__(
        self, missing_connections_url: str | None, connectivity_status: str, server_names: Sequence[str]
    ) -> None:
        names = ", ".join(server_names)
        where = f" at {missing_connections_url}" if missing_connections_url else ""
        super().__init__(
            visible(
                f"MCP servers [{names}] are {connectivity_status}: "
                f"connect the accounts they need{where}, then try again"
            )
        )
        self.missing_connections_url = missing_connections_url
        self.connectivity_status = connectivity_status
        self.server_names = tuple(server_names)
