"""Implements `frontdesk tasks`: a person's tasks, the time spent on them, and the work of agents on them."""

import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime
from typing import Annotated, Any
from zoneinfo import ZoneInfo

from cyclopts import App as Command
from cyclopts import Parameter

from frontdesk.errors import Invalid
from frontdesk.interfaces.cli.agents import find_agent_id
from frontdesk.interfaces.cli.output import (
    EMPTY_CELL,
    AsJson,
    AsJsonLines,
    Flag,
    JsonFlag,
    Offset,
    OptionalText,
    PageLimit,
    Repeated,
    Text,
    format_table,
    number_up_to,
    print_figures,
    print_record,
    printable_line,
    printable_text,
    record_json,
)
from frontdesk.interfaces.cli.person import (
    DEFAULT_USER,
    PersonContext,
    RecordId,
    UserOption,
    add_record,
    change_for_person,
    change_record,
    print_page,
    read_for_person,
    read_record,
    run_for_person,
    validate_input,
)
from frontdesk.journal.service import CallRecord
from frontdesk.memory.items_store import IdLookup
from frontdesk.memory.model import (
    AiMode,
    AiStatus,
    AiTask,
    AiTaskType,
    CompletionBehavior,
    ItemType,
    Priority,
    ProgressCalculation,
    Task,
    TaskStatus,
    TimeEntry,
)
from frontdesk.memory.operations.base import format_time
from frontdesk.memory.operations.task_requests import AiTaskContent, TaskContent
from frontdesk.memory.operations.task_text import (
    format_day,
    format_entry,
    format_task,
    format_task_line,
    format_work,
    format_work_line,
)
from frontdesk.memory.tasks_rules import TaskFilter, TaskSort
from frontdesk.memory.time_tracking import DaySpending, StartedTimer
from frontdesk.memory.work_queue_rules import AiTaskFilter

TaskOwner = Annotated[UserOption, Parameter(help="The person whose task it is.")]
TasksOwner = Annotated[UserOption, Parameter(help="The person whose tasks they are.")]
TimeOwner = Annotated[UserOption, Parameter(help="The person whose time it is.")]
WorkId = Annotated[str, Parameter(help="Its id, as `tasks queue` lists it, or at least the first 8 characters.")]
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
    """The options of a task."""

    description: Annotated[OptionalText, Parameter(help="A description.")] = None
    due: Annotated[
        str | None, Parameter(help="When it is due: a day (2026-11-20), meaning its end, or a time (2026-11-20T09:00).")
    ] = None
    zone: Annotated[
        str | None, Parameter(help="The time zone of the due date, as an IANA name. Without it, the person's own.")
    ] = None
    status: Annotated[TaskStatus | None, Parameter(help="The status. A new task is pending.")] = None
    priority: Annotated[Priority | None, Parameter(help="The priority. A new task has medium.")] = None
    category: Annotated[
        str | None, Parameter(help="A category's name or id; frontdesk memory categories lists them.")
    ] = None
    tag: Annotated[Repeated, Parameter(help="A tag; repeated for several.")] = ()
    parent: Annotated[str | None, Parameter(help="The parent task.")] = None
    after: Annotated[Repeated, Parameter(help="A task that must be completed first; repeated for several.")] = ()
    assignee: Annotated[
        str | None, Parameter(help="A person, or an agent's name or id. An agent is prompted when the task is due.")
    ] = None
    estimate: Annotated[int | None, Parameter(help="How many minutes it will take.")] = None
    notes: Annotated[OptionalText, Parameter(help="Notes on it.")] = None
    completion: Annotated[
        CompletionBehavior | None,
        Parameter(help="When a task with subtasks is completed: manual, or with-subtasks, when the last of them is."),
    ] = None
    progress_by: Annotated[
        ProgressCalculation | None,
        Parameter(
            help="How its progress is computed: manual, average of its subtasks, or weighted by their estimates."
        ),
    ] = None

    async def to_fields(self, person: PersonContext, **others: Any) -> dict[str, Any]:  # noqa: ANN401 - what the model checks
        """The given options as fields of a task, with full ids."""
        given = {field.name: getattr(self, field.name) for field in fields(self) if field.name != "zone"}
        found = {TASK_FIELDS.get(name, name): value for name, value in given.items() if value not in (None, ())}
        if self.parent is not None:
            found["parent_task_id"] = await person.names.task(person.scope, self.parent)
        if self.after:
            found["dependencies"] = [await person.names.task(person.scope, one) for one in self.after]
        known = {name: value for name, value in others.items() if value is not None}
        return dict(validate_input(TaskContent, {**found, **known}).provided())


def cleared_fields(names: Repeated) -> dict[str, None]:
    """The fields to clear."""
    unknown = [name for name in names if name not in CLEARABLE]
    if unknown:
        raise Invalid(f"--clear takes {', '.join(CLEARABLE)}, and not '{unknown[0]}'")
    return {TASK_FIELDS.get(name, name): None for name in names}


NO_OPTIONS = TaskOptions()


def add(
    title: Text, /, *, options: TaskOptions = NO_OPTIONS, user: TaskOwner = DEFAULT_USER, as_json: AsJson = False
) -> None:
    """Create a task and print its id.

    frontdesk tasks add 'Book the train' --due 2026-11-20 --priority high

    Parameters
    ----------
    title
        A short title.
    """

    async def make(person: PersonContext) -> Task:
        fields = await options.to_fields(person, title=title)
        return await person.memory.tasks.create(person.scope, fields, options.zone)

    task, zone = add_record(user, "tasks add", make)
    print_record(task, task.id, as_json=as_json)
    print(_format_line(task, zone), file=sys.stderr)
    _print_wake_note(task)


def update(
    task_id: RecordId,
    /,
    *,
    title: Text | None = None,
    progress: int | None = None,
    options: TaskOptions = NO_OPTIONS,
    clear: Repeated = (),
    user: TaskOwner = DEFAULT_USER,
    as_json: AsJson = False,
) -> None:
    """Change a task. Options that are left out stay unchanged.

    Parameters
    ----------
    title
        A new title.
    progress
        The progress in percent.
    clear
        Empty this; repeated for several: description, due, category, tag, parent, after, assignee, estimate, notes.
    """
    emptied = cleared_fields(clear)

    async def change(person: PersonContext, found: str) -> Task:
        fields = {**await options.to_fields(person, title=title, progress=progress), **emptied}
        return await person.memory.tasks.update(person.scope, found, fields, options.zone)

    _print_changed(*change_record(user, "tasks update", IdLookup.task, task_id, change), as_json=as_json)


def done(task_id: RecordId, /, *, user: TaskOwner = DEFAULT_USER, as_json: AsJson = False) -> None:
    """Complete a task."""

    async def complete(person: PersonContext, found: str) -> Task:
        return await person.memory.tasks.set_status(person.scope, found, TaskStatus.COMPLETED)

    _print_changed(*change_record(user, "tasks done", IdLookup.task, task_id, complete), as_json=as_json)


def delete(
    task_id: RecordId,
    /,
    *,
    user: TaskOwner = DEFAULT_USER,
    as_json: Annotated[JsonFlag, Parameter(help="Print one JSON object: the deleted task.")] = False,
) -> None:
    """Delete a task with its subtasks and their tracked time."""

    async def remove(person: PersonContext, found: str) -> Task:
        return await person.memory.tasks.delete(person.scope, found)

    task, zone = change_record(user, "tasks delete", IdLookup.task, task_id, remove)
    print_record(task, f"Deleted: {_format_line(task, zone)}", as_json=as_json)


def _print_changed(task: Task, zone: ZoneInfo, *, as_json: bool) -> None:
    print_record(task, _format_line(task, zone), as_json=as_json)
    _print_wake_note(task)


def _print_wake_note(task: Task) -> None:
    if task.wake_note:
        print(printable_line(task.wake_note), file=sys.stderr)


def _format_line(task: Task, zone: ZoneInfo) -> str:
    return printable_line(format_task_line(task, zone).removeprefix("- "))


@Parameter(name="*")
@dataclass(frozen=True, slots=True, kw_only=True)
class TaskSelection:
    """The filter of a list of tasks."""

    status: Annotated[TaskStatus | None, Parameter(help="Only those with this status.")] = None
    priority: Annotated[Priority | None, Parameter(help="Only those with this priority.")] = None
    category: Annotated[str | None, Parameter(help="Only those in this category, by name or id.")] = None
    assignee: Annotated[str | None, Parameter(help="Only those of this person or agent.")] = None
    search: Annotated[OptionalText, Parameter(help="Only those that contain all these words.")] = None
    tag: Annotated[
        Repeated, Parameter(help="Only those with this tag. Repeated for several, all of which must match.")
    ] = ()
    due_after: Annotated[str | None, Parameter(help="Only those due on this day, at this time, or later.")] = None
    due_before: Annotated[str | None, Parameter(help="Only those due on this day, at this time, or earlier.")] = None
    overdue: Annotated[Flag, Parameter(help="Only open tasks that are overdue.")] = False
    zone: Annotated[str | None, Parameter(help="The time zone of days. Without it, the person's own.")] = None


ALL_TASKS = TaskSelection()
TITLE_LENGTH = 50
TABLE_HEAD = ("id", "task", "status", "priority", "due", "done")
NO_TASKS = "No tasks. Make one: frontdesk tasks add TITLE"


def list_tasks(
    *,
    which: TaskSelection = ALL_TASKS,
    sort: Annotated[TaskSort, Parameter(help="The field to sort by.")] = "created_at",
    ascending: Annotated[Flag, Parameter(help="Sort in ascending order.")] = False,
    limit: PageLimit = 100,
    offset: Offset = 0,
    user: TasksOwner = DEFAULT_USER,
    as_json: AsJsonLines = False,
) -> None:
    """List tasks, newest first."""
    given = {name: value for name, value in asdict(which).items() if name not in ("tag", "zone")}
    order = "asc" if ascending else "desc"
    wanted = TaskFilter(
        **given,
        tags=which.tag,
        every_tag=True,
        timezone=which.zone,
        sort_by=sort,
        sort_order=order,
        limit=limit,
        offset=offset,
    )
    page, zone = read_for_person(user, lambda person: person.memory.tasks.list(person.scope, wanted))
    empty = NO_TASKS if not page.total and which == ALL_TASKS else "No such tasks."
    print_page(page, TABLE_HEAD, lambda task: _task_row(task, zone), empty=empty, as_json=as_json)


def show(task_id: RecordId, /, *, user: TaskOwner = DEFAULT_USER, as_json: AsJson = False) -> None:
    """Show a task with all its fields."""
    task, zone = read_record(
        user, IdLookup.task, task_id, lambda person, found: person.memory.tasks.get(person.scope, found)
    )
    print_record(task, printable_text(format_task(task, zone)), as_json=as_json)


def tree(
    task_id: RecordId,
    /,
    *,
    depth: Annotated[int, number_up_to(10), Parameter(help="The maximum number of levels.")] = 5,
    open_only: Annotated[Flag, Parameter(help="Leave out completed tasks.")] = False,
    user: TaskOwner = DEFAULT_USER,
    as_json: AsJsonLines = False,
) -> None:
    """Show a task with its subtasks."""

    async def look(person: PersonContext, found: str) -> Sequence[Task]:
        return await person.memory.tasks.tree(person.scope, found, depth, include_completed=not open_only)

    tasks, zone = read_record(user, IdLookup.task, task_id, look)
    rows = [_task_row(task, zone, task.hierarchy_level - tasks[0].hierarchy_level) for task in tasks]
    print("\n".join(map(record_json, tasks)) if as_json else format_table(TABLE_HEAD, rows))


def stats(
    *,
    zone: Annotated[str | None, Parameter(help="The time zone of today. Without it, the person's own.")] = None,
    user: TasksOwner = DEFAULT_USER,
    as_json: AsJson = False,
) -> None:
    """Show statistics of the tasks."""
    figures = run_for_person(user, lambda person: person.memory.tasks.stats(person.scope, zone=zone))
    print_figures(asdict(figures), as_json=as_json)


def _task_row(task: Task, zone: ZoneInfo, indent: int = 0) -> tuple[str, ...]:
    return (
        task.id,
        "· " * indent + printable_line(task.title, TITLE_LENGTH),
        task.status,
        task.priority,
        format_time(task.due_date, zone) if task.due_date else EMPTY_CELL,
        f"{task.progress}%",
    )


NO_TIMER = "No timer runs. Start one: frontdesk tasks start TASK_ID"


def start(
    task_id: RecordId,
    /,
    *,
    note: Annotated[Text | None, Parameter(help="A note on the work.")] = None,
    switch: Annotated[Flag, Parameter(help="Stop another running timer first.")] = False,
    user: TimeOwner = DEFAULT_USER,
    as_json: AsJson = False,
) -> None:
    """Start a task's timer. A person has one timer at a time."""

    async def begin(person: PersonContext, found: str) -> StartedTimer:
        timers = person.memory.time_tracking
        return await timers.start(person.scope, found, note, auto_switch=switch, kind=ItemType.TASK)

    started, zone = change_record(user, "tasks start", IdLookup.task, task_id, begin)
    if started.stopped is not None:
        print(f"Stopped: {_format_entry(started.stopped, zone)}", file=sys.stderr)
    print_record(started.entry, _format_entry(started.entry, zone), as_json=as_json)


def stop(task_id: str | None = None, /, *, user: TimeOwner = DEFAULT_USER, as_json: AsJson = False) -> None:
    """Stop the timer; exit 1 if none runs.

    Parameters
    ----------
    task_id
        Stop only the timer of this task: its id, or at least the first 8 characters.
    """

    async def end(person: PersonContext, record: CallRecord) -> tuple[TimeEntry | None, ZoneInfo]:
        zone, timers = await person.zone(), person.memory.time_tracking
        if task_id is not None:
            found = await person.names.task(person.scope, task_id)
        elif (timed := await timers.running(person.scope)) is not None:
            found = timed.timeline_item_id
        else:
            return None, zone
        record.action += f" {found}"
        return await timers.stop(person.scope, found), zone

    entry, zone = change_for_person(user, "tasks stop", end)
    if entry is None:
        print(NO_TIMER, file=sys.stderr)
        sys.exit(1)
    print_record(entry, _format_entry(entry, zone), as_json=as_json)


def running(
    *,
    user: TimeOwner = DEFAULT_USER,
    as_json: Annotated[JsonFlag, Parameter(help="Print one JSON object, or nothing if none runs.")] = False,
) -> None:
    """Show the running timer."""
    entry, zone = read_for_person(user, lambda person: person.memory.time_tracking.running(person.scope))
    if entry is not None:
        print_record(entry, _format_entry(entry, zone), as_json=as_json)
    elif not as_json:
        print(NO_TIMER)


def day(
    date: Annotated[str | None, Parameter(help="The day, as YYYY-MM-DD; today when left out.")] = None,
    /,
    *,
    zone: Annotated[str | None, Parameter(help="The time zone of the day. Without it, the person's own.")] = None,
    user: TimeOwner = DEFAULT_USER,
    as_json: AsJson = False,
) -> None:
    """Show the tracked time of a day."""

    async def look(person: PersonContext) -> DaySpending:
        where = await person.zone(zone)
        wanted = date or datetime.now(UTC).astimezone(where).date().isoformat()
        return await person.memory.time_tracking.day(person.scope, wanted, where.key)

    spent = run_for_person(user, look)
    print_record(spent, printable_text(format_day(spent)), as_json=as_json)


def _format_entry(entry: TimeEntry, zone: ZoneInfo) -> str:
    return printable_line(format_entry(entry, zone))


OBJECTIVE_LENGTH = 50
NO_WORK = "No work for agents. Give some: frontdesk tasks assign TASK_ID AGENT OBJECTIVE --type research"


def assign(
    task_id: Annotated[str, Parameter(help="The task's id, or at least the first 8 characters.")],
    agent: Annotated[str, Parameter(help="The agent's id or name. An unknown agent is stored as given.")],
    objective: Annotated[Text, Parameter(help="The objective of the work.")],
    /,
    *,
    kind: Annotated[AiTaskType, Parameter(name="--type", help="The kind of work.")],
    mode: Annotated[
        AiMode | None,
        Parameter(help="What the agent may do: plan-only (the default), dry-run, or execute, which needs approval."),
    ] = None,
    priority: Annotated[Priority | None, Parameter(help="The priority. Without it, medium.")] = None,
    due: Annotated[str | None, Parameter(help="When it is due: a day, which means its end, or a time.")] = None,
    user: TaskOwner = DEFAULT_USER,
    as_json: AsJson = False,
) -> None:
    """Assign work on a task to an agent, and print the id of that work.

    frontdesk tasks assign 0192f3a1-7b2c Clerk 'Compare three hotels' --type research
    """
    given = {"objective": objective, "task_type": kind, "mode": mode, "priority": priority, "due_at": due}

    async def make(person: PersonContext) -> AiTask:
        found = await person.names.task(person.scope, task_id)
        agent_id = await find_agent_id(person.app, agent)
        fields = validate_input(AiTaskContent, {**given, "task_id": found, "agent_id": agent_id}).provided()
        return await person.memory.work_queue.create(person.scope, fields)

    work, zone = add_record(user, "tasks assign", make)
    print_record(work, work.id, as_json=as_json)
    print(_format_work_line(work, zone), file=sys.stderr)


def list_work(
    *,
    agent: Annotated[str | None, Parameter(help="Only the work of this agent, by its name or id.")] = None,
    status: Annotated[AiStatus | None, Parameter(help="Only work with this status.")] = None,
    limit: PageLimit = 100,
    offset: Offset = 0,
    user: TasksOwner = DEFAULT_USER,
    as_json: AsJsonLines = False,
) -> None:
    """List the work of agents, last assigned first."""
    wanted = AiTaskFilter(agent_name=agent, status=status, limit=limit, offset=offset)
    page, zone = read_for_person(user, lambda person: person.memory.work_queue.list(person.scope, wanted))

    def row(work: AiTask) -> tuple[str, ...]:
        return (
            work.id,
            work.agent_name or work.agent_id,
            printable_line(work.objective, OBJECTIVE_LENGTH),
            work.status,
            work.mode,
            work.priority,
            format_time(work.due_at, zone) if work.due_at else EMPTY_CELL,
        )

    head = ("id", "agent", "what", "status", "mode", "priority", "due")
    print_page(page, head, row, empty=NO_WORK, as_json=as_json)


def show_work(work_id: WorkId, /, *, user: TaskOwner = DEFAULT_USER, as_json: AsJson = False) -> None:
    """Show a piece of an agent's work and its result."""
    work, zone = read_record(
        user, IdLookup.ai_task, work_id, lambda person, found: person.memory.work_queue.get(person.scope, found)
    )
    print_record(work, printable_text(format_work(work, zone)), as_json=as_json)


def approve(work_id: WorkId, /, *, user: TaskOwner = DEFAULT_USER, as_json: AsJson = False) -> None:
    """Approve the execution of a piece of work."""

    async def allow(person: PersonContext, found: str) -> AiTask:
        return await person.memory.work_queue.approve(person.scope, found)

    work, zone = change_record(user, "tasks approve", IdLookup.ai_task, work_id, allow)
    print_record(work, f"Approved: {_format_work_line(work, zone)}", as_json=as_json)


def _format_work_line(work: AiTask, zone: ZoneInfo) -> str:
    return printable_line(format_work_line(work, zone).removeprefix("- "))


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
