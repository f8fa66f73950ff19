"""A person's tasks: those that stand by themselves, or one with its subtasks."""

from typing import Any

from frontdesk.memory import checks
from frontdesk.memory.given import Page
from frontdesk.memory.model import Task, TaskStatus
from frontdesk.memory.tasks.rules import is_open
from frontdesk.memory.tasks.wanted import LONGEST_SEARCH, TaskWanted
from frontdesk.surfaces.web.model import Shown
from frontdesk.surfaces.web.pages.people.address import offset_of
from frontdesk.surfaces.web.pages.people.whose import Whose

SHOWN = 25
OVERDUE = "overdue"
STATES = [("", "any state"), (OVERDUE, OVERDUE), *((one.value, one.replace("_", " ")) for one in TaskStatus)]
ORDERS = [("", "newest first"), ("due", "next due first")]


async def look(whose: Whose) -> Shown:
    task_id = whose.said("task")
    return await (_one(whose, task_id) if task_id else _all(whose))


async def _all(whose: Whose) -> Shown:
    wanted = _wanted(whose)
    page = await whose.room.tasks.list(whose.scope, wanted)
    chosen = {"q": wanted.search or "", "state": whose.said("state"), "order": whose.said("order")}
    context = {"page": page, "chosen": chosen, "states": STATES, "orders": ORDERS, **_paged(page, wanted.offset)}
    return whose.shown("tasks_found" if whose.asked.part else "tasks", "tasks", context)


async def _one(whose: Whose, task_id: str) -> Shown:
    task = await whose.room.tasks.get(whose.scope, task_id)
    offset = offset_of(whose.said("offset"))
    under = TaskWanted(parent_task_id=task.id, sort_by="subtask_order", sort_order="asc", limit=SHOWN, offset=offset)
    page = await whose.room.tasks.list(whose.scope, under)
    return whose.shown("task", "tasks", {"task": task, "page": page, **_paged(page, offset)})


def _wanted(whose: Whose) -> TaskWanted:
    """What is looked for may be a subtask; else those that stand by themselves are listed."""
    search, state = whose.said("q")[:LONGEST_SEARCH], whose.said("state")
    by_due = whose.said("order") == "due"
    return TaskWanted(
        search=search or None,
        status=checks.choice(TaskStatus, "state", state) if state and state != OVERDUE else None,
        overdue=state == OVERDUE,
        root_tasks_only=not (search or state),
        sort_by="due_date" if by_due else "created_at",
        sort_order="asc" if by_due else "desc",
        limit=SHOWN,
        offset=offset_of(whose.said("offset")),
    )


def _paged(page: Page[Task], offset: int) -> dict[str, Any]:
    return {
        "is_open": is_open,
        "newer": max(0, offset - SHOWN) if offset else None,
        "older": offset + SHOWN if page.has_more else None,
    }
