"""Reads a JSON file that anybody may have written: what other readers would stumble over is taken out, and told."""

import json
import math
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import cast

from frontdesk.loop.text import is_storable, one_line, storable
from frontdesk.platform.declared.notes import Notes
from frontdesk.platform.declared.saying import SHOWN

LARGEST = 50_000_000
# Deeper than any schema that a person wrote, and far from where libraries give up.
DEEPEST = 64


class Unreadable(Exception):
    """The file cannot be read, or is not JSON; the message says why and what to do."""


class Repeated(dict[str, object]):
    """An object in which a key stands more than once; the last one counts."""

    twice: tuple[str, ...] = ()


def load(path: Path, notes: Notes, where: str = "") -> object:
    """What a file says, without what no JSON can hand on; `where` goes before each place in the notes."""
    try:
        found: object = json.loads(
            _text(path),
            object_pairs_hook=_object,
            # Not JSON, though Python's own reader takes it; none of these could be handed on.
            parse_constant=lambda _: math.nan,
        )
    except RecursionError:
        raise Unreadable("it is nested too deep; write it flatter") from None
    except ValueError as error:
        raise Unreadable(f"it is not JSON: {error}") from None
    return _clean(found, where, notes, 0)


def _text(path: Path) -> str:
    try:
        if not path.is_file():
            raise Unreadable("it is not a file" if path.exists() else "there is no such file")
        with path.open("rb") as file:
            data = file.read(LARGEST + 1)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise Unreadable(f"it cannot be read: {reason}") from None
    if len(data) > LARGEST:
        raise Unreadable(f"it is larger than {LARGEST // 1_000_000} MB; leave out what is not a tool server")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise Unreadable("it is not in UTF-8; save it in that encoding") from None


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) == len(pairs):
        return found
    repeated = Repeated(found)
    repeated.twice = tuple(name for name, times in Counter(name for name, _ in pairs).items() if times > 1)
    return repeated


def _clean(value: object, where: str, notes: Notes, depth: int) -> object:
    if depth > DEEPEST:
        notes.error(where, f"is nested deeper than {DEEPEST} levels and left out; write it flatter")
        return None
    match value:
        case str():
            return _clean_text(value, where, notes)
        case float() if not math.isfinite(value):
            notes.error(where, "is no number that JSON knows and left out; other readers refuse the whole file")
            return None
        case dict():
            return _clean_object(cast("dict[str, object]", value), where, notes, depth)
        case list():
            items = cast("list[object]", value)
            return [_clean(item, f"{where}[{number}]", notes, depth + 1) for number, item in enumerate(items)]
        case _:
            return value


def _clean_object(value: Mapping[str, object], where: str, notes: Notes, depth: int) -> dict[str, object]:
    if isinstance(value, Repeated):
        for name in value.twice:
            notes.warn(below(where, name), "stands there more than once, and the last one counts; keep one")
    found: dict[str, object] = {}
    for name, item in value.items():
        place = below(where, name)
        found[_clean_text(name, place, notes)] = _clean(item, place, notes, depth + 1)
    return found


def _clean_text(text: str, where: str, notes: Notes) -> str:
    if is_storable(text):
        return text
    notes.error(where, "holds a zero character or half a character, which is left out; write it anew")
    return storable(text)


def below(where: str, name: str) -> str:
    """The place of a key in an object."""
    shown = one_line(storable(name), SHOWN)
    return f"{where}.{shown}" if where and not where.endswith(" ") else f"{where}{shown}"
