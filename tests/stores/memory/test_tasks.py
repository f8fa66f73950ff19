"""Tests a person's tasks on both databases: stored, found, and related to each other."""

from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import anyio
import pytest
from sqlalchemy import select

from frontdesk.db.engine import Database
from frontdesk.db.schema import timeline_items
from frontdesk.errors import Conflict, Invalid, MissingScope, NotFound
from frontdesk.memory.items_store import fetch_item
from frontdesk.memory.model import ItemStatus, PersonScope, Priority, Task, TaskRelation, TaskStatus
from frontdesk.memory.store import PersonDatabase
from frontdesk.memory.tasks import TaskService
from frontdesk.memory.tasks_rules import TaskFilter
from frontdesk.memory.times import span_of_days
from frontdesk.memory.validation import new_id
from tests.stores.memory.conftest import ANN, BOB, NOON, Clock, add_category, live_in, make, refusal, titles

# Tasks: their fields, the ways to find them, and their owner


DONE, GOING, WAITS = TaskStatus.COMPLETED, TaskStatus.IN_PROGRESS, TaskStatus.PENDING


async def test_a_task_is_kept_as_it_was_given_and_stands_on_the_timeline(
    tasks: TaskService, records: PersonDatabase, clock: Clock
) -> None:
    work = await add_category(records, "Work")
    first = await make(tasks, "Before")
    made = await tasks.create(
        ANN,
        {
            "title": "  Book the train ",
            "description": "To Kyiv",
            "priority": Priority.HIGH,
            "category": "WORK",
            "due_date": "2026-11-25",
            "estimated_duration": 30,
            "assignee": "Ann",
            "tags": ["Travel", "soon"],
            "notes": "Window seat",
            "dependencies": [first.id, first.id],
            "metadata": {"from": "app"},
            "status": None,
        },
        "Europe/Berlin",
    )
    assert made == await tasks.get(ANN, made.id.upper())
    assert (made.title, made.category_id, made.status, made.progress) == ("Book the train", work.id, WAITS, 0)
    assert made.due_date == datetime(2026, 11, 25, 22, 59, 59, tzinfo=UTC)
    assert (made.tags, made.dependencies, made.metadata) == (("Travel", "soon"), (first.id,), {"from": "app"})
    assert (made.hierarchy_level, made.hierarchy_path, made.created_at) == (0, made.id, NOON)
    item = await records.read(ANN, lambda mine: fetch_item(mine, made.id))
    assert item is not None
    assert (item.type, item.title, item.start_time, item.end_time) == ("task", "Book the train", None, made.due_date)
    clock.forward(timedelta(days=1))
    later = await tasks.update(ANN, made.id, {"assignee": None, "due_date": None, "category": None, "tags": None})
    assert (later.assignee, later.due_date, later.category_id, later.tags) == (None, None, None, ())
    assert (later.title, later.notes, later.updated_at) == (made.title, "Window seat", NOON + timedelta(days=1))
    for status, stands in {"on_hold": "inactive", "cancelled": "cancelled", "in_progress": "active"}.items():
        await tasks.update(ANN, made.id, {"status": status})
        item = await records.read(ANN, lambda mine: fetch_item(mine, made.id))
        assert item is not None
        assert item.status is ItemStatus(stands)


@pytest.mark.parametrize("settings", ["sqlite"], indirect=True)
@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({}, "title is missing"),
        ({"title": "  "}, "title must have 1 to 200 characters; this has 0"),
        ({"title": "x" * 201}, "title must have 1 to 200"),
        ({"title": "x", "progress": 101}, "progress must be from 0 to 100"),
        ({"title": "x", "estimated_duration": 0}, "estimated_duration must be from 1"),
        ({"title": "x", "estimated_duration": 2**70}, "estimated_duration must be from 1"),
        ({"title": "x", "assignee": "x" * 201}, "assignee must have"),
        ({"title": "x", "status": "done"}, "status is pending, in_progress"),
        ({"title": "x", "due_date": "soon"}, "due_date must be a day"),
        ({"title": "x", "category": "Nowhere"}, "no category 'Nowhere'"),
        ({"title": "x", "hierarchy_level": 3}, "no field hierarchy_level"),
    ],
)
async def test_what_makes_no_sense_is_refused_with_what_to_do(
    tasks: TaskService, fields: dict[str, object], words: str
) -> None:
    with pytest.raises(Invalid, match=words):
        await tasks.create(ANN, fields)
    there = await make(tasks, "There")
    if fields:
        with pytest.raises(Invalid, match=words):
            await tasks.update(ANN, there.id, fields)
    for name in ("title", "status", "progress"):
        with pytest.raises(Invalid, match=f"{name} cannot be empty"):
            await tasks.update(ANN, there.id, {name: None})
    assert (await tasks.list(ANN, TaskFilter())).items == [there]


async def test_a_status_comes_with_what_it_entails(tasks: TaskService, clock: Clock) -> None:
    made = await make(tasks, "Write", description="A page")
    done = await tasks.set_status(ANN, made.id, DONE, "It is short", progress=10)
    assert (done.description, done.progress, done.completion_date) == ("A page\n\nIt is short", 100, NOON)
    clock.forward(timedelta(hours=1))
    assert (await tasks.update(ANN, made.id, {"title": "Written"})).completion_date == NOON
    again = await tasks.set_status(ANN, made.id, GOING)
    assert (again.progress, again.completion_date, again.description) == (100, None, done.description)
    assert (await tasks.set_status(ANN, made.id, GOING, progress=50)).progress == 50
    early = await make(tasks, "Earlier", status="completed", completion_date="2026-11-01T09:00Z")
    assert (early.progress, early.completion_date) == (100, datetime(2026, 11, 1, 9, tzinfo=UTC))


async def test_tasks_are_found_by_all_that_is_asked_and_in_a_total_order(
    tasks: TaskService, records: PersonDatabase, clock: Clock
) -> None:
    await add_category(records, "Work")
    each: dict[str, dict[str, Any]] = {
        "Äpfel kaufen": {"priority": "low", "tags": ["Über", "shop"], "due_date": "2026-11-22"},
        "Report": {"priority": "urgent", "category": "work", "notes": "50% of the figures", "due_date": "2026-11-19"},
        "Call Bob": {"priority": "high", "assignee": "ann", "tags": ["shop"], "status": "in_progress"},
        "Rest": {"status": "completed", "due_date": "2026-11-18", "description": "buy nothing"},
    }
    for title, fields in each.items():
        clock.forward(timedelta(minutes=1))
        await make(tasks, title, **fields)
    assert await titles(tasks) == ["Rest", "Call Bob", "Report", "Äpfel kaufen"]
    assert await titles(tasks, sort_by="priority") == ["Report", "Call Bob", "Rest", "Äpfel kaufen"]
    assert await titles(tasks, sort_by="due_date") == ["Äpfel kaufen", "Report", "Rest", "Call Bob"]
    assert await titles(tasks, sort_by="due_date", sort_order="asc") == ["Rest", "Report", "Äpfel kaufen", "Call Bob"]
    assert await titles(tasks, search="KAUFEN äpfel") == ["Äpfel kaufen"]
    assert await titles(tasks, search="50%") == await titles(tasks, category="WORK") == ["Report"]
    assert await titles(tasks, search="SHOP") == await titles(tasks, tags=["Shop"]) == ["Call Bob", "Äpfel kaufen"]
    assert await titles(tasks, tags=["shop", "über"], every_tag=True) == ["Äpfel kaufen"]
    assert await titles(tasks, tags=["shop", "Über"], every_tag=False) == ["Call Bob", "Äpfel kaufen"]
    assert await titles(tasks, overdue=True) == await titles(tasks, priority=Priority.URGENT) == ["Report"]
    assert await titles(tasks, status=GOING) == await titles(tasks, assignee="ann") == ["Call Bob"]
    assert await titles(tasks, due_after="2026-11-18", due_before="2026-11-19") == ["Rest", "Report"]
    assert await titles(tasks, created_after="2026-11-20T12:03Z", created_before="2026-11-20T12:03Z") == ["Call Bob"]
    assert await titles(tasks, updated_before="2026-11-19") == []
    assert len(await titles(tasks, updated_today=True, timezone="Asia/Tokyo")) == 4
    clock.forward(timedelta(hours=3))
    assert await titles(tasks, updated_today=True, timezone="Asia/Tokyo") == []
    page = await tasks.list(ANN, TaskFilter(limit=1, offset=1, sort_by="title", sort_order="asc"))
    assert ([one.title for one in page.items], page.total, page.has_more) == (["Report"], 4, True)
    for wrong in (TaskFilter(limit=0), TaskFilter(offset=2**70), TaskFilter(search="x" * 301)):
        with pytest.raises(Invalid):
            await tasks.list(ANN, wrong)
    with pytest.raises(Invalid, match="no category"):
        await tasks.list(ANN, TaskFilter(category="Nowhere"))


async def test_numbers_and_days_are_those_of_the_persons_zone(
    tasks: TaskService, records: PersonDatabase, database: Database, clock: Clock
) -> None:
    await add_category(records, "Work")
    await add_category(records, "Work", BOB)
    await live_in(database, "Asia/Tokyo")
    clock.now = datetime(2026, 11, 20, 14, 30, tzinfo=UTC)
    await make(tasks, "Today", due_date="2026-11-20", category="Work")
    await make(tasks, "Saturday", due_date="2026-11-21", priority="urgent")
    await make(tasks, "Monday", due_date="2026-11-23")
    await make(tasks, "Late", due_date="2026-11-19", status="on_hold")
    done = await make(tasks, "Done", due_date="2026-11-20")
    await tasks.create(BOB, {"title": "Bob's", "category": "Work", "status": "completed"})
    clock.forward(timedelta(minutes=20))
    await tasks.set_status(ANN, done.id, DONE)
    found = await tasks.stats(ANN)
    assert (found.total, found.overdue, found.due_today, found.due_this_week) == (5, 1, 1, 3)
    assert found.by_status == {"pending": 3, "in_progress": 0, "completed": 1, "on_hold": 1, "cancelled": 0}
    assert (found.by_priority["urgent"], found.by_category) == (1, {"Work": 1, "uncategorized": 4})
    assert (found.completion_rate, found.average_completion_time) == (20.0, 0.01)
    clock.forward(timedelta(minutes=20))
    found = await tasks.stats(ANN)
    assert (found.overdue, found.due_today, found.due_this_week) == (2, 1, 3), "it is Saturday in Tokyo"
    assert (await tasks.stats(ANN, zone="UTC")).due_today == 1
    assert (await tasks.stats(ANN, from_date="2026-11-21")).total == 0
    assert (await tasks.stats(ANN, to_date="2026-11-20")).total == 5
    later = await make(tasks, "Later")
    updates = await tasks.updated(ANN)
    assert ([one.title for one in updates.tasks], updates.total) == (["Later"], 1)
    assert updates.span == span_of_days(datetime(2026, 11, 21, tzinfo=UTC).date(), ZoneInfo("Asia/Tokyo"))
    before = await tasks.updated(ANN, "2026-11-20", "2026-11-20")
    assert before.tasks[0].title == "Done"
    assert before.total == 5
    assert (await tasks.updated(ANN, None, "2026-11-19")).tasks == []
    assert (await tasks.updated(ANN, zone="UTC")).tasks[0].id == later.id


async def test_nobody_sees_changes_or_links_tasks_of_another(tasks: TaskService) -> None:
    relation = TaskRelation.DEPENDENCY
    mine, other = await make(tasks, "Mine"), await make(tasks, "Also mine")
    link = await tasks.link(ANN, mine.id, other.id, relation)
    bobs = await tasks.create(BOB, {"title": "Bob's"})
    attempts: Sequence[Callable[[str], Awaitable[object]]] = (
        lambda one: tasks.get(BOB, one),
        lambda one: tasks.update(BOB, one, {"title": "Taken"}),
        lambda one: tasks.update(BOB, bobs.id, {"parent_task_id": one}),
        lambda one: tasks.update(BOB, bobs.id, {"dependencies": [one]}),
        lambda one: tasks.set_status(BOB, one, DONE),
        lambda one: tasks.delete(BOB, one),
        lambda one: tasks.tree(BOB, one),
        lambda one: tasks.subtasks(BOB, one),
        lambda one: tasks.reorder(BOB, one, []),
        lambda one: tasks.reorder(BOB, bobs.id, [one]),
        lambda one: tasks.create(BOB, {"title": "Under", "parent_task_id": one}),
        lambda one: tasks.create(BOB, {"title": "After", "dependencies": [one]}),
        lambda one: tasks.link(BOB, one, bobs.id, relation),
        lambda one: tasks.link(BOB, bobs.id, one, relation),
        lambda one: tasks.links(BOB, one),
        lambda one: tasks.list(BOB, TaskFilter(parent_task_id=one)),
    )
    for attempt in attempts:
        theirs, nobodys, no_id = [await refusal(attempt(one)) for one in (mine.id, new_id(NOON), "x")]
        assert theirs == nobodys == no_id
        assert theirs is not None
        assert theirs.startswith("NotFound")
    with pytest.raises(NotFound, match="Relation not found"):
        await tasks.unlink(BOB, link.id)
    assert [one.title for one in (await tasks.list(BOB, TaskFilter())).items] == ["Bob's"]
    assert (await tasks.links(BOB), (await tasks.stats(BOB)).total) == ([], 1)
    assert [one.title for one in (await tasks.updated(BOB)).tasks] == ["Bob's"]
    assert (await tasks.get(ANN, mine.id)).dependencies == (other.id,)


async def test_each_method_asks_for_its_right(tasks: TaskService) -> None:
    made = await make(tasks, "Mine")
    reader, writer = (
        PersonScope("ann", scopes=frozenset({"tasks.read"})),
        PersonScope("ann", scopes=frozenset({"tasks.write"})),
    )
    reads: Sequence[Callable[[PersonScope], Awaitable[object]]] = (
        lambda scope: tasks.get(scope, made.id),
        lambda scope: tasks.list(scope, TaskFilter()),
        tasks.stats,
        tasks.updated,
        lambda scope: tasks.tree(scope, made.id),
        lambda scope: tasks.subtasks(scope, made.id),
        tasks.links,
    )
    writes: Sequence[Callable[[PersonScope], Awaitable[object]]] = (
        lambda scope: tasks.create(scope, {"title": "New"}),
        lambda scope: tasks.update(scope, made.id, {}),
        lambda scope: tasks.set_status(scope, made.id, GOING),
        lambda scope: tasks.reorder(scope, made.id, []),
        lambda scope: tasks.link(scope, made.id, made.id, TaskRelation.RELATED),
        lambda scope: tasks.unlink(scope, made.id),
        lambda scope: tasks.delete(scope, made.id),
    )
    for works, may_not, right in ((reads, writer, "tasks.read"), (writes, reader, "tasks.write")):
        for work in works:
            with pytest.raises(MissingScope, match=right):
                await work(may_not)
    for read in reads:
        await read(reader)
    assert (await tasks.get(reader, made.id)).title == "Mine"


# Relations between tasks: trees, dependencies, and their consequences


OFF = TaskStatus.CANCELLED
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
