"""How many calls there are a second and how long they take, from the newest rows of the journal: pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from frontdesk.journal.model import PAGES, Beat, Kind, Outcome

STEP = timedelta(seconds=2)
SPAN = timedelta(minutes=5)
MINUTE = timedelta(minutes=1)
CALLS = frozenset({Kind.CALL, Kind.DENIAL})
SLOW = 0.95


@dataclass(frozen=True, slots=True)
class Pace:
    """A rate, how much of it failed, and how long calls take; None where none came."""

    calls: float = 0.0
    failed: float = 0.0
    median_us: int | None = None
    slow_us: int | None = None


@dataclass(frozen=True, slots=True)
class Point:
    """The pace of one step, as charts take it; None where nothing is known."""

    at: datetime
    pace: Pace | None

    def told(self) -> list[float | None]:
        """Seconds since the epoch, calls and failures a second, milliseconds of the middle and of the slow call."""
        if self.pace is None:
            return [self.at.timestamp(), None, None, None, None]
        pace = self.pace
        return [self.at.timestamp(), pace.calls, pace.failed, _ms(pace.median_us), _ms(pace.slow_us)]


def pace(beats: Sequence[Beat], over: timedelta) -> Pace:
    """The pace of the calls among these rows, which came within so long.

    Turns and deliveries take their own time, and pages are how one looks at this: neither count.
    """
    calls = [beat for beat in beats if beat.kind in CALLS and beat.surface != PAGES]
    took = sorted(beat.duration_us for beat in calls)
    failed = sum(beat.outcome is Outcome.FAILED for beat in calls)
    seconds = max(over.total_seconds(), 0.001)
    rates = round(len(took) / seconds, 2), round(failed / seconds, 2)
    return Pace(*rates, _ranked(took, 0.5), _ranked(took, SLOW))


def lately(beats: Sequence[Beat], now: datetime, limit: int) -> Pace:
    """The pace of the last minute, or of as much of it as the newest `limit` rows tell of."""
    since = _known_since(beats, now - MINUTE, limit)
    return pace([beat for beat in beats if beat.ended >= since], now - since)


def past(beats: Sequence[Beat], now: datetime, limit: int) -> list[Point]:
    """The points of the last minutes, the oldest first, from the newest `limit` rows."""
    count = SPAN // STEP
    start = now - SPAN
    since = _known_since(beats, start, limit)
    steps: list[list[Beat]] = [[] for _ in range(count)]
    for beat in beats:
        number = (beat.ended - start) // STEP
        if 0 <= number < count:
            steps[number].append(beat)
    ends = [start + STEP * (number + 1) for number in range(count)]
    return [
        Point(end, pace(step, STEP) if end - STEP >= since else None) for end, step in zip(ends, steps, strict=True)
    ]


def _known_since(beats: Sequence[Beat], wanted: datetime, limit: int) -> datetime:
    """Since when these rows tell of everything: of what was before the oldest of them only if there are no more."""
    if len(beats) < limit:
        return wanted
    return max(wanted, min(beat.ended for beat in beats))


def _ranked(ordered: Sequence[int], share: float) -> int | None:
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))] if ordered else None


def _ms(microseconds: int | None) -> float | None:
    return None if microseconds is None else round(microseconds / 1000, 3)
