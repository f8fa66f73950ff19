"""Parses a phrase in plain English into the only trigger that it can mean; ambiguous phrases are refused."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, time, timedelta
from difflib import get_close_matches
from functools import cache
from zoneinfo import ZoneInfo

from frontdesk import zones
from frontdesk.errors import Invalid
from frontdesk.schedules.model import SECOND, Trigger, TriggerKind, from_us, to_us
from frontdesk.schedules.phrases.days_and_times import (
    CLOCK_FIGURES,
    DAY_PARTS,
    HOLIDAYS,
    ClockTime,
    FixedDay,
    NextWeekday,
    PhraseDay,
    take_clock_times,
    take_day,
    take_day_part,
)
from frontdesk.schedules.phrases.recurrence import (
    ONE_WORD_RECURRENCES,
    DayRecurrence,
    HourlyRecurrence,
    format_cron_weekdays,
    take_day_in_month,
    take_recurrence,
)
from frontdesk.schedules.phrases.tokens import (
    MONTH_NUMBERS,
    ORDINALS,
    SMALL_NUMBERS,
    TENS,
    UNIT_SECONDS,
    WEEKDAY_NAMES,
    WEEKDAY_NUMBERS,
    Duration,
    PhraseTokens,
    take_duration,
    take_weekdays,
)
from frontdesk.schedules.triggers import (
    LONGEST_INTERVAL_S,
    MAX_CRON_STEPS,
    TIME_IN_PAST,
    CronSteps,
    check_interval,
    format_interval,
    is_iso_time,
    next_fire_after,
    resolve_local_time,
)

ZONE_PATH = re.compile(
    r"(?P<before>.*?)[\s,(]+(?:in\s+)?(?P<name>[a-z_]+/[a-z_+\-/0-9]+)(?:\s+time)?\)?", re.IGNORECASE
)
UTC_NAME = re.compile(r"(?P<before>.*?)[\s,(]+(?:in\s+)?(?:utc|gmt|zulu)(?:\s+time)?\)?", re.IGNORECASE)
OWN_ZONE = re.compile(r"(?P<before>.*?)[\s,(]+(?:my\s+|local\s+)time\)?", re.IGNORECASE)
ZONE_ABBREVIATION = re.compile(
    r"(?P<before>.*?)\b(?P<name>[ecmp][sd]t|akst|hst|[wce]es?t|bst|ist|jst|kst|msk|a[ec]st|[ecmp]t|sgt|hkt|nz[sd]t)(?:\s+time)?\)?",
    re.IGNORECASE,
)
MAX_CITY_WORDS = 4
# Parts of regions; alone they could be anywhere.
NO_CITIES = frozenset({"north", "east", "south", "west", "general", "continental", "universal", "zulu"})
ZONE_HINT = 'Write the city, as in "Berlin time", or the zone, as in "Europe/Berlin"'


@dataclass(frozen=True, slots=True)
class ZonedPhrase:
    """A phrase without its zone, and that zone; `error` if it ends with an unknown zone."""

    phrase: str
    zone: str
    error: Invalid | None = None


def split_zone(text: str, zone: str) -> ZonedPhrase:
    """Split the zone from a phrase; a phrase without a zone gets `zone`."""
    if found := ZONE_PATH.fullmatch(text):
        name = zones.zone_names().get(found["name"].casefold())
        return ZonedPhrase(found["before"], name or zone, None if name else zones.unknown_zone(found["name"]))
    if found := UTC_NAME.fullmatch(text):
        return ZonedPhrase(found["before"], "UTC")
    if found := OWN_ZONE.fullmatch(text):
        return ZonedPhrase(found["before"], zone)
    if found := ZONE_ABBREVIATION.fullmatch(text):
        wrong = Invalid(f'"{found["name"]}" does not name one zone the whole year round. {ZONE_HINT}')
        return ZonedPhrase(found["before"], zone, wrong)
    return _split_city(text, zone)


def _split_city(text: str, zone: str) -> ZonedPhrase:
    words = re.sub(r"[,()]", " ", text).split()
    said_time = [word.casefold() for word in words[-1:]] == ["time"]
    if said_time:
        words.pop()
    for length in range(min(MAX_CITY_WORDS, len(words)), 0, -1):
        before, name = words[:-length], "_".join(words[-length:]).casefold()
        said_in = [word.casefold() for word in before[-1:]] == ["in"]
        if (said_time or said_in) and name in zones_by_city():
            return _zone_of_city(" ".join(before[:-1] if said_in else before), name, zone)
    if said_time:
        return ZonedPhrase(" ".join(words[:-1]), zone, unknown_place(" ".join(words[-1:])))
    return ZonedPhrase(text, zone)


def unknown_place(place: str) -> Invalid:
    near = get_close_matches(place.casefold().replace(" ", "_"), zones_by_city(), 1, zones.MIN_NAME_SIMILARITY)
    meant = f'Did you mean "{near[0].replace("_", " ").title()} time"? ' if near else ""
    return Invalid(f'No time zone is named after "{place}". {meant}{ZONE_HINT}')


@cache
def zones_by_city() -> Mapping[str, tuple[str, ...]]:
    """Zones by the last part of their names, in lower case; also by country, if a country is a zone."""
    found: dict[str, tuple[str, ...]] = {}
    for name in sorted(zones.zone_names().values(), key=lambda name: ("/" not in name, name)):
        area, _, city = name.rpartition("/")
        key = city.casefold()
        if len(city) <= 3 or key in NO_CITIES or area == "Etc" or (not area and (key in found or not city.istitle())):
            continue
        found[key] = (*found.get(key, ()), name)
    return found


def _zone_of_city(phrase: str, city: str, zone: str) -> ZonedPhrase:
    """The zone of a city; several zones with that name must be the same zone under an old and a new name."""
    found = zones_by_city()[city]
    areas = {name.split("/")[0] for name in found}
    if len(areas) == 1 or areas == {"Asia", "Europe"}:
        return ZonedPhrase(phrase, max(found, key=lambda name: (name.startswith("Europe/"), name.count("/"))))
    return ZonedPhrase(phrase, zone, Invalid(f'"{city}" may be {" or ".join(found)}. Write which'))


LONGEST_PHRASE = 200
EXAMPLES = (
    '"in 2 minutes", "tomorrow at 09:00", "every weekday at 09:00 Berlin time", or a cron rule as in '
    '"*/15 9-17 * * MON-FRI"'
)
REQUEST_VERBS = ("remind", "ping", "wake", "tell", "prompt", "nudge", "message", "notify", "text", "call", "ask")
WORD_LETTERS = re.compile(r"[^\W\d_]+")
# How similar an unknown word must be to a known word to count as its misspelling.
SPELLING_CUTOFF = 0.78
CONNECTING_WORDS = """
a an and at in of on the to from every each once other last next this coming past after before today tonight tomorrow
now day days week weeks month months year years time noon midday midnight half quarter am pm oclock weekday weekdays
weekend weekends nightly fortnightly until till starting beginning end start for please me us
"""
KNOWN_WORDS = frozenset(
    {
        *CONNECTING_WORDS.split(),
        *REQUEST_VERBS,
        *DAY_PARTS,
        *SMALL_NUMBERS,
        *TENS,
        *(unit for unit in UNIT_SECONDS if len(unit) > 2),
        *WEEKDAY_NUMBERS,
        *MONTH_NUMBERS,
        *ORDINALS,
        *ONE_WORD_RECURRENCES,
        *(word for name in HOLIDAYS for word in WORD_LETTERS.findall(name) if len(word) > 2),
    }
)
# `nightly` means midnight, like @daily and @midnight, unless a time is given.
NIGHTLY = DayRecurrence(part="night")
UNTIL_WORDS = ("until", "till", "til", "through", "thru", "ending", "up")
ONE_DAY_OR_EACH = (
    'From one time until another may be on one day or on every day. Write a cron rule, as in "*/15 9-17 * * *", or the '
    'days with the times, as in "from tomorrow at 09:00 until tomorrow at 17:00"'
)
NO_CLOCK = '"{}" names no time of day. Add one, as in "at 9am" or "at 21:00"'


@dataclass(slots=True)
class PhraseParts:
    """The parts of a phrase, each present at most once."""

    delay: Duration | None = None
    day: PhraseDay | None = None
    repeat: DayRecurrence | HourlyRecurrence | Duration | None = None
    clocks: Sequence[ClockTime] = ()
    part: str | None = None
    start: datetime | None = None
    end: datetime | Duration | None = None
    # How many of the two bounds are a time without a day.
    bare_bounds: int = 0

    @property
    def expects_hour(self) -> bool:
        """Whether a number alone is an hour here: after a day, `tomorrow 9`, or days, `every monday 9`."""
        return self.day is not None or isinstance(self.repeat, DayRecurrence)

    @property
    def repeats_by_days(self) -> bool:
        """Whether a time of day can be the time of each run."""
        whole_days = isinstance(self.repeat, Duration) and self.repeat.days is not None
        return whole_days or isinstance(self.repeat, DayRecurrence)


def parse_phrase(text: str, now_us: int, zone: str, *, once: bool = False) -> Trigger | None:
    """The rule that the words mean, in `zone` unless they name another; None if they are not about time.

    With `once`, a day of "the month" is the next such day, not a day of every month.
    """
    if not text.strip() or len(text) > LONGEST_PHRASE or is_iso_time(text):
        return None
    found = _parse_phrase(text, now_us, zone, once=once)
    if found is None:
        meant = _correct_spelling(text)
        if meant is not None and _is_readable(meant, now_us, zone):
            raise Invalid(f'Could not read "{text.strip()}". Did you mean "{meant}"?')
    return found


def _parse_phrase(text: str, now_us: int, zone: str, *, once: bool) -> Trigger | None:
    placed = split_zone(" ".join(text.split()), zone)
    words, parts = PhraseTokens.tokenize(placed.phrase), PhraseParts()
    asked = _take_request(words)
    now = from_us(now_us).astimezone(ZoneInfo(placed.zone)).replace(tzinfo=None, fold=0)
    while not words.is_empty and _take_part(words, parts, now):
        words.take(",")
    if parts == PhraseParts():
        if asked:
            raise _unreadable(words, text.strip(), now_us, zone, asked=asked)
        return None
    if placed.error is not None:
        raise placed.error
    if not words.is_empty:
        raise _unreadable(words, text.strip(), now_us, zone, asked=asked)
    trigger = _make_trigger(parts, text.strip(), now_us, now, placed.zone)
    return (
        _only_next_fire(trigger, now_us)
        if once and isinstance(parts.repeat, DayRecurrence) and parts.repeat.once
        else trigger
    )


def _take_request(words: PhraseTokens) -> bool:
    """Take `please remind me`, which adds nothing to the rule."""
    mark = words.mark()
    words.take("please")
    if words.take(*REQUEST_VERBS) and words.take("me", "us"):
        words.take("again", "up")
        return True
    words.reset(mark)
    return False


def _unreadable(words: PhraseTokens, text: str, now_us: int, zone: str, *, asked: bool) -> Invalid:
    rest = words.rest()
    meant = _correct_spelling(text)
    if meant is not None and _is_readable(meant, now_us, zone):
        return Invalid(f'Could not read "{rest}" in "{text}". Did you mean "{meant}"?')
    if rest.startswith("in "):
        return unknown_place(rest.removeprefix("in "))
    hint = "Put the text into the prompt, and here only the time. " if asked else ""
    return Invalid(f'Could not read "{rest}" in "{text}". {hint}Write for example {EXAMPLES}')


def _is_readable(text: str, now_us: int, zone: str) -> bool:
    """Whether a text is about a time, including a refused one."""
    try:
        return _parse_phrase(text, now_us, zone, once=False) is not None
    except Invalid as error:
        return not str(error).startswith("Could not read")


def _correct_spelling(text: str) -> str | None:
    """The text with unknown words replaced by similar known ones, if there are any."""
    phrase = split_zone(" ".join(text.split()), "UTC").phrase
    unknown = [word for word in WORD_LETTERS.findall(phrase.casefold()) if len(word) > 2 and word not in KNOWN_WORDS]
    meant = {word: near[0] for word in unknown if (near := get_close_matches(word, KNOWN_WORDS, 1, SPELLING_CUTOFF))}
    if not meant:
        return None
    return WORD_LETTERS.sub(lambda found: meant.get(found[0].casefold(), found[0]), " ".join(text.split()))


def _take_part(words: PhraseTokens, parts: PhraseParts, now: datetime) -> bool:
    """Take one more part of the phrase, of a kind that is still missing."""
    before = len(words.remaining)
    if parts.part is None:
        parts.part = take_day_part(words)
    if parts.repeat is None and parts.day is None and parts.delay is None:
        parts.repeat = _take_recurrence(words, now.date())
        parts.delay = _take_delay(words) if parts.repeat is None else None
        if parts.repeat is None and parts.delay is None:
            _take_day(words, parts, now.date())
    if not parts.clocks and len(words.remaining) == before:
        parts.clocks = take_clock_times(words, bare=parts.expects_hour)
        _refuse_day_as_hour(parts)
    if len(words.remaining) == before and parts.repeat is not None:
        _take_bounds(words, parts, now)
    return len(words.remaining) < before


def _take_recurrence(words: PhraseTokens, today: date) -> DayRecurrence | HourlyRecurrence | Duration | None:
    mark = words.mark()
    certain = take_day_in_month(words, today)
    words.reset(mark)
    return None if certain is not None else take_recurrence(words)


def _refuse_day_as_hour(parts: PhraseParts) -> None:
    """Refuse phrases such as `friday 13`, which may be a date."""
    if not parts.clocks or not isinstance(parts.day, NextWeekday):
        return
    first = parts.clocks[0]
    if first.written.isdigit() and first.hour > 12 and not first.after_at:
        name = WEEKDAY_NAMES[parts.day.number]
        raise Invalid(
            f'"{name} {first.written}" may be a time or a date. Write "{name} at {first.hour}:00", or the date'
        )


def _take_bounds(words: PhraseTokens, parts: PhraseParts, now: datetime) -> None:
    """`from monday on`, `starting at 9`, `until christmas`, `for two weeks`: start and end of a recurrence."""
    mark = words.mark()
    if parts.start is None and parts.end is None and words.take("from", "starting", "beginning", "start", "begin"):
        words.take("from")
        if _take_span(words, parts):
            return
        parts.start = _take_bound(words, parts, now, begins=True)
        if parts.start is not None:
            words.take("on", "onwards", "onward")
            # A start of today means now.
            parts.start = None if parts.start == datetime.combine(now.date(), time()) else parts.start
            return
    elif parts.end is None and (words.take(*UNTIL_WORDS) or (parts.start is not None and words.take("to"))):
        words.take("to", "until")
        parts.end = _take_bound(words, parts, now, begins=False)
        if parts.end is not None:
            return
    elif parts.end is None and words.take("for"):
        words.take("the")
        words.take("next")
        parts.end = take_duration(words)
        if parts.end is not None:
            return
    words.reset(mark)


def _take_span(words: PhraseTokens, parts: PhraseParts) -> bool:
    """`every day from monday to friday`: on these days of each week."""
    mark = words.mark()
    found = take_weekdays(words)
    if len(found) > 1 and isinstance(parts.repeat, DayRecurrence) and parts.repeat.is_every_day:
        parts.repeat = replace(parts.repeat, weekday=format_cron_weekdays(found))
        return True
    words.reset(mark)
    return False


def _take_bound(words: PhraseTokens, parts: PhraseParts, now: datetime, *, begins: bool) -> datetime | None:
    """Take a day, a time of day, or both; a day alone means its start or its end.

    After days without a time, as in `every day until christmas at 9`, the time applies to each of these days. An end is
    searched from the start on, but `tomorrow` and `next friday` count from today.
    """
    since = now if begins else parts.start or now
    day, last = take_day_in_month(words, now.date()), _take_end_of_period(words, since)
    certain = FixedDay(day) if day is not None else FixedDay(last) if last is not None else None
    found = certain or take_day(words, now.date())
    at = take_clock_times(words, bare=found is not None)
    part = take_day_part(words)
    at = at or (take_clock_times(words) if part is not None else ())
    lacks_time = parts.repeats_by_days and not parts.clocks and (begins or parts.repeat != NIGHTLY)
    if found is not None and lacks_time and not (parts.part and part):
        parts.clocks, parts.part = at, parts.part or part
        at, part = (), None
    if len(at) > 1 or (not at and (found is None or part is not None)):
        return None
    clock_time = at[0].resolve(part) if at else time() if begins else time.max
    if found is not None and at and at[0].midnight:
        raise Invalid('"midnight" of a day may be its start or its end. Write "at 00:00", which is the start')
    if isinstance(found, NextWeekday) and since != now and since.weekday() == found.number:
        raise Invalid(f"It begins on a {WEEKDAY_NAMES[found.number].title()}. Write the date on which it ends")
    if found is not None:
        return datetime.combine(found.on(clock_time, since), clock_time)
    parts.bare_bounds += 1
    if parts.bare_bounds > 1:
        raise Invalid(ONE_DAY_OR_EACH)
    return datetime.combine(since.date() + timedelta(days=clock_time <= since.time()), clock_time)


def _take_end_of_period(words: PhraseTokens, now: datetime) -> date | None:
    """`the end of the month`, `the end of the year`."""
    mark = words.mark()
    words.take("the")
    if words.take_phrase("end of"):
        words.take("the", "this")
        if words.take("year"):
            return date(now.year, 12, 31)
        if words.take("month"):
            return (now.date().replace(day=1) + timedelta(days=32)).replace(day=1) - timedelta(days=1)
    words.reset(mark)
    return None


def _take_day(words: PhraseTokens, parts: PhraseParts, today: date) -> None:
    certain = take_day_in_month(words, today)
    if certain is not None:
        parts.day = FixedDay(certain)
    elif words.take("tonight"):
        parts.day, parts.part = FixedDay(today), parts.part or "evening"
    elif words.peek() == "this" and words.peek(1) in DAY_PARTS:
        words.take("this")
        parts.day, parts.part = FixedDay(today), take_day_part(words)
    else:
        parts.day = take_day(words, today)


def _take_delay(words: PhraseTokens) -> Duration | None:
    """`in two minutes`, `two minutes from now`."""
    mark = words.mark()
    said_in = words.take("in") is not None
    found = take_duration(words)
    if found is None or not (said_in or words.take_phrase("from now")):
        words.reset(mark)
        return None
    return found


def _make_trigger(parts: PhraseParts, text: str, now_us: int, now: datetime, zone: str) -> Trigger:
    repeat = _recurrence_with_clock(parts)
    if repeat is None:
        each = [one.resolve(_day_part_of(parts, text)) for one in parts.clocks]
        return _make_once_trigger(_once_us(parts, each, text, now_us, now, zone), now_us, zone)
    if repeat == NIGHTLY and not parts.clocks and parts.part is None:
        at = [time()]
    else:
        at = [one.resolve(_day_part_of(parts, text), each=True) for one in parts.clocks]
    start_us = None if parts.start is None else to_us(resolve_local_time(parts.start, zone))
    match repeat:
        case DayRecurrence():
            trigger = _make_day_trigger(repeat, at, text, zone, max(now_us, start_us or now_us))
        case HourlyRecurrence():
            _refuse_clock(parts, text)
            trigger = Trigger(TriggerKind.CRON, f"{repeat.minute} * * * *", zone)
        case Duration():
            _refuse_clock(parts, text)
            value = format_interval(check_interval(repeat.seconds, text))
            counted_from = now_us + repeat.seconds * SECOND if start_us is None else start_us
            trigger = Trigger(TriggerKind.INTERVAL, value, zone, counted_from)
    return _apply_phrase_bounds(trigger, parts, now_us, start_us)


def _recurrence_with_clock(parts: PhraseParts) -> DayRecurrence | HourlyRecurrence | Duration | None:
    """The recurrence; a length of whole days with a time of day becomes every n-th day."""
    repeat = parts.repeat
    if isinstance(repeat, Duration) and repeat.days is not None and parts.clocks:
        return DayRecurrence(steps=repeat.days, unit="days")
    return repeat


def _apply_phrase_bounds(trigger: Trigger, parts: PhraseParts, now_us: int, start_us: int | None) -> Trigger:
    """The rule with its first and last time, both included."""
    if start_us is not None and start_us <= now_us:
        raise Invalid("Start time must be in the future")
    if start_us is not None:
        trigger = replace(trigger, start_us=start_us)
    if isinstance(parts.end, Duration):
        trigger = replace(trigger, end_us=max(now_us, start_us or now_us) + parts.end.seconds * SECOND - 1)
    elif parts.end is not None:
        trigger = replace(trigger, end_us=to_us(zones.last_utc_time(parts.end, ZoneInfo(trigger.zone))))
    return trigger


def _only_next_fire(trigger: Trigger, now_us: int) -> Trigger:
    following = next_fire_after(trigger, now_us)
    return _make_once_trigger(following or now_us, now_us, trigger.zone)


def _day_part_of(parts: PhraseParts, text: str) -> str | None:
    named = parts.repeat.part if isinstance(parts.repeat, DayRecurrence) else None
    if named is not None and parts.part is not None:
        raise Invalid(f'"{text}" names two parts of the day. Write the time as 09:30 or 21:30')
    return named or parts.part


def _make_day_trigger(repeat: DayRecurrence, at: Sequence[time], text: str, zone: str, since_us: int) -> Trigger:
    if not at:
        raise Invalid(NO_CLOCK.format(text))
    hours, minutes = sorted({each.hour for each in at}), sorted({each.minute for each in at})
    if len(hours) * len(minutes) != len(set(at)):
        raise Invalid(f'"{text}" needs more than one rule. Make a schedule for each time')
    fields = (_join_numbers(minutes), _join_numbers(hours), repeat.day, repeat.month, repeat.weekday)
    trigger = Trigger(TriggerKind.CRON, " ".join(fields), zone)
    if repeat.steps == 1:
        return trigger
    if repeat.steps > MAX_CRON_STEPS:
        raise Invalid(f'"{text}" is too seldom. Write 1 to {MAX_CRON_STEPS} {repeat.unit}')
    # Counted from the first fire.
    first = next_fire_after(trigger, since_us)
    day = from_us(first or since_us).astimezone(ZoneInfo(zone)).date()
    return replace(trigger, value=f"{trigger.value} {CronSteps(repeat.steps, repeat.unit, day)}")


def _join_numbers(numbers: Sequence[int]) -> str:
    return ",".join(str(number) for number in numbers)


def _refuse_clock(parts: PhraseParts, text: str) -> None:
    if parts.clocks or parts.part is not None:
        raise Invalid(
            f'"{text}" has both a length and a time of day. Write "every day at 09:00", or give the start apart'
        )


def _once_us(parts: PhraseParts, at: Sequence[time], text: str, now_us: int, now: datetime, zone: str) -> int:
    delay_s = 0 if parts.delay is None else parts.delay.seconds
    if delay_s > LONGEST_INTERVAL_S:
        raise Invalid(f'"{text}" is too far ahead; write a time within a hundred years')
    if delay_s and not at and parts.part is None:
        return now_us + delay_s * SECOND
    if parts.delay is not None and parts.delay.days is None:
        raise Invalid(f'"{text}" has both a length and a time of day. Write one of them')
    if not at:
        raise Invalid(NO_CLOCK.format(text))
    if len(at) > 1:
        raise Invalid(f'"{text}" names several times. Make a schedule for each, or write "every day at …"')
    if parts.clocks[0].midnight and (parts.day is not None or parts.delay is not None):
        raise Invalid(f'"{text}" may be the start of that day or its end. Write "at 00:00", which is the start')
    return to_us(resolve_local_time(datetime.combine(_once_day(parts, at[0], text, now), at[0]), zone))


def _once_day(parts: PhraseParts, at: time, text: str, now: datetime) -> date:
    if parts.delay is not None:
        return now.date() + timedelta(days=parts.delay.days or 0)
    if parts.day is not None:
        return parts.day.on(at, now)
    if CLOCK_FIGURES.fullmatch(text):
        raise Invalid(f'"{text}" may be a time or a length. Write "at {text}", or "in 5 minutes"')
    return now.date() if at > now.time() else now.date() + timedelta(days=1)


def _make_once_trigger(at_us: int, now_us: int, zone: str) -> Trigger:
    if at_us <= now_us:
        raise Invalid(TIME_IN_PAST)
    return Trigger(TriggerKind.ONCE, from_us(at_us).isoformat(), zone)
