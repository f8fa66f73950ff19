"""Reads fields of things whose class nobody here knows, and times that may be anything."""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import cast


def field(thing: object, name: str) -> object:
    """A dict's entry or an object's attribute; None where there is none."""
    if isinstance(thing, Mapping):
        return cast("Mapping[object, object]", thing).get(name)
    return cast("object", getattr(thing, name, None))


def items_of(thing: object) -> Iterable[object]:
    """The elements of a list or a tuple; of anything else, none."""
    return cast("list[object] | tuple[object, ...]", thing) if isinstance(thing, list | tuple) else ()


def moment(value: object) -> datetime | None:
    """A time, from seconds since 1970 or ISO 8601; one that names no zone is in UTC. None where it is no time."""
    match value:
        case datetime():
            return value if value.tzinfo else value.replace(tzinfo=UTC)
        case bool():
            return None
        case int() | float() if value:
            return _since_epoch(value)
        case str():
            return _iso(value)
        case _:
            return None


def _since_epoch(seconds: float) -> datetime | None:
    try:
        return datetime.fromtimestamp(seconds, tz=UTC)
    # Each for another kind of absurd number, and which for which is up to the system's C library.
    except (ValueError, OverflowError, OSError):
        return None


def _iso(text: str) -> datetime | None:
    try:
        found = datetime.fromisoformat(text.strip())
    except ValueError:
        return None
    return found if found.tzinfo else found.replace(tzinfo=UTC)
