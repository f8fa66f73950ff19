"""Describes triggers exactly, for programs, and in plain English, for people."""

from collections.abc import Sequence
from datetime import datetime

from frontdesk import zones
from frontdesk.errors import Invalid
from frontdesk.schedules.model import Trigger, TriggerKind, from_us

WEEKDAYS = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
SHORT_WEEKDAYS = tuple(day[:3].upper() for day in WEEKDAYS)
MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
ORDINAL_WORDS = {"1": "first", "2": "second", "3": "third", "4": "fourth", "5": "fifth"}
LAST_DAYS = {"L": "on the last day of every month", "LW": "on the last weekday of every month"}
UNIT_WORDS = {"s": "second", "m": "minute", "h": "hour", "d": "day", "w": "week"}
EVERY_DAY = "every day"
NO_PLAIN_WORDS = "by a cron rule"
# More times a day are easier to read in the rule itself.
MAX_TIMES_IN_WORDS = 6


def describe_rule(rule: str) -> str:
    """A rule in plain words, from the text of `format_rule`; `NO_PLAIN_WORDS` if there are none."""
    kind, _, value = rule.partition(" ")
    if kind == "cron":
        return _describe_cron(value) or NO_PLAIN_WORDS
    return _describe_interval(value) if kind == "every" else "once"


def _describe_cron(value: str) -> str | None:
    """Describe the fields of a cron rule, and its steps: `every 2 weeks from 2026-11-24`."""
    fields, every, rest = value.partition(" every ")
    plainly = _describe_cron_fields(fields.split())
    if not every or plainly is None:
        return plainly
    number, unit, _, first = rest.split(" ", 3)
    if number == "1":
        return f"{plainly}, from {first}"
    if unit == "days" and plainly.startswith(EVERY_DAY):
        return f"every {number} days{plainly.removeprefix(EVERY_DAY)}, from {first}"
    return f"{plainly}, in every {_format_ordinal(int(number))} {unit.removesuffix('s')}, from {first}"


def _describe_interval(value: str) -> str:
    number, unit = value[:-1], UNIT_WORDS.get(value[-1:])
    if unit is None or not number.isdecimal():
        return f"every {value}"
    return f"every {unit}" if number == "1" else f"every {number} {unit}s"


def _describe_cron_fields(fields: Sequence[str]) -> str | None:
    if len(fields) != 5:
        return None
    minute, hour, day, month, weekday = fields
    days, often, times = (
        _describe_days(day, month, weekday),
        _describe_frequency(minute, hour),
        _describe_times(minute, hour),
    )
    if days is None or (often is None and times is None):
        return None
    if often is None:
        return f"{days} at {times}"
    return often if days == EVERY_DAY else f"{days}, {often}"


def _describe_times(minute: str, hour: str) -> str | None:
    minutes, hours = _parse_numbers(minute), _parse_numbers(hour)
    if not minutes or not hours or len(minutes) * len(hours) > MAX_TIMES_IN_WORDS:
        return None
    return _join_words([f"{at:02}:{past:02}" for at in hours for past in minutes])


def _describe_frequency(minute: str, hour: str) -> str | None:
    """Describe a rule that repeats through the day."""
    every_minutes, every_hours, past = _even_step(minute, 60), _even_step(hour, 24), _parse_numbers(minute)
    if every_hours == 1 and every_minutes is not None:
        return _describe_interval(f"{every_minutes}m")
    if every_hours is not None and past is not None and len(past) == 1:
        hours = _describe_interval(f"{every_hours}h")
        return f"{hours} on the hour" if past == [0] else f"{hours} at :{past[0]:02}"
    return None


def _even_step(field: str, whole: int) -> int | None:
    """The step of a field, if it divides the whole evenly."""
    if field == "*":
        return 1
    start, _, step = field.partition("/")
    if start != "*" or not step.isdecimal() or int(step) == 0 or whole % int(step):
        return None
    return int(step)


def _describe_days(day: str, month: str, weekday: str) -> str | None:
    if month != "*":
        return _describe_yearly(day, month) if weekday == "*" else None
    if day == "*":
        return EVERY_DAY if weekday == "*" else _describe_weekdays(weekday)
    return _describe_monthly(day) if weekday == "*" else None


def _describe_yearly(day: str, month: str) -> str | None:
    days, months = _parse_numbers(day), _parse_numbers(month)
    if not days or not months or len(days) != 1 or len(months) != 1 or not 1 <= months[0] <= len(MONTHS):
        return None
    return f"every year on {days[0]} {MONTHS[months[0] - 1]}"


def _describe_monthly(day: str) -> str | None:
    if day in LAST_DAYS:
        return LAST_DAYS[day]
    days = _parse_numbers(day)
    return f"every month on the {_join_words([_format_ordinal(one) for one in days])}" if days else None


def _describe_weekdays(field: str) -> str | None:
    name, _, number = field.partition("#")
    which, name = (
        (ORDINAL_WORDS.get(number), name) if number else ("last", name[:-1]) if name.endswith("L") else (None, "")
    )
    one = _weekday_number(name)
    if which is not None and one is not None:
        return f"on the {which} {WEEKDAYS[one]} of every month"
    found = _expand_weekdays(field)
    if found is None:
        return None
    if sorted(found) == [1, 2, 3, 4, 5]:
        return "every weekday"
    return EVERY_DAY if len(found) == len(WEEKDAYS) else f"every {_join_words([WEEKDAYS[one] for one in found])}"


def _expand_weekdays(field: str) -> list[int] | None:
    found: list[int] = []
    for part in field.split(","):
        first, dash, last = part.partition("-")
        start, end = _weekday_number(first), _weekday_number(last) if dash else _weekday_number(first)
        if start is None or end is None:
            return None
        # Sunday is both 0 and 7: a week that begins on Monday ends on it.
        found += [one % 7 for one in range(start, (end or 7 if dash else end) + 1)]
    return list(dict.fromkeys(found)) or None


def _weekday_number(text: str) -> int | None:
    if text.upper() in SHORT_WEEKDAYS:
        return SHORT_WEEKDAYS.index(text.upper())
    return int(text) % 7 if text.isdecimal() and int(text) <= 7 else None


def _parse_numbers(field: str) -> list[int] | None:
    parts = field.split(",")
    return sorted({int(part) for part in parts}) if all(part.isdecimal() for part in parts) else None


def _format_ordinal(number: int) -> str:
    ending = "th" if 10 < number % 100 < 20 else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"


def _join_words(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def describe_facts(trigger: Trigger, fire_us: int | None) -> dict[str, str | None]:
    """A description for programs; the times are None if the trigger does not fire again."""
    return {
        "rule": format_rule(trigger),
        "zone": trigger.zone,
        "next_local": None if fire_us is None else format_local_time(trigger, fire_us),
        "next_utc": None if fire_us is None else from_us(fire_us).isoformat(),
    }


def describe_trigger(trigger: Trigger, fire_us: int | None) -> str:
    """A description for people."""
    until = _describe_end(trigger)
    if fire_us is None:
        return f"{_rule_with_words(trigger)}, {trigger.zone}{until}; it does not fire again"
    utc = from_us(fire_us).isoformat()
    there = format_local_time(trigger, fire_us)
    if there is None:
        return f"{_rule_with_words(trigger)}, {trigger.zone}{until}; next at {utc}, in a zone that is not known here"
    at = utc if trigger.zone == "UTC" else f"{there} ({utc})"
    if trigger.kind is TriggerKind.ONCE:
        return f"once, {trigger.zone}, at {at}, a {from_us(fire_us).astimezone(zones.zone_of_name(trigger.zone)):%A}"
    return f"{_rule_with_words(trigger)}, {trigger.zone}{until}; next at {at}"


def _describe_end(trigger: Trigger) -> str:
    if trigger.end_us is None:
        return ""
    there = format_local_time(trigger, trigger.end_us) or from_us(trigger.end_us).isoformat()
    return f", until {datetime.fromisoformat(there).isoformat(timespec='seconds')}"


def _rule_with_words(trigger: Trigger) -> str:
    """The rule, followed by plain words for it if there are any."""
    exact = format_rule(trigger)
    words = describe_rule(exact) if trigger.kind is TriggerKind.CRON else NO_PLAIN_WORDS
    return exact if words == NO_PLAIN_WORDS else f"{exact} ({words})"


def format_rule(trigger: Trigger) -> str:
    match trigger.kind:
        case TriggerKind.ONCE:
            return f"once {trigger.value}"
        case TriggerKind.INTERVAL:
            return f"every {trigger.value}"
        case TriggerKind.CRON:
            return f"cron {trigger.value}"


def format_local_time(trigger: Trigger, fire_us: int) -> str | None:
    """The time in the rule's zone; None if this machine does not know the zone."""
    try:
        return from_us(fire_us).astimezone(zones.zone_of_name(trigger.zone)).isoformat()
    except Invalid:
        return None
