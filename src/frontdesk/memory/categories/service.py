"""Categories as the doors use them."""

import re
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from frontdesk.errors import Conflict, Invalid
from frontdesk.identity import rights
from frontdesk.memory import checks
from frontdesk.memory.categories import store
from frontdesk.memory.given import Fields, taken, there
from frontdesk.memory.ids import new_id
from frontdesk.memory.model import Category
from frontdesk.memory.scope import Scope
from frontdesk.memory.store import Mine, Records

WHAT = "Category"
GIVEN = ("name", "description", "color", "icon")
COLOUR = re.compile(r"#[0-9A-Fa-f]{6}")
GREY = "#6B7280"
NAME, ICON = 50, 100


class Categories:
    """Names that a person puts things under; each is found by its id, or by its name in any case."""

    def __init__(self, records: Records) -> None:
        self._records = records

    async def every(self, scope: Scope) -> Sequence[Category]:
        """By their names."""
        scope.require(rights.CATEGORIES_READ)
        return await self._records.read(scope, store.every)

    async def get(self, scope: Scope, name_or_id: str) -> Category:
        scope.require(rights.CATEGORIES_READ)
        return await self._records.read(scope, partial(_get, name_or_id=name_or_id))

    async def create(self, scope: Scope, fields: Fields) -> Category:
        scope.require(rights.CATEGORIES_WRITE)
        return await self._records.change(scope, partial(_create, fields=fields))

    async def update(self, scope: Scope, name_or_id: str, fields: Fields) -> Category:
        scope.require(rights.CATEGORIES_WRITE)
        return await self._records.change(scope, partial(_update, name_or_id=name_or_id, fields=fields))

    async def delete(self, scope: Scope, name_or_id: str) -> None:
        """What was under it stays, under none."""
        scope.require(rights.CATEGORIES_WRITE)
        await self._records.change(scope, partial(_delete, name_or_id=name_or_id))


def _get(mine: Mine, name_or_id: str) -> Category:
    return there(store.find(mine, name_or_id), WHAT)


def _create(mine: Mine, fields: Fields) -> Category:
    mine.hold()
    values = {"name": "", **checks.said(_taken(mine, fields))}
    stamp: dict[str, Any] = {"id": new_id(mine.now), "created_at": mine.now, "updated_at": mine.now}
    category = _checked(mine, Category(**values, **stamp))
    store.add(mine, category)
    return category


def _update(mine: Mine, name_or_id: str, fields: Fields) -> Category:
    mine.hold()
    old = _get(mine, name_or_id)
    values = _taken(mine, fields)
    if "color" in values and values["color"] is None:
        values["color"] = GREY
    new = _checked(mine, replace(old, **checks.emptied(Category, values), updated_at=mine.now))
    store.write(mine, new)
    return new


def _delete(mine: Mine, name_or_id: str) -> None:
    store.remove(mine, _get(mine, name_or_id).id)


def _taken(mine: Mine, fields: Fields) -> dict[str, Any]:
    values = taken(mine, fields, None, {})
    checks.known(values, GIVEN)
    if isinstance(values.get("name"), str):
        values["name"] = " ".join(values["name"].split())
    return values


def _checked(mine: Mine, category: Category) -> Category:
    checks.short(category, "name", NAME, least=1)
    checks.short(category, "icon", ICON)
    if COLOUR.fullmatch(category.color) is None:
        raise Invalid("color must be written as #RRGGBB, e.g. #6B7280")
    namesake = store.find(mine, category.name)
    if namesake is not None and namesake.id != category.id:
        raise Conflict(f"There is a category '{namesake.name}' already; use that one, or choose another name")
    return category
