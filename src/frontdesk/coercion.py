"""Converts loose values of requests to valid ones, describes loose fields to clients, and checks texts."""

import json
import math
from collections.abc import Sequence
from typing import Any, cast

from pydantic import AfterValidator, ConfigDict, Field

DEFAULT_LIMIT = 10
MAX_LIMIT = 25
DEFAULT_MIN_SCORE = 50.0
MAX_NAMES = 100
MAX_NAME_CHARACTERS = 300
TRUE_WORDS = frozenset({"true", "t", "1", "yes", "y", "on"})
FALSE_WORDS = frozenset({"false", "f", "0", "no", "n", "off"})
STRIPPED_CHARACTERS = " \t\r\n\"'[]"


def coerce_limit(value: object) -> int:
    """The number of tools to find: 1 to 25."""
    return int(_clamp(value, 1, MAX_LIMIT, DEFAULT_LIMIT))


def coerce_min_score(value: object) -> float:
    """The minimum score of a tool: 0 to 100."""
    return _clamp(value, 0, 100, DEFAULT_MIN_SCORE)


def coerce_drop_rate(value: object, default: float) -> float:
    """The share of tools to detach: 0 to 1."""
    return _clamp(value, 0, 1, default)


def coerce_flag(value: object, *, default: bool = False) -> bool:
    """A boolean in any spelling."""
    if isinstance(value, str):
        word = value.strip().strip("\"'").lower()
        return True if word in TRUE_WORDS else False if word in FALSE_WORDS else default
    if isinstance(value, int) or (isinstance(value, float) and not math.isnan(value)):
        return value != 0
    return default


def coerce_tool_names(value: object) -> tuple[str, ...]:
    """Ids or names of tools from a comma list, a JSON array as text, or an array, without duplicates, in order."""
    if isinstance(value, str):
        value = _split_names(value[: MAX_NAMES * MAX_NAME_CHARACTERS])
    if not isinstance(value, list | tuple):
        return ()
    words = [word.strip() for word in cast("Sequence[object]", value) if isinstance(word, str)]
    return tuple(dict.fromkeys(word for word in words if 0 < len(word) <= MAX_NAME_CHARACTERS))[:MAX_NAMES]


def _split_names(text: str) -> list[object]:
    if text.lstrip().startswith("["):
        try:
            return cast("list[object]", json.loads(text))
        except (ValueError, RecursionError):
            pass
    return [word.strip(STRIPPED_CHARACTERS) for word in text.split(",")]


def _clamp(value: object, least: float, most: float, default: float) -> float:
    number = _parse_number(value)
    return default if number is None else max(least, min(most, number))


def _parse_number(value: object) -> float | None:
    """A number, also from text. None for other values, booleans included."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except ValueError:
        return None
    except OverflowError:
        return math.inf if cast("int", value) > 0 else -math.inf
    return None if math.isnan(number) else number


EMPTY_WORDS = frozenset({"", "none", "null"})


def loose_field(kind: str, description: str, *, needed: bool = False, **more: object) -> Any:  # noqa: ANN401 - a default of any field
    """A field that is taken in any form, with the schema that clients see."""
    promised: dict[str, Any] = {"type": kind, **more}

    def promise(schema: dict[str, Any]) -> None:
        schema.pop("default", None)
        schema.update(promised)

    return Field(... if needed else None, description=description, json_schema_extra=promise)


def required_fields(*names: str) -> ConfigDict:
    """Fields that the schema requires; the service itself reports a missing one."""
    return ConfigDict(defer_build=True, json_schema_extra={"required": list[Any](names)})


def to_text(value: object) -> str:
    """The value as a text; half of a surrogate pair, which JSON can carry, is replaced."""
    if value is None:
        return ""
    text = value if isinstance(value, str) else json.dumps(value)
    return text.encode(errors="replace").decode()


def optional_text(value: object) -> str | None:
    """A text that may be left out; models also send an empty text, `none` or `null` for that."""
    found = to_text(value).strip()
    return None if found.lower() in EMPTY_WORDS else found


def optional_interval(value: object) -> str | int | None:
    """A duration that may be left out; a number counts seconds."""
    return value if isinstance(value, int) and not isinstance(value, bool) else optional_text(value)


def optional_number(value: object, default: int | None = None) -> object:
    """A number that may be left out; the service checks whether it is one."""
    found = optional_text(value) if isinstance(value, str) else value
    return default if found is None else found


def _check_storable(text: str) -> str:
    if "\0" in text:
        raise ValueError("must not contain the character NUL")
    return text


def _check_not_blank(text: str) -> str:
    if not text.strip():
        raise ValueError("must not be blank")
    return text


# Annotations of texts in requests.
Storable = AfterValidator(_check_storable)
NotBlank = AfterValidator(_check_not_blank)
