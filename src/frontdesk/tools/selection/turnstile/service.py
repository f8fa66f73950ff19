"""One at a time changes an agent's tools: queued within a process, under a lease between processes."""

from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from datetime import timedelta
from uuid import uuid4
from weakref import WeakValueDictionary

import anyio
import structlog

from frontdesk.errors import Busy, Unavailable
from frontdesk.tools.selection.turnstile.store import TurnstileStore

# Longer than anybody stays inside, by what a slow database takes to give it and to write what was done.
LEASE = timedelta(seconds=45)
WAIT_SECONDS = 60
LEAVE_SECONDS = 5
PAUSES = (0.005, 0.01, 0.02, 0.05)

log = structlog.get_logger("frontdesk.tools")


class Turnstile:
    """Called with an agent's id, gives what to enter: `async with turnstile(agent_id)`. Be out within the lease."""

    def __init__(self, store: TurnstileStore, wait: float = WAIT_SECONDS) -> None:
        self._store = store
        self._wait = wait
        # A lock lives as long as somebody waits for it or holds it.
        self._locks: WeakValueDictionary[str, anyio.Lock] = WeakValueDictionary()

    @asynccontextmanager
    async def __call__(self, agent_id: str) -> AsyncGenerator[None]:
        lock = self._locks.setdefault(agent_id, anyio.Lock())
        owner = uuid4().hex
        until = anyio.current_time() + self._wait
        with self._patience(agent_id, until):
            await lock.acquire()
        try:
            with self._patience(agent_id, until):
                await self._take(agent_id, owner)
            yield
        finally:
            # Also when it was cut off while taking: nobody knows then whether the lease was given.
            await self._leave(agent_id, owner)
            lock.release()

    async def _take(self, agent_id: str, owner: str) -> None:
        pauses = iter(PAUSES)
        while True:
            if await self._store.take(agent_id, owner, LEASE):
                return
            await anyio.sleep(next(pauses, PAUSES[-1]))

    async def _leave(self, agent_id: str, owner: str) -> None:
        with anyio.move_on_after(LEAVE_SECONDS, shield=True):
            try:
                await self._store.leave(agent_id, owner)
            except Unavailable as error:
                log.warning("turnstile_waits_for_its_lease", agent_id=agent_id, error=str(error))

    @contextmanager
    def _patience(self, agent_id: str, until: float) -> Generator[None]:
        try:
            with anyio.fail_after(until - anyio.current_time()):
                yield
        except TimeoutError as error:
            raise Busy(
                f"Others have been changing the tools of agent '{agent_id}' for {self._wait:.0f} s; try again later"
            ) from error
