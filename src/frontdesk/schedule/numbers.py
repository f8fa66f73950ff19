"""Numbers and choices as callers write them, checked; what is wrong is said in the words that clients know."""

from enum import StrEnum
from typing import TypeVar

from frontdesk.errors import Invalid
from frontdesk.schedule.triggers import interval

Choice = TypeVar("Choice", bound=StrEnum)
# What the database's whole numbers hold.
MOST = 2**31 - 1
LAST_ID = 2**53
ATTEMPTS_AT_MOST = 100
LONGEST_JITTER_S = 86_400


def schedule_id(value: object) -> int:
    """A schedule's number; one that no schedule can have is 0, which none has."""
    found = whole(value)
    if found is None:
        raise Invalid("Schedule ID must be a number")
    return found if 0 < found <= LAST_ID else 0


def max_repetitions(value: object) -> int | None:
    if value is None:
        return None
    found = whole(value)
    if found is None or found > MOST:
        raise Invalid("max-repetitions must be a valid integer")
    if found < 1:
        raise Invalid("max-repetitions must be a positive integer")
    return found


def attempts(value: object) -> int:
    found = whole(value)
    if found is None or not 1 <= found <= ATTEMPTS_AT_MOST:
        raise Invalid(f"attempts must be a whole number from 1 to {ATTEMPTS_AT_MOST}")
    return found


def jitter_s(value: str | int) -> int:
    found = whole(value)
    length = interval.seconds(str(value)) if found is None else found
    if not 0 <= length <= LONGEST_JITTER_S:
        raise Invalid("jitter must be from 0 seconds to a day, e.g. 30s")
    return length


def max_late_s(value: str | int) -> int:
    return min(interval.seconds(str(value)), MOST)


def interval_s(value: object) -> float:
    """Seconds between the rounds of a loop."""
    found = whole(value)
    if found is None or found < 1:
        raise Invalid("Interval must be a number (seconds)")
    return float(found)


def within(name: str, value: object, most: int, least: int = 1) -> int:
    """How many of something."""
    found = whole(value)
    if found is None or not least <= found <= most:
        raise Invalid(f"{name} must be a whole number from {least} to {most}")
    return found


def one_of(kind: type[Choice], name: str, value: str) -> Choice:
    try:
        return kind(value.strip().lower())
    except ValueError as error:
        *others, last = [choice.value for choice in kind]
        raise Invalid(f"{name} is {', '.join(others)} or {last}") from error


def whole(value: object) -> int | None:
    """A whole number, also as text; None for anything else."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    if isinstance(value, float):
        return int(value) if value.is_integer() else None
    text = value.strip() if isinstance(value, str) else ""
    return (
        int(text) if text.removeprefix("-").isascii() and text.removeprefix("-").isdigit() and len(text) < 20 else None
    )
