"""What people and agents give, made into what is kept: times in their zone, categories by name, texts as stored."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from frontdesk.errors import Invalid, NotFound
from frontdesk.loop.text import storable
from frontdesk.memory.categories import store as categories
from frontdesk.memory.moments import Edge, moment, zone_of
from frontdesk.memory.store import Mine

T = TypeVar("T")
Fields = Mapping[str, Any]
NAMED = 20


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """Some of what there is, and how much there is of it in all."""

    items: Sequence[T]
    total: int
    offset: int = 0

    @property
    def has_more(self) -> bool:
        return self.offset + len(self.items) < self.total


def taken(mine: Mine, fields: Fields, zone: str | None, edges: Mapping[str, Edge]) -> dict[str, Any]:
    """The fields as they are kept: those named in `edges` are times, `category` becomes a `category_id`."""
    where = zone_of(zone, mine.zone_name)
    found = {name: storable(value) if isinstance(value, str) else value for name, value in fields.items()}
    for name, edge in edges.items():
        if isinstance(found.get(name), str):
            found[name] = moment(found[name], where, name, edge)
    for name in ("tags", "companions"):
        if found.get(name) is not None:
            found[name] = tuple(storable(one) for one in found[name])
    if "category" in found:
        category = found.pop("category")
        found["category_id"] = category_id(mine, category) if category else None
    elif found.get("category_id"):
        found["category_id"] = category_id(mine, found["category_id"])
    return found


def category_id(mine: Mine, name_or_id: str) -> str:
    """The category that is meant, by name or id."""
    category = categories.find(mine, name_or_id)
    if category is None:
        names = [one.name for one in categories.every(mine)][:NAMED]
        raise Invalid(
            f"There is no category '{name_or_id[:100]}'; make it with create_category, or use one of: "
            f"{', '.join(names) or 'none yet'}"
        )
    return category.id


def there(found: T | None, what: str) -> T:
    """What was looked for, or the words for that it is not there."""
    if found is None:
        raise NotFound(f"{what} not found")
    return found
