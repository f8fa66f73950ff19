"""Deliveries under way in this process: started, bounded in time, cut off one by one, their ends gathered."""

import asyncio
import random
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass

import anyio
import structlog

from frontdesk.schedule.due.model import Settled
from frontdesk.schedule.model import SECOND, Deliver, Delivered, Occurrence, Undelivered
from frontdesk.schedule.retry import settled

log = structlog.get_logger("frontdesk.schedule")


@dataclass(slots=True)
class Running:
    """A delivery under way; its scope is there once its task has begun."""

    occurrence: Occurrence
    until: float
    task: asyncio.Task[None] | None = None
    scope: anyio.CancelScope | None = None
    cut: bool = False


class Flight:
    """Whoever makes one waits until nothing runs. `on_end` is called as each ends; the ends lie in `ended`.

    The tasks are asyncio's own: they outlive the cancelled scope of whoever starts them, who lets them end, and there
    are thousands a second of them, each of which would cost a task group a tenth of a millisecond.
    """

    def __init__(self, deliver: Deliver, timeout_s: float, on_end: Callable[[], None]) -> None:
        self._deliver = deliver
        self._timeout_s = timeout_s
        self._on_end = on_end
        self._sweeps = False
        # In the order of their starts, and so of their deadlines.
        self.running: dict[tuple[str, int], Running] = {}
        self.ended: list[Settled] = []

    def start(self, occurrence: Occurrence) -> None:
        loop = asyncio.get_running_loop()
        running = Running(occurrence, loop.time() + self._timeout_s)
        self.running[occurrence.id, occurrence.fence] = running
        running.task = loop.create_task(self._run(running))
        if not self._sweeps:
            self._sweep_at(running.until)

    def cut(self, ids: Collection[str] | None = None) -> None:
        """Cut off these, or all that run; no end is told of them."""
        for running in self.running.values():
            if ids is None or running.occurrence.id in ids:
                running.cut = True
                if running.scope is not None:
                    running.scope.cancel()

    def _sweep_at(self, when: float) -> None:
        self._sweeps = True
        asyncio.get_running_loop().call_at(when, self._sweep)

    def _sweep(self) -> None:
        """Cut off what takes too long. One timer for all: one for each delivery costs as much as the delivery."""
        self._sweeps = False
        now = asyncio.get_running_loop().time()
        for running in self.running.values():
            if running.until > now or running.scope is None:
                self._sweep_at(running.until)
                return
            running.scope.cancel()

    async def _run(self, running: Running) -> None:
        occurrence, began = running.occurrence, time.monotonic()
        outcome: Delivered | Undelivered | None = None
        try:
            if not running.cut:
                # By its scope, not its task: then what must not be cut off midway is not.
                with anyio.CancelScope() as running.scope:
                    outcome = await self._attempt(occurrence)
                if outcome is None and not running.cut:
                    outcome = Undelivered(f"The agent took longer than {self._timeout_s:g} s", in_doubt=True)
        finally:
            del self.running[occurrence.id, occurrence.fence]
            if outcome is not None:
                took_us = int((time.monotonic() - began) * SECOND)
                now_us = occurrence.started_us + took_us
                self.ended.append(settled(occurrence, outcome, now_us, took_us, random.random()))  # noqa: S311 - no secret
            self._on_end()

    async def _attempt(self, occurrence: Occurrence) -> Delivered | Undelivered:
        try:
            return await self._deliver(occurrence)
        except Undelivered as failure:
            return failure
        except Exception:
            log.exception("delivery_failed", delivery_id=occurrence.id)
            return Undelivered("Frontdesk failed inside; its log says why", in_doubt=True)
