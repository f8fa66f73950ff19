"""Converts loose values of tool requests to valid ones."""

import json
import math
from collections.abc import Sequence
from typing import cast

DEFAULT_LIMIT = 10
MAX_LIMIT = 25
DEFAULT_MIN_SCORE = 50.0
MAX_NAMES = 100
MAX_NAME_CHARACTERS = 300
TRUE_WORDS = frozenset({"true", "t", "1", "yes", "y", "on"})
FALSE_WORDS = frozenset({"false", "f", "0", "no", "n", "off"})
STRIPPED_CHARACTERS = " \t\r\n\"'[]"


def coerce_limit(given: object) -> int:
    """The number of tools to find: 1 to 25."""
    return int(_clamp(given, 1, MAX_LIMIT, DEFAULT_LIMIT))


def coerce_min_score(given: object) -> float:
    """The minimum score of a tool: 0 to 100."""
    return _clamp(given, 0, 100, DEFAULT_MIN_SCORE)


def coerce_drop_rate(given: object, default: float) -> float:
    """The share of tools to detach: 0 to 1."""
    return _clamp(given, 0, 1, default)


def coerce_flag(given: object, *, default: bool = False) -> bool:
    """A boolean in any spelling."""
    if isinstance(given, str):
        word = given.strip().strip("\"'").lower()
        return True if word in TRUE_WORDS else False if word in FALSE_WORDS else default
    if isinstance(given, int) or (isinstance(given, float) and not math.isnan(given)):
        return given != 0
    return default


def coerce_tool_names(given: object) -> tuple[str, ...]:
    """Ids or names of tools from a comma list, a JSON array as text, or an array, without duplicates, in order."""
    if isinstance(given, str):
        given = _split_names(given[: MAX_NAMES * MAX_NAME_CHARACTERS])
    if not isinstance(given, list | tuple):
        return ()
    words = [word.strip() for word in cast("Sequence[object]", given) if isinstance(word, str)]
    return tuple(dict.fromkeys(word for word in words if 0 < len(word) <= MAX_NAME_CHARACTERS))[:MAX_NAMES]


def _split_names(text: str) -> list[object]:
    if text.lstrip().startswith("["):
        try:
            return cast("list[object]", json.loads(text))
        except (ValueError, RecursionError):
            pass
    return [word.strip(STRIPPED_CHARACTERS) for word in text.split(",")]


def _clamp(given: object, least: float, most: float, default: float) -> float:
    number = _parse_number(given)
    return default if number is None else max(least, min(most, number))


def _parse_number(given: object) -> float | None:
    """A number, also from text. None for other values, booleans included."""
    if isinstance(given, bool) or not isinstance(given, int | float | str):
        return None
    try:
        number = float(given)
    except ValueError:
        return None
    except OverflowError:
        return math.inf if cast("int", given) > 0 else -math.inf
    return None if math.isnan(number) else number
