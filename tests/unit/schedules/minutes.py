"""Finds the fires of a cron rule the slow way: minute by minute, as a wall clock shows them.

Nothing here comes from the code under test, or from the library with which it reads rules.
"""

from calendar import monthrange
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import cache, lru_cache
from zoneinfo import ZoneInfo

from hypothesis import strategies as st

MINUTE = timedelta(minutes=1)
DAY = timedelta(days=1)
ZONES = ("Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "America/Sao_Paulo", "Asia/Kolkata")
YEARS = range(2014, 2031)
DAY_NAMES = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")
MONTH_NAMES = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")


@dataclass(frozen=True)
class Field:
    """A field as text, and the numbers it stands for; `marks` are L, LW, or (weekday, which of the month)."""

    text: str
    numbers: frozenset[int] = frozenset()
    marks: frozenset[str | tuple[int, int]] = frozenset()

    @property
    def star(self) -> bool:
        return self.text.startswith("*")


@dataclass(frozen=True, eq=False)
class Rule:
    """A rule with a known meaning, since a test made it from its parts."""

    minute: Field
    hour: Field
    day: Field
    month: Field
    weekday: Field

    @property
    def text(self) -> str:
        return " ".join(field.text for field in (self.minute, self.hour, self.day, self.month, self.weekday))

    def shows(self, wall: datetime) -> bool:
        return (
            wall.minute in self.minute.numbers
            and wall.hour in self.hour.numbers
            and wall.month in self.month.numbers
            and on(self, wall.date())
        )

    def on(self, day: date) -> bool:
        found = [self._day_of_month(day), self._day_of_week(day)]
        return all(found) if self.day.star or self.weekday.star else any(found)

    def _day_of_month(self, day: date) -> bool:
        days = monthrange(day.year, day.month)[1]
        working = max(number for number in range(1, days + 1) if day.replace(day=number).weekday() < 5)
        return (
            day.day in self.day.numbers
            or ("L" in self.day.marks and day.day == days)
            or ("LW" in self.day.marks and day.day == working)
        )

    def _day_of_week(self, day: date) -> bool:
        number, which = day.isoweekday() % 7, (day.day - 1) // 7 + 1
        last = (day + 7 * DAY).month != day.month
        return (
            number in self.weekday.numbers
            or (number, which) in self.weekday.marks
            or (last and (number, -1) in self.weekday.marks)
        )


@lru_cache
def on(rule: Rule, day: date) -> bool:
    return rule.on(day)


def fires(rule: Rule, zone: str, around: datetime) -> Sequence[datetime]:
    """Every fire of the two days around a moment.

    It follows the clock as Debian's cron does. Rules with a star in the minute or the hour fire when the clock shows a
    matching time. Other rules run for every minute up to the latest that the clock ever showed, each minute once.
    """
    found: list[datetime] = []
    watched = scan(zone, around)
    latest = watched[0][1]
    for moment, wall in watched[1:]:
        if rule.minute.star or rule.hour.star:
            due = rule.shows(wall)
        else:
            due = any(rule.shows(missed) for missed in _minutes(latest, wall))
        if due:
            found.append(moment)
        latest = max(latest, wall)
    return found


@cache
def scan(zone: str, around: datetime) -> Sequence[tuple[datetime, datetime]]:
    """Each minute of the two days around a moment, and the time of a clock in the zone."""
    there = ZoneInfo(zone)
    moments = [around + step * MINUTE for step in range(-24 * 60, 24 * 60 + 1)]
    return [(moment, moment.astimezone(there).replace(tzinfo=None, fold=0)) for moment in moments]


def _minutes(after: datetime, until: datetime) -> Iterator[datetime]:
    wall = after + MINUTE
    while wall <= until:
        yield wall
        wall += MINUTE


@cache
def changes(zone: str) -> Sequence[datetime]:
    """The moments of clock changes in the zone; for a zone without any, some days in the middle of months."""
    there = ZoneInfo(zone)
    hours = (datetime(YEARS[0], 1, 1, tzinfo=UTC) + step * DAY / 4 for step in range(len(YEARS) * 365 * 4))
    found: list[datetime] = []
    before = next(hours)
    for moment in hours:
        if moment.astimezone(there).utcoffset() != before.astimezone(there).utcoffset():
            old = before.astimezone(there).utcoffset()
            found.append(next(m for m in _minutes(before, moment) if m.astimezone(there).utcoffset() != old))
        before = moment
    return found or [datetime(year, month, 15, 18, tzinfo=UTC) for year in YEARS for month in (2, 3, 10, 12)]


def _one(number: int) -> Field:
    return Field(str(number), frozenset({number}))


def _some(numbers: Sequence[int]) -> Field:
    return Field(",".join(str(number) for number in numbers), frozenset(numbers))


def _span(ends: tuple[int, int]) -> Field:
    return Field(f"{min(ends)}-{max(ends)}", frozenset(range(min(ends), max(ends) + 1)))


def _stepped(ends: tuple[int, int], step: int) -> Field:
    first, last = min(ends), max(ends) + 1
    return Field(f"{first}-{last}/{step}", frozenset(range(first, last + 1, step)))


def _numbers(low: int, high: int) -> st.SearchStrategy[Field]:
    number, lower = st.integers(low, high), st.integers(low, high - 1)
    return st.one_of(
        st.builds(_one, number),
        st.builds(_some, st.lists(number, min_size=2, max_size=4)),
        st.builds(_span, st.tuples(number, number)),
        st.builds(_stepped, st.tuples(lower, lower), st.integers(1, high)),
    )


def _always(low: int, high: int) -> st.SearchStrategy[Field]:
    return st.just(Field("*", frozenset(range(low, high + 1))))


def _stars(low: int, high: int) -> st.SearchStrategy[Field]:
    def told(step: int) -> Field:
        return Field(f"*/{step}", frozenset(range(low, high + 1, step)))

    return _always(low, high) | st.builds(told, st.integers(1, high))


def _named(names: Sequence[str], low: int) -> st.SearchStrategy[Field]:
    def told(first: int, last: int) -> Field:
        if first > last:
            return Field(f"{names[last].lower()},{names[first]}", frozenset({first + low, last + low}))
        return Field(f"{names[first]}-{names[last]}", frozenset(range(first + low, last + low + 1)))

    number = st.integers(0, len(names) - 1)
    return st.builds(told, number, number)


MARKED_DAYS = (
    Field("L", marks=frozenset({"L"})),
    Field("LW", marks=frozenset({"LW"})),
    Field("15,L", frozenset({15}), frozenset({"L"})),
)
MARKED_WEEKDAYS = (
    Field("7", frozenset({0})),
    *(Field(f"{day}L", marks=frozenset({(day, -1)})) for day in range(7)),
    *(Field(f"{DAY_NAMES[day]}#{which}", marks=frozenset({(day, which)})) for day in range(7) for which in range(1, 6)),
)

# Most rules should fire within the two days, so their days are mostly unrestricted.
RULES = st.builds(
    Rule,
    minute=_stars(0, 59) | _numbers(0, 59),
    hour=_stars(0, 23) | _numbers(0, 4) | _numbers(0, 23),
    day=_always(1, 31) | _stars(1, 31) | _numbers(1, 28) | st.sampled_from(MARKED_DAYS),
    month=_always(1, 12) | _always(1, 12) | _numbers(1, 12) | _named(MONTH_NAMES, 1),
    weekday=_always(0, 6) | _stars(0, 6) | _numbers(0, 6) | _named(DAY_NAMES, 0) | st.sampled_from(MARKED_WEEKDAYS),
)
