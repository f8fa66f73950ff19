"""What becomes of a piece of work with each step: its times, and the lease of whoever works on it."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from frontdesk.memory.model import AiStatus, AiTask
from frontdesk.memory.queue import states

LEASE = timedelta(minutes=15)
LONGEST_LEASE = timedelta(days=1)
MINUTE = timedelta(minutes=1)


def moved(task: AiTask, to: AiStatus, now: datetime) -> AiTask:
    """In another status, if there is a way; nobody holds it any more."""
    states.check(task.status, to)
    stamped: dict[str, Any] = {"status": to, "updated_at": now, "leased_by": None, "leased_until": None}
    if to is AiStatus.ASSIGNED:
        stamped |= {"assigned_at": now, "started_at": None, "completed_at": None, "actual_duration_min": None}
        stamped |= {"progress_message": "", "error_message": ""}
    elif to is AiStatus.COMPLETED:
        stamped["completed_at"] = now
    if to in (AiStatus.COMPLETED, AiStatus.FAILED) and task.actual_duration_min is None:
        stamped["actual_duration_min"] = minutes_since(task.started_at, now)
    return replace(task, **stamped)


def begun(task: AiTask, holder: str, lease: timedelta, now: datetime) -> AiTask:
    """Taken by somebody: for the first time, again after a pause, or from one whose lease lapsed."""
    if task.status is not AiStatus.IN_PROGRESS:
        states.check(task.status, AiStatus.IN_PROGRESS)
    return replace(
        task,
        status=AiStatus.IN_PROGRESS,
        started_at=task.started_at or now,
        updated_at=now,
        leased_by=holder,
        leased_until=now + min(lease, LONGEST_LEASE),
        claims=task.claims + 1,
    )


def renewed(task: AiTask, lease: timedelta, now: datetime) -> AiTask:
    """Held for longer; what was granted before is not cut short."""
    until = now + min(lease, LONGEST_LEASE)
    return replace(task, updated_at=now, leased_until=max(until, task.leased_until or until))


def lives(task: AiTask, now: datetime) -> bool:
    """Whether somebody works on it and is not taken for dead."""
    return task.status is AiStatus.IN_PROGRESS and task.leased_until is not None and task.leased_until > now


def lease_for(asked: timedelta | None, estimated_min: int | None) -> timedelta:
    """How long to wait for a word: as was asked, else as long as the work itself is said to take."""
    if asked is not None:
        return asked
    most = LONGEST_LEASE // MINUTE
    return max(LEASE, min(estimated_min or 0, most) * MINUTE)


def minutes_since(start: datetime | None, now: datetime) -> int | None:
    """At least one."""
    return None if start is None else max(1, round((now - start) / MINUTE))
