"""Runs the worker: sleeps until something is due, claims it, delivers it, settles it, and keeps leases alive."""

import asyncio
import math
import random
import time
from asyncio import gather
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

import anyio
import structlog

from frontdesk.agents.turns.model import LeaseOwner
from frontdesk.background import BackgroundJob, background_group, retry_delays
from frontdesk.db.engine import Database
from frontdesk.errors import Unavailable, Unstorable
from frontdesk.schedules.delivery_rules import ClaimRequest, RunLease, SettledRun, StepResult, settle_attempt
from frontdesk.schedules.delivery_store import DeliveryStore
from frontdesk.schedules.history_store import HistoryStore
from frontdesk.schedules.metrics import ScheduleMetrics, log_ended
from frontdesk.schedules.model import (
    SECOND,
    DeliverRun,
    DeliveryFailed,
    DeliveryResult,
    Occurrence,
    OwnerFilter,
    RunOutcome,
    RunStatus,
    now_us,
)
from frontdesk.schedules.wakeup import WakeupNotifier


class LeaseWatch:
    """A lease past its end may only look lost: the clock was set, or the database was away and nobody could renew it.

    Whoever is alive renews within a third of a lease's length, and soon after the database answers again. So a lease
    was left alone when it was seen unchanged for two thirds of its length, by looks of which no two lie further apart
    than a third: a longer silence, of the database or of the one who looks, makes everything be seen anew.
    """

    def __init__(self, lease_us: int, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._third_us = lease_us // 3
        self._monotonic = monotonic
        self._looked_us: int | None = None
        self._seen: dict[RunLease, int] = {}

    def observe(self, leases: Iterable[RunLease]) -> set[RunLease]:
        """These are all that others have by now; those of them that were left alone."""
        now_us = self._now_us()
        before = self._seen if self._is_recent(now_us) else {}
        self._seen = {lease: before.get(lease, now_us) for lease in leases}
        self._looked_us = now_us
        return {lease for lease in self._seen if self.is_abandoned(lease)}

    def is_abandoned(self, lease: RunLease) -> bool:
        now_us = self._now_us()
        since_us = self._seen.get(lease, now_us)
        return self._is_recent(now_us) and now_us - since_us >= 2 * self._third_us

    def _is_recent(self, now_us: int) -> bool:
        return self._looked_us is not None and now_us - self._looked_us <= self._third_us

    def _now_us(self) -> int:
        return int(self._monotonic() * SECOND)


log = structlog.get_logger("frontdesk.schedules")


@dataclass(slots=True)
class RunningDelivery:
    """A delivery under way; its scope is there once its task has begun."""

    occurrence: Occurrence
    until: float
    task: asyncio.Task[None] | None = None
    scope: anyio.CancelScope | None = None
    cancelled: bool = False


class RunningDeliveries:
    """Whoever makes one waits until nothing runs. `on_end` is called as each ends; the ends lie in `ended`.

    The tasks are asyncio's own: they outlive the cancelled scope of whoever starts them, who lets them end, and there
    are thousands a second of them, each of which would cost a task group a tenth of a millisecond.
    """

    def __init__(self, deliver: DeliverRun, timeout_s: float, on_end: Callable[[], None]) -> None:
        self._deliver = deliver
        self._timeout_s = timeout_s
        self._on_end = on_end
        self._sweeps = False
        # In the order of their starts, and so of their deadlines.
        self.running: dict[tuple[str, int], RunningDelivery] = {}
        self.ended: list[SettledRun] = []

    def start(self, occurrence: Occurrence) -> None:
        loop = asyncio.get_running_loop()
        running = RunningDelivery(occurrence, loop.time() + self._timeout_s)
        self.running[occurrence.id, occurrence.fence] = running
        running.task = loop.create_task(self._run(running))
        if not self._sweeps:
            self._schedule_sweep(running.until)

    def cancel(self, ids: Collection[str] | None = None) -> None:
        """Cut off these, or all that run; no end is told of them."""
        for running in self.running.values():
            if ids is None or running.occurrence.id in ids:
                running.cancelled = True
                if running.scope is not None:
                    running.scope.cancel()

    def _schedule_sweep(self, when: float) -> None:
        self._sweeps = True
        asyncio.get_running_loop().call_at(when, self._cancel_overdue)

    def _cancel_overdue(self) -> None:
        """Cut off what takes too long. One timer for all: one for each delivery costs as much as the delivery."""
        self._sweeps = False
        now = asyncio.get_running_loop().time()
        for running in self.running.values():
            if running.until > now or running.scope is None:
                self._schedule_sweep(running.until)
                return
            running.scope.cancel()

    async def _run(self, running: RunningDelivery) -> None:
        occurrence, began = running.occurrence, time.monotonic()
        outcome: DeliveryResult | DeliveryFailed | None = None
        try:
            if not running.cancelled:
                # By its scope, not its task: then what must not be cut off midway is not.
                with anyio.CancelScope() as running.scope:
                    outcome = await self._attempt(occurrence)
                if outcome is None and not running.cancelled:
                    outcome = DeliveryFailed(f"The agent took longer than {self._timeout_s:g} s", in_doubt=True)
        finally:
            del self.running[occurrence.id, occurrence.fence]
            if outcome is not None:
                took_us = int((time.monotonic() - began) * SECOND)
                now_us = occurrence.started_us + took_us
                self.ended.append(settle_attempt(occurrence, outcome, now_us, took_us, random.random()))  # noqa: S311 - no secret
            self._on_end()

    async def _attempt(self, occurrence: Occurrence) -> DeliveryResult | DeliveryFailed:
        try:
            return await self._deliver(occurrence)
        except DeliveryFailed as failure:
            return failure
        except Exception:
            log.exception("delivery_failed", delivery_id=occurrence.id)
            return DeliveryFailed("Frontdesk failed inside; its log says why", in_doubt=True)


# A transaction that takes longer has failed; what it may have done is found out later.
STEP_TIMEOUT_S = 10.0
CANCEL_TIMEOUT_S = 5.0
# A database that is away for longer finds out from the leases.
LAST_SETTLE_TIMEOUT_S = 12.0
LAST_SETTLE_PAUSE_S = 0.5
UNSTORABLE = "What came back could not be stored"

StepT = TypeVar("StepT")


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


class WorkSession:
    """`tell` hears of every step that was done."""

    def __init__(
        self, store: DeliveryStore, deliver: DeliverRun, timeout_s: float, tell: Callable[[StepResult], None]
    ) -> None:
        self.signal = Signal()
        self.deliveries = RunningDeliveries(deliver, timeout_s, self.signal.set)
        self._store = store
        self._on_step = tell

    async def step(self, ask: ClaimRequest) -> StepResult:
        """Settle what has ended, claim what is asked for, and start it. Not cut off midway: then nobody would know."""
        ended = list(self.deliveries.ended)
        if self._store.should_split(len(ended), ask):
            return await self._settle_while_claiming(ended, ask)
        try:
            step = await _within_step_timeout(self._store.settle_and_claim(ended, ask))
        except Unstorable:
            if not ended:
                raise
            step = await self._settle_one_by_one(ended)
        self._start(step)
        return self._finish_step(ended, step)

    async def _settle_while_claiming(self, ended: Sequence[SettledRun], ask: ClaimRequest) -> StepResult:
        """Ends are told while more is handed out; what was done of either counts, whatever became of the other."""
        settled, begun = await _within_step_timeout(
            gather(self._settle_batch(ended), self._claim_batch(ask), return_exceptions=True)
        )
        if isinstance(settled, BaseException):
            raise settled
        if isinstance(begun, BaseException):
            self._finish_step(ended, settled)
            raise begun
        return self._finish_step(ended, replace(begun, recorded=settled.recorded))

    async def _settle_batch(self, ended: Sequence[SettledRun]) -> StepResult:
        try:
            return StepResult(0, await self._store.settle(ended), [], None)
        except Unstorable:
            return await self._settle_one_by_one(ended)

    async def _claim_batch(self, ask: ClaimRequest) -> StepResult:
        step = await self._store.claim_batch(ask)
        self._start(step)
        return step

    def _start(self, step: StepResult) -> None:
        for occurrence in step.claimed:
            self.deliveries.start(occurrence)

    def _finish_step(self, ended: Sequence[SettledRun], step: StepResult) -> StepResult:
        del self.deliveries.ended[: len(ended)]
        self._on_step(step)
        return step

    async def drain(self, seconds: float) -> None:
        """Let what runs end, for a while; hand back the rest, for others to go on with at once."""
        until = anyio.current_time() + seconds
        while self.deliveries.running and anyio.current_time() < until:
            await self.signal.wait(until - anyio.current_time())
            await self._settle()
        left = [name for name, _ in self.deliveries.running]
        self.deliveries.cancel()
        with anyio.move_on_after(CANCEL_TIMEOUT_S):
            while self.deliveries.running:
                await self.signal.wait(CANCEL_TIMEOUT_S)
        with anyio.move_on_after(LAST_SETTLE_TIMEOUT_S):
            while True:
                if await self._settle() and await self._release(left):
                    break
                await anyio.sleep(LAST_SETTLE_PAUSE_S)
        # Whether or not the database was told: nobody here goes on with these.
        self._store.held_ids.difference_update((*left, *(one.occurrence.id for one in self.deliveries.ended)))

    async def _settle(self) -> bool:
        try:
            if self.deliveries.ended:
                await self.step(ClaimRequest(0))
        except Unavailable as error:
            log.warning("schedule_waits", error=str(error))
            return False
        return True

    async def _release(self, ids: Sequence[str]) -> bool:
        try:
            if number := await self._store.release(ids):
                log.info("deliveries_handed_back", number=number)
        except Unavailable as error:
            log.warning("schedule_waits", error=str(error))
            return False
        return True

    async def _settle_one_by_one(self, ended: Sequence[SettledRun]) -> StepResult:
        """One end that cannot be stored must not keep the others out, and ends all the same."""
        kept: list[SettledRun] = []
        for one in ended:
            try:
                kept += await self._store.settle([one])
            except Unstorable:
                log.exception("delivery_unstorable", delivery_id=one.occurrence.id)
                dead = SettledRun(one.occurrence, RunStatus.DEAD, one.took_us, error=UNSTORABLE, in_doubt=True)
                kept += await self._store.settle([dead])
        return StepResult(0, kept, [], None)


async def _within_step_timeout(work: Awaitable[StepT]) -> StepT:
    with anyio.move_on_after(STEP_TIMEOUT_S, shield=True):
        return await work
    raise Unavailable(f"The database took longer than {STEP_TIMEOUT_S:g} s")


CONCURRENCY = 128
LEASE_S = 60.0
TIMEOUT_S = 900.0
DRAIN_S = 10.0
# Work without a notification, and a clock set forward, are noticed within this time. A sixth of a lease at most:
# who looks more rarely cannot tell whether it was left alone.
IDLE_S = 10.0
# What is due and yet not to be had is locked by another worker, for some milliseconds.
LOCKED_PAUSE_S = 0.02
RECOVER_EVERY_S = 5.0
RETRY_PAUSES = (0.05, 0.2, 1.0, 3.0)
PRUNE_EVERY_S = 3600.0
KEEP_DAYS = 30
KEEP_DEAD_DAYS = 90
DAY_US = 86_400 * SECOND

WORK_JOB = BackgroundJob(log, "schedule_waits", "schedule_failed")
LEASE_JOB = BackgroundJob(log, "schedule_leases_wait", "schedule_leases_failed")
PRUNE_JOB = BackgroundJob(log, "schedule_history_waits", "schedule_history_failed")

# The workers of this process that are at work: not to be taken for those of an earlier process of the same id.
_active_owners: set[str] = set()


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
        deliver: DeliverRun,
        notifier: WakeupNotifier,
        *,
        concurrency: int = CONCURRENCY,
        lease_s: float = LEASE_S,
        timeout_s: float = TIMEOUT_S,
        drain_s: float = DRAIN_S,
        keep_days: int = KEEP_DAYS,
        clock: Callable[[], int] | None = None,
        owner: LeaseOwner | None = None,
        metrics: ScheduleMetrics | None = None,
        forwarded: Callable[[], None] | None = None,
    ) -> None:
        lease_us = int(lease_s * SECOND)
        self.owner = owner or LeaseOwner()
        self._store = DeliveryStore(database, str(self.owner), lease_us, clock)
        self._past = HistoryStore(database, notifier)
        self._deliver = deliver
        self._notifier = notifier
        self._concurrency = concurrency
        self._lease_s = lease_s
        self._timeout_s = timeout_s
        self._drain_s = drain_s
        self._keep_us = keep_days * DAY_US
        self._clock = clock or now_us
        self._metrics = metrics
        self._forwarded = forwarded
        self._watch = LeaseWatch(lease_us)
        self._recover_s = min(RECOVER_EVERY_S, lease_s / 12)
        self._dead: frozenset[str] = frozenset()
        self._recovered = -math.inf
        self._in_doubt = False
        self._sessions: list[WorkSession] = []
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
            async with self._open_session(self._report_step) as shift, anyio.create_task_group() as tasks:
                tasks.start_soon(self._notifier.run)
                tasks.start_soon(partial(PRUNE_JOB.run_every, PRUNE_EVERY_S, self._prune_history, at_once=True))

                def ring(due_us: int) -> None:
                    if self._wakes_us is None or due_us < self._wakes_us:
                        shift.signal.set()

                with self._notifier.subscribed(ring):
                    await self._work(shift)
        finally:
            self._started_us = None

    async def deliver_due(self, whose: OwnerFilter | None = None) -> Sequence[RunOutcome]:
        """Deliver what is due for them by now, and tell what came of it."""
        done: list[SettledRun] = []

        def tell(step: StepResult) -> None:
            self._report_step(step)
            done.extend(step.recorded)

        async with self._open_session(tell) as shift:
            step = await shift.step(await self._claim_request(self._concurrency, whose))
            by_us = step.now_us
            while shift.deliveries.running or shift.deliveries.ended:
                await shift.signal.wait(self._timeout_s)
                places = self._concurrency - len(shift.deliveries.running)
                await shift.step(await self._claim_request(places, whose, by_us))
        return [_run_outcome(one) for one in done]

    @asynccontextmanager
    async def _open_session(self, tell: Callable[[StepResult], None]) -> AsyncGenerator[WorkSession]:
        """A stretch of work: what it claims is kept alive to its end, also while it drains."""
        async with background_group() as tasks:
            shift = WorkSession(self._store, self._deliver, self._timeout_s, tell)
            self._sessions.append(shift)
            _active_owners.add(str(self.owner))
            alive = anyio.CancelScope(shield=True)
            tasks.start_soon(self._keep_alive, alive)
            try:
                yield shift
            finally:
                with anyio.CancelScope(shield=True):
                    await shift.drain(self._drain_s)
                self._notifier.notify(0, 0)
                alive.cancel()
                self._sessions.remove(shift)
                self._in_doubt = True
                if not self._sessions:
                    _active_owners.discard(str(self.owner))

    async def _work(self, shift: WorkSession) -> None:
        once, rests = partial(self._step, shift), retry_delays(*RETRY_PAUSES)
        while True:
            if await WORK_JOB.attempt(once):
                rests = retry_delays(*RETRY_PAUSES)
            else:
                self._in_doubt = True
                await anyio.sleep(next(rests))

    async def _step(self, shift: WorkSession) -> None:
        """Settle and claim, then rest until there is more to do."""
        # What is rung for from here on may not be seen by this step.
        self._wakes_us = None
        places = self._concurrency - len(shift.deliveries.running)
        began = time.monotonic()
        # Half of them at once, so that one half is delivered while the database is told of the other.
        step = await shift.step(await self._claim_request(min(places, max(1, self._concurrency // 2))))
        if places > 0:
            self._wakes_us = step.next_us
        await shift.signal.wait(self._pause_s(step, began, shift))

    def _pause_s(self, step: StepResult, began: float, shift: WorkSession) -> float:
        if shift.deliveries.ended:
            return 0.0
        idle_s = min(IDLE_S, self._lease_s / 6)
        if len(shift.deliveries.running) >= self._concurrency or step.next_us is None:
            return idle_s
        ahead_s = (step.next_us - step.now_us) / SECOND - (time.monotonic() - began)
        if ahead_s > 0:
            return min(ahead_s, idle_s)
        return 0.0 if step.claimed or step.recorded else LOCKED_PAUSE_S

    async def _claim_request(
        self, places: int, whose: OwnerFilter | None = None, due_by_us: int | None = None
    ) -> ClaimRequest:
        with anyio.move_on_after(STEP_TIMEOUT_S) as limit:
            if time.monotonic() - self._recovered > self._recover_s:
                self._dead = await self._store.recover(self._knows_dead, self._watch.observe)
                self._recovered = time.monotonic()
            if self._in_doubt:
                await self._store.release()
                self._in_doubt = False
        if limit.cancelled_caught:
            raise Unavailable(f"The database took longer than {STEP_TIMEOUT_S:g} s")
        return ClaimRequest(places, self._dead, self._watch.is_abandoned, whose or OwnerFilter(), due_by_us)

    def _knows_dead(self, other: str) -> bool:
        return other not in _active_owners and self.owner.knows_ended(other)

    async def _keep_alive(self, scope: anyio.CancelScope) -> None:
        with scope:
            kept = True
            while True:
                # What could not be renewed may be taken over soon after the database answers again.
                await anyio.sleep(self._lease_s / (3 if kept else 12))
                kept = False
                with anyio.move_on_after(self._lease_s / 3):
                    kept = await LEASE_JOB.attempt(self._renew)

    async def _renew(self) -> None:
        if lost := await self._store.renew():
            log.warning("deliveries_taken_over", ids=sorted(lost))
            for shift in self._sessions:
                shift.deliveries.cancel(lost)

    async def _prune_history(self) -> None:
        now = self._clock()
        await self._past.prune(now - self._keep_us, now - max(self._keep_us, KEEP_DEAD_DAYS * DAY_US))

    def _in_flight(self) -> int:
        return sum(len(shift.deliveries.running) for shift in self._sessions)

    def _report_step(self, step: StepResult) -> None:
        delivered = sum(one.standing is RunStatus.DELIVERED for one in step.recorded)
        self._delivered += delivered
        self._failed += len(step.recorded) - delivered
        if step.claimed:
            self._last_us = step.now_us
        log_ended(step.recorded)
        if self._forwarded is not None and any(_has_webhook(one) for one in step.recorded):
            self._forwarded()
        if self._metrics is not None:
            self._metrics.count_started(step.claimed)
            self._metrics.count_ended(step.recorded)
            self._metrics.set_in_flight(self._in_flight())


def _has_webhook(one: SettledRun) -> bool:
    return one.standing is RunStatus.DELIVERED and one.occurrence.webhook is not None


def _run_outcome(one: SettledRun) -> RunOutcome:
    return RunOutcome(one.occurrence, one.standing is RunStatus.DELIVERED, one.answer, one.error)
