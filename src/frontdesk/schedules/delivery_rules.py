"""Decides, without I/O, what to claim from a queue, what to do about missed fires, and when to retry."""

import sys
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple
from zoneinfo import ZoneInfo

from frontdesk.schedules.model import (
    SECOND,
    DeliveryFailed,
    Misfire,
    Occurrence,
    Overlap,
    OwnerFilter,
    RunStatus,
    SchedulePolicy,
    Trigger,
    TriggerKind,
    from_us,
)
from frontdesk.schedules.triggers import count_cron_fires, last_interval_fire, next_fire_after, parse_interval_cached
from frontdesk.text import storable


class RunLease(NamedTuple):
    """The owner of a run, and the end of its lease; a renewal makes a new lease."""

    id: str
    owner: str | None
    until_us: int


class LeaseWatch:
    """Finds leases that nobody renews, by watching them on the monotonic clock.

    A lease past its end may only look lost: the clock was set, or the database was down and nobody could renew it. A
    living owner renews within a third of a lease's length, and soon after the database answers again. So a lease is
    abandoned if it was seen unchanged for two thirds of its length, in looks that are at most a third apart. A longer
    silence of the database or of this watch restarts the count.
    """

    def __init__(self, lease_us: int, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._third_us = lease_us // 3
        self._monotonic = monotonic
        self._looked_us: int | None = None
        self._first_seen_us: dict[RunLease, int] = {}

    def observe(self, leases: Iterable[RunLease]) -> set[RunLease]:
        """Record all leases that others hold now; return the abandoned ones."""
        now_us = self._now_us()
        before = self._first_seen_us if self._is_recent(now_us) else {}
        self._first_seen_us = {lease: before.get(lease, now_us) for lease in leases}
        self._looked_us = now_us
        return {lease for lease in self._first_seen_us if self.is_abandoned(lease)}

    def is_abandoned(self, lease: RunLease) -> bool:
        now_us = self._now_us()
        since_us = self._first_seen_us.get(lease, now_us)
        return self._is_recent(now_us) and now_us - since_us >= 2 * self._third_us

    def _is_recent(self, now_us: int) -> bool:
        return self._looked_us is not None and now_us - self._looked_us <= self._third_us

    def _now_us(self) -> int:
        return int(self._monotonic() * SECOND)


@dataclass(frozen=True, slots=True)
class ClaimRequest:
    """How many runs to claim, of which owners, and what the worker knows of other workers.

    `dead_owners` are workers that no longer exist. `is_abandoned` tells whether an expired lease is lost, or may still
    be renewed. With `due_by_us`, nothing that is due later is claimed.
    """

    places: int
    dead_owners: Collection[str] = ()
    is_abandoned: Callable[[RunLease], bool] = lambda _: True
    whose: OwnerFilter = field(default_factory=OwnerFilter)
    due_by_us: int | None = None


@dataclass(frozen=True, slots=True)
class SettledRun:
    """How an attempt ended.

    `wait_us` is the time until the next attempt, if there is one; an attempt that is not `counted` does not use up a
    retry.
    """

    occurrence: Occurrence
    standing: RunStatus
    took_us: int
    answer: str | None = None
    error: str | None = None
    wait_us: int = 0
    counted: bool = True
    in_doubt: bool = False

    @property
    def delivered(self) -> bool:
        return self.standing is RunStatus.DELIVERED


@dataclass(frozen=True, slots=True)
class StepResult:
    """The result of one transaction.

    `recorded` are the ends that this worker could still record, `next_us` is when to look again.
    """

    now_us: int
    recorded: Sequence[SettledRun]
    claimed: Sequence[Occurrence]
    next_us: int | None


# At most this many overlapping runs at a time, so that one agent cannot take every place.
MAX_PARALLEL_RUNS = 8
# A run whose worker is lost this many times is given up.
MAX_LOST = 25
# Clocks of two machines differ by less than this.
CLOCK_SLACK_US = 10 * SECOND


class QueueAction(Enum):
    """The next step in a queue. FIRE: run its first due schedule. REST: do nothing before the given time."""

    TAKE_OVER = 1
    START = 2
    DROP = 3
    BURY = 4
    FIRE = 5
    REST = 6


@dataclass(frozen=True, slots=True)
class ActiveRun:
    """A run of the queue that has not ended; `time_us` is when a running run's lease ends, or a waiting run is due."""

    id: str
    standing: RunStatus
    intended_us: int
    owner: str | None
    begun_us: int
    time_us: int
    lost: int
    cancelled: bool


@dataclass(frozen=True, slots=True)
class QueueDecision:
    """What to do, and with which run; or until when to do nothing."""

    action: QueueAction
    id: str = ""
    due_us: int | None = None


@dataclass(frozen=True, slots=True)
class ClaimContext:
    """The claiming worker, and the time: `held` are the runs that it is delivering or about to settle.

    A run that started after `set_back_us` and is over was started by a clock that was ahead.
    """

    request: ClaimRequest
    owner: str
    held: set[str]
    now_us: int
    lease_us: int
    set_back_us: int = sys.maxsize // 2

    def is_abandoned(self, one: ActiveRun) -> bool:
        if one.owner == self.owner:
            # The database claimed it, but this worker never got the answer.
            return one.id not in self.held
        if one.owner in self.request.dead_owners:
            return True
        over = is_expired(one.begun_us, one.time_us, self.now_us, self.lease_us)
        return over and self.request.is_abandoned(RunLease(one.id, one.owner, one.time_us))

    def next_check_us(self, lease_until_us: int) -> int:
        """When to look at a running run again: at least a second from now, at most the length of a lease."""
        return min(max(lease_until_us, self.now_us + SECOND), self.now_us + self.lease_us)


def is_expired(begun_us: int, leased_until_us: int, now_us: int, lease_us: int) -> bool:
    """Whether a lease is past its end, or was never renewed since the clock was set back."""
    set_back = begun_us > now_us + CLOCK_SLACK_US and leased_until_us > now_us + 2 * lease_us
    return leased_until_us < now_us or set_back


def decide_queue(
    context: ClaimContext, underway: Sequence[ActiveRun], fire_us: int | None, *, serial: bool
) -> QueueDecision:
    """Decide what to do next in a queue; `fire_us` is when the first of its schedules fires."""
    ordered = sorted(underway, key=lambda one: (one.standing is not RunStatus.RUNNING, one.intended_us))
    full = sum(one.standing is RunStatus.RUNNING for one in ordered) >= MAX_PARALLEL_RUNS
    times: list[int] = []
    for one in ordered:
        decision = _decide_run(context, one)
        if full and decision.action is QueueAction.START:
            continue
        if decision.due_us is None or serial:
            return decision
        times.append(decision.due_us)
    if fire_us is not None and not full:
        if fire_us <= context.now_us:
            return QueueDecision(QueueAction.FIRE)
        times.append(fire_us)
    return QueueDecision(QueueAction.REST, due_us=min(times, default=None))


def _decide_run(context: ClaimContext, one: ActiveRun) -> QueueDecision:
    if one.standing is RunStatus.RUNNING:
        if not context.is_abandoned(one):
            return QueueDecision(QueueAction.REST, due_us=context.next_check_us(one.time_us))
        if one.cancelled:
            return QueueDecision(QueueAction.DROP, one.id)
        return QueueDecision(QueueAction.BURY if one.lost >= MAX_LOST else QueueAction.TAKE_OVER, one.id)
    if one.cancelled:
        return QueueDecision(QueueAction.DROP, one.id)
    if one.time_us > context.now_us:
        return QueueDecision(QueueAction.REST, due_us=one.time_us)
    return QueueDecision(QueueAction.START, one.id)


MISFIRE_GRACE_US = 60 * SECOND
# Two fires of a cron rule are at least this far apart.
MINUTE_US = 60 * SECOND

TOO_LATE = "too late"
STILL_RUNNING = "still running"
CAUGHT_UP = "caught up once"
MISSED = "missed"


@dataclass(frozen=True, slots=True)
class SkippedFires:
    """Fires that are skipped together, from the first to the last of them."""

    count: int
    first_us: int
    last_us: int
    reason: str


@dataclass(frozen=True, slots=True)
class FirePlan:
    """The fire to run now, the fires to skip, and the intended time of the next one; each may be None."""

    fire_us: int | None
    skipped: SkippedFires | None
    next_us: int | None


def plan_fire(
    trigger: Trigger,
    policy: SchedulePolicy,
    intended_us: int,
    now_us: int,
    fired: int = 0,
    max_repetitions: int | None = None,
    last_ended_us: int | None = None,
) -> FirePlan:
    """Decide what to do about a schedule whose fire of `intended_us` is due.

    `last_ended_us` is when its last run ended: with `Overlap.SKIP`, fires during that run are skipped.
    """
    if max_repetitions is not None and fired >= max_repetitions:
        return FirePlan(None, None, None)
    slack_us = trigger.jitter_s * SECOND
    # A later fire within the jitter may still come, so it is not missed yet.
    latest = _latest_fire(trigger, intended_us, now_us - slack_us)
    fire, reasons = _choose_fire(trigger, policy, intended_us, latest, now_us - slack_us, last_ended_us)
    ends = fire is not None and max_repetitions is not None and fired + 1 >= max_repetitions
    ends = ends or trigger.kind is TriggerKind.ONCE
    following = None if ends else next_fire_after(trigger, latest if fire is None else fire)
    return FirePlan(fire, _skipped_fires(trigger, intended_us, fire, latest, reasons), following)


def _choose_fire(
    trigger: Trigger, policy: SchedulePolicy, intended_us: int, latest: int, now_us: int, last_ended_us: int | None
) -> tuple[int | None, list[str]]:
    """The fire from `intended_us` to `latest` to run, and why those before it are skipped."""
    reasons: list[str] = []
    at: int | None = intended_us
    if policy.max_late_s is not None and at < now_us - policy.max_late_s * SECOND:
        reasons.append(TOO_LATE)
        at = _first_fire_since(trigger, now_us - policy.max_late_s * SECOND, latest)
    if at is not None and policy.overlap is Overlap.SKIP and last_ended_us is not None and at <= last_ended_us:
        reasons.append(STILL_RUNNING)
        at = _first_fire_since(trigger, last_ended_us + 1, latest)
    if at is None or policy.misfire is Misfire.ALL:
        return at, reasons
    if policy.misfire is Misfire.SKIP and latest < now_us - MISFIRE_GRACE_US:
        return None, [*reasons, MISSED]
    if at < latest:
        reasons.append(MISSED if policy.misfire is Misfire.SKIP else CAUGHT_UP)
    return latest, reasons


def _first_fire_since(trigger: Trigger, bound_us: int, latest: int) -> int | None:
    """The first fire at or after the bound that is not later than the latest."""
    found = next_fire_after(trigger, bound_us - 1)
    return found if found is not None and found <= latest else None


def _latest_fire(trigger: Trigger, since_us: int, until_us: int) -> int:
    """The last fire between `since_us`, which is a fire, and `until_us`."""
    if trigger.end_us is not None:
        until_us = min(until_us, trigger.end_us)
    if until_us <= since_us or trigger.kind is TriggerKind.ONCE:
        return since_us
    if trigger.kind is TriggerKind.INTERVAL:
        return max(since_us, last_interval_fire(trigger.start_us or 0, parse_interval_cached(trigger.value), until_us))
    return _latest_cron_fire(trigger, since_us, until_us)


def _latest_cron_fire(trigger: Trigger, since_us: int, until_us: int) -> int:
    latest, low, high = since_us, since_us, until_us
    while high - low >= MINUTE_US:
        middle = (low + high) // 2
        found = next_fire_after(trigger, middle)
        if found is not None and found <= until_us:
            latest, low = found, found
        else:
            high = middle
    return latest


def _skipped_fires(
    trigger: Trigger, since_us: int, fire: int | None, latest: int, reasons: list[str]
) -> SkippedFires | None:
    if not reasons:
        return None
    last = latest if fire is None else _latest_fire(trigger, since_us, fire - 1)
    return SkippedFires(_count_fires(trigger, since_us, last), since_us, last, ", ".join(reasons))


def _count_fires(trigger: Trigger, since_us: int, last_us: int) -> int:
    match trigger.kind:
        case TriggerKind.ONCE:
            return 1
        case TriggerKind.INTERVAL:
            return 1 + -(-(last_us - since_us) // (parse_interval_cached(trigger.value) * SECOND))
        case TriggerKind.CRON:
            return 1 + count_cron_fires(trigger.value, ZoneInfo(trigger.zone), from_us(since_us), from_us(last_us))


FIRST_RETRY_S = 2.0
LONGEST_RETRY_S = 300.0
FIRST_BUSY_RETRY_S = 1.0
LONGEST_BUSY_RETRY_S = 30.0
# The longest wait, even if the agent host asks for more.
LONGEST_RETRY_AFTER_S = 3600.0
# After this long, failures because the agent is busy count as attempts.
BUSY_PATIENCE_US = 24 * 3600 * SECOND
ERROR_LENGTH = 2_000
WORKER_STOPPED = "The worker stopped before this ended"


def settle_attempt(
    occurrence: Occurrence, outcome: str | DeliveryFailed | None, now_us: int, took_us: int, chance: float
) -> SettledRun:
    """Decide from the answer or the failure whether a run is delivered, waits for a retry, or is dead.

    `chance`, from 0 to 1, spreads the retries of runs that failed together.
    """
    if not isinstance(outcome, DeliveryFailed):
        answer = None if outcome is None else storable(outcome)
        return SettledRun(occurrence, RunStatus.DELIVERED, took_us, answer=answer)
    error = storable(str(outcome))[:ERROR_LENGTH]
    counted = outcome.counted or now_us - occurrence.created_us > BUSY_PATIENCE_US
    if outcome.permanent or (counted and occurrence.attempt >= occurrence.attempts):
        return SettledRun(occurrence, RunStatus.DEAD, took_us, error=error, in_doubt=outcome.in_doubt)
    wait_us = int(retry_wait_s(occurrence, outcome, chance, counted=counted) * SECOND)
    # A doubt stays: it is unknown how far a failed attempt had checked it.
    in_doubt = outcome.in_doubt or occurrence.in_doubt
    return SettledRun(
        occurrence, RunStatus.WAITING, took_us, error=error, wait_us=wait_us, counted=counted, in_doubt=in_doubt
    )


def release_attempt(occurrence: Occurrence, took_us: int) -> SettledRun:
    """How a worker that stops releases a run: it is due immediately, and the attempt does not count."""
    return SettledRun(occurrence, RunStatus.WAITING, took_us, error=WORKER_STOPPED, counted=False, in_doubt=True)


def retry_wait_s(occurrence: Occurrence, outcome: DeliveryFailed, chance: float, *, counted: bool) -> float:
    """Seconds until the next attempt; at least the time that the agent host asked for, up to an hour."""
    first, longest, times = (
        (FIRST_RETRY_S, LONGEST_RETRY_S, occurrence.attempt) if counted else _busy_backoff(occurrence)
    )
    pause = backoff_s(times, first, longest, chance)
    if outcome.retry_after is None:
        return pause
    return max(pause, min(outcome.retry_after, LONGEST_RETRY_AFTER_S) + chance)


def backoff_s(times: int, first_s: float, longest_s: float, chance: float) -> float:
    """Double the wait each time, up to a limit; `chance` takes off up to half, so that retries spread out."""
    return min(longest_s, first_s * 2 ** min(times - 1, 30)) * (1 - chance / 2)


def _busy_backoff(occurrence: Occurrence) -> tuple[float, float, int]:
    """The backoff for a busy agent, from the number of starts that did not count as an attempt."""
    return FIRST_BUSY_RETRY_S, LONGEST_BUSY_RETRY_S, max(1, occurrence.fence - occurrence.attempt + 1)
