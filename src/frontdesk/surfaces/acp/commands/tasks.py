"""`/tasks`: what the person has to do."""

from collections.abc import Sequence
from dataclasses import replace
from zoneinfo import ZoneInfo

from pydantic import ValidationError

from frontdesk.errors import Invalid
from frontdesk.identity import rights
from frontdesk.identity.keys import FIRST_USER
from frontdesk.loop.tools import problems_of
from frontdesk.memory.asked.tasks import CreateTask
from frontdesk.memory.model import Task, TaskStatus
from frontdesk.memory.scope import Scope
from frontdesk.memory.tasks.wanted import TaskWanted
from frontdesk.memory.tooling.clock import clock
from frontdesk.memory.tooling.telling.tasks import task_line
from frontdesk.memory.tooling.telling.words import when
from frontdesk.surfaces.acp.commands.markdown import code, table, words
from frontdesk.surfaces.acp.commands.model import Desk, Reply

# In this order.
OPEN = (TaskStatus.IN_PROGRESS, TaskStatus.PENDING, TaskStatus.ON_HOLD)
LISTED = 50
TITLE = 100
NONE = "No open tasks. Make one: `/tasks add Book the train`"


async def tasks(desk: Desk, said: str) -> Reply:
    scope = _scope(desk)
    verb, *rest = said.split(maxsplit=1) or [""]
    match verb.lower():
        case "add":
            return await _add(desk, scope, "".join(rest).strip())
        case "done":
            return await _done(desk, scope, "".join(rest))
        case _:
            return await _listed(desk, scope, said.strip())


def _scope(desk: Desk) -> Scope:
    """Whoever sits at this machine and names nobody has the tasks that the command line shows them."""
    caller = desk.caller
    return Scope.of(replace(caller, user_id=FIRST_USER) if rights.is_operator(caller) else caller)


async def _listed(desk: Desk, scope: Scope, search: str) -> Reply:
    found: list[Task] = []
    more = False
    for status in OPEN:
        wanted = TaskWanted(status=status, search=search or None, limit=LISTED)
        page = await desk.app.memory.tasks.list(scope, wanted)
        found.extend(page.items)
        more |= page.has_more
    if not found:
        return Reply(f"No open task holds the words {code(search)}." if search else NONE)
    note = "\n\nThere are more; `/tasks WORDS` finds those that hold the words." if more else ""
    return Reply(_in_rows(found, await clock(desk.app.memory, scope)) + note)


async def _add(desk: Desk, scope: Scope, title: str) -> Reply:
    try:
        asked = CreateTask.model_validate({"title": title})
    except ValidationError as error:
        raise Invalid(f"That does not fit: {problems_of(error)}") from error
    task = await desk.app.memory.tasks.create(scope, asked.said())
    return Reply(f"Added: {await _line(desk, scope, task)}")


async def _done(desk: Desk, scope: Scope, text: str) -> Reply:
    task_id = await desk.app.memory.names.task(scope, text)
    task = await desk.app.memory.tasks.set_status(scope, task_id, TaskStatus.COMPLETED)
    return Reply(f"Done: {await _line(desk, scope, task)}")


async def _line(desk: Desk, scope: Scope, task: Task) -> str:
    told = task_line(task, await clock(desk.app.memory, scope)).removeprefix("- ")
    return words(f"{told}. {task.wake_note}" if task.wake_note else told)


def _in_rows(found: Sequence[Task], zone: ZoneInfo) -> str:
    head = ("id", "task", "status", "priority", "due")
    return table(head, [_row(task, zone) for task in found])


def _row(task: Task, zone: ZoneInfo) -> tuple[str, ...]:
    due = when(task.due_date, zone) if task.due_date else ""
    return code(task.id), words(task.title, TITLE), task.status.replace("_", " "), task.priority, due
