"""What the MCP client speaks of: a server, a tool of it, and the ways in which a request to it fails."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from frontdesk.errors import ConfigurationError, Unavailable

HEADER_NAME = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
HEADER_VALUE = re.compile(r"[\x20-\x7e]*")
BEARER = re.compile(r"\s*bearer\s+", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class McpServer:
    """Where a server is, the headers it always gets, and whether it may have the user's token.

    Address and headers may hold secrets, so neither is part of what the dataclass shows of itself.
    """

    name: str
    url: str = field(repr=False)
    headers: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    user_token: bool = False

    def __post_init__(self) -> None:
        if not _is_plain_address(self.url):
            raise ConfigurationError(
                f"The address of MCP server '{self.name}' must be http(s)://host/path without a user name; "
                "put credentials into its headers"
            )
        for name, value in self.headers.items():
            if not HEADER_NAME.fullmatch(name) or not HEADER_VALUE.fullmatch(value):
                raise ConfigurationError(f"MCP server '{self.name}': header '{name}' must be visible ASCII")

    def __str__(self) -> str:
        parts = urlsplit(self.url)
        return f"MCP server '{self.name}' at {parts.scheme}://{parts.netloc}{parts.path}"


@dataclass(frozen=True, slots=True)
class RemoteTool:
    """A tool as its server lists it; the annotations are the server's own word, and prove nothing."""

    name: str
    description: str
    parameters: Mapping[str, Any]
    annotations: Mapping[str, Any] = field(default_factory=dict[str, Any])


class Broken(Unavailable):
    """No answer that could be used: the server is away, too slow, too talkative, or makes no sense."""

    def __init__(self, message: str, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status


class Unauthorized(Unavailable):
    """The server does not take the credential."""


class Lost(Unavailable):
    """The server no longer knows the session; the request was not carried out."""


class RpcError(Unavailable):
    """The server answered with a JSON-RPC error."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


def bare_token(token: str | None) -> str | None:
    """The token without a leading "Bearer ", or None where nothing is left."""
    return BEARER.sub("", token or "", count=1).strip() or None


def _is_plain_address(url: str) -> bool:
    try:
        parts = urlsplit(url)
    except ValueError:
        return False
    # A name in the address would turn into an Authorization header, in the place of the user's own.
    return parts.scheme in ("http", "https") and bool(parts.hostname) and "@" not in parts.netloc
