"""How a person's tasks hang together, on both databases: trees, what waits for what, and what follows from that."""

from datetime import timedelta
from typing import Any

import anyio
import pytest
from sqlalchemy import select

from frontdesk.db.engine import Database
from frontdesk.db.schema import timeline_items
from frontdesk.errors import Conflict, Invalid, NotFound
from frontdesk.memory.model import Task, TaskRelation, TaskStatus
from frontdesk.memory.tasks import TaskService
from tests.stores.memory.conftest import ANN, Clock
from tests.stores.memory.lab import make, titles

pytestmark = pytest.mark.anyio
DONE, OFF, GOING, WAITS = TaskStatus.COMPLETED, TaskStatus.CANCELLED, TaskStatus.IN_PROGRESS, TaskStatus.PENDING
AUTO: dict[str, Any] = {
    "completion_behavior": "auto_when_subtasks_complete",
    "progress_calculation": "average_subtasks",
}


async def test_a_task_moves_with_all_that_is_under_it(tasks: TaskService, database: Database) -> None:
    home, work = await make(tasks, "Home"), await make(tasks, "Work")
    paint = await make(tasks, "Paint", home)
    buy = await make(tasks, "Buy paint", paint, status="completed")
    await make(tasks, "Clean", home)
    assert (buy.hierarchy_level, buy.hierarchy_path) == (2, f"{home.id}/{paint.id}/{buy.id}")
    moved = await tasks.update(ANN, paint.id, {"parent_task_id": work.id})
    assert (moved.hierarchy_level, moved.hierarchy_path) == (1, f"{work.id}/{paint.id}")
    assert (moved.subtask_count, moved.completed_subtask_count) == (1, 1)
    assert (await tasks.get(ANN, buy.id)).hierarchy_path == f"{work.id}/{paint.id}/{buy.id}"
    assert [(await tasks.get(ANN, one.id)).subtask_count for one in (home, work)] == [1, 1]
    for parent in (paint, buy):
        with pytest.raises(Conflict, match="under itself"):
            await tasks.update(ANN, paint.id, {"parent_task_id": parent.id})
    alone = await tasks.update(ANN, paint.id, {"parent_task_id": None})
    assert (alone.hierarchy_level, alone.hierarchy_path, alone.parent_task_id) == (0, paint.id, None)
    assert (await tasks.get(ANN, buy.id)).hierarchy_level == 1
    assert await titles(tasks, root_tasks_only=True, sort_order="asc") == ["Home", "Work", "Paint"]
    assert await titles(tasks, include_subtasks=False, sort_order="asc") == ["Home", "Work", "Paint"]
    assert await titles(tasks, hierarchy_level=1, sort_by="title", sort_order="asc") == ["Buy paint", "Clean"]
    assert await titles(tasks, parent_task_id=home.id, include_subtasks=False) == ["Clean"]
    await tasks.update(ANN, home.id, {"parent_task_id": paint.id})
    assert (await tasks.delete(ANN, paint.id)).title == "Paint"
    assert await titles(tasks) == ["Work"]
    async with database.read_transaction() as connection:
        left = (await connection.execute(select(timeline_items.c.title))).scalars().all()
    assert left == ["Work"], "nothing of the subtree stays behind"


async def test_a_tree_is_told_in_its_order_as_deep_as_asked(tasks: TaskService) -> None:
    root = deepest = await make(tasks, "0")
    for number in range(1, 10):
        deepest = await make(tasks, str(number), deepest)
    with pytest.raises(Conflict, match="10 levels"):
        await make(tasks, "10", deepest)
    one = (await tasks.subtasks(ANN, root.id))[0]
    await make(tasks, "1b", root, status="completed")
    other = await make(tasks, "1a", root)
    with pytest.raises(Conflict, match="10 levels"):
        await tasks.update(ANN, root.id, {"parent_task_id": (await make(tasks, "Above")).id})
    ordered = await tasks.reorder(ANN, root.id, [other.id, one.id])
    assert [(task.title, task.subtask_order) for task in ordered] == [("1a", 0), ("1", 1), ("1b", 2)]
    assert (await make(tasks, "1c", root)).subtask_order == 3
    assert [task.title for task in await tasks.tree(ANN, root.id, 2)] == ["0", "1a", "1", "2", "1b", "1c"]
    open_ones = await tasks.tree(ANN, root.id, 1, include_completed=False)
    assert [task.title for task in open_ones] == ["0", "1a", "1", "1c"]
    assert len(await tasks.tree(ANN, root.id, 20)) == 13
    with pytest.raises(Invalid, match="named twice"):
        await tasks.reorder(ANN, root.id, [one.id, one.id])
    with pytest.raises(NotFound, match="Subtask not found"):
        await tasks.reorder(ANN, root.id, [deepest.id])


async def test_what_waits_for_others_is_not_completed_before_them(tasks: TaskService) -> None:
    cut, sew, sell, ship = [await make(tasks, title) for title in ("Cut", "Sew", "Sell", "Ship")]
    await tasks.update(ANN, sew.id, {"dependencies": [cut.id]})
    blocked = await tasks.link(ANN, sell.id, sew.id, TaskRelation.BLOCKED_BY)
    await tasks.link(ANN, ship.id, cut.id, TaskRelation.RELATED)
    with pytest.raises(Conflict, match=f"'Sew' cannot be completed yet, since it waits for 'Cut' \\({cut.id}\\)"):
        await tasks.set_status(ANN, sew.id, DONE)
    with pytest.raises(Conflict, match="'Sell' cannot"):
        await tasks.update(ANN, sell.id, {"status": "completed"})
    with pytest.raises(Conflict, match="'New' cannot"):
        await make(tasks, "New", status="completed", dependencies=[cut.id])
    for loop in ({"dependencies": [sell.id]}, {"dependencies": [cut.id]}, {"dependencies": [ship.id, sew.id]}):
        with pytest.raises(Conflict, match="wait for itself"):
            await tasks.update(ANN, cut.id, loop)
    for again in (TaskRelation.DEPENDENCY, TaskRelation.BLOCKED_BY):
        with pytest.raises(Conflict, match="wait for itself"):
            await tasks.link(ANN, cut.id, sell.id, again)
    with pytest.raises(Conflict, match="linked as blocked_by already"):
        await tasks.link(ANN, sell.id, sew.id, TaskRelation.BLOCKED_BY)
    with pytest.raises(Conflict, match="with itself"):
        await tasks.link(ANN, sell.id, sell.id, TaskRelation.RELATED)
    await tasks.set_status(ANN, cut.id, OFF)
    await tasks.set_status(ANN, sew.id, DONE)
    await tasks.set_status(ANN, cut.id, GOING)
    assert len(await tasks.links(ANN)) == 3
    assert [one.id for one in await tasks.links(ANN, sell.id)] == [blocked.id]
    assert (await tasks.unlink(ANN, blocked.id)).relation is TaskRelation.BLOCKED_BY
    changed = await tasks.update(ANN, sell.id, {"dependencies": [cut.id, ship.id]})
    assert changed.dependencies == (cut.id, ship.id)
    assert (await tasks.update(ANN, sell.id, {"dependencies": [ship.id]})).dependencies == (ship.id,)
    await tasks.delete(ANN, ship.id)
    assert (await tasks.set_status(ANN, sell.id, DONE)).dependencies == ()
    assert [one.relation for one in await tasks.links(ANN)] == [TaskRelation.DEPENDENCY]


async def test_subtasks_complete_and_reopen_the_tasks_above_them(tasks: TaskService, clock: Clock) -> None:
    trip = await make(tasks, "Trip", **AUTO)
    book = await make(tasks, "Book", trip, **AUTO)
    train, hotel = await make(tasks, "Train", book), await make(tasks, "Hotel", book)
    pack, optional = await make(tasks, "Pack", trip), await make(tasks, "Maybe", trip)

    async def stands(task: Task) -> tuple[TaskStatus, int, int, int]:
        found = await tasks.get(ANN, task.id)
        return found.status, found.progress, found.subtask_count, found.completed_subtask_count

    await tasks.update(ANN, train.id, {"progress": 50})
    assert (await stands(book), await stands(trip)) == ((WAITS, 25, 2, 0), (WAITS, 8, 3, 0))
    clock.forward(timedelta(minutes=1))
    await tasks.set_status(ANN, train.id, DONE)
    assert await stands(book) == (WAITS, 50, 2, 1)
    await tasks.set_status(ANN, hotel.id, DONE)
    assert (await stands(book), await stands(trip)) == ((DONE, 100, 2, 2), (WAITS, 33, 3, 1))
    assert (await tasks.get(ANN, book.id)).completion_date == clock.now
    await tasks.set_status(ANN, optional.id, OFF)
    assert await stands(trip) == (WAITS, 50, 3, 1), "what was called off does not count"
    await tasks.set_status(ANN, pack.id, DONE)
    assert await stands(trip) == (DONE, 100, 3, 2)
    await tasks.set_status(ANN, hotel.id, GOING, progress=0)
    assert (await stands(book), await stands(trip)) == ((GOING, 50, 2, 1), (GOING, 75, 3, 1))
    await tasks.delete(ANN, hotel.id)
    assert (await stands(book), await stands(trip)) == ((DONE, 100, 1, 1), (DONE, 100, 3, 2))
    visa = await make(tasks, "Visa", book)
    assert (await stands(book), await stands(trip)) == ((GOING, 50, 2, 1), (GOING, 75, 3, 1))
    await tasks.update(ANN, visa.id, {"parent_task_id": None})
    assert await stands(trip) == (DONE, 100, 3, 2)
    await tasks.update(ANN, optional.id, {"parent_task_id": visa.id, "status": "pending"})
    assert (await stands(trip))[2:] == (2, 2)
    by_hand = await tasks.update(ANN, visa.id, {"progress_calculation": "weighted_subtasks", "progress": 90})
    assert by_hand.progress == 0, "it is the subtasks' from now on"


async def test_a_task_that_waited_is_completed_with_its_subtasks_once_the_way_is_free(tasks: TaskService) -> None:
    gate = await make(tasks, "Gate")
    parent = await make(tasks, "Parent", **AUTO, dependencies=[gate.id])
    child = await make(tasks, "Child", parent)
    await tasks.set_status(ANN, child.id, DONE)
    held = await tasks.get(ANN, parent.id)
    assert (held.status, held.completed_subtask_count) == (WAITS, 1)
    await tasks.set_status(ANN, gate.id, DONE)
    assert (await tasks.get(ANN, parent.id)).status is DONE
    await tasks.set_status(ANN, child.id, GOING)
    await tasks.set_status(ANN, gate.id, WAITS)
    await tasks.set_status(ANN, child.id, DONE)
    assert (await tasks.get(ANN, parent.id)).status is GOING
    await tasks.delete(ANN, gate.id)
    assert (await tasks.get(ANN, parent.id)).status is DONE


async def test_subtasks_that_are_completed_all_at_once_complete_the_task_above(tasks: TaskService) -> None:
    top = await make(tasks, "Top", **AUTO)
    middles = [await make(tasks, f"Middle {number}", top, **AUTO) for number in range(2)]
    leaves = [await make(tasks, f"Leaf {number}", middles[number % 2]) for number in range(12)]
    with anyio.fail_after(30):
        async with anyio.create_task_group() as group:
            for leaf in leaves:
                group.start_soon(tasks.set_status, ANN, leaf.id, DONE)
    found = await tasks.get(ANN, top.id)
    assert (found.status, found.progress, found.completed_subtask_count) == (DONE, 100, 2)
    assert [(await tasks.get(ANN, one.id)).completed_subtask_count for one in middles] == [6, 6]
    with anyio.fail_after(30):
        async with anyio.create_task_group() as group:
            for leaf in leaves[:6]:
                group.start_soon(tasks.delete, ANN, leaf.id)
            for leaf in leaves[6:]:
                group.start_soon(tasks.update, ANN, leaf.id, {"parent_task_id": top.id})
    found = await tasks.get(ANN, top.id)
    assert (found.subtask_count, found.completed_subtask_count) == (8, 8)
    assert [(await tasks.get(ANN, one.id)).subtask_count for one in middles] == [0, 0]


async def test_two_links_made_at_once_do_not_make_a_circle(tasks: TaskService) -> None:
    ring = [await make(tasks, str(number)) for number in range(6)]
    refused: list[Conflict] = []

    async def link(one: Task, other: Task) -> None:
        try:
            await tasks.link(ANN, one.id, other.id, TaskRelation.DEPENDENCY)
        except Conflict as error:
            refused.append(error)

    with anyio.fail_after(30):
        async with anyio.create_task_group() as group:
            for number, one in enumerate(ring):
                group.start_soon(link, one, ring[number - 1])
    assert len(refused) == 1
    assert len(await tasks.links(ANN)) == 5
