"""Items put down with the texts that they are found by, all of a person's at once."""

from collections.abc import Iterator

from sqlalchemy import select

from frontdesk.db.schema import activities, memories, tasks, timeline_items
from frontdesk.memory.activities import rules as activity_rules
from frontdesk.memory.activities import store as activity_store
from frontdesk.memory.items.store import item_of
from frontdesk.memory.memories import rules as memory_rules
from frontdesk.memory.memories import store as memory_store
from frontdesk.memory.model import ItemStatus, ItemType
from frontdesk.memory.recall import store as recall
from frontdesk.memory.store import Mine
from frontdesk.memory.tasks import store as task_store
from frontdesk.memory.timeline.making import text_of

ALONE = (ItemType.ROUTINE, ItemType.HABIT)


def put_all(mine: Mine) -> None:
    for item_id, text in (*_memories(mine), *_activities(mine), *_tasks(mine), *_others(mine)):
        recall.put(mine, item_id, text)


def _memories(mine: Mine) -> Iterator[tuple[str, str]]:
    shown = (memories.c.user_id == mine.user_id, timeline_items.c.status != ItemStatus.DELETED)
    for row in mine.connection.execute(memory_store.ROWS.where(*shown)).mappings():
        yield row["id"], memory_rules.text_of(memory_store.memory_of(row))


def _activities(mine: Mine) -> Iterator[tuple[str, str]]:
    for row in mine.connection.execute(activity_store.ROWS.where(activities.c.user_id == mine.user_id)).mappings():
        yield row["id"], activity_rules.text_of(activity_store.activity_of(row))


def _tasks(mine: Mine) -> Iterator[tuple[str, str]]:
    rows = mine.connection.execute(task_store.READ.where(tasks.c.user_id == mine.user_id)).mappings().all()
    for task in task_store.tasks_of(mine, rows):
        yield task.id, task_store.text_of(task)


def _others(mine: Mine) -> Iterator[tuple[str, str]]:
    alone = (timeline_items.c.user_id == mine.user_id, timeline_items.c.type.in_(ALONE))
    for row in mine.connection.execute(select(timeline_items).where(*alone)).mappings():
        yield row["id"], text_of(item_of(row))
