"""Parses days and times as people write them, in their time zone, and computes spans of days."""

from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from enum import Enum
from zoneinfo import ZoneInfo

from frontdesk import zones
from frontdesk.errors import Invalid

EARLIEST, LATEST = datetime(1, 1, 3, tzinfo=UTC), datetime(9999, 12, 29, tzinfo=UTC)
MAX_SHOWN = 64


class DayEdge(Enum):
    """What a day without a time means: its first moment, or its last."""

    START = "start"
    END = "end"


@dataclass(frozen=True, slots=True)
class TimeSpan:
    """A range of time, without its end."""

    start: datetime
    end: datetime


def parse_time(text: str, zone: ZoneInfo, name: str, edge: DayEdge = DayEdge.START) -> datetime:
    """Parse `2026-11-20`, `2026-11-20T09:00` or `2026-11-20T09:00:00+01:00` to UTC. `name` is for messages."""
    said = text.strip()
    try:
        if len(said) == len("2026-11-20"):
            return _edge_of_day(date.fromisoformat(said), zone, edge)
        found = datetime.fromisoformat(said[:MAX_SHOWN])
        found = found if found.tzinfo is not None else found.replace(tzinfo=zone)
        found = found.astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise Invalid(
            f"{name} must be a day (2026-11-20) or an ISO 8601 time (2026-11-20T09:00:00+01:00); "
            f"'{said[:MAX_SHOWN]}' is neither"
        ) from error
    if not EARLIEST <= found <= LATEST:
        raise Invalid(f"{name} must lie between the years 1 and 9999")
    return found


def parse_end(text: str, zone: ZoneInfo, name: str) -> datetime:
    """The end of a span: the end of a day without a time, or that very moment."""
    last = parse_time(text, zone, name, DayEdge.END)
    return last + timedelta(seconds=1) if len(text.strip()) == len("2026-11-20") else last


def parse_day(text: str, name: str) -> date:
    """Parse a day, YYYY-MM-DD."""
    try:
        found = date.fromisoformat(text.strip())
    except ValueError as error:
        raise Invalid(f"{name} must be a day, as YYYY-MM-DD; '{text.strip()[:MAX_SHOWN]}' is none") from error
    if not EARLIEST.date() <= found <= LATEST.date():
        raise Invalid(f"{name} must lie between the years 1 and 9999")
    return found


def span_of_days(days: date, zone: ZoneInfo, count: int = 1) -> TimeSpan:
    """A day in that zone, or several: a day has 23 or 25 hours if clocks change."""
    return TimeSpan(_midnight(days, zone), _midnight(days + timedelta(days=count), zone))


def find_zone(text: str | None, otherwise: str) -> ZoneInfo:
    """The named zone, or `otherwise`."""
    return zones.zone_of_name(zones.zone_name(text) if text and text.strip() else otherwise)


def today_in(now: datetime, zone: ZoneInfo) -> date:
    return now.astimezone(zone).date()


def _edge_of_day(of_day: date, zone: ZoneInfo, edge: DayEdge) -> datetime:
    span = span_of_days(of_day, zone)
    return span.start if edge is DayEdge.START else span.end - timedelta(seconds=1)


def _midnight(of_day: date, zone: ZoneInfo) -> datetime:
    return datetime.combine(of_day, time(), zone).astimezone(UTC)
