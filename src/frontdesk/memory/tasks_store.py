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


def insert_links(mine: PersonTransaction, links: Sequence[TaskLink]) -> None:
    for link in links:
        mine.connection.execute(insert(task_relations).values(user_id=mine.user_id, **asdict(link)))


def fetch_link(mine: PersonTransaction, link_id: str) -> TaskLink | None:
    row = mine.connection.execute(
        select(task_relations).where(task_relations.c.user_id == mine.user_id, task_relations.c.id == link_id)
    )
    found = row.mappings().one_or_none()
    return _link_from_row(found) if found else None


def list_links(mine: PersonTransaction, task_id: str | None = None) -> Sequence[TaskLink]:
    """All links, or the links of one task, in the order of their creation."""
    wanted = select(task_relations).where(task_relations.c.user_id == mine.user_id).order_by(*LINK_ORDER)
    if task_id is not None:
        wanted = wanted.where(or_(task_relations.c.task_id == task_id, task_relations.c.related_task_id == task_id))
    return [_link_from_row(row) for row in mine.connection.execute(wanted).mappings()]


def fetch_dependencies(mine: PersonTransaction, task_ids: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """The dependencies of these tasks; a task without dependencies is missing."""
    of_these = one_of(task_relations.c.task_id, "ids")
    wanted = select(task_relations.c.task_id, task_relations.c.related_task_id).where(
        task_relations.c.user_id == mine.user_id, of_these, task_relations.c.relation == TaskRelation.DEPENDENCY
    )
    found: dict[str, tuple[str, ...]] = {}
    for task_id, related in mine.connection.execute(wanted.order_by(*LINK_ORDER), {"ids": list(task_ids)}):
        found[task_id] = (*found.get(task_id, ()), related)
    return found


def fetch_waiting_graph(mine: PersonTransaction) -> dict[str, list[str]]:
    """For each task, the tasks that it waits for."""
    wanted = select(task_relations.c.task_id, task_relations.c.related_task_id)
    found: dict[str, list[str]] = {}
    for task_id, related in mine.connection.execute(
        wanted.where(task_relations.c.user_id == mine.user_id, task_relations.c.relation.in_(WAITING_RELATIONS))
    ):
        found.setdefault(task_id, []).append(related)
    return found


def open_prerequisites(mine: PersonTransaction, task_id: str) -> Sequence[NamedTask]:
    """The tasks that this task waits for and that are neither completed nor cancelled."""
    wanted = (
        select(tasks.c.id, timeline_items.c.title)
        .join(
            task_relations,
            (task_relations.c.user_id == tasks.c.user_id) & (task_relations.c.related_task_id == tasks.c.id),
        )
        .join(timeline_items, (timeline_items.c.user_id == tasks.c.user_id) & (timeline_items.c.id == tasks.c.id))
        .where(task_relations.c.user_id == mine.user_id, task_relations.c.task_id == task_id)
        .where(task_relations.c.relation.in_(WAITING_RELATIONS), tasks.c.status.in_(OPEN_STATUSES))
        .distinct()
        .order_by(tasks.c.id)
    )
    return [NamedTask(task_id, title) for task_id, title in mine.connection.execute(wanted)]


def tasks_waiting_for(mine: PersonTransaction, task_ids: Sequence[str]) -> Sequence[str]:
    """The tasks that wait for one of these tasks."""
    wanted = select(task_relations.c.task_id).where(
        task_relations.c.user_id == mine.user_id,
        one_of(task_relations.c.related_task_id, "ids"),
        task_relations.c.relation.in_(WAITING_RELATIONS),
    )
    found = mine.connection.execute(wanted.distinct().order_by(task_relations.c.task_id), {"ids": list(task_ids)})
    return list(found.scalars())


def delete_link(mine: PersonTransaction, link_id: str) -> None:
    mine.connection.execute(
        delete(task_relations).where(task_relations.c.user_id == mine.user_id, task_relations.c.id == link_id)
    )


def delete_dependencies(mine: PersonTransaction, task_id: str, on: Sequence[str]) -> None:
    """Delete the dependencies of a task on these tasks."""
    mine.connection.execute(
        delete(task_relations).where(
            task_relations.c.user_id == mine.user_id,
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


def insert_task(mine: PersonTransaction, task: Task) -> None:
    insert_item(mine, _item_from_task(task), task_text(task))
    mine.connection.execute(insert(tasks).values(user_id=mine.user_id, **_task_row(task, TASK_COLUMNS)))


def save_task(mine: PersonTransaction, task: Task) -> None:
    """Save a changed task; its dependencies are stored as links."""
    shown = fetch_item(mine, task.id) or _item_from_task(task)
    kept = {name: getattr(shown, name) for name in ("start_time", "is_time_consuming", "render_on_timeline")}
    save_item(mine, replace(_item_from_task(task), **kept), task_text(task))
    save_task_row(mine, task)


def save_task_row(mine: PersonTransaction, task: Task) -> None:
    """Save a changed task without its timeline item, if nothing on the timeline changed."""
    of_it = and_(tasks.c.user_id == mine.user_id, tasks.c.id == task.id)
    mine.connection.execute(update(tasks).where(of_it).values(**_task_row(task, WRITTEN_COLUMNS)))


def save_tree_positions(mine: PersonTransaction, moved: Sequence[Task]) -> None:
    """Save the positions of moved tasks."""
    rows = [
        {"of_user": mine.user_id, "of_id": one.id, "level": one.hierarchy_level, "path": one.hierarchy_path}
        for one in moved
    ]
    if rows:
        mine.connection.execute(MOVE_TASK, rows)


def fetch_task(mine: PersonTransaction, task_id: str) -> Task | None:
    found = mine.connection.execute(TASK_ROWS.where(tasks.c.user_id == mine.user_id, tasks.c.id == task_id))
    return next(iter(tasks_from_rows(mine, found.mappings().all())), None)


def fetch_subtasks(mine: PersonTransaction, parent_id: str) -> Sequence[Task]:
    """The direct subtasks of a task, in their order."""
    return _fetch_children(mine, [parent_id])


def fetch_levels_below(mine: PersonTransaction, task_id: str, levels: int) -> Iterator[Sequence[Task]]:
    """The subtree of a task, one level at a time, down to this many levels; siblings are in their order."""
    level = _fetch_children(mine, [task_id])
    while level and levels > 0:
        yield level
        level, levels = _fetch_children(mine, [one.id for one in level]), levels - 1


def next_subtask_order(mine: PersonTransaction, parent_id: str | None) -> int:
    """The position after the last subtask of a task; tasks without a parent have no position."""
    if parent_id is None:
        return 0
    last = select(func.max(tasks.c.subtask_order))
    of_parent = last.where(tasks.c.user_id == mine.user_id, tasks.c.parent_task_id == parent_id)
    found = mine.connection.execute(of_parent).scalar_one()
    return 0 if found is None else found + 1


def tasks_from_rows(mine: PersonTransaction, rows: Sequence[RowMapping]) -> Sequence[Task]:
    """Build tasks from rows of `TASK_ROWS`, with their dependencies."""
    if not rows:
        return []
    on = fetch_dependencies(mine, [row["id"] for row in rows])
    return [_task_from_row(row, on.get(row["id"], ())) for row in rows]


def _fetch_children(mine: PersonTransaction, parent_ids: Sequence[str]) -> Sequence[Task]:
    of_these = TASK_ROWS.where(tasks.c.user_id == mine.user_id, one_of(tasks.c.parent_task_id, "ids"))
    rows = mine.connection.execute(of_these.order_by(*SUBTASK_ORDER), {"ids": list(parent_ids)}).mappings().all()
    return tasks_from_rows(mine, rows)


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


def list_tasks(mine: PersonTransaction, wanted: TaskFilter) -> RecordPage[Task]:
    conditions = [*_field_conditions(wanted), *_tree_conditions(mine, wanted), *_time_conditions(mine, wanted)]
    if wanted.category:
        conditions.append(timeline_items.c.category_id == find_category_id(mine, wanted.category))
    chosen = TASK_ROWS.where(tasks.c.user_id == mine.user_id, *conditions)
    in_order = order_rows(chosen, SORT_COLUMNS[wanted.sort_by], tasks.c.id, wanted.sort_order, nullable=True)
    rows, total = fetch_page(mine, in_order, wanted.limit, wanted.offset)
    return RecordPage(tasks_from_rows(mine, rows), total, wanted.offset)


def list_updated_tasks(mine: PersonTransaction, span: TimeSpan, most: int) -> RecordPage[Task]:
    """The tasks last changed within the span, the latest first."""
    when = timeline_items.c.updated_at
    chosen = TASK_ROWS.where(tasks.c.user_id == mine.user_id, when >= span.start, when < span.end)
    rows, total = fetch_page(mine, order_rows(chosen, when, tasks.c.id, "desc"), most, 0)
    return RecordPage(tasks_from_rows(mine, rows), total)


def is_overdue(mine: PersonTransaction) -> Sequence[ColumnElement[bool]]:
    return (tasks.c.due_date < mine.now, tasks.c.status.in_(OPEN_STATUSES))


def _field_conditions(wanted: TaskFilter) -> list[ColumnElement[bool]]:
    found = contains_words(SEARCHED_COLUMNS, wanted.search) if wanted.search else []
    if wanted.status is not None:
        found.append(tasks.c.status == wanted.status)
    if wanted.priority is not None:
        found.append(timeline_items.c.priority == wanted.priority)
    if wanted.assignee is not None:
        found.append(tasks.c.assignee == wanted.assignee)
    if wanted.tags:
        found.append(has_tags(wanted.tags, every=wanted.every_tag))
    return found


def _tree_conditions(mine: PersonTransaction, wanted: TaskFilter) -> list[ColumnElement[bool]]:
    found: list[ColumnElement[bool]] = []
    if wanted.parent_task_id is not None:
        parent = require_found(fetch_task(mine, parse_id(wanted.parent_task_id, "Task")), "Task")
        found.append(tasks.c.parent_task_id == parent.id)
    if wanted.hierarchy_level is not None:
        found.append(tasks.c.hierarchy_level == wanted.hierarchy_level)
    if wanted.roots_only:
        found.append(tasks.c.parent_task_id.is_(None))
    return found


def _time_conditions(mine: PersonTransaction, wanted: TaskFilter) -> list[ColumnElement[bool]]:
    zone = find_zone(wanted.timezone, mine.zone_name)
    found: list[ColumnElement[bool]] = []
    for name, column in TIME_COLUMNS.items():
        between = parse_bounds(wanted, name, zone)
        if between.since is not None:
            found.append(column >= between.since)
        if between.until is not None:
            found.append(not_after(column, between.until))
    if wanted.overdue:
        found.extend(is_overdue(mine))
    if wanted.updated_today:
        span = span_of_days(today_in(mine.now, zone), zone)
        found += [timeline_items.c.updated_at >= span.start, timeline_items.c.updated_at < span.end]
    return found


GROUP_COLUMNS = (tasks.c.status, timeline_items.c.priority, timeline_items.c.category_id)
COMPLETION_SECONDS = extract("epoch", tasks.c.completion_date) - extract("epoch", timeline_items.c.created_at)


def count_task_groups(mine: PersonTransaction, made: TimeSpan | None) -> Sequence[TaskGroupCount]:
    counting = select(*GROUP_COLUMNS, func.count()).select_from(tasks).join(timeline_items, TASK_IS_ITEM)
    rows = mine.connection.execute(counting.where(*_created_within(mine, made)).group_by(*GROUP_COLUMNS))
    return [
        TaskGroupCount(TaskStatus(status), Priority(priority), category, count)
        for status, priority, category, count in rows
    ]


def count_due(mine: PersonTransaction, made: TimeSpan | None, today: TimeSpan, week: TimeSpan) -> DueCounts:
    is_open = tasks.c.status.in_(OPEN_STATUSES)
    counting = (
        select(
            *(func.count().filter(*which) for which in (is_overdue(mine), _due_within(today), _due_within(week))),
        )
        .select_from(tasks)
        .join(timeline_items, TASK_IS_ITEM)
    )
    return DueCounts(*mine.connection.execute(counting.where(*_created_within(mine, made), is_open)).one())


def average_completion_seconds(mine: PersonTransaction, made: TimeSpan | None) -> float | None:
    """The average time from creation to completion; None if nothing was completed."""
    taken = select(func.avg(COMPLETION_SECONDS)).select_from(tasks).join(timeline_items, TASK_IS_ITEM)
    completed = tasks.c.status == TaskStatus.COMPLETED
    found = mine.connection.execute(taken.where(*_created_within(mine, made), completed)).scalar_one()
    return None if found is None else float(found)


def _created_within(mine: PersonTransaction, made: TimeSpan | None) -> list[ColumnElement[bool]]:
    when = timeline_items.c.created_at
    within = [] if made is None else [when >= made.start, when < made.end]
    return [tasks.c.user_id == mine.user_id, *within]


def _due_within(span: TimeSpan) -> tuple[ColumnElement[bool], ...]:
    return (tasks.c.due_date >= span.start, tasks.c.due_date < span.end)


CLOSED_STATUSES = (TaskStatus.COMPLETED, TaskStatus.CANCELLED)


def save_wake_schedule(mine: PersonTransaction, task_id: str, assignee: str, due: datetime, schedule_id: int) -> bool:
    """Set the wake-up schedule of a task; False if it has one, or is no longer open, due or assigned like this."""
    still = (tasks.c.assignee == assignee, tasks.c.due_date == due, tasks.c.status.not_in(CLOSED_STATUSES))
    return _set_wake_schedule(mine, task_id, schedule_id, tasks.c.wake_schedule_id.is_(None), *still)


def clear_wake_schedule(mine: PersonTransaction, task_id: str, schedule_id: int) -> bool:
    """Remove the wake-up schedule of a task; False if the task has another one by now, or is gone."""
    return _set_wake_schedule(mine, task_id, None, tasks.c.wake_schedule_id == schedule_id)


def _set_wake_schedule(
    mine: PersonTransaction, task_id: str, schedule_id: int | None, *still: ColumnElement[bool]
) -> bool:
    # A change of a task writes its whole row as it was read, so changes must not overlap.
    mine.lock_person()
    chosen = update(tasks).where(tasks.c.user_id == mine.user_id, tasks.c.id == task_id, *still)
    return mine.connection.execute(chosen.values(wake_schedule_id=schedule_id)).rowcount == 1
