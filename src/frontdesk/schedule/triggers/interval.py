"""Intervals such as 30s, 5m, 1h30m or 2d, counted from their start so that they never drift."""

import re

from frontdesk.errors import Invalid
from frontdesk.schedule.model import SECOND

UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}
# One number with or without a unit, or several, the larger unit first: 90, 30s, 1h30m.
SHAPE = re.compile(
    r"[0-9]{1,12}|(?=[0-9])" + "".join(f"(?:(?P<{unit}>[0-9]{{1,12}}){unit})?" for unit in "wdhms"),
    re.IGNORECASE | re.ASCII,
)
LONGEST_S = 100 * 366 * 86400


def seconds(text: str) -> int:
    """How long the interval is; a number alone is seconds."""
    plain = text.strip()
    shape = SHAPE.fullmatch(plain)
    if shape is None:
        return checked(0, text)
    parts = [int(number) * UNITS[unit] for unit, number in shape.groupdict().items() if number]
    return checked(sum(parts) if parts else int(plain), text)


def checked(length_s: int, text: str) -> int:
    """A length that can be waited for; `text` is how it was told."""
    if not 1 <= length_s <= LONGEST_S:
        raise Invalid(f"Invalid interval format: {text[:100]}. Use formats like '30s', '5m', '1h'")
    return length_s


def normal(length_s: int) -> str:
    """An interval in its largest whole unit: 90s, 5m, 1h, 2d."""
    unit = next(unit for unit in "dhms" if length_s % UNITS[unit] == 0)
    return f"{length_s // UNITS[unit]}{unit}"


def next_us(start_us: int, length_s: int, after_us: int) -> int:
    """The first fire later than `after_us`."""
    step = length_s * SECOND
    return start_us + max(0, (after_us - start_us) // step + 1) * step


def last_us(start_us: int, length_s: int, until_us: int) -> int:
    """The last fire no later than `until_us`, or the start where that is later still."""
    step = length_s * SECOND
    return start_us + max(0, (until_us - start_us) // step) * step
