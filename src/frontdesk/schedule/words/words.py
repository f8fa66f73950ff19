"""Plain words for when, read into the one rule they can mean; what can mean two things is refused."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, time, timedelta
from difflib import get_close_matches
from zoneinfo import ZoneInfo

from frontdesk import zones
from frontdesk.errors import Invalid
from frontdesk.schedule.model import SECOND, Trigger, TriggerKind, moment, us
from frontdesk.schedule.triggers import cron, interval
from frontdesk.schedule.triggers.next import next_after
from frontdesk.schedule.words import clock, days, lengths, names, places, repeats, times
from frontdesk.schedule.words.clock import HANDS
from frontdesk.schedule.words.reader import Words

LONGEST = 200
EXAMPLES = (
    '"in 2 minutes", "tomorrow at 09:00", "every weekday at 09:00 Berlin time", or a cron rule as in '
    '"*/15 9-17 * * MON-FRI"'
)
ASKING = ("remind", "ping", "wake", "tell", "prompt", "nudge", "message", "notify", "text", "call", "ask")
LETTERS = re.compile(r"[^\W\d_]+")
# How near a word must be to one that is known to be taken for a slip of it.
NEAR = 0.78
JOINING = """
a an and at in of on the to from every each once other last next this coming past after before today tonight tomorrow
now day days week weeks month months year years time noon midday midnight half quarter am pm oclock weekday weekdays
weekend weekends nightly fortnightly until till starting beginning end start for please me us
"""
KNOWN = frozenset(
    {
        *JOINING.split(),
        *ASKING,
        *clock.PARTS,
        *lengths.SMALL,
        *lengths.TENS,
        *(unit for unit in lengths.UNITS if len(unit) > 2),
        *names.WEEKDAY,
        *names.MONTH,
        *names.ORDINALS,
        *repeats.ALONE,
        *(word for name in days.FEASTS for word in LETTERS.findall(name) if len(word) > 2),
    }
)
# What is done nightly is done at midnight, as by @daily and @midnight, unless a time is said.
NIGHTLY = repeats.Days(part="night")
UNTIL = ("until", "till", "til", "through", "thru", "ending", "up")
ONE_DAY_OR_EACH = (
    'From one time until another may be on one day or on every day. Write a cron rule, as in "*/15 9-17 * * *", or the '
    'days with the times, as in "from tomorrow at 09:00 until tomorrow at 17:00"'
)
NO_CLOCK = '"{}" names no time of day. Add one, as in "at 9am" or "at 21:00"'


@dataclass(slots=True)
class Said:
    """The parts of a phrase, each said at most once."""

    delay: lengths.Length | None = None
    day: days.Day | None = None
    repeat: repeats.Days | repeats.Minutes | lengths.Length | None = None
    clocks: Sequence[clock.Clock] = ()
    part: str | None = None
    start: datetime | None = None
    end: datetime | lengths.Length | None = None
    # How many of the two are a time without a day.
    bare_bounds: int = 0

    @property
    def expects_hour(self) -> bool:
        """Whether a number alone is an hour here: after a day, `tomorrow 9`, or days, `every monday 9`."""
        return self.day is not None or isinstance(self.repeat, repeats.Days)

    @property
    def repeats_by_days(self) -> bool:
        """Whether a time of day can be that of each run."""
        whole_days = isinstance(self.repeat, lengths.Length) and self.repeat.days is not None
        return whole_days or isinstance(self.repeat, repeats.Days)


def read(text: str, now_us: int, zone: str, *, once: bool = False) -> Trigger | None:
    """The rule that the words say, in `zone` unless they name another; None when they speak of no time at all.

    With `once`, a day of "the month" is the next one, and not that of every month.
    """
    if not text.strip() or len(text) > LONGEST or times.looks_exact(text):
        return None
    found = _read(text, now_us, zone, once=once)
    if found is None:
        meant = _respelt(text)
        if meant is not None and _reads(meant, now_us, zone):
            raise Invalid(f'Could not read "{text.strip()}". Did you mean "{meant}"?')
    return found


def _read(text: str, now_us: int, zone: str, *, once: bool) -> Trigger | None:
    placed = places.split(" ".join(text.split()), zone)
    words, said = Words.of(placed.phrase), Said()
    asked = _take_asking(words)
    now = moment(now_us).astimezone(ZoneInfo(placed.zone)).replace(tzinfo=None, fold=0)
    while not words.done and _take(words, said, now):
        words.take(",")
    if said == Said():
        if asked:
            raise _unread(words, text.strip(), now_us, zone, asked=asked)
        return None
    if placed.wrong is not None:
        raise placed.wrong
    if not words.done:
        raise _unread(words, text.strip(), now_us, zone, asked=asked)
    trigger = _trigger(said, text.strip(), now_us, now, placed.zone)
    return _next_of(trigger, now_us) if once and isinstance(said.repeat, repeats.Days) and said.repeat.once else trigger


def _take_asking(words: Words) -> bool:
    """`please remind me`: who is to be told, which goes without saying."""
    mark = words.mark()
    words.take("please")
    if words.take(*ASKING) and words.take("me", "us"):
        words.take("again", "up")
        return True
    words.back(mark)
    return False


def _unread(words: Words, text: str, now_us: int, zone: str, *, asked: bool) -> Invalid:
    rest = words.rest()
    meant = _respelt(text)
    if meant is not None and _reads(meant, now_us, zone):
        return Invalid(f'Could not read "{rest}" in "{text}". Did you mean "{meant}"?')
    if rest.startswith("in "):
        return places.unknown(rest.removeprefix("in "))
    hint = "What you are to be told goes into the prompt, and here only when. " if asked else ""
    return Invalid(f'Could not read "{rest}" in "{text}". {hint}Write for example {EXAMPLES}')


def _reads(text: str, now_us: int, zone: str) -> bool:
    """Whether it speaks of a time, be it one that cannot be taken as it is."""
    try:
        return _read(text, now_us, zone, once=False) is not None
    except Invalid as error:
        return not str(error).startswith("Could not read")


def _respelt(text: str) -> str | None:
    """The same with the near word for each that is not known, if there are such."""
    phrase = places.split(" ".join(text.split()), "UTC").phrase
    unknown = [word for word in LETTERS.findall(phrase.casefold()) if len(word) > 2 and word not in KNOWN]
    meant = {word: near[0] for word in unknown if (near := get_close_matches(word, KNOWN, 1, NEAR))}
    if not meant:
        return None
    return LETTERS.sub(lambda found: meant.get(found[0].casefold(), found[0]), " ".join(text.split()))


def _take(words: Words, said: Said, now: datetime) -> bool:
    """Take one more part of the phrase, of a kind that was not there before."""
    before = len(words.left)
    if said.part is None:
        said.part = clock.part(words)
    if said.repeat is None and said.day is None and said.delay is None:
        said.repeat = _repeat(words, now.date())
        said.delay = _delay(words) if said.repeat is None else None
        if said.repeat is None and said.delay is None:
            _take_day(words, said, now.date())
    if not said.clocks and len(words.left) == before:
        said.clocks = clock.clocks(words, bare=said.expects_hour)
        _refuse_day_as_hour(said)
    if len(words.left) == before and said.repeat is not None:
        _take_bounds(words, said, now)
    return len(words.left) < before


def _repeat(words: Words, today: date) -> repeats.Days | repeats.Minutes | lengths.Length | None:
    mark = words.mark()
    certain = repeats.in_certain_month(words, today)
    words.back(mark)
    return None if certain is not None else repeats.repeat(words)


def _refuse_day_as_hour(said: Said) -> None:
    """`friday 13` is a date to some."""
    if not said.clocks or not isinstance(said.day, days.Weekday):
        return
    first = said.clocks[0]
    if first.said.isdigit() and first.hour > 12 and not first.after_at:
        name = names.DAYS[said.day.number]
        raise Invalid(f'"{name} {first.said}" may be a time or a date. Write "{name} at {first.hour}:00", or the date')


def _take_bounds(words: Words, said: Said, now: datetime) -> None:
    """`from monday on`, `starting at 9`, `until christmas`, `for two weeks`: when what repeats begins and ends."""
    mark = words.mark()
    if said.start is None and said.end is None and words.take("from", "starting", "beginning", "start", "begin"):
        words.take("from")
        if _take_span(words, said):
            return
        said.start = _bound(words, said, now, begins=True)
        if said.start is not None:
            words.take("on", "onwards", "onward")
            # What begins today begins now.
            said.start = None if said.start == datetime.combine(now.date(), time()) else said.start
            return
    elif said.end is None and (words.take(*UNTIL) or (said.start is not None and words.take("to"))):
        words.take("to", "until")
        said.end = _bound(words, said, now, begins=False)
        if said.end is not None:
            return
    elif said.end is None and words.take("for"):
        words.take("the")
        words.take("next")
        said.end = lengths.length(words)
        if said.end is not None:
            return
    words.back(mark)


def _take_span(words: Words, said: Said) -> bool:
    """`every day from monday to friday`: on these days of each week."""
    mark = words.mark()
    found = names.weekdays(words)
    if len(found) > 1 and isinstance(said.repeat, repeats.Days) and said.repeat.is_every_day:
        said.repeat = replace(said.repeat, weekday=repeats.cron_days(found))
        return True
    words.back(mark)
    return False


def _bound(words: Words, said: Said, now: datetime, *, begins: bool) -> datetime | None:
    """A day, a time of day, or both; a day alone stands for its begin or its end.

    After days that have no time yet, `every day until christmas at 9`, the time is that of each of them. An end is
    looked for from the start on, but `tomorrow` and `next friday` are what they are today.
    """
    since = now if begins else said.start or now
    day, last = repeats.in_certain_month(words, now.date()), _last_of(words, since)
    certain = days.Fixed(day) if day is not None else days.Fixed(last) if last is not None else None
    found = certain or days.one_day(words, now.date())
    at = clock.clocks(words, bare=found is not None)
    part = clock.part(words)
    at = at or (clock.clocks(words) if part is not None else ())
    lacks_time = said.repeats_by_days and not said.clocks and (begins or said.repeat != NIGHTLY)
    if found is not None and lacks_time and not (said.part and part):
        said.clocks, said.part = at, said.part or part
        at, part = (), None
    if len(at) > 1 or (not at and (found is None or part is not None)):
        return None
    clock_time = at[0].at(part) if at else time() if begins else time.max
    if found is not None and at and at[0].midnight:
        raise Invalid('"midnight" of a day may be its start or its end. Write "at 00:00", which is the start')
    if isinstance(found, days.Weekday) and since != now and since.weekday() == found.number:
        raise Invalid(f"It begins on a {names.DAYS[found.number].title()}. Write the date on which it ends")
    if found is not None:
        return datetime.combine(found.on(clock_time, since), clock_time)
    said.bare_bounds += 1
    if said.bare_bounds > 1:
        raise Invalid(ONE_DAY_OR_EACH)
    return datetime.combine(since.date() + timedelta(days=clock_time <= since.time()), clock_time)


def _last_of(words: Words, now: datetime) -> date | None:
    """`the end of the month`, `the end of the year`."""
    mark = words.mark()
    words.take("the")
    if words.phrase("end of"):
        words.take("the", "this")
        if words.take("year"):
            return date(now.year, 12, 31)
        if words.take("month"):
            return (now.date().replace(day=1) + timedelta(days=32)).replace(day=1) - timedelta(days=1)
    words.back(mark)
    return None


def _take_day(words: Words, said: Said, today: date) -> None:
    certain = repeats.in_certain_month(words, today)
    if certain is not None:
        said.day = days.Fixed(certain)
    elif words.take("tonight"):
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
    repeat = _with_clock(said)
    if repeat is None:
        each = [one.at(_part(said, text)) for one in said.clocks]
        return _once_at(_moment_us(said, each, text, now_us, now, zone), now_us, zone)
    if repeat == NIGHTLY and not said.clocks and said.part is None:
        at = [time()]
    else:
        at = [one.at(_part(said, text), each=True) for one in said.clocks]
    start_us = None if said.start is None else us(times.in_zone(said.start, zone))
    match repeat:
        case repeats.Days():
            trigger = _days(repeat, at, text, zone, max(now_us, start_us or now_us))
        case repeats.Minutes():
            _refuse_clock(said, text)
            trigger = Trigger(TriggerKind.CRON, f"{repeat.minute} * * * *", zone)
        case lengths.Length():
            _refuse_clock(said, text)
            value = interval.normal(interval.checked(repeat.seconds, text))
            counted_from = now_us + repeat.seconds * SECOND if start_us is None else start_us
            trigger = Trigger(TriggerKind.INTERVAL, value, zone, counted_from)
    return _bounded(trigger, said, now_us, start_us)


def _with_clock(said: Said) -> repeats.Days | repeats.Minutes | lengths.Length | None:
    """What repeats; a length of whole days together with a time of day leaves out days."""
    repeat = said.repeat
    if isinstance(repeat, lengths.Length) and repeat.days is not None and said.clocks:
        return repeats.Days(steps=repeat.days, unit="days")
    return repeat


def _bounded(trigger: Trigger, said: Said, now_us: int, start_us: int | None) -> Trigger:
    """The rule between its first moment and its last, both included."""
    if start_us is not None and start_us <= now_us:
        raise Invalid("Start time must be in the future")
    if start_us is not None:
        trigger = replace(trigger, start_us=start_us)
    if isinstance(said.end, lengths.Length):
        trigger = replace(trigger, end_us=max(now_us, start_us or now_us) + said.end.seconds * SECOND - 1)
    elif said.end is not None:
        trigger = replace(trigger, end_us=us(zones.last_moment(said.end, ZoneInfo(trigger.zone))))
    return trigger


def _next_of(trigger: Trigger, now_us: int) -> Trigger:
    following = next_after(trigger, now_us)
    return _once_at(following or now_us, now_us, trigger.zone)


def _part(said: Said, text: str) -> str | None:
    named = said.repeat.part if isinstance(said.repeat, repeats.Days) else None
    if named is not None and said.part is not None:
        raise Invalid(f'"{text}" names two parts of the day. Write the time as 09:30 or 21:30')
    return named or said.part


def _days(repeat: repeats.Days, at: Sequence[time], text: str, zone: str, since_us: int) -> Trigger:
    if not at:
        raise Invalid(NO_CLOCK.format(text))
    hours, minutes = sorted({each.hour for each in at}), sorted({each.minute for each in at})
    if len(hours) * len(minutes) != len(set(at)):
        raise Invalid(f'"{text}" needs more than one rule. Make a schedule for each time')
    fields = (_list(minutes), _list(hours), repeat.day, repeat.month, repeat.weekday)
    trigger = Trigger(TriggerKind.CRON, " ".join(fields), zone)
    if repeat.steps == 1:
        return trigger
    if repeat.steps > cron.MOST_STEPS:
        raise Invalid(f'"{text}" is too seldom. Write 1 to {cron.MOST_STEPS} {repeat.unit}')
    # Counted from the first time that comes.
    first = next_after(trigger, since_us)
    day = moment(first or since_us).astimezone(ZoneInfo(zone)).date()
    return replace(trigger, value=f"{trigger.value} {cron.Steps(repeat.steps, repeat.unit, day)}")


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
