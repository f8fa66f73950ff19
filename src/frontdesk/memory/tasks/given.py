"""What a task is asked to be, made into what is kept of it."""

from typing import Any

from frontdesk.errors import Invalid
from frontdesk.memory import checks
from frontdesk.memory.given import Fields, taken
from frontdesk.memory.ids import known
from frontdesk.memory.model import Completion, Priority, ProgressBy, Task, TaskStatus
from frontdesk.memory.moments import Edge
from frontdesk.memory.store import Mine

TITLE = 200
LONGEST_NAME = 200
MOST_MINUTES = 10_000_000
LAST_PLACE = 1_000_000
TIMES = {"due_date": Edge.END, "completion_date": Edge.START}
CHOICES = {
    "status": TaskStatus,
    "priority": Priority,
    "completion_behavior": Completion,
    "progress_calculation": ProgressBy,
}
# Of the others the room itself keeps account.
SETTABLE = (
    "title",
    "description",
    "status",
    "priority",
    "category",
    "category_id",
    "tags",
    "due_date",
    "estimated_duration",
    "progress",
    "assignee",
    "notes",
    "completion_date",
    "parent_task_id",
    "subtask_order",
    "completion_behavior",
    "progress_calculation",
    "dependencies",
    "is_ai_task",
    "wake_schedule_id",
    "metadata",
)


def for_new(mine: Mine, fields: Fields, zone: str | None) -> dict[str, Any]:
    """Of a task that is to be made."""
    found = _kept(mine, checks.said(fields), zone)
    if "title" not in found:
        raise Invalid("title is missing; say in a few words what is to be done")
    return found


def for_change(mine: Mine, fields: Fields, zone: str | None) -> dict[str, Any]:
    """Of one that is there; null empties what can be empty."""
    nameless = {name: value for name, value in fields.items() if name != "category"}
    category = {"category": fields["category"]} if "category" in fields else {}
    return _kept(mine, {**checks.emptied(Task, nameless), **category}, zone)


def check(task: Task) -> None:
    """Refuse what makes no sense, wherever it came from."""
    checks.short(task, "title", TITLE, 1)
    checks.short(task, "assignee", LONGEST_NAME)
    checks.within(task, "progress", 0, 100)
    checks.within(task, "estimated_duration", 1, MOST_MINUTES)
    checks.within(task, "subtask_order", 0, LAST_PLACE)


def _kept(mine: Mine, fields: Fields, zone: str | None) -> dict[str, Any]:
    checks.known(fields, SETTABLE)
    found = checks.chosen(taken(mine, fields, zone, TIMES), CHOICES)
    if "title" in found:
        found["title"] = found["title"].strip()
    if "assignee" in found:
        found["assignee"] = (found["assignee"] or "").strip() or None
    if found.get("parent_task_id"):
        found["parent_task_id"] = known(found["parent_task_id"], "Task")
    if "dependencies" in found:
        found["dependencies"] = tuple(dict.fromkeys(known(one, "Task") for one in found["dependencies"]))
    return found
