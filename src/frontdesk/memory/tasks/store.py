"""Tasks in the database: each a timeline item, and a row of its own."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import fields, replace
from typing import Any

from sqlalchemy import RowMapping, and_, bindparam, func, insert, select, update

from frontdesk.db.lists import one_of
from frontdesk.db.schema import tasks, timeline_items
from frontdesk.memory.items import store as items
from frontdesk.memory.model import Completion, Item, ItemType, Priority, ProgressBy, Task, TaskStatus
from frontdesk.memory.store import Mine
from frontdesk.memory.tasks.links import store as links
from frontdesk.memory.tasks.rules import ITEM_STATUS

OWN = tuple(column.name for column in tasks.c if column.name != "user_id")
# Of the time spent on tasks another keeps account.
WRITTEN = tuple(name for name in OWN if not name.startswith("tracked_"))
SHARED = ("title", "description", "category_id", "tags", "priority", "metadata", "created_at", "updated_at")
COLUMNS = tuple(field.name for field in fields(Task) if field.name not in ("dependencies", "wake_note"))
TOGETHER = and_(timeline_items.c.user_id == tasks.c.user_id, timeline_items.c.id == tasks.c.id)
READ = select(tasks, *(timeline_items.c[name] for name in SHARED)).join(timeline_items, TOGETHER)
IN_ORDER = (tasks.c.subtask_order, tasks.c.id)
MOVE = (
    update(tasks)
    .where(tasks.c.user_id == bindparam("of_user"), tasks.c.id == bindparam("of_id"))
    .values(hierarchy_level=bindparam("level"), hierarchy_path=bindparam("path"))
)


def add(mine: Mine, task: Task) -> None:
    items.add(mine, _item(task), text_of(task))
    mine.connection.execute(insert(tasks).values(user_id=mine.user_id, **_row(task, OWN)))


def write(mine: Mine, task: Task) -> None:
    """One that is there, as it is to be; what it depends on is written as links."""
    shown = items.get(mine, task.id) or _item(task)
    kept = {name: getattr(shown, name) for name in ("start_time", "is_time_consuming", "render_on_timeline")}
    items.write(mine, replace(_item(task), **kept), text_of(task))
    write_row(mine, task)


def write_row(mine: Mine, task: Task) -> None:
    """Where nothing changed that stands on the timeline."""
    of_it = and_(tasks.c.user_id == mine.user_id, tasks.c.id == task.id)
    mine.connection.execute(update(tasks).where(of_it).values(**_row(task, WRITTEN)))


def move(mine: Mine, moved: Sequence[Task]) -> None:
    """Write down where these stand now."""
    rows = [
        {"of_user": mine.user_id, "of_id": one.id, "level": one.hierarchy_level, "path": one.hierarchy_path}
        for one in moved
    ]
    if rows:
        mine.connection.execute(MOVE, rows)


def get(mine: Mine, task_id: str) -> Task | None:
    found = mine.connection.execute(READ.where(tasks.c.user_id == mine.user_id, tasks.c.id == task_id))
    return next(iter(tasks_of(mine, found.mappings().all())), None)


def subtasks(mine: Mine, parent_id: str) -> Sequence[Task]:
    """Those right under it, in their order."""
    return _under(mine, [parent_id])


def below(mine: Mine, task_id: str, levels: int) -> Iterator[Sequence[Task]]:
    """What is under it, so many levels down, a level at a time; siblings are in their order."""
    level = _under(mine, [task_id])
    while level and levels > 0:
        yield level
        level, levels = _under(mine, [one.id for one in level]), levels - 1


def next_place(mine: Mine, parent_id: str | None) -> int:
    """The place after the last subtask of a task; those that stand by themselves have none."""
    if parent_id is None:
        return 0
    last = select(func.max(tasks.c.subtask_order))
    of_parent = last.where(tasks.c.user_id == mine.user_id, tasks.c.parent_task_id == parent_id)
    found = mine.connection.execute(of_parent).scalar_one()
    return 0 if found is None else found + 1


def tasks_of(mine: Mine, rows: Sequence[RowMapping]) -> Sequence[Task]:
    """From rows of `READ`, with what each depends on."""
    if not rows:
        return []
    on = links.dependencies(mine, [row["id"] for row in rows])
    return [_task(row, on.get(row["id"], ())) for row in rows]


def _under(mine: Mine, parent_ids: Sequence[str]) -> Sequence[Task]:
    of_these = READ.where(tasks.c.user_id == mine.user_id, one_of(tasks.c.parent_task_id, "ids"))
    rows = mine.connection.execute(of_these.order_by(*IN_ORDER), {"ids": list(parent_ids)}).mappings().all()
    return tasks_of(mine, rows)


def _row(task: Task, names: Sequence[str]) -> dict[str, Any]:
    return {name: getattr(task, name) for name in names}


def _item(task: Task) -> Item:
    shared = _row(task, ("id", *SHARED))
    return Item(**shared, type=ItemType.TASK, status=ITEM_STATUS[task.status], end_time=task.due_date)


def text_of(task: Task) -> str:
    """What a task is found by."""
    texts = (task.title, task.description, task.notes, " ".join(task.tags), task.assignee or "")
    return "\n".join(text for text in texts if text)


def _task(row: RowMapping, dependencies: Sequence[str]) -> Task:
    values = {name: row[name] for name in COLUMNS}
    values |= {
        "status": TaskStatus(row["status"]),
        "priority": Priority(row["priority"]),
        "completion_behavior": Completion(row["completion_behavior"]),
        "progress_calculation": ProgressBy(row["progress_calculation"]),
        "tags": items.split(row["tags"]),
        "metadata": json.loads(row["metadata"]),
        "dependencies": tuple(dependencies),
    }
    return Task(**values)
