"""Texts and values from outside, made fit to be kept and handed on."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any, NoReturn, cast

# Deeper than any schema that a person wrote, and far from where libraries give up.
DEPTH = 64
# How alike two names are, at least, of which one may be meant for the other; and how much of them is compared.
NEAR = 0.7
COMPARED = 200
NAMED = 12
JOINTS = re.compile(r"[\s_.:/-]+")


def storable(text: str) -> str:
    """The text without what no database or wire takes: the zero character, and halves of others left alone."""
    if text.isascii():
        return text.replace("\0", "")
    # Two halves that a stream cut apart are one character again.
    return text.replace("\0", "").encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def is_storable(text: str) -> bool:
    return storable(text) == text


def one_line(text: str, most: int) -> str:
    """A text on one line, of so many characters at most."""
    line = " ".join(text.split())
    return line if len(line) <= most else f"{line[: most - 1].rstrip()}…"


def visible(text: str) -> str:
    """A text in which what would not show, or would be obeyed, is written out: line breaks, escapes, directions."""
    if text.isprintable():
        return text
    return "".join(one if one.isprintable() else one.encode("unicode_escape").decode() for one in text)


def closest(name: str, others: Iterable[str]) -> str | None:
    """The one that differs least from a name, if it is near; case and the ways to join words do not count."""
    plain = {_joined(other): other for other in others}
    found = get_close_matches(_joined(name), list(plain), 1, NEAR)
    return plain[found[0]] if found else None


def not_there(said: str, name: str, others: Sequence[str]) -> str:
    """A sentence that says that there is no such thing, with what was perhaps meant, or with what there is."""
    meant = closest(name, others)
    if meant is not None:
        return f"{said}; did you mean '{meant}'?"
    return f"{said}; there are: {some_of(others, NAMED) or 'none'}."


def _joined(name: str) -> str:
    return JOINTS.sub("", name).lower()[:COMPARED]


def some_of(names: Sequence[str], most: int) -> str:
    """The first so many of these, and a sign where there are more."""
    return ", ".join(names[:most]) + (", …" if len(names) > most else "")


def json_object(given: object) -> Mapping[str, Any] | None:
    """A JSON object, as text or as a value; None where it is none, or not one that could be handed on."""
    try:
        if isinstance(given, str):
            given = json.loads(given, parse_constant=_refuse) if given.strip() else {}
        found = _checked({} if given is None else given, DEPTH)
    except (ValueError, RecursionError):
        return None
    return cast("Mapping[str, Any]", found) if isinstance(found, dict) else None


def _checked(value: object, depth: int) -> object:
    if depth == 0:
        raise ValueError("too deep")
    match value:
        case str():
            return storable(value)
        case float() if value != value or value in (float("inf"), float("-inf")):  # noqa: PLR0124 - how NaN is told
            raise ValueError("not a number")
        case dict():
            pairs = cast("dict[object, object]", value).items()
            return {storable(str(key)): _checked(one, depth - 1) for key, one in pairs}
        case list():
            return [_checked(one, depth - 1) for one in cast("list[object]", value)]
        case _:
            return value


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")
