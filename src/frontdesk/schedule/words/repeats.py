"""What repeats, in words: `every 5 minutes`, `every weekday`, `mondays and fridays`, `monthly on the last day`."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from frontdesk.errors import Invalid
from frontdesk.schedule.words import names
from frontdesk.schedule.words.clock import PARTS
from frontdesk.schedule.words.days import month_day
from frontdesk.schedule.words.lengths import Length, length
from frontdesk.schedule.words.reader import Words

PAST_THE_HOUR = re.compile(r":[0-5]\d", re.ASCII)
MONTHLY = ("of every month", "of each month", "every month", "each month")
CRON_DAYS = ("MON", "TUE", "WED", "THU", "FRI", "SAT", "SUN")
WORKING_DAYS = ("weekday", "weekdays", "workday", "workdays")
ALONE = {"daily": "day", "weekly": "week", "monthly": "month", "yearly": "year", "annually": "year", "hourly": "hour"}
UNITS = ("day", "week", "month", "year", "second", "minute", "hour")


@dataclass(frozen=True, slots=True)
class Days:
    """The days of a cron rule; `part` when a part of the day was said with them."""

    day: str = "*"
    month: str = "*"
    weekday: str = "*"
    part: str | None = None


@dataclass(frozen=True, slots=True)
class Minutes:
    """Every hour, at this minute."""

    minute: int


def repeat(words: Words) -> Days | Minutes | Length | None:
    """Take what repeats, if the words go on with it."""
    mark = words.mark()
    if words.phrase("once a") or words.phrase("once every") or words.take("every", "each"):
        found = _every(words)
        if found is None:
            words.back(mark)
        return found
    alone = words.take(*ALONE)
    if alone is not None:
        return _unit(words, ALONE[alone])
    return _plural(words) or _of_every_month(words)


def _every(words: Words) -> Days | Minutes | Length | None:
    _refuse_alternating(words)
    unit = words.peek()
    if unit in UNITS and not (unit == "second" and words.peek(1) in names.WEEKDAY):
        words.take(unit)
        return _unit(words, unit)
    if words.take(*WORKING_DAYS):
        return Days(weekday="MON-FRI")
    if words.take("weekend", "weekends"):
        return Days(weekday="SAT,SUN")
    part = words.take(*PARTS)
    if part is not None:
        return Days(part=part)
    return _named_days(words) or _yearly(words) or _ordinal_of_month(words) or length(words)


def _unit(words: Words, unit: str) -> Days | Minutes | Length:
    match unit:
        case "day":
            return Days()
        case "week":
            words.take("on")
            found = _named_days(words)
            if found is None:
                raise Invalid('"every week" names no day. Write "every monday at 09:00", or "every 7 days"')
            return found
        case "month":
            words.take("on")
            found = _month_days(words)
            if found is None:
                raise Invalid('"every month" names no day. Write "every month on the 1st at 09:00"')
            return found
        case "year":
            words.take("on")
            found = _yearly(words)
            if found is None:
                raise Invalid('"every year" names no day. Write "every year on december 25 at 09:00"')
            return found
        case "hour":
            return _hourly(words)
        case _:
            return Length(1 if unit == "second" else 60)


def _hourly(words: Words) -> Minutes | Length:
    if words.phrase("on the hour"):
        return Minutes(0)
    if words.phrase("on the half hour"):
        return Minutes(30)
    if words.peek() == "at" and PAST_THE_HOUR.fullmatch(words.peek(1)):
        minute = int(words.peek(1)[1:])
        del words.left[-2:]
        return Minutes(minute)
    return Length(3600)


def _plural(words: Words) -> Days | None:
    """`weekdays`, `on mondays and fridays`: several of them, so that nobody means one."""
    mark = words.mark()
    words.take("on")
    if words.take("weekdays", "workdays"):
        return Days(weekday="MON-FRI")
    if words.take("weekends"):
        return Days(weekday="SAT,SUN")
    if words.peek().endswith("days") and words.peek() in names.WEEKDAY:
        return _named_days(words)
    first, found = words.peek(), names.weekdays(words)
    if len(found) > 1:
        raise Invalid(
            f'Several days, but "every" is missing. Write "every {first} and …", or one schedule for each day'
        )
    words.back(mark)
    return None


def _named_days(words: Words) -> Days | None:
    found = names.weekdays(words)
    return Days(weekday=_cron_days(found)) if found else None


def _cron_days(days: Sequence[int]) -> str:
    chosen = sorted(set(days))
    if len(chosen) == 7:
        return "*"
    # cron counts Sunday as the first of the week, and has no range that ends in it.
    if len(chosen) > 2 and chosen[-1] - chosen[0] == len(chosen) - 1 and chosen[-1] < 6:
        return f"{CRON_DAYS[chosen[0]]}-{CRON_DAYS[chosen[-1]]}"
    return ",".join(CRON_DAYS[day] for day in chosen)


def _yearly(words: Words) -> Days | None:
    found = month_day(words)
    if found is None:
        return None
    if found == (2, 29):
        raise Invalid("Not every year has a February 29. Write another date, or the cron rule 0 9 29 2 *")
    return Days(day=str(found[1]), month=str(found[0]))


def _ordinal_of_month(words: Words) -> Days | None:
    """After `every`: `first monday of the month`, `1st of the month`."""
    mark = words.mark()
    found = _month_days(words)
    if found is None:
        return None
    if words.phrase("of the month") or words.phrase("of every month") or words.phrase("of each month"):
        return found
    words.back(mark)
    raise Invalid(
        f'"every {words.rest()}" does not say of what. Write "of the month" after the day, or "every 14 days", '
        "counted from now"
    )


def _of_every_month(words: Words) -> Days | None:
    """Without `every` before it: `on the first monday of every month`."""
    mark = words.mark()
    words.take("on")
    found = _month_days(words) if any(end in words.rest() for end in MONTHLY) else None
    if found is not None and any(words.phrase(end) for end in MONTHLY):
        return found
    words.back(mark)
    return None


def _month_days(words: Words) -> Days | None:
    """Take days of a month: `the 1st and 15th`, `the last day`, `the first monday`, `the last friday`."""
    mark = words.mark()
    words.take("the")
    if words.take("last"):
        return _last(words, mark)
    if words.phrase("first day"):
        return Days(day="1")
    number = names.ordinal(words)
    if number is None:
        words.back(mark)
        return None
    day = names.weekday(words)
    if day is not None:
        if number > 4:
            raise Invalid(f"Not every month has a fifth {names.DAYS[day]}. Write the fourth or the last one")
        return Days(weekday=f"{CRON_DAYS[day]}#{number}")
    return Days(day=",".join(str(day) for day in sorted({number, *_more(words)}) if _in_every_month(day)))


def _last(words: Words, mark: list[str]) -> Days | None:
    if words.take("day"):
        return Days(day="L")
    if words.take("weekday", "workday"):
        return Days(day="LW")
    day = names.weekday(words)
    if day is None:
        words.back(mark)
        return None
    return Days(weekday=f"{(day + 1) % 7}L")


def _more(words: Words) -> Sequence[int]:
    found: list[int] = []
    while True:
        mark = words.mark()
        words.take(",")
        words.take("and")
        number = names.ordinal(words) if words.mark() != mark else None
        if number is None:
            words.back(mark)
            return found
        found.append(number)


def _in_every_month(day: int) -> bool:
    if not 1 <= day <= 28:
        raise Invalid(
            f'Not every month has a day {day}. Write "on the last day", or a day up to the 28th, or the cron rule'
        )
    return True


def _refuse_alternating(words: Words) -> None:
    second = words.peek() in names.ORDINALS and words.peek(1) in {"day", "week", "hour", "minute", "month", "year"}
    if words.peek() in {"other", "alternate"} or second:
        raise Invalid(
            f'"every {words.rest()}" does not say from when it is counted. Write "every 2 days" or "every 14 days", '
            "counted from now, or name the days"
        )
