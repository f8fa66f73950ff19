"""Implements `frontdesk tasks`: add, change, complete, list and show a person's tasks."""

import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from typing import Annotated, Any
from zoneinfo import ZoneInfo

from cyclopts import App as Command
from cyclopts import Parameter

from frontdesk.errors import Invalid
from frontdesk.interfaces.cli.output import (
    EMPTY_CELL,
    Flag,
    JsonFlag,
    Repeated,
    Text,
    UserOption,
    dump_json,
    format_table,
    number_up_to,
    print_figures,
    printable_line,
    printable_text,
)
from frontdesk.interfaces.cli.person import (
    DEFAULT_USER,
    PersonContext,
    change_for_person,
    run_for_person,
    validate_input,
)
from frontdesk.interfaces.cli.task_work import approve, assign, day, list_work, running, show_work, start, stop
from frontdesk.journal.service import CallRecord
from frontdesk.memory.model import CompletionBehavior, Priority, ProgressCalculation, Task, TaskStatus
from frontdesk.memory.operations.base import format_time
from frontdesk.memory.operations.task_requests import TaskContent
from frontdesk.memory.operations.task_text import format_task, format_task_line
from frontdesk.memory.tasks_rules import TaskFilter, TaskSort
from frontdesk.memory.validation import RecordPage

OptionalText = Annotated[str | None, Parameter(allow_leading_hyphen=True)]
# The task's fields by option name.
TASK_FIELDS = {
    "due": "due_date",
    "tag": "tags",
    "parent": "parent_task_id",
    "after": "dependencies",
    "estimate": "estimated_duration",
    "completion": "completion_behavior",
    "progress_by": "progress_calculation",
}
CLEARABLE = ("description", "due", "category", "tag", "parent", "after", "assignee", "estimate", "notes")


@Parameter(name="*")
@dataclass(frozen=True, slots=True, kw_only=True)
class TaskOptions:
    """The options of a task.

    Parameters
    ----------
    description
        A description.
    due
        When it is due: a day (2026-11-20), meaning its end, or a time (2026-11-20T09:00).
    zone
        The time zone of the due date, as an IANA name. Without it, the person's own.
    status
        The status. A new task is pending.
    priority
        The priority. A new task has medium.
    category
        A category's name or id; frontdesk memory categories lists them.
    tag
        A tag; repeated for several.
    parent
        The parent task.
    after
        A task that must be completed first; repeated for several.
    assignee
        A person, or an agent's name or id. An agent is prompted when the task is due.
    estimate
        How many minutes it will take.
    notes
        Notes on it.
    completion
        When a task with subtasks is completed: manual, or with-subtasks, when the last of them is.
    progress_by
        How its progress is computed: manual, average of its subtasks, or weighted by their estimates.
    """

    description: OptionalText = None
    due: str | None = None
    zone: str | None = None
    status: TaskStatus | None = None
    priority: Priority | None = None
    category: str | None = None
    tag: Repeated = ()
    parent: str | None = None
    after: Repeated = ()
    assignee: str | None = None
    estimate: int | None = None
    notes: OptionalText = None
    completion: CompletionBehavior | None = None
    progress_by: ProgressCalculation | None = None

    async def to_fields(self, acting: PersonContext, **others: Any) -> dict[str, Any]:  # noqa: ANN401 - what the model checks
        """The given options as fields of a task, with full ids."""
        given = {field.name: getattr(self, field.name) for field in fields(self) if field.name != "zone"}
        found = {TASK_FIELDS.get(name, name): value for name, value in given.items() if value not in (None, ())}
        if self.parent is not None:
            found["parent_task_id"] = await acting.names.task(acting.scope, self.parent)
        if self.after:
            found["dependencies"] = [await acting.names.task(acting.scope, one) for one in self.after]
        known = {name: value for name, value in others.items() if value is not None}
        return dict(validate_input(TaskContent, {**found, **known}).provided())


def cleared_fields(names: Repeated) -> dict[str, None]:
    """The fields to clear."""
    unknown = [name for name in names if name not in CLEARABLE]
    if unknown:
        raise Invalid(f"--clear takes {', '.join(CLEARABLE)}, and not '{unknown[0]}'")
    return {TASK_FIELDS.get(name, name): None for name in names}


TITLE_LENGTH = 50
TABLE_HEAD = ("id", "task", "status", "priority", "due", "done")


def task_as_json(task: Task) -> str:
    """The task as one line of JSON."""
    return dump_json(asdict(task))


def task_as_line(task: Task, zone: ZoneInfo) -> str:
    return printable_line(format_task_line(task, zone).removeprefix("- "))


def task_table(tasks: Sequence[Task], zone: ZoneInfo, depth: int | None = None) -> str:
    """A row for each task. With the depth of the first task, deeper tasks are indented."""
    return format_table(
        TABLE_HEAD, [_task_row(task, zone, 0 if depth is None else task.hierarchy_level - depth) for task in tasks]
    )


def _task_row(task: Task, zone: ZoneInfo, depth: int) -> tuple[str, ...]:
    return (
        task.id,
        "· " * depth + printable_line(task.title, TITLE_LENGTH),
        task.status,
        task.priority,
        format_time(task.due_date, zone) if task.due_date else EMPTY_CELL,
        f"{task.progress}%",
    )


ChangedTask = tuple[Task, ZoneInfo]
NO_OPTIONS = TaskOptions()


def add(
    title: Text, /, *, options: TaskOptions = NO_OPTIONS, user: UserOption = DEFAULT_USER, as_json: JsonFlag = False
) -> None:
    """Create a task and print its id.

    frontdesk tasks add 'Book the train' --due 2026-11-20 --priority high

    Parameters
    ----------
    title
        A short title.
    user
        The person whose task it is.
    as_json
        Print one JSON object.
    """

    async def make(acting: PersonContext, record: CallRecord) -> ChangedTask:
        fields = await options.to_fields(acting, title=title)
        task = await acting.memory.tasks.create(acting.scope, fields, options.zone)
        record.action += f" {task.id}"
        return task, await acting.zone()

    task, zone = change_for_person(user, "tasks add", make)
    print(task_as_json(task) if as_json else task.id)
    print(task_as_line(task, zone), file=sys.stderr)
    _print_wake_note(task)


def update(
    task_id: str,
    /,
    *,
    title: Text | None = None,
    progress: int | None = None,
    options: TaskOptions = NO_OPTIONS,
    clear: Repeated = (),
    user: UserOption = DEFAULT_USER,
    as_json: JsonFlag = False,
) -> None:
    """Change a task. Options that are left out stay unchanged.

    Parameters
    ----------
    task_id
        Its id, or at least the first 8 characters.
    title
        A new title.
    progress
        The progress in percent.
    clear
        Empty this; repeated for several: description, due, category, tag, parent, after, assignee, estimate, notes.
    user
        The person whose task it is.
    as_json
        Print one JSON object.
    """
    emptied = cleared_fields(clear)

    async def change(acting: PersonContext, record: CallRecord) -> ChangedTask:
        found = await _record_task_id(acting, record, task_id)
        fields = {**await options.to_fields(acting, title=title, progress=progress), **emptied}
        task = await acting.memory.tasks.update(acting.scope, found, fields, options.zone)
        return task, await acting.zone()

    _print_task(change_for_person(user, "tasks update", change), as_json=as_json)


def done(task_id: str, /, *, user: UserOption = DEFAULT_USER, as_json: JsonFlag = False) -> None:
    """Complete a task.

    Parameters
    ----------
    task_id
        Its id, or at least the first 8 characters.
    user
        The person whose task it is.
    as_json
        Print one JSON object.
    """

    async def complete(acting: PersonContext, record: CallRecord) -> ChangedTask:
        found = await _record_task_id(acting, record, task_id)
        task = await acting.memory.tasks.set_status(acting.scope, found, TaskStatus.COMPLETED)
        return task, await acting.zone()

    _print_task(change_for_person(user, "tasks done", complete), as_json=as_json)


def delete(task_id: str, /, *, user: UserOption = DEFAULT_USER, as_json: JsonFlag = False) -> None:
    """Delete a task with its subtasks and their tracked time.

    Parameters
    ----------
    task_id
        Its id, or at least the first 8 characters.
    user
        The person whose task it is.
    as_json
        Print one JSON object: the deleted task.
    """

    async def remove(acting: PersonContext, record: CallRecord) -> ChangedTask:
        found = await _record_task_id(acting, record, task_id)
        task = await acting.memory.tasks.delete(acting.scope, found)
        return task, await acting.zone()

    task, zone = change_for_person(user, "tasks delete", remove)
    print(task_as_json(task) if as_json else f"Deleted: {task_as_line(task, zone)}")


def _print_task(changed: ChangedTask, *, as_json: bool) -> None:
    task, zone = changed
    print(task_as_json(task) if as_json else task_as_line(task, zone))
    _print_wake_note(task)


def _print_wake_note(task: Task) -> None:
    if task.wake_note:
        print(printable_line(task.wake_note), file=sys.stderr)


async def _record_task_id(acting: PersonContext, record: CallRecord, text: str) -> str:
    """The full id, which is added to the journal entry."""
    found = await acting.names.task(acting.scope, text)
    record.action += f" {found}"
    return found


ListLimit = Annotated[int, number_up_to(1000)]
TreeDepth = Annotated[int, number_up_to(10)]
NO_TASKS = "No tasks. Make one: frontdesk tasks add TITLE"


@Parameter(name="*")
@dataclass(frozen=True, slots=True, kw_only=True)
class TaskSelection:
    """The filter of a list of tasks.

    Parameters
    ----------
    status
        Only those with this status.
    priority
        Only those with this priority.
    category
        Only those in this category, by name or id.
    assignee
        Only those of this person or agent.
    search
        Only those that contain all these words.
    tag
        Only those with this tag. Repeated for several, all of which must match.
    due_after
        Only those due on this day, at this time, or later.
    due_before
        Only those due on this day, at this time, or earlier.
    overdue
        Only open tasks that are overdue.
    zone
        The time zone of days. Without it, the person's own.
    """

    status: TaskStatus | None = None
    priority: Priority | None = None
    category: str | None = None
    assignee: str | None = None
    search: Annotated[str | None, Parameter(allow_leading_hyphen=True)] = None
    tag: Repeated = ()
    due_after: str | None = None
    due_before: str | None = None
    overdue: Flag = False
    zone: str | None = None


ALL_TASKS = TaskSelection()


def list_tasks(
    *,
    which: TaskSelection = ALL_TASKS,
    sort: TaskSort = "created_at",
    ascending: Flag = False,
    limit: ListLimit = 100,
    offset: Annotated[int, number_up_to(10_000_000, least=0)] = 0,
    user: UserOption = DEFAULT_USER,
    as_json: JsonFlag = False,
) -> None:
    """List tasks, newest first.

    Parameters
    ----------
    sort
        The field to sort by.
    ascending
        Sort in ascending order.
    limit
        Show at most this many.
    offset
        Skip this many first.
    user
        The person whose tasks they are.
    as_json
        Print one JSON object a line.
    """
    given = {name: value for name, value in asdict(which).items() if name not in ("tag", "zone")}
    wanted = TaskFilter(
        **given,
        tags=which.tag,
        every_tag=True,
        timezone=which.zone,
        sort_by=sort,
        sort_order="asc" if ascending else "desc",
        limit=limit,
        offset=offset,
    )

    async def look(acting: PersonContext) -> tuple[RecordPage[Task], ZoneInfo]:
        return await acting.memory.tasks.list(acting.scope, wanted), await acting.zone()

    page, zone = run_for_person(user, look)
    if as_json:
        for task in page.items:
            print(task_as_json(task))
    elif page.items:
        print(task_table(page.items, zone))
    else:
        print(NO_TASKS if not page.total and which == ALL_TASKS else "No such tasks.")
    if page.has_more:
        print(f"There are more: --offset {offset + len(page.items)}", file=sys.stderr)


def show(task_id: str, /, *, user: UserOption = DEFAULT_USER, as_json: JsonFlag = False) -> None:
    """Show a task with all its fields.

    Parameters
    ----------
    task_id
        Its id, or at least the first 8 characters.
    user
        The person whose task it is.
    as_json
        Print one JSON object.
    """

    async def look(acting: PersonContext) -> tuple[Task, ZoneInfo]:
        found = await acting.names.task(acting.scope, task_id)
        return await acting.memory.tasks.get(acting.scope, found), await acting.zone()

    task, zone = run_for_person(user, look)
    print(task_as_json(task) if as_json else printable_text(format_task(task, zone)))


def tree(
    task_id: str,
    /,
    *,
    depth: TreeDepth = 5,
    open_only: Flag = False,
    user: UserOption = DEFAULT_USER,
    as_json: JsonFlag = False,
) -> None:
    """Show a task with its subtasks.

    Parameters
    ----------
    task_id
        Its id, or at least the first 8 characters.
    depth
        The maximum number of levels.
    open_only
        Leave out completed tasks.
    user
        The person whose task it is.
    as_json
        Print one JSON object a line.
    """

    async def look(acting: PersonContext) -> tuple[list[Task], ZoneInfo]:
        found = await acting.names.task(acting.scope, task_id)
        tasks = await acting.memory.tasks.tree(acting.scope, found, depth, include_completed=not open_only)
        return list(tasks), await acting.zone()

    tasks, zone = run_for_person(user, look)
    if as_json:
        for task in tasks:
            print(task_as_json(task))
        return
    print(task_table(tasks, zone, tasks[0].hierarchy_level))


def stats(*, zone: str | None = None, user: UserOption = DEFAULT_USER, as_json: JsonFlag = False) -> None:
    """Show statistics of the tasks.

    Parameters
    ----------
    zone
        The time zone of today. Without it, the person's own.
    user
        The person whose tasks they are.
    as_json
        Print one JSON object.
    """
    found = run_for_person(user, lambda acting: acting.memory.tasks.stats(acting.scope, zone=zone))
    print_figures(asdict(found), as_json=as_json)


command = Command(name="tasks")
command.command(add)
command.command(list_tasks, name="list")
command.command(show)
command.command(tree)
command.command(update, usage="Usage: frontdesk tasks update [OPTIONS] TASK_ID")
command.command(done)
command.command(delete)
command.command(stats)
command.command(start, usage="Usage: frontdesk tasks start [OPTIONS] TASK_ID")
command.command(stop, usage="Usage: frontdesk tasks stop [OPTIONS] [TASK_ID]")
command.command(running)
command.command(day, usage="Usage: frontdesk tasks day [OPTIONS] [DATE]")
command.command(list_work, name="queue")
command.command(assign)
command.command(show_work, name="work")
command.command(approve)
