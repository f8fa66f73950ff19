"""What a schedule is made of, and made into: what was asked becomes a `NewSchedule`, a change another one."""

from dataclasses import replace

from frontdesk import zones
from frontdesk.errors import Invalid
from frontdesk.loop.text import is_storable
from frontdesk.schedule import numbers, reading
from frontdesk.schedule.asked import CLEARABLE, Asked, Change, Wish
from frontdesk.schedule.limits import Limits
from frontdesk.schedule.model import (
    SECOND,
    Forward,
    Misfire,
    NewSchedule,
    Overlap,
    Policy,
    Schedule,
    Trigger,
    TriggerKind,
)
from frontdesk.schedule.reading import Told
from frontdesk.schedule.triggers.parse import closest_fires_s

NO_PROMPT = "Missing required arguments: agent-id and prompt"
NOTHING = "Say what is to be different: the prompt, the rule, its zone, max_repetitions, what to clear, …"
NO_TIMELINE = "There is no timeline yet that an answer could go into; leave `timeline` out"


def made(asked: Asked, agent_id: str, user_id: str | None, limits: Limits, now_us: int) -> NewSchedule:
    """A schedule as it was asked for; its conversation is chosen elsewhere."""
    prompt = _prompt(asked.prompt, limits)
    told = reading.read(asked, now_us)
    most = numbers.max_repetitions(asked.max_repetitions)
    limits.check_pace(told.trigger, most)
    return NewSchedule(
        agent_id=agent_id,
        prompt=prompt,
        trigger=told.trigger,
        user_id=user_id,
        policy=_policy(asked, Policy()),
        max_repetitions=most,
        words=told.words,
        forward=_forward(asked, Forward()),
    )


def changed(old: Schedule, change: Change, limits: Limits, now_us: int) -> NewSchedule:
    """The schedule as it is to be; what the change does not name stays."""
    if change == Change():
        raise Invalid(NOTHING)
    unknown = change.clear.difference(CLEARABLE)
    if unknown:
        raise Invalid(f"{', '.join(sorted(unknown))} cannot be cleared; these can: {', '.join(sorted(CLEARABLE))}")
    was = old.what
    told = _rule(was, change, now_us)
    new = replace(
        was,
        prompt=was.prompt if change.prompt is None else _new_prompt(change.prompt, limits),
        trigger=told.trigger,
        words=told.words,
        policy=_policy(change, was.policy),
        max_repetitions=_repetitions(old, change),
        forward=_forward(change, was.forward),
        conversation_id=None if "conversation_id" in change.clear else was.conversation_id,
    )
    limits.check_pace(new.trigger, new.max_repetitions)
    return new


def _rule(was: NewSchedule, change: Change, now_us: int) -> Told:
    if change.says_nothing and not change.clear:
        return Told(was.trigger, was.words)
    old = was.trigger
    if any((change.time, change.cron, change.every, change.when)):
        # A new time is read in a zone only if one is named with it; a rule stays in the zone that it was in.
        zone = change.zone or (None if change.time else old.zone)
        told = reading.read(replace(change, zone=zone, start_at=None, end_at=None, jitter=None), now_us)
        told = replace(told, trigger=_between(told.trigger, old))
    elif change.zone:
        told = Told(replace(old, zone=zones.zone_name(change.zone)))
    else:
        told = Told(old, was.words)
    return replace(told, trigger=reading.bounded(_cleared(told.trigger, change, now_us), change, now_us))


def _between(new: Trigger, old: Trigger) -> Trigger:
    """A new rule ends when the old one would have, unless its words say when, and has its jitter."""
    if new.kind is TriggerKind.ONCE:
        return new
    return replace(new, end_us=old.end_us if new.end_us is None else new.end_us, jitter_s=old.jitter_s)


def _cleared(trigger: Trigger, change: Change, now_us: int) -> Trigger:
    if "start_at" in change.clear:
        counted = trigger.kind is TriggerKind.INTERVAL
        start = now_us + closest_fires_s(trigger) * SECOND if counted else None
        trigger = replace(trigger, start_us=start)
    if "end_at" in change.clear:
        trigger = replace(trigger, end_us=None)
    return replace(trigger, jitter_s=0) if "jitter" in change.clear else trigger


def _new_prompt(text: str, limits: Limits) -> str:
    if not text.strip():
        raise Invalid("The new prompt is empty; leave it out to keep the one it has")
    return _prompt(text, limits)


def _prompt(text: str | None, limits: Limits) -> str:
    if text is None or not text.strip():
        raise Invalid(NO_PROMPT)
    limits.check_prompt(text)
    if not is_storable(text):
        raise Invalid("The prompt holds a character that cannot be stored: NUL, or half of a surrogate pair; remove it")
    return text


def _policy(said: Wish, was: Policy) -> Policy:
    late = None if _takes_away(said, "max_late") else was.max_late_s
    return Policy(
        overlap=was.overlap if said.overlap is None else numbers.one_of(Overlap, "overlap", said.overlap),
        misfire=was.misfire if said.misfire is None else numbers.one_of(Misfire, "misfire", said.misfire),
        max_late_s=late if said.max_late is None else numbers.max_late_s(said.max_late),
        attempts=was.attempts if said.attempts is None else numbers.attempts(said.attempts),
    )


def _repetitions(old: Schedule, change: Change) -> int | None:
    if "max_repetitions" in change.clear:
        return None
    if change.max_repetitions is None:
        return old.what.max_repetitions
    most = numbers.max_repetitions(change.max_repetitions)
    if most is not None and most <= old.fired:
        raise Invalid(f"It has run {old.fired} times already; max-repetitions must be more, or cancel it")
    return most


def _forward(said: Wish, was: Forward) -> Forward:
    if said.timeline:
        raise Invalid(NO_TIMELINE)
    kept = None if _takes_away(said, "webhook") else was.webhook
    return Forward(said.webhook or kept, was.timeline and said.timeline is None)


def _takes_away(said: Wish, name: str) -> bool:
    return isinstance(said, Change) and name in said.clear
