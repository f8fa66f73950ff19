"""All MCP clients of the process: one per server, user and token, over one pool of connections."""

import asyncio
import hashlib
import json
from collections import OrderedDict
from http.cookiejar import CookieJar, DefaultCookiePolicy

import anyio
import httpx2

from frontdesk.errors import Unavailable
from frontdesk.loop.mcp.client import CALL_SECONDS, McpClient
from frontdesk.loop.mcp.model import McpServer, bare_token

KEPT = 500
CONNECTIONS = httpx2.Limits(
    max_connections=1000,
    max_keepalive_connections=100,
    # Most servers hang up after 5 idle seconds; a request sent at that moment would fail.
    keepalive_expiry=4.0,
)
CLOSE_SECONDS = 5.0


class McpClients:
    """Hands out clients and keeps the most recently used; those that fall out end their sessions behind the scenes."""

    def __init__(self, *, kept: int = KEPT, timeout: float = CALL_SECONDS) -> None:
        # Cookies would be shared by all users of a server, and some servers keep a user in one.
        no_cookies = CookieJar(DefaultCookiePolicy(allowed_domains=[]))
        self._http = httpx2.AsyncClient(limits=CONNECTIONS, cookies=no_cookies)
        self._kept = kept
        self._timeout = timeout
        self._clients: OrderedDict[bytes, McpClient] = OrderedDict()
        self._leaving: set[asyncio.Task[None]] = set()

    def __len__(self) -> int:
        return len(self._clients)

    def client(self, server: McpServer, user_id: str | None, token: str | None) -> McpClient:
        """The client of this user with this token at this server."""
        if self._http.is_closed:
            raise Unavailable(f"{server} cannot be asked any more: Frontdesk is shutting down")
        key = _key(server, user_id, token)
        found = self._clients.get(key)
        if found is None:
            found = self._clients[key] = McpClient(server, user_id, token, self._http, timeout=self._timeout)
            self._make_room(key)
        self._clients.move_to_end(key)
        return found

    async def close(self) -> None:
        """End every session, as far as the servers answer in time, and the connections."""
        with anyio.move_on_after(CLOSE_SECONDS, shield=True):
            async with anyio.create_task_group() as ending:
                for client in self._clients.values():
                    ending.start_soon(client.close)
                for task in self._leaving:
                    ending.start_soon(asyncio.wait, (task,))
        self._clients.clear()
        with anyio.move_on_after(CLOSE_SECONDS, shield=True):
            await self._http.aclose()

    def _make_room(self, newest: bytes) -> None:
        excess = len(self._clients) - self._kept
        idle = (key for key, client in self._clients.items() if not client.busy and key != newest)
        for key in [key for key, _ in zip(idle, range(excess), strict=False)]:
            task = asyncio.get_running_loop().create_task(self._clients.pop(key).close())
            self._leaving.add(task)
            task.add_done_callback(self._leaving.discard)


def _key(server: McpServer, user_id: str | None, token: str | None) -> bytes:
    """A digest, so that neither tokens nor a server's headers lie about as keys."""
    said = [server.name, server.url, sorted(server.headers.items()), server.user_token, user_id, bare_token(token)]
    return hashlib.sha256(json.dumps(said).encode()).digest()
