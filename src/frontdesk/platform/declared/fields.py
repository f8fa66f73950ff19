"""An object of a manifest, key by key: what each says, where it stands, and whether it is of the right kind."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from frontdesk.platform.declared.files import below
from frontdesk.platform.declared.model import Level
from frontdesk.platform.declared.notes import Notes


@dataclass(frozen=True, slots=True)
class Said:
    """A value and its place."""

    where: str
    value: object


@dataclass(frozen=True, slots=True)
class Fields:
    """What an object says under its keys; null says nothing. What is of another kind than asked for is noted."""

    where: str
    said: Mapping[str, Said]

    def at(self, key: str) -> str:
        """Where a key stands, or would."""
        return self.said[key].where if key in self.said else below(self.where, key)

    def get(self, key: str) -> object:
        return self.said[key].value if key in self.said else None

    def text(self, key: str, notes: Notes, level: Level = Level.ERROR) -> str | None:
        value = self.get(key)
        return value if isinstance(value, str) else self._wrong(key, "a text", notes, level)

    def flag(self, key: str, notes: Notes) -> bool | None:
        value = self.get(key)
        return value if isinstance(value, bool) else self._wrong(key, "true or false", notes)

    def items(self, key: str, notes: Notes) -> Sequence[object] | None:
        value = self.get(key)
        return cast("list[object]", value) if isinstance(value, list) else self._wrong(key, "a list", notes)

    def object(self, key: str, notes: Notes) -> Mapping[str, Any] | None:
        value = self.get(key)
        return cast("dict[str, Any]", value) if isinstance(value, dict) else self._wrong(key, "an object", notes)

    def number(self, key: str, least: float, most: float, notes: Notes) -> float | None:
        value = self.get(key)
        wanted = f"a number from {least:g} to {most:g}"
        if isinstance(value, bool) or not isinstance(value, int | float):
            return self._wrong(key, wanted, notes)
        if not least <= value <= most:
            notes.error(self.at(key), f"must be {wanted}, and is left out")
            return None
        return value

    def whole(self, key: str, least: int, most: int, notes: Notes) -> int | None:
        value = self.number(key, least, most, notes)
        if value is None or value == int(value):
            return None if value is None else int(value)
        notes.error(self.at(key), "must be a whole number, and is left out")
        return None

    def _wrong(self, key: str, wanted: str, notes: Notes, level: Level = Level.ERROR) -> None:
        value = self.get(key)
        if value is not None:
            notes.note(level, self.at(key), f"must be {wanted}, not {kind_of(value)}, and is left out")


def fields(value: Mapping[str, object], where: str) -> Fields:
    """An object, with its keys as they are written."""
    return Fields(where, {key: Said(below(where, key), item) for key, item in value.items()})


def fields_in_any_case(value: Mapping[str, object], where: str, known: Collection[str], notes: Notes) -> Fields:
    """An object whose keys may be written in any case, as .NET reads them; under the names that are `known`."""
    spelt = {name.lower(): name for name in known}
    found: dict[str, Said] = {}
    for key, item in value.items():
        name = spelt.get(key.lower(), key)
        place = below(where, key)
        if name in found:
            notes.warn(place, f"is {name} once more, and the last one counts; keep one")
        found[name] = Said(place, item)
    return Fields(where, found)


def check_keys(found: Fields, known: Collection[str], notes: Notes) -> None:
    """Warn of keys that nobody reads; those that begin with $ are for editors."""
    for key, said in found.said.items():
        if key not in known and not key.startswith("$"):
            notes.warn(said.where, f"is not read by anybody{notes.meant(key, known) or '; leave it out'}")


def kind_of(value: object) -> str:
    """What a value is, in words."""
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
