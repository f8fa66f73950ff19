"""Turns a request into a schedule: parses its rule, builds or changes it, and checks the limits."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from frontdesk import zones
from frontdesk.errors import Conflict, Invalid
from frontdesk.schedules.model import (
    SECOND,
    AnswerForwarding,
    Misfire,
    Overlap,
    Schedule,
    ScheduleDefinition,
    SchedulePolicy,
    Trigger,
    TriggerKind,
    from_us,
    to_us,
)
from frontdesk.schedules.phrases.parser import parse_phrase
from frontdesk.schedules.requests import (
    CLEARABLE_FIELDS,
    NewSchedule,
    RuleRequest,
    ScheduleChange,
    ScheduleFields,
    parse_attempts,
    parse_choice,
    parse_jitter_s,
    parse_max_late_s,
    parse_max_repetitions,
)
from frontdesk.schedules.triggers import (
    START_IN_PAST,
    closest_fires_s,
    cron_trigger,
    first_fire,
    interval_trigger,
    is_iso_time,
    looks_like_cron,
    next_fire_after,
    once_trigger,
    parse_iso_time,
    parse_once_us,
    split_cron_steps,
)
from frontdesk.text import is_storable

MAX_SCHEDULES_OF_RUN = 3


@dataclass(frozen=True, slots=True)
class CurrentRun:
    """A run that an agent is working on: its delivery id, and whether its schedule is recurring."""

    delivery_id: str
    schedule_id: int
    recurring: bool


def is_recurring(trigger: Trigger, max_repetitions: int | None) -> bool:
    """Whether the trigger may fire more than once; an interval that fires once is a delay."""
    return trigger.kind is not TriggerKind.ONCE and max_repetitions != 1


def check_may_schedule(runs: Sequence[CurrentRun], made: int, *, recurring: bool) -> None:
    """Raise an error if an agent must not schedule this during these runs; `made` counts the schedules they made."""
    again = next((run for run in runs if run.recurring), None)
    if recurring and again is not None:
        raise Conflict(
            f"This is a scheduled run of schedule {again.schedule_id}, which repeats by itself; "
            "it needs no other schedule. Answer its prompt, or change that schedule"
        )
    if runs and made >= MAX_SCHEDULES_OF_RUN:
        raise Conflict(
            f"This run of schedule {runs[0].schedule_id} has made {made} schedules, which is as many as one run may"
        )


def check_may_start_run(runs: Sequence[CurrentRun]) -> None:
    """Raise an error if a run would start another run, because that could go on forever."""
    if runs:
        raise Conflict(
            f"This is a scheduled run of schedule {runs[0].schedule_id}, and a run cannot start another; "
            "ask again when it has ended"
        )


@dataclass(frozen=True, slots=True)
class ScheduleLimits:
    """The limits of schedules: the same for all agents and callers."""

    count: int = 200
    shortest_s: int = 10
    longest_prompt: int = 20_000

    def check_count(self, agent_id: str, count: int) -> None:
        if count >= self.count:
            raise Conflict(f"Agent '{agent_id}' has {self.count} schedules, the most it may have; cancel some first")

    def check_prompt(self, prompt: str) -> None:
        if len(prompt) > self.longest_prompt:
            raise Invalid(f"The prompt has {len(prompt)} characters; at most {self.longest_prompt} are allowed")

    def check_pace(self, trigger: Trigger, max_repetitions: int | None) -> None:
        """Raise `Invalid` if two fires of the rule are too close together."""
        closest = closest_fires_s(trigger)
        if is_recurring(trigger, max_repetitions) and closest < self.shortest_s:
            raise Invalid(
                f"It would run every {closest} s; runs must be at least {self.shortest_s} s apart "
                "(FRONTDESK_SCHEDULE_SHORTEST)"
            )


NO_RULE = "Must specify one of --time, --cron, or --every"
SEVERAL_RULES = "Cannot specify multiple scheduling options"
UNREADABLE_RULE = (
    "'{}' is no rule that can be read. Write a time (2025-12-25T10:00:00Z), a cron rule (0 9 * * MON-FRI), "
    "an interval (every 30m), or words such as: in two minutes, tomorrow at 9, every weekday at 9 Berlin time"
)
BARE_NUMBER = (
    '"{0}" alone may be a time, a date or a length. Write for example "at 10:00", "2027-01-01 at 09:00", '
    '"in 10 minutes" or "every 10 minutes"'
)
LONGEST_RULE = 500
# `9am`, `17:30` and `24.12.2026` are clear; other single words with digits are rules, or mistakes in a rule.
PLAIN_FIGURES = re.compile(
    r"\d{1,2}([:.]\d{2})?[ap]\.?m\.?|\d{1,2}:\d{2}(:\d{2})?|\d{1,2}([./-])\d{1,2}\3\d{4}|\d{1,2}\.\d{1,2}\.|"
    r"\d{4}([/-])\d{1,2}\4\d{1,2}",
    re.IGNORECASE,
)
NUMBER = re.compile(r"[+-]?[\d.,]+")
# A description of each kind of rule, and the parameter for it.
KIND_PARAMETERS = {
    TriggerKind.ONCE: ("is one moment", "time"),
    TriggerKind.CRON: ("repeats by the calendar", "cron"),
    TriggerKind.INTERVAL: ("repeats at an interval", "every"),
}


# Parses a rule: (text, zone, now_us).
RuleParser = Callable[[str, str | None, int], "ParsedRule"]


class MissingRule(Invalid):
    """The request has no rule; the message is PromptYoSelf's, and interfaces with more fields replace it."""

    def __init__(self) -> None:
        super().__init__(NO_RULE)


class OtherRuleKind(Invalid):
    """The words mean another kind of rule than the field takes."""


@dataclass(frozen=True, slots=True)
class ParsedRule:
    """A parsed rule, with the plain words that it was parsed from, if any."""

    trigger: Trigger
    words: str | None = None


def parse_rule(request: RuleRequest, now_us: int) -> ParsedRule:
    """Parse a rule with its bounds and jitter; raises an error if it would never fire."""
    parsed = _parse_one_rule(request, now_us)
    if request.end_at and parsed.trigger.end_us is not None:
        raise Invalid("The words say already when it ends; leave end_at out, or those words")
    trigger = apply_bounds(parsed.trigger, request, now_us)
    return replace(parsed, trigger=_count_steps_from_start(trigger) if parsed.words and request.start_at else trigger)


def apply_bounds(trigger: Trigger, request: RuleRequest, now_us: int) -> Trigger:
    """The rule with its start, end and jitter."""
    if trigger.kind is TriggerKind.ONCE and (request.start_at or request.end_at):
        raise Invalid("start_at and end_at go with a rule that repeats: cron or every")
    if request.start_at:
        start = parse_time_us(request.start_at, request.zone, now_us)
        if start <= now_us:
            raise Invalid(START_IN_PAST)
        trigger = replace(trigger, start_us=start)
    if request.end_at:
        trigger = replace(trigger, end_us=parse_time_us(request.end_at, request.zone, now_us))
    if request.jitter is not None:
        trigger = replace(trigger, jitter_s=parse_jitter_s(request.jitter))
    return check_fires(trigger, now_us)


def _count_steps_from_start(trigger: Trigger) -> Trigger:
    """Words such as "every other tuesday" count from the first fire after the start."""
    fields, steps = split_cron_steps(trigger.value) if trigger.kind is TriggerKind.CRON else ("", None)
    first_us = next_fire_after(replace(trigger, value=fields), (trigger.start_us or 0) - 1) if steps else None
    if steps is None or first_us is None:
        return trigger
    day = from_us(first_us).astimezone(zones.zone_of_name(trigger.zone)).date()
    return replace(trigger, value=f"{fields} {replace(steps, first=day)}")


def check_fires(trigger: Trigger, now_us: int) -> Trigger:
    """Raise an error if a rule never fires, or if its jitter reaches the next fire."""
    if first_fire(trigger, now_us) is None:
        raise Invalid("It would never run: its end comes before its first run; move the end, or leave it out")
    if trigger.jitter_s and trigger.jitter_s >= closest_fires_s(trigger):
        raise Invalid("jitter must be shorter than the time between two runs")
    return trigger


def parse_time_us(text: str, zone: str | None, now_us: int) -> int:
    """A time, exact or in words."""
    if not is_iso_time(text):
        found = _parse_words(text, zone, now_us)
        if found is not None and found.kind is TriggerKind.ONCE:
            return parse_once_us(found.value)
    return to_us(parse_iso_time(text, zones.zone_name(zone) if zone else None))


def _parse_one_rule(request: RuleRequest, now_us: int) -> ParsedRule:
    if request.any_kind:
        time, by_cron, every = (_accept_any_kind(parse) for parse in (_parse_time, _parse_cron, _parse_every))
    else:
        time, by_cron, every = _parse_time, _parse_cron, _parse_every
    fields: list[tuple[str | int | None, RuleParser]] = [
        (request.time, time),
        (request.cron, by_cron),
        (request.every, every),
        (request.when, _parse_any),
    ]
    given = [(str(value).strip(), parse) for value, parse in fields if value is not None and str(value).strip()]
    if not given:
        raise MissingRule
    if len(given) > 1:
        raise Invalid(SEVERAL_RULES)
    text, parse = given[0]
    if len(text) > LONGEST_RULE:
        raise Invalid(f"A rule has at most {LONGEST_RULE} characters")
    return parse(text, request.zone or None, now_us)


def _accept_any_kind(parse: RuleParser) -> RuleParser:
    """Also accept words for another kind of rule than the field's, if the caller accepts any kind."""

    def read_any(text: str, zone: str | None, now_us: int) -> ParsedRule:
        try:
            return parse(text, zone, now_us)
        except OtherRuleKind:
            return _parse_any(text, zone, now_us)

    return read_any


def _parse_time(text: str, zone: str | None, now_us: int) -> ParsedRule:
    return _parse_exact_or_words(text, zone, now_us, TriggerKind.ONCE, lambda: once_trigger(text, zone, now_us))


def _parse_cron(text: str, zone: str | None, now_us: int) -> ParsedRule:
    return _parse_exact_or_words(text, zone, now_us, TriggerKind.CRON, lambda: cron_trigger(text, zone or "UTC"))


def _parse_every(text: str, zone: str | None, now_us: int) -> ParsedRule:
    def exact() -> Trigger:
        return interval_trigger(text, None, now_us, zone or "UTC")

    try:
        return _parse_exact_or_words(text, zone, now_us, TriggerKind.INTERVAL, exact)
    except OtherRuleKind:
        raise
    except Invalid:
        found = None if is_bare_number(text) else _parse_words(f"every {text}", zone, now_us)
        if found is None:
            raise
        return ParsedRule(_require_kind(found, TriggerKind.INTERVAL, f"every {text}"), f"every {text}")


def _parse_any(text: str, zone: str | None, now_us: int) -> ParsedRule:
    if is_iso_time(text):
        return ParsedRule(once_trigger(text, zone, now_us))
    if NUMBER.fullmatch(text) and PLAIN_FIGURES.fullmatch(text) is None:
        raise Invalid(BARE_NUMBER.format(text))
    if looks_like_cron(text):
        return ParsedRule(cron_trigger(text, zone or "UTC"))
    found = _parse_words(text, zone, now_us)
    if found is not None:
        return ParsedRule(found, text)
    try:
        return ParsedRule(interval_trigger(text, None, now_us, zone or "UTC"))
    except Invalid as error:
        raise Invalid(UNREADABLE_RULE.format(text)) from error


def _parse_exact_or_words(
    text: str, zone: str | None, now_us: int, kind: TriggerKind, exact: Callable[[], Trigger]
) -> ParsedRule:
    """Parse a rule of this kind, or words for one; if both fail, raise the error of the rule."""
    try:
        return ParsedRule(exact())
    except Invalid:
        found = None if is_iso_time(text) else _parse_words(text, zone, now_us, once=kind is TriggerKind.ONCE)
        if found is None:
            raise
        return ParsedRule(_require_kind(found, kind, text), text)


def _require_kind(found: Trigger, kind: TriggerKind, text: str) -> Trigger:
    """Raise an error if the words mean another kind of rule than the field takes."""
    if found.kind is not kind:
        what, name = KIND_PARAMETERS[found.kind]
        raise OtherRuleKind(f'"{text}" {what}. Give it as {name}, not as {KIND_PARAMETERS[kind][1]}')
    return found


def is_bare_number(text: str) -> bool:
    """Whether this is a number, with or without a unit. It is never parsed as words, so errors are about numbers."""
    return text[:1] in "+-0123456789" and len(text.split()) == 1 and PLAIN_FIGURES.fullmatch(text) is None


def _parse_words(text: str, zone: str | None, now_us: int, *, once: bool = False) -> Trigger | None:
    if is_bare_number(text):
        return None
    return parse_phrase(text, now_us, zones.zone_name(zone) if zone else "UTC", once=once)


NO_PROMPT = "Missing required arguments: agent-id and prompt"
NO_CHANGE = "Say what is to be different: the prompt, the rule, its zone, max_repetitions, what to clear, …"
NO_TIMELINE = "There is no timeline yet that an answer could go into; leave `timeline` out"


def build_schedule(
    request: NewSchedule, agent_id: str, user_id: str | None, limits: ScheduleLimits, now_us: int
) -> ScheduleDefinition:
    """The definition of a new schedule; its conversation is chosen elsewhere."""
    prompt = _check_prompt(request.prompt, limits)
    parsed = parse_rule(request, now_us)
    most = parse_max_repetitions(request.max_repetitions)
    limits.check_pace(parsed.trigger, most)
    return ScheduleDefinition(
        agent_id=agent_id,
        prompt=prompt,
        trigger=parsed.trigger,
        user_id=user_id,
        policy=_build_policy(request, SchedulePolicy()),
        max_repetitions=most,
        words=parsed.words,
        forward=_build_forwarding(request, AnswerForwarding()),
    )


def change_schedule(old: Schedule, change: ScheduleChange, limits: ScheduleLimits, now_us: int) -> ScheduleDefinition:
    """The changed definition of a schedule; fields that the change leaves out stay."""
    if change == ScheduleChange():
        raise Invalid(NO_CHANGE)
    unknown = change.clear.difference(CLEARABLE_FIELDS)
    if unknown:
        raise Invalid(
            f"{', '.join(sorted(unknown))} cannot be cleared; these can: {', '.join(sorted(CLEARABLE_FIELDS))}"
        )
    was = old.what
    parsed = _changed_rule(was, change, now_us)
    new = replace(
        was,
        prompt=was.prompt if change.prompt is None else _check_changed_prompt(change.prompt, limits),
        trigger=parsed.trigger,
        words=parsed.words,
        policy=_build_policy(change, was.policy),
        max_repetitions=_changed_repetitions(old, change),
        forward=_build_forwarding(change, was.forward),
        conversation_id=None if "conversation_id" in change.clear else was.conversation_id,
    )
    limits.check_pace(new.trigger, new.max_repetitions)
    return new


def _changed_rule(was: ScheduleDefinition, change: ScheduleChange, now_us: int) -> ParsedRule:
    if change.is_empty and not change.clear:
        return ParsedRule(was.trigger, was.words)
    old = was.trigger
    if any((change.time, change.cron, change.every, change.when)):
        # A new time has only a zone that is given with it; a new rule stays in the zone of the old one.
        zone = change.zone or (None if change.time else old.zone)
        parsed = parse_rule(replace(change, zone=zone, start_at=None, end_at=None, jitter=None), now_us)
        parsed = replace(parsed, trigger=_keep_end_and_jitter(parsed.trigger, old))
    elif change.zone:
        parsed = ParsedRule(replace(old, zone=zones.zone_name(change.zone)))
    else:
        parsed = ParsedRule(old, was.words)
    return replace(parsed, trigger=apply_bounds(_clear_trigger_fields(parsed.trigger, change, now_us), change, now_us))


def _keep_end_and_jitter(new: Trigger, old: Trigger) -> Trigger:
    """The new rule with the jitter of the old one, and with its end unless the new words have an end."""
    if new.kind is TriggerKind.ONCE:
        return new
    return replace(new, end_us=old.end_us if new.end_us is None else new.end_us, jitter_s=old.jitter_s)


def _clear_trigger_fields(trigger: Trigger, change: ScheduleChange, now_us: int) -> Trigger:
    if "start_at" in change.clear:
        counted = trigger.kind is TriggerKind.INTERVAL
        start = now_us + closest_fires_s(trigger) * SECOND if counted else None
        trigger = replace(trigger, start_us=start)
    if "end_at" in change.clear:
        trigger = replace(trigger, end_us=None)
    return replace(trigger, jitter_s=0) if "jitter" in change.clear else trigger


def _check_changed_prompt(text: str, limits: ScheduleLimits) -> str:
    if not text.strip():
        raise Invalid("The new prompt is empty; leave it out to keep the one it has")
    return _check_prompt(text, limits)


def _check_prompt(text: str | None, limits: ScheduleLimits) -> str:
    if text is None or not text.strip():
        raise Invalid(NO_PROMPT)
    limits.check_prompt(text)
    if not is_storable(text):
        raise Invalid("The prompt holds a character that cannot be stored: NUL, or half of a surrogate pair; remove it")
    return text


def _build_policy(request: ScheduleFields, was: SchedulePolicy) -> SchedulePolicy:
    late = None if _clears(request, "max_late") else was.max_late_s
    return SchedulePolicy(
        overlap=was.overlap if request.overlap is None else parse_choice(Overlap, "overlap", request.overlap),
        misfire=was.misfire if request.misfire is None else parse_choice(Misfire, "misfire", request.misfire),
        max_late_s=late if request.max_late is None else parse_max_late_s(request.max_late),
        attempts=was.attempts if request.attempts is None else parse_attempts(request.attempts),
    )


def _changed_repetitions(old: Schedule, change: ScheduleChange) -> int | None:
    if "max_repetitions" in change.clear:
        return None
    if change.max_repetitions is None:
        return old.what.max_repetitions
    most = parse_max_repetitions(change.max_repetitions)
    if most is not None and most <= old.fired:
        raise Invalid(f"It has run {old.fired} times already; max-repetitions must be more, or cancel it")
    return most


def _build_forwarding(request: ScheduleFields, was: AnswerForwarding) -> AnswerForwarding:
    if request.timeline:
        raise Invalid(NO_TIMELINE)
    kept = None if _clears(request, "webhook") else was.webhook
    return AnswerForwarding(request.webhook or kept, was.timeline and request.timeline is None)


def _clears(request: ScheduleFields, name: str) -> bool:
    return isinstance(request, ScheduleChange) and name in request.clear
