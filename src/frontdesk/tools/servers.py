"""Defines tool servers: their declaration, names, addresses and states."""

import hashlib
import json
import os
import re
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from itertools import count
from typing import Any, cast, get_args
from urllib.parse import unquote, urlsplit

from pydantic import SecretStr

from frontdesk.errors import ConfigurationError, Invalid
from frontdesk.identity.outbound import AGENT_HEADER
from frontdesk.mcp_client.model import (
    CALL_SECONDS,
    McpServer,
    OAuthConfig,
    OAuthGrantType,
    RemoteTool,
    bare_token,
    is_plain_address,
)
from frontdesk.settings import ToolServer
from frontdesk.tools.model import HOST_SERVER

SERVER_NAME = re.compile(r"[A-Za-z0-9-]{1,30}")
# The base URL of Agent 365 servers without their own address; the server's name follows.
AGENT365_ENDPOINT = "${MCP_PLATFORM_ENDPOINT:-https://agent365.svc.cloud.microsoft}"
AGENT365_SERVERS = f"{AGENT365_ENDPOINT}/agents/servers/"
# `${VAR}`, `${VAR:-default}`, and VS Code's `${env:VAR}`.
VARIABLE_REFERENCE = re.compile(r"\$\{(?:env:)?([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")
OAUTH_SETTINGS = frozenset({"token_url", "client_id", "client_secret", "grant", "audience", "resource", "scope"})
NO_ADDRESS = ("", None, None)
OAUTH_GRANTS: tuple[str, ...] = get_args(OAuthGrantType)


class Transport(StrEnum):
    """How to reach a server. The host's own tools need no server."""

    HTTP = "http"
    SSE = "sse"
    STDIO = "stdio"
    HOST = "host"


class ServerOrigin(StrEnum):
    """Who declared a server. Added ones stay; others go when they are no longer declared."""

    SETTINGS = "settings"
    MANIFEST = "manifest"
    PLATFORM = "platform"
    ADDED = "added"
    HOST = "host"


@dataclass(frozen=True, slots=True)
class ServerSpec:
    """A server as it was declared. Values may contain `${VAR}`, which is replaced when the server is called.

    Values from the platform are not replaced, because the platform must not read this installation's variables.
    `hold_changes` None means the setting for all servers. `tools` are listed in a manifest; such a server is not asked
    for its tools. `token_for` is the platform's name for the audience of a token for this server; it is not secret.
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
    origin: ServerOrigin = ServerOrigin.ADDED
    hold_changes: bool | None = None
    timeout: float = CALL_SECONDS
    tools: tuple[RemoteTool, ...] | None = field(default=None, repr=False)
    token_for: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)

    def __post_init__(self) -> None:
        if not SERVER_NAME.fullmatch(self.name) or (self.name == HOST_SERVER) != (self.transport is Transport.HOST):
            raise Invalid(
                f"'{self.name[:60]}' cannot be a tool server's name: "
                f"take letters, digits and -, at most 30, and not '{HOST_SERVER}'"
            )
        if self.transport is Transport.STDIO and not self.command.strip():
            raise Invalid(f"Tool server '{self.name}' needs a command to run")
        if self.transport in (Transport.HTTP, Transport.SSE):
            self._check_address()

    def _check_address(self) -> None:
        # If the whole address is a reference, it is checked when its value is known.
        known_later = not self.literal and VARIABLE_REFERENCE.match(self.url)
        if not known_later and not is_plain_address(
            self.url if self.literal else VARIABLE_REFERENCE.sub("x", self.url)
        ):
            raise Invalid(
                f"The address of tool server '{self.name}' must be http(s)://host/path without a user name; "
                "put credentials into its headers"
            )

    @property
    def literal(self) -> bool:
        """Whether its values have no references to variables."""
        return self.origin is ServerOrigin.PLATFORM

    @property
    def place(self) -> str:
        """The address in a form that is safe to show, because the rest of an address or a command may be secret."""
        if self.transport is Transport.STDIO:
            return self.command
        return re.split(r"[?#]", self.url)[0]

    def __str__(self) -> str:
        return f"tool server '{self.name}'" + (f" at {self.place}" if self.place else "")


HOST_SPEC = ServerSpec(HOST_SERVER, Transport.HOST, origin=ServerOrigin.HOST, description="The agent host's own tools.")


def to_mcp_server(spec: ServerSpec, environ: Mapping[str, str] = os.environ) -> McpServer:
    """The server as the client takes it, with every reference replaced by its value."""

    def known(text: str) -> str:
        return text if spec.literal else resolve_variables(text, environ, spec.name)

    stdio = spec.transport is Transport.STDIO
    url = _resolve_address(spec, known)
    headers = {name: known(value) for name, value in spec.headers.items()}
    # A header without a value only marks a server that gets the calling agent's id.
    marks = [name for name, value in headers.items() if name.lower() == AGENT_HEADER and not value.strip()]
    headers = {name: value for name, value in headers.items() if name not in marks}
    return McpServer(
        spec.name,
        url,
        {**_development_headers(spec, environ), **headers},
        spec.user_token,
        "stdio" if stdio else "sse" if spec.transport is Transport.SSE else "http",
        tuple(known(part) for part in (spec.command, *spec.args)) if stdio else (),
        {name: known(value) for name, value in spec.env.items()},
        spec.timeout,
        _oauth_config(spec, known),
        sends_agent_id=bool(marks) or spec.literal or _is_agent365(url, environ),
    )


def _is_agent365(url: str, environ: Mapping[str, str]) -> bool:
    """Whether an address is at Agent 365's own host, or at the local platform."""
    platform = {
        _address_origin(resolve_variables(AGENT365_ENDPOINT, {}, "")),
        _address_origin(resolve_variables(AGENT365_ENDPOINT, environ, "")),
    } - {NO_ADDRESS}
    return _address_origin(url) in platform


def _address_origin(url: str) -> tuple[str, str | None, int | None]:
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return NO_ADDRESS
    return parts.scheme, parts.hostname, port or (443 if parts.scheme == "https" else 80)


def _resolve_address(spec: ServerSpec, known: Callable[[str], str]) -> str:
    if spec.literal or not spec.url.startswith(AGENT365_ENDPOINT):
        return known(spec.url)
    return known(AGENT365_ENDPOINT).rstrip("/") + known(spec.url.removeprefix(AGENT365_ENDPOINT))


def _development_headers(spec: ServerSpec, environ: Mapping[str, str]) -> dict[str, str]:
    """Headers from the variables of Agent 365, for servers at the platform's address without another credential."""
    given = spec.oauth or spec.user_token or any(name.lower() == "authorization" for name in spec.headers)
    if spec.literal or given or not spec.url.startswith(AGENT365_SERVERS):
        return {}
    token = development_token(unquote(spec.url.removeprefix(AGENT365_SERVERS)), environ)
    return {"authorization": f"Bearer {token}"} if token else {}


def _oauth_config(spec: ServerSpec, known: Callable[[str], str]) -> OAuthConfig | None:
    if not spec.oauth:
        return None
    said = {name: known(str(value)) for name, value in spec.oauth.items() if value is not None}
    if not {"token_url", "client_id"} <= said.keys() <= OAUTH_SETTINGS:
        raise ConfigurationError(
            f"Tool server '{spec.name}': oauth needs token_url and client_id, and takes "
            + ", ".join(sorted(OAUTH_SETTINGS))
        )
    secret = said.pop("client_secret", None)
    grant = said.pop("grant", "client_credentials")
    if grant not in OAUTH_GRANTS:
        raise ConfigurationError(f"Tool server '{spec.name}': oauth.grant is one of {', '.join(OAUTH_GRANTS)}")
    return OAuthConfig(**said, client_secret=SecretStr(secret) if secret else None, grant=cast("OAuthGrantType", grant))


def resolve_variables(text: str, environ: Mapping[str, str], server: str) -> str:
    """The text with each `${VAR}` replaced by the value of the environment variable."""

    def value(match: re.Match[str]) -> str:
        name, default = match[1], match[2]
        said = environ.get(name) or default
        if said is None:
            raise ConfigurationError(f"Tool server '{server}' wants the environment variable {name}, which is not set")
        return said

    return VARIABLE_REFERENCE.sub(value, text)


def spec_from_settings(server: ToolServer) -> ServerSpec:
    """A server in FRONTDESK_MCP_SERVERS."""
    try:
        return _spec_from_settings(server)
    except Invalid as error:
        raise ConfigurationError(f"FRONTDESK_MCP_SERVERS: {error}") from None


def _spec_from_settings(server: ToolServer) -> ServerSpec:
    return ServerSpec(
        server.name,
        Transport(server.transport or ("stdio" if server.command else "http")),
        server.url or "",
        server.command or "",
        server.args,
        _reveal_secrets(server.env),
        _reveal_secrets(server.headers),
        server.user_token,
        _reveal_secrets(dict(server.oauth) if server.oauth else {}),
        server.description,
        ServerOrigin.SETTINGS,
        server.hold_changes,
        server.timeout,
    )


def _reveal_secrets(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value.get_secret_value() if isinstance(value, SecretStr) else value for name, value in values.items()}


CHANGES_KEPT = 10


class ServerStatus(StrEnum):
    """NEW servers were not asked yet. The tools of a FAILED server are from its last listing."""

    NEW = "new"
    OK = "ok"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class CatalogueChange:
    """A change that a server made to its tools, and when: `3 new (a, b, c)`."""

    at: datetime
    what: str


@dataclass(frozen=True, slots=True)
class ServerState:
    """A server and its state. `problems` are from its last listing, `changes` are the latest few, newest first.

    `declared_at`: when a replica last found it in its settings or manifest.
    """

    spec: ServerSpec
    status: ServerStatus = ServerStatus.NEW
    error: str = ""
    problems: Sequence[str] = ()
    changes: Sequence[CatalogueChange] = ()
    tools: int = 0
    crawled_at: datetime | None = None
    answered_at: datetime | None = None
    declared_at: datetime | None = None

    @property
    def name(self) -> str:
        return self.spec.name

    @property
    def stale(self) -> bool:
        return self.status is ServerStatus.FAILED


LONGEST_SERVER_NAME = 30
NAME_DIGEST_LENGTH = 10
LONGEST_BEFORE_DIGEST = LONGEST_SERVER_NAME - NAME_DIGEST_LENGTH - 1
NAME_WITH_DIGEST = re.compile(rf"-[0-9a-f]{{{NAME_DIGEST_LENGTH}}}$")


def server_name(text: str) -> str:
    """A name that ids and models accept: `mcp_Mail Tools` becomes `mcp-Mail-Tools`."""
    return re.sub(r"[^A-Za-z0-9]+", "-", text).strip("-")[:LONGEST_SERVER_NAME].strip("-")


def distinct_server_names(said: Sequence[tuple[str, str]]) -> Sequence[str]:
    """A distinct name for each server, given as (name, text that distinguishes it from others).

    If several servers would have the same name, each gets a digest. If one kept the plain name, a server added later
    could get that name, and with it the calls for the other server.
    """
    plain = [server_name(name) for name, _ in said]
    crowd = Counter(plain)
    found: dict[str, None] = {}
    for (name, other), short in zip(said, plain, strict=True):
        found[
            short if crowd[short] == 1 and _is_usable_name(short) else _name_with_digest(short, (name, other), found)
        ] = None
    return list(found)


def _is_usable_name(name: str) -> bool:
    # A name that looks like a digest must be one. Otherwise a server could choose the name of another.
    return bool(name) and name != HOST_SERVER and NAME_WITH_DIGEST.search(name) is None


def _name_with_digest(short: str, said: tuple[str, str], taken: Collection[str]) -> str:
    shown = short[:LONGEST_BEFORE_DIGEST].strip("-") or "server"
    digests = (hashlib.sha256(json.dumps([*said, salt]).encode()).hexdigest()[:NAME_DIGEST_LENGTH] for salt in count())
    return next(name for digest in digests if (name := f"{shown}-{digest}") not in taken)


# The first variable that is set is used. If none is set, this is development.
ENVIRONMENT_VARIABLES = ("PYTHON_ENVIRONMENT", "ENVIRONMENT", "ASPNETCORE_ENVIRONMENT", "DOTNET_ENVIRONMENT")
TOKEN_VARIABLE = "BEARER_TOKEN"  # noqa: S105


def development_token(server: str, environ: Mapping[str, str]) -> str | None:
    """`BEARER_TOKEN_<NAME>`, else `BEARER_TOKEN`, without the word Bearer; none in production."""
    said = next((environ[name] for name in ENVIRONMENT_VARIABLES if environ.get(name)), "development")
    if said.lower() != "development":
        return None
    return bare_token(environ.get(f"{TOKEN_VARIABLE}_{server.upper()}") or environ.get(TOKEN_VARIABLE))
