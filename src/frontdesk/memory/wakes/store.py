"""The schedule that wakes an agent for a task, in the database."""

from datetime import datetime

from sqlalchemy import ColumnElement, update

from frontdesk.db.schema import tasks
from frontdesk.memory.model import TaskStatus
from frontdesk.memory.store import Mine

CLOSED = (TaskStatus.COMPLETED, TaskStatus.CANCELLED)


def note(mine: Mine, task_id: str, assignee: str, due: datetime, schedule_id: int) -> bool:
    """What wakes for the task; False where it has such a one by now, or is not open, due or assigned like that."""
    still = (tasks.c.assignee == assignee, tasks.c.due_date == due, tasks.c.status.not_in(CLOSED))
    return _put(mine, task_id, schedule_id, tasks.c.wake_schedule_id.is_(None), *still)


def forget(mine: Mine, task_id: str, schedule_id: int) -> bool:
    """Nothing wakes for the task; False where something else does by now, or where it is gone."""
    return _put(mine, task_id, None, tasks.c.wake_schedule_id == schedule_id)


def _put(mine: Mine, task_id: str, schedule_id: int | None, *still: ColumnElement[bool]) -> bool:
    # Whoever changes a task writes its whole row, as it was read.
    mine.hold()
    chosen = update(tasks).where(tasks.c.user_id == mine.user_id, tasks.c.id == task_id, *still)
    return mine.connection.execute(chosen.values(wake_schedule_id=schedule_id)).rowcount == 1
