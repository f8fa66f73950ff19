"""`frontdesk tasks assign`, `queue`, `work` and `approve`: what agents are to do."""

import sys
from dataclasses import asdict
from typing import Annotated
from zoneinfo import ZoneInfo

from cyclopts import Parameter

from frontdesk.journal.record import Record
from frontdesk.memory.asked.queue import AiTaskContent
from frontdesk.memory.given import Page
from frontdesk.memory.model import AiMode, AiStatus, AiTask, AiTaskType, Priority
from frontdesk.memory.queue.wanted import AiWanted
from frontdesk.memory.tooling.telling.queue import work_line, work_told
from frontdesk.memory.tooling.telling.words import when
from frontdesk.surfaces.cli.options import Json, Text, up_to
from frontdesk.surfaces.cli.person import LOCAL, Acting, User, asked, changing, looking
from frontdesk.surfaces.cli.plain import line, plain
from frontdesk.surfaces.cli.schedule.listing import agent_named
from frontdesk.surfaces.cli.words import ABSENT, dumped, table

OBJECTIVE = 50
Limit = Annotated[int, up_to(1000)]
Kind = Annotated[AiTaskType, Parameter(name="--type")]
NONE = "No work for agents. Give some: frontdesk tasks assign TASK_ID AGENT OBJECTIVE --type research"


def assign(
    task_id: str,
    agent: str,
    objective: Text,
    /,
    *,
    kind: Kind,
    mode: AiMode | None = None,
    priority: Priority | None = None,
    due: str | None = None,
    user: User = LOCAL,
    as_json: Json = False,
) -> None:
    """Give an agent work on a task, and print the id of that work.

    frontdesk tasks assign 0192f3a1-7b2c Clerk 'Compare three hotels' --type research

    Parameters
    ----------
    task_id
        The task's id, or the first 8 characters of it or more.
    agent
        The agent's id or name; one that this desk does not know goes by what is given.
    objective
        What it is to do.
    kind
        What kind of work it is.
    mode
        How far it may go: plan-only, dry-run or execute, which needs approval; plan-only when left out.
    priority
        How pressing it is; medium when left out.
    due
        When it is due: a day, which means its end, or a time.
    user
        The person whose task it is.
    as_json
        Print one JSON object.
    """
    said = {"objective": objective, "task_type": kind, "mode": mode, "priority": priority, "due_at": due}

    async def make(acting: Acting, record: Record) -> tuple[AiTask, ZoneInfo]:
        found = await acting.names.task(acting.scope, task_id)
        agent_id = await agent_named(acting.app, agent)
        fields = asked(AiTaskContent, {**said, "task_id": found, "agent_id": agent_id}).said()
        work = await acting.room.queue.create(acting.scope, fields)
        record.action += f" {work.id}"
        return work, await acting.zone()

    work, zone = changing(user, "tasks assign", make)
    print(dumped(asdict(work)) if as_json else work.id)
    print(line(work_line(work, zone).removeprefix("- ")), file=sys.stderr)


def show_all(
    *,
    agent: str | None = None,
    status: AiStatus | None = None,
    limit: Limit = 100,
    offset: Annotated[int, up_to(10_000_000, least=0)] = 0,
    user: User = LOCAL,
    as_json: Json = False,
) -> None:
    """List the work that agents have, the last assigned first.

    Parameters
    ----------
    agent
        Only the work of this agent, by its name or id.
    status
        Only what stands so.
    limit
        Show at most this many.
    offset
        Leave out so many first.
    user
        The person whose tasks they are.
    as_json
        Print one JSON object a line.
    """
    wanted = AiWanted(agent_name=agent, status=status, limit=limit, offset=offset)

    async def look(acting: Acting) -> tuple[Page[AiTask], ZoneInfo]:
        return await acting.room.queue.list(acting.scope, wanted), await acting.zone()

    page, zone = looking(user, look)
    if as_json:
        for work in page.items:
            print(dumped(asdict(work)))
    else:
        head = ("id", "agent", "what", "status", "mode", "priority", "due")
        print(table(head, [_row(work, zone) for work in page.items]) if page.items else NONE)
    if page.has_more:
        print(f"There are more: --offset {offset + len(page.items)}", file=sys.stderr)


def show(work_id: str, /, *, user: User = LOCAL, as_json: Json = False) -> None:
    """Show a piece of an agent's work: what it is, and what came of it.

    Parameters
    ----------
    work_id
        Its id, as `tasks queue` lists it, or the first 8 characters of it or more.
    user
        The person whose task it is.
    as_json
        Print one JSON object.
    """

    async def look(acting: Acting) -> tuple[AiTask, ZoneInfo]:
        found = await acting.names.work(acting.scope, work_id)
        return await acting.room.queue.get(acting.scope, found), await acting.zone()

    work, zone = looking(user, look)
    print(dumped(asdict(work)) if as_json else plain(work_told(work, zone)))


def approve(work_id: str, /, *, user: User = LOCAL, as_json: Json = False) -> None:
    """Let an agent execute a piece of work as it stands.

    Parameters
    ----------
    work_id
        Its id, as `tasks queue` lists it, or the first 8 characters of it or more.
    user
        The person whose task it is.
    as_json
        Print one JSON object.
    """

    async def allow(acting: Acting, record: Record) -> tuple[AiTask, ZoneInfo]:
        found = await acting.names.work(acting.scope, work_id)
        record.action += f" {found}"
        return await acting.room.queue.approve(acting.scope, found), await acting.zone()

    work, zone = changing(user, "tasks approve", allow)
    print(dumped(asdict(work)) if as_json else f"Approved: {line(work_line(work, zone).removeprefix('- '))}")


def _row(work: AiTask, zone: ZoneInfo) -> tuple[str, ...]:
    return (
        work.id,
        work.agent_name or work.agent_id,
        line(work.objective, OBJECTIVE),
        work.status,
        work.mode,
        work.priority,
        when(work.due_at, zone) if work.due_at else ABSENT,
    )
