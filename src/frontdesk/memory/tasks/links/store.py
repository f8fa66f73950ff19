"""Links between tasks in the database."""

from collections.abc import Sequence
from dataclasses import asdict, fields

from sqlalchemy import RowMapping, delete, insert, or_, select

from frontdesk.db.lists import one_of
from frontdesk.db.schema import task_relations as table
from frontdesk.db.schema import tasks, timeline_items
from frontdesk.memory.model import Relation, TaskLink
from frontdesk.memory.store import Mine
from frontdesk.memory.tasks.rules import OPEN, WAITING, Named

NAMES = tuple(field.name for field in fields(TaskLink))
IN_ORDER = (table.c.created_at, table.c.id)


def add(mine: Mine, links: Sequence[TaskLink]) -> None:
    for link in links:
        mine.connection.execute(insert(table).values(user_id=mine.user_id, **asdict(link)))


def get(mine: Mine, link_id: str) -> TaskLink | None:
    row = mine.connection.execute(select(table).where(table.c.user_id == mine.user_id, table.c.id == link_id))
    found = row.mappings().one_or_none()
    return _link(found) if found else None


def every(mine: Mine, task_id: str | None = None) -> Sequence[TaskLink]:
    """All there are, or those in which this task has a part, in the order in which they were made."""
    wanted = select(table).where(table.c.user_id == mine.user_id).order_by(*IN_ORDER)
    if task_id is not None:
        wanted = wanted.where(or_(table.c.task_id == task_id, table.c.related_task_id == task_id))
    return [_link(row) for row in mine.connection.execute(wanted).mappings()]


def dependencies(mine: Mine, task_ids: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """What each of these depends on; one that is left out depends on nothing."""
    of_these = one_of(table.c.task_id, "ids")
    wanted = select(table.c.task_id, table.c.related_task_id).where(
        table.c.user_id == mine.user_id, of_these, table.c.relation == Relation.DEPENDENCY
    )
    found: dict[str, tuple[str, ...]] = {}
    for task_id, related in mine.connection.execute(wanted.order_by(*IN_ORDER), {"ids": list(task_ids)}):
        found[task_id] = (*found.get(task_id, ()), related)
    return found


def waits_for(mine: Mine) -> dict[str, list[str]]:
    """Which tasks wait for which, all of them."""
    wanted = select(table.c.task_id, table.c.related_task_id)
    found: dict[str, list[str]] = {}
    for task_id, related in mine.connection.execute(
        wanted.where(table.c.user_id == mine.user_id, table.c.relation.in_(WAITING))
    ):
        found.setdefault(task_id, []).append(related)
    return found


def still_open(mine: Mine, task_id: str) -> Sequence[Named]:
    """What this task waits for that is neither completed nor cancelled."""
    wanted = (
        select(tasks.c.id, timeline_items.c.title)
        .join(table, (table.c.user_id == tasks.c.user_id) & (table.c.related_task_id == tasks.c.id))
        .join(timeline_items, (timeline_items.c.user_id == tasks.c.user_id) & (timeline_items.c.id == tasks.c.id))
        .where(table.c.user_id == mine.user_id, table.c.task_id == task_id)
        .where(table.c.relation.in_(WAITING), tasks.c.status.in_(OPEN))
        .distinct()
        .order_by(tasks.c.id)
    )
    return [Named(task_id, title) for task_id, title in mine.connection.execute(wanted)]


def waiting_for(mine: Mine, task_ids: Sequence[str]) -> Sequence[str]:
    """The tasks that wait for one of these."""
    wanted = select(table.c.task_id).where(
        table.c.user_id == mine.user_id, one_of(table.c.related_task_id, "ids"), table.c.relation.in_(WAITING)
    )
    found = mine.connection.execute(wanted.distinct().order_by(table.c.task_id), {"ids": list(task_ids)})
    return list(found.scalars())


def remove(mine: Mine, link_id: str) -> None:
    mine.connection.execute(delete(table).where(table.c.user_id == mine.user_id, table.c.id == link_id))


def remove_dependencies(mine: Mine, task_id: str, on: Sequence[str]) -> None:
    """No longer on these."""
    mine.connection.execute(
        delete(table).where(
            table.c.user_id == mine.user_id,
            table.c.task_id == task_id,
            table.c.relation == Relation.DEPENDENCY,
            one_of(table.c.related_task_id, "ids"),
        ),
        {"ids": list(on)},
    )


def _link(row: RowMapping) -> TaskLink:
    values = {name: row[name] for name in NAMES}
    values |= {"relation": Relation(row["relation"])}
    return TaskLink(**values)
