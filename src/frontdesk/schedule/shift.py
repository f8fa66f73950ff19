"""One stretch of work: claims go to deliveries, their ends to the database, until there is no more or it is stopped."""

from asyncio import gather
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import TypeVar

import anyio
import structlog

from frontdesk.errors import Unavailable, Unstorable
from frontdesk.schedule.due.model import Ask, Settled, Step
from frontdesk.schedule.due.store import DueStore
from frontdesk.schedule.flight import Flight
from frontdesk.schedule.model import Deliver, Standing

# A transaction that takes longer has failed; what it may have done is found out later.
STEP_S = 10.0
CUT_S = 5.0
# A database that is away for longer finds out from the leases.
LAST_S = 12.0
LAST_PAUSE_S = 0.5
UNSTORABLE = "What came back could not be stored"

T = TypeVar("T")

log = structlog.get_logger("frontdesk.schedule")


class Signal:
    """Something has happened since it was last waited for."""

    def __init__(self) -> None:
        self._event = anyio.Event()

    def set(self) -> None:
        self._event.set()

    async def wait(self, seconds: float) -> None:
        with anyio.move_on_after(seconds):
            await self._event.wait()
        if self._event.is_set():
            self._event = anyio.Event()


class Shift:
    """`tell` hears of every step that was done."""

    def __init__(self, store: DueStore, deliver: Deliver, timeout_s: float, tell: Callable[[Step], None]) -> None:
        self.signal = Signal()
        self.flight = Flight(deliver, timeout_s, self.signal.set)
        self._store = store
        self._tell = tell

    async def step(self, ask: Ask) -> Step:
        """Settle what has ended, claim what is asked for, and start it. Not cut off midway: then nobody would know."""
        ended = list(self.flight.ended)
        if self._store.better_apart(len(ended), ask):
            return await self._apart(ended, ask)
        try:
            step = await _in_time(self._store.step(ended, ask))
        except Unstorable:
            if not ended:
                raise
            step = await self._one_by_one(ended)
        self._start(step)
        return self._done(ended, step)

    async def _apart(self, ended: Sequence[Settled], ask: Ask) -> Step:
        """Ends are told while more is handed out; what was done of either counts, whatever became of the other."""
        settled, begun = await _in_time(gather(self._settled(ended), self._begun(ask), return_exceptions=True))
        if isinstance(settled, BaseException):
            raise settled
        if isinstance(begun, BaseException):
            self._done(ended, settled)
            raise begun
        return self._done(ended, replace(begun, kept=settled.kept))

    async def _settled(self, ended: Sequence[Settled]) -> Step:
        try:
            return Step(0, await self._store.settle(ended), [], None)
        except Unstorable:
            return await self._one_by_one(ended)

    async def _begun(self, ask: Ask) -> Step:
        step = await self._store.begin(ask)
        self._start(step)
        return step

    def _start(self, step: Step) -> None:
        for occurrence in step.claimed:
            self.flight.start(occurrence)

    def _done(self, ended: Sequence[Settled], step: Step) -> Step:
        del self.flight.ended[: len(ended)]
        self._tell(step)
        return step

    async def drain(self, seconds: float) -> None:
        """Let what runs end, for a while; hand back the rest, for others to go on with at once."""
        until = anyio.current_time() + seconds
        while self.flight.running and anyio.current_time() < until:
            await self.signal.wait(until - anyio.current_time())
            await self._settle()
        left = [name for name, _ in self.flight.running]
        self.flight.cut()
        with anyio.move_on_after(CUT_S):
            while self.flight.running:
                await self.signal.wait(CUT_S)
        with anyio.move_on_after(LAST_S):
            while True:
                if await self._settle() and await self._hand_back(left):
                    break
                await anyio.sleep(LAST_PAUSE_S)
        # Whether or not the database was told: nobody here goes on with these.
        self._store.held.difference_update((*left, *(one.occurrence.id for one in self.flight.ended)))

    async def _settle(self) -> bool:
        try:
            if self.flight.ended:
                await self.step(Ask(0))
        except Unavailable as error:
            log.warning("schedule_waits", error=str(error))
            return False
        return True

    async def _hand_back(self, ids: Sequence[str]) -> bool:
        try:
            if number := await self._store.hand_back(ids):
                log.info("deliveries_handed_back", number=number)
        except Unavailable as error:
            log.warning("schedule_waits", error=str(error))
            return False
        return True

    async def _one_by_one(self, ended: Sequence[Settled]) -> Step:
        """One end that cannot be stored must not keep the others out, and ends all the same."""
        kept: list[Settled] = []
        for one in ended:
            try:
                kept += await self._store.settle([one])
            except Unstorable:
                log.exception("delivery_unstorable", delivery_id=one.occurrence.id)
                dead = Settled(one.occurrence, Standing.DEAD, one.took_us, error=UNSTORABLE, in_doubt=True)
                kept += await self._store.settle([dead])
        return Step(0, kept, [], None)


async def _in_time(work: Awaitable[T]) -> T:
    with anyio.move_on_after(STEP_S, shield=True):
        return await work
    raise Unavailable(f"The database took longer than {STEP_S:g} s")
