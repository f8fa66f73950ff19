"""Changes tasks, moves them with all that is under them, puts them in order, deletes them."""

from collections.abc import Sequence
from dataclasses import replace

from frontdesk.errors import Invalid
from frontdesk.memory.given import Fields, there
from frontdesk.memory.ids import known
from frontdesk.memory.items import store as items
from frontdesk.memory.model import Task, TaskStatus
from frontdesk.memory.store import Mine
from frontdesk.memory.tasks import given, rules, store
from frontdesk.memory.tasks.links import store as links
from frontdesk.memory.tasks.making import depend, found
from frontdesk.memory.tasks.progress import Shift, counted
from frontdesk.memory.tasks.upward import settle, settle_all

SUBTASK = "Subtask"


def change(mine: Mine, task_id: str, fields: Fields, zone: str | None) -> Task:
    mine.hold()
    return _change(mine, found(mine, task_id), fields, zone)


def set_status(mine: Mine, task_id: str, status: TaskStatus, notes: str | None, progress: int | None) -> Task:
    mine.hold()
    before = found(mine, task_id)
    fields = {"status": status, "progress": progress, "description": _noted(before.description, notes)}
    return _change(mine, before, {name: value for name, value in fields.items() if value is not None}, None)


def delete(mine: Mine, task_id: str) -> Sequence[Task]:
    """With all that is under it; the tasks as they were, that one first."""
    mine.hold()
    gone = found(mine, task_id)
    subtree = [gone, *(one for level in store.below(mine, gone.id, rules.MOST_LEVELS) for one in level)]
    freed = [(one, Shift.CLOSED) for one in links.waiting_for(mine, [task.id for task in subtree])]
    # The deepest first: with its own row a task takes those of its subtasks along, and would leave their items.
    for one in reversed(subtree):
        items.remove(mine, one.id)
    settle(mine, gone, None)
    settle_all(mine, freed)
    return subtree


def reorder(mine: Mine, parent_id: str, ids: Sequence[str]) -> Sequence[Task]:
    """The subtasks in this order; those that are not named come after them, as they stood."""
    mine.hold()
    parent = found(mine, parent_id)
    subtasks = {one.id: one for one in store.subtasks(mine, parent.id)}
    named = [known(one, SUBTASK) for one in ids]
    if len(set(named)) < len(named):
        raise Invalid("A subtask is named twice; name each once")
    first = [there(subtasks.get(one), SUBTASK) for one in named]
    for place, task in enumerate([*first, *(one for one in subtasks.values() if one.id not in named)]):
        if task.subtask_order != place:
            store.write_row(mine, replace(task, subtask_order=place))
    return store.subtasks(mine, parent.id)


def _change(mine: Mine, before: Task, fields: Fields, zone: str | None) -> Task:
    said = given.for_change(mine, fields, zone)
    asked = replace(before, **said, updated_at=mine.now)
    after = rules.standing(_moved(mine, before, asked, placed="subtask_order" in said), mine.now)
    if after.subtask_count:
        after = counted(after, store.subtasks(mine, after.id))
    given.check(after)
    depend(mine, before, after.dependencies)
    if after.status is TaskStatus.COMPLETED and before.status is not TaskStatus.COMPLETED:
        rules.check_unblocked(after, links.still_open(mine, after.id))
    store.write(mine, after)
    settle(mine, before, after)
    return found(mine, after.id)


def _moved(mine: Mine, before: Task, asked: Task, *, placed: bool) -> Task:
    """Under another parent, with all that is under it; the last there, unless a place was asked for."""
    if asked.parent_task_id == before.parent_task_id:
        return asked
    parent = found(mine, asked.parent_task_id) if asked.parent_task_id else None
    levels = list(store.below(mine, before.id, rules.MOST_LEVELS))
    after = rules.placed(asked, parent, len(levels))
    store.move(mine, rules.carried([one for level in levels for one in level], before, after))
    return after if placed else replace(after, subtask_order=store.next_place(mine, after.parent_task_id))


def _noted(description: str, notes: str | None) -> str | None:
    """The description with the notes after it; None where there are none."""
    said = (notes or "").strip()
    return "\n\n".join(text for text in (description, said) if text) if said else None
