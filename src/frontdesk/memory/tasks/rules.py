"""What holds for tasks: where they may stand, when they may be completed, what they may wait for; pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from frontdesk.errors import Conflict
from frontdesk.loop.text import one_line, some_of
from frontdesk.memory.model import ItemStatus, Relation, Task, TaskStatus

MOST_LEVELS = 10
DONE = 100
NAMED = 5
BETWEEN = "/"
OPEN = frozenset({TaskStatus.PENDING, TaskStatus.IN_PROGRESS, TaskStatus.ON_HOLD})
# What a task that has them must see closed before it is completed.
WAITING = frozenset({Relation.DEPENDENCY, Relation.BLOCKED_BY})
ITEM_STATUS = {
    TaskStatus.PENDING: ItemStatus.ACTIVE,
    TaskStatus.IN_PROGRESS: ItemStatus.ACTIVE,
    TaskStatus.ON_HOLD: ItemStatus.INACTIVE,
    TaskStatus.COMPLETED: ItemStatus.COMPLETED,
    TaskStatus.CANCELLED: ItemStatus.CANCELLED,
}


@dataclass(frozen=True, slots=True)
class Named:
    """A task by what people call it."""

    id: str
    title: str


def is_open(task: Task) -> bool:
    return task.status in OPEN


def placed(task: Task, parent: Task | None, height: int = 0) -> Task:
    """Under that parent, or by itself; `height` is how many levels of subtasks come along."""
    level = 0 if parent is None else parent.hierarchy_level + 1
    if parent is not None and task.id in parent.hierarchy_path.split(BETWEEN):
        raise Conflict("A task cannot stand under itself or under one of its own subtasks; choose another parent")
    if level + height >= MOST_LEVELS:
        raise Conflict(f"Tasks go {MOST_LEVELS} levels deep, and this would be deeper; put it under one further up")
    path = task.id if parent is None else f"{parent.hierarchy_path}{BETWEEN}{task.id}"
    parent_id = None if parent is None else parent.id
    return replace(task, parent_task_id=parent_id, hierarchy_level=level, hierarchy_path=path)


def carried(below: Iterable[Task], before: Task, after: Task) -> Sequence[Task]:
    """Those under a task that was moved, where they stand now."""
    deeper = after.hierarchy_level - before.hierarchy_level
    return [
        replace(
            one,
            hierarchy_level=one.hierarchy_level + deeper,
            hierarchy_path=after.hierarchy_path + one.hierarchy_path.removeprefix(before.hierarchy_path),
        )
        for one in below
    ]


def standing(task: Task, now: datetime) -> Task:
    """With what its status entails: a completed task is done wholly and at some time, any other at none."""
    if task.status is TaskStatus.COMPLETED:
        return replace(task, progress=DONE, completion_date=task.completion_date or now)
    return replace(task, completion_date=None)


def check_unblocked(task: Task, open_ones: Sequence[Named]) -> None:
    """Refuse to complete what waits for others."""
    if open_ones:
        names = some_of([f"'{one_line(one.title, 60)}' ({one.id})" for one in open_ones], NAMED)
        raise Conflict(
            f"'{one_line(task.title, 60)}' cannot be completed yet, since it waits for {names}; complete or cancel "
            "these first, or take the dependency away"
        )


def check_no_loop(waits_for: Mapping[str, Sequence[str]], task_id: str, others: Iterable[str]) -> None:
    """Refuse to let a task wait for others that wait, in whatever turns, for it."""
    seen: set[str] = set()
    ahead = list(others)
    while ahead:
        one = ahead.pop()
        if one == task_id:
            raise Conflict("A task cannot wait for itself, and this one would, by way of what it depends on")
        if one not in seen:
            seen.add(one)
            ahead.extend(waits_for.get(one, ()))


def in_tree_order(root: Task, below: Iterable[Task]) -> Sequence[Task]:
    """A task, then each of its subtasks followed by its own; `below` has siblings in their order."""
    under: dict[str | None, list[Task]] = {}
    for one in below:
        under.setdefault(one.parent_task_id, []).append(one)
    found: list[Task] = []
    ahead = [root]
    while ahead:
        one = ahead.pop()
        found.append(one)
        ahead.extend(reversed(under.get(one.id, [])))
    return found
