"""Takes times of day and days from a phrase: `half past nine`, `next friday`, `25 december`."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, time, timedelta
from statistics import mode

from frontdesk.errors import Invalid
from frontdesk.schedules.phrases.tokens import (
    MONTH_NAMES,
    MONTH_NUMBERS,
    SMALL_NUMBERS,
    TENS,
    TOKEN,
    UNIT_SECONDS,
    VAGUE_NUMBERS,
    WEEKDAY_NAMES,
    PhraseTokens,
    take_number,
    take_ordinal,
    take_weekday,
)
from frontdesk.schedules.triggers import EARLIEST_YEAR, LATEST_YEAR, TIME_IN_PAST

CLOCK_FIGURES = re.compile(r"(\d{1,2}):(\d{2})(?::00)?", re.ASCII)
# Before am or pm, `9.30` can only be a time.
DOTTED_TIME = re.compile(r"(\d{1,2})\.(\d{2})", re.ASCII)
HOUR_FIGURES = re.compile(r"\d{1,2}", re.ASCII)
MINUTE_FIGURES = re.compile(r"[0-5]\d", re.ASCII)
AT_WORDS = ("at", "@")
HOUR_SUFFIXES = ("h", "hrs", "hours")
SPOKEN_HOURS = SMALL_NUMBERS[1:13]
# The hours without am or pm in a part of the day: those that are unchanged, and those to which twelve is added.
DAY_PARTS = {
    "morning": (range(12), range(0)),
    "afternoon": (range(12, 19), range(1, 7)),
    "evening": (range(16, 24), range(4, 12)),
    "night": (range(18, 24), range(6, 12)),
}
# From seven on, people mean the morning; earlier hours without am or pm are ambiguous.
AMBIGUOUS_HOURS = range(1, 7)
# "every night at 2am" is after midnight; for a single night, the day would be ambiguous.
AFTER_MIDNIGHT = range(6)


@dataclass(frozen=True, slots=True)
class ClockTime:
    """A time as it was written; `sure` if it has only one meaning."""

    hour: int
    minute: int
    written: str
    sure: bool = False
    midnight: bool = False
    after_at: bool = False

    def resolve(self, part: str | None, *, each: bool = False) -> time:
        """The time that it means in a part of the day, if one is given; `each`: on every such day."""
        if each and part == "night" and self.sure and self.hour in AFTER_MIDNIGHT:
            return time(self.hour, self.minute)
        if part is not None:
            return self._resolve_in_part(part)
        if not self.sure and self.hour in AMBIGUOUS_HOURS:
            raise Invalid(
                f'"{self.written}" may be in the morning or in the afternoon. '
                f"Write {self.hour:02}:{self.minute:02} or {self.hour + 12}:{self.minute:02}"
            )
        return time(self.hour, self.minute)

    def _resolve_in_part(self, part: str) -> time:
        stays, moves = DAY_PARTS[part]
        if self.hour in stays:
            return time(self.hour, self.minute)
        if not self.sure and self.hour in moves:
            return time(self.hour + 12, self.minute)
        raise Invalid(f'"{self.written}" does not go with "{part}". Write the time as 09:30 or 21:30')


def take_clock_times(words: PhraseTokens, *, bare: bool = False) -> Sequence[ClockTime]:
    """Take one or more times of day, if the words continue with any; `bare`: a number alone is an hour."""
    mark = words.mark()
    said_at = words.take(*AT_WORDS)
    at = said_at is not None
    first = _take_clock_time(words, bare=at or bare)
    if first is None and said_at == "@":
        words.reset(mark)
    if first is None and said_at == "at":
        raise Invalid(f'After "at" comes a time of day, not "{words.rest()}". Write "at 9", "at 9:30pm" or "at 17:00"')
    if first is None:
        return ()
    found = [replace(first, after_at=at)]
    while True:
        mark = words.mark()
        comma, both = words.take(","), words.take("and")
        following = _take_next_clock_time(words, bare=at or bare) if comma or both else None
        if following is None:
            words.reset(mark)
            return found
        found.append(following)


def _take_next_clock_time(words: PhraseTokens, *, bare: bool) -> ClockTime | None:
    said_at = words.take(*AT_WORDS) is not None
    return _take_clock_time(words, bare=bare or said_at)


def take_day_part(words: PhraseTokens) -> str | None:
    """Take a part of the day: `in the evening`, `at night`, or the word alone after a day."""
    mark = words.mark()
    if not words.take_phrase("in the"):
        words.take(*AT_WORDS)
    found = words.take(*DAY_PARTS)
    if found is None:
        words.reset(mark)
    return found


def _take_clock_time(words: PhraseTokens, *, bare: bool) -> ClockTime | None:
    if words.take("noon", "midday") or words.take_phrase("12 noon") or words.take_phrase("twelve noon"):
        return ClockTime(12, 0, "noon", sure=True)
    if words.take("midnight") or words.take_phrase("12 midnight") or words.take_phrase("twelve midnight"):
        return ClockTime(0, 0, "midnight", sure=True, midnight=True)
    return _take_time_in_figures(words, bare=bare)


def _take_time_in_figures(words: PhraseTokens, *, bare: bool) -> ClockTime | None:
    written = words.peek()
    hands = CLOCK_FIGURES.fullmatch(written) or (
        DOTTED_TIME.fullmatch(written) if words.peek(1) in {"am", "pm"} else None
    )
    if hands is None and not HOUR_FIGURES.fullmatch(written):
        spoken = _take_spoken_time(words, bare=bare)
        if spoken is None and bare and written[:1].isdigit():
            raise Invalid(f'"{written}" is no time of day. Write it as 9:30 or 17:00')
        return spoken
    spoken = _take_minutes_past(words) if hands is None else None
    if spoken is not None:
        return spoken
    half = words.peek(1) if words.peek(1) in {"am", "pm", "oclock"} else ""
    if hands is None and not half and not bare:
        return None
    del words.remaining[-2 if half else -1 :]
    if hands is None and not half and words.take(*HOUR_SUFFIXES):
        minute = words.remaining.pop() if MINUTE_FIGURES.fullmatch(words.peek()) else "00"
        return replace(_make_clock_time(int(written), int(minute), f"{written}h{minute}", half), sure=True)
    if hands is not None and not half:
        words.take(*HOUR_SUFFIXES)
    hour, minute = (int(hands[1]), int(hands[2])) if hands else (int(written), 0)
    return _make_clock_time(hour, minute, written, half)


def _take_spoken_time(words: PhraseTokens, *, bare: bool) -> ClockTime | None:
    """`half past nine`, `quarter to ten`, `ten past 9`, and if a time is expected, also `nine`, `nine thirty`."""
    found = _take_minutes_past(words)
    if found is not None or not bare or words.peek() not in SPOKEN_HOURS:
        return found
    written = words.remaining.pop()
    minute, mark = 0, words.mark()
    tens = take_number(words) if words.peek() in {*TENS, *SMALL_NUMBERS[10:]} else None
    if tens is not None and tens < 60 and words.peek() not in UNIT_SECONDS:
        minute, written = int(tens), f"{written} {tens}"
    else:
        words.reset(mark)
    return _make_clock_time(SPOKEN_HOURS.index(written.split()[0]) + 1, minute, written, _take_am_or_pm(words))


def _take_minutes_past(words: PhraseTokens) -> ClockTime | None:
    """Take minutes past an hour, or to it."""
    mark = words.mark()
    minutes = _take_minutes(words)
    way = None if minutes is None else words.take("past", "after", "to", "before")
    figures = minutes is not None and mark[-1].isdigit() and "minute" not in "".join(mark[-2:-1])
    # "9 to 5" is a period of the day.
    if minutes is None or way is None or (figures and way in {"to", "before"}):
        words.reset(mark)
        if words.peek() == "half" and words.peek(1) in SPOKEN_HOURS:
            raise Invalid(f'"half {words.peek(1)}" may be before or after {words.peek(1)}. Write it as 9:30')
        return None
    hour = _take_hour(words)
    if hour is None:
        words.reset(mark)
        return None
    written = words.taken_since(mark)
    after = way in {"past", "after"}
    clock = _make_clock_time(hour, 0, written, _take_am_or_pm(words))
    total = clock.hour * 60 + (minutes if after else -minutes)
    # A quarter to one is after noon, unless the phrase says otherwise.
    hour = total // 60 % 24 if clock.sure or total >= 60 else 12
    return replace(clock, hour=hour, minute=total % 60)


def _take_minutes(words: PhraseTokens) -> int | None:
    words.take("a")
    if words.take("half"):
        return 30
    if words.take("quarter"):
        return 15
    number = take_number(words) if words.peek() not in {"a", "an", *VAGUE_NUMBERS} else None
    words.take("minutes", "minute", "min", "mins")
    return int(number) if number is not None and number.denominator == 1 and 0 < number < 60 else None


def _take_hour(words: PhraseTokens) -> int | None:
    if words.peek() in SPOKEN_HOURS:
        return SPOKEN_HOURS.index(words.remaining.pop()) + 1
    if HOUR_FIGURES.fullmatch(words.peek()) and int(words.peek()) < 24:
        return int(words.remaining.pop())
    return None


def _take_am_or_pm(words: PhraseTokens) -> str:
    return words.take("am", "pm", "oclock") or ""


def _make_clock_time(hour: int, minute: int, written: str, half: str) -> ClockTime:
    whole = f"{written}{half if half != 'oclock' else ''}"
    if half in {"am", "pm"}:
        if not (1 <= hour <= 12 and minute < 60):
            raise Invalid(f'"{whole}" is no time of day. Write it as 9:30pm or 21:30')
        return ClockTime(hour % 12 + (12 if half == "pm" else 0), minute, whole, sure=True)
    if hour > 23 or minute > 59:
        raise Invalid(f'"{whole}" is no time of day. Write it as 9:30 or 17:00')
    return ClockTime(hour, minute, whole, sure=written.startswith("0") or hour > 12)


YEAR = re.compile(r"20\d{2}", re.ASCII)
DAY_NUMBER = re.compile(r"\d{1,2}", re.ASCII)
DATE_FIGURES = re.compile(r"\d+[./]\d+([./]\d+)?|\d+-\d+-\d+", re.ASCII)
# With dots the day comes first, in every country that writes dates like this.
DOTTED_DATE = re.compile(r"(\d{1,2})\.(\d{1,2})\.(20\d{2})", re.ASCII)
SHORT_DOTTED_DATE = re.compile(r"(\d{1,2})\.(\d{1,2})", re.ASCII)
SLASHED_DATE = re.compile(r"(\d{1,2})[/-](\d{1,2})[/-](20\d{2})", re.ASCII)
YEAR_FIRST_DATE = re.compile(r"(\d{4})[/-](\d{1,2})[/-](\d{1,2})", re.ASCII)
HOLIDAYS = {
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
ONE_DAY = timedelta(days=1)
# A date without a year that was just missed is more likely a mistake than meant for next year.
FAR_AHEAD = timedelta(days=300)
LONGEST_MONTHS = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


@dataclass(frozen=True, slots=True)
class NextWeekday:
    """The next day with that name; the name of today is ambiguous, and may be refused."""

    number: int

    def on(self, at: time, now: datetime) -> date:
        ahead = (self.number - now.weekday()) % 7
        if ahead == 0 and at > now.time():
            name, clock = WEEKDAY_NAMES[self.number], at.isoformat("minutes")
            raise Invalid(f'Today is {name.title()}. Write "today at {clock}" or "next {name} at {clock}"')
        return now.date() + (ahead or 7) * ONE_DAY


@dataclass(frozen=True, slots=True)
class MonthDay:
    """A day of a month, in the first year in which it is in the future; without a month, in this one or the next."""

    day: int
    month: int | None = None

    def on(self, at: time, now: datetime) -> date:
        months = [(now.year, now.month), (now.year + now.month // 12, now.month % 12 + 1)]
        if self.month is not None:
            months = [(now.year, self.month), (now.year + 1, self.month)]
        for year, month in months:
            found = make_date(year, month, self.day)
            if found == now.date() and at <= now.time():
                raise Invalid(TIME_IN_PAST)
            if found >= now.date():
                return self._refuse_far_ahead(found, now)
        raise Invalid(TIME_IN_PAST)

    def _refuse_far_ahead(self, found: date, now: datetime) -> date:
        if found.year > now.year and found - now.date() > FAR_AHEAD:
            written = f"{MONTH_NAMES[found.month - 1]} {found.day}"
            raise Invalid(f'"{written}" is over this year. For the next one write "{written} {found.year}"')
        return found


@dataclass(frozen=True, slots=True)
class FixedDay:
    """A day with a known date."""

    day: date

    def on(self, at: time, now: datetime) -> date:  # noqa: ARG002 -- every kind of day has the same parameters
        return self.day


@dataclass(frozen=True, slots=True)
class NamedDay:
    """A date that was written with the name of its day."""

    weekday: int
    day: MonthDay | FixedDay

    def on(self, at: time, now: datetime) -> date:
        found = self.day.on(at, now)
        if found.weekday() != self.weekday:
            its, written = WEEKDAY_NAMES[found.weekday()].title(), WEEKDAY_NAMES[self.weekday].title()
            raise Invalid(f"{found} is a {its}, not a {written}. Write the date or the day alone")
        return found


PhraseDay = NextWeekday | MonthDay | FixedDay | NamedDay


def take_day(words: PhraseTokens, today: date) -> PhraseDay | None:
    """Take a day, if the words continue with one."""
    mark = words.mark()
    words.take("on")
    found = _take_named_day(words, today) or _take_holiday(words) or _take_date(words)
    if found is None:
        words.reset(mark)
    return found


def make_date(year: int, month: int, day: int) -> date:
    if not EARLIEST_YEAR <= year <= LATEST_YEAR:
        raise Invalid(f"{year} is too far away. Write another date")
    try:
        return date(year, month, day)
    except ValueError as error:
        raise Invalid(f"{MONTH_NAMES[month - 1].title()} {year} has no day {day}. Write another date") from error


def _take_named_day(words: PhraseTokens, today: date) -> NextWeekday | FixedDay | NamedDay | None:
    if words.take_phrase("the day after tomorrow") or words.take_phrase("day after tomorrow"):
        return FixedDay(today + 2 * ONE_DAY)
    if words.take("yesterday"):
        raise Invalid(TIME_IN_PAST)
    if words.take("today"):
        return FixedDay(today)
    if words.take("tomorrow"):
        return FixedDay(today + ONE_DAY)
    mark = words.mark()
    which = words.take("this", "coming", "next")
    number = take_weekday(words)
    if number is None:
        if which is not None and words.peek() in {"week", "month", "year", "weekend"}:
            raise Invalid(f'"{which} {words.peek()}" names no day. Write one, as in "next friday" or "2030-12-25"')
        words.reset(mark)
        return None
    dated = _take_date_after_weekday(words)
    if dated is not None or which is None:
        return NextWeekday(number) if dated is None else NamedDay(number, dated)
    return FixedDay(_next_weekday(number, today) if which == "next" else _weekday_of_this_week(number, today))


def _take_date_after_weekday(words: PhraseTokens) -> MonthDay | FixedDay | None:
    """Take the date after the name of its day: `friday, 27 november`, `fri 27.11.2026`, `friday the 13th`."""
    mark = words.mark()
    words.take(",")
    # "monday 9.30" is more likely a time.
    is_time = SHORT_DOTTED_DATE.fullmatch(words.peek()) is not None and words.peek(1) != "."
    found = None if is_time else _take_date(words)
    if found is None:
        words.reset(mark)
    return found


def _next_weekday(number: int, today: date) -> date:
    """The day that two of three meanings share: the coming one, or next week's with weeks from Monday or Sunday."""
    coming = today + ((number - today.weekday() - 1) % 7 + 1) * ONE_DAY
    from_monday = today + (7 - today.weekday() + number) * ONE_DAY
    from_sunday = today + (7 - (today.weekday() + 1) % 7 + (number + 1) % 7) * ONE_DAY
    return mode((coming, from_monday, from_sunday))


def _weekday_of_this_week(number: int, today: date) -> date:
    ahead = (number - today.weekday()) % 7
    if today.weekday() + ahead > 6:
        name = WEEKDAY_NAMES[number]
        raise Invalid(f'"this {name}" is over. Write "next {name}" or the date')
    return today + ahead * ONE_DAY


def _take_holiday(words: PhraseTokens) -> MonthDay | FixedDay | None:
    month_day = next((HOLIDAYS[name] for name in HOLIDAYS if words.take_phrase(" ".join(TOKEN.findall(name)))), None)
    return None if month_day is None else _take_year(words, *month_day)


def _take_year(words: PhraseTokens, month: int, day: int) -> MonthDay | FixedDay:
    words.take(",")
    year = words.remaining.pop() if YEAR.fullmatch(words.peek()) else None
    return MonthDay(day, month) if year is None else FixedDay(make_date(int(year), month, day))


def _take_date_in_figures(words: PhraseTokens) -> MonthDay | FixedDay | None:
    """Take a date in digits of which only one can be the month: `2026-12-24`, `24.12.2026`, `12/24/2026`, `24.12.`."""
    figures = words.peek()
    if dotted := DOTTED_DATE.fullmatch(figures):
        day, month, year = (int(part) for part in dotted.groups())
    elif year_first := YEAR_FIRST_DATE.fullmatch(figures):
        year, month, day = (int(part) for part in year_first.groups())
    elif (slashed := SLASHED_DATE.fullmatch(figures)) and max(int(slashed[1]), int(slashed[2])) > 12:
        first, second, year = (int(part) for part in slashed.groups())
        day, month = (first, second) if first > 12 else (second, first)
    elif (short := SHORT_DOTTED_DATE.fullmatch(figures)) and words.peek(1) == ".":
        day, month, year = int(short[1]), int(short[2]), None
    else:
        return None
    if not 1 <= month <= 12:
        raise Invalid(f"There is no month {month}. Write the date as 2030-12-25")
    words.remaining.pop()
    if year is not None:
        return FixedDay(make_date(year, month, day))
    words.take(".")
    if not 1 <= day <= LONGEST_MONTHS[month - 1]:
        raise Invalid(f"{MONTH_NAMES[month - 1].title()} has no day {day}. Write another date")
    return MonthDay(day, month)


def _take_date(words: PhraseTokens) -> MonthDay | FixedDay | None:
    in_figures = _take_date_in_figures(words)
    if in_figures is not None:
        return in_figures
    if DATE_FIGURES.fullmatch(words.peek()) and words.peek(1) not in {"am", "pm"}:
        raise Invalid(f'"{words.peek()}" may be read as a day and a month or the other way round. Write 2030-12-25')
    found = take_month_day(words)
    if found is not None:
        return _take_year(words, *found)
    number = take_ordinal(words)
    return None if number is None or words.peek() == "of" else MonthDay(_check_day_number(number))


def take_month_day(words: PhraseTokens) -> tuple[int, int] | None:
    """Take a month and a day, in either order: `december 25`, `25th of december`."""
    mark = words.mark()
    month = words.take(*MONTH_NUMBERS)
    day = _take_day_number(words)
    if month is None and day is not None:
        words.take("of")
        month = words.take(*MONTH_NUMBERS)
    if month is None or day is None:
        words.reset(mark)
        return None
    number = MONTH_NUMBERS[month]
    if not 1 <= day <= LONGEST_MONTHS[number - 1]:
        raise Invalid(f"{month.title()} has no day {day}. Write another date")
    return number, day


def _take_day_number(words: PhraseTokens) -> int | None:
    number = take_ordinal(words)
    if number is None and DAY_NUMBER.fullmatch(words.peek()) and words.peek(1) not in {"am", "pm"}:
        number = int(words.remaining.pop())
    return number


def _check_day_number(number: int) -> int:
    if not 1 <= number <= 31:
        raise Invalid(f"No month has a day {number}. Write the date as 2030-12-25")
    return number
