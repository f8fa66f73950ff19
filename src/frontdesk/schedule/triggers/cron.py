"""Cron rules of five fields in a zone, across changes of the clock by the rule of Debian's cron.

A rule whose minute and hour both name times (neither begins with a star) keeps its appointments: what falls into the
hour that is skipped in spring fires right after it, and what falls into the hour that comes twice in autumn fires the
first time only. Any other rule fires whenever the clock on the wall shows a matching time: in the hour that comes
twice it fires in both, and in the skipped hour there is nothing to fire at.

cronsim reads the fields and knows the days. The walk is our own, because cronsim goes by whole hours and misses
fires where the clock moves by half an hour (Lord Howe Island).
"""

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

from frontdesk import zones
from frontdesk.errors import Invalid
from frontdesk.schedule.model import EPOCH

NICKNAMES = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}
LONGEST = 200
MOST = (59, 23, 31, 12, 7)
FIELDS = re.compile(r"[\d*][\d*/,-]*(\s+[\w*/,#?-]+){1,9}", re.ASCII)
FIGURES = re.compile(r"[\d*][\d*/,-]*", re.ASCII)
STEP = re.compile(r"/([0-9]+)")
# February has a fifth Monday every 28 years, and every 40 around 2100.
GIVE_UP_DAYS = 41 * 366
DAY = timedelta(days=1)
# What cron itself has no way to say: `0 17 * * TUE every 2 weeks from 2026-11-24`.
STEPS = re.compile(r"every ([0-9]{1,4}) (days|weeks|months) from ([0-9]{4}-[0-9]{2}-[0-9]{2})", re.IGNORECASE)
MOST_STEPS = 1000


@dataclass(frozen=True, slots=True)
class Steps:
    """Every so manieth day, week (from Monday) or month, counted from that of a first day; nothing before that day."""

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
class Rule:
    """A rule that was read: its times of the day, its days, and whether it keeps appointments (see above)."""

    times: tuple[time, ...]
    days: CronSim
    appointments: bool
    steps: Steps | None = None

    def on(self, day: date) -> bool:
        return day.month in self.days.months and self.days.match_day(day) and (self.steps is None or self.steps.on(day))

    def walls(self, after: datetime) -> Iterator[datetime]:
        """The matching times on a clock that is never changed, after the one given, in order."""
        day = after.date()
        if self.steps is not None and day < self.steps.first - DAY:
            after = datetime.combine(self.steps.first - DAY, time.max)
            day = after.date()
        if self.on(day):
            at = after.time()
            for index in range(bisect_right(self.times, at), len(self.times)):
                yield datetime.combine(day, self.times[index])
        last = min(day.toordinal() + GIVE_UP_DAYS, date.max.toordinal() - 40)
        while day.toordinal() < last:
            day += DAY
            if day.month not in self.days.months:
                day = (day.replace(day=1) + 32 * DAY).replace(day=1) - DAY
            elif self.on(day):
                for at in self.times:
                    yield datetime.combine(day, at)

    def fires(self, wall: datetime, zone: ZoneInfo) -> Sequence[datetime]:
        """When a matching time makes the rule fire, in UTC."""
        shown = zones.moments(wall, zone)
        if not self.appointments:
            return shown
        return shown[:1] or [zones.after_gap(wall, zone)]


def normal(text: str) -> str:
    """A rule with one space between its fields; a nickname such as @daily becomes the five it stands for."""
    plain = " ".join(text.split())
    fields, every, steps = plain.partition(" every ")
    return f"{NICKNAMES.get(fields.lower(), fields)}{every}{steps.lower()}"


def looks_like_fields(text: str) -> bool:
    """Whether it may be meant as a rule, with however many fields."""
    return FIELDS.fullmatch(text.strip()) is not None and "*" in text


def looks_like_rule(text: str) -> bool:
    """The same, and not words: its minute and its hour are figures or stars, or it is a nickname."""
    first = text.split()[:2]
    return text.startswith("@") or looks_like_fields(text) or (len(text.split()) >= 5 and _are_figures(first))


def _are_figures(fields: Sequence[str]) -> bool:
    return all(FIGURES.fullmatch(field) for field in fields)


@lru_cache(maxsize=4096)
def rule(text: str) -> Rule:
    """Read five fields, and how many of their days are left out, if any."""
    cron_text, steps = split(text)
    fields = cron_text.split()
    if len(fields) in {6, 7} or (len(fields) != 5 and looks_like_fields(cron_text)):
        raise Invalid(
            f"Invalid cron expression: {text[:LONGEST]}",
            f"it has {len(fields)} fields; give five: minute, hour, day of the month, month, day of the week",
        )
    if len(fields) != 5 or len(text) > LONGEST:
        raise Invalid(f"Invalid cron expression: {text[:LONGEST]}")
    # Every 90 minutes cannot be told as */90, which would be every hour.
    if any(int(step) > most for field, most in zip(fields, MOST, strict=True) for step in STEP.findall(field)):
        raise Invalid(f"Invalid cron expression: {text}", "a step is larger than its field")
    try:
        # Where to start from is asked later, of the rule.
        read = CronSim(cron_text, EPOCH)
    except CronSimError as error:
        raise Invalid(f"Invalid cron expression: {text}") from error
    times = tuple(time(hour, minute) for hour in sorted(read.hours) for minute in sorted(read.minutes))
    return Rule(times, read, not fields[0].startswith("*") and not fields[1].startswith("*"), steps)


def split(text: str) -> tuple[str, Steps | None]:
    """The fields, and the steps after them."""
    fields, every, _ = text.partition(" every ")
    found = STEPS.fullmatch(text[len(fields) + 1 :]) if every else None
    if found is None:
        return text, None
    try:
        steps = Steps(int(found[1]), found[2].lower(), date.fromisoformat(found[3]))
    except ValueError as error:
        raise Invalid(f"Invalid cron expression: {text[:LONGEST]}", f"there is no day {found[3]}") from error
    if not 1 <= steps.number <= MOST_STEPS or steps.first.year < 1970:
        raise Invalid(f"Invalid cron expression: {text[:LONGEST]}", f"write every 1 to {MOST_STEPS} {steps.unit}")
    return fields, steps


def next_fire(text: str, zone: ZoneInfo, after: datetime) -> datetime | None:
    """The first fire later than `after`, in UTC; None when there is none in forty years."""
    told = rule(text)
    now = after.astimezone(zone).replace(tzinfo=None, fold=0)
    ahead = next((fire for wall in told.walls(now) for fire in told.fires(wall, zone) if fire > after), None)
    if told.appointments or zones.steady_offset(now.date(), zone) is not None:
        return ahead
    # Clocks may be about to be set back behind `now`, and then show earlier times once more.
    back = zones.offset(now, zone) - zones.offset(now, zone, fold=1)
    for wall in told.walls(now - back):
        if wall > now:
            break
        for fire in told.fires(wall, zone):
            if fire > after:
                return fire if ahead is None else min(fire, ahead)
    return ahead


def count(text: str, zone: ZoneInfo, after: datetime, until: datetime) -> int:
    """How many fires there are later than `after` and no later than `until`."""
    told = rule(text)
    low, high = (moment.astimezone(zone).replace(tzinfo=None, fold=0) for moment in (after, until))
    day, plain, changed = low.date(), 0, set[datetime]()
    while day <= high.date():
        if not told.on(day):
            pass
        elif zones.steady_offset(day, zone) is not None:
            since = bisect_right(told.times, low.time()) if day == low.date() else 0
            plain += (bisect_right(told.times, high.time()) if day == high.date() else len(told.times)) - since
        else:
            walls = (datetime.combine(day, at) for at in told.times)
            changed.update(fire for wall in walls for fire in told.fires(wall, zone) if after < fire <= until)
        day += DAY
    return plain + len(changed)
