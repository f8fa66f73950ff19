"""Takes recurrences from a phrase: `every 5 minutes`, `every weekday`, `the last day of the month`."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta

from frontdesk.errors import Invalid
from frontdesk.schedules.phrases.days_and_times import AT_WORDS, DAY_PARTS, take_month_day
from frontdesk.schedules.phrases.tokens import (
    WEEKDAY_NAMES,
    WEEKDAY_NUMBERS,
    Duration,
    PhraseTokens,
    take_duration,
    take_number,
    take_ordinal,
    take_weekday,
    take_weekdays,
)
from frontdesk.schedules.triggers import parse_cron

MINUTES_PAST_HOUR = re.compile(r":[0-5]\d", re.ASCII)
EVERY_MONTH = ("of every month", "of each month", "every month", "each month")
CRON_WEEKDAYS = ("MON", "TUE", "WED", "THU", "FRI", "SAT", "SUN")
WORKING_DAYS = ("weekday", "weekdays", "workday", "workdays")
OF_THE_MONTH = ("of the month", "in the month", "of a month", "of month")
ONE_WORD_RECURRENCES = {
    "daily": "day",
    "everyday": "day",
    "weekly": "week",
    "monthly": "month",
    "yearly": "year",
    "annually": "year",
    "hourly": "hour",
}
ORDINAL_UNITS = frozenset({"day", "week", "hour", "minute", "month", "year"})
RECURRENCE_UNITS = ("day", "week", "month", "year", "second", "minute", "hour")


@dataclass(frozen=True, slots=True)
class DayRecurrence:
    """The days of a cron rule; `part` is the part of the day that was given with them.

    `steps` of 2 skip every other of the `unit` (days, weeks, months). `once`: a day of "the month" may also mean a
    single day.
    """

    day: str = "*"
    month: str = "*"
    weekday: str = "*"
    part: str | None = None
    steps: int = 1
    unit: str = "days"
    once: bool = False

    @property
    def is_every_day(self) -> bool:
        return (self.day, self.month, self.weekday, self.steps) == ("*", "*", "*", 1)


@dataclass(frozen=True, slots=True)
class HourlyRecurrence:
    """Every hour, at this minute."""

    minute: int


def take_recurrence(words: PhraseTokens) -> DayRecurrence | HourlyRecurrence | Duration | None:
    """Take a recurrence, if the words continue with one."""
    mark = words.mark()
    once = (
        words.take_phrase("once a")
        or words.take_phrase("once an")
        or words.take_phrase("once every")
        or words.take_phrase("once each")
    )
    if once or words.take("every", "each"):
        found = _take_after_every(words)
        if found is None:
            words.reset(mark)
        return found
    alone = words.take(*ONE_WORD_RECURRENCES)
    if alone is not None:
        return _take_unit(words, ONE_WORD_RECURRENCES[alone])
    if words.take("nightly"):
        return DayRecurrence(part="night")
    if words.take("fortnightly"):
        return _take_days_of_weeks(words, 2) or Duration(14 * 86400, 14)
    if words.peek() in {"twice", "thrice"}:
        raise Invalid(
            f'Write the times or the days in place of "{words.peek()}", as in "every day at 09:00 and 21:00" or "every '
            'monday and thursday at 17:00"'
        )
    if words.peek() in {"biweekly", "bimonthly"}:
        unit = words.peek()[2:-2]
        raise Invalid(
            f'"{words.peek()}" may be twice a {unit} or every two {unit}s. Write which, as in "every other tuesday at '
            '17:00" or "every monday and thursday at 17:00"'
        )
    return _take_plural_days(words) or _take_of_every_month(words)


def _take_after_every(words: PhraseTokens) -> DayRecurrence | HourlyRecurrence | Duration | None:
    other = _take_every_other(words)
    if other is not None:
        return other
    if words.take_phrase("month end") or words.take_phrase("end of month") or words.take_phrase("end of the month"):
        return DayRecurrence(day="L")
    unit = words.peek()
    if unit in {"noon", "midday", "midnight"}:
        # The word itself is taken later, as a time of day.
        return DayRecurrence()
    if words.take("fortnight"):
        return _take_days_of_weeks(words, 2) or Duration(14 * 86400, 14)
    if unit in RECURRENCE_UNITS and not (unit == "second" and words.peek(1) in {*WEEKDAY_NUMBERS, "day"}):
        words.take(unit)
        return _take_unit(words, unit)
    return (
        _take_day_group(words)
        or _take_yearly(words)
        or _take_ordinal_of_month(words)
        or _take_every_months(words)
        or _take_duration_or_weeks(words)
    )


def _take_day_group(words: PhraseTokens) -> DayRecurrence | None:
    if words.take(*WORKING_DAYS):
        return DayRecurrence(weekday="MON-FRI")
    if words.take("weekend", "weekends"):
        return DayRecurrence(weekday="SAT,SUN")
    part = words.take(*DAY_PARTS)
    return _take_named_days(words) if part is None else DayRecurrence(part=part)


def _take_every_other(words: PhraseTokens) -> DayRecurrence | Duration | None:
    """Take `other tuesday`, `second day`, `2nd week on friday`, `other month on the 1st`, counted from the first."""
    mark = words.mark()
    steps = 2 if words.take("other", "alternate") else take_ordinal(words)
    unit = words.peek() if words.peek() in ORDINAL_UNITS else ""
    if steps is None or not (unit or mark[-1] in {"other", "alternate"}):
        words.reset(mark)
        return None
    if steps < 1:
        raise Invalid(f'"every {" ".join(reversed(mark))}" counts from 1')
    words.take(*ORDINAL_UNITS)
    match unit:
        case "day":
            # A day of the month: "every second day of the month".
            return _reset_to(words, mark) if words.peek() == "of" else Duration(steps * 86400, steps)
        case "week":
            return _take_days_of_weeks(words, steps) or Duration(steps * 7 * 86400, steps * 7)
        case "month":
            return _take_days_of_months(words, steps)
        case "hour" | "minute":
            return Duration(steps * (3600 if unit == "hour" else 60))
        case _:
            days = DayRecurrence(weekday="SAT,SUN") if words.take("weekend") else _take_named_days(words)
            if days is None:
                raise Invalid(
                    f'"every {" ".join(reversed(mark))}" does not say what comes every other time. Write "every other '
                    'day", "every other tuesday" or "every 2 weeks on monday and friday"'
                )
            return replace(days, steps=steps, unit="weeks")


def _reset_to(words: PhraseTokens, mark: list[str]) -> None:
    words.reset(mark)


def _take_days_of_weeks(words: PhraseTokens, steps: int) -> DayRecurrence | None:
    """The days of every n-th week."""
    words.take("on")
    found = _take_named_days(words)
    return None if found is None else replace(found, steps=steps, unit="weeks")


def _take_every_months(words: PhraseTokens) -> DayRecurrence | None:
    mark = words.mark()
    steps = take_number(words)
    if steps is None or words.take("month", "months") is None or steps.denominator != 1:
        words.reset(mark)
        return None
    return _take_days_of_months(words, int(steps))


def _take_days_of_months(words: PhraseTokens, steps: int) -> DayRecurrence:
    words.take("on")
    found = _take_month_days(words)
    if found is None:
        raise Invalid(
            f'"every {steps} months" names no day, and months are not all the same length. '
            f'Write "every {steps} months on the 1st at 09:00"'
        )
    if steps < 1:
        raise Invalid(f'"every {steps} months" is no number of months. Write 1 or more')
    return replace(found, steps=steps, unit="months")


def _take_duration_or_weeks(words: PhraseTokens) -> DayRecurrence | Duration | None:
    """Take a length, or if days follow whole weeks, those days of every n-th week."""
    found = take_duration(words)
    if found is None or found.days is None or found.days % 7:
        return found
    mark = words.mark()
    days = _take_days_of_weeks(words, found.days // 7) if words.peek() == "on" else None
    if days is None:
        words.reset(mark)
    return days or found


def _take_unit(words: PhraseTokens, unit: str) -> DayRecurrence | HourlyRecurrence | Duration:
    match unit:
        case "day":
            return DayRecurrence()
        case "week":
            words.take("on")
            found = _take_named_days(words)
            if found is None:
                raise Invalid('"every week" names no day. Write "every monday at 09:00", or "every 7 days"')
            return found
        case "month":
            words.take("on")
            found = _take_month_days(words)
            if found is None:
                raise Invalid('"every month" names no day. Write "every month on the 1st at 09:00"')
            return found
        case "year":
            words.take("on")
            found = _take_yearly(words)
            if found is None:
                raise Invalid('"every year" names no day. Write "every year on december 25 at 09:00"')
            return found
        case "hour":
            return _take_hourly(words)
        case _:
            return Duration(1 if unit == "second" else 60)


def _take_hourly(words: PhraseTokens) -> HourlyRecurrence | Duration:
    if words.take_phrase("on the hour"):
        return HourlyRecurrence(0)
    if words.take_phrase("on the half hour") or words.take_phrase("at half past") or words.take_phrase("half past"):
        return HourlyRecurrence(30)
    if words.take_phrase("at quarter past") or words.take_phrase("at a quarter past"):
        return HourlyRecurrence(15)
    if words.take_phrase("at quarter to") or words.take_phrase("at a quarter to"):
        return HourlyRecurrence(45)
    if words.peek() == "at" and MINUTES_PAST_HOUR.fullmatch(words.peek(1)):
        minute = int(words.peek(1)[1:])
        del words.remaining[-2:]
        return HourlyRecurrence(minute)
    return Duration(3600)


def _take_plural_days(words: PhraseTokens) -> DayRecurrence | None:
    """Take `weekdays`, `on mondays and fridays`: plural names, which cannot mean a single day."""
    mark = words.mark()
    words.take("on")
    if words.take("weekdays", "workdays"):
        return DayRecurrence(weekday="MON-FRI")
    if words.take("weekends"):
        return DayRecurrence(weekday="SAT,SUN")
    if words.peek().endswith("days") and words.peek() in WEEKDAY_NUMBERS:
        return _take_named_days(words)
    first, found = words.peek(), take_weekdays(words)
    if len(found) > 1 and _is_span(words, mark):
        return DayRecurrence(weekday=format_cron_weekdays(found))
    if len(found) > 1:
        raise Invalid(
            f'Several days, but "every" is missing. Write "every {first} and …", or one schedule for each day'
        )
    words.reset(mark)
    return None


def _is_span(words: PhraseTokens, mark: list[str]) -> bool:
    """Whether these are consecutive days, `mon-fri`, `monday to friday`, which cannot mean a single day."""
    said = mark[len(words.remaining) :]
    return "and" not in said and "," not in said


def _take_named_days(words: PhraseTokens) -> DayRecurrence | None:
    found = take_weekdays(words)
    return DayRecurrence(weekday=format_cron_weekdays(found)) if found else None


def format_cron_weekdays(days: Sequence[int]) -> str:
    chosen = sorted(set(days))
    if len(chosen) == 7:
        return "*"
    # cron counts Sunday as the first day of the week, and has no range that ends with it.
    if len(chosen) > 2 and chosen[-1] - chosen[0] == len(chosen) - 1 and chosen[-1] < 6:
        return f"{CRON_WEEKDAYS[chosen[0]]}-{CRON_WEEKDAYS[chosen[-1]]}"
    return ",".join(CRON_WEEKDAYS[day] for day in chosen)


def _take_yearly(words: PhraseTokens) -> DayRecurrence | None:
    found = take_month_day(words)
    if found is None:
        return None
    if found == (2, 29):
        raise Invalid("Not every year has a February 29. Write another date, or the cron rule 0 9 29 2 *")
    return DayRecurrence(day=str(found[1]), month=str(found[0]))


def _take_ordinal_of_month(words: PhraseTokens) -> DayRecurrence | None:
    """Take, after `every`, `first monday of the month`, `1st of the month`."""
    mark = words.mark()
    found = _take_month_days(words)
    if found is None:
        return None
    said = words.taken_since(mark)
    if any(words.take_phrase(end) for end in ("of the month", "of month", "of every month", "of each month")):
        return found
    words.reset(mark)
    raise Invalid(
        f'"every {said}" does not say of what. Write "of the month" after it, or for example "every 2 weeks on tuesday"'
    )


def _take_of_every_month(words: PhraseTokens) -> DayRecurrence | None:
    """Take, without `every`, `on the first monday of every month`, `last friday of the month`, `end of month`."""
    mark = words.mark()
    words.take("on", *AT_WORDS)
    ends = words.rest()
    said = (*EVERY_MONTH, *OF_THE_MONTH)
    found = _take_end_of_month(words) or (_take_month_days(words) if any(end in ends for end in said) else None)
    if found is not None and any(words.take_phrase(end) for end in EVERY_MONTH):
        return replace(found, once=False)
    if found is not None and (found.once or any(words.take_phrase(end) for end in OF_THE_MONTH)):
        return replace(found, once=True)
    words.reset(mark)
    return None


def _take_end_of_month(words: PhraseTokens) -> DayRecurrence | None:
    """`end of month`, `the end of the month`, `start of every month`."""
    mark = words.mark()
    words.take("the")
    if words.take_phrase("month end"):
        return DayRecurrence(day="L", once=True)
    which = words.take("end", "start", "beginning")
    day = "L" if which == "end" else "1"
    if which is not None and (words.take_phrase("of month") or words.take_phrase("of the month")):
        return DayRecurrence(day=day, once=True)
    if which is not None and any(words.rest().startswith(end) for end in EVERY_MONTH):
        return DayRecurrence(day=day)
    words.reset(mark)
    return None


def take_day_in_month(words: PhraseTokens, today: date) -> date | None:
    """Take a day of this month or the next: `end of this month`, `the last friday of next month`."""
    rest = words.rest()
    if "this month" not in rest and "next month" not in rest:
        return None
    mark = words.mark()
    words.take("on", *AT_WORDS)
    inner = words.mark()
    words.take("the")
    ends = {"end": "L", "start": "1", "beginning": "1"}
    end = words.take(*ends)
    if end is None:
        words.reset(inner)
    found = _take_month_days(words) if end is None else DayRecurrence(day=ends[end])
    words.take("of")
    which = words.take("this", "next") if found is not None and words.peek(1) == "month" else None
    if found is None or which is None:
        words.reset(mark)
        return None
    words.take("month")
    days = parse_cron(f"0 0 {found.day} * {found.weekday}")
    first = today.replace(day=1)
    first = (first + timedelta(days=32)).replace(day=1) if which == "next" else first
    return next(day for day in (first + timedelta(days=ahead) for ahead in range(31)) if days.on(day))


def _take_month_days(words: PhraseTokens) -> DayRecurrence | None:
    """Take days of a month: `the 1st and 15th`, `the last day`, `the first monday`, `the last friday`."""
    mark = words.mark()
    words.take("the")
    if words.take("last"):
        return _take_last_day(words, mark)
    if words.take_phrase("first day"):
        return DayRecurrence(day="1")
    number = take_ordinal(words)
    if number is None:
        words.reset(mark)
        return None
    day = take_weekday(words)
    if day is not None:
        if number > 4:
            raise Invalid(f"Not every month has a fifth {WEEKDAY_NAMES[day]}. Write the fourth or the last one")
        return DayRecurrence(weekday=f"{CRON_WEEKDAYS[day]}#{number}")
    words.take("day")
    return DayRecurrence(
        day=",".join(str(day) for day in sorted({number, *_take_more_ordinals(words)}) if _check_in_every_month(day))
    )


def _take_last_day(words: PhraseTokens, mark: list[str]) -> DayRecurrence | None:
    if words.take("day"):
        return DayRecurrence(day="L")
    if words.take("weekday", "workday"):
        return DayRecurrence(day="LW")
    day = take_weekday(words)
    if day is None:
        words.reset(mark)
        return None
    return DayRecurrence(weekday=f"{(day + 1) % 7}L")


def _take_more_ordinals(words: PhraseTokens) -> Sequence[int]:
    found: list[int] = []
    while True:
        mark = words.mark()
        words.take(",")
        words.take("and")
        number = take_ordinal(words) if words.mark() != mark else None
        if number is None:
            words.reset(mark)
            return found
        found.append(number)


def _check_in_every_month(day: int) -> bool:
    if not 1 <= day <= 28:
        raise Invalid(
            f'Not every month has a day {day}. Write "on the last day", or a day up to the 28th, or the cron rule'
        )
    return True
