"""Triggers from exact rules: a cron rule, an interval, a time; and how close their fires come."""

import sys

from frontdesk import zones
from frontdesk.errors import Invalid
from frontdesk.schedule.model import SECOND, Trigger, TriggerKind, moment, us
from frontdesk.schedule.triggers import cron, interval
from frontdesk.schedule.triggers.next import interval_s, next_after
from frontdesk.schedule.words import times

NO_START = "Start time must be in the future"
NO_TIME = times.PAST
# A leap year with both changes of the clock ahead; any fixed time would do.
LOOK_FROM_US = 1_704_067_200 * SECOND
LOOKED_AT = 100


def cron_trigger(text: str, zone: str = "UTC") -> Trigger:
    """A rule of five fields, or a nickname such as @daily."""
    trigger = Trigger(TriggerKind.CRON, cron.normal(text), zones.zone_name(zone))
    if next_after(trigger, LOOK_FROM_US) is None:
        raise Invalid(f"Invalid cron expression: {text.strip()}")
    return trigger


def interval_trigger(text: str, start_us: int | None, now_us: int, zone: str = "UTC") -> Trigger:
    """An interval; it first fires at its start, or where none is given one interval from now."""
    length = interval.seconds(text)
    if start_us is not None and start_us <= now_us:
        raise Invalid(NO_START)
    start = now_us + length * SECOND if start_us is None else start_us
    return Trigger(TriggerKind.INTERVAL, interval.normal(length), zones.zone_name(zone), start_us=start)


def once_trigger(text: str, zone: str | None, now_us: int) -> Trigger:
    """A time with an offset, or without one where a zone is named."""
    name = None if zone is None else zones.zone_name(zone)
    at = us(times.parse(text, name))
    if at <= now_us:
        raise Invalid(NO_TIME)
    return Trigger(TriggerKind.ONCE, moment(at).isoformat(), name or "UTC")


def closest_fires_s(trigger: Trigger) -> int:
    """The shortest time between two fires, in seconds; endless for what fires once."""
    if trigger.kind is TriggerKind.ONCE:
        return sys.maxsize
    if trigger.kind is TriggerKind.INTERVAL:
        return interval_s(trigger.value)
    closest, at = sys.maxsize, next_after(trigger, LOOK_FROM_US)
    for _ in range(LOOKED_AT):
        following = None if at is None else next_after(trigger, at)
        if at is None or following is None:
            break
        closest, at = min(closest, (following - at) // SECOND), following
    return closest
