"""Describes tasks, time entries and the work of agents as text, for models and terminals."""

import json
from collections.abc import Sequence
from zoneinfo import ZoneInfo

from frontdesk import zones
from frontdesk.memory.model import AiTask, Guardrails, Task, TaskStatus, TimeEntry
from frontdesk.memory.operations.base import (
    MAX_LINE,
    format_count,
    format_counts,
    format_minutes,
    format_span,
    format_tags,
    format_time,
    join_lines,
    join_parts,
    labelled_text,
)
from frontdesk.memory.tasks_rules import TaskStats, UpdatedTaskList
from frontdesk.memory.time_tracking import DaySpending, TimeSpent
from frontdesk.memory.work_queue_rules import AiTaskStats
from frontdesk.text import one_line


def format_task_line(task: Task, zone: ZoneInfo) -> str:
    """A task on one line, with the id that other tools ask for."""
    return f"- {task.title} (id {task.id}): {_format_task_status(task, zone)}"


def format_task(task: Task, zone: ZoneInfo) -> str:
    """A task with everything that is known of it."""
    return join_lines(
        format_task_line(task, zone).removeprefix("- "),
        labelled_text("Description", task.description),
        labelled_text("Notes", task.notes),
        _format_times(task, zone),
        _format_relations(task),
        "The agent it is for is woken when it is due." if task.wake_schedule_id is not None else task.wake_note,
    )


def _format_task_status(task: Task, zone: ZoneInfo) -> str:
    return join_parts(
        [
            task.status.replace("_", " "),
            f"{task.priority} priority",
            f"due {format_time(task.due_date, zone)}" if task.due_date else "no due date",
            f"{task.progress}% done" if task.progress and task.status is not TaskStatus.COMPLETED else "",
            f"for {task.assignee}" if task.assignee else "",
            format_tags(task.tags),
        ]
    )


def _format_times(task: Task, zone: ZoneInfo) -> str:
    text = join_parts(
        [
            f"created {format_time(task.created_at, zone)}",
            f"completed {format_time(task.completion_date, zone)}" if task.completion_date else "",
            f"estimated {format_minutes(task.estimated_duration)}" if task.estimated_duration else "",
            f"{format_minutes(task.tracked_minutes_total)} tracked" if task.tracked_minutes_total else "",
        ]
    )
    return text[:1].upper() + text[1:]


def _format_relations(task: Task) -> str:
    text = join_parts(
        [
            f"category {task.category_id}" if task.category_id else "",
            f"subtask of {task.parent_task_id}" if task.parent_task_id else "",
            f"{task.completed_subtask_count} of {format_count(task.subtask_count, 'subtask')} done"
            if task.subtask_count
            else "",
            f"after {', '.join(task.dependencies)}" if task.dependencies else "",
        ]
    )
    return text[:1].upper() + text[1:]


def format_task_stats(stats: TaskStats) -> str:
    return join_lines(
        f"{format_count(stats.total, 'task')}: {stats.overdue:,} overdue, {stats.due_today:,} due today, "
        f"{stats.due_this_week:,} due this week, {stats.completion_rate:g}% completed",
        format_counts("By status", stats.by_status),
        format_counts("By priority", stats.by_priority),
        format_counts("By category", stats.by_category),
        f"A completed task took {stats.average_completion_time:g} days on average"
        if stats.average_completion_time
        else "",
    )


def format_updated_tasks(results: UpdatedTaskList, zone: ZoneInfo) -> str:
    """The tasks that changed in a range of time, the latest first."""
    period = f"from {format_time(results.span.start, zone)} up to {format_time(results.span.end, zone)}"
    if not results.total:
        return f"No task was last changed {period}."
    more = f", of which these are the latest {len(results.tasks):,}" if len(results.tasks) < results.total else ""
    return join_lines(
        f"{format_count(results.total, 'task')} last changed {period}{more}:",
        *(f"{format_task_line(task, zone)}, changed {format_time(task.updated_at, zone)}" for task in results.tasks),
    )


MAX_LISTED = 20


def format_entry(entry: TimeEntry, zone: ZoneInfo) -> str:
    """A time entry: what, from when to when, how long."""
    return f"{entry.item_title} ({entry.item_type} {entry.timeline_item_id}): {_format_entry_time(entry, zone)}"


def format_entries(entries: Sequence[TimeEntry], minutes: int, zone: ZoneInfo) -> str:
    """The time entries of one item."""
    if not entries:
        return "No time was tracked on this task; start_task_timer begins with it."
    head = f"{format_minutes(minutes)} in {format_count(len(entries), 'entry', 'entries')} on {entries[0].item_title}:"
    return join_lines(head, *(f"- {_format_entry_time(entry, zone)}" for entry in entries))


def format_day(spending: DaySpending) -> str:
    """The time of a day, by item."""
    head = f"{spending.day:%a %Y-%m-%d} ({spending.zone})"
    if not spending.entries:
        return f"{head}: no time was tracked."
    zone = zones.zone_of_name(spending.zone)
    return join_lines(
        f"{head}: {format_minutes(spending.total_minutes)} in "
        f"{format_count(len(spending.entries), 'entry', 'entries')}",
        *_format_time_spent("By category", spending.by_category),
        *_format_time_spent("By item", spending.by_item),
        "Entries:",
        *(f"- {format_entry(entry, zone)}" for entry in spending.entries[:MAX_LISTED]),
        f"and {len(spending.entries) - MAX_LISTED} more" if len(spending.entries) > MAX_LISTED else "",
    )


def _format_entry_time(entry: TimeEntry, zone: ZoneInfo) -> str:
    long = "still running" if entry.duration_minutes is None else format_minutes(entry.duration_minutes)
    note = f" ({one_line(entry.note, MAX_LINE)})" if entry.note else ""
    return f"{format_span(entry.start_at, entry.end_at, zone)}, {long}{note}"


def _format_time_spent(title: str, spent: Sequence[TimeSpent]) -> list[str]:
    return (
        [f"{title}:", *(f"- {one.name}: {format_minutes(one.minutes)}" for one in spent[:MAX_LISTED])] if spent else []
    )


MAX_STEPS = 5
MAX_RESULT = 4000


def format_work_line(work: AiTask, zone: ZoneInfo) -> str:
    """A piece of work on one line, with the id that other tools ask for."""
    return f"- {one_line(work.objective, MAX_LINE)} (id {work.id}): {_format_work_status(work, zone)}"


def format_work(work: AiTask, zone: ZoneInfo) -> str:
    """A piece of work with everything that an agent needs to do it."""
    return join_lines(
        format_work_line(work, zone).removeprefix("- "),
        labelled_text("Objective", "" if one_line(work.objective, MAX_LINE) == work.objective else work.objective),
        labelled_text("Deliverables", work.deliverables),
        labelled_text("Context", work.context),
        labelled_text("Acceptance criteria", work.acceptance_criteria),
        f"For task {work.task_id}",
        f"After {', '.join(work.dependencies)}" if work.dependencies else "",
        _format_limits(work.guardrails),
        _format_holder(work, zone),
        labelled_text("Progress", work.progress_message),
        labelled_text("Error", work.error_message),
        labelled_text("Result", _shorten(json.dumps(work.execution_result, ensure_ascii=False)))
        if work.execution_result
        else "",
        _format_history(work, zone),
    )


def format_waiting(waiting: Sequence[AiTask], zone: ZoneInfo, *, more: bool) -> str:
    """The work that waits for an agent, the oldest first."""
    if not waiting:
        return "Nothing waits for this agent."
    head = f"The oldest {len(waiting)} of what waits, there is more:" if more else f"{len(waiting)} waiting:"
    return join_lines(head, *(format_work_line(work, zone) for work in waiting))


def format_work_stats(stats: AiTaskStats) -> str:
    return join_lines(
        f"{format_count(stats.total, 'piece', 'pieces')} of work: {stats.active:,} active, "
        f"{stats.completed:,} completed, "
        f"{stats.failed:,} failed; {stats.overdue:,} overdue",
        format_counts("By status", stats.by_status),
        format_counts("By mode", stats.by_mode),
        format_counts("By type", stats.by_type),
        format_counts("By agent", stats.by_agent),
        join_parts(
            [
                f"{100 * stats.success_rate:g}% of what ended was completed",
                f"{format_minutes(round(stats.avg_duration_min))} on average" if stats.avg_duration_min else "",
                f"${stats.avg_cost_usd:g} a piece" if stats.avg_cost_usd is not None else "",
                f"${stats.total_cost_usd:g} spent",
            ]
        ),
    )


def _format_work_status(work: AiTask, zone: ZoneInfo) -> str:
    return join_parts(
        [
            work.status.replace("_", " "),
            f"{work.priority} priority",
            f"for {work.agent_name or work.agent_id}",
            work.task_type.replace("_", " "),
            f"mode {work.mode}",
            f"due {format_time(work.due_at, zone)}" if work.due_at else "",
        ]
    )


def _format_limits(rails: Guardrails) -> str:
    text = join_parts(
        [
            f"at most ${rails.costCapUSD:g}" if rails.costCapUSD is not None else "",
            f"at most {format_minutes(rails.timeCapMin)}" if rails.timeCapMin is not None else "",
            "to be executed only once the person approves" if rails.requiresHumanApproval else "",
            f"data {'/'.join(rails.dataScopes)}" if rails.dataScopes else "",
        ]
    )
    return f"Limits: {text}" if text else ""


def _format_holder(work: AiTask, zone: ZoneInfo) -> str:
    if work.leased_by is None or work.leased_until is None:
        return ""
    return f"Taken by {work.leased_by} until {format_time(work.leased_until, zone)}; each update of it keeps it longer"


def _format_history(work: AiTask, zone: ZoneInfo) -> str:
    steps = [
        f"{format_time(step.at, zone)} {step.to_status}{f' by {step.by_agent}' if step.by_agent else ''}"
        for step in work.history[-MAX_STEPS:]
    ]
    return f"History: {'; '.join(steps)}" if steps else ""


def _shorten(text: str) -> str:
    return text if len(text) <= MAX_RESULT else f"{text[:MAX_RESULT]}… (the structured answer has it all)"
