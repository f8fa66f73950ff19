"""Offers tasks: create, change, move, link, complete, delete, and update the tasks that depend on a change."""

from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from frontdesk.errors import Conflict, Invalid, NotFound
from frontdesk.identity import rights
from frontdesk.memory.items_store import delete_item, list_categories
from frontdesk.memory.model import (
    CompletionBehavior,
    PersonScope,
    Priority,
    ProgressCalculation,
    Task,
    TaskLink,
    TaskRelation,
    TaskStatus,
)
from frontdesk.memory.store import PersonDatabase, PersonTransaction
from frontdesk.memory.tasks_rules import (
    MAX_LEVELS,
    PATH_SEPARATOR,
    WAITING_RELATIONS,
    SubtaskChange,
    TaskFilter,
    TaskStats,
    UpdatedTaskList,
    apply_status,
    apply_subtask_change,
    check_no_loop,
    check_unblocked,
    count_subtasks,
    in_tree_order,
    is_open,
    move_subtree,
    parse_created_span,
    parse_span,
    place_in_tree,
    subtask_change,
    summarize_tasks,
    today_and_week,
)
from frontdesk.memory.tasks_store import (
    average_completion_seconds,
    count_due,
    count_task_groups,
    delete_dependencies,
    delete_link,
    fetch_levels_below,
    fetch_link,
    fetch_subtasks,
    fetch_task,
    fetch_waiting_graph,
    insert_links,
    insert_task,
    list_links,
    list_tasks,
    list_updated_tasks,
    next_subtask_order,
    open_prerequisites,
    save_task,
    save_task_row,
    save_tree_positions,
    tasks_waiting_for,
)
from frontdesk.memory.times import DayEdge, find_zone
from frontdesk.memory.validation import (
    Fields,
    RecordPage,
    check_field_names,
    check_length,
    check_range,
    new_id,
    nulls_to_empty,
    parse_choices,
    parse_fields,
    parse_id,
    require_found,
    without_nulls,
)

MAX_TITLE = 200
MAX_ASSIGNEE = 200
MAX_MINUTES = 10_000_000
MAX_SUBTASK_ORDER = 1_000_000
TIME_FIELDS = {"due_date": DayEdge.END, "completion_date": DayEdge.START}
CHOICE_FIELDS = {
    "status": TaskStatus,
    "priority": Priority,
    "completion_behavior": CompletionBehavior,
    "progress_calculation": ProgressCalculation,
}
# The services maintain all other fields.
SETTABLE_FIELDS = (
    "title",
    "description",
    "status",
    "priority",
    "category",
    "category_id",
    "tags",
    "due_date",
    "estimated_duration",
    "progress",
    "assignee",
    "notes",
    "completion_date",
    "parent_task_id",
    "subtask_order",
    "completion_behavior",
    "progress_calculation",
    "dependencies",
    "is_ai_task",
    "wake_schedule_id",
    "metadata",
)


def parse_new_task(transaction: PersonTransaction, fields: Fields, zone: str | None) -> dict[str, Any]:
    """Parse the fields of a new task."""
    found = _parse_task_fields(transaction, without_nulls(fields), zone)
    if "title" not in found:
        raise Invalid("title is missing; say in a few words what is to be done")
    return found


def parse_task_change(transaction: PersonTransaction, fields: Fields, zone: str | None) -> dict[str, Any]:
    """Parse the changes of a task; null empties a field that can be empty."""
    nameless = {name: value for name, value in fields.items() if name != "category"}
    category = {"category": fields["category"]} if "category" in fields else {}
    return _parse_task_fields(transaction, {**nulls_to_empty(Task, nameless), **category}, zone)


def check_task(task: Task) -> None:
    """Check the lengths and ranges of a task's fields."""
    check_length(task, "title", MAX_TITLE, 1)
    check_length(task, "assignee", MAX_ASSIGNEE)
    check_range(task, "progress", 0, 100)
    check_range(task, "estimated_duration", 1, MAX_MINUTES)
    check_range(task, "subtask_order", 0, MAX_SUBTASK_ORDER)


def _parse_task_fields(transaction: PersonTransaction, fields: Fields, zone: str | None) -> dict[str, Any]:
    check_field_names(fields, SETTABLE_FIELDS)
    found = parse_choices(parse_fields(transaction, fields, zone, TIME_FIELDS), CHOICE_FIELDS)
    if "title" in found:
        found["title"] = found["title"].strip()
    if "assignee" in found:
        found["assignee"] = (found["assignee"] or "").strip() or None
    if found.get("parent_task_id"):
        found["parent_task_id"] = parse_id(found["parent_task_id"], "Task")
    if "dependencies" in found:
        found["dependencies"] = tuple(dict.fromkeys(parse_id(one, "Task") for one in found["dependencies"]))
    return found


AffectedTask = tuple[str, SubtaskChange]


def update_dependents(transaction: PersonTransaction, before: Task | None, after: Task | None) -> None:
    """Update the tasks that depend on a task that was created (no `before`), changed, or deleted (no `after`)."""
    update_affected(transaction, [*_affected_parents(before, after), *_unblocked(transaction, before, after)])


def update_affected(transaction: PersonTransaction, concerned: Iterable[AffectedTask]) -> None:
    """Update each of these tasks, then the tasks that their changes affect."""
    ahead = deque(concerned)
    while ahead:
        task_id, what = ahead.popleft()
        before = fetch_task(transaction, task_id)
        after = before and _recalculate(transaction, before, what)
        if before is not None and after is not None and after != before:
            _save_recalculated(transaction, before, after)
            ahead.extend([*_affected_parents(before, after), *_unblocked(transaction, before, after)])


def _recalculate(transaction: PersonTransaction, task: Task, what: SubtaskChange) -> Task:
    subtasks = fetch_subtasks(transaction, task.id)
    may_close = what is SubtaskChange.CLOSED and task.completion_behavior is CompletionBehavior.WITH_SUBTASKS
    blocked = may_close and bool(open_prerequisites(transaction, task.id))
    return apply_subtask_change(count_subtasks(task, subtasks), subtasks, what, transaction.now, blocked=blocked)


def _save_recalculated(transaction: PersonTransaction, before: Task, after: Task) -> None:
    """Keep `updated_at` if only the number of subtasks changed: for a person that is no change."""
    if (after.status, after.progress) == (before.status, before.progress):
        save_task_row(transaction, after)
    else:
        save_task(transaction, replace(after, updated_at=transaction.now))


def _affected_parents(before: Task | None, after: Task | None) -> Sequence[AffectedTask]:
    old, new = (one.parent_task_id if one is not None else None for one in (before, after))
    if old == new:
        return [(old, subtask_change(before, after))] if old is not None and _affects_parent(before, after) else []
    left = [(old, subtask_change(before, None))] if old is not None else []
    came = [(new, subtask_change(None, after))] if new is not None else []
    return [*left, *came]


def _affects_parent(before: Task | None, after: Task | None) -> bool:
    """Whether a value changed that the parent's values are computed from."""
    seen = [one and (one.status, one.progress, one.estimated_duration) for one in (before, after)]
    return seen[0] != seen[1]


def _unblocked(transaction: PersonTransaction, before: Task | None, after: Task | None) -> Sequence[AffectedTask]:
    """The tasks that waited for this task, if it has just been closed."""
    if before is None or after is None or not is_open(before) or is_open(after):
        return []
    return [(task_id, SubtaskChange.CLOSED) for task_id in tasks_waiting_for(transaction, [before.id])]


TASK_NAME = "Task"


def get_task(transaction: PersonTransaction, task_id: str) -> Task:
    """One of the person's tasks, or `NotFound`."""
    return require_found(fetch_task(transaction, parse_id(task_id, TASK_NAME)), TASK_NAME)


def create_task(transaction: PersonTransaction, fields: Fields, zone: str | None) -> Task:
    transaction.lock_person()
    said = parse_new_task(transaction, fields, zone)
    parent = get_task(transaction, said["parent_task_id"]) if said.get("parent_task_id") else None
    place = said.get("subtask_order", next_subtask_order(transaction, said.get("parent_task_id")))
    bare = Task(
        id=new_id(transaction.now),
        created_at=transaction.now,
        updated_at=transaction.now,
        **{**said, "subtask_order": place},
    )
    task = apply_status(place_in_tree(bare, parent), transaction.now)
    check_task(task)
    insert_task(transaction, task)
    set_dependencies(transaction, replace(task, dependencies=()), task.dependencies)
    if task.status is TaskStatus.COMPLETED:
        check_unblocked(task, open_prerequisites(transaction, task.id))
    update_dependents(transaction, None, task)
    return get_task(transaction, task.id)


def set_dependencies(transaction: PersonTransaction, task: Task, on: Sequence[str]) -> None:
    """Replace the dependencies of a task."""
    old, new = set(task.dependencies) - set(on), [one for one in on if one not in task.dependencies]
    if old:
        delete_dependencies(transaction, task.id, sorted(old))
    for one in new:
        get_task(transaction, one)
    if new:
        check_no_loop(fetch_waiting_graph(transaction), task.id, new)
    # Ids made at the same moment have no order, so they are sorted to follow the given order.
    ids = sorted(new_id(transaction.now) for _ in new)
    pairs = zip(ids, new, strict=True)
    insert_links(
        transaction, [_new_link(transaction, link_id, task.id, one, TaskRelation.DEPENDENCY) for link_id, one in pairs]
    )


def link_tasks(transaction: PersonTransaction, task_id: str, related_id: str, relation: TaskRelation) -> TaskLink:
    transaction.lock_person()
    task, related = get_task(transaction, task_id), get_task(transaction, related_id)
    if task.id == related.id:
        raise Conflict("A task cannot be linked with itself; name two tasks")
    if any((one.task_id, one.relation) == (task.id, relation) for one in list_links(transaction, related.id)):
        raise Conflict(f"These tasks are linked as {relation} already")
    if relation in WAITING_RELATIONS:
        check_no_loop(fetch_waiting_graph(transaction), task.id, [related.id])
    made = _new_link(transaction, new_id(transaction.now), task.id, related.id, relation)
    insert_links(transaction, [made])
    return made


def unlink_tasks(transaction: PersonTransaction, link_id: str) -> TaskLink:
    what = "Relation"
    gone = fetch_link(transaction, parse_id(link_id, what))
    if gone is None:
        raise NotFound(f"{what} not found")
    delete_link(transaction, gone.id)
    return gone


def _new_link(
    transaction: PersonTransaction, link_id: str, task_id: str, related_id: str, relation: TaskRelation
) -> TaskLink:
    return TaskLink(
        id=link_id, task_id=task_id, related_task_id=related_id, relation=relation, created_at=transaction.now
    )


SUBTASK_NAME = "Subtask"


def update_task(transaction: PersonTransaction, task_id: str, fields: Fields, zone: str | None) -> Task:
    transaction.lock_person()
    return _update_task(transaction, get_task(transaction, task_id), fields, zone)


def set_task_status(
    transaction: PersonTransaction, task_id: str, status: TaskStatus, notes: str | None, progress: int | None
) -> Task:
    transaction.lock_person()
    before = get_task(transaction, task_id)
    fields = {"status": status, "progress": progress, "description": _append_notes(before.description, notes)}
    return _update_task(transaction, before, {name: value for name, value in fields.items() if value is not None}, None)


def delete_task(transaction: PersonTransaction, task_id: str) -> Sequence[Task]:
    """Delete a task and its whole subtree. Returns the deleted tasks as they were, the task itself first."""
    transaction.lock_person()
    gone = get_task(transaction, task_id)
    subtree = [gone, *(one for level in fetch_levels_below(transaction, gone.id, MAX_LEVELS) for one in level)]
    freed = [(one, SubtaskChange.CLOSED) for one in tasks_waiting_for(transaction, [task.id for task in subtree])]
    # The deepest come first: deleting a task's row also deletes its subtasks' rows, but not their timeline items.
    for one in reversed(subtree):
        delete_item(transaction, one.id)
    update_dependents(transaction, gone, None)
    update_affected(transaction, freed)
    return subtree


def reorder_subtasks(transaction: PersonTransaction, parent_id: str, ids: Sequence[str]) -> Sequence[Task]:
    """Put subtasks in this order; those not named follow in their old order."""
    transaction.lock_person()
    parent = get_task(transaction, parent_id)
    subtasks = {one.id: one for one in fetch_subtasks(transaction, parent.id)}
    named = [parse_id(one, SUBTASK_NAME) for one in ids]
    if len(set(named)) < len(named):
        raise Invalid("A subtask is named twice; name each once")
    first = [require_found(subtasks.get(one), SUBTASK_NAME) for one in named]
    for place, task in enumerate([*first, *(one for one in subtasks.values() if one.id not in named)]):
        if task.subtask_order != place:
            save_task_row(transaction, replace(task, subtask_order=place))
    return fetch_subtasks(transaction, parent.id)


def _update_task(transaction: PersonTransaction, before: Task, fields: Fields, zone: str | None) -> Task:
    said = parse_task_change(transaction, fields, zone)
    asked = replace(before, **said, updated_at=transaction.now)
    after = apply_status(_move_task(transaction, before, asked, placed="subtask_order" in said), transaction.now)
    if after.subtask_count:
        after = count_subtasks(after, fetch_subtasks(transaction, after.id))
    check_task(after)
    set_dependencies(transaction, before, after.dependencies)
    if after.status is TaskStatus.COMPLETED and before.status is not TaskStatus.COMPLETED:
        check_unblocked(after, open_prerequisites(transaction, after.id))
    save_task(transaction, after)
    update_dependents(transaction, before, after)
    return get_task(transaction, after.id)


def _move_task(transaction: PersonTransaction, before: Task, asked: Task, *, placed: bool) -> Task:
    """Move a task with its subtree under another parent, as its last subtask unless a position is given."""
    if asked.parent_task_id == before.parent_task_id:
        return asked
    parent = get_task(transaction, asked.parent_task_id) if asked.parent_task_id else None
    levels = list(fetch_levels_below(transaction, before.id, MAX_LEVELS))
    after = place_in_tree(asked, parent, len(levels))
    save_tree_positions(transaction, move_subtree([one for level in levels for one in level], before, after))
    return after if placed else replace(after, subtask_order=next_subtask_order(transaction, after.parent_task_id))


def _append_notes(description: str, notes: str | None) -> str | None:
    """Append notes to a description; None if there are no notes."""
    said = (notes or "").strip()
    return "\n\n".join(text for text in (description, said) if text) if said else None


MAX_UPDATED = 1_000

# Called with a task before (None if it is new) and after (None if it was deleted) a change. Returns a note for the
# caller of the change.
OnTaskChange = Callable[[PersonScope, Task | None, Task | None], Awaitable[str | None]]


class TaskService:
    """Tasks of one person; the scope says whose. Another person's task is `NotFound`, like a task that does not exist.

    `fields` are the fields of a `Task` that can be set, with times as texts, and `category` as a name or an id.
    """

    def __init__(self, records: PersonDatabase, follow: OnTaskChange | None = None) -> None:
        self._records = records
        self._on_change = follow

    async def create(self, scope: PersonScope, fields: Fields, zone: str | None = None) -> Task:
        """Create a task; the tasks with the ids in `subtasks` become its subtasks."""
        scope.require(rights.TASKS_WRITE)
        made = await self._records.change(scope, partial(_create_with_subtasks, fields=fields, zone=zone))
        return await self.notify_changed(scope, None, made)

    async def get(self, scope: PersonScope, task_id: str) -> Task:
        scope.require(rights.TASKS_READ)
        return await self._records.read(scope, partial(get_task, task_id=task_id))

    async def list(self, scope: PersonScope, filters: TaskFilter) -> RecordPage[Task]:
        scope.require(rights.TASKS_READ)
        filters.check()
        return await self._records.read(scope, partial(list_tasks, filters=filters))

    async def update(self, scope: PersonScope, task_id: str, fields: Fields, zone: str | None = None) -> Task:
        """Change the given fields; None empties a field that can be empty."""
        scope.require(rights.TASKS_WRITE)
        work = partial(update_task, task_id=task_id, fields=fields, zone=zone)
        return await self._changed(scope, task_id, work)

    async def set_status(
        self,
        scope: PersonScope,
        task_id: str,
        status: TaskStatus,
        notes: str | None = None,
        progress: int | None = None,
    ) -> Task:
        """Set the status; the notes are appended to the description."""
        scope.require(rights.TASKS_WRITE)
        work = partial(set_task_status, task_id=task_id, status=status, notes=notes, progress=progress)
        return await self._changed(scope, task_id, work)

    async def delete(self, scope: PersonScope, task_id: str) -> Task:
        """Delete a task with its subtasks, time entries and links. Returns the task as it was."""
        scope.require(rights.TASKS_WRITE)
        gone = await self._records.change(scope, partial(delete_task, task_id=task_id), small=False)
        await self.notify_deleted(scope, gone)
        return gone[0]

    async def stats(
        self, scope: PersonScope, from_date: str | None = None, to_date: str | None = None, zone: str | None = None
    ) -> TaskStats:
        """Statistics of all tasks, or of those created between these dates; `zone` decides which day is today."""
        scope.require(rights.TASKS_READ)
        return await self._records.read(scope, partial(_task_stats, start=from_date, end=to_date, zone=zone))

    async def updated(
        self, scope: PersonScope, start_date: str | None = None, end_date: str | None = None, zone: str | None = None
    ) -> UpdatedTaskList:
        """The tasks last changed today, or between these dates, the latest first."""
        scope.require(rights.TASKS_READ)
        return await self._records.read(scope, partial(_list_updated, start=start_date, end=end_date, zone=zone))

    async def tree(
        self, scope: PersonScope, task_id: str, max_depth: int = 5, include_completed: bool = True
    ) -> Sequence[Task]:
        """A task and its subtree to this depth, parents first. Leaving out a completed task leaves out its subtasks."""
        scope.require(rights.TASKS_READ)
        work = partial(_task_tree, task_id=task_id, depth=max_depth, completed=include_completed)
        return await self._records.read(scope, work)

    async def subtasks(self, scope: PersonScope, parent_id: str) -> Sequence[Task]:
        scope.require(rights.TASKS_READ)
        return await self._records.read(scope, partial(_list_subtasks, parent_id=parent_id))

    async def reorder(self, scope: PersonScope, parent_id: str, ids: Sequence[str]) -> Sequence[Task]:
        """Put the subtasks in this order; those not named come after them."""
        scope.require(rights.TASKS_WRITE)
        return await self._records.change(scope, partial(reorder_subtasks, parent_id=parent_id, ids=ids))

    async def link(self, scope: PersonScope, task_id: str, related_task_id: str, relation: TaskRelation) -> TaskLink:
        """Link two tasks. The relation `subtask` is only a note here: the parent of a task makes the tree."""
        scope.require(rights.TASKS_WRITE)
        work = partial(link_tasks, task_id=task_id, related_id=related_task_id, relation=relation)
        return await self._records.change(scope, work)

    async def links(self, scope: PersonScope, task_id: str | None = None) -> Sequence[TaskLink]:
        """All links, or the links of one task."""
        scope.require(rights.TASKS_READ)
        return await self._records.read(scope, partial(_list_links, task_id=task_id))

    async def unlink(self, scope: PersonScope, link_id: str) -> TaskLink:
        scope.require(rights.TASKS_WRITE)
        return await self._records.change(scope, partial(unlink_tasks, link_id=link_id))

    async def notify_changed(self, scope: PersonScope, before: Task | None, after: Task) -> Task:
        """Call `on_change` for this task and, after a new status, for its ancestors. Returns the task as it is then."""
        if self._on_change is None:
            return after
        note = await self._on_change(scope, before, after)
        if before is None or before.status is not after.status:
            for above in await self._records.read(scope, partial(_ancestors, task=after)):
                await self._on_change(scope, above, above)
        if after.assignee is None and after.wake_schedule_id is None:
            return after
        return replace(await self._records.read(scope, partial(get_task, task_id=after.id)), wake_note=note or "")

    async def notify_deleted(self, scope: PersonScope, gone: Sequence[Task]) -> None:
        """Call `on_change` for each deleted task."""
        if self._on_change is not None:
            for one in gone:
                await self._on_change(scope, one, None)

    async def _changed(self, scope: PersonScope, task_id: str, work: Callable[[PersonTransaction], Task]) -> Task:
        before, after = await self._records.change(scope, partial(_before_and_after, task_id=task_id, work=work))
        return await self.notify_changed(scope, before, after)


def _create_with_subtasks(transaction: PersonTransaction, fields: Fields, zone: str | None) -> Task:
    own = dict(fields)
    under: Sequence[str] = own.pop("subtasks", None) or ()
    task = create_task(transaction, own, zone)
    for one in under:
        update_task(transaction, one, {"parent_task_id": task.id}, None)
    return get_task(transaction, task.id) if under else task


def _before_and_after(
    transaction: PersonTransaction, task_id: str, work: Callable[[PersonTransaction], Task]
) -> tuple[Task, Task]:
    """Run `work`, and return the task before and after it."""
    transaction.lock_person()
    return get_task(transaction, task_id), work(transaction)


def _ancestors(transaction: PersonTransaction, task: Task) -> Sequence[Task]:
    """The parent of a task, then its parent, and so on."""
    ids = task.hierarchy_path.split(PATH_SEPARATOR)[:-1]
    found = (fetch_task(transaction, one) for one in reversed(ids))
    return [one for one in found if one is not None]


def _task_stats(transaction: PersonTransaction, start: str | None, end: str | None, zone: str | None) -> TaskStats:
    where = find_zone(zone, transaction.zone_name)
    made = parse_created_span(start, end, where)
    due = count_due(transaction, made, *today_and_week(transaction.now, where))
    names = {one.id: one.name for one in list_categories(transaction)}
    return summarize_tasks(
        count_task_groups(transaction, made), due, names, average_completion_seconds(transaction, made)
    )


def _list_updated(
    transaction: PersonTransaction, start: str | None, end: str | None, zone: str | None
) -> UpdatedTaskList:
    span = parse_span(start, end, find_zone(zone, transaction.zone_name), transaction.now)
    found = list_updated_tasks(transaction, span, MAX_UPDATED)
    return UpdatedTaskList(found.items, found.total, span)


def _task_tree(transaction: PersonTransaction, task_id: str, depth: int, *, completed: bool) -> Sequence[Task]:
    root = get_task(transaction, task_id)
    below = [one for level in fetch_levels_below(transaction, root.id, depth) for one in level]
    return in_tree_order(root, [one for one in below if completed or one.status is not TaskStatus.COMPLETED])


def _list_subtasks(transaction: PersonTransaction, parent_id: str) -> Sequence[Task]:
    return fetch_subtasks(transaction, get_task(transaction, parent_id).id)


def _list_links(transaction: PersonTransaction, task_id: str | None) -> Sequence[TaskLink]:
    return list_links(transaction, None if task_id is None else get_task(transaction, task_id).id)
