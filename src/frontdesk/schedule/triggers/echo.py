"""A rule said back exactly: the rule itself, its zone, and when it fires next, there and in UTC."""

from datetime import datetime

from frontdesk import zones
from frontdesk.errors import Invalid
from frontdesk.schedule.model import Trigger, TriggerKind, moment
from frontdesk.schedule.triggers.plain import NO_WORDS, plain


def told(trigger: Trigger, fire_us: int | None) -> dict[str, str | None]:
    """The facts, for a program; the times are None when nothing follows."""
    return {
        "rule": rule(trigger),
        "zone": trigger.zone,
        "next_local": None if fire_us is None else local(trigger, fire_us),
        "next_utc": None if fire_us is None else moment(fire_us).isoformat(),
    }


def sentence(trigger: Trigger, fire_us: int | None) -> str:
    """The same, for a person."""
    until = _until(trigger)
    if fire_us is None:
        return f"{_in_words(trigger)}, {trigger.zone}{until}; it does not fire again"
    utc = moment(fire_us).isoformat()
    there = local(trigger, fire_us)
    if there is None:
        return f"{_in_words(trigger)}, {trigger.zone}{until}; next at {utc}, in a zone that is not known here"
    at = utc if trigger.zone == "UTC" else f"{there} ({utc})"
    if trigger.kind is TriggerKind.ONCE:
        return f"once, {trigger.zone}, at {at}, a {moment(fire_us).astimezone(zones.there(trigger.zone)):%A}"
    return f"{_in_words(trigger)}, {trigger.zone}{until}; next at {at}"


def _until(trigger: Trigger) -> str:
    if trigger.end_us is None:
        return ""
    there = local(trigger, trigger.end_us) or moment(trigger.end_us).isoformat()
    return f", until {datetime.fromisoformat(there).isoformat(timespec='seconds')}"


def _in_words(trigger: Trigger) -> str:
    """The rule, and the same in plain words where they say more."""
    exact = rule(trigger)
    said = plain(exact) if trigger.kind is TriggerKind.CRON else NO_WORDS
    return exact if said == NO_WORDS else f"{exact} ({said})"


def rule(trigger: Trigger) -> str:
    match trigger.kind:
        case TriggerKind.ONCE:
            return f"once {trigger.value}"
        case TriggerKind.INTERVAL:
            return f"every {trigger.value}"
        case TriggerKind.CRON:
            return f"cron {trigger.value}"


def local(trigger: Trigger, fire_us: int) -> str | None:
    """The time in the rule's zone; None where that zone is not known here."""
    try:
        return moment(fire_us).astimezone(zones.there(trigger.zone)).isoformat()
    except Invalid:
        return None
