"""Connections to tool servers that outlive the call that makes them; each is opened and closed by a task of its own.

The task is there because frameworks want a connection closed by the task that opened it, while those who clean up do so
from wherever they are.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Generic, TypeVar

CLOSE_SECONDS = 10.0

T = TypeVar("T")
Server_co = TypeVar("Server_co", covariant=True)
Step = Callable[[], Awaitable[object]]


@dataclass(frozen=True, slots=True)
class Link(Generic[Server_co]):
    """A server as a framework has it, and how it is connected and closed."""

    name: str
    server: Server_co
    connect: Step
    close: Step


class Connections:
    """Those that are open. The seconds are for each server, and all are waited for at once."""

    def __init__(self, logger: logging.Logger, connect_seconds: float, close_seconds: float = CLOSE_SECONDS) -> None:
        self._logger = logger
        self._connect_seconds = connect_seconds
        self._close_seconds = close_seconds
        self._kept: list[_Keeping] = []

    @asynccontextmanager
    async def opened(self, links: Sequence[Link[T]]) -> AsyncGenerator[list[T]]:
        """The servers that could be connected, in their order. They stay open, unless the block raises."""
        limits = self._connect_seconds, self._close_seconds
        keeping = [(link, _Keeping(link, *limits, self._logger)) for link in links]
        kept = [each for _, each in keeping]
        self._kept += kept
        try:
            if kept:
                await asyncio.wait([each.connected for each in kept])
            yield [link.server for link, each in keeping if each.has_connected()]
        except BaseException:
            await self._close(kept)
            raise
        self._forget([each for each in kept if not each.has_connected()])

    async def close(self) -> None:
        """Close all that are open. Never raises: what cannot be closed is told to the log."""
        await self._close(self._kept)

    async def _close(self, kept: "Sequence[_Keeping]") -> None:
        self._forget(kept)
        leaving = [each.leave() for each in kept]
        if waiting := [task for task in leaving if not task.done()]:
            # Each has its own limit; what does not even end by that is left behind.
            _, stuck = await asyncio.wait(waiting, timeout=2 * self._close_seconds)
            for task in stuck:
                task.cancel()

    def _forget(self, kept: "Sequence[_Keeping]") -> None:
        self._kept = [each for each in self._kept if each not in kept]


class _Keeping:
    """A task that connects to one server, waits to be told to leave, and closes it."""

    def __init__(
        self, link: Link[object], connect_seconds: float, close_seconds: float, logger: logging.Logger
    ) -> None:
        self._link = link
        self._connect_seconds = connect_seconds
        self._close_seconds = close_seconds
        self._logger = logger
        self._told = asyncio.Event()
        self.connected: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._task = asyncio.create_task(self._run(), name=f"keep {link.name}")
        self._task.add_done_callback(self._ended)

    def has_connected(self) -> bool:
        return self.connected.done() and self.connected.result()

    def leave(self) -> asyncio.Task[None]:
        """Give the task, which ends soon."""
        self._told.set()
        if not self.connected.done():
            self._task.cancel()
        return self._task

    async def _run(self) -> None:
        async with asyncio.timeout(self._connect_seconds):
            await self._link.connect()
        self.connected.set_result(True)
        try:
            await self._told.wait()
        finally:
            async with asyncio.timeout(self._close_seconds):
                await self._link.close()

    def _ended(self, task: asyncio.Task[None]) -> None:
        closing = self.connected.done()
        if not closing:
            self.connected.set_result(False)
        problem = None if task.cancelled() else task.exception()
        if problem is not None:
            # The type alone: what it says may hold the request, and that holds the token.
            words = "could not be closed" if closing else "is left out, as it cannot be connected"
            self._logger.warning("MCP server %r %s: %s", self._link.name, words, type(problem).__name__)
