"""What a piece of work is, made from what was given; an approval is for what was read, and for nothing else."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from enum import StrEnum
from typing import Any, TypeVar

from frontdesk.errors import Invalid
from frontdesk.loop.text import json_object
from frontdesk.memory.model import AiMode, AiStatus, AiTask, AiTaskType, Guardrails, Priority
from frontdesk.memory.queue import guard

K = TypeVar("K", bound=StrEnum)
REQUIRED = ("objective", "task_type", "task_id", "agent_id")
# What a field is when it is given as null.
EMPTY: Mapping[str, Any] = {
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
KINDS: Mapping[str, type[StrEnum]] = {
    "status": AiStatus,
    "mode": AiMode,
    "task_type": AiTaskType,
    "priority": Priority,
}
DEFINING = frozenset({*EMPTY, *REQUIRED, "agent_name", "guardrails", "mode"})


def typed(given: Mapping[str, Any]) -> dict[str, Any]:
    """With a word of ours for each that is one of a few."""
    words = {name: kind for name, kind in KINDS.items() if given.get(name) is not None}
    return {**given, **{name: _word(kind, given[name], name) for name, kind in words.items()}}


def made(given: Mapping[str, Any], identity: Mapping[str, Any], now: datetime, *, by_agent: bool) -> AiTask:
    """A new one. `identity` is what it gets from us: its id, its task, its dependencies as they are stored."""
    for name in REQUIRED:
        if not str(given.get(name) or "").strip():
            raise Invalid(f"An AI task needs {', '.join(REQUIRED)}; {name} is missing")
    status = given.get("status") or AiStatus.ASSIGNED
    if status not in (AiStatus.PENDING, AiStatus.ASSIGNED):
        raise Invalid(f"A new AI task is pending or assigned, not {status}")
    said = {name: value for name, value in given.items() if value is not None and name in DEFINING}
    kept = {**said, **_composed(said, Guardrails(), {}), **identity}
    assigned = now if status is AiStatus.ASSIGNED else None
    task = AiTask(**kept, status=status, assigned_at=assigned, created_at=now, updated_at=now)
    if by_agent:
        guard.check_loosening(None, task)
    return _checked(task)


def edited(task: AiTask, given: Mapping[str, Any], now: datetime, *, by_agent: bool) -> AiTask:
    """In other words. What an agent changes in it the person has not approved."""
    said = {name: value if value is not None else _emptied(name) for name, value in given.items()}
    after = replace(task, **{**said, **_composed(said, task.guardrails, task.metadata), "updated_at": now})
    if after.agent_id != task.agent_id and after.status is AiStatus.ASSIGNED:
        after = replace(after, assigned_at=now)
    if by_agent:
        guard.check_loosening(task, after)
        after = replace(after, metadata={name: one for name, one in after.metadata.items() if name != guard.APPROVED})
    return _checked(after)


def approved(task: AiTask, now: datetime) -> AiTask:
    return replace(task, metadata={**task.metadata, guard.APPROVED: True}, updated_at=now)


def _composed(said: Mapping[str, Any], rails: Guardrails, metadata: Mapping[str, Any]) -> dict[str, Any]:
    """The parts that have parts. Whether it was approved stands in the metadata, and cannot be written there."""
    found: dict[str, Any] = {}
    if "guardrails" in said:
        found["guardrails"] = guard.rails_of(said["guardrails"], rails)
    if "metadata" in said:
        given = json_object(said["metadata"])
        if given is None:
            raise Invalid("metadata must be a JSON object")
        was = {name: metadata[name] for name in (guard.APPROVED,) if name in metadata}
        found["metadata"] = {name: one for name, one in given.items() if name != guard.APPROVED} | was
        if "priority" not in said and given.get("priority") is not None:
            found["priority"] = _word(Priority, given["priority"], "metadata.priority")
    return found


def _word(kind: type[K], given: object, name: str) -> K:
    for one in kind:
        if one == given:
            return one
    raise Invalid(f"{name} must be one of {', '.join(kind)}; '{str(given)[:100]}' is none")


def _emptied(name: str) -> Any:  # noqa: ANN401 - each field has a type of its own
    if name not in EMPTY:
        raise Invalid(f"{name} cannot be empty")
    return EMPTY[name]


def _checked(task: AiTask) -> AiTask:
    if not task.objective.strip() or not task.agent_id.strip():
        raise Invalid("objective and agent_id cannot be empty")
    if said := guard.beyond(task.guardrails, task.estimated_cost_usd, task.estimated_duration_min):
        raise Invalid(f"Estimated {said}; change one of the two")
    return task
