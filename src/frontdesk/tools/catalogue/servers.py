"""What a tool server is to the catalogue: where it stands, who named it, and secrets that stay where they belong."""

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, cast, get_args
from urllib.parse import unquote, urlsplit

from pydantic import SecretStr

from frontdesk.errors import ConfigurationError, Invalid
from frontdesk.identity.outbound import AGENT_HEADER
from frontdesk.loop.mcp.model import CALL_SECONDS, Grant, McpServer, OAuth, RemoteTool, is_plain_address
from frontdesk.settings import ToolServer
from frontdesk.tools.catalogue.development import development_token
from frontdesk.tools.model import HOST_SERVER

NAME = re.compile(r"[A-Za-z0-9-]{1,30}")
# Where a server of Agent 365 stands that names no address of its own; what follows is its name.
PLATFORM = "${MCP_PLATFORM_ENDPOINT:-https://agent365.svc.cloud.microsoft}"
AGENT365 = f"{PLATFORM}/agents/servers/"
# `${VAR}`, `${VAR:-default}`, and VS Code's `${env:VAR}`.
REFERENCE = re.compile(r"\$\{(?:env:)?([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")
OAUTH = frozenset({"token_url", "client_id", "client_secret", "grant", "audience", "resource", "scope"})
NOWHERE = ("", None, None)
GRANTS: tuple[str, ...] = get_args(Grant)


class Transport(StrEnum):
    """How a server is spoken to; the host's own tools need no server."""

    HTTP = "http"
    SSE = "sse"
    STDIO = "stdio"
    HOST = "host"


class Origin(StrEnum):
    """Who named a server. What was added stays; what others name goes when they no longer do."""

    SETTINGS = "settings"
    MANIFEST = "manifest"
    PLATFORM = "platform"
    ADDED = "added"
    HOST = "host"


@dataclass(frozen=True, slots=True)
class ServerSpec:
    """A server as it was named. Values may be `${VAR}`, which is looked up when the server is spoken to.

    Not so where the platform named it: somebody else's words must not get at this house's variables. `hold_changes`
    None does as the setting for all servers says. `tools` are those a manifest lists; such a server is not asked for
    its own. `token_for` is what the platform says that a token for this server is for, and no secret.
    """

    name: str
    transport: Transport = Transport.HTTP
    url: str = field(default="", repr=False)
    command: str = ""
    args: tuple[str, ...] = field(default=(), repr=False)
    env: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    headers: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    user_token: bool = False
    oauth: Mapping[str, Any] = field(default_factory=dict[str, Any], repr=False)
    description: str = ""
    origin: Origin = Origin.ADDED
    hold_changes: bool | None = None
    timeout: float = CALL_SECONDS
    tools: tuple[RemoteTool, ...] | None = field(default=None, repr=False)
    token_for: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)

    def __post_init__(self) -> None:
        if not NAME.fullmatch(self.name) or (self.name == HOST_SERVER) != (self.transport is Transport.HOST):
            raise Invalid(
                f"'{self.name[:60]}' cannot be a tool server's name: "
                f"take letters, digits and -, at most 30, and not '{HOST_SERVER}'"
            )
        if self.transport is Transport.STDIO and not self.command.strip():
            raise Invalid(f"Tool server '{self.name}' needs a command to run")
        if self.transport in (Transport.HTTP, Transport.SSE):
            self._check_address()

    def _check_address(self) -> None:
        # Where the whole address is a reference, it is looked at when it is known.
        known_later = not self.literal and REFERENCE.match(self.url)
        if not known_later and not is_plain_address(self.url if self.literal else REFERENCE.sub("x", self.url)):
            raise Invalid(
                f"The address of tool server '{self.name}' must be http(s)://host/path without a user name; "
                "put credentials into its headers"
            )

    @property
    def literal(self) -> bool:
        """Whether its values are what they are, and name no variables."""
        return self.origin is Origin.PLATFORM

    @property
    def place(self) -> str:
        """Where it stands, in words that are safe to show: the rest of an address or a command may be a secret."""
        if self.transport is Transport.STDIO:
            return self.command
        return re.split(r"[?#]", self.url)[0]

    def __str__(self) -> str:
        return f"tool server '{self.name}'" + (f" at {self.place}" if self.place else "")


HOST_SPEC = ServerSpec(HOST_SERVER, Transport.HOST, origin=Origin.HOST, description="The agent host's own tools.")


def connectable(spec: ServerSpec, environ: Mapping[str, str] = os.environ) -> McpServer:
    """The server as the client takes it, with every reference looked up."""

    def known(text: str) -> str:
        return text if spec.literal else resolve(text, environ, spec.name)

    stdio = spec.transport is Transport.STDIO
    url = _address(spec, known)
    headers = {name: known(value) for name, value in spec.headers.items()}
    # Given without a value, the header only marks a server that is to be told which agent calls.
    marks = [name for name, value in headers.items() if name.lower() == AGENT_HEADER and not value.strip()]
    headers = {name: value for name, value in headers.items() if name not in marks}
    return McpServer(
        spec.name,
        url,
        {**_development_token(spec, environ), **headers},
        spec.user_token,
        "stdio" if stdio else "sse" if spec.transport is Transport.SSE else "http",
        tuple(known(part) for part in (spec.command, *spec.args)) if stdio else (),
        {name: known(value) for name, value in spec.env.items()},
        spec.timeout,
        _oauth(spec, known),
        sends_agent_id=bool(marks) or spec.literal or _is_agent365(url, environ),
    )


def _is_agent365(url: str, environ: Mapping[str, str]) -> bool:
    """Whether an address is at Agent 365's own host, or at the one that stands in for it."""
    platform = {_origin(resolve(PLATFORM, {}, "")), _origin(resolve(PLATFORM, environ, ""))} - {NOWHERE}
    return _origin(url) in platform


def _origin(url: str) -> tuple[str, str | None, int | None]:
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return NOWHERE
    return parts.scheme, parts.hostname, port or (443 if parts.scheme == "https" else 80)


def _address(spec: ServerSpec, known: Callable[[str], str]) -> str:
    if spec.literal or not spec.url.startswith(PLATFORM):
        return known(spec.url)
    return known(PLATFORM).rstrip("/") + known(spec.url.removeprefix(PLATFORM))


def _development_token(spec: ServerSpec, environ: Mapping[str, str]) -> dict[str, str]:
    """What the variables of Agent 365 give a server at the platform's own address, unless it has another credential."""
    given = spec.oauth or spec.user_token or any(name.lower() == "authorization" for name in spec.headers)
    if spec.literal or given or not spec.url.startswith(AGENT365):
        return {}
    token = development_token(unquote(spec.url.removeprefix(AGENT365)), environ)
    return {"authorization": f"Bearer {token}"} if token else {}


def _oauth(spec: ServerSpec, known: Callable[[str], str]) -> OAuth | None:
    if not spec.oauth:
        return None
    said = {name: known(str(value)) for name, value in spec.oauth.items() if value is not None}
    if not {"token_url", "client_id"} <= said.keys() <= OAUTH:
        raise ConfigurationError(
            f"Tool server '{spec.name}': oauth needs token_url and client_id, and takes {', '.join(sorted(OAUTH))}"
        )
    secret = said.pop("client_secret", None)
    grant = said.pop("grant", "client_credentials")
    if grant not in GRANTS:
        raise ConfigurationError(f"Tool server '{spec.name}': oauth.grant is one of {', '.join(GRANTS)}")
    return OAuth(**said, client_secret=SecretStr(secret) if secret else None, grant=cast("Grant", grant))


def resolve(text: str, environ: Mapping[str, str], server: str) -> str:
    """The text with each `${VAR}` replaced by what the environment says."""

    def value(found: re.Match[str]) -> str:
        name, default = found[1], found[2]
        said = environ.get(name) or default
        if said is None:
            raise ConfigurationError(f"Tool server '{server}' wants the environment variable {name}, which is not set")
        return said

    return REFERENCE.sub(value, text)


def of_settings(server: ToolServer) -> ServerSpec:
    """A server of FRONTDESK_MCP_SERVERS."""
    try:
        return _of_settings(server)
    except Invalid as error:
        raise ConfigurationError(f"FRONTDESK_MCP_SERVERS: {error}") from None


def _of_settings(server: ToolServer) -> ServerSpec:
    return ServerSpec(
        server.name,
        Transport(server.transport or ("stdio" if server.command else "http")),
        server.url or "",
        server.command or "",
        server.args,
        _shown(server.env),
        _shown(server.headers),
        server.user_token,
        _shown(dict(server.oauth) if server.oauth else {}),
        server.description,
        Origin.SETTINGS,
        server.hold_changes,
        server.timeout,
    )


def _shown(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value.get_secret_value() if isinstance(value, SecretStr) else value for name, value in values.items()}
