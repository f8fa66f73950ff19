"""What subtasks make of the task above them: how many there are, how far it is, whether it is completed; pure."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from enum import Enum

from frontdesk.memory.model import Completion, ProgressBy, Task, TaskStatus
from frontdesk.memory.tasks.rules import is_open, standing


class Shift(Enum):
    """What happened among the subtasks: one more is open, one more is over, or neither."""

    OPENED = "opened"
    CLOSED = "closed"
    NEITHER = "neither"


def shift(before: Task | None, after: Task | None) -> Shift:
    """What this means for a task above: None is a subtask that was not there, or is not any more."""
    was_open, is_now_open = (one is not None and is_open(one) for one in (before, after))
    if is_now_open:
        return Shift.NEITHER if was_open else Shift.OPENED
    # One that was called off and is done after all may have been the only one.
    return Shift.CLOSED if was_open or (_is_done(after) and not _is_done(before)) else Shift.NEITHER


def counted(task: Task, subtasks: Sequence[Task]) -> Task:
    """With the number of its subtasks, and the progress that follows from theirs."""
    completed = sum(_is_done(one) for one in subtasks)
    found = replace(task, subtask_count=len(subtasks), completed_subtask_count=completed)
    return found if _is_done(task) else replace(found, progress=_progress(task, subtasks))


def shifted(task: Task, subtasks: Sequence[Task], what: Shift, now: datetime, *, blocked: bool) -> Task:
    """As it stands after that; one that is completed with its subtasks is so again and again, as they come and go."""
    if task.completion_behavior is not Completion.WITH_SUBTASKS:
        return task
    if what is Shift.OPENED and task.status is TaskStatus.COMPLETED:
        return counted(standing(replace(task, status=TaskStatus.IN_PROGRESS), now), subtasks)
    if what is Shift.CLOSED and is_open(task) and _all_done(subtasks) and not blocked:
        return standing(replace(task, status=TaskStatus.COMPLETED), now)
    return task


def _is_done(task: Task | None) -> bool:
    return task is not None and task.status is TaskStatus.COMPLETED


def _all_done(subtasks: Sequence[Task]) -> bool:
    """None is open, and not all were called off."""
    return not any(is_open(one) for one in subtasks) and any(_is_done(one) for one in subtasks)


def _progress(task: Task, subtasks: Sequence[Task]) -> int:
    """Of what was not called off; a task's own where it has none of these."""
    counting = [one for one in subtasks if one.status is not TaskStatus.CANCELLED]
    if task.progress_calculation is ProgressBy.MANUAL or not counting:
        return task.progress
    weighted = task.progress_calculation is ProgressBy.WEIGHTED
    weights = [one.estimated_duration or 1 if weighted else 1 for one in counting]
    total = sum(one.progress * weight for one, weight in zip(counting, weights, strict=True))
    return int(total / sum(weights) + 0.5)
