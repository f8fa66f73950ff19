"""Decides, without I/O, what agents may do with a piece of work: status changes, leases, approvals, caps."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Literal, TypeVar

from frontdesk.errors import Conflict, Denied, Invalid
from frontdesk.memory.model import AiMode, AiStatus, AiTask, AiTaskType, Guardrails, Priority
from frontdesk.text import list_first, parse_json_object, storable


@dataclass(frozen=True, slots=True, kw_only=True)
class AiTaskFilter:
    """A filter of AI tasks; without values it lists all. `agent_name` is the agent's name or id, in any case."""

    agent_id: str | None = None
    agent_name: str | None = None
    status: AiStatus | None = None
    mode: AiMode | None = None
    task_type: AiTaskType | None = None
    is_local_task: bool | None = None
    executor_workspace_id: str | None = None
    sort_by: Literal["assigned_at", "due_at", "priority", "updated_at"] = "assigned_at"
    sort_order: Literal["asc", "desc"] = "desc"
    limit: int = 20
    offset: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class AiTaskStats:
    """Statistics under the names that clients of zmemory read; some read the same figure under another name.

    `active` counts open work; `success_rate` is completed work divided by completed and failed work, from 0 to 1.
    `overdue` counts open work after its due time; averages are of completed work. Days are in the person's time zone.
    """

    total: int = 0
    active: int = 0
    completed: int = 0
    failed: int = 0
    overdue: int = 0
    pending_for_agent: int = 0
    in_progress: int = 0
    completed_today: int = 0
    failed_today: int = 0
    by_status: Mapping[str, int]
    by_mode: Mapping[str, int]
    by_type: Mapping[str, int]
    by_task_type: Mapping[str, int]
    by_agent: Mapping[str, int]
    success_rate: float = 0.0
    avg_duration_min: float | None = None
    avg_completion_time: float = 0.0
    avg_cost_usd: float | None = None
    total_cost_usd: float = 0.0
    total_cost_today: float = 0.0


TRANSITIONS: Mapping[AiStatus, tuple[AiStatus, ...]] = {
    AiStatus.PENDING: (AiStatus.ASSIGNED, AiStatus.CANCELLED),
    AiStatus.ASSIGNED: (AiStatus.IN_PROGRESS, AiStatus.CANCELLED),
    AiStatus.IN_PROGRESS: (AiStatus.PAUSED, AiStatus.COMPLETED, AiStatus.FAILED, AiStatus.CANCELLED),
    AiStatus.PAUSED: (AiStatus.IN_PROGRESS, AiStatus.CANCELLED, AiStatus.FAILED),
    AiStatus.FAILED: (AiStatus.ASSIGNED,),
    AiStatus.CANCELLED: (AiStatus.ASSIGNED,),
    AiStatus.COMPLETED: (),
}
# In these statuses the definition of the work can be changed.
EDITABLE_STATUSES = frozenset({AiStatus.PENDING, AiStatus.ASSIGNED, AiStatus.PAUSED})
# In these statuses the work is not finished.
OPEN_STATUSES = frozenset({*EDITABLE_STATUSES, AiStatus.IN_PROGRESS})


def check_transition(before: AiStatus, to: AiStatus) -> None:
    """Raise `Conflict` if this transition does not exist; the message lists those that do."""
    possible = TRANSITIONS[before]
    if to in possible:
        return
    if not possible:
        raise Conflict(f"An AI task that is {before} cannot become {to}: {before} is final; create another one")
    raise Conflict(f"An AI task that is {before} cannot become {to}; it can become {' or '.join(possible)}")


DEFAULT_LEASE = timedelta(minutes=15)
MAX_LEASE = timedelta(days=1)
MINUTE = timedelta(minutes=1)


def change_status(task: AiTask, to: AiStatus, now: datetime) -> AiTask:
    """The task in another status, without a lease; `Conflict` if there is no such transition."""
    check_transition(task.status, to)
    stamped: dict[str, Any] = {"status": to, "updated_at": now, "leased_by": None, "leased_until": None}
    if to is AiStatus.ASSIGNED:
        stamped |= {"assigned_at": now, "started_at": None, "completed_at": None, "actual_duration_min": None}
        stamped |= {"progress_message": "", "error_message": ""}
    elif to is AiStatus.COMPLETED:
        stamped["completed_at"] = now
    if to in (AiStatus.COMPLETED, AiStatus.FAILED) and task.actual_duration_min is None:
        stamped["actual_duration_min"] = minutes_since(task.started_at, now)
    return replace(task, **stamped)


def start_work(task: AiTask, holder: str, lease: timedelta, now: datetime) -> AiTask:
    """The task under a lease: for the first time, after a pause, or taken over after a lease lapsed."""
    if task.status is not AiStatus.IN_PROGRESS:
        check_transition(task.status, AiStatus.IN_PROGRESS)
    return replace(
        task,
        status=AiStatus.IN_PROGRESS,
        started_at=task.started_at or now,
        updated_at=now,
        leased_by=holder,
        leased_until=now + min(lease, MAX_LEASE),
        claims=task.claims + 1,
    )


def renew_lease(task: AiTask, lease: timedelta, now: datetime) -> AiTask:
    """Extend the lease; it is never shortened."""
    until = now + min(lease, MAX_LEASE)
    return replace(task, updated_at=now, leased_until=max(until, task.leased_until or until))


def has_live_lease(task: AiTask, now: datetime) -> bool:
    """Whether a worker holds a lease that has not expired."""
    return task.status is AiStatus.IN_PROGRESS and task.leased_until is not None and task.leased_until > now


def choose_lease(asked: timedelta | None, estimated_min: int | None) -> timedelta:
    """The lease to grant: the requested time, else at least the estimated duration of the work."""
    if asked is not None:
        return asked
    most = MAX_LEASE // MINUTE
    return max(DEFAULT_LEASE, min(estimated_min or 0, most) * MINUTE)


def minutes_since(start: datetime | None, now: datetime) -> int | None:
    """The whole minutes since the start, at least one; None without a start."""
    return None if start is None else max(1, round((now - start) / MINUTE))


APPROVED_KEY = "approved"
GUARDRAIL_FIELDS = tuple(field.name for field in fields(Guardrails))
MAX_SHOWN = 5


def find_obstacle(task: AiTask, unfinished: Sequence[str]) -> str:
    """Why the work cannot begin now, and what to do about it; empty if it can."""
    if not is_cleared(task):
        return (
            "This AI task would be executed, and its guardrails require the person's approval first; "
            "ask the person to approve it, which no agent can"
        )
    if said := describe_exceeded_caps(task.guardrails, task.estimated_cost_usd, task.estimated_duration_min):
        return f"Estimated {said}; do it for less, or have the person raise the cap"
    if unfinished:
        return f"Other AI tasks must be completed first: {list_first(unfinished, MAX_SHOWN)}"
    return ""


def is_cleared(task: AiTask) -> bool:
    """Whether no approval is missing."""
    needs = task.mode is AiMode.EXECUTE and task.guardrails.requiresHumanApproval
    return not needs or task.metadata.get(APPROVED_KEY) is True


def describe_exceeded_caps(rails: Guardrails, cost_usd: float | None, minutes: int | None) -> str:
    """Name the caps that these figures exceed; empty if none."""
    passed: list[str] = []
    if rails.costCapUSD is not None and cost_usd is not None and cost_usd > rails.costCapUSD:
        passed.append(f"cost of {cost_usd:g} USD is above the cap of {rails.costCapUSD:g} USD (costCapUSD)")
    if rails.timeCapMin is not None and minutes is not None and minutes > rails.timeCapMin:
        passed.append(f"time of {minutes} minutes is above the cap of {rails.timeCapMin} (timeCapMin)")
    return " and ".join(passed)


def merge_guardrails(arguments: Mapping[str, Any], old: Guardrails) -> Guardrails:
    """Merge the given guardrails into the old ones; null removes a cap."""
    if unknown := [name for name in arguments if name not in GUARDRAIL_FIELDS]:
        raise Invalid(f"guardrails has no '{unknown[0][:100]}'; it has {', '.join(GUARDRAIL_FIELDS)}")
    found = dict(arguments)
    if "dataScopes" in found:
        found["dataScopes"] = tuple(storable(one) for one in found["dataScopes"] or ())
    if found.get("requiresHumanApproval", True) is None:
        found["requiresHumanApproval"] = True
    return replace(old, **found)


def check_loosening(before: AiTask | None, after: AiTask) -> None:
    """Raise `Denied` if an agent gives itself or another agent more freedom than the person did."""
    if before is None:
        if not after.guardrails.requiresHumanApproval:
            raise Denied("An agent cannot waive the person's approval; leave requiresHumanApproval as it is")
    elif before.guardrails != after.guardrails or before.mode is not after.mode:
        raise Denied("An agent cannot change guardrails or mode; ask the person to do it")


K = TypeVar("K", bound=StrEnum)
REQUIRED_FIELDS = ("objective", "task_type", "task_id", "agent_id")
# The values of fields that are given as null.
EMPTY_VALUES: Mapping[str, Any] = {
    "deliverables": "",
    "context": "",
    "acceptance_criteria": "",
    "dependencies": (),
    "metadata": {},
    "is_local_task": False,
    "priority": Priority.MEDIUM,
    "estimated_cost_usd": None,
    "estimated_duration_min": None,
    "executor_workspace_id": None,
    "due_at": None,
}
CHOICE_FIELDS: Mapping[str, type[StrEnum]] = {
    "status": AiStatus,
    "mode": AiMode,
    "task_type": AiTaskType,
    "priority": Priority,
}
DEFINING_FIELDS = frozenset({*EMPTY_VALUES, *REQUIRED_FIELDS, "agent_name", "guardrails", "mode"})


def parse_work_choices(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Parse the fields that have a fixed set of values."""
    words = {name: kind for name, kind in CHOICE_FIELDS.items() if arguments.get(name) is not None}
    return {**arguments, **{name: _parse_choice(kind, arguments[name], name) for name, kind in words.items()}}


def new_ai_task(arguments: Mapping[str, Any], identity: Mapping[str, Any], now: datetime, *, by_agent: bool) -> AiTask:
    """A new AI task. `identity` has the fields that we set: its id, its task, its dependencies as stored."""
    for name in REQUIRED_FIELDS:
        if not str(arguments.get(name) or "").strip():
            raise Invalid(f"An AI task needs {', '.join(REQUIRED_FIELDS)}; {name} is missing")
    status = arguments.get("status") or AiStatus.ASSIGNED
    if status not in (AiStatus.PENDING, AiStatus.ASSIGNED):
        raise Invalid(f"A new AI task is pending or assigned, not {status}")
    said = {name: value for name, value in arguments.items() if value is not None and name in DEFINING_FIELDS}
    kept = {**said, **_merge_parts(said, Guardrails(), {}), **identity}
    assigned = now if status is AiStatus.ASSIGNED else None
    task = AiTask(**kept, status=status, assigned_at=assigned, created_at=now, updated_at=now)
    if by_agent:
        check_loosening(None, task)
    return _check_ai_task(task)


def edit_ai_task(task: AiTask, arguments: Mapping[str, Any], now: datetime, *, by_agent: bool) -> AiTask:
    """Edit the definition. An edit by an agent removes the person's approval."""
    said = {name: value if value is not None else _empty_value(name) for name, value in arguments.items()}
    after = replace(task, **{**said, **_merge_parts(said, task.guardrails, task.metadata), "updated_at": now})
    if after.agent_id != task.agent_id and after.status is AiStatus.ASSIGNED:
        after = replace(after, assigned_at=now)
    if by_agent:
        check_loosening(task, after)
        after = replace(after, metadata={name: one for name, one in after.metadata.items() if name != APPROVED_KEY})
    return _check_ai_task(after)


def approve_ai_task(task: AiTask, now: datetime) -> AiTask:
    return replace(task, metadata={**task.metadata, APPROVED_KEY: True}, updated_at=now)


def _merge_parts(said: Mapping[str, Any], rails: Guardrails, metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Merge guardrails and metadata. The approval is stored in the metadata, and cannot be set through it."""
    found: dict[str, Any] = {}
    if "guardrails" in said:
        found["guardrails"] = merge_guardrails(said["guardrails"], rails)
    if "metadata" in said:
        given = parse_json_object(said["metadata"])
        if given is None:
            raise Invalid("metadata must be a JSON object")
        was = {name: metadata[name] for name in (APPROVED_KEY,) if name in metadata}
        found["metadata"] = {name: one for name, one in given.items() if name != APPROVED_KEY} | was
        if "priority" not in said and given.get("priority") is not None:
            found["priority"] = _parse_choice(Priority, given["priority"], "metadata.priority")
    return found


def _parse_choice(kind: type[K], value: object, name: str) -> K:
    for one in kind:
        if one == value:
            return one
    raise Invalid(f"{name} must be one of {', '.join(kind)}; '{str(value)[:100]}' is none")


def _empty_value(name: str) -> Any:  # noqa: ANN401 - each field has a type of its own
    if name not in EMPTY_VALUES:
        raise Invalid(f"{name} cannot be empty")
    return EMPTY_VALUES[name]


def _check_ai_task(task: AiTask) -> AiTask:
    if not task.objective.strip() or not task.agent_id.strip():
        raise Invalid("objective and agent_id cannot be empty")
    if said := describe_exceeded_caps(task.guardrails, task.estimated_cost_usd, task.estimated_duration_min):
        raise Invalid(f"Estimated {said}; change one of the two")
    return task
