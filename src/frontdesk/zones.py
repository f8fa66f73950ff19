"""Finds time zones by their IANA names, and converts local times across changes of the clock."""

from datetime import UTC, date, datetime, time, timedelta
from difflib import get_close_matches
from functools import cache, lru_cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

from frontdesk.errors import Invalid

SECOND = timedelta(seconds=1)
DAY = timedelta(days=1)
# How similar a name must be to a zone's name to be taken for a typing error.
MIN_NAME_SIMILARITY = 0.8
# Abbreviations, with the zones that people mean by them.
FIXED_OFFSET_NAMES = {
    "EST": "America/New_York, or Etc/GMT+5 for just that",
    "MST": "America/Denver, or America/Phoenix, where clocks are not changed",
    "HST": "Pacific/Honolulu",
}
# Files of the machine itself, and one that is no place.
NOT_ZONES = frozenset({"localtime", "posixrules", "Factory"})


@cache
def zone_names() -> dict[str, str]:
    """Every zone's name, by the name in lower case."""
    return {name.casefold(): name for name in available_timezones() - NOT_ZONES}


def zone_name(text: str) -> str:
    """The zone's name in IANA's spelling."""
    name = zone_names().get(text.strip().casefold())
    if name is None:
        raise unknown_zone(text.strip())
    if name in FIXED_OFFSET_NAMES:
        raise Invalid(
            f"{name} is the same hours behind UTC in summer too, which is seldom meant. Use {FIXED_OFFSET_NAMES[name]}"
        )
    return name


def zone_of_name(name: str) -> ZoneInfo:
    """The zone of this name; a name that a machine with a newer zone database stored may be unknown here."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError) as error:
        raise unknown_zone(name) from error


def unknown_zone(name: str) -> Invalid:
    city = "/" + name.casefold().replace(" ", "_")
    meant = sorted(zone for key, zone in zone_names().items() if key.endswith(city))
    if not meant:
        meant = [
            zone_names()[near]
            for near in get_close_matches(name.casefold().replace(" ", "_"), zone_names(), 1, MIN_NAME_SIMILARITY)
        ]
    example = " or ".join(meant) or "an IANA name like Europe/Berlin or UTC"
    return Invalid(f"Unknown time zone: {name[:100]}. Use {example}")


def utc_offset(wall: datetime, zone: ZoneInfo, fold: int = 0) -> timedelta:
    """The zone's offset from UTC when its clocks show `wall`, for the first time or (fold 1) the second.

    Where clocks skip over `wall`, that is the offset before the change, and with fold 1 the one after it.
    """
    ahead = zone.utcoffset(wall.replace(tzinfo=zone, fold=fold))
    return ahead if ahead is not None else timedelta()


@lru_cache(maxsize=16_384)
def constant_offset(day: date, zone: ZoneInfo) -> timedelta | None:
    """The zone's offset from UTC on that day; None if clocks change during the day."""
    midnights = (datetime.combine(day, time()), datetime.combine(day + DAY, time()))
    offsets = {utc_offset(wall, zone, fold) for wall in midnights for fold in (0, 1)}
    return offsets.pop() if len(offsets) == 1 else None


def utc_times(wall: datetime, zone: ZoneInfo) -> list[datetime]:
    """The times in UTC when clocks in the zone show `wall`: one, two when they are set back, none when set forward."""
    steady = constant_offset(wall.date(), zone)
    early, late = (steady, steady) if steady is not None else (utc_offset(wall, zone), utc_offset(wall, zone, fold=1))
    if early < late:
        return []
    return [(wall - ahead).replace(tzinfo=UTC) for ahead in ((early,) if early == late else (early, late))]


def end_of_gap(wall: datetime, zone: ZoneInfo) -> datetime:
    """The time in UTC at which clocks are set forward over `wall`, which they never show."""
    new = utc_offset(wall, zone, fold=1)
    before, after = (wall - new).replace(tzinfo=UTC), (wall - utc_offset(wall, zone)).replace(tzinfo=UTC)
    while after - before > SECOND:
        middle = before + (after - before) // 2
        if middle.astimezone(zone).utcoffset() == new:
            after = middle
        else:
            before = middle
    return after.replace(microsecond=0)


def last_utc_time(wall: datetime, zone: ZoneInfo) -> datetime:
    """The last time in UTC at which clocks in the zone show `wall` or less."""
    shown = utc_times(wall, zone)
    return shown[-1] if shown else end_of_gap(wall, zone) - timedelta(microseconds=1)
