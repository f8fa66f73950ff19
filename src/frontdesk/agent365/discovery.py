"""Finds the servers of this installation's own agent for the tool catalogue, each with its token."""

import os
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from frontdesk.agent365.client import McpToolServerConfigurationService
from frontdesk.agent365.environment import get_mcp_platform_authentication_scope, is_development_environment
from frontdesk.agent365.errors import DiscoveryFailed, InvalidArgument, McpConnectionsRequiredError
from frontdesk.agent365.headers import TOKEN_VARIABLE, development_token, token_variable_of
from frontdesk.agent365.model import MCPServerConfig, ToolOptions, is_v2_server, resolve_token_scope_for_server
from frontdesk.text import escape_invisible, list_first, one_line

ORCHESTRATOR = "Frontdesk"
UNAUTHORIZED = 401
SHOWN_NAME_LENGTH = 100
LONGEST_ADDRESS = 500
MOST_NAMED = 10

# Fetches the token of a scope; the second argument is a token that was just refused.
FetchToken = Callable[[str, str | None], Awaitable[str]]


@dataclass(frozen=True, slots=True)
class Agent365Server:
    """A server and its token: a token of this `scope`, which is `bearer` or, where `fetched` is true, is fetched.

    `name` and `unique_name` come from the platform and may be any text.
    """

    name: str
    unique_name: str
    url: str = field(repr=False)
    scope: str
    bearer: str | None = field(default=None, repr=False)
    fetched: bool = False


@dataclass(frozen=True, slots=True)
class DiscoveryResult:
    """The servers that can be used, and sentences that say what to do about the others."""

    servers: Sequence[Agent365Server] = ()
    notes: Sequence[str] = ()


class ServerDiscovery:
    """Lists the servers of one agent, with `token` or with a token that is fetched for ourselves.

    `fetch` is set where a token can be fetched for each scope. Servers are then called only with such tokens: `token`
    belongs to no particular person, and a call may have to be made for one.
    """

    def __init__(
        self, app_id: str, token: str | None, fetch: FetchToken | None, environ: Mapping[str, str] = os.environ
    ) -> None:
        self._app_id = app_id
        self._token = token
        self._fetch = fetch
        self._environ = environ
        self._service = McpToolServerConfigurationService(environ=environ)

    async def find(self) -> DiscoveryResult:
        """The servers that the platform lists now, or those of the manifest during development.

        Raises a `PlatformError`.
        """
        listed = await self._listed()
        ready = [server for server in listed if server.is_ready]
        equipped = [(server, self._with_token_of_scope(server)) for server in ready]
        without = [_quote_name(server) for server, found in equipped if found is None]
        notes = [*_note_missing_connections(listed), *_note_missing_tokens(without), *self._note_doubtful_tokens(ready)]
        return DiscoveryResult([found for _, found in equipped if found is not None], notes)

    def with_token(self, name: str, unique_name: str, url: str, scope: str) -> Agent365Server | None:
        """A server with its token; None where there is no way to get one."""
        developing = is_development_environment(self._environ)
        bearer = development_token(name, self._environ)[1] if developing else None
        if bearer is None and self._fetch is not None:
            return Agent365Server(name, unique_name, url, scope, fetched=True)
        if bearer is None and scope == self._shared_scope:
            bearer = self._token
        return None if bearer is None and not developing else Agent365Server(name, unique_name, url, scope, bearer)

    @property
    def _shared_scope(self) -> str:
        return get_mcp_platform_authentication_scope(self._environ)[0]

    async def _listed(self) -> list[MCPServerConfig]:
        if is_development_environment(self._environ):
            return await self._ask(self._token)
        token = self._token or await self._fetched(None)
        try:
            return await self._ask(token)
        except DiscoveryFailed as failed:
            if failed.status != UNAUTHORIZED or self._fetch is None:
                raise
        return await self._ask(await self._fetched(token))

    async def _fetched(self, refused: str | None) -> str:
        if self._fetch is None:
            raise InvalidArgument(
                "FRONTDESK_PLATFORM_APP_ID is set, and nothing to ask the platform with; "
                "set FRONTDESK_PLATFORM_TOKEN or FRONTDESK_PLATFORM_OAUTH"
            )
        return await self._fetch(self._shared_scope, refused)

    async def _ask(self, token: str | None) -> list[MCPServerConfig]:
        return await self._service.servers_of(self._app_id, token, ToolOptions(ORCHESTRATOR))

    def _with_token_of_scope(self, server: MCPServerConfig) -> Agent365Server | None:
        scope = resolve_token_scope_for_server(server, self._environ)
        return self.with_token(server.mcp_server_name, server.mcp_server_unique_name, server.url or "", scope)

    def _note_doubtful_tokens(self, servers: Sequence[MCPServerConfig]) -> Iterator[str]:
        """Note the servers that have an audience of their own but use the shared token."""
        if not is_development_environment(self._environ):
            return
        for server in servers:
            variable, token = development_token(server.mcp_server_name, self._environ)
            if token is not None and variable == TOKEN_VARIABLE and is_v2_server(server):
                own = escape_invisible(one_line(token_variable_of(server.mcp_server_name), SHOWN_NAME_LENGTH))
                yield f"{_quote_name(server)} has an audience of its own, and only {TOKEN_VARIABLE} is set; set {own}"


def _note_missing_connections(servers: Sequence[MCPServerConfig]) -> Iterator[str]:
    """Note the servers that need a connected account first, and where to connect it."""
    waiting: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    for server in servers:
        if not server.is_ready:
            where = one_line(server.missing_connections_url or "", LONGEST_ADDRESS)
            waiting[one_line(server.connectivity_status or "", SHOWN_NAME_LENGTH), where].append(_quote_name(server))
    for (status, where), names in waiting.items():
        yield str(McpConnectionsRequiredError(where or None, status, names))


def _note_missing_tokens(names: Sequence[str]) -> Iterator[str]:
    if names:
        yield f"There is no token for the audience of {list_first(names, MOST_NAMED)}; set FRONTDESK_PLATFORM_OAUTH"


def _quote_name(server: MCPServerConfig) -> str:
    return f"'{escape_invisible(one_line(server.mcp_server_name, SHOWN_NAME_LENGTH))}'"
