"""Makes text and JSON from outside fit to store, to show and to pass on."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from difflib import get_close_matches
from email.utils import parsedate_to_datetime
from typing import Any, NoReturn, cast

# Deeper than any schema that a person writes, and far below the limits of libraries.
MAX_JSON_DEPTH = 64
# How similar two names must be for one to be suggested for the other, and how much of them is compared.
MIN_NAME_SIMILARITY = 0.7
COMPARED_LENGTH = 200
MAX_NAMES_LISTED = 12
WORD_SEPARATORS = re.compile(r"[\s_.:/-]+")


def storable(text: str) -> str:
    """The text without what no database or protocol accepts: NUL, and lone surrogates."""
    if text.isascii():
        return text.replace("\0", "")
    # Two surrogates that a stream separated become one character again.
    return text.replace("\0", "").encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def is_storable(text: str) -> bool:
    return storable(text) == text


def one_line(text: str, most: int) -> str:
    """The text on one line, cut to so many characters."""
    line = " ".join(text.split())
    return line if len(line) <= most else f"{line[: most - 1].rstrip()}…"


def escape_invisible(text: str) -> str:
    """The text with invisible and control characters written out: line breaks, escapes, text directions."""
    if text.isprintable():
        return text
    return "".join(one if one.isprintable() else one.encode("unicode_escape").decode() for one in text)


def closest_name(name: str, others: Iterable[str]) -> str | None:
    """The most similar of the names, if it is similar enough; case and separators of words do not count."""
    plain = {_comparable_name(other): other for other in others}
    found = get_close_matches(_comparable_name(name), list(plain), 1, MIN_NAME_SIMILARITY)
    return plain[found[0]] if found else None


def not_found_message(text: str, name: str, others: Sequence[str]) -> str:
    """A message that there is no such thing, with the closest name, or with the names that exist."""
    meant = closest_name(name, others)
    if meant is not None:
        return f"{text}; did you mean '{meant}'?"
    return f"{text}; there are: {list_first(others, MAX_NAMES_LISTED) or 'none'}."


def _comparable_name(name: str) -> str:
    return WORD_SEPARATORS.sub("", name).lower()[:COMPARED_LENGTH]


def list_first(names: Sequence[str], most: int) -> str:
    """The first so many items, and a sign if there are more."""
    return ", ".join(names[:most]) + (", …" if len(names) > most else "")


def parse_json_object(value: object) -> Mapping[str, Any] | None:
    """A JSON object, from text or a value; None if it is not one, or cannot be passed on."""
    try:
        if isinstance(value, str):
            value = json.loads(value, parse_constant=_refuse_constant) if value.strip() else {}
        found = _storable_json({} if value is None else value, MAX_JSON_DEPTH)
    except (ValueError, RecursionError):
        return None
    return cast("Mapping[str, Any]", found) if isinstance(found, dict) else None


def _storable_json(value: object, depth: int) -> object:
    if depth == 0:
        raise ValueError("too deep")
    match value:
        case str():
            return storable(value)
        case float() if value != value or value in (float("inf"), float("-inf")):  # noqa: PLR0124 - how NaN is told
            raise ValueError("not a number")
        case dict():
            pairs = cast("dict[object, object]", value).items()
            return {storable(str(key)): _storable_json(one, depth - 1) for key, one in pairs}
        case list():
            return [_storable_json(one, depth - 1) for one in cast("list[object]", value)]
        case _:
            return value


def _refuse_constant(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")


def parse_retry_after(retry_after: str | None) -> float | None:
    """The seconds of a Retry-After header, which has a number or a date; None if it cannot be read."""
    said = (retry_after or "").strip()
    if said.isascii() and said.isdigit():
        return float(said)
    try:
        until = parsedate_to_datetime(said)
    except ValueError:
        return None
    aware = until if until.tzinfo else until.replace(tzinfo=UTC)
    return max((aware - datetime.now(UTC)).total_seconds(), 0.0)


OVERLONG_SHOWN = 512


@dataclass(frozen=True, slots=True)
class OverlongLine:
    """A line that was too long to keep: its beginning and its end."""

    head: bytes
    tail: bytes


class LineBuffer:
    """Splits incoming bytes into lines."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._parts: list[bytes] = []
        self._size = 0
        self._head = b""
        self._tail = b""

    def feed(self, data: bytes) -> list[bytes | OverlongLine]:
        """The lines that these bytes complete, without line ends and without empty lines."""
        first, *others = data.split(b"\n")
        self._add(first)
        found: list[bytes | OverlongLine] = []
        for piece in others:
            found += self._line()
            self._add(piece)
        return found

    def _add(self, piece: bytes) -> None:
        self._size += len(piece)
        if self._size <= self._limit:
            self._parts.append(piece)
            return
        if self._parts:
            kept = b"".join(self._parts)
            self._head, self._tail, self._parts = kept[:OVERLONG_SHOWN], kept[-OVERLONG_SHOWN:], []
        self._head = (self._head + piece)[:OVERLONG_SHOWN]
        self._tail = (self._tail + piece[-OVERLONG_SHOWN:])[-OVERLONG_SHOWN:]

    def _line(self) -> list[bytes | OverlongLine]:
        overlong = self._size > self._limit
        line = b"".join(self._parts).strip()
        head, tail = self._head, self._tail
        self._parts, self._size, self._head, self._tail = [], 0, b"", b""
        if overlong:
            return [OverlongLine(head, tail)]
        return [line] if line else []
