"""Lists people, and reads, imports and erases everything stored of one person."""

import json
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Any

from sqlalchemy import (
    Boolean,
    Column,
    Connection,
    Float,
    Integer,
    Select,
    String,
    Table,
    bindparam,
    delete,
    func,
    insert,
    select,
    update,
)
from sqlalchemy.exc import IntegrityError
from sqlalchemy.types import TypeEngine

from frontdesk.db.row_security import can_set_role, set_person
from frontdesk.db.schema import (
    UtcDateTime,
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
from frontdesk.db.statements import in_slices
from frontdesk.errors import Conflict, Invalid
from frontdesk.memory import model
from frontdesk.memory.activities_rules import activity_text
from frontdesk.memory.activities_store import ACTIVITY_ROWS, activity_from_row
from frontdesk.memory.items_store import category_key, item_from_row, item_text, join_tags, split_tags
from frontdesk.memory.memories_rules import memory_text
from frontdesk.memory.memories_store import MEMORY_ROWS, memory_from_row
from frontdesk.memory.model import ItemStatus, ItemType, PersonActivity, PersonSummary
from frontdesk.memory.people_export import ColumnKind, ColumnSchema, ExportRows
from frontdesk.memory.search.index_store import clear_index, index_item
from frontdesk.memory.store import PersonTransaction
from frontdesk.memory.tasks_store import TASK_ROWS, task_text, tasks_from_rows

# Ordered so that referenced tables come first.
PERSON_TABLES = (
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
# Columns that are not exported: the owner, and keys that are computed from names.
SKIPPED_COLUMNS = ("user_id", "name_key")
OBJECT_COLUMNS = ("metadata", "guardrails", "execution_result")
LIST_COLUMNS = ("tags", "companions", "dependencies")
ID_LENGTH = 36
COLUMN_KINDS: Sequence[tuple[type[TypeEngine[Any]], ColumnKind]] = (
    (String, ColumnKind.TEXT),
    (UtcDateTime, ColumnKind.MOMENT),
    (Boolean, ColumnKind.FLAG),
    (Integer, ColumnKind.WHOLE),
    (Float, ColumnKind.REAL),
)
DELETE_BATCH = 20_000
COLUMN_CHOICES: Mapping[str, Mapping[str, type[StrEnum]]] = {
    "timeline_items": {"type": model.ItemType, "status": model.ItemStatus, "priority": model.Priority},
    "tasks": {
        "status": model.TaskStatus,
        "completion_behavior": model.CompletionBehavior,
        "progress_calculation": model.ProgressCalculation,
    },
    "task_relations": {"relation": model.TaskRelation},
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


def save_zone(transaction: PersonTransaction, name: str) -> None:
    transaction.connection.execute(update(people).where(people.c.user_id == transaction.user_id).values(zone=name))


def export_rows(transaction: PersonTransaction) -> dict[str, list[dict[str, Any]]]:
    """All rows of the person, by table name."""
    return {table.name: _export_table(transaction, table) for table in PERSON_TABLES}


def count_rows(transaction: PersonTransaction) -> dict[str, int]:
    counted = {
        table.name: select(func.count()).where(table.c.user_id == transaction.user_id) for table in PERSON_TABLES
    }
    return {name: transaction.connection.execute(number).scalar_one() for name, number in counted.items()}


def import_rows(transaction: PersonTransaction, zone: str, rows: ExportRows) -> dict[str, int]:
    """Insert all rows for a person without records. Returns the counts. The search index is built separately."""
    transaction.lock_person()
    if any(count_rows(transaction).values()):
        raise Conflict("There are records already. An export needs a person without records; erase them first")
    save_zone(transaction, zone)
    for table in PERSON_TABLES:
        _insert_rows(transaction, table, rows[table.name])
    return count_rows(transaction)


def erase_person(transaction: PersonTransaction) -> dict[str, int]:
    """Delete all rows of the person, and the person. Returns the counts."""
    transaction.lock_person()
    gone = count_rows(transaction)
    clear_index(transaction)
    for table in reversed(PERSON_TABLES):
        _delete_rows(transaction, table)
    transaction.connection.execute(delete(people).where(people.c.user_id == transaction.user_id))
    return gone


def _export_table(transaction: PersonTransaction, table: Table) -> list[dict[str, Any]]:
    columns = [column for column in table.c if column.name not in SKIPPED_COLUMNS]
    ordered = select(*columns).where(table.c.user_id == transaction.user_id).order_by(*table.primary_key.columns)
    return [
        {name: _decode_value(name, value) for name, value in row.items()}
        for row in transaction.connection.execute(ordered).mappings()
    ]


def _decode_value(name: str, value: Any) -> Any:  # noqa: ANN401 - whatever the column holds
    if name == "tags":
        return split_tags(value)
    return json.loads(value) if name in (*OBJECT_COLUMNS, *LIST_COLUMNS) else value


def _encode_value(name: str, value: Any) -> Any:  # noqa: ANN401 - whatever the column holds
    if name == "tags":
        return join_tags(value)
    return json.dumps(value, ensure_ascii=False) if name in (*OBJECT_COLUMNS, *LIST_COLUMNS) else value


def _insert_rows(transaction: PersonTransaction, table: Table, rows: Sequence[Mapping[str, Any]]) -> None:
    kept = [
        {name: _encode_value(name, value) for name, value in row.items()} | _owner_values(transaction, table, row)
        for row in rows
    ]
    # Parents come first.
    kept.sort(key=lambda row: row.get("hierarchy_level", 0))
    try:
        for some in in_slices(kept):
            transaction.connection.execute(insert(table), list(some))
    except IntegrityError as error:
        raise Invalid(
            f"The records in {table.name} contradict others: two are the same, or one names another that is not there"
        ) from error


def _owner_values(transaction: PersonTransaction, table: Table, row: Mapping[str, Any]) -> dict[str, Any]:
    """Columns that the export does not contain: the owner, computed keys, and references of the old installation."""
    own: dict[str, Any] = {"user_id": transaction.user_id}
    if table is categories:
        own["name_key"] = category_key(row["name"])
    if table is tasks:
        own["wake_schedule_id"] = None
    return own


def _delete_rows(transaction: PersonTransaction, table: Table) -> None:
    """Delete in batches, because the time of a statement is limited."""
    _, by, *_ = table.primary_key.columns
    some = select(by).where(table.c.user_id == transaction.user_id).limit(DELETE_BATCH)
    part = delete(table).where(table.c.user_id == transaction.user_id, by.in_(some.scalar_subquery()))
    while transaction.connection.execute(part).rowcount:
        pass


def _column_schema(table: Table, column: Column[Any]) -> ColumnSchema:
    choice = COLUMN_CHOICES.get(table.name, {}).get(column.name)
    length = column.type.length if isinstance(column.type, String) else None
    return ColumnSchema(_column_kind(column, length), bool(column.nullable), length, choice)


def _column_kind(column: Column[Any], length: int | None) -> ColumnKind:
    if column.name in OBJECT_COLUMNS:
        return ColumnKind.OBJECT
    if column.name in LIST_COLUMNS:
        return ColumnKind.WORDS
    return (
        ColumnKind.ID if length == ID_LENGTH else next(kind for of, kind in COLUMN_KINDS if isinstance(column.type, of))
    )


TABLE_SCHEMAS = {
    table.name: {column.name: _column_schema(table, column) for column in table.c if column.name not in SKIPPED_COLUMNS}
    for table in PERSON_TABLES
}

PLAIN_TYPES = (ItemType.ROUTINE, ItemType.HABIT)


def index_all_items(transaction: PersonTransaction) -> None:
    for item_id, text in (
        *_memory_texts(transaction),
        *_activity_texts(transaction),
        *_task_texts(transaction),
        *_plain_item_texts(transaction),
    ):
        index_item(transaction, item_id, text)


def _memory_texts(transaction: PersonTransaction) -> Iterator[tuple[str, str]]:
    shown = (memories.c.user_id == transaction.user_id, timeline_items.c.status != ItemStatus.DELETED)
    for row in transaction.connection.execute(MEMORY_ROWS.where(*shown)).mappings():
        yield row["id"], memory_text(memory_from_row(row))


def _activity_texts(transaction: PersonTransaction) -> Iterator[tuple[str, str]]:
    for row in transaction.connection.execute(
        ACTIVITY_ROWS.where(activities.c.user_id == transaction.user_id)
    ).mappings():
        yield row["id"], activity_text(activity_from_row(row))


def _task_texts(transaction: PersonTransaction) -> Iterator[tuple[str, str]]:
    rows = transaction.connection.execute(TASK_ROWS.where(tasks.c.user_id == transaction.user_id)).mappings().all()
    for task in tasks_from_rows(transaction, rows):
        yield task.id, task_text(task)


def _plain_item_texts(transaction: PersonTransaction) -> Iterator[tuple[str, str]]:
    alone = (timeline_items.c.user_id == transaction.user_id, timeline_items.c.type.in_(PLAIN_TYPES))
    for row in transaction.connection.execute(select(timeline_items).where(*alone)).mappings():
        yield row["id"], item_text(item_from_row(row))


SELECT_PEOPLE = select(people.c.user_id, people.c.zone, people.c.created_at, people.c.found)
# When a record of the person was last created or changed, and when time was last tracked.
SELECT_LAST_CHANGES = select(
    select(func.max(timeline_items.c.updated_at))
    .where(timeline_items.c.user_id == bindparam("person"))
    .scalar_subquery(),
    select(func.max(time_entries.c.start_at)).where(time_entries.c.user_id == bindparam("person")).scalar_subquery(),
)


def list_people(connection: Connection, limit: int, offset: int) -> Sequence[PersonSummary]:
    """People in the order of their ids."""
    return _fetch_people(connection, SELECT_PEOPLE.order_by(people.c.user_id).limit(limit).offset(offset))


def list_active_people(connection: Connection, limit: int, after: str, beginning: str) -> Sequence[PersonActivity]:
    """People whose ids start with `beginning`, in the order of their ids, from the one that follows `after`."""
    wanted = SELECT_PEOPLE.where(people.c.user_id > after) if after else SELECT_PEOPLE
    if beginning:
        wanted = wanted.where(people.c.user_id.istartswith(beginning, autoescape=True))
    return _with_last_changes(connection, _fetch_people(connection, wanted.order_by(people.c.user_id).limit(limit)))


def fetch_person(connection: Connection, user_id: str) -> PersonActivity | None:
    found = _fetch_people(connection, SELECT_PEOPLE.where(people.c.user_id == user_id))
    return next(iter(_with_last_changes(connection, found)), None)


def _fetch_people(connection: Connection, query: Select[Any, Any, Any, Any]) -> Sequence[PersonSummary]:
    return [PersonSummary(*row) for row in connection.execute(query)]


def _with_last_changes(connection: Connection, found: Sequence[PersonSummary]) -> Sequence[PersonActivity]:
    """Row-level security shows one person's records at a time, so the transaction is set to each person in turn."""
    secured = connection.dialect.name == "postgresql"
    has_role = secured and bool(found) and can_set_role(connection)
    active: list[PersonActivity] = []
    for person in found:
        if secured:
            set_person(connection, person.user_id, role=has_role)
        changes = connection.execute(SELECT_LAST_CHANGES, {"person": person.user_id}).one()
        active.append(PersonActivity(person, max((at for at in changes if at is not None), default=None)))
    return active
