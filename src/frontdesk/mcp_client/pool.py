"""Keeps the known MCP servers and the most recently used clients, one per server, person and token."""

import hashlib
from collections import OrderedDict
from collections.abc import Callable, Iterable

import anyio

from frontdesk.errors import Unavailable
from frontdesk.mcp_client.client import FetchServerToken, McpClient
from frontdesk.mcp_client.http import HttpClient
from frontdesk.mcp_client.model import McpServer, bare_token
from frontdesk.mcp_client.session import BackgroundCalls

OnServerRemoved = Callable[[McpServer], None]


class KnownServers:
    """The known servers by name; watchers are called with each definition that is replaced or removed."""

    def __init__(self, servers: Iterable[McpServer] = ()) -> None:
        self._servers = {server.name: server for server in servers}
        self._watchers: list[OnServerRemoved] = []

    def get(self, name: str) -> McpServer | None:
        return self._servers.get(name)

    def names(self) -> list[str]:
        return list(self._servers)

    def all(self) -> list[McpServer]:
        return list(self._servers.values())

    def put(self, server: McpServer) -> None:
        """Add a server, or replace the server with this name."""
        before = self._servers.get(server.name)
        self._servers[server.name] = server
        if before is not None and before != server:
            self._notify(before)

    def remove(self, name: str) -> None:
        before = self._servers.pop(name, None)
        if before is not None:
            self._notify(before)

    def set_all(self, servers: Iterable[McpServer]) -> None:
        """Replace all servers with these."""
        wanted = {server.name: server for server in servers}
        before, self._servers = self._servers, wanted
        for server in before.values():
            if wanted.get(server.name) != server:
                self._notify(server)

    def watch(self, leaving: OnServerRemoved) -> None:
        """Call this with each definition that is replaced or removed."""
        self._watchers.append(leaving)

    def _notify(self, server: McpServer) -> None:
        for leaving in self._watchers:
            leaving(server)


MAX_CLIENTS = 500
# A client on stdio is a process.
MAX_PROCESSES = 32
CLOSE_SECONDS = 8.0

ClientKey = tuple[bytes, str | None, bytes | None]


class McpClientPool:
    """Keeps the most recently used clients; the others end their sessions in the background.

    `application` names the caller to a server if neither a token nor the call names it.
    """

    def __init__(
        self,
        *,
        kept: int = MAX_CLIENTS,
        timeout: float | None = None,
        authorize: FetchServerToken | None = None,
        application: str | None = None,
    ) -> None:
        self._http = HttpClient()
        self._kept = kept
        self._timeout = timeout
        self._authorize = authorize
        self._application = application
        self._clients: OrderedDict[ClientKey, McpClient] = OrderedDict()
        self._background = BackgroundCalls()

    def __len__(self) -> int:
        return len(self._clients)

    def client(self, server: McpServer, user_id: str | None, token: str | None) -> McpClient:
        """The client for this user and this token at this server."""
        if self._http.closed:
            raise Unavailable(f"{server} cannot be asked any more: Frontdesk is shutting down")
        if server.transport == "stdio" and not server.user_token:
            # One process serves all people: each request says for whom it is.
            user_id = token = None
        key = _client_key(server, user_id, token)
        found = self._clients.get(key)
        if found is None:
            found = self._clients[key] = self._new(server, user_id, token)
            self._make_room(key)
        self._clients.move_to_end(key)
        return found

    def retire(self, server: McpServer) -> None:
        """End every client of this definition; calls that need its process are cancelled."""
        for key in [key for key in self._clients if key[0] == server.digest]:
            self._discard(key)

    async def close(self) -> None:
        """End every session with a short wait for the servers, and close the connections."""
        with anyio.move_on_after(CLOSE_SECONDS, shield=True):
            async with anyio.create_task_group() as ending:
                for client in self._clients.values():
                    ending.start_soon(client.close)
                ending.start_soon(self._background.finish)
        self._clients.clear()
        with anyio.move_on_after(CLOSE_SECONDS, shield=True):
            await self._http.close()

    def _new(self, server: McpServer, user_id: str | None, token: str | None) -> McpClient:
        return McpClient(
            server,
            user_id,
            token,
            self._http,
            timeout=self._timeout,
            background=self._background,
            authorize=self._authorize,
            application=self._application,
        )

    def _make_room(self, newest: ClientKey) -> None:
        idle = [key for key, client in self._clients.items() if not client.busy and key != newest]
        excess = max(0, len(self._clients) - self._kept)
        children = [key for key in idle if self._clients[key].server.transport == "stdio"]
        for key in {*idle[:excess], *children[: max(0, len(children) + 1 - MAX_PROCESSES)]}:
            self._discard(key)

    def _discard(self, key: ClientKey) -> None:
        self._background.start(self._clients.pop(key).close())


def _client_key(server: McpServer, user_id: str | None, token: str | None) -> ClientKey:
    """A digest, so that tokens and headers are not kept as keys."""
    bare = bare_token(token) if token else None
    return server.digest, user_id, hashlib.sha256(bare.encode()).digest() if bare else None
