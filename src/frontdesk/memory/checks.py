"""What a record may be given: names that are known, numbers within bounds, texts that are not too long."""

from collections.abc import Mapping, Sequence
from dataclasses import MISSING, fields
from enum import StrEnum
from typing import Any, TypeVar

from frontdesk.errors import Invalid

Choice = TypeVar("Choice", bound=StrEnum)
MOST_AT_ONCE = 1_000
FARTHEST = 10_000_000


def known(given: Mapping[str, Any], names: Sequence[str]) -> None:
    """Refuse what there is no place for, rather than lose it."""
    unknown = sorted(set(given) - set(names))
    if unknown:
        raise Invalid(f"There is no field {', '.join(unknown)} to be set here; these can be: {', '.join(names)}")


def said(given: Mapping[str, Any]) -> dict[str, Any]:
    """For a new record: what is null was not said."""
    return {name: value for name, value in given.items() if value is not None}


def emptied(kind: type, given: Mapping[str, Any]) -> dict[str, Any]:
    """For a change of a record of this kind: null empties what can be empty."""
    empty = {field.name: _empty(field.default, field.default_factory) for field in fields(kind)}
    for name, value in given.items():
        if value is None and empty.get(name, MISSING) is MISSING:
            raise Invalid(f"{name} cannot be empty; give a value, or leave it out to keep the one it has")
    return {name: empty[name] if value is None else value for name, value in given.items()}


def chosen(given: dict[str, Any], kinds: Mapping[str, type[StrEnum]]) -> dict[str, Any]:
    """With the named ones as the choices they are."""
    found = {name: choice(kind, name, given[name]) for name, kind in kinds.items() if name in given}
    return {**given, **found}


def choice(kind: type[Choice], name: str, value: str) -> Choice:
    try:
        return kind(value)
    except ValueError as error:
        *others, last = [one.value for one in kind]
        raise Invalid(f"{name} is {', '.join(others)} or {last}") from error


def within(record: object, name: str, least: float, most: float) -> None:
    """Where the record has a number there."""
    value = getattr(record, name)
    if value is not None and not least <= value <= most:
        raise Invalid(f"{name} must be from {least} to {most}")


def short(record: object, name: str, most: int, least: int = 0) -> None:
    """Where the record has a text there."""
    value = getattr(record, name)
    if value is not None and not least <= len(value) <= most:
        raise Invalid(f"{name} must have {least} to {most} characters; this has {len(value)}")


def one_page(limit: int, offset: int) -> None:
    if not 1 <= limit <= MOST_AT_ONCE:
        raise Invalid(f"limit must be from 1 to {MOST_AT_ONCE}")
    if not 0 <= offset <= FARTHEST:
        raise Invalid(f"offset must be from 0 to {FARTHEST}")


def _empty(default: object, factory: object) -> object:
    """What a field holds that holds nothing; MISSING for one that always holds something."""
    if factory is not MISSING:
        return {}
    return default if default is None or default in ("", ()) else MISSING
