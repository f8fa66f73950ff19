"""Defines the errors of the platform, with the SDK's wording, and the result that carries them.

PlatformError                       everything below, and a FrontdeskError
├── InvalidArgument                 also a ValueError: an argument is missing or cannot be sent
├── DiscoveryFailed                 the platform answered with a status other than 200; carries the status and the body
├── ChatHistoryRefused              like DiscoveryFailed, for a chat that was sent
├── PlatformTimeout                 also a TimeoutError: no whole answer in time
├── PlatformUnreachable             also a ConnectionError: no answer at all
├── PlatformUnreadable              an answer that is not JSON, or too large
├── ManifestUnreadable              ToolingManifest.json exists, but cannot be used
├── TokenNotObtained                the exchange gave no token for a server; carries server and scope
├── TokenContextMissing             servers have an audience of their own, and there is no way to exchange tokens
└── McpConnectionsRequiredError     servers wait for a person to connect an account; carries the place to connect it
"""

from collections.abc import Sequence

from typing_extensions import override

from frontdesk.errors import FrontdeskError
from frontdesk.text import escape_invisible


class PlatformError(FrontdeskError):
    """Something failed between us and the platform."""


class InvalidArgument(PlatformError, ValueError):
    """An argument cannot be used."""


class DiscoveryFailed(PlatformError):
    """The platform refuses, or has an internal error."""

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
    """The platform takes too long to answer."""


class PlatformUnreachable(PlatformError, ConnectionError):
    """The platform does not answer."""


class PlatformUnreadable(PlatformError):
    """The platform's answer cannot be read."""


class ManifestUnreadable(PlatformError):
    """The manifest cannot be used."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"Failed to read MCP servers from ToolingManifest.json: {reason}")


class TokenNotObtained(PlatformError):
    """A server's token was refused."""

    def __init__(self, server: str, scope: str) -> None:
        super().__init__(
            f"Failed to obtain token for MCP server '{escape_invisible(server)}' (scope: {escape_invisible(scope)})"
        )
        self.server = server
        self.scope = scope


class TokenContextMissing(PlatformError):
    """Servers need tokens of their own, and there is no way to get them."""

    def __init__(self, servers: Sequence[str]) -> None:
        names = escape_invisible(", ".join(servers))
        super().__init__(
            f"MCP servers [{names}] require per-audience token exchange (V2) but no authorization context "
            "was provided. Pass authorization, auth_handler_name, and turn_context to list_tool_servers()."
        )
        self.servers = tuple(servers)


class McpConnectionsRequiredError(PlatformError):
    """Servers cannot be used before a person has connected an account with them."""

    def __init__(
        self, missing_connections_url: str | None, connectivity_status: str, server_names: Sequence[str]
    ) -> None:
        names = ", ".join(server_names)
        where = f" at {missing_connections_url}" if missing_connections_url else ""
        super().__init__(
            escape_invisible(
                f"MCP servers [{names}] are {connectivity_status}: "
                f"connect the accounts they need{where}, then try again"
            )
        )
        self.missing_connections_url = missing_connections_url
        self.connectivity_status = connectivity_status
        self.server_names = tuple(server_names)


class OperationError:
    """An error of an operation, with its exception."""

    __slots__ = ("_exception",)

    def __init__(self, exception: Exception | None) -> None:
        if exception is None:
            raise InvalidArgument("exception cannot be None")
        self._exception = exception

    @property
    def exception(self) -> Exception:
        return self._exception

    @property
    def message(self) -> str:
        return str(self._exception)

    @override
    def __str__(self) -> str:
        return str(self._exception)


class OperationResult:
    """Whether an operation succeeded, and its errors."""

    __slots__ = ("_errors", "_succeeded")

    def __init__(self, succeeded: bool, errors: Sequence[OperationError] | None = None) -> None:
        self._succeeded = succeeded
        self._errors = tuple(errors or ())

    @property
    def succeeded(self) -> bool:
        return self._succeeded

    @property
    def errors(self) -> list[OperationError]:
        """A new list each time, so that a caller's change to it changes nothing here."""
        return list(self._errors)

    @staticmethod
    def success() -> "OperationResult":
        """The result that every success shares."""
        return _SUCCESS

    @staticmethod
    def failed(*errors: OperationError) -> "OperationResult":
        return OperationResult(False, errors)

    @override
    def __str__(self) -> str:
        if self._succeeded:
            return "Succeeded"
        told = ", ".join(error.message for error in self._errors)
        return f"Failed: {told}" if told else "Failed"


_SUCCESS = OperationResult(True)
