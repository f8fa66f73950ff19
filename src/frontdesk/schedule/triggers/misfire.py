"""What to run, what to leave out and what comes next, when one or more fires of a schedule are due."""

from dataclasses import dataclass
from zoneinfo import ZoneInfo

from frontdesk.schedule.model import SECOND, Misfire, Overlap, Policy, Trigger, TriggerKind, moment
from frontdesk.schedule.triggers import cron, interval
from frontdesk.schedule.triggers.next import interval_s, next_after

GRACE_US = 60 * SECOND
# Two fires of a cron rule are at least this far apart.
MINUTE_US = 60 * SECOND

TOO_LATE = "too late"
STILL_RUNNING = "still running"
CAUGHT_UP = "caught up once"
MISSED = "missed"


@dataclass(frozen=True, slots=True)
class Skipped:
    """Fires that were passed over, from the first to the last of them."""

    count: int
    first_us: int
    last_us: int
    reason: str


@dataclass(frozen=True, slots=True)
class Plan:
    """The fire to run now, if any; those passed over, if any; and the intended time of the next one, if any."""

    fire_us: int | None
    skipped: Skipped | None
    next_us: int | None


def plan(
    trigger: Trigger,
    policy: Policy,
    intended_us: int,
    now_us: int,
    fired: int = 0,
    max_repetitions: int | None = None,
    last_ended_us: int | None = None,
) -> Plan:
    """What to do about a schedule whose fire of `intended_us` is due.

    `last_ended_us` is when its last run ended, for the overlap policy that leaves out what fell into that run.
    """
    if max_repetitions is not None and fired >= max_repetitions:
        return Plan(None, None, None)
    slack_us = trigger.jitter_s * SECOND
    # Within the jitter a later fire may not have had its turn yet, so it is not called missed.
    latest = _latest(trigger, intended_us, now_us - slack_us)
    fire, reasons = _choose(trigger, policy, intended_us, latest, now_us - slack_us, last_ended_us)
    ends = fire is not None and max_repetitions is not None and fired + 1 >= max_repetitions
    ends = ends or trigger.kind is TriggerKind.ONCE
    following = None if ends else next_after(trigger, latest if fire is None else fire)
    return Plan(fire, _passed_over(trigger, intended_us, fire, latest, reasons), following)


def _choose(
    trigger: Trigger, policy: Policy, intended_us: int, latest: int, now_us: int, last_ended_us: int | None
) -> tuple[int | None, list[str]]:
    """The one to run of the fires from `intended_us` to `latest`, and why those before it are left out."""
    reasons: list[str] = []
    at: int | None = intended_us
    if policy.max_late_s is not None and at < now_us - policy.max_late_s * SECOND:
        reasons.append(TOO_LATE)
        at = _from(trigger, now_us - policy.max_late_s * SECOND, latest)
    if at is not None and policy.overlap is Overlap.SKIP and last_ended_us is not None and at <= last_ended_us:
        reasons.append(STILL_RUNNING)
        at = _from(trigger, last_ended_us + 1, latest)
    if at is None or policy.misfire is Misfire.ALL:
        return at, reasons
    if policy.misfire is Misfire.SKIP and latest < now_us - GRACE_US:
        return None, [*reasons, MISSED]
    if at < latest:
        reasons.append(MISSED if policy.misfire is Misfire.SKIP else CAUGHT_UP)
    return latest, reasons


def _from(trigger: Trigger, bound_us: int, latest: int) -> int | None:
    """The first fire at or after the bound that is not later than the latest."""
    found = next_after(trigger, bound_us - 1)
    return found if found is not None and found <= latest else None


def _latest(trigger: Trigger, since_us: int, until_us: int) -> int:
    """The last fire in the span; the one it begins with is there in any case."""
    if trigger.end_us is not None:
        until_us = min(until_us, trigger.end_us)
    if until_us <= since_us or trigger.kind is TriggerKind.ONCE:
        return since_us
    if trigger.kind is TriggerKind.INTERVAL:
        return max(since_us, interval.last_us(trigger.start_us or 0, interval_s(trigger.value), until_us))
    return _latest_by_halves(trigger, since_us, until_us)


def _latest_by_halves(trigger: Trigger, since_us: int, until_us: int) -> int:
    latest, low, high = since_us, since_us, until_us
    while high - low >= MINUTE_US:
        middle = (low + high) // 2
        found = next_after(trigger, middle)
        if found is not None and found <= until_us:
            latest, low = found, found
        else:
            high = middle
    return latest


def _passed_over(trigger: Trigger, since_us: int, fire: int | None, latest: int, reasons: list[str]) -> Skipped | None:
    if not reasons:
        return None
    last = latest if fire is None else _latest(trigger, since_us, fire - 1)
    return Skipped(_count(trigger, since_us, last), since_us, last, ", ".join(reasons))


def _count(trigger: Trigger, since_us: int, last_us: int) -> int:
    match trigger.kind:
        case TriggerKind.ONCE:
            return 1
        case TriggerKind.INTERVAL:
            return 1 + -(-(last_us - since_us) // (interval_s(trigger.value) * SECOND))
        case TriggerKind.CRON:
            return 1 + cron.count(trigger.value, ZoneInfo(trigger.zone), moment(since_us), moment(last_us))
