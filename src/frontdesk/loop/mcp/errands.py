"""Small things that are done after the fact, behind the scenes: a word to a server that nobody waits for."""

import asyncio
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any

import anyio

from frontdesk.errors import Unavailable

ERRAND_SECONDS = 2.0


class Errands:
    """Each takes a short time at most, and may come to nothing."""

    def __init__(self) -> None:
        self._under_way: set[asyncio.Task[None]] = set()

    def start(self, errand: Coroutine[Any, Any, object]) -> None:
        task = asyncio.get_running_loop().create_task(_run(errand))
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)

    async def finish(self) -> None:
        """Wait for those under way; none is long."""
        if self._under_way:
            await asyncio.wait(self._under_way)


async def _run(errand: Coroutine[Any, Any, object]) -> None:
    with anyio.move_on_after(ERRAND_SECONDS), suppress(Unavailable):
        await errand
