"""When a trigger fires next."""

from collections.abc import Collection
from dataclasses import replace
from functools import lru_cache
from hashlib import blake2b

from frontdesk import zones
from frontdesk.schedule.model import SECOND, Trigger, TriggerKind, moment, us
from frontdesk.schedule.triggers import cron, interval
from frontdesk.schedule.words import times

# Past this, a datetime in some zone no longer fits the calendar.
LAST_MOMENT_US = 250_000_000_000 * SECOND


def next_after(trigger: Trigger, after_us: int) -> int | None:
    """The first time the trigger is meant to fire that is later than `after_us`."""
    found = _unbounded(trigger, after_us)
    if found is None or found > LAST_MOMENT_US or (trigger.end_us is not None and found > trigger.end_us):
        return None
    return found


def first(trigger: Trigger, now_us: int) -> int | None:
    """When a schedule made now is first meant to fire; a one-time trigger keeps its time, be it past."""
    if trigger.kind is TriggerKind.ONCE:
        return once_us(trigger.value)
    return next_after(trigger, now_us - 1)


def set_back(trigger: Trigger, intended_us: int, now_us: int, made_us: Collection[int]) -> tuple[Trigger, int] | None:
    """The rule and its next time, where `intended_us` was reckoned by a clock that was ahead; None where it holds.

    `made_us` is when the schedule was made and changed. An interval without a start of its own counts from then, and
    is moved by whole steps to count from this side of the new time.
    """
    if trigger.kind is TriggerKind.ONCE:
        return None
    if trigger.kind is TriggerKind.INTERVAL and trigger.start_us is not None and trigger.start_us > now_us:
        step_us = interval_s(trigger.value) * SECOND
        if trigger.start_us - step_us in made_us:
            trigger = replace(trigger, start_us=trigger.start_us - (trigger.start_us - now_us - 1) // step_us * step_us)
    found = next_after(trigger, now_us)
    return None if found is None or found >= intended_us else (trigger, found)


def preview(trigger: Trigger, after_us: int, count: int) -> list[int]:
    """The next `count` times, or as many as there are."""
    found: list[int] = []
    while len(found) < count:
        following = next_after(trigger, found[-1] if found else after_us)
        if following is None:
            break
        found.append(following)
    return found


def fire_at(trigger: Trigger, schedule_id: int, intended_us: int) -> int:
    """The intended time and its share of the jitter, which is the same however often one asks."""
    if trigger.jitter_s <= 0:
        return intended_us
    seed = blake2b(f"{schedule_id}:{intended_us}".encode(), digest_size=8).digest()
    return intended_us + int.from_bytes(seed) % (trigger.jitter_s * SECOND + 1)


@lru_cache(maxsize=4096)
def once_us(value: str) -> int:
    return us(times.parse(value))


@lru_cache(maxsize=4096)
def interval_s(value: str) -> int:
    return interval.seconds(value)


def _unbounded(trigger: Trigger, after_us: int) -> int | None:
    match trigger.kind:
        case TriggerKind.ONCE:
            at = once_us(trigger.value)
            return at if at > after_us else None
        case TriggerKind.INTERVAL:
            return interval.next_us(trigger.start_us or 0, interval_s(trigger.value), after_us)
        case TriggerKind.CRON:
            after = after_us if trigger.start_us is None else max(after_us, trigger.start_us - 1)
            if after > LAST_MOMENT_US:
                return None
            fire = cron.next_fire(trigger.value, zones.there(trigger.zone), moment(after))
            return None if fire is None else us(fire)
