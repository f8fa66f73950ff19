"""What the columns of an export may hold, and how that is written and read; pure."""

import math
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from enum import Enum, StrEnum
from typing import Any, cast
from uuid import UUID
from zoneinfo import ZoneInfo

from frontdesk.errors import Invalid
from frontdesk.loop.text import is_storable, json_object
from frontdesk.memory.moments import moment

UTC = ZoneInfo("UTC")
# What the database's whole numbers hold.
MOST = 2**31 - 1


class Kind(Enum):
    """What a value is, in words for whoever wrote another."""

    ID = "an id"
    TEXT = "a text without NUL or broken characters"
    WHOLE = "a whole number"
    REAL = "a number"
    FLAG = "true or false"
    MOMENT = "an ISO 8601 time with an offset"
    WORDS = "a list of texts"
    OBJECT = "a JSON object"


@dataclass(frozen=True, slots=True)
class Shape:
    """`most` is how many characters a text may have, `choice` what it may be."""

    kind: Kind
    optional: bool = False
    most: int | None = None
    choice: type[StrEnum] | None = None


def plain(value: object) -> Any:  # noqa: ANN401 - JSON is whatever it is
    """Anything that is kept, as JSON has it."""
    match value:
        case Enum():
            return value.value
        case datetime() | date():
            return value.isoformat()
        case bytes():
            return value.hex()
        case Mapping():
            pairs = cast("Mapping[object, object]", value).items()
            return {str(key): plain(one) for key, one in pairs}
        case tuple() | list() | set() | frozenset():
            return [plain(one) for one in cast("list[object]", value)]
        case _:
            return value


def read(value: object, shape: Shape, where: str) -> Any:  # noqa: ANN401 - whatever the column holds
    """The value as it is kept; `where` it stands is said if it cannot be."""
    if value is None:
        if shape.optional:
            return None
        raise Invalid(f"{where} is missing; it must be {shape.kind.value}")
    found = READERS[shape.kind](value)
    if found is None:
        raise Invalid(f"{where} must be {shape.kind.value}")
    if shape.most is not None and isinstance(found, str) and len(found) > shape.most:
        raise Invalid(f"{where} must have at most {shape.most} characters; this has {len(found)}")
    if shape.choice is not None and found not in list(shape.choice):
        raise Invalid(f"{where} must be one of {', '.join(shape.choice)}")
    return found


def _id(value: object) -> str | None:
    try:
        return str(UUID(value)) if isinstance(value, str) else None
    except ValueError:
        return None


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and is_storable(value) else None


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and abs(value) <= MOST else None


def _real(value: object) -> float | None:
    number = value if isinstance(value, int | float) and not isinstance(value, bool) else math.nan
    return float(number) if abs(number) <= sys.float_info.max else None


def _flag(value: object) -> bool | None:
    return value if isinstance(value, bool) else None


def _moment(value: object) -> datetime | None:
    try:
        return moment(value, UTC, "") if isinstance(value, str) else None
    except Invalid:
        return None


def _words(value: object) -> list[str] | None:
    words = [_text(one) for one in cast("list[object]", value)] if isinstance(value, list) else [None]
    found = [word for word in words if word is not None]
    return found if len(found) == len(words) else None


def _object(value: object) -> Mapping[str, Any] | None:
    return json_object(cast("object", value)) if isinstance(value, dict) else None


# Each gives None for what is not of the kind.
READERS: Mapping[Kind, Callable[[object], object]] = {
    Kind.ID: _id,
    Kind.TEXT: _text,
    Kind.WHOLE: _whole,
    Kind.REAL: _real,
    Kind.FLAG: _flag,
    Kind.MOMENT: _moment,
    Kind.WORDS: _words,
    Kind.OBJECT: _object,
}
