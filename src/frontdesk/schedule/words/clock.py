"""Times of day in words: `at 9`, `9:30pm`, `17:00`, `noon`, `8 in the evening`."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import time

from frontdesk.errors import Invalid
from frontdesk.schedule.words.reader import Words

HANDS = re.compile(r"(\d{1,2}):(\d{2})", re.ASCII)
HOUR = re.compile(r"\d{1,2}", re.ASCII)
# What an hour without am or pm means in that part of the day: those that stay, and those that are twelve later.
PARTS = {
    "morning": (range(12), range(0)),
    "afternoon": (range(12, 19), range(1, 7)),
    "evening": (range(16, 24), range(4, 12)),
    "night": (range(18, 24), range(6, 12)),
}
# From seven on people mean the morning, or would say pm; before that nobody can tell.
EARLY = range(1, 7)


@dataclass(frozen=True, slots=True)
class Clock:
    """A time as it was said; `sure` when it can be read in one way only."""

    hour: int
    minute: int
    said: str
    sure: bool = False
    midnight: bool = False

    def at(self, part: str | None) -> time:
        """The time it means in that part of the day, if one was said."""
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


def clocks(words: Words) -> Sequence[Clock]:
    """Take one or more times of day, if the words go on with any; a bare hour needs an `at` before it."""
    at = words.take("at") is not None
    first = _clock(words, bare=at)
    if first is None and at:
        raise Invalid(f'After "at" comes a time of day, not "{words.rest()}". Write "at 9", "at 9:30pm" or "at 17:00"')
    if first is None:
        return ()
    found = [first]
    while True:
        mark = words.mark()
        comma, both = words.take(","), words.take("and")
        following = _another(words, bare=at) if comma or both else None
        if following is None:
            words.back(mark)
            return found
        found.append(following)


def _another(words: Words, *, bare: bool) -> Clock | None:
    said_at = words.take("at") is not None
    return _clock(words, bare=bare or said_at)


def part(words: Words) -> str | None:
    """Take a part of the day: `in the evening`, `at night`, or the word alone after a day."""
    mark = words.mark()
    if not words.phrase("in the"):
        words.take("at")
    found = words.take(*PARTS)
    if found is None:
        words.back(mark)
    return found


def _clock(words: Words, *, bare: bool) -> Clock | None:
    if words.take("noon", "midday"):
        return Clock(12, 0, "noon", sure=True)
    if words.take("midnight"):
        return Clock(0, 0, "midnight", sure=True, midnight=True)
    said = words.peek()
    half = words.peek(1) if words.peek(1) in {"am", "pm", "oclock"} else ""
    hands = HANDS.fullmatch(said)
    if hands is None and not HOUR.fullmatch(said):
        if bare and said[:1].isdigit():
            raise Invalid(f'"{said}" is no time of day. Write it as 9:30 or 17:00')
        return None
    if hands is None and not half and not bare:
        return None
    del words.left[-2 if half else -1 :]
    hour, minute = (int(hands[1]), int(hands[2])) if hands else (int(said), 0)
    return _checked(hour, minute, said, half)


def _checked(hour: int, minute: int, said: str, half: str) -> Clock:
    whole = f"{said}{half if half != 'oclock' else ''}"
    if half in {"am", "pm"}:
        if not (1 <= hour <= 12 and minute < 60):
            raise Invalid(f'"{whole}" is no time of day. Write it as 9:30pm or 21:30')
        return Clock(hour % 12 + (12 if half == "pm" else 0), minute, whole, sure=True)
    if hour > 23 or minute > 59:
        raise Invalid(f'"{whole}" is no time of day. Write it as 9:30 or 17:00')
    return Clock(hour, minute, whole, sure=said.startswith("0") or hour > 12)
