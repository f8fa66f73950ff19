"""Tasks as a terminal and a script read them."""

from collections.abc import Sequence
from dataclasses import asdict
from zoneinfo import ZoneInfo

from frontdesk.memory.model import Task
from frontdesk.memory.tooling.telling.tasks import task_line
from frontdesk.memory.tooling.telling.words import when
from frontdesk.surfaces.cli.plain import line
from frontdesk.surfaces.cli.words import ABSENT, dumped, table

TITLE = 50
HEAD = ("id", "task", "status", "priority", "due", "done")


def as_object(task: Task) -> str:
    """As one line of JSON."""
    return dumped(asdict(task))


def on_one_line(task: Task, zone: ZoneInfo) -> str:
    return line(task_line(task, zone).removeprefix("- "))


def in_rows(tasks: Sequence[Task], zone: ZoneInfo, depth: int | None = None) -> str:
    """A row for each; with the depth of the first, what is below it stands further in."""
    return table(HEAD, [_row(task, zone, 0 if depth is None else task.hierarchy_level - depth) for task in tasks])


def _row(task: Task, zone: ZoneInfo, depth: int) -> tuple[str, ...]:
    return (
        task.id,
        "· " * depth + line(task.title, TITLE),
        task.status,
        task.priority,
        when(task.due_date, zone) if task.due_date else ABSENT,
        f"{task.progress}%",
    )
