"""Work is taken under a lease, told about, and brought to an end."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from frontdesk.errors import Conflict, Invalid
from frontdesk.loop.text import json_object, one_line
from frontdesk.memory.given import there
from frontdesk.memory.ids import known
from frontdesk.memory.model import AiEvent, AiStatus, AiTask
from frontdesk.memory.queue import guard, steps, store
from frontdesk.memory.queue.line import store as line
from frontdesk.memory.store import Mine

AI_TASK = "AI task"
OUTCOME = frozenset({"progress_message", "error_message", "execution_result", "actual_cost_usd", "actual_duration_min"})
NOTED = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Begin:
    """How somebody takes a piece of work. `lease` is how long they may be silent before they are taken for dead."""

    estimated_cost_usd: float | None = None
    estimated_duration_min: int | None = None
    agent_name: str | None = None
    lease: timedelta | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """What is said about work in progress; `claims` is which taking of it is meant, if somebody says so."""

    status: AiStatus | None = None
    fields: Mapping[str, Any] = field(default_factory=dict[str, Any])
    claims: int | None = None
    lease: timedelta | None = None


def accept(mine: Mine, ai_task_id: str, begin: Begin) -> AiTask:
    """Take this one."""
    task = held(mine, ai_task_id)
    now = mine.clock()
    _check_free(mine, task, now)
    given = {"estimated_cost_usd": begin.estimated_cost_usd, "estimated_duration_min": begin.estimated_duration_min}
    task = replace(task, **{name: value for name, value in given.items() if value is not None})
    return store.with_history(mine, _take(mine, task, begin, now))


def claim(mine: Mine, agent: str, lease: timedelta | None) -> AiTask | None:
    """Take the next one that waits for the agent and can be begun."""
    now = mine.clock()
    passed: list[str] = []
    while (task := line.next_for(mine, agent, now, passed)) is not None:
        if not guard.obstacle(task, _unfinished(mine, task)):
            return store.with_history(mine, _take(mine, task, Begin(lease=lease), now))
        passed.append(task.id)
    return None


def renew(mine: Mine, ai_task_id: str, said: Said) -> AiTask:
    """Hold it for longer."""
    task = held(mine, ai_task_id)
    check_holder(mine, task, said.claims)
    if task.status is not AiStatus.IN_PROGRESS:
        raise _not_under_way(task)
    renewed = steps.renewed(task, said.lease or steps.LEASE, mine.clock())
    store.write(mine, renewed)
    return store.with_history(mine, renewed)


def report(mine: Mine, ai_task_id: str, said: Said) -> AiTask:
    return store.with_history(mine, carry_out(mine, held(mine, ai_task_id), said))


def carry_out(mine: Mine, task: AiTask, said: Said) -> AiTask:
    """What was said is kept, and the work goes on, or comes to an end. Any word of the holder renews the lease."""
    check_holder(mine, task, said.claims)
    now = mine.clock()
    told = _with(task, said.fields)
    match said.status:
        case None | AiStatus.IN_PROGRESS if task.status is AiStatus.IN_PROGRESS:
            return _go_on(mine, task, steps.renewed(told, said.lease or steps.LEASE, now))
        case None:
            raise _not_under_way(task)
        case AiStatus.IN_PROGRESS:
            return _take(mine, told, Begin(lease=said.lease), now)
        case status:
            words = said.fields.get("error_message") or said.fields.get("progress_message") or ""
            return _move(mine, task, steps.moved(told, status, now), one_line(words, NOTED))


def held(mine: Mine, ai_task_id: str) -> AiTask:
    """One of the person's, which nobody else changes until the transaction ends."""
    return there(store.held(mine, known(ai_task_id, AI_TASK)), AI_TASK)


def shown(mine: Mine, ai_task_id: str) -> AiTask:
    """One of the person's, with its history."""
    return there(store.get(mine, known(ai_task_id, AI_TASK)), AI_TASK)


def check_holder(mine: Mine, task: AiTask, claims: int | None) -> None:
    """Refuse an agent that does not hold it, or no longer; the person may always have their way."""
    if claims is not None and claims != task.claims:
        raise Conflict(f"Claim {claims} of this AI task is over, it is at {task.claims}: another agent works on it now")
    if mine.agent_id is not None and task.status is AiStatus.IN_PROGRESS and task.leased_by != mine.agent_id:
        raise Conflict(f"'{task.leased_by}' has taken this AI task: another agent works on it now")


def _take(mine: Mine, task: AiTask, begin: Begin, now: datetime) -> AiTask:
    if in_the_way := guard.obstacle(task, _unfinished(mine, task)):
        raise Conflict(in_the_way)
    holder = mine.agent_id or begin.agent_name or task.agent_id
    lease = steps.lease_for(begin.lease, task.estimated_duration_min)
    lapsed = f"The lease of '{task.leased_by}' lapsed; taken over" if task.status is AiStatus.IN_PROGRESS else ""
    return _move(mine, task, steps.begun(task, holder, lease, now), lapsed)


def _move(mine: Mine, before: AiTask, after: AiTask, words: str) -> AiTask:
    """Kept as it is now, with a step in its history."""
    store.write(mine, after)
    note = ". ".join(one for one in (words, _warning(before, after)) if one)
    event = AiEvent(
        at=after.updated_at, from_status=before.status, to_status=after.status, by_agent=mine.agent_id, note=note
    )
    store.note(mine, after.id, event)
    return after


def _go_on(mine: Mine, before: AiTask, after: AiTask) -> AiTask:
    """Kept as it is now; that it goes on is no step, but for what the person should hear of."""
    if _warning(before, after):
        return _move(mine, before, after, "")
    store.write(mine, after)
    return after


def _unfinished(mine: Mine, task: AiTask) -> list[str]:
    """What it depends on and is not completed; what was deleted is in nobody's way."""
    stands = store.statuses(mine, task.dependencies)
    return [one for one in task.dependencies if stands.get(one, AiStatus.COMPLETED) is not AiStatus.COMPLETED]


def _check_free(mine: Mine, task: AiTask, now: datetime) -> None:
    if not steps.lives(task, now):
        return
    until = f"{task.leased_until:%Y-%m-%dT%H:%M:%SZ}"
    if task.leased_by == mine.agent_id:
        raise Conflict(f"You hold this AI task already, until {until}; report on it, which makes that longer")
    raise Conflict(f"'{task.leased_by}' works on this AI task and holds it until {until}; take another one")


def _not_under_way(task: AiTask) -> Conflict:
    return Conflict(f"This AI task is {task.status}, and nobody works on it; accept it first")


def _with(task: AiTask, fields: Mapping[str, Any]) -> AiTask:
    """With what was told of it; results of several reports stand side by side."""
    said = {name: value for name, value in fields.items() if value is not None}
    if "execution_result" in said:
        result = json_object({name: one for name, one in said["execution_result"].items() if one is not None})
        if result is None:
            raise Invalid("execution_result must be a JSON object that is not nested deeper than 64 levels")
        said["execution_result"] = {**task.execution_result, **result}
    return replace(task, **said)


def _warning(before: AiTask, after: AiTask) -> str:
    """That a cap is passed, when it is passed."""
    was, now = (
        guard.beyond(task.guardrails, task.actual_cost_usd, task.actual_duration_min) for task in (before, after)
    )
    return f"Warning: {now}" if now and now != was else ""
