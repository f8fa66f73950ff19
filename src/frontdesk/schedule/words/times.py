"""Exact times in ISO 8601, with an offset; one without needs a zone from somewhere else."""

import re
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from frontdesk import zones
from frontdesk.errors import Invalid

WRONG = "Invalid time format. Use ISO 8601 like 2025-12-25T10:00:00Z or include offset, e.g. 2025-12-25T10:00:00-05:00"
PAST = "Scheduled time must be in the future"
SHAPE = re.compile(
    r"(\d{4}-\d{2}-\d{2})[T ](\d{2}:\d{2})(:\d{2})?([.,]\d{1,9})?\s*(Z|UTC|GMT|[+-]\d{2}:?\d{2})?",
    re.IGNORECASE | re.ASCII,
)
EARLIEST_YEAR, LATEST_YEAR = 1971, 9000


def looks_exact(text: str) -> bool:
    return SHAPE.fullmatch(text.strip()) is not None


def parse(text: str, zone: str | None = None) -> datetime:
    """The moment in UTC; a time without an offset is read in `zone`."""
    shape = SHAPE.fullmatch(text.strip())
    if shape is None:
        raise Invalid(WRONG)
    day, hours, seconds, fraction, offset = shape.groups()
    told = _read(f"{day}T{hours}{seconds or ':00'}{_micro(fraction)}{_iso_offset(offset)}")
    if not EARLIEST_YEAR <= told.year <= LATEST_YEAR:
        raise Invalid(WRONG)
    if told.tzinfo is not None:
        return told.astimezone(UTC)
    if zone is None:
        raise Invalid(WRONG)
    return in_zone(told, zone)


def in_zone(wall: datetime, zone: str) -> datetime:
    """The one moment at which clocks in the zone show `wall`; those shown twice or never are refused."""
    there = ZoneInfo(zone)
    shown = [moment.astimezone(there).isoformat() for moment in zones.moments(wall, there)]
    said = wall.isoformat(" ", "minutes")
    if not shown:
        later = zones.after_gap(wall, there).astimezone(there)
        raise Invalid(
            f"{said} does not exist in {zone}: clocks are set forward over it. "
            f"The first time after that is {later.isoformat()}"
        )
    if len(shown) > 1:
        raise Invalid(f"{said} comes twice in {zone}, where clocks are set back. Write {shown[0]} or {shown[1]}")
    return zones.moments(wall, there)[0]


def _read(text: str) -> datetime:
    try:
        return datetime.fromisoformat(text)
    except ValueError as error:
        raise Invalid(WRONG) from error


def _micro(fraction: str | None) -> str:
    return f".{fraction[1:7].ljust(6, '0')}" if fraction else ""


def _iso_offset(offset: str | None) -> str:
    if offset is None:
        return ""
    if offset[0] not in "+-":
        return "+00:00"
    return offset if ":" in offset else f"{offset[:3]}:{offset[3:]}"
