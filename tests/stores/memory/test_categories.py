"""Categories, by id and by name, on both databases."""

from typing import Any

import pytest

from frontdesk.errors import Conflict, Invalid, MissingScope, NotFound
from frontdesk.identity import rights
from frontdesk.memory.categories import CategoryService
from frontdesk.memory.memories import MemoryService
from frontdesk.memory.model import PersonScope
from frontdesk.memory.store import PersonDatabase

pytestmark = pytest.mark.anyio
ANN, BOB = PersonScope("ann"), PersonScope("bob")


@pytest.fixture
def categories(records: PersonDatabase) -> CategoryService:
    return CategoryService(records)


async def test_a_category_is_found_by_its_id_and_by_its_name_in_any_case(categories: CategoryService) -> None:
    made = await categories.create(
        ANN, {"name": "  Große   Dinge ", "color": "#a1B2c3", "description": "big", "icon": "🏔"}
    )
    assert (made.name, made.color, made.description, made.icon) == ("Große Dinge", "#a1B2c3", "big", "🏔")
    plain = await categories.create(ANN, {"name": "art"})
    assert (plain.color, plain.description, plain.icon) == ("#6B7280", "", "")
    for name in (made.id, made.id.upper(), "GROSSE dinge", "große  dinge"):
        assert await categories.get(ANN, name) == made
    assert await categories.list_all(ANN) == [plain, made]
    with pytest.raises(NotFound, match="Category not found"):
        await categories.get(ANN, "grosse")


async def test_a_name_is_used_once_whatever_its_case(categories: CategoryService) -> None:
    made = await categories.create(ANN, {"name": "Work"})
    other = await categories.create(ANN, {"name": "Home"})
    with pytest.raises(Conflict, match="'Work' already"):
        await categories.create(ANN, {"name": "WORK"})
    with pytest.raises(Conflict):
        await categories.update(ANN, other.id, {"name": "work"})
    assert (await categories.update(ANN, made.id, {"name": "WORK"})).name == "WORK"
    assert (await categories.create(BOB, {"name": "Work"})).id != made.id


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"name": " "}, "name must have 1 to 50"),
        ({"name": "n" * 51}, "name must have"),
        ({"name": None}, "name"),
        ({"color": "red"}, "#RRGGBB"),
        ({"color": "#6B7280\n"}, "#RRGGBB"),
        ({"icon": "i" * 101}, "icon"),
        ({"size": 3}, "There is no field size"),
    ],
)
async def test_what_cannot_be_is_refused(categories: CategoryService, wrong: dict[str, Any], said: str) -> None:
    kept = await categories.create(ANN, {"name": "kept"})
    with pytest.raises(Invalid, match=said):
        await categories.create(ANN, {"name": "new", **wrong})
    with pytest.raises(Invalid, match=said):
        await categories.update(ANN, kept.id, wrong)
    assert await categories.list_all(ANN) == [kept]


async def test_a_change_touches_what_it_names(categories: CategoryService) -> None:
    made = await categories.create(ANN, {"name": "Work", "color": "#000000", "description": "d", "icon": "i"})
    changed = await categories.update(ANN, "work", {"description": "other"})
    assert (changed.name, changed.color, changed.description) == ("Work", "#000000", "other")
    cleared = await categories.update(ANN, made.id, {"description": None, "color": None, "icon": None})
    assert (cleared.color, cleared.description, cleared.icon) == ("#6B7280", "", "")
    assert await categories.get(ANN, made.id) == cleared


async def test_what_was_under_a_deleted_category_stays(records: PersonDatabase, categories: CategoryService) -> None:
    made = await categories.create(ANN, {"name": "Work"})
    memory = await MemoryService(records).create(ANN, {"note": "n", "category_id": "work"})
    assert memory.category_id == made.id
    await categories.delete(ANN, "WORK")
    assert await categories.list_all(ANN) == []
    assert (await MemoryService(records).get(ANN, memory.id)).category_id is None


async def test_nobody_reaches_the_categories_of_somebody_else(categories: CategoryService) -> None:
    made = await categories.create(ANN, {"name": "Work"})
    for name in (made.id, "Work"):
        for attempt in (
            categories.get(BOB, name),
            categories.update(BOB, name, {"name": "x"}),
            categories.delete(BOB, name),
        ):
            with pytest.raises(NotFound):
                await attempt
    assert await categories.list_all(BOB) == []
    assert await categories.list_all(ANN) == [made]


async def test_each_right_opens_its_own_methods(categories: CategoryService) -> None:
    reader = PersonScope("ann", None, frozenset({rights.CATEGORIES_READ}))
    writer = PersonScope("ann", None, frozenset({rights.CATEGORIES_WRITE}))
    made = await categories.create(writer, {"name": "Work"})
    assert await categories.list_all(reader) == [made]
    for attempt in (
        categories.create(reader, {"name": "x"}),
        categories.update(reader, made.id, {}),
        categories.delete(reader, made.id),
        categories.get(writer, made.id),
        categories.list_all(writer),
    ):
        with pytest.raises(MissingScope):
            await attempt
