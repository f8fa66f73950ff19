"""All MCP clients of the process: one per server, user and token, over one pool of connections."""

import hashlib
from collections import OrderedDict

import anyio

from frontdesk.errors import Unavailable
from frontdesk.loop.mcp.client import Authorize, McpClient
from frontdesk.loop.mcp.errands import Errands
from frontdesk.loop.mcp.http import Http
from frontdesk.loop.mcp.model import McpServer, bare_token

KEPT = 500
# A client on stdio is a process.
KEPT_CHILDREN = 32
CLOSE_SECONDS = 8.0

Key = tuple[bytes, str | None, bytes | None]


class McpClients:
    """Hands out clients and keeps the most recently used; those that fall out end their sessions behind the scenes.

    `application` is what a server is told of who asks, where neither a token nor the call says it.
    """

    def __init__(
        self,
        *,
        kept: int = KEPT,
        timeout: float | None = None,
        authorize: Authorize | None = None,
        application: str | None = None,
    ) -> None:
        self._http = Http()
        self._kept = kept
        self._timeout = timeout
        self._authorize = authorize
        self._application = application
        self._clients: OrderedDict[Key, McpClient] = OrderedDict()
        self._errands = Errands()

    def __len__(self) -> int:
        return len(self._clients)

    def client(self, server: McpServer, user_id: str | None, token: str | None) -> McpClient:
        """The client of this user with this token at this server."""
        if self._http.closed:
            raise Unavailable(f"{server} cannot be asked any more: Frontdesk is shutting down")
        if server.transport == "stdio" and not server.user_token:
            # One process for all: it is told in each request whom that is for.
            user_id = token = None
        key = _key(server, user_id, token)
        found = self._clients.get(key)
        if found is None:
            found = self._clients[key] = self._new(server, user_id, token)
            self._make_room(key)
        self._clients.move_to_end(key)
        return found

    def retire(self, server: McpServer) -> None:
        """End every client of a server as it was defined; calls under way are cut off where they need its process."""
        for key in [key for key in self._clients if key[0] == server.digest]:
            self._leave(key)

    async def close(self) -> None:
        """End every session, as far as the servers answer in time, and the connections."""
        with anyio.move_on_after(CLOSE_SECONDS, shield=True):
            async with anyio.create_task_group() as ending:
                for client in self._clients.values():
                    ending.start_soon(client.close)
                ending.start_soon(self._errands.finish)
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
            errands=self._errands,
            authorize=self._authorize,
            application=self._application,
        )

    def _make_room(self, newest: Key) -> None:
        idle = [key for key, client in self._clients.items() if not client.busy and key != newest]
        excess = max(0, len(self._clients) - self._kept)
        children = [key for key in idle if self._clients[key].server.transport == "stdio"]
        for key in {*idle[:excess], *children[: max(0, len(children) + 1 - KEPT_CHILDREN)]}:
            self._leave(key)

    def _leave(self, key: Key) -> None:
        self._errands.start(self._clients.pop(key).close())


def _key(server: McpServer, user_id: str | None, token: str | None) -> Key:
    """Digests, so that neither tokens nor a server's headers lie about as keys."""
    bare = bare_token(token) if token else None
    return server.digest, user_id, hashlib.sha256(bare.encode()).digest() if bare else None
