"""What stands behind an item of the timeline: the words of the timeline, in those of tasks, memories and activities."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from frontdesk.errors import Invalid
from frontdesk.identity import rights
from frontdesk.memory.activities import making as activities
from frontdesk.memory.given import Fields
from frontdesk.memory.memories import making as memories
from frontdesk.memory.model import Activity, ActivityType, ItemType, Memory, Task
from frontdesk.memory.store import Mine
from frontdesk.memory.tasks import changing as task_changes
from frontdesk.memory.tasks import making as tasks

Record = Task | Memory | Activity
ALIKE = {name: name for name in ("title", "category", "category_id", "tags", "metadata", "status")}


@dataclass(frozen=True, slots=True)
class Kind:
    """How items of a type are got, made, changed and deleted, and the right to the latter two.

    `names` says what the fields of an item are called there, `statuses` how it stands; `beside` are the fields that
    the item has alone. `usual` is what such a thing needs and the timeline has no word for.
    """

    right: str
    get: Callable[[Mine, str], Record]
    create: Callable[[Mine, Fields, str | None], Record]
    update: Callable[[Mine, str, Fields, str | None], Record]
    delete: Callable[[Mine, str], Sequence[Task] | None]
    names: Mapping[str, str]
    statuses: Mapping[str, str]
    beside: frozenset[str]
    usual: Mapping[str, Any]


KINDS: Mapping[ItemType, Kind] = {
    ItemType.TASK: Kind(
        rights.TASKS_WRITE,
        tasks.found,
        tasks.make,
        task_changes.change,
        task_changes.delete,
        {**ALIKE, "description": "description", "end_time": "due_date", "priority": "priority"},
        {"active": "pending", "inactive": "on_hold", "completed": "completed", "cancelled": "cancelled"},
        frozenset({"start_time", "is_time_consuming", "render_on_timeline"}),
        {},
    ),
    ItemType.MEMORY: Kind(
        rights.MEMORIES_WRITE,
        memories.get,
        memories.create,
        memories.update,
        memories.delete,
        {**ALIKE, "description": "note", "start_time": "happened_start", "end_time": "happened_end"},
        {"active": "active", "archived": "archived"},
        frozenset({"priority", "render_on_timeline"}),
        {},
    ),
    ItemType.ACTIVITY: Kind(
        rights.ACTIVITIES_WRITE,
        activities.get,
        activities.create,
        activities.update,
        activities.delete,
        {**ALIKE, "description": "description", "start_time": "started_at", "end_time": "ended_at"},
        {"active": "active", "completed": "completed", "cancelled": "cancelled"},
        frozenset({"priority", "is_time_consuming", "render_on_timeline"}),
        {"activity_type": ActivityType.OTHER, "status": "active"},
    ),
}


def parted(kind: Kind, of: ItemType, fields: Fields) -> tuple[dict[str, Any], dict[str, Any]]:
    """What is said of the thing itself, in its own words, and what is said of the item alone."""
    strange = sorted(set(fields) - set(kind.names) - kind.beside)
    if strange:
        raise Invalid(f"{', '.join(strange)} cannot be set on an item of the type {of}")
    own = {kind.names[name]: value for name, value in fields.items() if name in kind.names}
    if own.get("status") is not None:
        own["status"] = _standing(kind, of, own["status"])
    return own, {name: value for name, value in fields.items() if name in kind.beside}


def _standing(kind: Kind, of: ItemType, status: str) -> str:
    if status not in kind.statuses:
        raise Invalid(f"An item of the type {of} cannot be {status}; it can be {' or '.join(kind.statuses)}")
    return kind.statuses[status]
