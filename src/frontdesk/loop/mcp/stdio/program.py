"""A server on stdio as something that can be asked: its process is started when it is needed, and not too often."""

import asyncio

from frontdesk.loop.mcp.duplex import DuplexSession
from frontdesk.loop.mcp.errands import Errands
from frontdesk.loop.mcp.model import Broken, McpServer
from frontdesk.loop.mcp.stdio.child import Child
from frontdesk.loop.mcp.stdio.restarts import Restarts


class Program:
    """Makes sessions, each with a process of its own; remembers how the last ones ended."""

    def __init__(self, server: McpServer, errands: Errands) -> None:
        self._server = server
        self._errands = errands
        self._restarts = Restarts()
        self._started = 0.0

    def session(self) -> DuplexSession:
        now = asyncio.get_running_loop().time()
        if wait := self._restarts.wait(now):
            raise Broken(f"{self._server} ended {self._restarts.crashes} times in a row; try again in {wait:.1f} s")
        self._started = now
        child = Child(self._server, self._crashed)
        return DuplexSession(self._server, child, self._errands, is_kept=True, says_in_meta=True)

    def _crashed(self) -> None:
        self._restarts = self._restarts.crashed(self._started, asyncio.get_running_loop().time())
