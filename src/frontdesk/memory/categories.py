"""Offers categories: list, read, create, change, delete."""

import re
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from frontdesk.errors import Conflict, Invalid
from frontdesk.identity import rights
from frontdesk.memory.items_store import delete_category, find_category, insert_category, list_categories, save_category
from frontdesk.memory.model import Category, PersonScope
from frontdesk.memory.store import PersonDatabase, PersonTransaction
from frontdesk.memory.validation import (
    Fields,
    check_field_names,
    check_length,
    new_id,
    nulls_to_empty,
    parse_fields,
    require_found,
    without_nulls,
)

CATEGORY_NAME = "Category"
SETTABLE_FIELDS = ("name", "description", "color", "icon")
COLOUR_PATTERN = re.compile(r"#[0-9A-Fa-f]{6}")
DEFAULT_COLOUR = "#6B7280"
MAX_NAME, MAX_ICON = 50, 100


class CategoryService:
    """Names under which a person sorts records; each is found by its id, or by its name in any case."""

    def __init__(self, records: PersonDatabase) -> None:
        self._records = records

    async def list_all(self, scope: PersonScope) -> Sequence[Category]:
        """All categories, by name."""
        scope.require(rights.CATEGORIES_READ)
        return await self._records.read(scope, list_categories)

    async def get(self, scope: PersonScope, name_or_id: str) -> Category:
        scope.require(rights.CATEGORIES_READ)
        return await self._records.read(scope, partial(_get_category, name_or_id=name_or_id))

    async def create(self, scope: PersonScope, fields: Fields) -> Category:
        scope.require(rights.CATEGORIES_WRITE)
        return await self._records.change(scope, partial(_create_category, fields=fields))

    async def update(self, scope: PersonScope, name_or_id: str, fields: Fields) -> Category:
        scope.require(rights.CATEGORIES_WRITE)
        return await self._records.change(scope, partial(_update_category, name_or_id=name_or_id, fields=fields))

    async def delete(self, scope: PersonScope, name_or_id: str) -> None:
        """Delete a category. Its items stay, without a category."""
        scope.require(rights.CATEGORIES_WRITE)
        await self._records.change(scope, partial(_delete_category, name_or_id=name_or_id))


def _get_category(transaction: PersonTransaction, name_or_id: str) -> Category:
    return require_found(find_category(transaction, name_or_id), CATEGORY_NAME)


def _create_category(transaction: PersonTransaction, fields: Fields) -> Category:
    transaction.lock_person()
    values = {"name": "", **without_nulls(_parse_category(transaction, fields))}
    stamp: dict[str, Any] = {
        "id": new_id(transaction.now),
        "created_at": transaction.now,
        "updated_at": transaction.now,
    }
    category = _check_category(transaction, Category(**values, **stamp))
    insert_category(transaction, category)
    return category


def _update_category(transaction: PersonTransaction, name_or_id: str, fields: Fields) -> Category:
    transaction.lock_person()
    old = _get_category(transaction, name_or_id)
    values = _parse_category(transaction, fields)
    if "color" in values and values["color"] is None:
        values["color"] = DEFAULT_COLOUR
    new = _check_category(transaction, replace(old, **nulls_to_empty(Category, values), updated_at=transaction.now))
    save_category(transaction, new)
    return new


def _delete_category(transaction: PersonTransaction, name_or_id: str) -> None:
    delete_category(transaction, _get_category(transaction, name_or_id).id)


def _parse_category(transaction: PersonTransaction, fields: Fields) -> dict[str, Any]:
    values = parse_fields(transaction, fields, None, {})
    check_field_names(values, SETTABLE_FIELDS)
    if isinstance(values.get("name"), str):
        values["name"] = " ".join(values["name"].split())
    return values


def _check_category(transaction: PersonTransaction, category: Category) -> Category:
    check_length(category, "name", MAX_NAME, least=1)
    check_length(category, "icon", MAX_ICON)
    if COLOUR_PATTERN.fullmatch(category.color) is None:
        raise Invalid("color must be written as #RRGGBB, e.g. #6B7280")
    namesake = find_category(transaction, category.name)
    if namesake is not None and namesake.id != category.id:
        raise Conflict(f"There is a category '{namesake.name}' already; use that one, or choose another name")
    return category
