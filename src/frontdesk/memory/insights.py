"""Computes statistics of a period of days, and writes them in plain English; no I/O."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from enum import StrEnum
from typing import TypeVar
from zoneinfo import ZoneInfo

from frontdesk.memory.model import ItemType, TaskStatus
from frontdesk.memory.times import TimeSpan, span_of_days


class InsightRange(StrEnum):
    """How far back to look, including today."""

    TODAY = "today"
    WEEK = "week"
    MONTH = "month"
    QUARTER = "quarter"
    YEAR = "year"


@dataclass(frozen=True, slots=True)
class InsightPeriod:
    """Whole days in the person's time zone, and the same number of days before them."""

    days: int
    first: date
    span: TimeSpan
    before: TimeSpan
    zone: ZoneInfo


@dataclass(frozen=True, slots=True)
class ItemFact:
    """When something was recorded or done, and its tags."""

    type: ItemType
    at: datetime
    tags: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class TaskFact:
    """When a task was created, due and completed."""

    status: TaskStatus
    created_at: datetime
    due_date: datetime | None = None
    completed_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class TrackedTime:
    """Time spent, with its category if it has one; an entry without an end is still running."""

    start: datetime
    end: datetime | None
    category: str | None = None


@dataclass(frozen=True, slots=True)
class FeelingFact:
    """How an activity changed the person's mood, or how a memory feels, and its place."""

    mood_change: int | None = None
    energy_change: int | None = None
    valence: int | None = None
    place: str | None = None


@dataclass(frozen=True, slots=True)
class InsightFacts:
    """All facts of the period; tasks also of the days before it."""

    period: InsightPeriod
    now: datetime
    items: Sequence[ItemFact] = ()
    tasks: Sequence[TaskFact] = ()
    tracked: Sequence[TrackedTime] = ()
    feelings: Sequence[FeelingFact] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskFigures:
    """Rates are percentages of the tasks created, due or completed in these days; None if there were none.

    `overdue` counts tasks that became due in these days and are still open.
    """

    created: int = 0
    completed: int = 0
    overdue: int = 0
    completion_rate: float | None = None
    completed_before: int = 0
    completion_rate_before: float | None = None


@dataclass(frozen=True, slots=True)
class BusiestDay:
    """The day with the most tracked time."""

    date: date
    minutes: int


@dataclass(frozen=True, slots=True)
class BusiestHour:
    """The hour of the day, from 0 to 23, with the most tracked time."""

    hour: int
    minutes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Insights:
    """The statistics of a period; `sentences` describes them and adds nothing."""

    date_range: InsightRange
    timezone: str
    first_day: date
    last_day: date
    total: int
    counts: Mapping[str, int]
    tasks: TaskFigures
    tracked_minutes: int
    minutes_by_category: Mapping[str, int]
    busiest_day: BusiestDay | None
    busiest_hour: BusiestHour | None
    average_mood_change: float | None
    average_energy_change: float | None
    average_valence: float | None
    tone: str | None
    tags: Mapping[str, int]
    places: Mapping[str, int]
    active_days: int
    longest_streak: int
    sentences: Sequence[str] = ()


MAX_SENTENCES = 6
HOUR_MINUTES = 60
RANGE_OPENINGS = {
    InsightRange.TODAY: "Today",
    InsightRange.WEEK: "In the last 7 days",
    InsightRange.MONTH: "In the last 30 days",
    InsightRange.QUARTER: "In the last 90 days",
    InsightRange.YEAR: "In the last 365 days",
}
PLURALS = {"task": "tasks", "activity": "activities", "routine": "routines", "habit": "habits", "memory": "memories"}


def write_sentences(insights: Insights) -> Sequence[str]:
    """Two to six sentences on the most important statistics; one if there is nothing to report."""
    told = [line for line in _all_sentences(insights) if line]
    return told[:MAX_SENTENCES] or [
        f"{RANGE_OPENINGS[insights.date_range]} nothing was put down: no task, memory, activity or time."
    ]


def _all_sentences(insights: Insights) -> Iterator[str]:
    yield _count_sentence(insights)
    yield _task_sentence(
        insights.tasks, "the day before" if insights.first_day == insights.last_day else "in the days before"
    )
    yield _time_sentence(insights)
    yield _feeling_sentence(insights)
    yield _topic_sentence(insights)
    yield _day_sentence(insights)


def _count_sentence(insights: Insights) -> str:
    if not insights.total:
        return ""
    parts = [f"{number} {kind if number == 1 else PLURALS[kind]}" for kind, number in insights.counts.items()]
    return f"{RANGE_OPENINGS[insights.date_range]} you added {_join_words(parts)}."


def _task_sentence(tasks: TaskFigures, before: str) -> str:
    if not (tasks.completed or tasks.overdue or tasks.completion_rate is not None):
        return ""
    rate = "" if tasks.completion_rate is None else f", {tasks.completion_rate:g}% of those at hand"
    late = (
        f"; {tasks.overdue} that fell due {'is' if tasks.overdue == 1 else 'are'} still open" if tasks.overdue else ""
    )
    return f"You completed {_count_text(tasks.completed, 'task')}{rate}{_comparison(tasks, before)}{late}."


def _comparison(tasks: TaskFigures, before: str) -> str:
    now, then = tasks.completion_rate, tasks.completion_rate_before
    if now is None or then is None:
        return ""
    if now == then:
        return f", the same as {before}"
    return f", {'up' if now > then else 'down'} from {then:g}% {before}"


def _time_sentence(insights: Insights) -> str:
    if not insights.tracked_minutes:
        return ""
    most = next(iter(insights.minutes_by_category.items()))
    day, hour = insights.busiest_day, insights.busiest_hour
    share = f", the most under {most[0]} ({_minutes_text(most[1])})" if len(insights.minutes_by_category) > 1 else ""
    busiest = (
        f"; the busiest day was {_day_text(day.date)}"
        if day is not None and insights.first_day != insights.last_day
        else ""
    )
    clock = f"{' and' if busiest else '; the busiest was'} the hour from {hour.hour:02}:00" if hour is not None else ""
    return f"You tracked {_minutes_text(insights.tracked_minutes)}{share}{busiest}{clock}."


def _feeling_sentence(insights: Insights) -> str:
    changes = {"mood": insights.average_mood_change, "energy": insights.average_energy_change}
    parts = [f"your {name} {_change_text(change)}" for name, change in changes.items() if change is not None]
    said = [f"after activities {_join_words(parts)} on average"] if parts else []
    if insights.average_valence is not None:
        said.append(
            f"the tone of your memories was {insights.tone} ({insights.average_valence:+g} on a scale of -5 to 5)"
        )
    line = "; ".join(said)
    return f"{line[0].upper()}{line[1:]}." if line else ""


def _change_text(change: float) -> str:
    if change == 0:
        return "stayed as it was"
    return f"{'rose' if change > 0 else 'fell'} by {abs(change):g}"


def _topic_sentence(insights: Insights) -> str:
    parts = [f"{what} {_top_names(names)}" for what, names in _labelled_topics(insights) if names]
    return f"You most often used {' and '.join(parts)}." if parts else ""


def _labelled_topics(insights: Insights) -> Sequence[tuple[str, Mapping[str, int]]]:
    return [
        ("the tag" if len(insights.tags) == 1 else "the tags", insights.tags),
        ("the place" if len(insights.places) == 1 else "the places", insights.places),
    ]


def _day_sentence(insights: Insights) -> str:
    if not insights.active_days:
        return ""
    if insights.first_day == insights.last_day:
        return f"The day before you completed {_count_text(insights.tasks.completed_before, 'task')}."
    days = (insights.last_day - insights.first_day).days + 1
    row = f"; the longest streak was {insights.longest_streak} in a row" if insights.longest_streak > 1 else ""
    return f"There is something on {insights.active_days} of {days} days{row}."


def _top_names(names: Mapping[str, int]) -> str:
    return ", ".join(f"{name} ({number})" for name, number in list(names.items())[:3])


def _join_words(parts: Sequence[str]) -> str:
    *others, last = parts
    return f"{', '.join(others)} and {last}" if others else last


def _count_text(number: int, what: str) -> str:
    return f"{number or 'no'} {what if number == 1 else PLURALS[what]}"


def _minutes_text(minutes: int) -> str:
    hours, rest = divmod(minutes, HOUR_MINUTES)
    parts = [f"{hours} h" if hours else "", f"{rest} min" if rest or not hours else ""]
    return " ".join(part for part in parts if part)


def _day_text(day: date) -> str:
    return f"{day:%A}, {day.isoformat()}"


T = TypeVar("T")
RANGE_DAYS = {
    InsightRange.TODAY: 1,
    InsightRange.WEEK: 7,
    InsightRange.MONTH: 30,
    InsightRange.QUARTER: 90,
    InsightRange.YEAR: 365,
}
DAY, HOUR, MINUTE = timedelta(days=1), timedelta(hours=1), timedelta(minutes=1)
MOST_USED = 5
NO_CATEGORY = "No category"
CLOSED_STATUSES = (TaskStatus.COMPLETED, TaskStatus.CANCELLED)
# An average this far from zero is no longer an even mood.
TONE_THRESHOLD = 1.0


def insight_period(date_range: InsightRange, today: date, zone: ZoneInfo) -> InsightPeriod:
    """The days up to today, and the same number before them. Both are whole days, so that they can be compared."""
    days = RANGE_DAYS[date_range]
    first = today - (days - 1) * DAY
    return InsightPeriod(
        days, first, span_of_days(first, zone, days), span_of_days(first - days * DAY, zone, days), zone
    )


def compute_insights(date_range: InsightRange, facts: InsightFacts) -> Insights:
    """Compute the statistics; a statistic without data is left out."""
    where = facts.period
    minutes = _tracked_pieces(facts)
    by_category = _sum_by_key((one.category or NO_CATEGORY, spent) for one, spent in minutes)
    valence = _average(one.valence for one in facts.feelings)
    active = active_days(facts)
    found = Insights(
        date_range=date_range,
        timezone=where.zone.key,
        first_day=where.first,
        last_day=where.first + (where.days - 1) * DAY,
        total=len(facts.items),
        counts=dict(Counter(thing.type.value for thing in facts.items).most_common()),
        tasks=task_figures(facts),
        tracked_minutes=round(sum(spent for _, spent in minutes)),
        minutes_by_category={name: round(spent) for name, spent in by_category.items()},
        busiest_day=_busiest_day(minutes, where.zone),
        busiest_hour=_busiest_hour(minutes, where.zone),
        average_mood_change=_average(one.mood_change for one in facts.feelings),
        average_energy_change=_average(one.energy_change for one in facts.feelings),
        average_valence=valence,
        tone=tone_of(valence),
        tags=_most_used(tag.casefold() for thing in facts.items for tag in thing.tags),
        places=_most_used(one.place for one in facts.feelings if one.place),
        active_days=len(active),
        longest_streak=longest_streak(active),
    )
    return replace(found, sentences=write_sentences(found))


def task_figures(facts: InsightFacts) -> TaskFigures:
    span, before, tasks = facts.period.span, facts.period.before, facts.tasks
    missed = TimeSpan(span.start, min(span.end, facts.now))
    return TaskFigures(
        created=sum(_is_within(one.created_at, span) for one in tasks),
        completed=sum(_is_within(one.completed_at, span) for one in tasks),
        overdue=sum(_is_within(one.due_date, missed) and one.status not in CLOSED_STATUSES for one in tasks),
        completion_rate=_completion_rate(tasks, span),
        completed_before=sum(_is_within(one.completed_at, before) for one in tasks),
        completion_rate_before=_completion_rate(tasks, before),
    )


def tone_of(valence: float | None) -> str | None:
    """The average mood of memories as a word."""
    if valence is None:
        return None
    return "positive" if valence >= TONE_THRESHOLD else "negative" if valence <= -TONE_THRESHOLD else "even"


def active_days(facts: InsightFacts) -> Sequence[date]:
    """The days on which something was recorded, completed or begun, in order."""
    completed = [one.completed_at for one in facts.tasks if one.completed_at is not None]
    moments = (
        *(thing.at for thing in facts.items),
        *completed,
        *(max(one.start, facts.period.span.start) for one in facts.tracked),
    )
    span, zone = facts.period.span, facts.period.zone
    return sorted({at.astimezone(zone).date() for at in moments if _is_within(at, span)})


def longest_streak(days: Sequence[date]) -> int:
    """The largest number of consecutive days; the days must be in order."""
    longest = run = 0
    last: date | None = None
    for day in days:
        run = run + 1 if last is not None and day - last == DAY else 1
        longest, last = max(longest, run), day
    return longest


def _tracked_pieces(facts: InsightFacts) -> list[tuple[TrackedTime, float]]:
    """The time spent, split at the hours of the clock, with the minutes of each piece."""
    until = min(facts.period.span.end, facts.now)
    pieces: list[tuple[TrackedTime, float]] = []
    for one in facts.tracked:
        start, end = max(one.start, facts.period.span.start), min(one.end or facts.now, until)
        pieces += [(replace(one, start=at, end=to), (to - at) / MINUTE) for at, to in _split_by_hour(start, end, facts)]
    return pieces


def _split_by_hour(start: datetime, end: datetime, facts: InsightFacts) -> Iterator[tuple[datetime, datetime]]:
    while start < end:
        clock = start.astimezone(facts.period.zone)
        into = timedelta(minutes=clock.minute, seconds=clock.second, microseconds=clock.microsecond)
        upto = min(end, start + HOUR - into)
        yield start, upto
        start = upto


def _busiest_day(minutes: Sequence[tuple[TrackedTime, float]], zone: ZoneInfo) -> BusiestDay | None:
    spent = _sum_by_key((one.start.astimezone(zone).date(), length) for one, length in minutes)
    return next((BusiestDay(day, round(most)) for day, most in spent.items()), None)


def _busiest_hour(minutes: Sequence[tuple[TrackedTime, float]], zone: ZoneInfo) -> BusiestHour | None:
    spent = _sum_by_key((one.start.astimezone(zone).hour, length) for one, length in minutes)
    return next((BusiestHour(hour, round(most)) for hour, most in spent.items()), None)


def _sum_by_key(parts: Iterable[tuple[T, float]]) -> dict[T, float]:
    """Sum by key, the largest first."""
    sums: dict[T, float] = {}
    for key, amount in parts:
        sums[key] = sums.get(key, 0.0) + amount
    return dict(sorted(sums.items(), key=lambda pair: -pair[1]))


def _completion_rate(tasks: Iterable[TaskFact], span: TimeSpan) -> float | None:
    """The percentage of tasks created, due or completed in the span, and not cancelled, that were completed in it."""
    moments = [
        (one.created_at, one.due_date, one.completed_at) for one in tasks if one.status is not TaskStatus.CANCELLED
    ]
    at_hand = [one for one in moments if any(_is_within(at, span) for at in one)]
    done = sum(_is_within(completed, span) for _, _, completed in at_hand)
    return round(100 * done / len(at_hand), 1) if at_hand else None


def _average(values: Iterable[int | None]) -> float | None:
    known = [value for value in values if value is not None]
    return round(sum(known) / len(known), 2) if known else None


def _most_used(names: Iterable[str]) -> dict[str, int]:
    return dict(Counter(names).most_common(MOST_USED))


def _is_within(at: datetime | None, span: TimeSpan) -> bool:
    return at is not None and span.start <= at < span.end
