"""Reads a phrase token by token, and takes numbers, durations and names of days from it."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from frontdesk.errors import Invalid

TOKEN = re.compile(
    r"\d{4}-\d{1,2}-\d{1,2}|\d{1,2}-\d{1,2}-\d{4}|"
    r"\d+(?:[./]\d+){2,}|\d+/\d+|\d*:\d+(?::\d+)?|\d+(?:\.\d+)?|[^\W\d_]+|\S"
)


@dataclass(slots=True)
class PhraseTokens:
    """The rest of a phrase; the next word is at the end of `remaining`."""

    remaining: list[str] = field(default_factory=list[str])

    @classmethod
    def tokenize(cls, text: str) -> "PhraseTokens":
        plain = text.casefold().replace("\N{RIGHT SINGLE QUOTATION MARK}", "'").replace("o'clock", "oclock")
        plain = plain.replace("&", " and ")
        # `dec. 1`, `mon. at 9`
        plain = re.sub(r"\b([^\W\d_]{3,5})\.(?=\s)", r"\1", plain)
        plain = re.sub(r"(?<![^\W\d_])([ap])\.m\b\.?", r"\1m", plain).rstrip(" .!")
        return cls(TOKEN.findall(plain)[::-1])

    @property
    def is_empty(self) -> bool:
        return not self.remaining

    def rest(self) -> str:
        return _join_tokens(self.remaining)

    def taken_since(self, mark: Sequence[str]) -> str:
        """The words taken since a mark."""
        return _join_tokens(mark[len(self.remaining) :])

    def peek(self, ahead: int = 0) -> str:
        return self.remaining[-1 - ahead] if ahead < len(self.remaining) else ""

    def take(self, *options: str) -> str | None:
        """Take the next word, if it is one of these."""
        return self.remaining.pop() if self.peek() in options and self.remaining else None

    def take_phrase(self, text: str) -> bool:
        """Take all of these words, or none."""
        wanted = text.split()
        if [self.peek(ahead) for ahead in range(len(wanted))] != wanted:
            return False
        del self.remaining[-len(wanted) :]
        return True

    def mark(self) -> list[str]:
        return list(self.remaining)

    def reset(self, mark: list[str]) -> None:
        self.remaining = list(mark)


def _join_tokens(left: Sequence[str]) -> str:
    return re.sub(r"(\d) (st|nd|rd|th)\b", r"\1\2", " ".join(reversed(left)))


SMALL_NUMBERS = (
    *("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"),
    *("ten", "eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"),
)
TENS = {"twenty": 20, "thirty": 30, "forty": 40, "fifty": 50, "sixty": 60, "seventy": 70, "eighty": 80, "ninety": 90}
DIGITS = re.compile(r"\d{1,9}(\.\d{1,6})?", re.ASCII)
VAGUE_NUMBERS = ("few", "couple", "several", "some", "many")
UNIT_SECONDS = {
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), 1),
    **dict.fromkeys(("m", "min", "mins", "minute", "minutes"), 60),
    **dict.fromkeys(("h", "hr", "hrs", "hour", "hours"), 3600),
    **dict.fromkeys(("d", "day", "days"), 86400),
    **dict.fromkeys(("w", "wk", "wks", "week", "weeks"), 604800),
    **dict.fromkeys(("fortnight", "fortnights"), 1209600),
}
UNEVEN_UNITS = ("month", "months", "year", "years")
ABOVE_LARGEST_UNIT = 2 * UNIT_SECONDS["fortnight"]
HALF = Fraction(1, 2)


@dataclass(frozen=True, slots=True)
class Duration:
    """A length in seconds; `days` is set if it was written in whole days or weeks."""

    seconds: int
    days: int | None = None


def take_duration(words: PhraseTokens) -> Duration | None:
    """Take a length of time, if the words continue with one; larger units come first."""
    total, last, mark = Fraction(0), ABOVE_LARGEST_UNIT, words.mark()
    while True:
        part = _take_duration_part(words)
        if part is None or part[1] >= last:
            words.reset(mark)
            break
        total, last, mark = total + part[0], part[1], words.mark()
        words.take(",")
        words.take("and")
    if not total:
        return None
    if total.denominator != 1:
        raise Invalid('A length of time must be whole seconds. Write "in 90 seconds"')
    return Duration(int(total), int(total) // 86400 if last >= 86400 and total % 86400 == 0 else None)


def _take_duration_part(words: PhraseTokens) -> tuple[Fraction, int] | None:
    """Take a number and a unit; returns the length in seconds, and the length of the unit."""
    if words.take_phrase("half an hour") or words.take_phrase("a half hour") or words.take_phrase("half hour"):
        return Fraction(1800), 3600
    if (
        words.take_phrase("a quarter of an hour")
        or words.take_phrase("quarter of an hour")
        or words.take_phrase("quarter hour")
    ):
        return Fraction(900), 3600
    amount = take_number(words)
    if amount is None:
        return None
    if words.take(*UNEVEN_UNITS):
        raise Invalid('Months and years are not all the same length. Write a date, or days, as in "in 30 days"')
    unit = words.take(*UNIT_SECONDS)
    if unit is None:
        return None
    if words.take_phrase("and a half"):
        amount += HALF
    return amount * UNIT_SECONDS[unit], UNIT_SECONDS[unit]


def take_number(words: PhraseTokens) -> Fraction | None:
    """Take a number, in digits or words."""
    if words.peek() in VAGUE_NUMBERS or (words.peek() == "a" and words.peek(1) in VAGUE_NUMBERS):
        raise Invalid(f'"{words.rest()}" does not say how many. Write a number, as in "in 5 minutes"')
    whole = _take_count(words)
    if whole is None:
        return None
    return whole + HALF if words.take_phrase("and a half") else Fraction(whole)


def _take_count(words: PhraseTokens) -> int | Fraction | None:
    if DIGITS.fullmatch(words.peek()):
        return Fraction(words.remaining.pop())
    if words.take("a", "an"):
        return 1
    if words.peek() in SMALL_NUMBERS:
        return SMALL_NUMBERS.index(words.remaining.pop())
    if words.peek() not in TENS:
        return None
    tens = TENS[words.remaining.pop()]
    following = words.peek(1) if words.peek() == "-" else words.peek()
    if following not in SMALL_NUMBERS[1:10]:
        return tens
    words.take("-")
    return tens + SMALL_NUMBERS.index(words.remaining.pop())


WEEKDAY_NAMES = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
MONTH_NAMES = (
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
)
ORDINALS = ("first", "second", "third", "fourth", "fifth")
ORDINAL_ENDINGS = ("st", "nd", "rd", "th")

OTHER_WEEKDAY_NAMES = {"tues": 1, "weds": 2, "thur": 3, "thurs": 3}
WEEKDAY_NUMBERS = {
    name: at for at, day in enumerate(WEEKDAY_NAMES) for name in (day, f"{day}s", day[:3])
} | OTHER_WEEKDAY_NAMES
MONTH_NUMBERS = {name: at + 1 for at, month in enumerate(MONTH_NAMES) for name in (month, month[:3])} | {"sept": 9}
ORDINAL_NUMBER = re.compile(r"\d{1,4}", re.ASCII)


def take_weekday(words: PhraseTokens) -> int | None:
    """Take the name of a day of the week; Monday is 0."""
    name = words.take(*WEEKDAY_NUMBERS)
    return None if name is None else WEEKDAY_NUMBERS[name]


def take_weekdays(words: PhraseTokens) -> Sequence[int]:
    """Take days of the week, as in `mon, wed and fri` or `monday to friday`."""
    first = take_weekday(words)
    if first is None:
        return ()
    found = [first]
    while True:
        mark = words.mark()
        joined = _take_joiner(words)
        following = take_weekday(words) if joined else None
        if following is None:
            words.reset(mark)
            return found
        since = found[-1]
        found.extend(_days_after(since, following) if joined == "to" else [following])


def _take_joiner(words: PhraseTokens) -> str | None:
    if words.take("to", "through", "thru", "-"):
        return "to"
    comma, both = words.take(","), words.take("and")
    return comma or both


def _days_after(first: int, last: int) -> Sequence[int]:
    """The days after the first up to the last, also across the end of the week."""
    return [(first + step) % 7 for step in range(1, (last - first) % 7 + 1)]


def take_ordinal(words: PhraseTokens) -> int | None:
    """Take the number of a day: `1st`, `first`, `the 25th`."""
    mark = words.mark()
    words.take("the")
    if words.peek() in ORDINALS:
        return ORDINALS.index(words.remaining.pop()) + 1
    if ORDINAL_NUMBER.fullmatch(words.peek()) and words.peek(1) in ORDINAL_ENDINGS:
        number = int(words.remaining.pop())
        words.remaining.pop()
        return number
    words.reset(mark)
    return None
