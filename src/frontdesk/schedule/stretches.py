"""Deliveries behind the back of whoever asked for them, in a process where no worker runs."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial

import anyio
import structlog
from anyio.abc import TaskGroup

from frontdesk.background import Chore
from frontdesk.schedule.model import Whose

CHORE = Chore(structlog.get_logger("frontdesk.schedule"), "schedule_waits", "schedule_failed")


@dataclass(frozen=True, slots=True)
class Stretch:
    """One of them, from its start to its end."""

    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    ended: anyio.Event = field(default_factory=anyio.Event)


class Stretches:
    """Each caller's are delivered in one stretch at a time, however often they ask."""

    def __init__(self, tasks: TaskGroup, deliver: Callable[[Whose], Awaitable[object]]) -> None:
        self._tasks = tasks
        self._deliver = deliver
        self._under_way: dict[Whose, Stretch] = {}

    def start(self, whose: Whose) -> None:
        if whose not in self._under_way:
            self._under_way[whose] = Stretch()
            self._tasks.start_soon(self._run, whose, self._under_way[whose])

    async def close(self) -> None:
        """Let what runs end, for as long as a worker would; to be called while agents can still take their turns."""
        under_way = list(self._under_way.values())
        for stretch in under_way:
            stretch.scope.cancel()
        for stretch in under_way:
            await stretch.ended.wait()

    async def _run(self, whose: Whose, stretch: Stretch) -> None:
        try:
            with stretch.scope:
                await CHORE.attempt(partial(self._deliver, whose))
        finally:
            del self._under_way[whose]
            stretch.ended.set()
