"""Reads what callers ask for into a rule: a time, a cron rule, an interval, or plain words for any of them."""

import re
from collections.abc import Callable
from dataclasses import dataclass, replace

from frontdesk import zones
from frontdesk.errors import Invalid
from frontdesk.schedule import numbers
from frontdesk.schedule.asked import When
from frontdesk.schedule.model import Trigger, TriggerKind, moment, us
from frontdesk.schedule.triggers import cron
from frontdesk.schedule.triggers.next import first, next_after, once_us
from frontdesk.schedule.triggers.parse import (
    NO_START,
    closest_fires_s,
    cron_trigger,
    interval_trigger,
    once_trigger,
)
from frontdesk.schedule.words import times
from frontdesk.schedule.words.words import read as read_words

NONE_GIVEN = "Must specify one of --time, --cron, or --every"
SEVERAL_GIVEN = "Cannot specify multiple scheduling options"
UNREADABLE = (
    "'{}' is no rule that can be read. Write a time (2025-12-25T10:00:00Z), a cron rule (0 9 * * MON-FRI), "
    "an interval (every 30m), or words such as: in two minutes, tomorrow at 9, every weekday at 9 Berlin time"
)
BARE_NUMBER = (
    '"{0}" alone may be a time, a date or a length. Write for example "at 10:00", "2027-01-01 at 09:00", '
    '"in 10 minutes" or "every 10 minutes"'
)
LONGEST_RULE = 500
# `9am`, `17:30` and `24.12.2026` say what they are; other single words with figures are rules, or slips in one.
PLAIN_FIGURES = re.compile(
    r"\d{1,2}([:.]\d{2})?[ap]\.?m\.?|\d{1,2}:\d{2}(:\d{2})?|\d{1,2}([./-])\d{1,2}\3\d{4}|\d{1,2}\.\d{1,2}\.|"
    r"\d{4}([/-])\d{1,2}\4\d{1,2}",
    re.IGNORECASE,
)
NUMBER = re.compile(r"[+-]?[\d.,]+")
# What a rule of each kind is given as.
GIVEN_AS = {
    TriggerKind.ONCE: ("is one moment", "time"),
    TriggerKind.CRON: ("repeats by the calendar", "cron"),
    TriggerKind.INTERVAL: ("repeats at an interval", "every"),
}


# What reads a rule, in a zone, at a time.
Way = Callable[[str, str | None, int], "Told"]


class NoRule(Invalid):
    """Nothing says when, in the words of the contract; a door with more ways to say it names them all."""

    def __init__(self) -> None:
        super().__init__(NONE_GIVEN)


class OtherKind(Invalid):
    """Words for a rule of another kind than was asked for."""


@dataclass(frozen=True, slots=True)
class Told:
    """A rule that was read; `words` are the plain words it was told in, if it was."""

    trigger: Trigger
    words: str | None = None


def read(said: When, now_us: int) -> Told:
    """The whole rule; what would never run is refused."""
    told = _rule(said, now_us)
    if said.end_at and told.trigger.end_us is not None:
        raise Invalid("The words say already when it ends; leave end_at out, or those words")
    trigger = bounded(told.trigger, said, now_us)
    return replace(told, trigger=_counted_from_start(trigger) if told.words and said.start_at else trigger)


def bounded(trigger: Trigger, said: When, now_us: int) -> Trigger:
    """The rule between its start and its end, with its jitter."""
    if trigger.kind is TriggerKind.ONCE and (said.start_at or said.end_at):
        raise Invalid("start_at and end_at go with a rule that repeats: cron or every")
    if said.start_at:
        start = time_us(said.start_at, said.zone, now_us)
        if start <= now_us:
            raise Invalid(NO_START)
        trigger = replace(trigger, start_us=start)
    if said.end_at:
        trigger = replace(trigger, end_us=time_us(said.end_at, said.zone, now_us))
    if said.jitter is not None:
        trigger = replace(trigger, jitter_s=numbers.jitter_s(said.jitter))
    return checked(trigger, now_us)


def _counted_from_start(trigger: Trigger) -> Trigger:
    """Words such as "every other tuesday" count from the first time after the start."""
    fields, steps = cron.split(trigger.value) if trigger.kind is TriggerKind.CRON else ("", None)
    first_us = next_after(replace(trigger, value=fields), (trigger.start_us or 0) - 1) if steps else None
    if steps is None or first_us is None:
        return trigger
    day = moment(first_us).astimezone(zones.there(trigger.zone)).date()
    return replace(trigger, value=f"{fields} {replace(steps, first=day)}")


def checked(trigger: Trigger, now_us: int) -> Trigger:
    """The rule, if it fires at all, and each fire before the next."""
    if first(trigger, now_us) is None:
        raise Invalid("It would never run: its end comes before its first run; move the end, or leave it out")
    if trigger.jitter_s and trigger.jitter_s >= closest_fires_s(trigger):
        raise Invalid("jitter must be shorter than the time between two runs")
    return trigger


def time_us(text: str, zone: str | None, now_us: int) -> int:
    """A moment: an exact time, or words for one."""
    if not times.looks_exact(text):
        found = _in_words(text, zone, now_us)
        if found is not None and found.kind is TriggerKind.ONCE:
            return once_us(found.value)
    return us(times.parse(text, zones.zone_name(zone) if zone else None))


def _rule(said: When, now_us: int) -> Told:
    if said.loosely:
        time, by_cron, every = (_other_kinds_too(way) for way in (_time, _cron, _every))
    else:
        time, by_cron, every = _time, _cron, _every
    ways: list[tuple[str | int | None, Way]] = [
        (said.time, time),
        (said.cron, by_cron),
        (said.every, every),
        (said.when, _any),
    ]
    given = [(str(value).strip(), way) for value, way in ways if value is not None and str(value).strip()]
    if not given:
        raise NoRule
    if len(given) > 1:
        raise Invalid(SEVERAL_GIVEN)
    text, way = given[0]
    if len(text) > LONGEST_RULE:
        raise Invalid(f"A rule has at most {LONGEST_RULE} characters")
    return way(text, said.zone or None, now_us)


def _other_kinds_too(way: Way) -> Way:
    """Where one call takes any kind of rule, words under another kind's name are taken too."""

    def read_any(text: str, zone: str | None, now_us: int) -> Told:
        try:
            return way(text, zone, now_us)
        except OtherKind:
            return _any(text, zone, now_us)

    return read_any


def _time(text: str, zone: str | None, now_us: int) -> Told:
    return _exactly_or_in_words(text, zone, now_us, TriggerKind.ONCE, lambda: once_trigger(text, zone, now_us))


def _cron(text: str, zone: str | None, now_us: int) -> Told:
    return _exactly_or_in_words(text, zone, now_us, TriggerKind.CRON, lambda: cron_trigger(text, zone or "UTC"))


def _every(text: str, zone: str | None, now_us: int) -> Told:
    def exact() -> Trigger:
        return interval_trigger(text, None, now_us, zone or "UTC")

    try:
        return _exactly_or_in_words(text, zone, now_us, TriggerKind.INTERVAL, exact)
    except OtherKind:
        raise
    except Invalid:
        found = None if is_bare(text) else _in_words(f"every {text}", zone, now_us)
        if found is None:
            raise
        return Told(_of_kind(found, TriggerKind.INTERVAL, f"every {text}"), f"every {text}")


def _any(text: str, zone: str | None, now_us: int) -> Told:
    if times.looks_exact(text):
        return Told(once_trigger(text, zone, now_us))
    if NUMBER.fullmatch(text) and PLAIN_FIGURES.fullmatch(text) is None:
        raise Invalid(BARE_NUMBER.format(text))
    if cron.looks_like_rule(text):
        return Told(cron_trigger(text, zone or "UTC"))
    found = _in_words(text, zone, now_us)
    if found is not None:
        return Told(found, text)
    try:
        return Told(interval_trigger(text, None, now_us, zone or "UTC"))
    except Invalid as error:
        raise Invalid(UNREADABLE.format(text)) from error


def _exactly_or_in_words(
    text: str, zone: str | None, now_us: int, kind: TriggerKind, exact: Callable[[], Trigger]
) -> Told:
    """What is no rule of the kind that was asked for may be words; what is neither is told as that kind would."""
    try:
        return Told(exact())
    except Invalid:
        found = None if times.looks_exact(text) else _in_words(text, zone, now_us, once=kind is TriggerKind.ONCE)
        if found is None:
            raise
        return Told(_of_kind(found, kind, text), text)


def _of_kind(found: Trigger, kind: TriggerKind, text: str) -> Trigger:
    """What was asked for as one kind of rule is of that kind, whatever else the words may say."""
    if found.kind is not kind:
        what, name = GIVEN_AS[found.kind]
        raise OtherKind(f'"{text}" {what}. Give it as {name}, not as {GIVEN_AS[kind][1]}')
    return found


def is_bare(text: str) -> bool:
    """A number, with or without a unit: never words, so that a slip in one is told as what it is."""
    return text[:1] in "+-0123456789" and len(text.split()) == 1 and PLAIN_FIGURES.fullmatch(text) is None


def _in_words(text: str, zone: str | None, now_us: int, *, once: bool = False) -> Trigger | None:
    if is_bare(text):
        return None
    return read_words(text, now_us, zones.zone_name(zone) if zone else "UTC", once=once)
