"""What holds for time entries: that they go forward, how long they are, and how a day cuts them; pure."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime, timedelta

from frontdesk.errors import Invalid
from frontdesk.memory.model import TimeEntry
from frontdesk.memory.moments import Span
from frontdesk.memory.timing.model import DaySpending, Spent

INSTANT = timedelta(microseconds=1)
LONGEST = timedelta(days=366)
UNCATEGORIZED = "uncategorized"
Named = tuple[str | None, str]


def minutes(start: datetime, end: datetime) -> int:
    """To the nearest, and one at least."""
    return max(1, int((end - start) / timedelta(minutes=1) + 0.5))


def ended(entry: TimeEntry, end: datetime) -> TimeEntry:
    return replace(entry, end_at=end, duration_minutes=minutes(entry.start_at, end))


def stopped(entry: TimeEntry, now: datetime) -> TimeEntry:
    """As it is when it is stopped now; one begun by a clock that is a little ahead ends after it began all the same."""
    return replace(ended(entry, max(now, entry.start_at + INSTANT)), updated_at=now)


def stopped_at(entry: TimeEntry, end: datetime, now: datetime) -> TimeEntry:
    """As it is when it is to have been stopped then."""
    if not entry.start_at < end <= now:
        raise Invalid(
            f"The timer can have been stopped after {entry.start_at.isoformat()}, when it began, and up to now; "
            f"{end.isoformat()} is not between them"
        )
    return replace(ended(entry, end), updated_at=now)


def checked(entry: TimeEntry, now: datetime) -> TimeEntry:
    """With its minutes, or refused where it does not go forward, or goes too far."""
    end = entry.end_at or now
    if end <= entry.start_at:
        raise Invalid(f"A time entry ends after it begins; this would end at {end.isoformat()}")
    if end - entry.start_at > LONGEST:
        raise Invalid(f"A time entry is {LONGEST.days} days long at most; split it")
    return entry if entry.end_at is None else ended(entry, entry.end_at)


def spent(
    entries: Sequence[TimeEntry], day: date, zone: str, span: Span, now: datetime, categories: Mapping[str, str]
) -> DaySpending:
    """Where that span went; `categories` are names by id."""
    found = [cut for entry in entries if (cut := within(entry, span, now)) is not None]
    return DaySpending(
        day,
        zone,
        span,
        sum(entry.duration_minutes or 0 for entry in found),
        _summed(found, lambda entry: (entry.timeline_item_id, entry.item_title)),
        _summed(found, lambda entry: (entry.category_id, categories.get(entry.category_id or "", UNCATEGORIZED))),
        found,
    )


def within(entry: TimeEntry, span: Span, now: datetime) -> TimeEntry | None:
    """What of it lies in the span; one that runs on there has no end."""
    start, end = max(entry.start_at, span.start), min(entry.end_at or now, span.end)
    if end <= start:
        return None
    runs_on = entry.end_at is None and end < span.end
    return replace(entry, start_at=start, end_at=None if runs_on else end, duration_minutes=minutes(start, end))


def _summed(entries: Sequence[TimeEntry], named: Callable[[TimeEntry], Named]) -> Sequence[Spent]:
    """By what they were spent on, the most first, under the name it had last."""
    found: dict[str | None, Spent] = {}
    for entry in entries:
        key, name = named(entry)
        before = found.get(key, Spent(key, name, 0, 0))
        found[key] = Spent(key, name, before.minutes + (entry.duration_minutes or 0), before.entries + 1)
    return sorted(found.values(), key=lambda one: (-one.minutes, one.name, one.id or ""))
