"""The work queue in the database: pieces of work, and the history of each."""

import json
from collections.abc import Sequence
from dataclasses import asdict, fields, replace
from typing import Any

from sqlalchemy import (
    BindParameter,
    ColumnElement,
    RowMapping,
    String,
    bindparam,
    case,
    delete,
    exists,
    func,
    insert,
    or_,
    select,
    update,
)

from frontdesk.db.lists import one_of
from frontdesk.db.schema import ai_task_events as events
from frontdesk.db.schema import ai_tasks as table
from frontdesk.db.schema import tasks
from frontdesk.loop.text import storable
from frontdesk.memory.given import Page
from frontdesk.memory.items import store as items
from frontdesk.memory.model import AiEvent, AiMode, AiStatus, AiTask, AiTaskType, Guardrails, ItemType, Priority
from frontdesk.memory.queue.wanted import AiWanted
from frontdesk.memory.store import Mine

NAMES = tuple(field.name for field in fields(AiTask) if field.name != "history")
EXACT = ("agent_id", "status", "mode", "task_type", "is_local_task", "executor_workspace_id")
IT = (table.c.user_id == bindparam("of_user"), table.c.id == bindparam("of_id"))
READ = select(table).where(*IT)
HOLD = READ.with_for_update()
WRITE = update(table).where(*IT)
REMOVE = delete(table).where(*IT)
OF_IT = (events.c.user_id == bindparam("of_user"), events.c.ai_task_id == bindparam("of_id"))
HISTORY = select(events).where(*OF_IT).order_by(events.c.number)
NOTE = insert(events).values(
    user_id=bindparam("of_user"),
    ai_task_id=bindparam("of_id"),
    number=select(func.coalesce(func.max(events.c.number), 0) + 1).where(*OF_IT).scalar_subquery(),
    **{field.name: bindparam(field.name) for field in fields(AiEvent)},
)
URGENCY = case({name: rank for rank, name in enumerate(Priority)}, value=table.c.priority)


def add(mine: Mine, task: AiTask) -> None:
    """A new one; the task that it belongs to is known as one for agents from then on."""
    mine.connection.execute(insert(table), {"user_id": mine.user_id, **_row(task)})
    _mark(mine, task.task_id, is_ai_task=True)


def write(mine: Mine, task: AiTask) -> None:
    mine.connection.execute(WRITE, {**_which(mine, task.id), **_row(task)})


def get(mine: Mine, ai_task_id: str) -> AiTask | None:
    """One by its id, with its history."""
    row = mine.connection.execute(READ, _which(mine, ai_task_id)).mappings().one_or_none()
    return None if row is None else with_history(mine, task_of(row))


def held(mine: Mine, ai_task_id: str) -> AiTask | None:
    """One that nobody else changes until the transaction ends; without its history."""
    row = mine.connection.execute(HOLD, _which(mine, ai_task_id)).mappings().one_or_none()
    return None if row is None else task_of(row)


def with_history(mine: Mine, task: AiTask) -> AiTask:
    rows = mine.connection.execute(HISTORY, _which(mine, task.id))
    return replace(task, history=tuple(_event(row) for row in rows.mappings()))


def note(mine: Mine, ai_task_id: str, event: AiEvent) -> None:
    """One more step in its history."""
    mine.connection.execute(NOTE, {**_which(mine, ai_task_id), **asdict(event)})


def remove(mine: Mine, task: AiTask) -> None:
    """For good, with its history; the task that it belonged to may be one for agents no longer."""
    mine.connection.execute(REMOVE, _which(mine, task.id))
    others = select(table.c.id).where(table.c.user_id == mine.user_id, table.c.task_id == task.task_id).limit(1)
    if mine.connection.execute(others).first() is None:
        _mark(mine, task.task_id, is_ai_task=False)


def page(mine: Mine, wanted: AiWanted) -> Page[AiTask]:
    chosen = _chosen(mine, wanted)
    total = mine.connection.execute(select(func.count()).select_from(table).where(*chosen)).scalar_one()
    by: ColumnElement[Any] = URGENCY if wanted.sort_by == "priority" else table.c[wanted.sort_by]
    # Ids go by when they were made, so what is equal stands in that order.
    ordered = (by.asc(), table.c.id.asc()) if wanted.sort_order == "asc" else (by.desc(), table.c.id.desc())
    found = select(table).where(*chosen).order_by(ordered[0].nulls_last(), ordered[1])
    rows = mine.connection.execute(found.limit(wanted.limit).offset(wanted.offset)).mappings()
    return Page([task_of(row) for row in rows], total, wanted.offset)


def is_task(mine: Mine, task_id: str) -> bool:
    """Whether the person has such a task."""
    item = items.get(mine, task_id)
    return item is not None and item.type is ItemType.TASK


def is_taken(mine: Mine, task_id: str, agent_id: str) -> bool:
    """Whether the agent has a piece of work of this task already."""
    pair = (table.c.user_id == mine.user_id, table.c.task_id == task_id, table.c.agent_id == agent_id)
    return mine.connection.execute(select(exists().where(*pair))).scalar_one()


def statuses(mine: Mine, ids: Sequence[str]) -> dict[str, AiStatus]:
    """How those of these that are there stand."""
    found = select(table.c.id, table.c.status).where(table.c.user_id == mine.user_id, one_of(table.c.id, "ids"))
    return {row.id: AiStatus(row.status) for row in mine.connection.execute(found, {"ids": list(ids)})} if ids else {}


def dependencies(mine: Mine, ids: Sequence[str]) -> set[str]:
    """What these depend on, directly."""
    found = select(table.c.dependencies).where(table.c.user_id == mine.user_id, one_of(table.c.id, "ids"))
    return {one for text in mine.connection.execute(found, {"ids": list(ids)}).scalars() for one in json.loads(text)}


def is_for(agent: BindParameter[str]) -> ColumnElement[bool]:
    """Whether it is for the agent of this name or id, whatever its case."""
    return or_(*(func.lower(column) == func.lower(agent) for column in (table.c.agent_name, table.c.agent_id)))


def task_of(row: RowMapping) -> AiTask:
    values = {name: row[name] for name in NAMES}
    rails = Guardrails(**json.loads(row["guardrails"]))
    values |= {
        "task_type": AiTaskType(row["task_type"]),
        "mode": AiMode(row["mode"]),
        "status": AiStatus(row["status"]),
        "priority": Priority(row["priority"]),
        "dependencies": tuple(json.loads(row["dependencies"])),
        "guardrails": replace(rails, dataScopes=tuple(rails.dataScopes)),
        "metadata": json.loads(row["metadata"]),
        "execution_result": json.loads(row["execution_result"]),
    }
    return AiTask(**values)


def _which(mine: Mine, ai_task_id: str) -> dict[str, Any]:
    return {"of_user": mine.user_id, "of_id": ai_task_id}


def _chosen(mine: Mine, wanted: AiWanted) -> list[ColumnElement[bool]]:
    said = {name: getattr(wanted, name) for name in EXACT}
    fit = {name: storable(value) if isinstance(value, str) else value for name, value in said.items()}
    chosen = [table.c[name] == value for name, value in fit.items() if value is not None]
    if wanted.agent_name is not None:
        chosen.append(is_for(bindparam("agent", storable(wanted.agent_name), String)))
    return [table.c.user_id == mine.user_id, *chosen]


def _mark(mine: Mine, task_id: str, *, is_ai_task: bool) -> None:
    chosen = update(tasks).where(tasks.c.user_id == mine.user_id, tasks.c.id == task_id)
    mine.connection.execute(chosen.values(is_ai_task=is_ai_task))


def _row(task: AiTask) -> dict[str, Any]:
    row = {name: getattr(task, name) for name in NAMES}
    composed = {name: json.dumps(row[name]) for name in ("dependencies", "metadata", "execution_result")}
    return {**row, **composed, "guardrails": json.dumps(asdict(task.guardrails))}


def _event(row: RowMapping) -> AiEvent:
    before = None if row["from_status"] is None else AiStatus(row["from_status"])
    return AiEvent(
        at=row["at"],
        from_status=before,
        to_status=AiStatus(row["to_status"]),
        by_agent=row["by_agent"],
        note=row["note"],
    )
