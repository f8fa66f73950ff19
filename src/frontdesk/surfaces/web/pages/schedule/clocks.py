"""Moments as clocks show them: in the zone of a schedule, and in UTC."""

from dataclasses import dataclass
from datetime import UTC, datetime

from frontdesk import zones
from frontdesk.errors import Invalid
from frontdesk.schedule.model import moment


@dataclass(frozen=True, slots=True)
class Hour:
    """A moment; `local` is None where the zone is UTC itself, or not known here."""

    at: datetime
    utc: str
    zone: str
    local: str | None = None


def hour(microseconds: int, zone: str = "UTC") -> Hour:
    at = moment(microseconds)
    return Hour(at, f"{_written(at.astimezone(UTC))} UTC", zone, None if zone == "UTC" else _there(at, zone))


def maybe(microseconds: int | None, zone: str = "UTC") -> Hour | None:
    return None if microseconds is None else hour(microseconds, zone)


def _there(at: datetime, zone: str) -> str | None:
    try:
        return f"{_written(at.astimezone(zones.there(zone)))} {zone}"
    except Invalid:
        return None


def _written(at: datetime) -> str:
    return at.strftime("%a %d %b %Y %H:%M:%S" if at.second else "%a %d %b %Y %H:%M")
