"""One day, in words: `today`, `friday`, `next friday`, `25 december`, `24.12.2026`, `on the 25th`, `christmas`."""

import re
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from statistics import mode

from frontdesk.errors import Invalid
from frontdesk.schedule.words import names, times
from frontdesk.schedule.words.reader import WORD, Words

YEAR = re.compile(r"20\d{2}", re.ASCII)
DAY_NUMBER = re.compile(r"\d{1,2}", re.ASCII)
FIGURES = re.compile(r"\d+[./]\d+([./]\d+)?|\d+-\d+-\d+", re.ASCII)
# With dots the day comes first, wherever dates are written so.
DOTTED = re.compile(r"(\d{1,2})\.(\d{1,2})\.(20\d{2})", re.ASCII)
DOTTED_SHORT = re.compile(r"(\d{1,2})\.(\d{1,2})", re.ASCII)
SLASHED = re.compile(r"(\d{1,2})[/-](\d{1,2})[/-](20\d{2})", re.ASCII)
YEAR_FIRST = re.compile(r"(\d{4})[/-](\d{1,2})[/-](\d{1,2})", re.ASCII)
FEASTS = {
    "christmas eve": (12, 24),
    "christmas day": (12, 25),
    "christmas": (12, 25),
    "xmas": (12, 25),
    "boxing day": (12, 26),
    "new year's eve": (12, 31),
    "new years eve": (12, 31),
    "new year's day": (1, 1),
    "new years day": (1, 1),
    "new year's": (1, 1),
    "new year": (1, 1),
    "halloween": (10, 31),
    "valentine's day": (2, 14),
    "valentines day": (2, 14),
}
DAY = timedelta(days=1)
# A date without a year that was just missed is more likely a slip than meant for next year.
FAR = timedelta(days=300)
LONGEST_MONTHS = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


@dataclass(frozen=True, slots=True)
class Weekday:
    """The coming day of that name; today's own name may mean today or in a week."""

    number: int

    def on(self, at: time, now: datetime) -> date:
        ahead = (self.number - now.weekday()) % 7
        if ahead == 0 and at > now.time():
            name, clock = names.DAYS[self.number], at.isoformat("minutes")
            raise Invalid(f'Today is {name.title()}. Write "today at {clock}" or "next {name} at {clock}"')
        return now.date() + (ahead or 7) * DAY


@dataclass(frozen=True, slots=True)
class Dated:
    """A day of a month, in the first year in which it is still ahead; without a month, in this one or the next."""

    day: int
    month: int | None = None

    def on(self, at: time, now: datetime) -> date:
        months = [(now.year, now.month), (now.year + now.month // 12, now.month % 12 + 1)]
        if self.month is not None:
            months = [(now.year, self.month), (now.year + 1, self.month)]
        for year, month in months:
            found = real_date(year, month, self.day)
            if found == now.date() and at <= now.time():
                raise Invalid(times.PAST)
            if found >= now.date():
                return self._soon(found, now)
        raise Invalid(times.PAST)

    def _soon(self, found: date, now: datetime) -> date:
        if found.year > now.year and found - now.date() > FAR:
            said = f"{names.MONTHS[found.month - 1]} {found.day}"
            raise Invalid(f'"{said}" is over this year. For the next one write "{said} {found.year}"')
        return found


@dataclass(frozen=True, slots=True)
class Fixed:
    """A day that is known already."""

    day: date

    def on(self, at: time, now: datetime) -> date:  # noqa: ARG002 -- the same question to every kind of day
        return self.day


@dataclass(frozen=True, slots=True)
class Named:
    """A date that was said with the name of its day."""

    weekday: int
    day: Dated | Fixed

    def on(self, at: time, now: datetime) -> date:
        found = self.day.on(at, now)
        if found.weekday() != self.weekday:
            its, said = names.DAYS[found.weekday()].title(), names.DAYS[self.weekday].title()
            raise Invalid(f"{found} is a {its}, not a {said}. Write the date or the day alone")
        return found


Day = Weekday | Dated | Fixed | Named


def one_day(words: Words, today: date) -> Day | None:
    """Take one day, if the words go on with one."""
    mark = words.mark()
    words.take("on")
    found = _named(words, today) or _feast(words) or _dated(words)
    if found is None:
        words.back(mark)
    return found


def real_date(year: int, month: int, day: int) -> date:
    if not times.EARLIEST_YEAR <= year <= times.LATEST_YEAR:
        raise Invalid(f"{year} is too far away. Write another date")
    try:
        return date(year, month, day)
    except ValueError as error:
        raise Invalid(f"{names.MONTHS[month - 1].title()} {year} has no day {day}. Write another date") from error


def _named(words: Words, today: date) -> Weekday | Fixed | Named | None:
    if words.phrase("the day after tomorrow") or words.phrase("day after tomorrow"):
        return Fixed(today + 2 * DAY)
    if words.take("yesterday"):
        raise Invalid(times.PAST)
    if words.take("today"):
        return Fixed(today)
    if words.take("tomorrow"):
        return Fixed(today + DAY)
    mark = words.mark()
    which = words.take("this", "coming", "next")
    number = names.weekday(words)
    if number is None:
        if which is not None and words.peek() in {"week", "month", "year", "weekend"}:
            raise Invalid(f'"{which} {words.peek()}" names no day. Write one, as in "next friday" or "2030-12-25"')
        words.back(mark)
        return None
    dated = _with_date(words)
    if dated is not None or which is None:
        return Weekday(number) if dated is None else Named(number, dated)
    return Fixed(_next(number, today) if which == "next" else _this(number, today))


def _with_date(words: Words) -> Dated | Fixed | None:
    """Take the date after the name of its day: `friday, 27 november`, `fri 27.11.2026`, `friday the 13th`."""
    mark = words.mark()
    words.take(",")
    # "monday 9.30" is more likely a time.
    is_time = DOTTED_SHORT.fullmatch(words.peek()) is not None and words.peek(1) != "."
    found = None if is_time else _dated(words)
    if found is None:
        words.back(mark)
    return found


def _next(number: int, today: date) -> date:
    """The day on which two of three agree: the coming one, that of a next week from Monday, and of one from Sunday."""
    coming = today + ((number - today.weekday() - 1) % 7 + 1) * DAY
    from_monday = today + (7 - today.weekday() + number) * DAY
    from_sunday = today + (7 - (today.weekday() + 1) % 7 + (number + 1) % 7) * DAY
    return mode((coming, from_monday, from_sunday))


def _this(number: int, today: date) -> date:
    ahead = (number - today.weekday()) % 7
    if today.weekday() + ahead > 6:
        name = names.DAYS[number]
        raise Invalid(f'"this {name}" is over. Write "next {name}" or the date')
    return today + ahead * DAY


def _feast(words: Words) -> Dated | Fixed | None:
    month_day = next((FEASTS[name] for name in FEASTS if words.phrase(" ".join(WORD.findall(name)))), None)
    return None if month_day is None else _in_year(words, *month_day)


def _in_year(words: Words, month: int, day: int) -> Dated | Fixed:
    words.take(",")
    year = words.left.pop() if YEAR.fullmatch(words.peek()) else None
    return Dated(day, month) if year is None else Fixed(real_date(int(year), month, day))


def _in_figures(words: Words) -> Dated | Fixed | None:
    """Figures of which only one can be the month: `2026-12-24`, `24.12.2026`, `12/24/2026`, `24.12.` alone."""
    figures = words.peek()
    if dotted := DOTTED.fullmatch(figures):
        day, month, year = (int(part) for part in dotted.groups())
    elif year_first := YEAR_FIRST.fullmatch(figures):
        year, month, day = (int(part) for part in year_first.groups())
    elif (slashed := SLASHED.fullmatch(figures)) and max(int(slashed[1]), int(slashed[2])) > 12:
        first, second, year = (int(part) for part in slashed.groups())
        day, month = (first, second) if first > 12 else (second, first)
    elif (short := DOTTED_SHORT.fullmatch(figures)) and words.peek(1) == ".":
        day, month, year = int(short[1]), int(short[2]), None
    else:
        return None
    if not 1 <= month <= 12:
        raise Invalid(f"There is no month {month}. Write the date as 2030-12-25")
    words.left.pop()
    if year is not None:
        return Fixed(real_date(year, month, day))
    words.take(".")
    if not 1 <= day <= LONGEST_MONTHS[month - 1]:
        raise Invalid(f"{names.MONTHS[month - 1].title()} has no day {day}. Write another date")
    return Dated(day, month)


def _dated(words: Words) -> Dated | Fixed | None:
    in_figures = _in_figures(words)
    if in_figures is not None:
        return in_figures
    if FIGURES.fullmatch(words.peek()) and words.peek(1) not in {"am", "pm"}:
        raise Invalid(f'"{words.peek()}" may be read as a day and a month or the other way round. Write 2030-12-25')
    found = month_day(words)
    if found is not None:
        return _in_year(words, *found)
    number = names.ordinal(words)
    return None if number is None or words.peek() == "of" else Dated(_day_number(number))


def month_day(words: Words) -> tuple[int, int] | None:
    """Take a month and a day, in either order: `december 25`, `25th of december`."""
    mark = words.mark()
    month = words.take(*names.MONTH)
    day = _number(words)
    if month is None and day is not None:
        words.take("of")
        month = words.take(*names.MONTH)
    if month is None or day is None:
        words.back(mark)
        return None
    number = names.MONTH[month]
    if not 1 <= day <= LONGEST_MONTHS[number - 1]:
        raise Invalid(f"{month.title()} has no day {day}. Write another date")
    return number, day


def _number(words: Words) -> int | None:
    number = names.ordinal(words)
    if number is None and DAY_NUMBER.fullmatch(words.peek()) and words.peek(1) not in {"am", "pm"}:
        number = int(words.left.pop())
    return number


def _day_number(number: int) -> int:
    if not 1 <= number <= 31:
        raise Invalid(f"No month has a day {number}. Write the date as 2030-12-25")
    return number
