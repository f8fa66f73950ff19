"""The way to one server: so many calls at a time, and none while it is known to fail."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

from frontdesk.errors import Unavailable
from frontdesk.loop.mcp.model import Broken
from frontdesk.tools.gateway.breaker import Breaker
from frontdesk.tools.gateway.result import MAX_RESULT

AT_ONCE = 64
QUEUE_SECONDS = 10.0

T = TypeVar("T")


class NotTried(Unavailable):
    """A call was not even tried."""


@dataclass(frozen=True, slots=True)
class Manners:
    """How servers are treated: so many calls at once, so long a wait for room, so large a result."""

    at_once: int = AT_ONCE
    queue_seconds: float = QUEUE_SECONDS
    max_result: int = MAX_RESULT
    clock: Callable[[], float] = time.monotonic


class Lane:
    """Calls of all users to one server."""

    def __init__(self, server: str, manners: Manners) -> None:
        self._server = server
        self._now = manners.clock
        self._places = asyncio.Semaphore(manners.at_once)
        self._at_once = manners.at_once
        self._queue_seconds = manners.queue_seconds
        self._breaker = Breaker()

    async def run(self, work: Callable[[], Awaitable[T]]) -> T:
        """Do this when there is room and the breaker lets it through; else `NotTried`, which says when to try again."""
        self._check()
        await self._enter()
        try:
            # While it waited for room, others may have found the server gone.
            self._check()
            return await self._watched(work)
        finally:
            self._places.release()

    async def _watched(self, work: Callable[[], Awaitable[T]]) -> T:
        was_try = self._breaker.retry_at is not None
        self._breaker = self._breaker.admitted()
        try:
            found = await work()
        except Unavailable as error:
            if _is_failure(error):
                self._breaker = self._breaker.failed(self._now(), was_try=was_try)
            else:
                self._breaker = self._breaker.succeeded()
            raise
        except BaseException:
            self._breaker = self._breaker.given_up(was_try=was_try)
            raise
        self._breaker = self._breaker.succeeded()
        return found

    def _check(self) -> None:
        if self._breaker.retry_at is not None and (wait := self._breaker.wait(self._now())) > 0:
            raise NotTried(
                f"MCP server '{self._server}' failed {self._breaker.failures} times in a row and is left alone; try "
                f"again in {max(1, round(wait))} s, or use another tool"
            )

    async def _enter(self) -> None:
        if self._places.locked():
            try:
                async with asyncio.timeout(self._queue_seconds):
                    await self._places.acquire()
            except TimeoutError:
                raise NotTried(
                    f"MCP server '{self._server}' has {self._at_once} calls under way already, and none ended in "
                    f"{self._queue_seconds:g} s; try again later"
                ) from None
        else:
            await self._places.acquire()


def _is_failure(error: Unavailable) -> bool:
    """Whether the server itself is to blame; one that refuses a request is alive."""
    return isinstance(error, Broken) and (error.status is None or error.status >= 500)
