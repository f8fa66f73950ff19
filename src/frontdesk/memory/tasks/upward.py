"""What a change of one task does to others: to those above it, and to those that waited for it."""

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import replace

from frontdesk.memory.model import Completion, Task
from frontdesk.memory.store import Mine
from frontdesk.memory.tasks import store
from frontdesk.memory.tasks.links import store as links
from frontdesk.memory.tasks.progress import Shift, counted, shift, shifted
from frontdesk.memory.tasks.rules import is_open

Concerned = tuple[str, Shift]


def settle(mine: Mine, before: Task | None, after: Task | None) -> None:
    """Have everything stand as it must after a task was made (no `before`), changed, or deleted (no `after`)."""
    settle_all(mine, [*_parents(before, after), *_freed(mine, before, after)])


def settle_all(mine: Mine, concerned: Iterable[Concerned]) -> None:
    """Each of these, and whatever that concerns in turn."""
    ahead = deque(concerned)
    while ahead:
        task_id, what = ahead.popleft()
        before = store.get(mine, task_id)
        after = before and _settled(mine, before, what)
        if before is not None and after is not None and after != before:
            _write(mine, before, after)
            ahead.extend([*_parents(before, after), *_freed(mine, before, after)])


def _settled(mine: Mine, task: Task, what: Shift) -> Task:
    subtasks = store.subtasks(mine, task.id)
    may_close = what is Shift.CLOSED and task.completion_behavior is Completion.WITH_SUBTASKS
    blocked = may_close and bool(links.still_open(mine, task.id))
    return shifted(counted(task, subtasks), subtasks, what, mine.now, blocked=blocked)


def _write(mine: Mine, before: Task, after: Task) -> None:
    """A mere count is no change that a person would call one."""
    if (after.status, after.progress) == (before.status, before.progress):
        store.write_row(mine, after)
    else:
        store.write(mine, replace(after, updated_at=mine.now))


def _parents(before: Task | None, after: Task | None) -> Sequence[Concerned]:
    old, new = (one.parent_task_id if one is not None else None for one in (before, after))
    if old == new:
        return [(old, shift(before, after))] if old is not None and _counts(before, after) else []
    left = [(old, shift(before, None))] if old is not None else []
    came = [(new, shift(None, after))] if new is not None else []
    return [*left, *came]


def _counts(before: Task | None, after: Task | None) -> bool:
    """Whether anything changed that a parent goes by."""
    seen = [one and (one.status, one.progress, one.estimated_duration) for one in (before, after)]
    return seen[0] != seen[1]


def _freed(mine: Mine, before: Task | None, after: Task | None) -> Sequence[Concerned]:
    """Those that waited for it, where it is out of the way now."""
    if before is None or after is None or not is_open(before) or is_open(after):
        return []
    return [(task_id, Shift.CLOSED) for task_id in links.waiting_for(mine, [before.id])]
