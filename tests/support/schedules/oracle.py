"""Calculates when a schedule should run and what happens to missed runs, in the slow and plain way.

Nothing here comes from the scheduler: times are counted one by one, and a cron rule is tested at every minute.
"""

import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache

from frontdesk.schedules.model import Misfire, SchedulePolicy, Trigger, TriggerKind

SECOND = 1_000_000
MINUTE = 60 * SECOND
LONGEST_WAIT = 2 * 24 * 60 * MINUTE
# A run may be this late before it counts as missed.
GRACE = 60 * SECOND
UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
BOUNDS = ((0, 59), (0, 23), (1, 31), (1, 12), (0, 6))


def times(trigger: Trigger, until_us: int) -> list[int]:
    """Every intended time up to and including `until_us`."""
    until_us = min(until_us, trigger.end_us) if trigger.end_us is not None else until_us
    match trigger.kind:
        case TriggerKind.ONCE:
            at = microseconds(datetime.fromisoformat(trigger.value))
            return [at] if at <= until_us else []
        case TriggerKind.INTERVAL:
            assert trigger.start_us is not None, "the oracle needs to know where to count from"
            return list(range(trigger.start_us, until_us + 1, _step(trigger.value)))
        case TriggerKind.CRON:
            assert trigger.start_us is not None
            assert trigger.zone == "UTC"
            first = -(-trigger.start_us // MINUTE) * MINUTE
            return [at for at in range(first, until_us + 1, MINUTE) if _matches(trigger.value, at)]


def first(trigger: Trigger) -> int:
    """The first intended time; a cron rule's comes within two days."""
    if trigger.kind is TriggerKind.ONCE:
        return microseconds(datetime.fromisoformat(trigger.value))
    assert trigger.start_us is not None
    return times(trigger, trigger.start_us + (LONGEST_WAIT if trigger.kind is TriggerKind.CRON else 0))[0]


@dataclass(frozen=True, slots=True)
class Predicted:
    """The treatment of the times that had passed when a worker looked again."""

    run: Sequence[int]
    skipped: Sequence[int]


def after_downtime(passed: Sequence[int], policy: SchedulePolicy, now_us: int, left: int | None = None) -> Predicted:
    """Of the times that have `passed` by now; `left` is the number of remaining repetitions."""
    longest = policy.max_late_s
    fit = [at for at in passed if longest is None or now_us - at <= longest * SECOND]
    match policy.misfire:
        case Misfire.ALL:
            run = fit
        case Misfire.ONCE:
            run = fit[-1:]
        case Misfire.SKIP:
            run = [at for at in fit if now_us - at <= GRACE][-1:]
    run = run if left is None else run[:left]
    # Times after the last repetition are not intended at all.
    ended = left is not None and len(run) == left
    meant = passed[: bisect_right(passed, run[-1])] if ended and run else passed
    return Predicted(run, [at for at in meant if at not in set(run)])


def _step(value: str) -> int:
    found = re.fullmatch(r"(\d+)([smhd])", value)
    assert found, value
    return int(found[1]) * UNITS[found[2]] * SECOND


def _matches(rule: str, at_us: int) -> bool:
    at = datetime.fromtimestamp(at_us / SECOND, UTC)
    now = (at.minute, at.hour, at.day, at.month, at.isoweekday() % 7)
    return all(value in _field(field, *bounds) for field, bounds, value in zip(rule.split(), BOUNDS, now, strict=True))


@cache
def _field(field: str, low: int, high: int) -> frozenset[int]:
    found: set[int] = set()
    for part in field.split(","):
        span, _, step = part.partition("/")
        first, _, last = (f"{low}-{high}" if span == "*" else span).partition("-")
        found.update(range(int(first), int(last or first) + 1, int(step or 1)))
    return frozenset(found)


def microseconds(at: datetime) -> int:
    return (at - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
