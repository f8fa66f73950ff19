"""`frontdesk tasks add`, `update`, `done` and `delete`."""

import sys
from zoneinfo import ZoneInfo

from frontdesk.journal.record import Record
from frontdesk.memory.model import Task, TaskStatus
from frontdesk.surfaces.cli.options import Json, Many, Text
from frontdesk.surfaces.cli.person import LOCAL, Acting, User, changing
from frontdesk.surfaces.cli.plain import line
from frontdesk.surfaces.cli.tasks.options import TaskOptions, cleared
from frontdesk.surfaces.cli.tasks.telling import as_object, on_one_line

Changed = tuple[Task, ZoneInfo]
NO_OPTIONS = TaskOptions()


def add(title: Text, /, *, options: TaskOptions = NO_OPTIONS, user: User = LOCAL, as_json: Json = False) -> None:
    """Make a task and print its id.

    frontdesk tasks add 'Book the train' --due 2026-11-20 --priority high

    Parameters
    ----------
    title
        What is to be done, in a few words.
    user
        The person whose task it is.
    as_json
        Print one JSON object.
    """

    async def make(acting: Acting, record: Record) -> Changed:
        fields = await options.said(acting, title=title)
        task = await acting.room.tasks.create(acting.scope, fields, options.zone)
        record.action += f" {task.id}"
        return task, await acting.zone()

    task, zone = changing(user, "tasks add", make)
    print(as_object(task) if as_json else task.id)
    print(on_one_line(task, zone), file=sys.stderr)
    _warn(task)


def update(
    task_id: str,
    /,
    *,
    title: Text | None = None,
    progress: int | None = None,
    options: TaskOptions = NO_OPTIONS,
    clear: Many = (),
    user: User = LOCAL,
    as_json: Json = False,
) -> None:
    """Change a task; what is left out stays as it is.

    Parameters
    ----------
    task_id
        Its id, or the first 8 characters of it or more.
    title
        What is to be done.
    progress
        How much of it is done, in percent.
    clear
        Empty this; repeated for several: description, due, category, tag, parent, after, assignee, estimate, notes.
    user
        The person whose task it is.
    as_json
        Print one JSON object.
    """
    emptied = cleared(clear)

    async def change(acting: Acting, record: Record) -> Changed:
        found = await _noted(acting, record, task_id)
        fields = {**await options.said(acting, title=title, progress=progress), **emptied}
        task = await acting.room.tasks.update(acting.scope, found, fields, options.zone)
        return task, await acting.zone()

    _tell(changing(user, "tasks update", change), as_json=as_json)


def done(task_id: str, /, *, user: User = LOCAL, as_json: Json = False) -> None:
    """Complete a task.

    Parameters
    ----------
    task_id
        Its id, or the first 8 characters of it or more.
    user
        The person whose task it is.
    as_json
        Print one JSON object.
    """

    async def complete(acting: Acting, record: Record) -> Changed:
        found = await _noted(acting, record, task_id)
        task = await acting.room.tasks.set_status(acting.scope, found, TaskStatus.COMPLETED)
        return task, await acting.zone()

    _tell(changing(user, "tasks done", complete), as_json=as_json)


def delete(task_id: str, /, *, user: User = LOCAL, as_json: Json = False) -> None:
    """Delete a task with its subtasks and the time that was spent on them.

    Parameters
    ----------
    task_id
        Its id, or the first 8 characters of it or more.
    user
        The person whose task it is.
    as_json
        Print one JSON object: the task as it was.
    """

    async def remove(acting: Acting, record: Record) -> Changed:
        found = await _noted(acting, record, task_id)
        task = await acting.room.tasks.delete(acting.scope, found)
        return task, await acting.zone()

    task, zone = changing(user, "tasks delete", remove)
    print(as_object(task) if as_json else f"Deleted: {on_one_line(task, zone)}")


def _tell(changed: Changed, *, as_json: bool) -> None:
    task, zone = changed
    print(as_object(task) if as_json else on_one_line(task, zone))
    _warn(task)


def _warn(task: Task) -> None:
    if task.wake_note:
        print(line(task.wake_note), file=sys.stderr)


async def _noted(acting: Acting, record: Record, text: str) -> str:
    """The id that is meant; the journal has it as soon as it is known to be one."""
    found = await acting.names.task(acting.scope, text)
    record.action += f" {found}"
    return found
