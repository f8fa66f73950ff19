"""What the forms offer, and what was chosen."""

from collections.abc import Mapping
from datetime import timedelta

from frontdesk.errors import Invalid

LASTING: Mapping[str, str] = {
    "90": "90 days",
    "7": "a week",
    "30": "30 days",
    "365": "a year",
    "": "for ever",
}
OVERLAPS: Mapping[str, str] = {"24": "another day", "1": "another hour", "168": "another week", "0": "not at all"}
SCOPE = "scope:"
EVERYTHING = "everything"


def lifetime(said: str) -> timedelta | None:
    if said not in LASTING:
        raise Invalid("A key works for a week, 30 days, 90 days, a year, or for ever")
    return timedelta(days=int(said)) if said else None


def overlap(said: str) -> timedelta:
    if said not in OVERLAPS:
        raise Invalid("The old key works on for an hour, a day, a week, or not at all")
    return timedelta(hours=int(said))


def scopes(form: Mapping[str, str]) -> frozenset[str] | None:
    """What was ticked; None is everything, which has to be said."""
    if form.get("limits") == EVERYTHING:
        return None
    ticked = frozenset(name.removeprefix(SCOPE) for name in form if name.startswith(SCOPE))
    if not ticked:
        raise Invalid("Tick what the key may do, or choose that it may do everything")
    return ticked
