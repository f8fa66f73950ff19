"""Implements the commands of `frontdesk tasks` for timers and for agents' work on tasks."""

import sys
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Annotated
from zoneinfo import ZoneInfo

from cyclopts import Parameter

from frontdesk.interfaces.cli.agents import find_agent_id
from frontdesk.interfaces.cli.output import (
    EMPTY_CELL,
    Flag,
    JsonFlag,
    Text,
    UserOption,
    dump_json,
    format_table,
    number_up_to,
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
from frontdesk.journal.service import CallRecord
from frontdesk.memory.model import AiMode, AiStatus, AiTask, AiTaskType, ItemType, Priority, TimeEntry
from frontdesk.memory.operations.base import format_time
from frontdesk.memory.operations.task_requests import AiTaskContent
from frontdesk.memory.operations.task_text import format_day, format_entry, format_work, format_work_line
from frontdesk.memory.time_tracking import DaySpending, StartedTimer
from frontdesk.memory.validation import RecordPage
from frontdesk.memory.work_queue_rules import AiTaskFilter

NO_TIMER = "No timer runs. Start one: frontdesk tasks start TASK_ID"


def start(
    task_id: str,
    /,
    *,
    note: Text | None = None,
    switch: Flag = False,
    user: UserOption = DEFAULT_USER,
    as_json: JsonFlag = False,
) -> None:
    """Start a task's timer. A person has one timer at a time.

    Parameters
    ----------
    task_id
        Its id, or at least the first 8 characters.
    note
        A note on the work.
    switch
        Stop another running timer first.
    user
        The person whose time it is.
    as_json
        Print one JSON object.
    """

    async def begin(acting: PersonContext, record: CallRecord) -> tuple[StartedTimer, ZoneInfo]:
        found = await acting.names.task(acting.scope, task_id)
        record.action += f" {found}"
        started = await acting.memory.time_tracking.start(
            acting.scope, found, note, auto_switch=switch, kind=ItemType.TASK
        )
        return started, await acting.zone()

    started, zone = change_for_person(user, "tasks start", begin)
    if started.stopped is not None:
        print(f"Stopped: {_describe_entry(started.stopped, zone)}", file=sys.stderr)
    _print_entry(started.entry, zone, as_json=as_json)


def stop(task_id: str | None = None, /, *, user: UserOption = DEFAULT_USER, as_json: JsonFlag = False) -> None:
    """Stop the timer; exit 1 if none runs.

    Parameters
    ----------
    task_id
        Stop only the timer of this task: its id, or at least the first 8 characters.
    user
        The person whose time it is.
    as_json
        Print one JSON object.
    """

    async def end(acting: PersonContext, record: CallRecord) -> tuple[TimeEntry | None, ZoneInfo]:
        zone = await acting.zone()
        found = await _timed_task_id(acting) if task_id is None else await acting.names.task(acting.scope, task_id)
        if found is None:
            return None, zone
        record.action += f" {found}"
        return await acting.memory.time_tracking.stop(acting.scope, found), zone

    entry, zone = change_for_person(user, "tasks stop", end)
    if entry is None:
        print(NO_TIMER, file=sys.stderr)
        sys.exit(1)
    _print_entry(entry, zone, as_json=as_json)


def running(*, user: UserOption = DEFAULT_USER, as_json: JsonFlag = False) -> None:
    """Show the running timer.

    Parameters
    ----------
    user
        The person whose time it is.
    as_json
        Print one JSON object, or nothing if none runs.
    """

    async def look(acting: PersonContext) -> tuple[TimeEntry | None, ZoneInfo]:
        return await acting.memory.time_tracking.running(acting.scope), await acting.zone()

    entry, zone = run_for_person(user, look)
    if entry is not None:
        _print_entry(entry, zone, as_json=as_json)
    elif not as_json:
        print(NO_TIMER)


def day(
    date: str | None = None, /, *, zone: str | None = None, user: UserOption = DEFAULT_USER, as_json: JsonFlag = False
) -> None:
    """Show the tracked time of a day.

    Parameters
    ----------
    date
        The day, as YYYY-MM-DD; today when left out.
    zone
        The time zone of the day. Without it, the person's own.
    user
        The person whose time it is.
    as_json
        Print one JSON object.
    """

    async def look(acting: PersonContext) -> DaySpending:
        where = await acting.zone(zone)
        wanted = date or datetime.now(UTC).astimezone(where).date().isoformat()
        return await acting.memory.time_tracking.day(acting.scope, wanted, where.key)

    spent = run_for_person(user, look)
    print(dump_json(asdict(spent)) if as_json else printable_text(format_day(spent)))


async def _timed_task_id(acting: PersonContext) -> str | None:
    entry = await acting.memory.time_tracking.running(acting.scope)
    return None if entry is None else entry.timeline_item_id


def _print_entry(entry: TimeEntry, zone: ZoneInfo, *, as_json: bool) -> None:
    print(dump_json(asdict(entry)) if as_json else _describe_entry(entry, zone))


def _describe_entry(entry: TimeEntry, zone: ZoneInfo) -> str:
    return printable_line(format_entry(entry, zone))


OBJECTIVE_LENGTH = 50
ListLimit = Annotated[int, number_up_to(1000)]
WorkType = Annotated[AiTaskType, Parameter(name="--type")]
NO_WORK = "No work for agents. Give some: frontdesk tasks assign TASK_ID AGENT OBJECTIVE --type research"


def assign(
    task_id: str,
    agent: str,
    objective: Text,
    /,
    *,
    kind: WorkType,
    mode: AiMode | None = None,
    priority: Priority | None = None,
    due: str | None = None,
    user: UserOption = DEFAULT_USER,
    as_json: JsonFlag = False,
) -> None:
    """Assign work on a task to an agent, and print the id of that work.

    frontdesk tasks assign 0192f3a1-7b2c Clerk 'Compare three hotels' --type research

    Parameters
    ----------
    task_id
        The task's id, or at least the first 8 characters.
    agent
        The agent's id or name. An unknown agent is stored as given.
    objective
        The objective of the work.
    kind
        The kind of work.
    mode
        What the agent may do: plan-only (the default), dry-run, or execute, which needs approval.
    priority
        The priority. Without it, medium.
    due
        When it is due: a day, which means its end, or a time.
    user
        The person whose task it is.
    as_json
        Print one JSON object.
    """
    said = {"objective": objective, "task_type": kind, "mode": mode, "priority": priority, "due_at": due}

    async def make(acting: PersonContext, record: CallRecord) -> tuple[AiTask, ZoneInfo]:
        found = await acting.names.task(acting.scope, task_id)
        agent_id = await find_agent_id(acting.app, agent)
        fields = validate_input(AiTaskContent, {**said, "task_id": found, "agent_id": agent_id}).provided()
        work = await acting.memory.work_queue.create(acting.scope, fields)
        record.action += f" {work.id}"
        return work, await acting.zone()

    work, zone = change_for_person(user, "tasks assign", make)
    print(dump_json(asdict(work)) if as_json else work.id)
    print(printable_line(format_work_line(work, zone).removeprefix("- ")), file=sys.stderr)


def list_work(
    *,
    agent: str | None = None,
    status: AiStatus | None = None,
    limit: ListLimit = 100,
    offset: Annotated[int, number_up_to(10_000_000, least=0)] = 0,
    user: UserOption = DEFAULT_USER,
    as_json: JsonFlag = False,
) -> None:
    """List the work of agents, last assigned first.

    Parameters
    ----------
    agent
        Only the work of this agent, by its name or id.
    status
        Only work with this status.
    limit
        Show at most this many.
    offset
        Skip this many first.
    user
        The person whose tasks they are.
    as_json
        Print one JSON object a line.
    """
    wanted = AiTaskFilter(agent_name=agent, status=status, limit=limit, offset=offset)

    async def look(acting: PersonContext) -> tuple[RecordPage[AiTask], ZoneInfo]:
        return await acting.memory.work_queue.list(acting.scope, wanted), await acting.zone()

    page, zone = run_for_person(user, look)
    if as_json:
        for work in page.items:
            print(dump_json(asdict(work)))
    else:
        head = ("id", "agent", "what", "status", "mode", "priority", "due")
        print(format_table(head, [_work_row(work, zone) for work in page.items]) if page.items else NO_WORK)
    if page.has_more:
        print(f"There are more: --offset {offset + len(page.items)}", file=sys.stderr)


def show_work(work_id: str, /, *, user: UserOption = DEFAULT_USER, as_json: JsonFlag = False) -> None:
    """Show a piece of an agent's work and its result.

    Parameters
    ----------
    work_id
        Its id, as `tasks queue` lists it, or at least the first 8 characters.
    user
        The person whose task it is.
    as_json
        Print one JSON object.
    """

    async def look(acting: PersonContext) -> tuple[AiTask, ZoneInfo]:
        found = await acting.names.ai_task(acting.scope, work_id)
        return await acting.memory.work_queue.get(acting.scope, found), await acting.zone()

    work, zone = run_for_person(user, look)
    print(dump_json(asdict(work)) if as_json else printable_text(format_work(work, zone)))


def approve(work_id: str, /, *, user: UserOption = DEFAULT_USER, as_json: JsonFlag = False) -> None:
    """Approve the execution of a piece of work.

    Parameters
    ----------
    work_id
        Its id, as `tasks queue` lists it, or at least the first 8 characters.
    user
        The person whose task it is.
    as_json
        Print one JSON object.
    """

    async def allow(acting: PersonContext, record: CallRecord) -> tuple[AiTask, ZoneInfo]:
        found = await acting.names.ai_task(acting.scope, work_id)
        record.action += f" {found}"
        return await acting.memory.work_queue.approve(acting.scope, found), await acting.zone()

    work, zone = change_for_person(user, "tasks approve", allow)
    print(
        dump_json(asdict(work))
        if as_json
        else f"Approved: {printable_line(format_work_line(work, zone).removeprefix('- '))}"
    )


def _work_row(work: AiTask, zone: ZoneInfo) -> tuple[str, ...]:
    return (
        work.id,
        work.agent_name or work.agent_id,
        printable_line(work.objective, OBJECTIVE_LENGTH),
        work.status,
        work.mode,
        work.priority,
        format_time(work.due_at, zone) if work.due_at else EMPTY_CELL,
    )
