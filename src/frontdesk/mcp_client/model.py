"""Defines an MCP server, its tools and their names for model APIs, and the errors of a request."""

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from typing import Any, Literal
from urllib.parse import urlsplit

from pydantic import SecretStr

from frontdesk.errors import ConfigurationError, Unavailable

HEADER_NAME = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
HEADER_VALUE = re.compile(r"[\x20-\x7e]*")
BEARER = re.compile(r"\A(?:bearer(?:\s+|\Z))+", re.IGNORECASE)
CALL_SECONDS = 60.0

Transport = Literal["http", "sse", "stdio"]
OAuthGrantType = Literal["client_credentials", "token_exchange", "on_behalf_of"]


@dataclass(frozen=True, slots=True)
class OAuthConfig:
    """How to fetch a token for a server: for Frontdesk itself, or in exchange for the user's token.

    The exchange is `token_exchange` as in RFC 8693, or `on_behalf_of` as in Microsoft Entra.
    """

    token_url: str
    client_id: str
    client_secret: SecretStr | None = None
    grant: OAuthGrantType = "client_credentials"
    audience: str | None = None
    resource: str | None = None
    scope: str | None = None

    @property
    def for_person(self) -> bool:
        """Whether calls need a person's token, which is exchanged and never sent to the server itself."""
        return self.grant != "client_credentials"


@dataclass(frozen=True, slots=True)
class McpServer:
    """How to reach a server, what it always gets, and whether it may get the user's token.

    Address, headers, command and environment may contain secrets, so the dataclass's `repr` shows none of them. `cwd`
    is the directory in which a program starts; None means Frontdesk's own. `sends_agent_id`: it gets `x-ms-agentid`,
    like Agent 365's servers and those that were marked for it.
    """

    name: str
    url: str = field(default="", repr=False)
    headers: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    user_token: bool = False
    transport: Transport = "http"
    command: tuple[str, ...] = field(default=(), repr=False)
    env: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    timeout: float = CALL_SECONDS
    oauth: OAuthConfig | None = field(default=None, repr=False)
    cwd: Path | None = None
    sends_agent_id: bool = False
    digest: bytes = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        wrong = _server_problem(self)
        if wrong:
            raise ConfigurationError(f"MCP server '{self.name}': {wrong}")
        object.__setattr__(self, "digest", _server_digest(self))

    def __str__(self) -> str:
        if self.transport == "stdio":
            return f"MCP server '{self.name}' run as {PurePath(self.command[0]).name}"
        parts = urlsplit(self.url)
        return f"MCP server '{self.name}' at {parts.scheme}://{parts.netloc}{parts.path}"


@dataclass(frozen=True, slots=True)
class RemoteTool:
    """A tool as its server lists it; its annotations are the server's claims and prove nothing."""

    name: str
    description: str
    parameters: Mapping[str, Any]
    annotations: Mapping[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True, slots=True)
class ToolListing:
    """The tools that a server lists, and descriptions of what was left out."""

    tools: Sequence[RemoteTool]
    left_out: Sequence[str] = ()


class McpServerUnavailable(Unavailable):
    """There was no usable answer: the server is unreachable, too slow, or breaks the protocol."""

    def __init__(self, message: str, status: int | None = None, *, public: str | None = None) -> None:
        super().__init__(message, public=public)
        self.status = status


class UnsupportedRequest(Unavailable):
    """The request cannot be sent, or its answer is too large; the server itself may be healthy."""


class McpUnauthorized(Unavailable):
    """The server refuses the credential."""


class McpSessionLost(Unavailable):
    """The server no longer knows the session, and did not handle the request."""


class McpRpcError(Unavailable):
    """The server answered with a JSON-RPC error."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


def bare_token(token: str | None) -> str | None:
    """The token without a leading "Bearer "; None if it is empty."""
    said = (token or "").strip()
    return BEARER.sub("", said).strip() or None


def _server_problem(server: McpServer) -> str | None:
    wrong = _program_problem(server) if server.transport == "stdio" else _address_problem(server)
    return wrong or (None if server.timeout > 0 else "its timeout must be more than 0 seconds")


def _program_problem(server: McpServer) -> str | None:
    if not server.command or not all(part and "\0" not in part for part in server.command):
        return "a server on stdio needs the command that runs it"
    if server.oauth is not None:
        return "a server on stdio takes no OAuth token; give it what it needs in its environment"
    for name, value in server.env.items():
        if not name or "=" in name or "\0" in name + value:
            return f"'{name}' cannot be an environment variable; check its name and value"
    return None


def _address_problem(server: McpServer) -> str | None:
    if not is_plain_address(server.url):
        return "its address must be http(s)://host/path without a user name; put credentials into its headers"
    for name, value in server.headers.items():
        if not HEADER_NAME.fullmatch(name) or not HEADER_VALUE.fullmatch(value):
            return f"header '{name}' must be visible ASCII"
    if server.oauth is not None and server.user_token:
        return "it gets either the user's token or one by OAuth; set user_token or oauth, not both"
    if server.oauth is not None and not is_plain_address(server.oauth.token_url):
        return "oauth.token_url must be http(s)://host/path without a user name"
    return None


def is_plain_address(url: str) -> bool:
    """Whether this is an http(s) URL without credentials; aiohttp would turn those into an Authorization header."""
    try:
        parts = urlsplit(url)
        # A port that is not a number raises here.
        _ = parts.port
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and bool(parts.hostname) and "@" not in parts.netloc


def _server_digest(server: McpServer) -> bytes:
    """A digest that differs between two definitions of a server, and does not reveal its secrets."""
    oauth = server.oauth
    secret = oauth.client_secret.get_secret_value() if oauth and oauth.client_secret else None
    said = [
        [server.name, server.transport, server.url, server.command, server.user_token, server.timeout],
        server.sends_agent_id,
        [sorted(server.headers.items()), sorted(server.env.items()), server.cwd and str(server.cwd)],
        oauth and [oauth.token_url, oauth.client_id, secret, oauth.grant, oauth.audience, oauth.resource, oauth.scope],
    ]
    return hashlib.sha256(json.dumps(said).encode()).digest()


NAME_SEPARATOR = "__"
API_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
NOT_IN_API_NAMES = re.compile(r"[^a-zA-Z0-9_-]")
NAME_SHOWN = 53
NAME_DIGEST = 10


def api_name(server: str, tool: str, taken: Mapping[str, object]) -> str:
    """`<server>__<tool>` if model APIs accept that, else a readable part of it with a digest."""
    name, salt = f"{server}{NAME_SEPARATOR}{tool}", 0
    # The server's part must not contain the separator, or `a` + `b__c` and `a__b` + `c` would be one name.
    clear = NAME_SEPARATOR not in server and not server.endswith("_") and API_NAME.fullmatch(name) is not None
    found = name if clear else _name_with_digest(server, tool, salt)
    while found in taken:
        salt += 1
        found = _name_with_digest(server, tool, salt)
    return found


def _name_with_digest(server: str, tool: str, salt: int) -> str:
    digest = hashlib.sha256(json.dumps([server, tool, salt]).encode()).hexdigest()[:NAME_DIGEST]
    return f"{NOT_IN_API_NAMES.sub('_', f'{server}{NAME_SEPARATOR}{tool}')[:NAME_SHOWN]}_{digest}"
