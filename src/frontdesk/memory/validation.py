"""Parses and checks the fields of records: ids, choices, bounds, lengths, times, categories by name."""

import secrets
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass, fields
from datetime import datetime
from enum import StrEnum
from typing import Any, Generic, TypeVar

from frontdesk.errors import Invalid, NotFound
from frontdesk.memory.items_store import find_category, list_categories
from frontdesk.memory.store import PersonTransaction
from frontdesk.memory.times import DayEdge, find_zone, parse_time
from frontdesk.text import storable

Choice = TypeVar("Choice", bound=StrEnum)
MAX_PAGE = 1_000
MAX_OFFSET = 10_000_000


def check_field_names(arguments: Mapping[str, Any], names: Sequence[str]) -> None:
    """Refuse unknown fields, instead of losing them."""
    unknown = sorted(set(arguments) - set(names))
    if unknown:
        raise Invalid(f"There is no field {', '.join(unknown)} to be set here; these can be: {', '.join(names)}")


def without_nulls(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """For a new record: null counts as not given."""
    return {name: value for name, value in arguments.items() if value is not None}


def nulls_to_empty(kind: type, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """For changes of a record of this class: null empties a field that can be empty."""
    empty = {field.name: _empty_value(field.default, field.default_factory) for field in fields(kind)}
    for name, value in arguments.items():
        if value is None and empty.get(name, MISSING) is MISSING:
            raise Invalid(f"{name} cannot be empty; give a value, or leave it out to keep the one it has")
    return {name: empty[name] if value is None else value for name, value in arguments.items()}


def parse_choices(arguments: dict[str, Any], kinds: Mapping[str, type[StrEnum]]) -> dict[str, Any]:
    """Parse the named fields as choices."""
    found = {name: parse_choice(kind, name, arguments[name]) for name, kind in kinds.items() if name in arguments}
    return {**arguments, **found}


def parse_choice(kind: type[Choice], name: str, value: str) -> Choice:
    try:
        return kind(value)
    except ValueError as error:
        *others, last = [one.value for one in kind]
        raise Invalid(f"{name} is {', '.join(others)} or {last}") from error


def check_range(record: object, name: str, least: float, most: float) -> None:
    """Check a number of the record, if there is one."""
    value = getattr(record, name)
    if value is not None and not least <= value <= most:
        raise Invalid(f"{name} must be from {least} to {most}")


def check_length(record: object, name: str, most: int, least: int = 0) -> None:
    """Check the length of a text of the record, if there is one."""
    value = getattr(record, name)
    if value is not None and not least <= len(value) <= most:
        raise Invalid(f"{name} must have {least} to {most} characters; this has {len(value)}")


def check_page(limit: int, offset: int) -> None:
    if not 1 <= limit <= MAX_PAGE:
        raise Invalid(f"limit must be from 1 to {MAX_PAGE}")
    if not 0 <= offset <= MAX_OFFSET:
        raise Invalid(f"offset must be from 0 to {MAX_OFFSET}")


def _empty_value(default: object, factory: object) -> object:
    """The empty value of a field; MISSING if it cannot be empty."""
    if factory is not MISSING:
        return {}
    return default if default is None or default in ("", ()) else MISSING


UUID_VERSION, UUID_VARIANT = 0x7 << 76, 0x2 << 62


def new_id(now: datetime) -> str:
    """A UUID of version 7."""
    milliseconds = int(now.timestamp() * 1000) << 80
    chance = secrets.randbits(74)
    return str(
        uuid.UUID(int=milliseconds | UUID_VERSION | (chance >> 62) << 64 | UUID_VARIANT | chance & (1 << 62) - 1)
    )


def parse_id(text: str, what: str) -> str:
    """An id as it is stored. A text that cannot be an id raises `NotFound`."""
    try:
        return str(uuid.UUID(text))
    except ValueError:
        raise NotFound(f"{what} not found") from None


T = TypeVar("T")
Fields = Mapping[str, Any]
MAX_NAMED = 20


@dataclass(frozen=True, slots=True)
class RecordPage(Generic[T]):
    """A page of records, and how many there are in all."""

    items: Sequence[T]
    total: int
    offset: int = 0

    @property
    def has_more(self) -> bool:
        return self.offset + len(self.items) < self.total


def parse_fields(
    transaction: PersonTransaction, fields: Fields, zone: str | None, edges: Mapping[str, DayEdge]
) -> dict[str, Any]:
    """Parse fields: those in `edges` are times, and `category` becomes `category_id`."""
    where = find_zone(zone, transaction.zone_name)
    found = {name: storable(value) if isinstance(value, str) else value for name, value in fields.items()}
    for name, edge in edges.items():
        if isinstance(found.get(name), str):
            found[name] = parse_time(found[name], where, name, edge)
    for name in ("tags", "companions"):
        if found.get(name) is not None:
            found[name] = tuple(storable(one) for one in found[name])
    if "category" in found:
        category = found.pop("category")
        found["category_id"] = find_category_id(transaction, category) if category else None
    elif found.get("category_id"):
        found["category_id"] = find_category_id(transaction, found["category_id"])
    return found


def find_category_id(transaction: PersonTransaction, name_or_id: str) -> str:
    """Find a category by name or id."""
    category = find_category(transaction, name_or_id)
    if category is None:
        names = [one.name for one in list_categories(transaction)][:MAX_NAMED]
        raise Invalid(
            f"There is no category '{name_or_id[:100]}'; make it with create_category, or use one of: "
            f"{', '.join(names) or 'none yet'}"
        )
    return category.id


def require_found(found: T | None, what: str) -> T:
    """Return what was found, or raise `NotFound`."""
    if found is None:
        raise NotFound(f"{what} not found")
    return found
