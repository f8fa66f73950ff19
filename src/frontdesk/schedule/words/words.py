"""Plain words for when, read into the one rule they can mean; what can mean two things is refused."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from zoneinfo import ZoneInfo

from frontdesk.errors import Invalid
from frontdesk.schedule.model import SECOND, Trigger, TriggerKind, moment, us
from frontdesk.schedule.triggers import interval
from frontdesk.schedule.words import clock, days, lengths, places, repeats, times
from frontdesk.schedule.words.clock import HANDS
from frontdesk.schedule.words.reader import Words

LONGEST = 200
EXAMPLES = (
    '"in 2 minutes", "tomorrow at 09:00", "every weekday at 09:00 Berlin time", or a cron rule as in '
    '"*/15 9-17 * * MON-FRI"'
)
NO_CLOCK = '"{}" names no time of day. Add one, as in "at 9am" or "at 21:00"'


@dataclass(slots=True)
class Said:
    """The parts of a phrase, each said at most once."""

    delay: lengths.Length | None = None
    day: days.Weekday | days.Dated | days.Fixed | None = None
    repeat: repeats.Days | repeats.Minutes | lengths.Length | None = None
    clocks: Sequence[clock.Clock] = ()
    part: str | None = None


def read(text: str, now_us: int, zone: str) -> Trigger | None:
    """The rule that the words say, in `zone` unless they name another; None when they speak of no time at all."""
    if not text.strip() or len(text) > LONGEST or times.looks_exact(text):
        return None
    placed = places.split(" ".join(text.split()), zone)
    words, said = Words.of(placed.phrase), Said()
    now = moment(now_us).astimezone(ZoneInfo(placed.zone)).replace(tzinfo=None, fold=0)
    while not words.done and _take(words, said, now.date()):
        words.take(",")
    if said == Said():
        return None
    if placed.wrong is not None:
        raise placed.wrong
    if not words.done:
        raise _unread(words, text.strip())
    return _trigger(said, text.strip(), now_us, now, placed.zone)


def _unread(words: Words, text: str) -> Invalid:
    rest = words.rest()
    if rest.startswith("in "):
        return places.unknown(rest.removeprefix("in "))
    return Invalid(f'Could not read "{rest}" in "{text}". Write for example {EXAMPLES}')


def _take(words: Words, said: Said, today: date) -> bool:
    """Take one more part of the phrase, of a kind that was not there before."""
    before = len(words.left)
    if said.part is None:
        said.part = clock.part(words)
    if said.repeat is None and said.day is None and said.delay is None:
        said.repeat = repeats.repeat(words)
        said.delay = _delay(words) if said.repeat is None else None
        if said.repeat is None and said.delay is None:
            _take_day(words, said, today)
    if not said.clocks and len(words.left) == before:
        said.clocks = clock.clocks(words)
    return len(words.left) < before


def _take_day(words: Words, said: Said, today: date) -> None:
    if words.take("tonight"):
        said.day, said.part = days.Fixed(today), said.part or "evening"
    elif words.peek() == "this" and words.peek(1) in clock.PARTS:
        words.take("this")
        said.day, said.part = days.Fixed(today), clock.part(words)
    else:
        said.day = days.one_day(words, today)


def _delay(words: Words) -> lengths.Length | None:
    """`in two minutes`, `two minutes from now`."""
    mark = words.mark()
    said_in = words.take("in") is not None
    found = lengths.length(words)
    if found is None or not (said_in or words.phrase("from now")):
        words.back(mark)
        return None
    return found


def _trigger(said: Said, text: str, now_us: int, now: datetime, zone: str) -> Trigger:
    at = [each.at(_part(said, text)) for each in said.clocks]
    match said.repeat:
        case repeats.Days():
            return _days(said.repeat, at, text, zone)
        case repeats.Minutes():
            _refuse_clock(said, text)
            return Trigger(TriggerKind.CRON, f"{said.repeat.minute} * * * *", zone)
        case lengths.Length():
            _refuse_clock(said, text)
            start = now_us + said.repeat.seconds * SECOND
            return Trigger(
                TriggerKind.INTERVAL, interval.normal(interval.checked(said.repeat.seconds, text)), zone, start
            )
        case None:
            return _once_at(_moment_us(said, at, text, now_us, now, zone), now_us, zone)


def _part(said: Said, text: str) -> str | None:
    named = said.repeat.part if isinstance(said.repeat, repeats.Days) else None
    if named is not None and said.part is not None:
        raise Invalid(f'"{text}" names two parts of the day. Write the time as 09:30 or 21:30')
    return named or said.part


def _days(repeat: repeats.Days, at: Sequence[time], text: str, zone: str) -> Trigger:
    if not at:
        raise Invalid(NO_CLOCK.format(text))
    hours, minutes = sorted({each.hour for each in at}), sorted({each.minute for each in at})
    if len(hours) * len(minutes) != len(set(at)):
        raise Invalid(f'"{text}" needs more than one rule. Make a schedule for each time')
    fields = (_list(minutes), _list(hours), repeat.day, repeat.month, repeat.weekday)
    return Trigger(TriggerKind.CRON, " ".join(fields), zone)


def _list(numbers: Sequence[int]) -> str:
    return ",".join(str(number) for number in numbers)


def _refuse_clock(said: Said, text: str) -> None:
    if said.clocks or said.part is not None:
        raise Invalid(
            f'"{text}" has both a length and a time of day. Write "every day at 09:00", or give the start apart'
        )


def _moment_us(said: Said, at: Sequence[time], text: str, now_us: int, now: datetime, zone: str) -> int:
    delay_s = 0 if said.delay is None else said.delay.seconds
    if delay_s > interval.LONGEST_S:
        raise Invalid(f'"{text}" is too far ahead; write a time within a hundred years')
    if delay_s and not at and said.part is None:
        return now_us + delay_s * SECOND
    if said.delay is not None and said.delay.days is None:
        raise Invalid(f'"{text}" has both a length and a time of day. Write one of them')
    if not at:
        raise Invalid(NO_CLOCK.format(text))
    if len(at) > 1:
        raise Invalid(f'"{text}" names several times. Make a schedule for each, or write "every day at …"')
    if said.clocks[0].midnight and (said.day is not None or said.delay is not None):
        raise Invalid(f'"{text}" may be the start of that day or its end. Write "at 00:00", which is the start')
    return us(times.in_zone(datetime.combine(_day(said, at[0], text, now), at[0]), zone))


def _day(said: Said, at: time, text: str, now: datetime) -> date:
    if said.delay is not None:
        return now.date() + timedelta(days=said.delay.days or 0)
    if said.day is not None:
        return said.day.on(at, now)
    if HANDS.fullmatch(text):
        raise Invalid(f'"{text}" may be a time or a length. Write "at {text}", or "in 5 minutes"')
    return now.date() if at > now.time() else now.date() + timedelta(days=1)


def _once_at(at_us: int, now_us: int, zone: str) -> Trigger:
    if at_us <= now_us:
        raise Invalid(times.PAST)
    return Trigger(TriggerKind.ONCE, moment(at_us).isoformat(), zone)
