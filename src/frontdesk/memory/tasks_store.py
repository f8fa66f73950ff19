"""Stores tasks, the links between them, and the schedules that wake their agents; lists and counts them."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, fields, replace
from datetime import datetime
from typing import Any

from sqlalchemy import (
    ColumnElement,
    RowMapping,
    and_,
    bindparam,
    case,
    delete,
    extract,
    func,
    insert,
    or_,
    select,
    update,
)

from frontdesk.db.schema import task_relations, tasks, timeline_items
from frontdesk.db.statements import one_of
from frontdesk.memory.items_store import fetch_item, has_tags, insert_item, save_item, split_tags
from frontdesk.memory.model import (
    CompletionBehavior,
    ItemType,
    Priority,
    ProgressCalculation,
    Task,
    TaskLink,
    TaskRelation,
    TaskStatus,
    TimelineItem,
)
from frontdesk.memory.store import PersonTransaction, contains_words, fetch_page, not_after, order_rows
from frontdesk.memory.tasks_rules import (
    ITEM_STATUSES,
    OPEN_STATUSES,
    WAITING_RELATIONS,
    DueCounts,
    NamedTask,
    TaskFilter,
    TaskGroupCount,
    TaskSort,
    parse_bounds,
)
from frontdesk.memory.times import TimeSpan, find_zone, span_of_days, today_in
from frontdesk.memory.validation import RecordPage, find_category_id, parse_id, require_found

LINK_FIELDS = tuple(field.name for field in fields(TaskLink))
LINK_ORDER = (task_relations.c.created_at, task_relations.c.id)


def insert_links(transaction: PersonTransaction, links: Sequence[TaskLink]) -> None:
    for link in links:
        transaction.connection.execute(insert(task_relations).values(user_id=transaction.user_id, **asdict(link)))


def fetch_link(transaction: PersonTransaction, link_id: str) -> TaskLink | None:
    row = transaction.connection.execute(
        select(task_relations).where(task_relations.c.user_id == transaction.user_id, task_relations.c.id == link_id)
    )
    found = row.mappings().one_or_none()
    return _link_from_row(found) if found else None


def list_links(transaction: PersonTransaction, task_id: str | None = None) -> Sequence[TaskLink]:
    """All links, or the links of one task, in the order of their creation."""
    query = select(task_relations).where(task_relations.c.user_id == transaction.user_id).order_by(*LINK_ORDER)
    if task_id is not None:
        query = query.where(or_(task_relations.c.task_id == task_id, task_relations.c.related_task_id == task_id))
    return [_link_from_row(row) for row in transaction.connection.execute(query).mappings()]


def fetch_dependencies(transaction: PersonTransaction, task_ids: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """The dependencies of these tasks; a task without dependencies is missing."""
    of_these = one_of(task_relations.c.task_id, "ids")
    query = select(task_relations.c.task_id, task_relations.c.related_task_id).where(
        task_relations.c.user_id == transaction.user_id, of_these, task_relations.c.relation == TaskRelation.DEPENDENCY
    )
    found: dict[str, tuple[str, ...]] = {}
    for task_id, related in transaction.connection.execute(query.order_by(*LINK_ORDER), {"ids": list(task_ids)}):
        found[task_id] = (*found.get(task_id, ()), related)
    return found


def fetch_waiting_graph(transaction: PersonTransaction) -> dict[str, list[str]]:
    """For each task, the tasks that it waits for."""
    query = select(task_relations.c.task_id, task_relations.c.related_task_id)
    found: dict[str, list[str]] = {}
    for task_id, related in transaction.connection.execute(
        query.where(task_relations.c.user_id == transaction.user_id, task_relations.c.relation.in_(WAITING_RELATIONS))
    ):
        found.setdefault(task_id, []).append(related)
    return found


def open_prerequisites(transaction: PersonTransaction, task_id: str) -> Sequence[NamedTask]:
    """The tasks that this task waits for and that are neither completed nor cancelled."""
    query = (
        select(tasks.c.id, timeline_items.c.title)
        .join(
            task_relations,
            (task_relations.c.user_id == tasks.c.user_id) & (task_relations.c.related_task_id == tasks.c.id),
        )
        .join(timeline_items, (timeline_items.c.user_id == tasks.c.user_id) & (timeline_items.c.id == tasks.c.id))
        .where(task_relations.c.user_id == transaction.user_id, task_relations.c.task_id == task_id)
        .where(task_relations.c.relation.in_(WAITING_RELATIONS), tasks.c.status.in_(OPEN_STATUSES))
        .distinct()
        .order_by(tasks.c.id)
    )
    return [NamedTask(task_id, title) for task_id, title in transaction.connection.execute(query)]


def tasks_waiting_for(transaction: PersonTransaction, task_ids: Sequence[str]) -> Sequence[str]:
    """The tasks that wait for one of these tasks."""
    query = select(task_relations.c.task_id).where(
        task_relations.c.user_id == transaction.user_id,
        one_of(task_relations.c.related_task_id, "ids"),
        task_relations.c.relation.in_(WAITING_RELATIONS),
    )
    found = transaction.connection.execute(query.distinct().order_by(task_relations.c.task_id), {"ids": list(task_ids)})
    return list(found.scalars())


def delete_link(transaction: PersonTransaction, link_id: str) -> None:
    transaction.connection.execute(
        delete(task_relations).where(task_relations.c.user_id == transaction.user_id, task_relations.c.id == link_id)
    )


def delete_dependencies(transaction: PersonTransaction, task_id: str, on: Sequence[str]) -> None:
    """Delete the dependencies of a task on these tasks."""
    transaction.connection.execute(
        delete(task_relations).where(
            task_relations.c.user_id == transaction.user_id,
            task_relations.c.task_id == task_id,
            task_relations.c.relation == TaskRelation.DEPENDENCY,
            one_of(task_relations.c.related_task_id, "ids"),
        ),
        {"ids": list(on)},
    )


def _link_from_row(row: RowMapping) -> TaskLink:
    values = {name: row[name] for name in LINK_FIELDS}
    values |= {"relation": TaskRelation(row["relation"])}
    return TaskLink(**values)


TASK_COLUMNS = tuple(column.name for column in tasks.c if column.name != "user_id")
# Time tracking writes the `tracked_` columns.
WRITTEN_COLUMNS = tuple(name for name in TASK_COLUMNS if not name.startswith("tracked_"))
ITEM_COLUMNS = ("title", "description", "category_id", "tags", "priority", "metadata", "created_at", "updated_at")
TASK_FIELDS = tuple(field.name for field in fields(Task) if field.name not in ("dependencies", "wake_note"))
TASK_IS_ITEM = and_(timeline_items.c.user_id == tasks.c.user_id, timeline_items.c.id == tasks.c.id)
TASK_ROWS = select(tasks, *(timeline_items.c[name] for name in ITEM_COLUMNS)).join(timeline_items, TASK_IS_ITEM)
SUBTASK_ORDER = (tasks.c.subtask_order, tasks.c.id)
MOVE_TASK = (
    update(tasks)
    .where(tasks.c.user_id == bindparam("of_user"), tasks.c.id == bindparam("of_id"))
    .values(hierarchy_level=bindparam("level"), hierarchy_path=bindparam("path"))
)


def insert_task(transaction: PersonTransaction, task: Task) -> None:
    insert_item(transaction, _item_from_task(task), task_text(task))
    transaction.connection.execute(insert(tasks).values(user_id=transaction.user_id, **_task_row(task, TASK_COLUMNS)))


def save_task(transaction: PersonTransaction, task: Task) -> None:
    """Save a changed task; its dependencies are stored as links."""
    shown = fetch_item(transaction, task.id) or _item_from_task(task)
    kept = {name: getattr(shown, name) for name in ("start_time", "is_time_consuming", "render_on_timeline")}
    save_item(transaction, replace(_item_from_task(task), **kept), task_text(task))
    save_task_row(transaction, task)


def save_task_row(transaction: PersonTransaction, task: Task) -> None:
    """Save a changed task without its timeline item, if nothing on the timeline changed."""
    of_it = and_(tasks.c.user_id == transaction.user_id, tasks.c.id == task.id)
    transaction.connection.execute(update(tasks).where(of_it).values(**_task_row(task, WRITTEN_COLUMNS)))


def save_tree_positions(transaction: PersonTransaction, moved: Sequence[Task]) -> None:
    """Save the positions of moved tasks."""
    rows = [
        {"of_user": transaction.user_id, "of_id": one.id, "level": one.hierarchy_level, "path": one.hierarchy_path}
        for one in moved
    ]
    if rows:
        transaction.connection.execute(MOVE_TASK, rows)


def fetch_task(transaction: PersonTransaction, task_id: str) -> Task | None:
    found = transaction.connection.execute(
        TASK_ROWS.where(tasks.c.user_id == transaction.user_id, tasks.c.id == task_id)
    )
    return next(iter(tasks_from_rows(transaction, found.mappings().all())), None)


def fetch_subtasks(transaction: PersonTransaction, parent_id: str) -> Sequence[Task]:
    """The direct subtasks of a task, in their order."""
    return _fetch_children(transaction, [parent_id])


def fetch_levels_below(transaction: PersonTransaction, task_id: str, levels: int) -> Iterator[Sequence[Task]]:
    """The subtree of a task, one level at a time, down to this many levels; siblings are in their order."""
    level = _fetch_children(transaction, [task_id])
    while level and levels > 0:
        yield level
        level, levels = _fetch_children(transaction, [one.id for one in level]), levels - 1


def next_subtask_order(transaction: PersonTransaction, parent_id: str | None) -> int:
    """The position after the last subtask of a task; tasks without a parent have no position."""
    if parent_id is None:
        return 0
    last = select(func.max(tasks.c.subtask_order))
    of_parent = last.where(tasks.c.user_id == transaction.user_id, tasks.c.parent_task_id == parent_id)
    found = transaction.connection.execute(of_parent).scalar_one()
    return 0 if found is None else found + 1


def tasks_from_rows(transaction: PersonTransaction, rows: Sequence[RowMapping]) -> Sequence[Task]:
    """Build tasks from rows of `TASK_ROWS`, with their dependencies."""
    if not rows:
        return []
    on = fetch_dependencies(transaction, [row["id"] for row in rows])
    return [_task_from_row(row, on.get(row["id"], ())) for row in rows]


def _fetch_children(transaction: PersonTransaction, parent_ids: Sequence[str]) -> Sequence[Task]:
    of_these = TASK_ROWS.where(tasks.c.user_id == transaction.user_id, one_of(tasks.c.parent_task_id, "ids"))
    rows = transaction.connection.execute(of_these.order_by(*SUBTASK_ORDER), {"ids": list(parent_ids)}).mappings().all()
    return tasks_from_rows(transaction, rows)


def _task_row(task: Task, names: Sequence[str]) -> dict[str, Any]:
    return {name: getattr(task, name) for name in names}


def _item_from_task(task: Task) -> TimelineItem:
    shared = _task_row(task, ("id", *ITEM_COLUMNS))
    return TimelineItem(**shared, type=ItemType.TASK, status=ITEM_STATUSES[task.status], end_time=task.due_date)


def task_text(task: Task) -> str:
    """The text under which a task is indexed."""
    texts = (task.title, task.description, task.notes, " ".join(task.tags), task.assignee or "")
    return "\n".join(text for text in texts if text)


def _task_from_row(row: RowMapping, dependencies: Sequence[str]) -> Task:
    values = {name: row[name] for name in TASK_FIELDS}
    values |= {
        "status": TaskStatus(row["status"]),
        "priority": Priority(row["priority"]),
        "completion_behavior": CompletionBehavior(row["completion_behavior"]),
        "progress_calculation": ProgressCalculation(row["progress_calculation"]),
        "tags": split_tags(row["tags"]),
        "metadata": json.loads(row["metadata"]),
        "dependencies": tuple(dependencies),
    }
    return Task(**values)


SEARCHED_COLUMNS = (timeline_items.c.title, timeline_items.c.description, tasks.c.notes, timeline_items.c.tags)
PRIORITY_RANK = case({one.value: weight for weight, one in enumerate(Priority)}, value=timeline_items.c.priority)
SORT_COLUMNS: Mapping[TaskSort, ColumnElement[Any]] = {
    "created_at": timeline_items.c.created_at,
    "updated_at": timeline_items.c.updated_at,
    "due_date": tasks.c.due_date,
    "priority": PRIORITY_RANK,
    "title": timeline_items.c.title,
    "hierarchy_level": tasks.c.hierarchy_level,
    "subtask_order": tasks.c.subtask_order,
}
TIME_COLUMNS = {"due": tasks.c.due_date, "created": timeline_items.c.created_at, "updated": timeline_items.c.updated_at}


def list_tasks(transaction: PersonTransaction, filters: TaskFilter) -> RecordPage[Task]:
    conditions = [
        *_field_conditions(filters),
        *_tree_conditions(transaction, filters),
        *_time_conditions(transaction, filters),
    ]
    if filters.category:
        conditions.append(timeline_items.c.category_id == find_category_id(transaction, filters.category))
    chosen = TASK_ROWS.where(tasks.c.user_id == transaction.user_id, *conditions)
    in_order = order_rows(chosen, SORT_COLUMNS[filters.sort_by], tasks.c.id, filters.sort_order, nullable=True)
    rows, total = fetch_page(transaction, in_order, filters.limit, filters.offset)
    return RecordPage(tasks_from_rows(transaction, rows), total, filters.offset)


def list_updated_tasks(transaction: PersonTransaction, span: TimeSpan, most: int) -> RecordPage[Task]:
    """The tasks last changed within the span, the latest first."""
    when = timeline_items.c.updated_at
    chosen = TASK_ROWS.where(tasks.c.user_id == transaction.user_id, when >= span.start, when < span.end)
    rows, total = fetch_page(transaction, order_rows(chosen, when, tasks.c.id, "desc"), most, 0)
    return RecordPage(tasks_from_rows(transaction, rows), total)


def is_overdue(transaction: PersonTransaction) -> Sequence[ColumnElement[bool]]:
    return (tasks.c.due_date < transaction.now, tasks.c.status.in_(OPEN_STATUSES))


def _field_conditions(filters: TaskFilter) -> list[ColumnElement[bool]]:
    found = contains_words(SEARCHED_COLUMNS, filters.search) if filters.search else []
    if filters.status is not None:
        found.append(tasks.c.status == filters.status)
    if filters.priority is not None:
        found.append(timeline_items.c.priority == filters.priority)
    if filters.assignee is not None:
        found.append(tasks.c.assignee == filters.assignee)
    if filters.tags:
        found.append(has_tags(filters.tags, every=filters.every_tag))
    return found


def _tree_conditions(transaction: PersonTransaction, filters: TaskFilter) -> list[ColumnElement[bool]]:
    found: list[ColumnElement[bool]] = []
    if filters.parent_task_id is not None:
        parent = require_found(fetch_task(transaction, parse_id(filters.parent_task_id, "Task")), "Task")
        found.append(tasks.c.parent_task_id == parent.id)
    if filters.hierarchy_level is not None:
        found.append(tasks.c.hierarchy_level == filters.hierarchy_level)
    if filters.roots_only:
        found.append(tasks.c.parent_task_id.is_(None))
    return found


def _time_conditions(transaction: PersonTransaction, filters: TaskFilter) -> list[ColumnElement[bool]]:
    zone = find_zone(filters.timezone, transaction.zone_name)
    found: list[ColumnElement[bool]] = []
    for name, column in TIME_COLUMNS.items():
        between = parse_bounds(filters, name, zone)
        if between.since is not None:
            found.append(column >= between.since)
        if between.until is not None:
            found.append(not_after(column, between.until))
    if filters.overdue:
        found.extend(is_overdue(transaction))
    if filters.updated_today:
        span = span_of_days(today_in(transaction.now, zone), zone)
        found += [timeline_items.c.updated_at >= span.start, timeline_items.c.updated_at < span.end]
    return found


GROUP_COLUMNS = (tasks.c.status, timeline_items.c.priority, timeline_items.c.category_id)
COMPLETION_SECONDS = extract("epoch", tasks.c.completion_date) - extract("epoch", timeline_items.c.created_at)


def count_task_groups(transaction: PersonTransaction, made: TimeSpan | None) -> Sequence[TaskGroupCount]:
    counting = select(*GROUP_COLUMNS, func.count()).select_from(tasks).join(timeline_items, TASK_IS_ITEM)
    rows = transaction.connection.execute(counting.where(*_created_within(transaction, made)).group_by(*GROUP_COLUMNS))
    return [
        TaskGroupCount(TaskStatus(status), Priority(priority), category, count)
        for status, priority, category, count in rows
    ]


def count_due(transaction: PersonTransaction, made: TimeSpan | None, today: TimeSpan, week: TimeSpan) -> DueCounts:
    is_open = tasks.c.status.in_(OPEN_STATUSES)
    counting = (
        select(
            *(
                func.count().filter(*which)
                for which in (is_overdue(transaction), _due_within(today), _due_within(week))
            ),
        )
        .select_from(tasks)
        .join(timeline_items, TASK_IS_ITEM)
    )
    return DueCounts(
        *transaction.connection.execute(counting.where(*_created_within(transaction, made), is_open)).one()
    )


def average_completion_seconds(transaction: PersonTransaction, made: TimeSpan | None) -> float | None:
    """The average time from creation to completion; None if nothing was completed."""
    taken = select(func.avg(COMPLETION_SECONDS)).select_from(tasks).join(timeline_items, TASK_IS_ITEM)
    completed = tasks.c.status == TaskStatus.COMPLETED
    found = transaction.connection.execute(taken.where(*_created_within(transaction, made), completed)).scalar_one()
    return None if found is None else float(found)


def _created_within(transaction: PersonTransaction, made: TimeSpan | None) -> list[ColumnElement[bool]]:
    when = timeline_items.c.created_at
    within = [] if made is None else [when >= made.start, when < made.end]
    return [tasks.c.user_id == transaction.user_id, *within]


def _due_within(span: TimeSpan) -> tuple[ColumnElement[bool], ...]:
    return (tasks.c.due_date >= span.start, tasks.c.due_date < span.end)


CLOSED_STATUSES = (TaskStatus.COMPLETED, TaskStatus.CANCELLED)


def save_wake_schedule(
    transaction: PersonTransaction, task_id: str, assignee: str, due: datetime, schedule_id: int
) -> bool:
    """Set the wake-up schedule of a task; False if it has one, or is no longer open, due or assigned like this."""
    still = (tasks.c.assignee == assignee, tasks.c.due_date == due, tasks.c.status.not_in(CLOSED_STATUSES))
    return _set_wake_schedule(transaction, task_id, schedule_id, tasks.c.wake_schedule_id.is_(None), *still)


def clear_wake_schedule(transaction: PersonTransaction, task_id: str, schedule_id: int) -> bool:
    """Remove the wake-up schedule of a task; False if the task has another one by now, or is gone."""
    return _set_wake_schedule(transaction, task_id, None, tasks.c.wake_schedule_id == schedule_id)


def _set_wake_schedule(
    transaction: PersonTransaction, task_id: str, schedule_id: int | None, *still: ColumnElement[bool]
) -> bool:
    # A change of a task writes its whole row as it was read, so changes must not overlap.
    transaction.lock_person()
    chosen = update(tasks).where(tasks.c.user_id == transaction.user_id, tasks.c.id == task_id, *still)
    return transaction.connection.execute(chosen.values(wake_schedule_id=schedule_id)).rowcount == 1
