"""The worker: sleeps until something is due, has it delivered, and records what became of it."""

import math
import time
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial

import anyio
import structlog

from frontdesk.agents.turns.model import Owner
from frontdesk.background import Chore, group, pauses
from frontdesk.db.engine import Database
from frontdesk.errors import Unavailable
from frontdesk.schedule.bell import Bell
from frontdesk.schedule.due.model import Ask, Settled, Step
from frontdesk.schedule.due.store import DueStore
from frontdesk.schedule.metrics import ScheduleMetrics
from frontdesk.schedule.model import SECOND, Deliver, Ran, Standing, Whose, now_us
from frontdesk.schedule.past.store import PastStore
from frontdesk.schedule.shift import STEP_S, Shift
from frontdesk.schedule.telling import tell_of
from frontdesk.schedule.watch import Watch

CONCURRENCY = 128
LEASE_S = 60.0
TIMEOUT_S = 900.0
DRAIN_S = 10.0
# A clock that was set forward is noticed within this time, and so is what no bell told of. A sixth of a lease at most:
# who looks more rarely cannot tell whether it was left alone.
IDLE_S = 10.0
# What is due and yet not to be had is locked by another worker, for some milliseconds.
LOCKED_S = 0.02
RECOVER_S = 5.0
PAUSES = (0.05, 0.2, 1.0, 3.0)
PRUNE_S = 3600.0
KEEP_DAYS = 30
KEEP_DEAD_DAYS = 90
DAY_US = 86_400 * SECOND

log = structlog.get_logger("frontdesk.schedule")
WORK = Chore(log, "schedule_waits", "schedule_failed")
LEASES = Chore(log, "schedule_leases_wait", "schedule_leases_failed")
HISTORY = Chore(log, "schedule_history_waits", "schedule_history_failed")

# The workers of this process that are at work: not to be taken for those of an earlier process of the same id.
_at_work: set[str] = set()


@dataclass(frozen=True, slots=True)
class WorkerStatus:
    """How a worker is doing, since it was started."""

    running: bool
    started_us: int | None
    in_flight: int
    delivered: int
    failed: int
    next_us: int | None
    last_us: int | None


class Worker:
    """Any number of these share a database; each holds what it has claimed under its own name.

    `forwarded` is called when there are answers that go on to somebody.
    """

    def __init__(  # noqa: PLR0913 - most are left as they are but in tests
        self,
        database: Database,
        deliver: Deliver,
        bell: Bell,
        *,
        concurrency: int = CONCURRENCY,
        lease_s: float = LEASE_S,
        timeout_s: float = TIMEOUT_S,
        drain_s: float = DRAIN_S,
        keep_days: int = KEEP_DAYS,
        clock: Callable[[], int] | None = None,
        owner: Owner | None = None,
        metrics: ScheduleMetrics | None = None,
        forwarded: Callable[[], None] | None = None,
    ) -> None:
        lease_us = int(lease_s * SECOND)
        self.owner = owner or Owner()
        self._store = DueStore(database, str(self.owner), lease_us, clock)
        self._past = PastStore(database, bell)
        self._deliver = deliver
        self._bell = bell
        self._concurrency = concurrency
        self._lease_s = lease_s
        self._timeout_s = timeout_s
        self._drain_s = drain_s
        self._keep_us = keep_days * DAY_US
        self._clock = clock or now_us
        self._metrics = metrics
        self._forwarded = forwarded
        self._watch = Watch(lease_us)
        self._recover_s = min(RECOVER_S, lease_s / 12)
        self._dead: frozenset[str] = frozenset()
        self._recovered = -math.inf
        self._in_doubt = False
        self._shifts: list[Shift] = []
        self._started_us: int | None = None
        self._wakes_us: int | None = None
        self._last_us: int | None = None
        self._delivered = 0
        self._failed = 0

    def status(self) -> WorkerStatus:
        return WorkerStatus(
            running=self._started_us is not None,
            started_us=self._started_us,
            in_flight=self._in_flight(),
            delivered=self._delivered,
            failed=self._failed,
            next_us=self._wakes_us,
            last_us=self._last_us,
        )

    async def run(self) -> None:
        """Work until cancelled; then let what runs end, for a while, and hand back the rest."""
        self._started_us = self._clock()
        try:
            async with self._shift(self._tell) as shift, anyio.create_task_group() as tasks:
                tasks.start_soon(self._bell.run)
                tasks.start_soon(partial(HISTORY.every, PRUNE_S, self._forget, at_once=True))

                def ring(due_us: int) -> None:
                    if self._wakes_us is None or due_us < self._wakes_us:
                        shift.signal.set()

                with self._bell.heard_by(ring):
                    await self._work(shift)
        finally:
            self._started_us = None

    async def once(self, whose: Whose | None = None) -> Sequence[Ran]:
        """Deliver what is due for them by now, and tell what came of it."""
        done: list[Settled] = []

        def tell(step: Step) -> None:
            self._tell(step)
            done.extend(step.kept)

        async with self._shift(tell) as shift:
            step = await shift.step(await self._ask(self._concurrency, whose))
            by_us = step.now_us
            while shift.flight.running or shift.flight.ended:
                await shift.signal.wait(self._timeout_s)
                places = self._concurrency - len(shift.flight.running)
                await shift.step(await self._ask(places, whose, by_us))
        return [_ran(one) for one in done]

    @asynccontextmanager
    async def _shift(self, tell: Callable[[Step], None]) -> AsyncGenerator[Shift]:
        """A stretch of work: what it claims is kept alive to its end, also while it drains."""
        async with group() as tasks:
            shift = Shift(self._store, self._deliver, self._timeout_s, tell)
            self._shifts.append(shift)
            _at_work.add(str(self.owner))
            alive = anyio.CancelScope(shield=True)
            tasks.start_soon(self._keep_alive, alive)
            try:
                yield shift
            finally:
                with anyio.CancelScope(shield=True):
                    await shift.drain(self._drain_s)
                self._bell.ring(0, 0)
                alive.cancel()
                self._shifts.remove(shift)
                self._in_doubt = True
                if not self._shifts:
                    _at_work.discard(str(self.owner))

    async def _work(self, shift: Shift) -> None:
        once, rests = partial(self._step, shift), pauses(*PAUSES)
        while True:
            if await WORK.attempt(once):
                rests = pauses(*PAUSES)
            else:
                self._in_doubt = True
                await anyio.sleep(next(rests))

    async def _step(self, shift: Shift) -> None:
        """Settle and claim, then rest until there is more to do."""
        # What is rung for from here on may not be seen by this step.
        self._wakes_us = None
        places = self._concurrency - len(shift.flight.running)
        began = time.monotonic()
        # Half of them at once, so that one half is delivered while the database is told of the other.
        step = await shift.step(await self._ask(min(places, max(1, self._concurrency // 2))))
        if places > 0:
            self._wakes_us = step.next_us
        await shift.signal.wait(self._rest_s(step, began, shift))

    def _rest_s(self, step: Step, began: float, shift: Shift) -> float:
        if shift.flight.ended:
            return 0.0
        idle_s = min(IDLE_S, self._lease_s / 6)
        if len(shift.flight.running) >= self._concurrency or step.next_us is None:
            return idle_s
        ahead_s = (step.next_us - step.now_us) / SECOND - (time.monotonic() - began)
        if ahead_s > 0:
            return min(ahead_s, idle_s)
        return 0.0 if step.claimed or step.kept else LOCKED_S

    async def _ask(self, places: int, whose: Whose | None = None, due_by_us: int | None = None) -> Ask:
        with anyio.move_on_after(STEP_S) as limit:
            if time.monotonic() - self._recovered > self._recover_s:
                self._dead = await self._store.recover(self._knows_dead, self._watch.look)
                self._recovered = time.monotonic()
            if self._in_doubt:
                await self._store.hand_back()
                self._in_doubt = False
        if limit.cancelled_caught:
            raise Unavailable(f"The database took longer than {STEP_S:g} s")
        return Ask(places, self._dead, self._watch.left_alone, whose or Whose(), due_by_us)

    def _knows_dead(self, other: str) -> bool:
        return other not in _at_work and self.owner.knows_dead(other)

    async def _keep_alive(self, scope: anyio.CancelScope) -> None:
        with scope:
            kept = True
            while True:
                # What could not be renewed may be taken over soon after the database answers again.
                await anyio.sleep(self._lease_s / (3 if kept else 12))
                kept = False
                with anyio.move_on_after(self._lease_s / 3):
                    kept = await LEASES.attempt(self._renew)

    async def _renew(self) -> None:
        if lost := await self._store.renew():
            log.warning("deliveries_taken_over", ids=sorted(lost))
            for shift in self._shifts:
                shift.flight.cut(lost)

    async def _forget(self) -> None:
        now = self._clock()
        await self._past.prune(now - self._keep_us, now - max(self._keep_us, KEEP_DEAD_DAYS * DAY_US))

    def _in_flight(self) -> int:
        return sum(len(shift.flight.running) for shift in self._shifts)

    def _tell(self, step: Step) -> None:
        delivered = sum(one.standing is Standing.DELIVERED for one in step.kept)
        self._delivered += delivered
        self._failed += len(step.kept) - delivered
        if step.claimed:
            self._last_us = step.now_us
        tell_of(step.kept)
        if self._forwarded is not None and any(_goes_on(one) for one in step.kept):
            self._forwarded()
        if self._metrics is not None:
            self._metrics.begun(step.claimed)
            self._metrics.ended(step.kept)
            self._metrics.in_flight(self._in_flight())


def _goes_on(one: Settled) -> bool:
    return one.standing is Standing.DELIVERED and one.occurrence.webhook is not None


def _ran(one: Settled) -> Ran:
    return Ran(one.occurrence, one.standing is Standing.DELIVERED, one.answer, one.error)
