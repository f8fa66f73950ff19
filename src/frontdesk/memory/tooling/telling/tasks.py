"""Tasks in words."""

from zoneinfo import ZoneInfo

from frontdesk.memory.model import Task, TaskStatus
from frontdesk.memory.tasks.stats import TaskStats, TasksUpdated
from frontdesk.memory.tooling.telling.words import about, count, length, lines, tagged, tallied, when, whole


def task_line(task: Task, zone: ZoneInfo) -> str:
    """On one line, with the id that other tools ask for."""
    return f"- {task.title} (id {task.id}): {_standing(task, zone)}"


def task_told(task: Task, zone: ZoneInfo) -> str:
    """With all that is known of it."""
    return lines(
        task_line(task, zone).removeprefix("- "),
        whole("Description", task.description),
        whole("Notes", task.notes),
        _times(task, zone),
        _family(task),
        "The agent it is for is woken when it is due." if task.wake_schedule_id is not None else task.wake_note,
    )


def _standing(task: Task, zone: ZoneInfo) -> str:
    return about(
        [
            task.status.replace("_", " "),
            f"{task.priority} priority",
            f"due {when(task.due_date, zone)}" if task.due_date else "no due date",
            f"{task.progress}% done" if task.progress and task.status is not TaskStatus.COMPLETED else "",
            f"for {task.assignee}" if task.assignee else "",
            tagged(task.tags),
        ]
    )


def _times(task: Task, zone: ZoneInfo) -> str:
    said = about(
        [
            f"created {when(task.created_at, zone)}",
            f"completed {when(task.completion_date, zone)}" if task.completion_date else "",
            f"estimated {length(task.estimated_duration)}" if task.estimated_duration else "",
            f"{length(task.tracked_minutes_total)} tracked" if task.tracked_minutes_total else "",
        ]
    )
    return said[:1].upper() + said[1:]


def _family(task: Task) -> str:
    said = about(
        [
            f"category {task.category_id}" if task.category_id else "",
            f"subtask of {task.parent_task_id}" if task.parent_task_id else "",
            f"{task.completed_subtask_count} of {count(task.subtask_count, 'subtask')} done"
            if task.subtask_count
            else "",
            f"after {', '.join(task.dependencies)}" if task.dependencies else "",
        ]
    )
    return said[:1].upper() + said[1:]


def stats_told(found: TaskStats) -> str:
    return lines(
        f"{count(found.total, 'task')}: {found.overdue:,} overdue, {found.due_today:,} due today, "
        f"{found.due_this_week:,} due this week, {found.completion_rate:g}% completed",
        tallied("By status", found.by_status),
        tallied("By priority", found.by_priority),
        tallied("By category", found.by_category),
        f"A completed task took {found.average_completion_time:g} days on average"
        if found.average_completion_time
        else "",
    )


def updated_told(found: TasksUpdated, zone: ZoneInfo) -> str:
    """What was changed within a stretch of time, the latest first."""
    stretch = f"from {when(found.span.start, zone)} up to {when(found.span.end, zone)}"
    if not found.total:
        return f"No task was last changed {stretch}."
    more = f", of which these are the latest {len(found.tasks):,}" if len(found.tasks) < found.total else ""
    return lines(
        f"{count(found.total, 'task')} last changed {stretch}{more}:",
        *(f"{task_line(task, zone)}, changed {when(task.updated_at, zone)}" for task in found.tasks),
    )
