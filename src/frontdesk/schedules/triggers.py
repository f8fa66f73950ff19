"""Computes when triggers fire: one-time, cron and interval triggers, in a zone, across changes of the clock.

A rule whose minute and hour both name times (neither starts with a star) fires once per named time. In the hour skipped
in spring, it fires right after that hour; in the hour repeated in autumn, it fires only the first time. Any other rule
fires whenever the local clock shows a matching time: twice in the repeated hour, and not at all in the skipped hour.

cronsim parses the fields and matches the days. The search for the next time is our own, because cronsim uses whole
hours and misses fires if the clock moves by half an hour (Lord Howe Island).
"""

import re
import sys
from bisect import bisect_right
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta
from functools import lru_cache
from hashlib import blake2b
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

from frontdesk import zones
from frontdesk.errors import Invalid
from frontdesk.schedules.model import EPOCH, SECOND, Trigger, TriggerKind, from_us, to_us

INVALID_TIME = (
    "Invalid time format. Use ISO 8601 like 2025-12-25T10:00:00Z or include offset, e.g. 2025-12-25T10:00:00-05:00"
)
TIME_IN_PAST = "Scheduled time must be in the future"
ISO_TIME = re.compile(
    r"(\d{4}-\d{2}-\d{2})[T ](\d{2}:\d{2})(:\d{2})?([.,]\d{1,9})?\s*(Z|UTC|GMT|[+-]\d{2}:?\d{2})?",
    re.IGNORECASE | re.ASCII,
)
EARLIEST_YEAR, LATEST_YEAR = 1971, 9000


def is_iso_time(text: str) -> bool:
    return ISO_TIME.fullmatch(text.strip()) is not None


def parse_iso_time(text: str, zone: str | None = None) -> datetime:
    """The time in UTC; a time without an offset is in `zone`."""
    shape = ISO_TIME.fullmatch(text.strip())
    if shape is None:
        raise Invalid(INVALID_TIME)
    day, hours, seconds, fraction, offset = shape.groups()
    parsed = _read_iso(f"{day}T{hours}{seconds or ':00'}{_iso_fraction(fraction)}{_iso_offset(offset)}")
    if not EARLIEST_YEAR <= parsed.year <= LATEST_YEAR:
        raise Invalid(INVALID_TIME)
    if parsed.tzinfo is not None:
        return parsed.astimezone(UTC)
    if zone is None:
        raise Invalid(INVALID_TIME)
    return resolve_local_time(parsed, zone)


def resolve_local_time(clock_time: datetime, zone: str) -> datetime:
    """The UTC time at which clocks in the zone show `clock_time`; refuses a time that they show twice or never."""
    there = ZoneInfo(zone)
    shown = [moment.astimezone(there).isoformat() for moment in zones.utc_times(clock_time, there)]
    local = clock_time.isoformat(" ", "minutes")
    if not shown:
        later = zones.end_of_gap(clock_time, there).astimezone(there)
        raise Invalid(
            f"{local} does not exist in {zone}: clocks are set forward over it. "
            f"The first time after that is {later.isoformat()}"
        )
    if len(shown) > 1:
        raise Invalid(f"{local} comes twice in {zone}, where clocks are set back. Write {shown[0]} or {shown[1]}")
    return zones.utc_times(clock_time, there)[0]


def _read_iso(text: str) -> datetime:
    try:
        return datetime.fromisoformat(text)
    except ValueError as error:
        raise Invalid(INVALID_TIME) from error


def _iso_fraction(fraction: str | None) -> str:
    return f".{fraction[1:7].ljust(6, '0')}" if fraction else ""


def _iso_offset(offset: str | None) -> str:
    if offset is None:
        return ""
    if offset[0] not in "+-":
        return "+00:00"
    return offset if ":" in offset else f"{offset[:3]}:{offset[3:]}"


INTERVAL_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}
# One number with or without a unit, or several, the larger unit first: 90, 30s, 1h30m.
INTERVAL_SHAPE = re.compile(
    r"[0-9]{1,12}|(?=[0-9])" + "".join(f"(?:(?P<{unit}>[0-9]{{1,12}}){unit})?" for unit in "wdhms"),
    re.IGNORECASE | re.ASCII,
)
LONGEST_INTERVAL_S = 100 * 366 * 86400


def parse_interval(text: str) -> int:
    """The length of an interval in seconds; a number alone means seconds."""
    plain = text.strip()
    shape = INTERVAL_SHAPE.fullmatch(plain)
    if shape is None:
        return check_interval(0, text)
    parts = [int(number) * INTERVAL_UNITS[unit] for unit, number in shape.groupdict().items() if number]
    return check_interval(sum(parts) if parts else int(plain), text)


def check_interval(length_s: int, text: str) -> int:
    """Refuse an interval of zero or of more than a century; `text` is for the message."""
    if not 1 <= length_s <= LONGEST_INTERVAL_S:
        raise Invalid(f"Invalid interval format: {text[:100]}. Use formats like '30s', '5m', '1h'")
    return length_s


def format_interval(length_s: int) -> str:
    """An interval in its largest whole unit: 90s, 5m, 1h, 2d."""
    unit = next(unit for unit in "dhms" if length_s % INTERVAL_UNITS[unit] == 0)
    return f"{length_s // INTERVAL_UNITS[unit]}{unit}"


def next_interval_fire(start_us: int, length_s: int, after_us: int) -> int:
    """The first fire after `after_us`."""
    step = length_s * SECOND
    return start_us + max(0, (after_us - start_us) // step + 1) * step


def last_interval_fire(start_us: int, length_s: int, until_us: int) -> int:
    """The last fire not after `until_us`, or the start if that is later."""
    step = length_s * SECOND
    return start_us + max(0, (until_us - start_us) // step) * step


CRON_NICKNAMES = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}
LONGEST_CRON = 200
CRON_FIELD_MAXIMA = (59, 23, 31, 12, 7)
CRON_FIELDS = re.compile(r"[\d*][\d*/,-]*(\s+[\w*/,#?-]+){1,9}", re.ASCII)
CRON_FIGURES = re.compile(r"[\d*][\d*/,-]*", re.ASCII)
CRON_STEP = re.compile(r"/([0-9]+)")
# February has a fifth Monday every 28 years, and every 40 around 2100.
CRON_HORIZON_DAYS = 41 * 366
ONE_DAY = timedelta(days=1)
# An extension of cron: `0 17 * * TUE every 2 weeks from 2026-11-24`.
CRON_EVERY = re.compile(r"every ([0-9]{1,4}) (days|weeks|months) from ([0-9]{4}-[0-9]{2}-[0-9]{2})", re.IGNORECASE)
MAX_CRON_STEPS = 1000


@dataclass(frozen=True, slots=True)
class CronSteps:
    """Every n-th day, week (from Monday) or month, counted from a first day; earlier days do not match."""

    number: int
    unit: str
    first: date

    def __str__(self) -> str:
        return f"every {self.number} {self.unit} from {self.first}"

    def on(self, day: date) -> bool:
        return day >= self.first and (self._count(day) - self._count(self.first)) % self.number == 0

    def _count(self, day: date) -> int:
        match self.unit:
            case "months":
                return day.year * 12 + day.month
            case "weeks":
                return (day.toordinal() - 1) // 7
            case _:
                return day.toordinal()


@dataclass(frozen=True, slots=True)
class CronRule:
    """A parsed rule: its times of day and its days. `appointments`: minute and hour both name times (see above)."""

    times: tuple[time, ...]
    days: CronSim
    appointments: bool
    steps: CronSteps | None = None

    def on(self, day: date) -> bool:
        return day.month in self.days.months and self.days.match_day(day) and (self.steps is None or self.steps.on(day))

    def local_times(self, after: datetime) -> Iterator[datetime]:
        """The matching local times after `after`, in order, ignoring clock changes."""
        day = after.date()
        if self.steps is not None and day < self.steps.first - ONE_DAY:
            after = datetime.combine(self.steps.first - ONE_DAY, time.max)
            day = after.date()
        if self.on(day):
            at = after.time()
            for index in range(bisect_right(self.times, at), len(self.times)):
                yield datetime.combine(day, self.times[index])
        last = min(day.toordinal() + CRON_HORIZON_DAYS, date.max.toordinal() - 40)
        while day.toordinal() < last:
            day += ONE_DAY
            if day.month not in self.days.months:
                day = (day.replace(day=1) + 32 * ONE_DAY).replace(day=1) - ONE_DAY
            elif self.on(day):
                for at in self.times:
                    yield datetime.combine(day, at)

    def fire_times(self, clock_time: datetime, zone: ZoneInfo) -> Sequence[datetime]:
        """The UTC times at which the rule fires for a matching local time."""
        shown = zones.utc_times(clock_time, zone)
        if not self.appointments:
            return shown
        return shown[:1] or [zones.end_of_gap(clock_time, zone)]


def normalize_cron(text: str) -> str:
    """A rule with one space between its fields; a nickname such as @daily becomes its five fields."""
    plain = " ".join(text.split())
    fields, every, steps = plain.partition(" every ")
    return f"{CRON_NICKNAMES.get(fields.lower(), fields)}{every}{steps.lower()}"


def looks_like_cron_fields(text: str) -> bool:
    """Whether a text may be meant as cron fields, with any number of fields."""
    return CRON_FIELDS.fullmatch(text.strip()) is not None and "*" in text


def looks_like_cron(text: str) -> bool:
    """Whether a text is meant as a cron rule: its first two fields are digits or stars, or it is a nickname."""
    first = text.split()[:2]
    return text.startswith("@") or looks_like_cron_fields(text) or (len(text.split()) >= 5 and _are_figures(first))


def _are_figures(fields: Sequence[str]) -> bool:
    return all(CRON_FIGURES.fullmatch(field) for field in fields)


@lru_cache(maxsize=4096)
def parse_cron(text: str) -> CronRule:
    """Parse five fields, and the steps after them, if any."""
    cron_text, steps = split_cron_steps(text)
    fields = cron_text.split()
    if len(fields) in {6, 7} or (len(fields) != 5 and looks_like_cron_fields(cron_text)):
        raise Invalid(
            f"Invalid cron expression: {text[:LONGEST_CRON]}",
            f"it has {len(fields)} fields; give five: minute, hour, day of the month, month, day of the week",
        )
    if len(fields) != 5 or len(text) > LONGEST_CRON:
        raise Invalid(f"Invalid cron expression: {text[:LONGEST_CRON]}")
    # */90 does not mean every 90 minutes, it would fire every hour.
    if any(
        int(step) > most
        for field, most in zip(fields, CRON_FIELD_MAXIMA, strict=True)
        for step in CRON_STEP.findall(field)
    ):
        raise Invalid(f"Invalid cron expression: {text}", "a step is larger than its field")
    try:
        # The start does not matter: the rule is only used to match days.
        read = CronSim(cron_text, EPOCH)
    except CronSimError as error:
        raise Invalid(f"Invalid cron expression: {text}") from error
    times = tuple(time(hour, minute) for hour in sorted(read.hours) for minute in sorted(read.minutes))
    return CronRule(times, read, not fields[0].startswith("*") and not fields[1].startswith("*"), steps)


def split_cron_steps(text: str) -> tuple[str, CronSteps | None]:
    """The fields, and the steps after them."""
    fields, every, _ = text.partition(" every ")
    found = CRON_EVERY.fullmatch(text[len(fields) + 1 :]) if every else None
    if found is None:
        return text, None
    try:
        steps = CronSteps(int(found[1]), found[2].lower(), date.fromisoformat(found[3]))
    except ValueError as error:
        raise Invalid(f"Invalid cron expression: {text[:LONGEST_CRON]}", f"there is no day {found[3]}") from error
    if not 1 <= steps.number <= MAX_CRON_STEPS or steps.first.year < 1970:
        raise Invalid(
            f"Invalid cron expression: {text[:LONGEST_CRON]}", f"write every 1 to {MAX_CRON_STEPS} {steps.unit}"
        )
    return fields, steps


def next_cron_fire(text: str, zone: ZoneInfo, after: datetime) -> datetime | None:
    """The first fire after `after`, in UTC; None if there is none in forty years."""
    rule = parse_cron(text)
    now = after.astimezone(zone).replace(tzinfo=None, fold=0)
    ahead = next(
        (fire for clock_time in rule.local_times(now) for fire in rule.fire_times(clock_time, zone) if fire > after),
        None,
    )
    if rule.appointments or zones.constant_offset(now.date(), zone) is not None:
        return ahead
    # Clocks may soon be set back to before `now`, and then show earlier times again.
    back = zones.utc_offset(now, zone) - zones.utc_offset(now, zone, fold=1)
    for clock_time in rule.local_times(now - back):
        if clock_time > now:
            break
        for fire in rule.fire_times(clock_time, zone):
            if fire > after:
                return fire if ahead is None else min(fire, ahead)
    return ahead


def count_cron_fires(text: str, zone: ZoneInfo, after: datetime, until: datetime) -> int:
    """The number of fires after `after` and not after `until`."""
    rule = parse_cron(text)
    low, high = (moment.astimezone(zone).replace(tzinfo=None, fold=0) for moment in (after, until))
    day, plain, changed = low.date(), 0, set[datetime]()
    while day <= high.date():
        if not rule.on(day):
            pass
        elif zones.constant_offset(day, zone) is not None:
            since = bisect_right(rule.times, low.time()) if day == low.date() else 0
            plain += (bisect_right(rule.times, high.time()) if day == high.date() else len(rule.times)) - since
        else:
            clock_times = (datetime.combine(day, at) for at in rule.times)
            changed.update(
                fire
                for clock_time in clock_times
                for fire in rule.fire_times(clock_time, zone)
                if after < fire <= until
            )
        day += ONE_DAY
    return plain + len(changed)


# A datetime after this may not fit the calendar in some zone.
LAST_MOMENT_US = 250_000_000_000 * SECOND


def next_fire_after(trigger: Trigger, after_us: int) -> int | None:
    """The first intended time after `after_us`."""
    found = _next_fire_without_end(trigger, after_us)
    if found is None or found > LAST_MOMENT_US or (trigger.end_us is not None and found > trigger.end_us):
        return None
    return found


def first_fire(trigger: Trigger, now_us: int) -> int | None:
    """The first intended time of a schedule created now; a one-time trigger keeps its time, even in the past."""
    if trigger.kind is TriggerKind.ONCE:
        return parse_once_us(trigger.value)
    return next_fire_after(trigger, now_us - 1)


def recompute_after_clock_set_back(
    trigger: Trigger, intended_us: int, now_us: int, made_us: Collection[int]
) -> tuple[Trigger, int] | None:
    """The rule and its next time if a clock that was ahead computed `intended_us`; None if the time is right.

    `made_us` is when the schedule was created and changed. An interval without its own start counts from then; its
    start moves back by whole steps, to before the first fire after the new time.
    """
    if trigger.kind is TriggerKind.ONCE:
        return None
    if trigger.kind is TriggerKind.INTERVAL and trigger.start_us is not None and trigger.start_us > now_us:
        step_us = parse_interval_cached(trigger.value) * SECOND
        if trigger.start_us - step_us in made_us:
            trigger = replace(trigger, start_us=trigger.start_us - (trigger.start_us - now_us - 1) // step_us * step_us)
    found = next_fire_after(trigger, now_us)
    return None if found is None or found >= intended_us else (trigger, found)


def preview_fires(trigger: Trigger, after_us: int, count: int) -> list[int]:
    """The next `count` times, or as many as there are."""
    found: list[int] = []
    while len(found) < count:
        following = next_fire_after(trigger, found[-1] if found else after_us)
        if following is None:
            break
        found.append(following)
    return found


def add_jitter(trigger: Trigger, schedule_id: int, intended_us: int) -> int:
    """The intended time plus jitter; the jitter is fixed for each schedule and time."""
    if trigger.jitter_s <= 0:
        return intended_us
    seed = blake2b(f"{schedule_id}:{intended_us}".encode(), digest_size=8).digest()
    return intended_us + int.from_bytes(seed) % (trigger.jitter_s * SECOND + 1)


@lru_cache(maxsize=4096)
def parse_once_us(value: str) -> int:
    return to_us(parse_iso_time(value))


@lru_cache(maxsize=4096)
def parse_interval_cached(value: str) -> int:
    return parse_interval(value)


def _next_fire_without_end(trigger: Trigger, after_us: int) -> int | None:
    match trigger.kind:
        case TriggerKind.ONCE:
            at = parse_once_us(trigger.value)
            return at if at > after_us else None
        case TriggerKind.INTERVAL:
            return next_interval_fire(trigger.start_us or 0, parse_interval_cached(trigger.value), after_us)
        case TriggerKind.CRON:
            after = after_us if trigger.start_us is None else max(after_us, trigger.start_us - 1)
            if after > LAST_MOMENT_US:
                return None
            fire = next_cron_fire(trigger.value, zones.zone_of_name(trigger.zone), from_us(after))
            return None if fire is None else to_us(fire)


START_IN_PAST = "Start time must be in the future"
ONCE_IN_PAST = TIME_IN_PAST
# A leap year with both clock changes still to come; any fixed time would do.
COMPARE_FIRES_FROM_US = 1_704_067_200 * SECOND
COMPARED_FIRES = 100


def cron_trigger(text: str, zone: str = "UTC") -> Trigger:
    """The trigger of a cron rule of five fields, or of a nickname such as @daily."""
    trigger = Trigger(TriggerKind.CRON, normalize_cron(text), zones.zone_name(zone))
    if next_fire_after(trigger, COMPARE_FIRES_FROM_US) is None:
        raise Invalid(f"Invalid cron expression: {text.strip()}")
    return trigger


def interval_trigger(text: str, start_us: int | None, now_us: int, zone: str = "UTC") -> Trigger:
    """The trigger of an interval; it first fires at its start, or one interval from now if it has no start."""
    length = parse_interval(text)
    if start_us is not None and start_us <= now_us:
        raise Invalid(START_IN_PAST)
    start = now_us + length * SECOND if start_us is None else start_us
    return Trigger(TriggerKind.INTERVAL, format_interval(length), zones.zone_name(zone), start_us=start)


def once_trigger(text: str, zone: str | None, now_us: int) -> Trigger:
    """The trigger of a time with an offset, or of a time in a zone."""
    name = None if zone is None else zones.zone_name(zone)
    at = to_us(parse_iso_time(text, name))
    if at <= now_us:
        raise Invalid(ONCE_IN_PAST)
    return Trigger(TriggerKind.ONCE, from_us(at).isoformat(), name or "UTC")


def closest_fires_s(trigger: Trigger) -> int:
    """The shortest time between two fires, in seconds; the largest number for a one-time trigger."""
    if trigger.kind is TriggerKind.ONCE:
        return sys.maxsize
    if trigger.kind is TriggerKind.INTERVAL:
        return parse_interval_cached(trigger.value)
    closest, at = sys.maxsize, next_fire_after(trigger, COMPARE_FIRES_FROM_US)
    for _ in range(COMPARED_FIRES):
        following = None if at is None else next_fire_after(trigger, at)
        if at is None or following is None:
            break
        closest, at = min(closest, (following - at) // SECOND), following
    return closest
