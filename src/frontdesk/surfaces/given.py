"""Loose values as callers give them, made fit: junk is clamped or falls back to the default, never refused."""

import json
import math
from collections.abc import Sequence
from typing import cast

LIMIT = 10
MOST = 25
MIN_SCORE = 50.0
NAMES = 100
NAME_CHARACTERS = 300
TRUE = frozenset({"true", "t", "1", "yes", "y", "on"})
FALSE = frozenset({"false", "f", "0", "no", "n", "off"})
AROUND = " \t\r\n\"'[]"


def limit(given: object) -> int:
    """How many tools to find: 1 to 25."""
    return int(_clamped(given, 1, MOST, LIMIT))


def min_score(given: object) -> float:
    """The score that a tool must reach: 0 to 100."""
    return _clamped(given, 0, 100, MIN_SCORE)


def drop_rate(given: object, default: float) -> float:
    """The share of the tools to let go: 0 to 1."""
    return _clamped(given, 0, 1, default)


def flag(given: object, *, default: bool = False) -> bool:
    """A boolean in any spelling."""
    if isinstance(given, str):
        word = given.strip().strip("\"'").lower()
        return True if word in TRUE else False if word in FALSE else default
    if isinstance(given, int) or (isinstance(given, float) and not math.isnan(given)):
        return given != 0
    return default


def tool_names(given: object) -> tuple[str, ...]:
    """Ids or names of tools: a comma list, a JSON array as text, or an array; each once, in the order given."""
    if isinstance(given, str):
        given = _listed(given[: NAMES * NAME_CHARACTERS])
    if not isinstance(given, list | tuple):
        return ()
    words = [word.strip() for word in cast("Sequence[object]", given) if isinstance(word, str)]
    return tuple(dict.fromkeys(word for word in words if 0 < len(word) <= NAME_CHARACTERS))[:NAMES]


def _listed(text: str) -> list[object]:
    if text.lstrip().startswith("["):
        try:
            return cast("list[object]", json.loads(text))
        except (ValueError, RecursionError):
            pass
    return [word.strip(AROUND) for word in text.split(",")]


def _clamped(given: object, least: float, most: float, default: float) -> float:
    number = _number(given)
    return default if number is None else max(least, min(most, number))


def _number(given: object) -> float | None:
    """A number, also written as text; None for what is none. A boolean counts as none: nobody means 1 by it."""
    if isinstance(given, bool) or not isinstance(given, int | float | str):
        return None
    try:
        number = float(given)
    except ValueError:
        return None
    except OverflowError:
        return math.inf if cast("int", given) > 0 else -math.inf
    return None if math.isnan(number) else number
