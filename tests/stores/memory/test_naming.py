"""Records known by how their ids begin, and who there is, on both databases."""

from datetime import timedelta
from functools import partial

import pytest

from frontdesk.db.engine import Database
from frontdesk.errors import Denied, Invalid, MissingScope, NotFound
from frontdesk.identity.model import Caller
from frontdesk.memory.id_lookup_store import IdLookup
from frontdesk.memory.items_store import insert_item
from frontdesk.memory.model import ItemType, PersonScope, TimelineItem
from frontdesk.memory.people import PeopleDirectory
from frontdesk.memory.store import PersonDatabase, PersonTransaction
from tests.stores.memory.conftest import ANN, BOB, NOON

pytestmark = pytest.mark.anyio
FIRST, SECOND, OTHER = (f"0192f3a1-7b2{end}-7000-8000-000000000000" for end in "cde")


def put(mine: PersonTransaction, item_id: str, kind: ItemType) -> None:
    insert_item(
        mine, TimelineItem(id=item_id, type=kind, title="Book the train", created_at=NOON, updated_at=NOON), "train"
    )


@pytest.fixture
async def names(records: PersonDatabase) -> IdLookup:
    """Ann has two tasks and a memory, whose ids begin alike; Bob has nothing."""
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
