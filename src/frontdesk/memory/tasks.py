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


def parse_new_task(mine: PersonTransaction, fields: Fields, zone: str | None) -> dict[str, Any]:
    """Parse the fields of a new task."""
    found = _parse_task_fields(mine, without_nulls(fields), zone)
    if "title" not in found:
        raise Invalid("title is missing; say in a few words what is to be done")
    return found


def parse_task_change(mine: PersonTransaction, fields: Fields, zone: str | None) -> dict[str, Any]:
    """Parse the changes of a task; null empties a field that can be empty."""
    nameless = {name: value for name, value in fields.items() if name != "category"}
    category = {"category": fields["category"]} if "category" in fields else {}
    return _parse_task_fields(mine, {**nulls_to_empty(Task, nameless), **category}, zone)


def check_task(task: Task) -> None:
    """Check the lengths and ranges of a task's fields."""
    check_length(task, "title", MAX_TITLE, 1)
    check_length(task, "assignee", MAX_ASSIGNEE)
    check_range(task, "progress", 0, 100)
    check_range(task, "estimated_duration", 1, MAX_MINUTES)
    check_range(task, "subtask_order", 0, MAX_SUBTASK_ORDER)


def _parse_task_fields(mine: PersonTransaction, fields: Fields, zone: str | None) -> dict[str, Any]:
    check_field_names(fields, SETTABLE_FIELDS)
    found = parse_choices(parse_fields(mine, fields, zone, TIME_FIELDS), CHOICE_FIELDS)
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


def update_dependents(mine: PersonTransaction, before: Task | None, after: Task | None) -> None:
    """Update the tasks that depend on a task that was created (no `before`), changed, or deleted (no `after`)."""
    update_affected(mine, [*_affected_parents(before, after), *_unblocked(mine, before, after)])


def update_affected(mine: PersonTransaction, concerned: Iterable[AffectedTask]) -> None:
    """Update each of these tasks, then the tasks that their changes affect."""
    ahead = deque(concerned)
    while ahead:
        task_id, what = ahead.popleft()
        before = fetch_task(mine, task_id)
        after = before and _recalculate(mine, before, what)
        if before is not None and after is not None and after != before:
            _save_recalculated(mine, before, after)
            ahead.extend([*_affected_parents(before, after), *_unblocked(mine, before, after)])


def _recalculate(mine: PersonTransaction, task: Task, what: SubtaskChange) -> Task:
    subtasks = fetch_subtasks(mine, task.id)
    may_close = what is SubtaskChange.CLOSED and task.completion_behavior is CompletionBehavior.WITH_SUBTASKS
    blocked = may_close and bool(open_prerequisites(mine, task.id))
    return apply_subtask_change(count_subtasks(task, subtasks), subtasks, what, mine.now, blocked=blocked)


def _save_recalculated(mine: PersonTransaction, before: Task, after: Task) -> None:
    """Keep `updated_at` if only the number of subtasks changed: for a person that is no change."""
    if (after.status, after.progress) == (before.status, before.progress):
        save_task_row(mine, after)
    else:
        save_task(mine, replace(after, updated_at=mine.now))


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


def _unblocked(mine: PersonTransaction, before: Task | None, after: Task | None) -> Sequence[AffectedTask]:
    """The tasks that waited for this task, if it has just been closed."""
    if before is None or after is None or not is_open(before) or is_open(after):
        return []
    return [(task_id, SubtaskChange.CLOSED) for task_id in tasks_waiting_for(mine, [before.id])]


TASK_NAME = "Task"


def get_task(mine: PersonTransaction, task_id: str) -> Task:
    """One of the person's tasks, or `NotFound`."""
    return require_found(fetch_task(mine, parse_id(task_id, TASK_NAME)), TASK_NAME)


def create_task(mine: PersonTransaction, fields: Fields, zone: str | None) -> Task:
    mine.lock_person()
    said = parse_new_task(mine, fields, zone)
    parent = get_task(mine, said["parent_task_id"]) if said.get("parent_task_id") else None
    place = said.get("subtask_order", next_subtask_order(mine, said.get("parent_task_id")))
    bare = Task(id=new_id(mine.now), created_at=mine.now, updated_at=mine.now, **{**said, "subtask_order": place})
    task = apply_status(place_in_tree(bare, parent), mine.now)
    check_task(task)
    insert_task(mine, task)
    set_dependencies(mine, replace(task, dependencies=()), task.dependencies)
    if task.status is TaskStatus.COMPLETED:
        check_unblocked(task, open_prerequisites(mine, task.id))
    update_dependents(mine, None, task)
    return get_task(mine, task.id)


def set_dependencies(mine: PersonTransaction, task: Task, on: Sequence[str]) -> None:
    """Replace the dependencies of a task."""
    old, new = set(task.dependencies) - set(on), [one for one in on if one not in task.dependencies]
    if old:
        delete_dependencies(mine, task.id, sorted(old))
    for one in new:
        get_task(mine, one)
    if new:
        check_no_loop(fetch_waiting_graph(mine), task.id, new)
    # Ids made at the same moment have no order, so they are sorted to follow the given order.
    ids = sorted(new_id(mine.now) for _ in new)
    pairs = zip(ids, new, strict=True)
    insert_links(mine, [_new_link(mine, link_id, task.id, one, TaskRelation.DEPENDENCY) for link_id, one in pairs])


def link_tasks(mine: PersonTransaction, task_id: str, related_id: str, relation: TaskRelation) -> TaskLink:
    mine.lock_person()
    task, related = get_task(mine, task_id), get_task(mine, related_id)
    if task.id == related.id:
        raise Conflict("A task cannot be linked with itself; name two tasks")
    if any((one.task_id, one.relation) == (task.id, relation) for one in list_links(mine, related.id)):
        raise Conflict(f"These tasks are linked as {relation} already")
    if relation in WAITING_RELATIONS:
        check_no_loop(fetch_waiting_graph(mine), task.id, [related.id])
    made = _new_link(mine, new_id(mine.now), task.id, related.id, relation)
    insert_links(mine, [made])
    return made


def unlink_tasks(mine: PersonTransaction, link_id: str) -> TaskLink:
    what = "Relation"
    gone = fetch_link(mine, parse_id(link_id, what))
    if gone is None:
        raise NotFound(f"{what} not found")
    delete_link(mine, gone.id)
    return gone


def _new_link(mine: PersonTransaction, link_id: str, task_id: str, related_id: str, relation: TaskRelation) -> TaskLink:
    return TaskLink(id=link_id, task_id=task_id, related_task_id=related_id, relation=relation, created_at=mine.now)


SUBTASK_NAME = "Subtask"


def update_task(mine: PersonTransaction, task_id: str, fields: Fields, zone: str | None) -> Task:
    mine.lock_person()
    return _update_task(mine, get_task(mine, task_id), fields, zone)


def set_task_status(
    mine: PersonTransaction, task_id: str, status: TaskStatus, notes: str | None, progress: int | None
) -> Task:
    mine.lock_person()
    before = get_task(mine, task_id)
    fields = {"status": status, "progress": progress, "description": _append_notes(before.description, notes)}
    return _update_task(mine, before, {name: value for name, value in fields.items() if value is not None}, None)


def delete_task(mine: PersonTransaction, task_id: str) -> Sequence[Task]:
    """Delete a task and its whole subtree. Returns the deleted tasks as they were, the task itself first."""
    mine.lock_person()
    gone = get_task(mine, task_id)
    subtree = [gone, *(one for level in fetch_levels_below(mine, gone.id, MAX_LEVELS) for one in level)]
    freed = [(one, SubtaskChange.CLOSED) for one in tasks_waiting_for(mine, [task.id for task in subtree])]
    # The deepest come first: deleting a task's row also deletes its subtasks' rows, but not their timeline items.
    for one in reversed(subtree):
        delete_item(mine, one.id)
    update_dependents(mine, gone, None)
    update_affected(mine, freed)
    return subtree


def reorder_subtasks(mine: PersonTransaction, parent_id: str, ids: Sequence[str]) -> Sequence[Task]:
    """Put subtasks in this order; those not named follow in their old order."""
    mine.lock_person()
    parent = get_task(mine, parent_id)
    subtasks = {one.id: one for one in fetch_subtasks(mine, parent.id)}
    named = [parse_id(one, SUBTASK_NAME) for one in ids]
    if len(set(named)) < len(named):
        raise Invalid("A subtask is named twice; name each once")
    first = [require_found(subtasks.get(one), SUBTASK_NAME) for one in named]
    for place, task in enumerate([*first, *(one for one in subtasks.values() if one.id not in named)]):
        if task.subtask_order != place:
            save_task_row(mine, replace(task, subtask_order=place))
    return fetch_subtasks(mine, parent.id)


def _update_task(mine: PersonTransaction, before: Task, fields: Fields, zone: str | None) -> Task:
    said = parse_task_change(mine, fields, zone)
    asked = replace(before, **said, updated_at=mine.now)
    after = apply_status(_move_task(mine, before, asked, placed="subtask_order" in said), mine.now)
    if after.subtask_count:
        after = count_subtasks(after, fetch_subtasks(mine, after.id))
    check_task(after)
    set_dependencies(mine, before, after.dependencies)
    if after.status is TaskStatus.COMPLETED and before.status is not TaskStatus.COMPLETED:
        check_unblocked(after, open_prerequisites(mine, after.id))
    save_task(mine, after)
    update_dependents(mine, before, after)
    return get_task(mine, after.id)


def _move_task(mine: PersonTransaction, before: Task, asked: Task, *, placed: bool) -> Task:
    """Move a task with its subtree under another parent, as its last subtask unless a position is given."""
    if asked.parent_task_id == before.parent_task_id:
        return asked
    parent = get_task(mine, asked.parent_task_id) if asked.parent_task_id else None
    levels = list(fetch_levels_below(mine, before.id, MAX_LEVELS))
    after = place_in_tree(asked, parent, len(levels))
    save_tree_positions(mine, move_subtree([one for level in levels for one in level], before, after))
    return after if placed else replace(after, subtask_order=next_subtask_order(mine, after.parent_task_id))


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

    async def list(self, scope: PersonScope, wanted: TaskFilter) -> RecordPage[Task]:
        scope.require(rights.TASKS_READ)
        wanted.check()
        return await self._records.read(scope, partial(list_tasks, wanted=wanted))

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


def _create_with_subtasks(mine: PersonTransaction, fields: Fields, zone: str | None) -> Task:
    own = dict(fields)
    under: Sequence[str] = own.pop("subtasks", None) or ()
    task = create_task(mine, own, zone)
    for one in under:
        update_task(mine, one, {"parent_task_id": task.id}, None)
    return get_task(mine, task.id) if under else task


def _before_and_after(
    mine: PersonTransaction, task_id: str, work: Callable[[PersonTransaction], Task]
) -> tuple[Task, Task]:
    """Run `work`, and return the task before and after it."""
    mine.lock_person()
    return get_task(mine, task_id), work(mine)


def _ancestors(mine: PersonTransaction, task: Task) -> Sequence[Task]:
    """The parent of a task, then its parent, and so on."""
    ids = task.hierarchy_path.split(PATH_SEPARATOR)[:-1]
    found = (fetch_task(mine, one) for one in reversed(ids))
    return [one for one in found if one is not None]


def _task_stats(mine: PersonTransaction, start: str | None, end: str | None, zone: str | None) -> TaskStats:
    where = find_zone(zone, mine.zone_name)
    made = parse_created_span(start, end, where)
    due = count_due(mine, made, *today_and_week(mine.now, where))
    names = {one.id: one.name for one in list_categories(mine)}
    return summarize_tasks(count_task_groups(mine, made), due, names, average_completion_seconds(mine, made))


def _list_updated(mine: PersonTransaction, start: str | None, end: str | None, zone: str | None) -> UpdatedTaskList:
    span = parse_span(start, end, find_zone(zone, mine.zone_name), mine.now)
    found = list_updated_tasks(mine, span, MAX_UPDATED)
    return UpdatedTaskList(found.items, found.total, span)


def _task_tree(mine: PersonTransaction, task_id: str, depth: int, *, completed: bool) -> Sequence[Task]:
    root = get_task(mine, task_id)
    below = [one for level in fetch_levels_below(mine, root.id, depth) for one in level]
    return in_tree_order(root, [one for one in below if completed or one.status is not TaskStatus.COMPLETED])


def _list_subtasks(mine: PersonTransaction, parent_id: str) -> Sequence[Task]:
    return fetch_subtasks(mine, get_task(mine, parent_id).id)


def _list_links(mine: PersonTransaction, task_id: str | None) -> Sequence[TaskLink]:
    return list_links(mine, None if task_id is None else get_task(mine, task_id).id)
