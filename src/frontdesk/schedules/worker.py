"""Runs the worker: sleeps until a run is due, claims it, delivers it and settles it, and renews its lease meanwhile.

`Worker.run` is the loop. Each `_step` settles the runs that have ended and claims new ones; `_deliver_run` delivers one
run in its own task and decides how it ended; `_finish_step` logs and counts what was settled.
"""

import asyncio
import math
import random
import time
from collections import Counter as CountOf
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

import anyio
import structlog
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from frontdesk.agents.turns.model import LeaseOwner
from frontdesk.background import BackgroundJob, background_group, retry_delays
from frontdesk.db.engine import Database
from frontdesk.errors import Unavailable, Unstorable
from frontdesk.schedules.delivery_rules import ClaimRequest, LeaseWatch, SettledRun, StepResult, settle_attempt
from frontdesk.schedules.delivery_store import DeliveryStore
from frontdesk.schedules.history_store import HistoryStore, ScheduleFigures
from frontdesk.schedules.model import SECOND, DeliverRun, DeliveryFailed, Occurrence, OwnerFilter, RunStatus, now_us
from frontdesk.schedules.wakeup import WakeupNotifier
from frontdesk.schedules.webhooks import WebhookForwarder

CONCURRENCY = 128
LEASE_S = 60.0
TIMEOUT_S = 900.0
DRAIN_S = 10.0
# A clock that was set forward, and work without a notification, are noticed within this time. It is at most a sixth of
# a lease: a worker that looks less often cannot tell whether a lease was abandoned.
IDLE_S = 10.0
# Due runs that cannot be claimed are locked by another worker, for some milliseconds.
LOCKED_PAUSE_S = 0.02
RECOVER_EVERY_S = 5.0
RETRY_PAUSES = (0.05, 0.2, 1.0, 3.0)
# A transaction that takes longer has failed; the worker finds out later what it did.
STEP_TIMEOUT_S = 10.0
CANCEL_TIMEOUT_S = 5.0
# If the database is unreachable for longer, the leases of these runs expire.
LAST_SETTLE_TIMEOUT_S = 12.0
LAST_SETTLE_PAUSE_S = 0.5
PRUNE_EVERY_S = 3600.0
KEEP_DAYS = 30
KEEP_DEAD_DAYS = 90
DAY_US = 86_400 * SECOND
# With more ended runs, logging each one would take longer than the runs did; history and journal have them all.
LOGGED_ONE_BY_ONE = 10
LATENESS_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 3600)
UNSTORABLE = "What came back could not be stored"

StepT = TypeVar("StepT")
log = structlog.get_logger("frontdesk.schedules")
WORK_JOB = BackgroundJob(log, "schedule_waits", "schedule_failed")
LEASE_JOB = BackgroundJob(log, "schedule_leases_wait", "schedule_leases_failed")
PRUNE_JOB = BackgroundJob(log, "schedule_history_waits", "schedule_history_failed")

# The active workers of this process, so that none is taken for a worker of an earlier process with the same id.
_active_owners: set[str] = set()


class ScheduleMetrics:
    """Counts what this process's workers do, and exports the figures that are read from the database."""

    def __init__(self, registry: CollectorRegistry) -> None:
        def gauge(name: str, text: str) -> Gauge:
            return Gauge(f"frontdesk_schedule_{name}", text, registry=registry)

        self._lateness = Histogram(
            "frontdesk_schedule_lateness_seconds",
            "How long after its time a prompt was begun.",
            buckets=LATENESS_BUCKETS,
            registry=registry,
        )
        self._attempts = Counter(
            "frontdesk_schedule_attempts",
            "Attempts that ended, by how: delivered, waiting (to be tried again) or dead.",
            ["standing"],
            registry=registry,
        )
        self._in_flight = gauge("in_flight", "Deliveries under way in this process.")
        self._due = gauge("due", "Schedules whose time has come and that nobody has begun.")
        self._overdue = gauge("oldest_overdue_seconds", "How late the latest of them is.")
        self._running = gauge("running", "Deliveries under way anywhere.")
        self._waiting = gauge("waiting", "Deliveries that wait for another attempt.")
        self._dead = gauge("dead_letters", "Deliveries that were given up.")

    def count_step(self, step: StepResult, in_flight: int) -> None:
        for run in step.claimed:
            if run.fence == 1:
                self._lateness.observe(max(0, run.started_us - run.due_us) / SECOND)
        for standing in (RunStatus.DELIVERED, RunStatus.WAITING, RunStatus.DEAD):
            if number := sum(run.standing is standing for run in step.recorded):
                self._attempts.labels(standing.value).inc(number)
        self._in_flight.set(in_flight)

    def set_figures(self, figures: ScheduleFigures) -> None:
        self._due.set(figures.due)
        self._overdue.set(figures.oldest_overdue_us / SECOND)
        self._running.set(figures.running)
        self._waiting.set(figures.waiting)
        self._dead.set(figures.dead)


@dataclass(frozen=True, slots=True)
class WorkerStatus:
    """The state of a worker since its start."""

    running: bool
    started_us: int | None
    in_flight: int
    delivered: int
    failed: int
    next_us: int | None
    last_us: int | None


@dataclass(slots=True)
class RunningDelivery:
    """An active delivery; its scope is set when its task starts."""

    occurrence: Occurrence
    until: float
    task: asyncio.Task[None] | None = None
    scope: anyio.CancelScope | None = None
    cancelled: bool = False


class WorkSession:
    """The active deliveries of one period of work, and those that have ended since its last step."""

    def __init__(self) -> None:
        # In the order of their starts, and so of their deadlines.
        self.running: dict[tuple[str, int], RunningDelivery] = {}
        self.ended: list[SettledRun] = []
        self._wakeup = anyio.Event()
        self._watches_deadline = False

    def wake(self) -> None:
        self._wakeup.set()

    async def wait(self, seconds: float) -> None:
        """Wait this long, or until something wakes the session; a wake-up since the last wait counts too."""
        with anyio.move_on_after(seconds):
            await self._wakeup.wait()
        if self._wakeup.is_set():
            self._wakeup = anyio.Event()

    def add(self, running: RunningDelivery) -> None:
        self.running[running.occurrence.id, running.occurrence.fence] = running
        if not self._watches_deadline:
            self._watch_deadline(running.until)

    def cancel(self, ids: Collection[str] | None = None) -> None:
        """Cancel these deliveries, or all; how they end is not recorded."""
        for running in self.running.values():
            if ids is None or running.occurrence.id in ids:
                running.cancelled = True
                if running.scope is not None:
                    running.scope.cancel()

    def _watch_deadline(self, when: float) -> None:
        self._watches_deadline = True
        asyncio.get_running_loop().call_at(when, self._cancel_overdue)

    def _cancel_overdue(self) -> None:
        """Cancel deliveries that take too long. All share one timer: a timer each costs as much as a delivery."""
        self._watches_deadline = False
        now = asyncio.get_running_loop().time()
        for running in self.running.values():
            if running.until > now or running.scope is None:
                self._watch_deadline(running.until)
                return
            running.scope.cancel()


class Worker:
    """Delivers due prompts. Any number of workers share a database; each holds its claims under its own name."""

    def __init__(  # noqa: PLR0913 - only tests change most of the defaults
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
        webhooks: WebhookForwarder | None = None,
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
        self._webhooks = webhooks
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

    async def run(self) -> None:
        """Work until cancelled; then wait a while for running deliveries, and release the rest."""
        self._started_us = self._clock()
        try:
            async with self._session() as session, anyio.create_task_group() as tasks:
                tasks.start_soon(self._notifier.run)
                tasks.start_soon(partial(PRUNE_JOB.run_every, PRUNE_EVERY_S, self._prune_history, at_once=True))
                if self._webhooks is not None:
                    tasks.start_soon(self._webhooks.run)

                def wake(due_us: int) -> None:
                    if self._wakes_us is None or due_us < self._wakes_us:
                        session.wake()

                pauses = retry_delays(*RETRY_PAUSES)
                with self._notifier.subscribed(wake):
                    while True:
                        if await WORK_JOB.attempt(partial(self._step_and_sleep, session)):
                            pauses = retry_delays(*RETRY_PAUSES)
                        else:
                            self._in_doubt = True
                            await anyio.sleep(next(pauses))
        finally:
            self._started_us = None

    async def deliver_due(self, owner: OwnerFilter | None = None) -> Sequence[SettledRun]:
        """Deliver what is due now, for these owners or for all, and return how each attempt ended."""
        done: list[SettledRun] = []
        async with self._session() as session:
            due_by_us = (await self._step(session, self._concurrency, owner)).now_us
            while session.running or session.ended:
                await session.wait(self._timeout_s)
                places = self._concurrency - len(session.running)
                done += (await self._step(session, places, owner, due_by_us)).recorded
        return done

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

    async def _step_and_sleep(self, session: WorkSession) -> None:
        """Settle and claim once, then sleep until there is more to do."""
        # A notification after this line may be about something that this step does not see.
        self._wakes_us = None
        places = self._concurrency - len(session.running)
        began = time.monotonic()
        # Claim at most half of the places per step, so that one half is delivered while the database settles the other.
        step = await self._step(session, min(places, max(1, self._concurrency // 2)))
        if places > 0:
            self._wakes_us = step.next_us
        await session.wait(self._pause_s(step, began, session))

    def _pause_s(self, step: StepResult, began: float, session: WorkSession) -> float:
        if session.ended:
            return 0.0
        idle_s = min(IDLE_S, self._lease_s / 6)
        if len(session.running) >= self._concurrency or step.next_us is None:
            return idle_s
        ahead_s = (step.next_us - step.now_us) / SECOND - (time.monotonic() - began)
        if ahead_s > 0:
            return min(ahead_s, idle_s)
        return 0.0 if step.claimed or step.recorded else LOCKED_PAUSE_S

    async def _step(
        self, session: WorkSession, places: int, owner: OwnerFilter | None = None, due_by_us: int | None = None
    ) -> StepResult:
        """Settle the runs that have ended, claim new ones and start them.

        A transaction is not cancelled midway, because its outcome would be unknown.
        """
        await self._recover()
        request = ClaimRequest(places, self._dead, self._watch.is_abandoned, owner or OwnerFilter(), due_by_us)
        ended = list(session.ended)
        if self._store.should_split(len(ended), request):
            step = await self._settle_while_claiming(session, ended, request)
        else:
            try:
                step = await _within_step_timeout(self._store.settle_and_claim(ended, request))
            except Unstorable:
                if not ended:
                    raise
                step = StepResult(0, await self._settle_one_by_one(ended), [], None)
            self._start(session, step.claimed)
        self._finish_step(session, len(ended), step)
        return step

    async def _settle_while_claiming(
        self, session: WorkSession, ended: Sequence[SettledRun], request: ClaimRequest
    ) -> StepResult:
        """Settle and claim in two concurrent transactions; each counts even if the other fails."""

        async def claim() -> StepResult:
            step = await self._store.claim_batch(request)
            self._start(session, step.claimed)
            return step

        settled, claimed = await _within_step_timeout(
            asyncio.gather(self._settle(ended), claim(), return_exceptions=True)
        )
        if isinstance(settled, BaseException):
            raise settled
        if isinstance(claimed, BaseException):
            self._finish_step(session, len(ended), StepResult(0, settled, [], None))
            raise claimed
        return replace(claimed, recorded=settled)

    async def _settle(self, ended: Sequence[SettledRun]) -> Sequence[SettledRun]:
        try:
            return await self._store.settle(ended)
        except Unstorable:
            return await self._settle_one_by_one(ended)

    async def _settle_one_by_one(self, ended: Sequence[SettledRun]) -> Sequence[SettledRun]:
        """Store results one by one: a result that cannot be stored ends its run, and must not block the others."""
        kept: list[SettledRun] = []
        for one in ended:
            try:
                kept += await self._store.settle([one])
            except Unstorable:
                log.exception("delivery_unstorable", delivery_id=one.occurrence.id)
                dead = SettledRun(one.occurrence, RunStatus.DEAD, one.took_us, error=UNSTORABLE, in_doubt=True)
                kept += await self._store.settle([dead])
        return kept

    def _start(self, session: WorkSession, claimed: Sequence[Occurrence]) -> None:
        """Start a task for each run.

        These are plain asyncio tasks. They outlive the cancelled scope of this worker, which waits for them. Thousands
        start each second, and a task group would take a tenth of a millisecond for each.
        """
        loop = asyncio.get_running_loop()
        for occurrence in claimed:
            running = RunningDelivery(occurrence, loop.time() + self._timeout_s)
            session.add(running)
            running.task = loop.create_task(self._deliver_run(session, running))

    async def _deliver_run(self, session: WorkSession, running: RunningDelivery) -> None:
        """Deliver one run within its time, and keep how it ended for the next step."""
        occurrence, began = running.occurrence, time.monotonic()
        settled: SettledRun | None = None
        try:
            if not running.cancelled:
                # Cancelled by its scope and not its task, so that shielded code still runs to its end.
                with anyio.CancelScope() as running.scope:
                    outcome = await self._attempt(occurrence)
                    settled = _settle_now(occurrence, outcome, began)
                if settled is None and not running.cancelled:
                    late = DeliveryFailed(f"The agent took longer than {self._timeout_s:g} s", in_doubt=True)
                    settled = _settle_now(occurrence, late, began)
        finally:
            del session.running[occurrence.id, occurrence.fence]
            if settled is not None:
                session.ended.append(settled)
            session.wake()

    async def _attempt(self, occurrence: Occurrence) -> str | DeliveryFailed | None:
        try:
            return await self._deliver(occurrence)
        except DeliveryFailed as failure:
            return failure
        except Exception:
            log.exception("delivery_failed", delivery_id=occurrence.id)
            return DeliveryFailed("Frontdesk failed inside; its log says why", in_doubt=True)

    def _finish_step(self, session: WorkSession, ended: int, step: StepResult) -> None:
        """Remove, log and count what was settled, and wake the forwarder if answers go to webhooks."""
        del session.ended[:ended]
        delivered = sum(one.delivered for one in step.recorded)
        self._delivered += delivered
        self._failed += len(step.recorded) - delivered
        if step.claimed:
            self._last_us = step.now_us
        log_ended(step.recorded)
        if self._webhooks is not None and any(one.delivered and one.occurrence.webhook for one in step.recorded):
            self._webhooks.wake()
        if self._metrics is not None:
            self._metrics.count_step(step, self._in_flight())

    @asynccontextmanager
    async def _session(self) -> AsyncGenerator[WorkSession]:
        """A period of work; the leases of its claims are renewed until its end, also while it drains."""
        async with background_group() as tasks:
            session = WorkSession()
            self._sessions.append(session)
            _active_owners.add(str(self.owner))
            renewing = anyio.CancelScope(shield=True)
            tasks.start_soon(self._keep_leases, renewing)
            try:
                yield session
            finally:
                with anyio.CancelScope(shield=True):
                    await self._drain(session)
                self._notifier.notify(0, 0)
                renewing.cancel()
                self._sessions.remove(session)
                self._in_doubt = True
                if not self._sessions:
                    _active_owners.discard(str(self.owner))

    async def _drain(self, session: WorkSession) -> None:
        """Wait a while for running deliveries; release the rest, so that others can continue with them immediately."""
        until = anyio.current_time() + self._drain_s
        while session.running and anyio.current_time() < until:
            await session.wait(until - anyio.current_time())
            await self._settle_last(session)
        left = [name for name, _ in session.running]
        session.cancel()
        with anyio.move_on_after(CANCEL_TIMEOUT_S):
            while session.running:
                await session.wait(CANCEL_TIMEOUT_S)
        with anyio.move_on_after(LAST_SETTLE_TIMEOUT_S):
            while True:
                if await self._settle_last(session) and await self._release(left):
                    break
                await anyio.sleep(LAST_SETTLE_PAUSE_S)
        # Even if the database does not know it yet: this worker does not continue these.
        self._store.held_ids.difference_update((*left, *(one.occurrence.id for one in session.ended)))

    async def _settle_last(self, session: WorkSession) -> bool:
        try:
            if ended := list(session.ended):
                recorded = await _within_step_timeout(self._settle(ended))
                self._finish_step(session, len(ended), StepResult(0, recorded, [], None))
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

    async def _recover(self) -> None:
        """Make runs of lost workers due, every few seconds; after a failure, also this worker's own unknown claims."""
        with anyio.move_on_after(STEP_TIMEOUT_S) as limit:
            if time.monotonic() - self._recovered > self._recover_s:
                self._dead = await self._store.recover(self._knows_dead, self._watch.observe)
                self._recovered = time.monotonic()
            if self._in_doubt:
                await self._store.release()
                self._in_doubt = False
        if limit.cancelled_caught:
            raise _step_timeout()

    def _knows_dead(self, other: str) -> bool:
        return other not in _active_owners and self.owner.knows_ended(other)

    async def _keep_leases(self, scope: anyio.CancelScope) -> None:
        with scope:
            renewed = True
            while True:
                # Leases that could not be renewed may be taken over soon after the database answers again.
                await anyio.sleep(self._lease_s / (3 if renewed else 12))
                renewed = False
                with anyio.move_on_after(self._lease_s / 3):
                    renewed = await LEASE_JOB.attempt(self._renew)

    async def _renew(self) -> None:
        if lost := await self._store.renew():
            log.warning("deliveries_taken_over", ids=sorted(lost))
            for session in self._sessions:
                session.cancel(lost)

    async def _prune_history(self) -> None:
        now = self._clock()
        await self._past.prune(now - self._keep_us, now - max(self._keep_us, KEEP_DEAD_DAYS * DAY_US))

    def _in_flight(self) -> int:
        return sum(len(session.running) for session in self._sessions)


async def _within_step_timeout(work: Awaitable[StepT]) -> StepT:
    with anyio.move_on_after(STEP_TIMEOUT_S, shield=True):
        return await work
    raise _step_timeout()


def _step_timeout() -> Unavailable:
    return Unavailable(f"The database took longer than {STEP_TIMEOUT_S:g} s")


def _settle_now(occurrence: Occurrence, outcome: str | DeliveryFailed | None, began: float) -> SettledRun:
    took_us = int((time.monotonic() - began) * SECOND)
    chance = random.random()  # noqa: S311 - no secret
    return settle_attempt(occurrence, outcome, occurrence.started_us + took_us, took_us, chance)


def log_ended(ended: Sequence[SettledRun]) -> None:
    """Log one line for each attempt that ended, or one for all when they are many."""
    if len(ended) > LOGGED_ONE_BY_ONE:
        _log_many_ended(ended)
        return
    for one in ended:
        facts: dict[str, object] = {
            "delivery_id": one.occurrence.id,
            "schedule_id": one.occurrence.schedule_id,
            "agent_id": one.occurrence.agent_id,
            "attempt": one.occurrence.attempt,
            "late_ms": max(0, one.occurrence.started_us - one.occurrence.due_us) // 1000,
            "took_ms": one.took_us // 1000,
        }
        if one.delivered:
            log.info("prompt_delivered", **facts)
        elif one.standing is RunStatus.WAITING:
            log.warning("prompt_failed", **facts, error=one.error, again_s=one.wait_us // SECOND)
        else:
            log.error("prompt_dead", **facts, error=one.error)


def _log_many_ended(ended: Sequence[SettledRun]) -> None:
    """Log at the level of the worst of them."""
    counts = CountOf(one.standing for one in ended)
    delivered, failed = counts[RunStatus.DELIVERED], counts[RunStatus.WAITING]
    dead = len(ended) - delivered - failed
    write = log.error if dead else log.warning if failed else log.info
    write("prompts_ended", delivered=delivered, failed=failed, dead=dead)
