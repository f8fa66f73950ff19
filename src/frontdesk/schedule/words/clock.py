"""Times of day in words: `at 9`, `9:30pm`, `17:00`, `21h`, `half past nine`, `noon`, `8 in the evening`."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import time

from frontdesk.errors import Invalid
from frontdesk.schedule.words import lengths
from frontdesk.schedule.words.reader import Words

HANDS = re.compile(r"(\d{1,2}):(\d{2})(?::00)?", re.ASCII)
# With am or pm behind it, `9.30` can be nothing else.
DOTTED = re.compile(r"(\d{1,2})\.(\d{2})", re.ASCII)
HOUR = re.compile(r"\d{1,2}", re.ASCII)
MINUTE = re.compile(r"[0-5]\d", re.ASCII)
AT = ("at", "@")
HOURS_OF_24 = ("h", "hrs", "hours")
SPOKEN_HOURS = lengths.SMALL[1:13]
# What an hour without am or pm means in that part of the day: those that stay, and those that are twelve later.
PARTS = {
    "morning": (range(12), range(0)),
    "afternoon": (range(12, 19), range(1, 7)),
    "evening": (range(16, 24), range(4, 12)),
    "night": (range(18, 24), range(6, 12)),
}
# From seven on people mean the morning, or would say pm; before that nobody can tell.
EARLY = range(1, 7)
# "every night at 2am" is after midnight; of one certain night nobody can tell which day that is.
AFTER_MIDNIGHT = range(6)


@dataclass(frozen=True, slots=True)
class Clock:
    """A time as it was said; `sure` when it can be read in one way only."""

    hour: int
    minute: int
    said: str
    sure: bool = False
    midnight: bool = False
    after_at: bool = False

    def at(self, part: str | None, *, each: bool = False) -> time:
        """The time it means in that part of the day, if one was said; `each`: of every such day."""
        if each and part == "night" and self.sure and self.hour in AFTER_MIDNIGHT:
            return time(self.hour, self.minute)
        if part is not None:
            return self._within(part)
        if not self.sure and self.hour in EARLY:
            raise Invalid(
                f'"{self.said}" may be in the morning or in the afternoon. '
                f"Write {self.hour:02}:{self.minute:02} or {self.hour + 12}:{self.minute:02}"
            )
        return time(self.hour, self.minute)

    def _within(self, part: str) -> time:
        stays, moves = PARTS[part]
        if self.hour in stays:
            return time(self.hour, self.minute)
        if not self.sure and self.hour in moves:
            return time(self.hour + 12, self.minute)
        raise Invalid(f'"{self.said}" does not go with "{part}". Write the time as 09:30 or 21:30')


def clocks(words: Words, *, bare: bool = False) -> Sequence[Clock]:
    """Take one or more times of day, if the words go on with any; a `bare` hour is one where a day stands before it."""
    mark = words.mark()
    said_at = words.take(*AT)
    at = said_at is not None
    first = _clock(words, bare=at or bare)
    if first is None and said_at == "@":
        words.back(mark)
    if first is None and said_at == "at":
        raise Invalid(f'After "at" comes a time of day, not "{words.rest()}". Write "at 9", "at 9:30pm" or "at 17:00"')
    if first is None:
        return ()
    found = [replace(first, after_at=at)]
    while True:
        mark = words.mark()
        comma, both = words.take(","), words.take("and")
        following = _another(words, bare=at or bare) if comma or both else None
        if following is None:
            words.back(mark)
            return found
        found.append(following)


def _another(words: Words, *, bare: bool) -> Clock | None:
    said_at = words.take(*AT) is not None
    return _clock(words, bare=bare or said_at)


def part(words: Words) -> str | None:
    """Take a part of the day: `in the evening`, `at night`, or the word alone after a day."""
    mark = words.mark()
    if not words.phrase("in the"):
        words.take(*AT)
    found = words.take(*PARTS)
    if found is None:
        words.back(mark)
    return found


def _clock(words: Words, *, bare: bool) -> Clock | None:
    if words.take("noon", "midday") or words.phrase("12 noon") or words.phrase("twelve noon"):
        return Clock(12, 0, "noon", sure=True)
    if words.take("midnight") or words.phrase("12 midnight") or words.phrase("twelve midnight"):
        return Clock(0, 0, "midnight", sure=True, midnight=True)
    return _in_figures(words, bare=bare)


def _in_figures(words: Words, *, bare: bool) -> Clock | None:
    said = words.peek()
    hands = HANDS.fullmatch(said) or (DOTTED.fullmatch(said) if words.peek(1) in {"am", "pm"} else None)
    if hands is None and not HOUR.fullmatch(said):
        spoken = _spoken(words, bare=bare)
        if spoken is None and bare and said[:1].isdigit():
            raise Invalid(f'"{said}" is no time of day. Write it as 9:30 or 17:00')
        return spoken
    spoken = _minutes_from(words) if hands is None else None
    if spoken is not None:
        return spoken
    half = words.peek(1) if words.peek(1) in {"am", "pm", "oclock"} else ""
    if hands is None and not half and not bare:
        return None
    del words.left[-2 if half else -1 :]
    if hands is None and not half and words.take(*HOURS_OF_24):
        minute = words.left.pop() if MINUTE.fullmatch(words.peek()) else "00"
        return replace(_checked(int(said), int(minute), f"{said}h{minute}", half), sure=True)
    if hands is not None and not half:
        words.take(*HOURS_OF_24)
    hour, minute = (int(hands[1]), int(hands[2])) if hands else (int(said), 0)
    return _checked(hour, minute, said, half)


def _spoken(words: Words, *, bare: bool) -> Clock | None:
    """`half past nine`, `quarter to ten`, `ten past 9`, and where a time is expected `nine`, `nine thirty`."""
    found = _minutes_from(words)
    if found is not None or not bare or words.peek() not in SPOKEN_HOURS:
        return found
    said = words.left.pop()
    minute, mark = 0, words.mark()
    tens = lengths.number(words) if words.peek() in {*lengths.TENS, *lengths.SMALL[10:]} else None
    if tens is not None and tens < 60 and words.peek() not in lengths.UNITS:
        minute, said = int(tens), f"{said} {tens}"
    else:
        words.back(mark)
    return _checked(SPOKEN_HOURS.index(said.split()[0]) + 1, minute, said, _half(words))


def _minutes_from(words: Words) -> Clock | None:
    """So many minutes past an hour, or to it."""
    mark = words.mark()
    minutes = _minutes(words)
    way = None if minutes is None else words.take("past", "after", "to", "before")
    figures = minutes is not None and mark[-1].isdigit() and "minute" not in "".join(mark[-2:-1])
    # "9 to 5" is a stretch of the day.
    if minutes is None or way is None or (figures and way in {"to", "before"}):
        words.back(mark)
        if words.peek() == "half" and words.peek(1) in SPOKEN_HOURS:
            raise Invalid(f'"half {words.peek(1)}" may be before or after {words.peek(1)}. Write it as 9:30')
        return None
    hour = _hour(words)
    if hour is None:
        words.back(mark)
        return None
    said = words.since(mark)
    after = way in {"past", "after"}
    clock = _checked(hour, 0, said, _half(words))
    total = clock.hour * 60 + (minutes if after else -minutes)
    # A quarter to one is after noon, unless it is said otherwise.
    hour = total // 60 % 24 if clock.sure or total >= 60 else 12
    return replace(clock, hour=hour, minute=total % 60)


def _minutes(words: Words) -> int | None:
    words.take("a")
    if words.take("half"):
        return 30
    if words.take("quarter"):
        return 15
    number = lengths.number(words) if words.peek() not in {"a", "an", *lengths.VAGUE} else None
    words.take("minutes", "minute", "min", "mins")
    return int(number) if number is not None and number.denominator == 1 and 0 < number < 60 else None


def _hour(words: Words) -> int | None:
    if words.peek() in SPOKEN_HOURS:
        return SPOKEN_HOURS.index(words.left.pop()) + 1
    if HOUR.fullmatch(words.peek()) and int(words.peek()) < 24:
        return int(words.left.pop())
    return None


def _half(words: Words) -> str:
    return words.take("am", "pm", "oclock") or ""


def _checked(hour: int, minute: int, said: str, half: str) -> Clock:
    whole = f"{said}{half if half != 'oclock' else ''}"
    if half in {"am", "pm"}:
        if not (1 <= hour <= 12 and minute < 60):
            raise Invalid(f'"{whole}" is no time of day. Write it as 9:30pm or 21:30')
        return Clock(hour % 12 + (12 if half == "pm" else 0), minute, whole, sure=True)
    if hour > 23 or minute > 59:
        raise Invalid(f'"{whole}" is no time of day. Write it as 9:30 or 17:00')
    return Clock(hour, minute, whole, sure=said.startswith("0") or hour > 12)
