"""Names of days and months, and numbers of days: `monday`, `mon to fri`, `dec`, `the 1st`, `last`."""

import re
from collections.abc import Sequence

from frontdesk.schedule.words.reader import Words

DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
MONTHS = (
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
ENDINGS = ("st", "nd", "rd", "th")

SHORT = {"tues": 1, "weds": 2, "thur": 3, "thurs": 3}
WEEKDAY = {name: at for at, day in enumerate(DAYS) for name in (day, f"{day}s", day[:3])} | SHORT
MONTH = {name: at + 1 for at, month in enumerate(MONTHS) for name in (month, month[:3])} | {"sept": 9}
DAY_NUMBER = re.compile(r"\d{1,4}", re.ASCII)


def weekday(words: Words) -> int | None:
    """Take the name of a day of the week; Monday is 0."""
    name = words.take(*WEEKDAY)
    return None if name is None else WEEKDAY[name]


def weekdays(words: Words) -> Sequence[int]:
    """Take days of the week, as in `mon, wed and fri` or `monday to friday`."""
    first = weekday(words)
    if first is None:
        return ()
    found = [first]
    while True:
        mark = words.mark()
        joined = _joint(words)
        following = weekday(words) if joined else None
        if following is None:
            words.back(mark)
            return found
        since = found[-1]
        found.extend(_span(since, following) if joined == "to" else [following])


def _joint(words: Words) -> str | None:
    if words.take("to", "through", "thru", "-"):
        return "to"
    comma, both = words.take(","), words.take("and")
    return comma or both


def _span(first: int, last: int) -> Sequence[int]:
    """The days after the first up to the last, around the end of the week if need be."""
    return [(first + step) % 7 for step in range(1, (last - first) % 7 + 1)]


def ordinal(words: Words) -> int | None:
    """Take a number of a day: `1st`, `first`, `the 25th`."""
    mark = words.mark()
    words.take("the")
    if words.peek() in ORDINALS:
        return ORDINALS.index(words.left.pop()) + 1
    if DAY_NUMBER.fullmatch(words.peek()) and words.peek(1) in ENDINGS:
        number = int(words.left.pop())
        words.left.pop()
        return number
    words.back(mark)
    return None
