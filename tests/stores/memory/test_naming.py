"""Records known by how their ids begin, and who there is, on both databases."""

from functools import partial

import pytest

from frontdesk.db.engine import Database
from frontdesk.errors import Denied, Invalid, MissingScope, NotFound
from frontdesk.identity.model import Caller
from frontdesk.memory.items import store as items
from frontdesk.memory.model import Item, ItemType
from frontdesk.memory.naming.service import Names
from frontdesk.memory.roster.service import Roster
from frontdesk.memory.scope import Scope
from frontdesk.memory.store import Mine, Records
from tests.stores.memory.conftest import ANN, BOB, NOON

pytestmark = pytest.mark.anyio
FIRST, SECOND, OTHER = (f"0192f3a1-7b2{end}-7000-8000-000000000000" for end in "cde")


def put(mine: Mine, item_id: str, kind: ItemType) -> None:
    items.add(mine, Item(id=item_id, type=kind, title="Book the train", created_at=NOON, updated_at=NOON), "train")


@pytest.fixture
async def names(records: Records) -> Names:
    """Ann has two tasks and a memory, whose ids begin alike; Bob has nothing."""
    kept = {FIRST: ItemType.TASK, SECOND: ItemType.TASK, OTHER: ItemType.MEMORY}
    for item_id, kind in kept.items():
        await records.change(ANN, partial(put, item_id=item_id, kind=kind))
    return Names(records)


async def test_as_much_of_an_id_is_enough_as_no_other_of_its_kind_has(names: Names) -> None:
    assert await names.task(ANN, FIRST) == FIRST
    assert await names.task(ANN, FIRST[:13].upper() + " ") == FIRST
    assert await names.memory(ANN, OTHER[:8]) == OTHER
    with pytest.raises(Invalid, match=f"Several ids begin with 0192f3a1-7b2: {FIRST}, {SECOND}; give more"):
        await names.task(ANN, "0192f3a1-7b2")
    for text in ("0192f3a", "0192f3a1%", "Book the train", ""):
        with pytest.raises(Invalid, match="is no id; give one as it is listed, or its first 8 characters"):
            await names.task(ANN, text)


async def test_nobody_learns_how_ids_of_others_begin(names: Names) -> None:
    for look in (names.task, names.memory, names.work):
        with pytest.raises(NotFound, match="not found: no id begins with 0192f3a1"):
            await look(BOB, "0192f3a1")
        with pytest.raises(MissingScope):
            await look(Scope("ann", scopes=frozenset({"timeline.read"})), "0192f3a1")


async def test_who_there_is_is_for_the_operator_alone(names: Names, database: Database) -> None:
    roster = Roster(database)
    here = Caller("request", local=True)
    told = await roster.everybody(here, 10)
    assert [(one.user_id, one.zone) for one in told] == [("ann", "UTC")]
    assert await roster.everybody(here, 10, offset=1) == []
    others = (Caller("request"), Caller("request", user_id="ann", local=True), Caller("request", "clerk", local=True))
    for caller in others:
        with pytest.raises(Denied, match="is for the operator at this machine"):
            await roster.everybody(caller, 10)
