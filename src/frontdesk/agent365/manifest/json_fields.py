"""Reads a JSON file that may hold anything, field by field, and reports values of a wrong type."""

import json
import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from frontdesk.agent365.manifest.model import SHOWN_LENGTH, ProblemLevel, ProblemList
from frontdesk.text import is_storable, one_line, storable

LARGEST_FILE = 50_000_000
# Deeper than any schema that a person writes, and far below the depth at which libraries fail.
DEEPEST_NESTING = 64


class UnreadableFile(Exception):
    """The file cannot be read, or is not JSON; the message says why and what to do."""


class DuplicateKeys(dict[str, object]):
    """An object with a repeated key; the last value counts."""

    repeated_keys: tuple[str, ...] = ()


def load_json_file(path: Path, notes: ProblemList, where: str = "") -> object:
    """The content of a file, without values that JSON cannot represent; `where` precedes each place in the notes."""
    try:
        found: object = json.loads(
            _read_file_text(path),
            object_pairs_hook=_object_of_pairs,
            # Python's own reader accepts these values, but they are not JSON and could not be passed on.
            parse_constant=lambda _: math.nan,
        )
    except RecursionError:
        raise UnreadableFile("it is nested too deep; write it flatter") from None
    except ValueError as error:
        raise UnreadableFile(f"it is not JSON: {error}") from None
    return _clean(found, where, notes, 0)


def _read_file_text(path: Path) -> str:
    try:
        if not path.is_file():
            raise UnreadableFile("it is not a file" if path.exists() else "there is no such file")
        with path.open("rb") as file:
            data = file.read(LARGEST_FILE + 1)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise UnreadableFile(f"it cannot be read: {reason}") from None
    if len(data) > LARGEST_FILE:
        raise UnreadableFile(f"it is larger than {LARGEST_FILE // 1_000_000} MB; leave out what is not a tool server")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise UnreadableFile("it is not in UTF-8; save it in that encoding") from None


def _object_of_pairs(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) == len(pairs):
        return found
    repeated = DuplicateKeys(found)
    repeated.repeated_keys = tuple(name for name, times in Counter(name for name, _ in pairs).items() if times > 1)
    return repeated


def _clean(value: object, where: str, notes: ProblemList, depth: int) -> object:
    if depth > DEEPEST_NESTING:
        notes.error(where, f"is nested deeper than {DEEPEST_NESTING} levels and left out; write it flatter")
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


def _clean_object(value: Mapping[str, object], where: str, notes: ProblemList, depth: int) -> dict[str, object]:
    if isinstance(value, DuplicateKeys):
        for name in value.repeated_keys:
            notes.warn(place_below(where, name), "stands there more than once, and the last one counts; keep one")
    found: dict[str, object] = {}
    for name, item in value.items():
        place = place_below(where, name)
        found[_clean_text(name, place, notes)] = _clean(item, place, notes, depth + 1)
    return found


def _clean_text(text: str, where: str, notes: ProblemList) -> str:
    if is_storable(text):
        return text
    notes.error(where, "holds a zero character or half a character, which is left out; write it anew")
    return storable(text)


def place_below(where: str, name: str) -> str:
    """The place of a key in an object."""
    shown = one_line(storable(name), SHOWN_LENGTH)
    return f"{where}.{shown}" if where and not where.endswith(" ") else f"{where}{shown}"


@dataclass(frozen=True, slots=True)
class PlacedValue:
    """A value and its place."""

    where: str
    value: object


@dataclass(frozen=True, slots=True)
class JsonFields:
    """The fields of an object; null counts as missing. A value of a wrong type is noted."""

    where: str
    values: Mapping[str, PlacedValue]

    def place_of(self, key: str) -> str:
        """The place of a key, whether it is there or not."""
        return self.values[key].where if key in self.values else place_below(self.where, key)

    def get(self, key: str) -> object:
        return self.values[key].value if key in self.values else None

    def text(self, key: str, notes: ProblemList, level: ProblemLevel = ProblemLevel.ERROR) -> str | None:
        value = self.get(key)
        return value if isinstance(value, str) else self._wrong(key, "a text", notes, level)

    def flag(self, key: str, notes: ProblemList) -> bool | None:
        value = self.get(key)
        return value if isinstance(value, bool) else self._wrong(key, "true or false", notes)

    def items(self, key: str, notes: ProblemList) -> Sequence[object] | None:
        value = self.get(key)
        return cast("list[object]", value) if isinstance(value, list) else self._wrong(key, "a list", notes)

    def object(self, key: str, notes: ProblemList) -> Mapping[str, Any] | None:
        value = self.get(key)
        return cast("dict[str, Any]", value) if isinstance(value, dict) else self._wrong(key, "an object", notes)

    def number(self, key: str, least: float, most: float, notes: ProblemList) -> float | None:
        value = self.get(key)
        wanted = f"a number from {least:g} to {most:g}"
        if isinstance(value, bool) or not isinstance(value, int | float):
            return self._wrong(key, wanted, notes)
        if not least <= value <= most:
            notes.error(self.place_of(key), f"must be {wanted}, and is left out")
            return None
        return value

    def integer(self, key: str, least: int, most: int, notes: ProblemList) -> int | None:
        value = self.number(key, least, most, notes)
        if value is None or value == int(value):
            return None if value is None else int(value)
        notes.error(self.place_of(key), "must be a whole number, and is left out")
        return None

    def _wrong(self, key: str, wanted: str, notes: ProblemList, level: ProblemLevel = ProblemLevel.ERROR) -> None:
        value = self.get(key)
        if value is not None:
            notes.add(level, self.place_of(key), f"must be {wanted}, not {describe_type(value)}, and is left out")


def read_fields(value: Mapping[str, object], where: str) -> JsonFields:
    """Read an object, with its keys exactly as written."""
    return JsonFields(where, {key: PlacedValue(place_below(where, key), item) for key, item in value.items()})


def read_fields_in_any_case(
    value: Mapping[str, object], where: str, known: Collection[str], notes: ProblemList
) -> JsonFields:
    """Read an object whose keys may be written in any case, as .NET does; the result has the names in `known`."""
    spelt = {name.lower(): name for name in known}
    found: dict[str, PlacedValue] = {}
    for key, item in value.items():
        name = spelt.get(key.lower(), key)
        place = place_below(where, key)
        if name in found:
            notes.warn(place, f"is {name} once more, and the last one counts; keep one")
        found[name] = PlacedValue(place, item)
    return JsonFields(where, found)


def warn_of_unknown_keys(fields: JsonFields, known: Collection[str], notes: ProblemList) -> None:
    """Warn of keys that are not read; keys that begin with $ are for editors."""
    for key, said in fields.values.items():
        if key not in known and not key.startswith("$"):
            notes.warn(said.where, f"is not read by anybody{notes.did_you_mean(key, known) or '; leave it out'}")


def describe_type(value: object) -> str:
    """Describe the type of a value in words."""
    match value:
        case None:
            return "null"
        case bool():
            return "true or false"
        case str():
            return "a text"
        case int() | float():
            return "a number"
        case list():
            return "a list"
        case _:
            return "an object"
