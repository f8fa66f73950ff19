"""The options by which a task is made or changed."""

from dataclasses import dataclass, fields
from typing import Annotated, Any

from cyclopts import Parameter

from frontdesk.errors import Invalid
from frontdesk.memory.asked.tasks import TaskContent
from frontdesk.memory.model import Completion, Priority, ProgressBy, TaskStatus
from frontdesk.surfaces.cli.options import Many
from frontdesk.surfaces.cli.person import Acting, asked

Words = Annotated[str | None, Parameter(allow_leading_hyphen=True)]
# What an option is called in a task.
FIELDS = {
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
    """What can be said of a task.

    Parameters
    ----------
    description
        More about it.
    due
        When it is due: a day (2026-11-20), which means its end, or a time (2026-11-20T09:00).
    zone
        The time zone in which that is meant, as an IANA name; the person's own when left out.
    status
        How it stands; a new task is pending.
    priority
        How pressing it is; a new task has medium.
    category
        A category's name or id; frontdesk memory categories lists them.
    tag
        A tag; repeated for several.
    parent
        The task that it is a part of.
    after
        A task that must be completed first; repeated for several.
    assignee
        A person, or an agent's name or id: an agent is woken when it is due.
    estimate
        How many minutes it will take.
    notes
        Notes on it.
    completion
        When a task with subtasks is completed: manual, or with-subtasks, when the last of them is.
    progress_by
        Where its progress comes from: manual, average of its subtasks, or weighted by their estimates.
    """

    description: Words = None
    due: str | None = None
    zone: str | None = None
    status: TaskStatus | None = None
    priority: Priority | None = None
    category: str | None = None
    tag: Many = ()
    parent: str | None = None
    after: Many = ()
    assignee: str | None = None
    estimate: int | None = None
    notes: Words = None
    completion: Completion | None = None
    progress_by: ProgressBy | None = None

    async def said(self, acting: Acting, **others: Any) -> dict[str, Any]:  # noqa: ANN401 - what the model checks
        """What was given, by the names that a task has for it, and ids in full."""
        given = {field.name: getattr(self, field.name) for field in fields(self) if field.name != "zone"}
        found = {FIELDS.get(name, name): value for name, value in given.items() if value not in (None, ())}
        if self.parent is not None:
            found["parent_task_id"] = await acting.names.task(acting.scope, self.parent)
        if self.after:
            found["dependencies"] = [await acting.names.task(acting.scope, one) for one in self.after]
        known = {name: value for name, value in others.items() if value is not None}
        return dict(asked(TaskContent, {**found, **known}).said())


def cleared(names: Many) -> dict[str, None]:
    """The fields that are to be empty."""
    unknown = [name for name in names if name not in CLEARABLE]
    if unknown:
        raise Invalid(f"--clear takes {', '.join(CLEARABLE)}, and not '{unknown[0]}'")
    return {FIELDS.get(name, name): None for name in names}
