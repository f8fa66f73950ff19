"""Which MCP servers this process knows at the moment; changed while it runs, read on every call."""

from collections.abc import Callable, Iterable

from frontdesk.loop.mcp.model import McpServer

Leaving = Callable[[McpServer], None]


class Servers:
    """A register by name; those who watch it hear of each definition that no longer holds."""

    def __init__(self, servers: Iterable[McpServer] = ()) -> None:
        self._servers = {server.name: server for server in servers}
        self._watchers: list[Leaving] = []

    def get(self, name: str) -> McpServer | None:
        return self._servers.get(name)

    def names(self) -> list[str]:
        return list(self._servers)

    def all(self) -> list[McpServer]:
        return list(self._servers.values())

    def put(self, server: McpServer) -> None:
        """Add a server, or replace the one of that name."""
        before = self._servers.get(server.name)
        self._servers[server.name] = server
        if before is not None and before != server:
            self._tell(before)

    def remove(self, name: str) -> None:
        before = self._servers.pop(name, None)
        if before is not None:
            self._tell(before)

    def set_all(self, servers: Iterable[McpServer]) -> None:
        """These and no others."""
        wanted = {server.name: server for server in servers}
        before, self._servers = self._servers, wanted
        for server in before.values():
            if wanted.get(server.name) != server:
                self._tell(server)

    def watch(self, leaving: Leaving) -> None:
        """Call this with each definition that is replaced or removed."""
        self._watchers.append(leaving)

    def _tell(self, server: McpServer) -> None:
        for leaving in self._watchers:
            leaving(server)
