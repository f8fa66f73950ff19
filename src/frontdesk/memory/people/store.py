"""All that is kept of a person in the database: written out, taken in, deleted."""

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from typing import Any

from sqlalchemy import Boolean, Column, Float, Integer, String, Table, delete, func, insert, select, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.types import TypeEngine

from frontdesk.db.lists import sliced
from frontdesk.db.schema import (
    Moment,
    activities,
    ai_task_events,
    ai_tasks,
    categories,
    memories,
    memory_anchors,
    people,
    task_relations,
    tasks,
    time_entries,
    timeline_items,
)
from frontdesk.errors import Conflict, Invalid
from frontdesk.memory import model
from frontdesk.memory.categories.store import key
from frontdesk.memory.items.store import joined, split
from frontdesk.memory.people.document import Rows
from frontdesk.memory.people.shape import Kind, Shape
from frontdesk.memory.recall import store as recall
from frontdesk.memory.store import Mine

# What points at another comes after it.
TABLES = (
    categories,
    timeline_items,
    tasks,
    task_relations,
    memories,
    memory_anchors,
    activities,
    time_entries,
    ai_tasks,
    ai_task_events,
)
# Whose it is goes without saying, and what a name is looked for by follows from the name.
UNTOLD = ("user_id", "name_key")
OBJECTS = ("metadata", "guardrails", "execution_result")
WORDS = ("tags", "companions", "dependencies")
ID_LENGTH = 36
KINDS: Sequence[tuple[type[TypeEngine[Any]], Kind]] = (
    (String, Kind.TEXT),
    (Moment, Kind.MOMENT),
    (Boolean, Kind.FLAG),
    (Integer, Kind.WHOLE),
    (Float, Kind.REAL),
)
AT_ONCE = 20_000
CHOICES: Mapping[str, Mapping[str, type[StrEnum]]] = {
    "timeline_items": {"type": model.ItemType, "status": model.ItemStatus, "priority": model.Priority},
    "tasks": {
        "status": model.TaskStatus,
        "completion_behavior": model.Completion,
        "progress_calculation": model.ProgressBy,
    },
    "task_relations": {"relation": model.Relation},
    "memories": {"memory_type": model.MemoryType, "status": model.MemoryStatus},
    "memory_anchors": {"relation": model.AnchorRelation},
    "activities": {
        "activity_type": model.ActivityType,
        "status": model.ActivityStatus,
        "intensity_level": model.Intensity,
    },
    "time_entries": {"source": model.EntrySource, "item_type": model.ItemType},
    "ai_tasks": {
        "task_type": model.AiTaskType,
        "mode": model.AiMode,
        "status": model.AiStatus,
        "priority": model.Priority,
    },
    "ai_task_events": {"from_status": model.AiStatus, "to_status": model.AiStatus},
}


def set_zone(mine: Mine, name: str) -> None:
    mine.connection.execute(update(people).where(people.c.user_id == mine.user_id).values(zone=name))


def everything(mine: Mine) -> dict[str, list[dict[str, Any]]]:
    """All rows of the person, by the name of their table."""
    return {table.name: _told(mine, table) for table in TABLES}


def counts(mine: Mine) -> dict[str, int]:
    counted = {table.name: select(func.count()).where(table.c.user_id == mine.user_id) for table in TABLES}
    return {name: mine.connection.execute(number).scalar_one() for name, number in counted.items()}


def last_change(mine: Mine) -> datetime | None:
    newest = (
        select(func.max(timeline_items.c.updated_at)).where(timeline_items.c.user_id == mine.user_id),
        select(func.max(time_entries.c.start_at)).where(time_entries.c.user_id == mine.user_id),
    )
    found = [mine.connection.execute(one).scalar_one() for one in newest]
    return max((at for at in found if at is not None), default=None)


def take_in(mine: Mine, zone: str, rows: Rows) -> dict[str, int]:
    """Everything, into records that must be empty; how many rows of what. Found it is once its texts are put down."""
    mine.hold()
    if any(counts(mine).values()):
        raise Conflict(
            "There are records already, and an export is taken in only where there are none; erase them first"
        )
    set_zone(mine, zone)
    for table in TABLES:
        _add(mine, table, rows[table.name])
    return counts(mine)


def erase(mine: Mine) -> dict[str, int]:
    """All of it, and the person; how many rows of what."""
    mine.hold()
    gone = counts(mine)
    recall.clear(mine)
    for table in reversed(TABLES):
        _empty(mine, table)
    mine.connection.execute(delete(people).where(people.c.user_id == mine.user_id))
    return gone


def _told(mine: Mine, table: Table) -> list[dict[str, Any]]:
    columns = [column for column in table.c if column.name not in UNTOLD]
    ordered = select(*columns).where(table.c.user_id == mine.user_id).order_by(*table.primary_key.columns)
    return [
        {name: _decoded(name, value) for name, value in row.items()}
        for row in mine.connection.execute(ordered).mappings()
    ]


def _decoded(name: str, value: Any) -> Any:  # noqa: ANN401 - whatever the column holds
    if name == "tags":
        return split(value)
    return json.loads(value) if name in (*OBJECTS, *WORDS) else value


def _encoded(name: str, value: Any) -> Any:  # noqa: ANN401 - whatever the column holds
    if name == "tags":
        return joined(value)
    return json.dumps(value, ensure_ascii=False) if name in (*OBJECTS, *WORDS) else value


def _add(mine: Mine, table: Table, rows: Sequence[Mapping[str, Any]]) -> None:
    kept = [{name: _encoded(name, value) for name, value in row.items()} | _own(mine, table, row) for row in rows]
    # Whoever stands above comes first.
    kept.sort(key=lambda row: row.get("hierarchy_level", 0))
    try:
        for some in sliced(kept):
            mine.connection.execute(insert(table), list(some))
    except IntegrityError as error:
        raise Invalid(
            f"The records in {table.name} contradict others: two are the same, or one names another that is not there"
        ) from error


def _own(mine: Mine, table: Table, row: Mapping[str, Any]) -> dict[str, Any]:
    """What is not told: whose it is, and what only held where it came from."""
    own: dict[str, Any] = {"user_id": mine.user_id}
    if table is categories:
        own["name_key"] = key(row["name"])
    if table is tasks:
        own["wake_schedule_id"] = None
    return own


def _empty(mine: Mine, table: Table) -> None:
    """A part at a time, as a statement may only take so long."""
    _, by, *_ = table.primary_key.columns
    some = select(by).where(table.c.user_id == mine.user_id).limit(AT_ONCE)
    part = delete(table).where(table.c.user_id == mine.user_id, by.in_(some.scalar_subquery()))
    while mine.connection.execute(part).rowcount:
        pass


def _shape(table: Table, column: Column[Any]) -> Shape:
    choice = CHOICES.get(table.name, {}).get(column.name)
    length = column.type.length if isinstance(column.type, String) else None
    return Shape(_kind(column, length), bool(column.nullable), length, choice)


def _kind(column: Column[Any], length: int | None) -> Kind:
    if column.name in OBJECTS:
        return Kind.OBJECT
    if column.name in WORDS:
        return Kind.WORDS
    return Kind.ID if length == ID_LENGTH else next(kind for of, kind in KINDS if isinstance(column.type, of))


SHAPES = {
    table.name: {column.name: _shape(table, column) for column in table.c if column.name not in UNTOLD}
    for table in TABLES
}
