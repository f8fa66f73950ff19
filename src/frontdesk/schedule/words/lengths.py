"""Numbers and lengths of time in words: `two minutes`, `an hour and a half`, `1.5 hours`, `2h30m`."""

import re
from dataclasses import dataclass
from fractions import Fraction

from frontdesk.errors import Invalid
from frontdesk.schedule.words.reader import Words

SMALL = (
    *("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"),
    *("ten", "eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"),
)
TENS = {"twenty": 20, "thirty": 30, "forty": 40, "fifty": 50, "sixty": 60, "seventy": 70, "eighty": 80, "ninety": 90}
DIGITS = re.compile(r"\d{1,9}(\.\d{1,6})?", re.ASCII)
VAGUE = ("few", "couple", "several", "some", "many")
UNITS = {
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), 1),
    **dict.fromkeys(("m", "min", "mins", "minute", "minutes"), 60),
    **dict.fromkeys(("h", "hr", "hrs", "hour", "hours"), 3600),
    **dict.fromkeys(("d", "day", "days"), 86400),
    **dict.fromkeys(("w", "wk", "wks", "week", "weeks"), 604800),
    **dict.fromkeys(("fortnight", "fortnights"), 1209600),
}
UNEVEN = ("month", "months", "year", "years")
LARGEST = 2 * UNITS["fortnight"]
HALF = Fraction(1, 2)


@dataclass(frozen=True, slots=True)
class Length:
    """So many seconds; `days` where it was told in whole days or weeks."""

    seconds: int
    days: int | None = None


def length(words: Words) -> Length | None:
    """Take a length of time, if the words go on with one: its larger units first."""
    total, last, mark = Fraction(0), LARGEST, words.mark()
    while True:
        part = _part(words)
        if part is None or part[1] >= last:
            words.back(mark)
            break
        total, last, mark = total + part[0], part[1], words.mark()
        words.take(",")
        words.take("and")
    if not total:
        return None
    if total.denominator != 1:
        raise Invalid('A length of time must be whole seconds. Write "in 90 seconds"')
    return Length(int(total), int(total) // 86400 if last >= 86400 and total % 86400 == 0 else None)


def _part(words: Words) -> tuple[Fraction, int] | None:
    """A number and a unit, in seconds, and the unit alone."""
    if words.phrase("half an hour") or words.phrase("a half hour") or words.phrase("half hour"):
        return Fraction(1800), 3600
    if words.phrase("a quarter of an hour") or words.phrase("quarter of an hour") or words.phrase("quarter hour"):
        return Fraction(900), 3600
    amount = number(words)
    if amount is None:
        return None
    if words.take(*UNEVEN):
        raise Invalid('Months and years are not all the same length. Write a date, or days, as in "in 30 days"')
    unit = words.take(*UNITS)
    if unit is None:
        return None
    if words.phrase("and a half"):
        amount += HALF
    return amount * UNITS[unit], UNITS[unit]


def number(words: Words) -> Fraction | None:
    """Take a number, in digits or words."""
    if words.peek() in VAGUE or (words.peek() == "a" and words.peek(1) in VAGUE):
        raise Invalid(f'"{words.rest()}" does not say how many. Write a number, as in "in 5 minutes"')
    whole = _counted(words)
    if whole is None:
        return None
    return whole + HALF if words.phrase("and a half") else Fraction(whole)


def _counted(words: Words) -> int | Fraction | None:
    if DIGITS.fullmatch(words.peek()):
        return Fraction(words.left.pop())
    if words.take("a", "an"):
        return 1
    if words.peek() in SMALL:
        return SMALL.index(words.left.pop())
    if words.peek() not in TENS:
        return None
    tens = TENS[words.left.pop()]
    following = words.peek(1) if words.peek() == "-" else words.peek()
    if following not in SMALL[1:10]:
        return tens
    words.take("-")
    return tens + SMALL.index(words.left.pop())
