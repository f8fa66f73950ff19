"""A person's tasks as every door uses them."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from functools import partial

from frontdesk.identity import rights
from frontdesk.memory.categories import store as categories
from frontdesk.memory.given import Fields, Page
from frontdesk.memory.model import Relation, Task, TaskLink, TaskStatus
from frontdesk.memory.moments import zone_of
from frontdesk.memory.scope import Scope
from frontdesk.memory.store import Mine, Records
from frontdesk.memory.tasks import changing, making, rules, store
from frontdesk.memory.tasks.counting import store as counting
from frontdesk.memory.tasks.links import store as links
from frontdesk.memory.tasks.looking import store as looking
from frontdesk.memory.tasks.stats import TaskStats, TasksUpdated, days_of, stats
from frontdesk.memory.tasks.wanted import TaskWanted, made_within, stretch

MOST_UPDATED = 1_000

# Told what a task was and is: None before for a new one, None after for one that is gone. Gives what the caller should
# know of it.
Follow = Callable[[Scope, Task | None, Task | None], Awaitable[str | None]]


class Tasks:
    """Every method takes whose tasks they are first; another's are `NotFound`, in the words for what is not there.

    `fields` are those of a `Task` that can be set, with times as texts, and `category` for a name or an id.
    """

    def __init__(self, records: Records, follow: Follow | None = None) -> None:
        self._records = records
        self._follow = follow

    async def create(self, scope: Scope, fields: Fields, zone: str | None = None) -> Task:
        """A new one; the tasks whose ids are in `subtasks` come under it."""
        scope.require(rights.TASKS_WRITE)
        made = await self._records.change(scope, partial(_create, fields=fields, zone=zone))
        return await self.followed(scope, None, made)

    async def get(self, scope: Scope, task_id: str) -> Task:
        scope.require(rights.TASKS_READ)
        return await self._records.read(scope, partial(making.found, task_id=task_id))

    async def list(self, scope: Scope, wanted: TaskWanted) -> Page[Task]:
        scope.require(rights.TASKS_READ)
        wanted.check()
        return await self._records.read(scope, partial(looking.search, wanted=wanted))

    async def update(self, scope: Scope, task_id: str, fields: Fields, zone: str | None = None) -> Task:
        """Change what is given; None empties what can be empty."""
        scope.require(rights.TASKS_WRITE)
        work = partial(changing.change, task_id=task_id, fields=fields, zone=zone)
        return await self._changed(scope, task_id, work)

    async def set_status(
        self, scope: Scope, task_id: str, status: TaskStatus, notes: str | None = None, progress: int | None = None
    ) -> Task:
        """Have it stand so; notes go after its description."""
        scope.require(rights.TASKS_WRITE)
        work = partial(changing.set_status, task_id=task_id, status=status, notes=notes, progress=progress)
        return await self._changed(scope, task_id, work)

    async def delete(self, scope: Scope, task_id: str) -> Task:
        """With its subtasks, the time spent on them, and their links; the task as it was."""
        scope.require(rights.TASKS_WRITE)
        gone = await self._records.change(scope, partial(changing.delete, task_id=task_id), small=False)
        await self.left(scope, gone)
        return gone[0]

    async def stats(
        self, scope: Scope, from_date: str | None = None, to_date: str | None = None, zone: str | None = None
    ) -> TaskStats:
        """Of all tasks, or of those made between these dates; today is the one of the zone."""
        scope.require(rights.TASKS_READ)
        return await self._records.read(scope, partial(_stats, start=from_date, end=to_date, zone=zone))

    async def updated(
        self, scope: Scope, start_date: str | None = None, end_date: str | None = None, zone: str | None = None
    ) -> TasksUpdated:
        """Those last changed today, or between these dates, the latest first."""
        scope.require(rights.TASKS_READ)
        return await self._records.read(scope, partial(_updated, start=start_date, end=end_date, zone=zone))

    async def tree(
        self, scope: Scope, task_id: str, max_depth: int = 5, include_completed: bool = True
    ) -> Sequence[Task]:
        """A task, and so many levels of what is under it, each before its own; a completed one hides what it has."""
        scope.require(rights.TASKS_READ)
        work = partial(_tree, task_id=task_id, depth=max_depth, completed=include_completed)
        return await self._records.read(scope, work)

    async def subtasks(self, scope: Scope, parent_id: str) -> Sequence[Task]:
        scope.require(rights.TASKS_READ)
        return await self._records.read(scope, partial(_subtasks, parent_id=parent_id))

    async def reorder(self, scope: Scope, parent_id: str, ids: Sequence[str]) -> Sequence[Task]:
        """The subtasks in this order, and after them those that are not named."""
        scope.require(rights.TASKS_WRITE)
        return await self._records.change(scope, partial(changing.reorder, parent_id=parent_id, ids=ids))

    async def link(self, scope: Scope, task_id: str, related_task_id: str, relation: Relation) -> TaskLink:
        """Say what a task is to another; that it is a subtask is a note here: the tree is made by parents."""
        scope.require(rights.TASKS_WRITE)
        work = partial(making.link, task_id=task_id, related_id=related_task_id, relation=relation)
        return await self._records.change(scope, work)

    async def links(self, scope: Scope, task_id: str | None = None) -> Sequence[TaskLink]:
        """All of them, or those in which one task has a part."""
        scope.require(rights.TASKS_READ)
        return await self._records.read(scope, partial(_links, task_id=task_id))

    async def unlink(self, scope: Scope, link_id: str) -> TaskLink:
        scope.require(rights.TASKS_WRITE)
        return await self._records.change(scope, partial(making.unlink, link_id=link_id))

    async def followed(self, scope: Scope, before: Task | None, after: Task) -> Task:
        """The task as it is, once whoever follows its changes knows of this one, and of what it did to those above."""
        if self._follow is None:
            return after
        note = await self._follow(scope, before, after)
        if before is None or before.status is not after.status:
            for above in await self._records.read(scope, partial(_above, task=after)):
                await self._follow(scope, above, above)
        if after.assignee is None and after.wake_schedule_id is None:
            return after
        return replace(await self._records.read(scope, partial(making.found, task_id=after.id)), wake_note=note or "")

    async def left(self, scope: Scope, gone: Sequence[Task]) -> None:
        """Tell whoever follows the changes of tasks that these are gone."""
        if self._follow is not None:
            for one in gone:
                await self._follow(scope, one, None)

    async def _changed(self, scope: Scope, task_id: str, work: Callable[[Mine], Task]) -> Task:
        before, after = await self._records.change(scope, partial(_both, task_id=task_id, work=work))
        return await self.followed(scope, before, after)


def _create(mine: Mine, fields: Fields, zone: str | None) -> Task:
    own = dict(fields)
    under: Sequence[str] = own.pop("subtasks", None) or ()
    task = making.make(mine, own, zone)
    for one in under:
        changing.change(mine, one, {"parent_task_id": task.id}, None)
    return making.found(mine, task.id) if under else task


def _both(mine: Mine, task_id: str, work: Callable[[Mine], Task]) -> tuple[Task, Task]:
    """The task before and after."""
    mine.hold()
    return making.found(mine, task_id), work(mine)


def _above(mine: Mine, task: Task) -> Sequence[Task]:
    """The tasks that this one is under, from the nearest on."""
    ids = task.hierarchy_path.split(rules.BETWEEN)[:-1]
    found = (store.get(mine, one) for one in reversed(ids))
    return [one for one in found if one is not None]


def _stats(mine: Mine, start: str | None, end: str | None, zone: str | None) -> TaskStats:
    where = zone_of(zone, mine.zone_name)
    made = made_within(start, end, where)
    due = counting.due(mine, made, *days_of(mine.now, where))
    names = {one.id: one.name for one in categories.every(mine)}
    return stats(counting.alike(mine, made), due, names, counting.seconds_taken(mine, made))


def _updated(mine: Mine, start: str | None, end: str | None, zone: str | None) -> TasksUpdated:
    span = stretch(start, end, zone_of(zone, mine.zone_name), mine.now)
    found = looking.updated(mine, span, MOST_UPDATED)
    return TasksUpdated(found.items, found.total, span)


def _tree(mine: Mine, task_id: str, depth: int, *, completed: bool) -> Sequence[Task]:
    root = making.found(mine, task_id)
    below = [one for level in store.below(mine, root.id, depth) for one in level]
    return rules.in_tree_order(root, [one for one in below if completed or one.status is not TaskStatus.COMPLETED])


def _subtasks(mine: Mine, parent_id: str) -> Sequence[Task]:
    return store.subtasks(mine, making.found(mine, parent_id).id)


def _links(mine: Mine, task_id: str | None) -> Sequence[TaskLink]:
    return links.every(mine, None if task_id is None else making.found(mine, task_id).id)
