"""Insights, worked out from facts; pure."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import date, datetime, timedelta
from typing import TypeVar
from zoneinfo import ZoneInfo

from frontdesk.memory.model import TaskStatus
from frontdesk.memory.moments import Span, span_of
from frontdesk.memory.timeline.model import (
    BusiestDay,
    BusiestHour,
    DateRange,
    Facts,
    Insights,
    Stretch,
    TaskFact,
    TaskFigures,
    Tracked,
)
from frontdesk.memory.timeline.sentences import sentences

T = TypeVar("T")
DAYS = {
    DateRange.TODAY: 1,
    DateRange.WEEK: 7,
    DateRange.MONTH: 30,
    DateRange.QUARTER: 90,
    DateRange.YEAR: 365,
}
DAY, HOUR, MINUTE = timedelta(days=1), timedelta(hours=1), timedelta(minutes=1)
MOST_USED = 5
NO_CATEGORY = "No category"
CLOSED = (TaskStatus.COMPLETED, TaskStatus.CANCELLED)
# An average of so much either way is no longer an even mood.
FELT = 1.0


def stretch(date_range: DateRange, today: date, zone: ZoneInfo) -> Stretch:
    """So many days up to today, and as many before: both are whole, so that they can be compared."""
    days = DAYS[date_range]
    first = today - (days - 1) * DAY
    return Stretch(days, first, span_of(first, zone, days), span_of(first - days * DAY, zone, days), zone)


def insights(date_range: DateRange, facts: Facts) -> Insights:
    """What can be said, and only that."""
    where = facts.stretch
    minutes = _minutes(facts)
    by_category = _summed((one.category or NO_CATEGORY, spent) for one, spent in minutes)
    valence = _average(one.valence for one in facts.feelings)
    active = active_days(facts)
    found = Insights(
        date_range=date_range,
        timezone=where.zone.key,
        first_day=where.first,
        last_day=where.first + (where.days - 1) * DAY,
        total=len(facts.things),
        counts=dict(Counter(thing.type.value for thing in facts.things).most_common()),
        tasks=task_figures(facts),
        tracked_minutes=round(sum(spent for _, spent in minutes)),
        minutes_by_category={name: round(spent) for name, spent in by_category.items()},
        busiest_day=_busiest_day(minutes, where.zone),
        busiest_hour=_busiest_hour(minutes, where.zone),
        average_mood_change=_average(one.mood_change for one in facts.feelings),
        average_energy_change=_average(one.energy_change for one in facts.feelings),
        average_valence=valence,
        tone=tone(valence),
        tags=_most_used(tag.casefold() for thing in facts.things for tag in thing.tags),
        places=_most_used(one.place for one in facts.feelings if one.place),
        active_days=len(active),
        longest_streak=longest_streak(active),
    )
    return replace(found, sentences=sentences(found))


def task_figures(facts: Facts) -> TaskFigures:
    span, before, tasks = facts.stretch.span, facts.stretch.before, facts.tasks
    missed = Span(span.start, min(span.end, facts.now))
    return TaskFigures(
        created=sum(_in(one.created_at, span) for one in tasks),
        completed=sum(_in(one.completed_at, span) for one in tasks),
        overdue=sum(_in(one.due_date, missed) and one.status not in CLOSED for one in tasks),
        completion_rate=_rate(tasks, span),
        completed_before=sum(_in(one.completed_at, before) for one in tasks),
        completion_rate_before=_rate(tasks, before),
    )


def tone(valence: float | None) -> str | None:
    """How memories feel on the whole."""
    if valence is None:
        return None
    return "positive" if valence >= FELT else "negative" if valence <= -FELT else "even"


def active_days(facts: Facts) -> Sequence[date]:
    """The days on which something was put down, completed or begun, in order."""
    completed = [one.completed_at for one in facts.tasks if one.completed_at is not None]
    moments = (
        *(thing.at for thing in facts.things),
        *completed,
        *(max(one.start, facts.stretch.span.start) for one in facts.tracked),
    )
    span, zone = facts.stretch.span, facts.stretch.zone
    return sorted({at.astimezone(zone).date() for at in moments if _in(at, span)})


def longest_streak(days: Sequence[date]) -> int:
    """How many days in a row, of days in order."""
    longest = run = 0
    last: date | None = None
    for day in days:
        run = run + 1 if last is not None and day - last == DAY else 1
        longest, last = max(longest, run), day
    return longest


def _minutes(facts: Facts) -> list[tuple[Tracked, float]]:
    """The time spent, cut into pieces that each lie within an hour of the clock, with the minutes of each."""
    until = min(facts.stretch.span.end, facts.now)
    pieces: list[tuple[Tracked, float]] = []
    for one in facts.tracked:
        start, end = max(one.start, facts.stretch.span.start), min(one.end or facts.now, until)
        pieces += [(replace(one, start=at, end=to), (to - at) / MINUTE) for at, to in _hours(start, end, facts)]
    return pieces


def _hours(start: datetime, end: datetime, facts: Facts) -> Iterator[tuple[datetime, datetime]]:
    while start < end:
        clock = start.astimezone(facts.stretch.zone)
        into = timedelta(minutes=clock.minute, seconds=clock.second, microseconds=clock.microsecond)
        upto = min(end, start + HOUR - into)
        yield start, upto
        start = upto


def _busiest_day(minutes: Sequence[tuple[Tracked, float]], zone: ZoneInfo) -> BusiestDay | None:
    spent = _summed((one.start.astimezone(zone).date(), length) for one, length in minutes)
    return next((BusiestDay(day, round(most)) for day, most in spent.items()), None)


def _busiest_hour(minutes: Sequence[tuple[Tracked, float]], zone: ZoneInfo) -> BusiestHour | None:
    spent = _summed((one.start.astimezone(zone).hour, length) for one, length in minutes)
    return next((BusiestHour(hour, round(most)) for hour, most in spent.items()), None)


def _summed(parts: Iterable[tuple[T, float]]) -> dict[T, float]:
    """The sum of each, the most first."""
    sums: dict[T, float] = {}
    for key, amount in parts:
        sums[key] = sums.get(key, 0.0) + amount
    return dict(sorted(sums.items(), key=lambda pair: -pair[1]))


def _rate(tasks: Iterable[TaskFact], span: Span) -> float | None:
    """Of the tasks that were made, due or completed then, and not dropped, how many per cent were completed then."""
    moments = [
        (one.created_at, one.due_date, one.completed_at) for one in tasks if one.status is not TaskStatus.CANCELLED
    ]
    at_hand = [one for one in moments if any(_in(at, span) for at in one)]
    done = sum(_in(completed, span) for _, _, completed in at_hand)
    return round(100 * done / len(at_hand), 1) if at_hand else None


def _average(values: Iterable[int | None]) -> float | None:
    known = [value for value in values if value is not None]
    return round(sum(known) / len(known), 2) if known else None


def _most_used(names: Iterable[str]) -> dict[str, int]:
    return dict(Counter(names).most_common(MOST_USED))


def _in(at: datetime | None, span: Span) -> bool:
    return at is not None and span.start <= at < span.end
