"""What repeats, in words: `every 5 minutes`, `every weekday`, `mondays and fridays`, `monthly on the last day`."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta

from frontdesk.errors import Invalid
from frontdesk.schedule.triggers import cron
from frontdesk.schedule.words import names
from frontdesk.schedule.words.clock import AT, PARTS
from frontdesk.schedule.words.days import month_day
from frontdesk.schedule.words.lengths import Length, length, number
from frontdesk.schedule.words.reader import Words

PAST_THE_HOUR = re.compile(r":[0-5]\d", re.ASCII)
MONTHLY = ("of every month", "of each month", "every month", "each month")
CRON_DAYS = ("MON", "TUE", "WED", "THU", "FRI", "SAT", "SUN")
WORKING_DAYS = ("weekday", "weekdays", "workday", "workdays")
MONTHLY_OR_ONCE = ("of the month", "in the month", "of a month", "of month")
ALONE = {
    "daily": "day",
    "everyday": "day",
    "weekly": "week",
    "monthly": "month",
    "yearly": "year",
    "annually": "year",
    "hourly": "hour",
}
ORDINAL_UNITS = frozenset({"day", "week", "hour", "minute", "month", "year"})
UNITS = ("day", "week", "month", "year", "second", "minute", "hour")


@dataclass(frozen=True, slots=True)
class Days:
    """The days of a cron rule; `part` when a part of the day was said with them.

    `steps` of 2 leave out every other of the `unit` (days, weeks, months). What may also be meant `once` is a day of
    "the month".
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
class Minutes:
    """Every hour, at this minute."""

    minute: int


def repeat(words: Words) -> Days | Minutes | Length | None:
    """Take what repeats, if the words go on with it."""
    mark = words.mark()
    once = words.phrase("once a") or words.phrase("once an") or words.phrase("once every") or words.phrase("once each")
    if once or words.take("every", "each"):
        found = _every(words)
        if found is None:
            words.back(mark)
        return found
    alone = words.take(*ALONE)
    if alone is not None:
        return _unit(words, ALONE[alone])
    if words.take("nightly"):
        return Days(part="night")
    if words.take("fortnightly"):
        return _weeks(words, 2) or Length(14 * 86400, 14)
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
    return _plural(words) or _of_every_month(words)


def _every(words: Words) -> Days | Minutes | Length | None:
    other = _other(words)
    if other is not None:
        return other
    if words.phrase("month end") or words.phrase("end of month") or words.phrase("end of the month"):
        return Days(day="L")
    unit = words.peek()
    if unit in {"noon", "midday", "midnight"}:
        # The time is taken as one.
        return Days()
    if words.take("fortnight"):
        return _weeks(words, 2) or Length(14 * 86400, 14)
    if unit in UNITS and not (unit == "second" and words.peek(1) in {*names.WEEKDAY, "day"}):
        words.take(unit)
        return _unit(words, unit)
    return _some_days(words) or _yearly(words) or _ordinal_of_month(words) or _months(words) or _length(words)


def _some_days(words: Words) -> Days | None:
    if words.take(*WORKING_DAYS):
        return Days(weekday="MON-FRI")
    if words.take("weekend", "weekends"):
        return Days(weekday="SAT,SUN")
    part = words.take(*PARTS)
    return _named_days(words) if part is None else Days(part=part)


def _other(words: Words) -> Days | Length | None:
    """`other tuesday`, `second day`, `2nd week on friday`, `other month on the 1st`, counted from the first."""
    mark = words.mark()
    steps = 2 if words.take("other", "alternate") else names.ordinal(words)
    unit = words.peek() if words.peek() in ORDINAL_UNITS else ""
    if steps is None or not (unit or mark[-1] in {"other", "alternate"}):
        words.back(mark)
        return None
    if steps < 1:
        raise Invalid(f'"every {" ".join(reversed(mark))}" counts from 1')
    words.take(*ORDINAL_UNITS)
    match unit:
        case "day":
            # A day of the month: "every second day of the month".
            return _back(words, mark) if words.peek() == "of" else Length(steps * 86400, steps)
        case "week":
            return _weeks(words, steps) or Length(steps * 7 * 86400, steps * 7)
        case "month":
            return _each_month(words, steps)
        case "hour" | "minute":
            return Length(steps * (3600 if unit == "hour" else 60))
        case _:
            days = Days(weekday="SAT,SUN") if words.take("weekend") else _named_days(words)
            if days is None:
                raise Invalid(
                    f'"every {" ".join(reversed(mark))}" does not say what comes every other time. Write "every other '
                    'day", "every other tuesday" or "every 2 weeks on monday and friday"'
                )
            return replace(days, steps=steps, unit="weeks")


def _back(words: Words, mark: list[str]) -> None:
    words.back(mark)


def _weeks(words: Words, steps: int) -> Days | None:
    """The days of every so manieth week."""
    words.take("on")
    found = _named_days(words)
    return None if found is None else replace(found, steps=steps, unit="weeks")


def _months(words: Words) -> Days | None:
    mark = words.mark()
    steps = number(words)
    if steps is None or words.take("month", "months") is None or steps.denominator != 1:
        words.back(mark)
        return None
    return _each_month(words, int(steps))


def _each_month(words: Words, steps: int) -> Days:
    words.take("on")
    found = _month_days(words)
    if found is None:
        raise Invalid(
            f'"every {steps} months" names no day, and months are not all the same length. '
            f'Write "every {steps} months on the 1st at 09:00"'
        )
    if steps < 1:
        raise Invalid(f'"every {steps} months" is no number of months. Write 1 or more')
    return replace(found, steps=steps, unit="months")


def _length(words: Words) -> Days | Length | None:
    """A length, or with days named after whole weeks, those days of every so manieth week."""
    found = length(words)
    if found is None or found.days is None or found.days % 7:
        return found
    mark = words.mark()
    days = _weeks(words, found.days // 7) if words.peek() == "on" else None
    if days is None:
        words.back(mark)
    return days or found


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
    if words.phrase("on the half hour") or words.phrase("at half past") or words.phrase("half past"):
        return Minutes(30)
    if words.phrase("at quarter past") or words.phrase("at a quarter past"):
        return Minutes(15)
    if words.phrase("at quarter to") or words.phrase("at a quarter to"):
        return Minutes(45)
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
    if len(found) > 1 and _is_span(words, mark):
        return Days(weekday=cron_days(found))
    if len(found) > 1:
        raise Invalid(
            f'Several days, but "every" is missing. Write "every {first} and …", or one schedule for each day'
        )
    words.back(mark)
    return None


def _is_span(words: Words, mark: list[str]) -> bool:
    """`mon-fri`, `monday to friday`: days that follow each other, which nobody means once."""
    said = mark[len(words.left) :]
    return "and" not in said and "," not in said


def _named_days(words: Words) -> Days | None:
    found = names.weekdays(words)
    return Days(weekday=cron_days(found)) if found else None


def cron_days(days: Sequence[int]) -> str:
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
    said = words.since(mark)
    if any(words.phrase(end) for end in ("of the month", "of month", "of every month", "of each month")):
        return found
    words.back(mark)
    raise Invalid(
        f'"every {said}" does not say of what. Write "of the month" after it, or for example "every 2 weeks on tuesday"'
    )


def _of_every_month(words: Words) -> Days | None:
    """Without `every` before it: `on the first monday of every month`, `last friday of the month`, `end of month`."""
    mark = words.mark()
    words.take("on", *AT)
    ends = words.rest()
    said = (*MONTHLY, *MONTHLY_OR_ONCE)
    found = _end_of_month(words) or (_month_days(words) if any(end in ends for end in said) else None)
    if found is not None and any(words.phrase(end) for end in MONTHLY):
        return replace(found, once=False)
    if found is not None and (found.once or any(words.phrase(end) for end in MONTHLY_OR_ONCE)):
        return replace(found, once=True)
    words.back(mark)
    return None


def _end_of_month(words: Words) -> Days | None:
    """`end of month`, `the end of the month`, `start of every month`."""
    mark = words.mark()
    words.take("the")
    if words.phrase("month end"):
        return Days(day="L", once=True)
    which = words.take("end", "start", "beginning")
    day = "L" if which == "end" else "1"
    if which is not None and (words.phrase("of month") or words.phrase("of the month")):
        return Days(day=day, once=True)
    if which is not None and any(words.rest().startswith(end) for end in MONTHLY):
        return Days(day=day)
    words.back(mark)
    return None


def in_certain_month(words: Words, today: date) -> date | None:
    """Take a day of this month or the next: `end of this month`, `the last friday of next month`."""
    rest = words.rest()
    if "this month" not in rest and "next month" not in rest:
        return None
    mark = words.mark()
    words.take("on", *AT)
    inner = words.mark()
    words.take("the")
    ends = {"end": "L", "start": "1", "beginning": "1"}
    end = words.take(*ends)
    if end is None:
        words.back(inner)
    found = _month_days(words) if end is None else Days(day=ends[end])
    words.take("of")
    which = words.take("this", "next") if found is not None and words.peek(1) == "month" else None
    if found is None or which is None:
        words.back(mark)
        return None
    words.take("month")
    days = cron.rule(f"0 0 {found.day} * {found.weekday}")
    first = today.replace(day=1)
    first = (first + timedelta(days=32)).replace(day=1) if which == "next" else first
    return next(day for day in (first + timedelta(days=ahead) for ahead in range(31)) if days.on(day))


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
    words.take("day")
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
