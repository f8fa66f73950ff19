"""Tests categories by id and by name, and records found by the first characters of their ids."""

from datetime import timedelta
from functools import partial
from typing import Any

import pytest

from frontdesk.db.engine import Database
from frontdesk.errors import Conflict, Denied, Invalid, MissingScope, NotFound
from frontdesk.identity import rights
from frontdesk.identity.model import Caller
from frontdesk.memory.categories import CategoryService
from frontdesk.memory.items_store import IdLookup, insert_item
from frontdesk.memory.memories import MemoryService
from frontdesk.memory.model import ItemType, PersonScope, TimelineItem
from frontdesk.memory.people import PeopleDirectory
from frontdesk.memory.store import PersonDatabase, PersonTransaction
from tests.stores.memory.conftest import ANN, BOB, NOON

# Records by the first characters of their ids, and the list of people, on both databases


FIRST, SECOND, OTHER = (f"0192f3a1-7b2{end}-7000-8000-000000000000" for end in "cde")


def put(mine: PersonTransaction, item_id: str, kind: ItemType) -> None:
    insert_item(
        mine, TimelineItem(id=item_id, type=kind, title="Book the train", created_at=NOON, updated_at=NOON), "train"
    )


@pytest.fixture
async def names(records: PersonDatabase) -> IdLookup:
    """Ann has two tasks and a memory, whose ids have the same first characters; Bob has nothing."""
    kept = {FIRST: ItemType.TASK, SECOND: ItemType.TASK, OTHER: ItemType.MEMORY}
    for item_id, kind in kept.items():
        await records.change(ANN, partial(put, item_id=item_id, kind=kind))
    return IdLookup(records)


async def test_as_much_of_an_id_is_enough_as_no_other_of_its_kind_has(names: IdLookup) -> None:
    assert await names.task(ANN, FIRST) == FIRST
    assert await names.task(ANN, FIRST[:13].upper() + " ") == FIRST
    assert await names.memory(ANN, OTHER[:8]) == OTHER
    with pytest.raises(Invalid, match=f"Several ids begin with 0192f3a1-7b2: {FIRST}, {SECOND}; give more"):
        await names.task(ANN, "0192f3a1-7b2")
    for text in ("0192f3a", "0192f3a1%", "Book the train", ""):
        with pytest.raises(Invalid, match="is no id; give one as it is listed, or its first 8 characters"):
            await names.task(ANN, text)


async def test_nobody_learns_how_ids_of_others_begin(names: IdLookup) -> None:
    for look in (names.task, names.memory, names.ai_task):
        with pytest.raises(NotFound, match="not found: no id begins with 0192f3a1"):
            await look(BOB, "0192f3a1")
        with pytest.raises(MissingScope):
            await look(PersonScope("ann", scopes=frozenset({"timeline.read"})), "0192f3a1")


async def test_who_there_is_is_for_the_operator_alone(names: IdLookup, database: Database) -> None:
    people = PeopleDirectory(database)
    here = Caller("request", local=True)
    told = await people.list_people(here, 10)
    assert [(one.user_id, one.zone) for one in told] == [("ann", "UTC")]
    assert await people.list_people(here, 10, offset=1) == []
    others = (Caller("request"), Caller("request", user_id="ann", local=True), Caller("request", "clerk", local=True))
    for caller in others:
        with pytest.raises(Denied, match="is for the operator at this machine"):
            await people.list_people(caller, 10)


async def test_each_person_is_listed_with_their_own_last_change(records: PersonDatabase, database: Database) -> None:
    later = NOON + timedelta(hours=1)
    for scope, at in ((ANN, NOON), (BOB, later)):
        item = TimelineItem(id=FIRST, type=ItemType.TASK, title="Pay", created_at=NOON, updated_at=at)
        await records.change(scope, partial(insert_item, item=item, text="pay"))
    await records.change(PersonScope("cleo"), lambda _: None)
    directory, operator = PeopleDirectory(database), Caller("request", local=True)
    listed = await directory.list_active_people(operator, 10)
    assert [(one.person.user_id, one.last_change) for one in listed] == [("ann", NOON), ("bob", later), ("cleo", None)]
    assert await directory.list_active_people(operator, 10, after="ann", beginning="B") == [listed[1]]
    assert await directory.person(operator, "bob") == listed[1]
    assert await directory.person(operator, "nobody") is None
    with pytest.raises(Denied, match="is for the operator at this machine"):
        await directory.list_active_people(Caller("request", user_id="ann", local=True), 10)


# Categories, by id and by name, on both databases


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
