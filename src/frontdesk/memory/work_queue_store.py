"""Stores work for agents with its history, picks the next piece for an agent, and counts."""

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, fields, replace
from datetime import datetime
from typing import Any

from sqlalchemy import (
    BindParameter,
    ColumnElement,
    RowMapping,
    String,
    and_,
    bindparam,
    case,
    delete,
    exists,
    func,
    insert,
    not_,
    or_,
    select,
    update,
)

from frontdesk.db.schema import UtcDateTime, ai_task_events, ai_tasks, tasks
from frontdesk.db.statements import one_of
from frontdesk.memory.items_store import fetch_item
from frontdesk.memory.model import AiEvent, AiMode, AiStatus, AiTask, AiTaskType, Guardrails, ItemType, Priority
from frontdesk.memory.store import PersonTransaction
from frontdesk.memory.times import find_zone, span_of_days, today_in
from frontdesk.memory.validation import RecordPage
from frontdesk.memory.work_queue_rules import OPEN_STATUSES, AiTaskFilter, AiTaskStats
from frontdesk.text import storable

AI_TASK_FIELDS = tuple(field.name for field in fields(AiTask) if field.name != "history")
EQUALITY_FILTERS = ("agent_id", "status", "mode", "task_type", "is_local_task", "executor_workspace_id")
IS_AI_TASK = (ai_tasks.c.user_id == bindparam("of_user"), ai_tasks.c.id == bindparam("of_id"))
SELECT_AI_TASK = select(ai_tasks).where(*IS_AI_TASK)
LOCK_AI_TASK = SELECT_AI_TASK.with_for_update()
UPDATE_AI_TASK = update(ai_tasks).where(*IS_AI_TASK)
DELETE_AI_TASK = delete(ai_tasks).where(*IS_AI_TASK)
IS_EVENT_OF = (ai_task_events.c.user_id == bindparam("of_user"), ai_task_events.c.ai_task_id == bindparam("of_id"))
SELECT_HISTORY = select(ai_task_events).where(*IS_EVENT_OF).order_by(ai_task_events.c.number)
INSERT_EVENT = insert(ai_task_events).values(
    user_id=bindparam("of_user"),
    ai_task_id=bindparam("of_id"),
    number=select(func.coalesce(func.max(ai_task_events.c.number), 0) + 1).where(*IS_EVENT_OF).scalar_subquery(),
    **{field.name: bindparam(field.name) for field in fields(AiEvent)},
)
PRIORITY_RANK = case({name: rank for rank, name in enumerate(Priority)}, value=ai_tasks.c.priority)


def insert_ai_task(transaction: PersonTransaction, task: AiTask) -> None:
    """Insert a piece of work, and mark the task that it belongs to as one for agents."""
    transaction.connection.execute(insert(ai_tasks), {"user_id": transaction.user_id, **_ai_task_row(task)})
    _set_is_ai_task(transaction, task.task_id, is_ai_task=True)


def save_ai_task(transaction: PersonTransaction, task: AiTask) -> None:
    transaction.connection.execute(UPDATE_AI_TASK, {**_key_parameters(transaction, task.id), **_ai_task_row(task)})


def fetch_ai_task(transaction: PersonTransaction, ai_task_id: str) -> AiTask | None:
    """A piece of work with its history."""
    row = (
        transaction.connection.execute(SELECT_AI_TASK, _key_parameters(transaction, ai_task_id))
        .mappings()
        .one_or_none()
    )
    return None if row is None else add_history(transaction, ai_task_from_row(row))


def lock_ai_task(transaction: PersonTransaction, ai_task_id: str) -> AiTask | None:
    """Lock a piece of work until the transaction ends; it comes without its history."""
    row = (
        transaction.connection.execute(LOCK_AI_TASK, _key_parameters(transaction, ai_task_id)).mappings().one_or_none()
    )
    return None if row is None else ai_task_from_row(row)


def add_history(transaction: PersonTransaction, task: AiTask) -> AiTask:
    rows = transaction.connection.execute(SELECT_HISTORY, _key_parameters(transaction, task.id))
    return replace(task, history=tuple(_event_from_row(row) for row in rows.mappings()))


def insert_event(transaction: PersonTransaction, ai_task_id: str, event: AiEvent) -> None:
    """Add a step to the history of a piece of work."""
    transaction.connection.execute(INSERT_EVENT, {**_key_parameters(transaction, ai_task_id), **asdict(event)})


def delete_ai_task_row(transaction: PersonTransaction, task: AiTask) -> None:
    """Delete a piece of work and its history; its task is unmarked if it has no other work for agents."""
    transaction.connection.execute(DELETE_AI_TASK, _key_parameters(transaction, task.id))
    others = (
        select(ai_tasks.c.id)
        .where(ai_tasks.c.user_id == transaction.user_id, ai_tasks.c.task_id == task.task_id)
        .limit(1)
    )
    if transaction.connection.execute(others).first() is None:
        _set_is_ai_task(transaction, task.task_id, is_ai_task=False)


def list_ai_tasks(transaction: PersonTransaction, filters: AiTaskFilter) -> RecordPage[AiTask]:
    chosen = _filter_conditions(transaction, filters)
    total = transaction.connection.execute(select(func.count()).select_from(ai_tasks).where(*chosen)).scalar_one()
    by: ColumnElement[Any] = PRIORITY_RANK if filters.sort_by == "priority" else ai_tasks.c[filters.sort_by]
    # Ids are in the order of creation, so rows with equal values come in that order.
    ordered = (by.asc(), ai_tasks.c.id.asc()) if filters.sort_order == "asc" else (by.desc(), ai_tasks.c.id.desc())
    query = select(ai_tasks).where(*chosen).order_by(ordered[0].nulls_last(), ordered[1])
    rows = transaction.connection.execute(query.limit(filters.limit).offset(filters.offset)).mappings()
    return RecordPage([ai_task_from_row(row) for row in rows], total, filters.offset)


def task_exists(transaction: PersonTransaction, task_id: str) -> bool:
    """Whether the person has such a task."""
    item = fetch_item(transaction, task_id)
    return item is not None and item.type is ItemType.TASK


def agent_has_work(transaction: PersonTransaction, task_id: str, agent_id: str) -> bool:
    """Whether this task already has a piece of work for this agent."""
    pair = (ai_tasks.c.user_id == transaction.user_id, ai_tasks.c.task_id == task_id, ai_tasks.c.agent_id == agent_id)
    return transaction.connection.execute(select(exists().where(*pair))).scalar_one()


def fetch_statuses(transaction: PersonTransaction, ids: Sequence[str]) -> dict[str, AiStatus]:
    """The statuses of these pieces of work by id; those that do not exist are missing."""
    query = select(ai_tasks.c.id, ai_tasks.c.status).where(
        ai_tasks.c.user_id == transaction.user_id, one_of(ai_tasks.c.id, "ids")
    )
    return (
        {row.id: AiStatus(row.status) for row in transaction.connection.execute(query, {"ids": list(ids)})}
        if ids
        else {}
    )


def fetch_dependencies(transaction: PersonTransaction, ids: Sequence[str]) -> set[str]:
    """The direct dependencies of these pieces of work."""
    query = select(ai_tasks.c.dependencies).where(
        ai_tasks.c.user_id == transaction.user_id, one_of(ai_tasks.c.id, "ids")
    )
    return {
        one for text in transaction.connection.execute(query, {"ids": list(ids)}).scalars() for one in json.loads(text)
    }


def is_for_agent(agent: BindParameter[str]) -> ColumnElement[bool]:
    """A condition: the work is for the agent with this name or id, in any case."""
    return or_(*(func.lower(column) == func.lower(agent) for column in (ai_tasks.c.agent_name, ai_tasks.c.agent_id)))


def ai_task_from_row(row: RowMapping) -> AiTask:
    values = {name: row[name] for name in AI_TASK_FIELDS}
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


def _key_parameters(transaction: PersonTransaction, ai_task_id: str) -> dict[str, Any]:
    return {"of_user": transaction.user_id, "of_id": ai_task_id}


def _filter_conditions(transaction: PersonTransaction, filters: AiTaskFilter) -> list[ColumnElement[bool]]:
    said = {name: getattr(filters, name) for name in EQUALITY_FILTERS}
    fit = {name: storable(value) if isinstance(value, str) else value for name, value in said.items()}
    chosen = [ai_tasks.c[name] == value for name, value in fit.items() if value is not None]
    if filters.agent_name is not None:
        chosen.append(is_for_agent(bindparam("agent", storable(filters.agent_name), String)))
    return [ai_tasks.c.user_id == transaction.user_id, *chosen]


def _set_is_ai_task(transaction: PersonTransaction, task_id: str, *, is_ai_task: bool) -> None:
    chosen = update(tasks).where(tasks.c.user_id == transaction.user_id, tasks.c.id == task_id)
    transaction.connection.execute(chosen.values(is_ai_task=is_ai_task))


def _ai_task_row(task: AiTask) -> dict[str, Any]:
    row = {name: getattr(task, name) for name in AI_TASK_FIELDS}
    composed = {name: json.dumps(row[name]) for name in ("dependencies", "metadata", "execution_result")}
    return {**row, **composed, "guardrails": json.dumps(asdict(task.guardrails))}


def _event_from_row(row: RowMapping) -> AiEvent:
    before = None if row["from_status"] is None else AiStatus(row["from_status"])
    return AiEvent(
        at=row["at"],
        from_status=before,
        to_status=AiStatus(row["to_status"]),
        by_agent=row["by_agent"],
        note=row["note"],
    )


other_work = ai_tasks.alias("other")
# In progress, but the worker's lease has expired.
LEASE_LAPSED = and_(
    ai_tasks.c.status == AiStatus.IN_PROGRESS, ai_tasks.c.leased_until <= bindparam("now", type_=UtcDateTime)
)
SELECT_WAITING = select(ai_tasks).where(
    ai_tasks.c.user_id == bindparam("of_user"),
    or_(ai_tasks.c.status == AiStatus.ASSIGNED, LEASE_LAPSED),
    is_for_agent(bindparam("agent", type_=String)),
)
SELECT_OLDEST = SELECT_WAITING.order_by(ai_tasks.c.assigned_at, ai_tasks.c.id).limit(bindparam("most"))
# No approval is missing, matched against the JSON text that `json.dumps` writes; taking one checks `guard` again.
IS_CLEARED = or_(
    ai_tasks.c.mode != AiMode.EXECUTE,
    ai_tasks.c.guardrails.contains('"requiresHumanApproval": false'),
    ai_tasks.c.metadata.contains('"approved": true'),
)
IS_UNFINISHED_DEPENDENCY = and_(
    other_work.c.user_id == ai_tasks.c.user_id,
    other_work.c.status != AiStatus.COMPLETED,
    ai_tasks.c.dependencies.contains(other_work.c.id),
)
SELECT_NEXT = (
    SELECT_WAITING.where(IS_CLEARED, or_(ai_tasks.c.dependencies == "[]", ~exists().where(IS_UNFINISHED_DEPENDENCY)))
    .where(not_(one_of(ai_tasks.c.id, "passed")))
    .order_by(PRIORITY_RANK.desc(), ai_tasks.c.assigned_at, ai_tasks.c.id)
    .limit(1)
    .with_for_update(skip_locked=True, of=ai_tasks)
)


def list_waiting_work(transaction: PersonTransaction, agent: str, now: datetime, limit: int) -> Sequence[AiTask]:
    """The work that waits for the agent, the oldest first."""
    rows = transaction.connection.execute(SELECT_OLDEST, {**_agent_parameters(transaction, agent, now), "most": limit})
    return [ai_task_from_row(row) for row in rows.mappings()]


def lock_next_work(transaction: PersonTransaction, agent: str, now: datetime, passed: Sequence[str]) -> AiTask | None:
    """The startable work with the highest priority, the oldest of equals, locked until the transaction ends.

    It skips work that another transaction has locked, and the ids in `passed`.
    """
    row = (
        transaction.connection.execute(
            SELECT_NEXT, {**_agent_parameters(transaction, agent, now), "passed": list(passed)}
        )
        .mappings()
        .one_or_none()
    )
    return None if row is None else ai_task_from_row(row)


def _agent_parameters(transaction: PersonTransaction, agent: str, now: datetime) -> dict[str, Any]:
    return {"of_user": transaction.user_id, "agent": storable(agent), "now": now}


GROUP_COLUMNS = (ai_tasks.c.status, ai_tasks.c.mode, ai_tasks.c.task_type, ai_tasks.c.agent_name)
IS_COMPLETED, IS_FAILED = ai_tasks.c.status == AiStatus.COMPLETED, ai_tasks.c.status == AiStatus.FAILED


def ai_task_stats(transaction: PersonTransaction, zone: str | None = None) -> AiTaskStats:
    own = ai_tasks.c.user_id == transaction.user_id
    rows = transaction.connection.execute(
        select(*GROUP_COLUMNS, func.count().label("count")).where(own).group_by(*GROUP_COLUMNS)
    ).all()
    counted: list[Counter[str]] = [Counter() for _ in GROUP_COLUMNS]
    for row in rows:
        for counter, name in zip(counted, row[:-1], strict=True):
            counter[name] += row[-1]
    by_status, by_mode, by_type, by_agent = (dict(sorted(counter.items())) for counter in counted)
    completed, failed = by_status.get(AiStatus.COMPLETED, 0), by_status.get(AiStatus.FAILED, 0)
    done_today = and_(IS_COMPLETED, _is_today(transaction, ai_tasks.c.completed_at, zone))
    # Failed work does not change until it is assigned again, so `updated_at` is the time of the failure.
    failed_today = and_(IS_FAILED, _is_today(transaction, ai_tasks.c.updated_at, zone))
    late = and_(ai_tasks.c.due_at < transaction.now, ai_tasks.c.status.in_(OPEN_STATUSES))
    found = transaction.connection.execute(
        select(
            func.count().filter(done_today).label("completed_today"),
            func.count().filter(failed_today).label("failed_today"),
            func.count().filter(late).label("overdue"),
            func.avg(ai_tasks.c.actual_duration_min).filter(IS_COMPLETED).label("duration"),
            func.avg(ai_tasks.c.actual_cost_usd).filter(IS_COMPLETED).label("cost"),
            func.sum(ai_tasks.c.actual_cost_usd).label("spent"),
            func.sum(ai_tasks.c.actual_cost_usd).filter(done_today).label("spent_today"),
        ).where(own)
    ).one()
    duration = None if found.duration is None else round(float(found.duration), 1)
    return AiTaskStats(
        total=sum(by_status.values()),
        active=sum(by_status.get(status, 0) for status in OPEN_STATUSES),
        completed=completed,
        failed=failed,
        overdue=found.overdue,
        pending_for_agent=by_status.get(AiStatus.ASSIGNED, 0),
        in_progress=by_status.get(AiStatus.IN_PROGRESS, 0),
        completed_today=found.completed_today,
        failed_today=found.failed_today,
        by_status=by_status,
        by_mode=by_mode,
        by_type=by_type,
        by_task_type=by_type,
        by_agent=by_agent,
        success_rate=round(completed / (completed + failed), 3) if completed else 0.0,
        avg_duration_min=duration,
        avg_completion_time=duration or 0.0,
        avg_cost_usd=None if found.cost is None else round(float(found.cost), 6),
        total_cost_usd=round(float(found.spent or 0), 6),
        total_cost_today=round(float(found.spent_today or 0), 6),
    )


def _is_today(transaction: PersonTransaction, moment: ColumnElement[object], zone: str | None) -> ColumnElement[bool]:
    where = find_zone(zone, transaction.zone_name)
    day = span_of_days(today_in(transaction.now, where), where)
    return and_(moment >= day.start, moment < day.end)
