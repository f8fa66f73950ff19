"""Rules in plain words, as far as there are plain ones: `every weekday at 09:00` for `cron 0 9 * * MON-FRI`."""

from collections.abc import Sequence

DAYS = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
SHORT = tuple(day[:3].upper() for day in DAYS)
MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
ORDINALS = {"1": "first", "2": "second", "3": "third", "4": "fourth", "5": "fifth"}
LAST = {"L": "on the last day of every month", "LW": "on the last weekday of every month"}
UNITS = {"s": "second", "m": "minute", "h": "hour", "d": "day", "w": "week"}
EVERY_DAY = "every day"
NO_WORDS = "by a cron rule"
# More times of a day are easier to read as the rule has them.
MOST_TIMES = 6


def plain(rule: str) -> str:
    """A rule as `echo.rule` tells it, in words; one for which there are none is called what it is."""
    kind, _, value = rule.partition(" ")
    if kind == "cron":
        return _stepped(value) or NO_WORDS
    return _interval(value) if kind == "every" else "once"


def _stepped(value: str) -> str | None:
    """Fields, and after them which of their days are left out: `every 2 weeks from 2026-11-24`."""
    fields, every, rest = value.partition(" every ")
    plainly = _cron(fields.split())
    if not every or plainly is None:
        return plainly
    number, unit, _, first = rest.split(" ", 3)
    if number == "1":
        return f"{plainly}, from {first}"
    if unit == "days" and plainly.startswith(EVERY_DAY):
        return f"every {number} days{plainly.removeprefix(EVERY_DAY)}, from {first}"
    return f"{plainly}, in every {_ordinal(int(number))} {unit.removesuffix('s')}, from {first}"


def _interval(value: str) -> str:
    number, unit = value[:-1], UNITS.get(value[-1:])
    if unit is None or not number.isdecimal():
        return f"every {value}"
    return f"every {unit}" if number == "1" else f"every {number} {unit}s"


def _cron(fields: Sequence[str]) -> str | None:
    if len(fields) != 5:
        return None
    minute, hour, day, month, weekday = fields
    days, often, times = _days(day, month, weekday), _often(minute, hour), _times(minute, hour)
    if days is None or (often is None and times is None):
        return None
    if often is None:
        return f"{days} at {times}"
    return often if days == EVERY_DAY else f"{days}, {often}"


def _times(minute: str, hour: str) -> str | None:
    minutes, hours = _numbers(minute), _numbers(hour)
    if not minutes or not hours or len(minutes) * len(hours) > MOST_TIMES:
        return None
    return _listed([f"{at:02}:{past:02}" for at in hours for past in minutes])


def _often(minute: str, hour: str) -> str | None:
    """What comes again and again through the day."""
    every_minutes, every_hours, past = _step(minute, 60), _step(hour, 24), _numbers(minute)
    if every_hours == 1 and every_minutes is not None:
        return _interval(f"{every_minutes}m")
    if every_hours is not None and past is not None and len(past) == 1:
        hours = _interval(f"{every_hours}h")
        return f"{hours} on the hour" if past == [0] else f"{hours} at :{past[0]:02}"
    return None


def _step(field: str, whole: int) -> int | None:
    """How far apart, where that is the same all day long."""
    if field == "*":
        return 1
    start, _, step = field.partition("/")
    if start != "*" or not step.isdecimal() or int(step) == 0 or whole % int(step):
        return None
    return int(step)


def _days(day: str, month: str, weekday: str) -> str | None:
    if month != "*":
        return _yearly(day, month) if weekday == "*" else None
    if day == "*":
        return EVERY_DAY if weekday == "*" else _weekdays(weekday)
    return _monthly(day) if weekday == "*" else None


def _yearly(day: str, month: str) -> str | None:
    days, months = _numbers(day), _numbers(month)
    if not days or not months or len(days) != 1 or len(months) != 1 or not 1 <= months[0] <= len(MONTHS):
        return None
    return f"every year on {days[0]} {MONTHS[months[0] - 1]}"


def _monthly(day: str) -> str | None:
    if day in LAST:
        return LAST[day]
    days = _numbers(day)
    return f"every month on the {_listed([_ordinal(one) for one in days])}" if days else None


def _weekdays(field: str) -> str | None:
    name, _, number = field.partition("#")
    which, name = (ORDINALS.get(number), name) if number else ("last", name[:-1]) if name.endswith("L") else (None, "")
    one = _weekday(name)
    if which is not None and one is not None:
        return f"on the {which} {DAYS[one]} of every month"
    found = _expanded(field)
    if found is None:
        return None
    if sorted(found) == [1, 2, 3, 4, 5]:
        return "every weekday"
    return EVERY_DAY if len(found) == len(DAYS) else f"every {_listed([DAYS[one] for one in found])}"


def _expanded(field: str) -> list[int] | None:
    found: list[int] = []
    for part in field.split(","):
        first, dash, last = part.partition("-")
        start, end = _weekday(first), _weekday(last) if dash else _weekday(first)
        if start is None or end is None:
            return None
        # Sunday is 0 and 7: a week that begins with Monday ends with it.
        found += [one % 7 for one in range(start, (end or 7 if dash else end) + 1)]
    return list(dict.fromkeys(found)) or None


def _weekday(text: str) -> int | None:
    if text.upper() in SHORT:
        return SHORT.index(text.upper())
    return int(text) % 7 if text.isdecimal() and int(text) <= 7 else None


def _numbers(field: str) -> list[int] | None:
    parts = field.split(",")
    return sorted({int(part) for part in parts}) if all(part.isdecimal() for part in parts) else None


def _ordinal(number: int) -> str:
    ending = "th" if 10 < number % 100 < 20 else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"


def _listed(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
