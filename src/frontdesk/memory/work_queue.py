"""Offers the work queue: add work, claim it under a lease, report on it, complete it."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from frontdesk.errors import Conflict, Denied, Invalid, Unavailable
from frontdesk.identity import rights
from frontdesk.memory.model import AiEvent, AiStatus, AiTask, PersonScope
from frontdesk.memory.store import PersonDatabase, PersonTransaction
from frontdesk.memory.times import DayEdge
from frontdesk.memory.validation import Fields, RecordPage, new_id, parse_fields, parse_id, require_found
from frontdesk.memory.work_queue_rules import (
    DEFAULT_LEASE,
    DEFINING_FIELDS,
    EDITABLE_STATUSES,
    AiTaskFilter,
    AiTaskStats,
    approve_ai_task,
    change_status,
    choose_lease,
    describe_exceeded_caps,
    edit_ai_task,
    find_obstacle,
    has_live_lease,
    new_ai_task,
    parse_work_choices,
    renew_lease,
    start_work,
)
from frontdesk.memory.work_queue_store import (
    add_history,
    agent_has_work,
    ai_task_stats,
    delete_ai_task_row,
    fetch_ai_task,
    fetch_dependencies,
    fetch_statuses,
    insert_ai_task,
    insert_event,
    list_ai_tasks,
    list_waiting_work,
    lock_ai_task,
    lock_next_work,
    save_ai_task,
    task_exists,
)
from frontdesk.text import one_line, parse_json_object, storable

AI_TASK_NAME = "AI task"
OUTCOME_FIELDS = frozenset(
    {"progress_message", "error_message", "execution_result", "actual_cost_usd", "actual_duration_min"}
)
MAX_NOTE = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkClaim:
    """Who claims work, and how. `lease` is how long the worker may be silent before another may take the work."""

    estimated_cost_usd: float | None = None
    estimated_duration_min: int | None = None
    agent_name: str | None = None
    lease: timedelta | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkReport:
    """A report on work in progress; `claims` is the number of the claim that the report belongs to, if given."""

    status: AiStatus | None = None
    fields: Mapping[str, Any] = field(default_factory=dict[str, Any])
    claims: int | None = None
    lease: timedelta | None = None


def accept_work(transaction: PersonTransaction, ai_task_id: str, begin: WorkClaim) -> AiTask:
    """Claim this piece of work."""
    task = get_locked_work(transaction, ai_task_id)
    now = transaction.lease_time()
    _check_free(transaction, task, now)
    given = {"estimated_cost_usd": begin.estimated_cost_usd, "estimated_duration_min": begin.estimated_duration_min}
    task = replace(task, **{name: value for name, value in given.items() if value is not None})
    return add_history(transaction, _start(transaction, task, begin, now))


def claim_next_work(transaction: PersonTransaction, agent: str, lease: timedelta | None) -> AiTask | None:
    """Claim the next startable piece of work that waits for the agent."""
    now = transaction.lease_time()
    passed: list[str] = []
    while (task := lock_next_work(transaction, agent, now, passed)) is not None:
        if not find_obstacle(task, _unfinished_dependencies(transaction, task)):
            return add_history(transaction, _start(transaction, task, WorkClaim(lease=lease), now))
        passed.append(task.id)
    return None


def renew_claim(transaction: PersonTransaction, ai_task_id: str, report: WorkReport) -> AiTask:
    """Extend the lease."""
    task = get_locked_work(transaction, ai_task_id)
    check_holder(transaction, task, report.claims)
    if task.status is not AiStatus.IN_PROGRESS:
        raise _not_in_progress(task)
    renewed = renew_lease(task, report.lease or DEFAULT_LEASE, transaction.lease_time())
    save_ai_task(transaction, renewed)
    return add_history(transaction, renewed)


def report_work(transaction: PersonTransaction, ai_task_id: str, report: WorkReport) -> AiTask:
    return add_history(transaction, apply_report(transaction, get_locked_work(transaction, ai_task_id), report))


def apply_report(transaction: PersonTransaction, task: AiTask, report: WorkReport) -> AiTask:
    """Store the report, and continue or end the work. Every report of the holder renews the lease."""
    check_holder(transaction, task, report.claims)
    now = transaction.lease_time()
    told = _merge_outcome(task, report.fields)
    match report.status:
        case None | AiStatus.IN_PROGRESS if task.status is AiStatus.IN_PROGRESS:
            return _save_progress(transaction, task, renew_lease(told, report.lease or DEFAULT_LEASE, now))
        case None:
            raise _not_in_progress(task)
        case AiStatus.IN_PROGRESS:
            return _start(transaction, told, WorkClaim(lease=report.lease), now)
        case status:
            words = report.fields.get("error_message") or report.fields.get("progress_message") or ""
            return _save_step(transaction, task, change_status(told, status, now), one_line(words, MAX_NOTE))


def get_locked_work(transaction: PersonTransaction, ai_task_id: str) -> AiTask:
    """One of the person's pieces of work, locked until the transaction ends."""
    return require_found(lock_ai_task(transaction, parse_id(ai_task_id, AI_TASK_NAME)), AI_TASK_NAME)


def get_work(transaction: PersonTransaction, ai_task_id: str) -> AiTask:
    """One of the person's pieces of work, with its history."""
    return require_found(fetch_ai_task(transaction, parse_id(ai_task_id, AI_TASK_NAME)), AI_TASK_NAME)


def check_holder(transaction: PersonTransaction, task: AiTask, claims: int | None) -> None:
    """Raise an error if the agent does not hold the work now; the person may always change it."""
    if claims is not None and claims != task.claims:
        raise Conflict(f"Claim {claims} of this AI task is over, it is at {task.claims}: another agent works on it now")
    if (
        transaction.agent_id is not None
        and task.status is AiStatus.IN_PROGRESS
        and task.leased_by != transaction.agent_id
    ):
        raise Conflict(f"'{task.leased_by}' has taken this AI task: another agent works on it now")


def _start(transaction: PersonTransaction, task: AiTask, begin: WorkClaim, now: datetime) -> AiTask:
    if in_the_way := find_obstacle(task, _unfinished_dependencies(transaction, task)):
        raise Conflict(in_the_way)
    holder = transaction.agent_id or begin.agent_name or task.agent_id
    lease = choose_lease(begin.lease, task.estimated_duration_min)
    lapsed = f"The lease of '{task.leased_by}' lapsed; taken over" if task.status is AiStatus.IN_PROGRESS else ""
    return _save_step(transaction, task, start_work(task, holder, lease, now), lapsed)


def _save_step(transaction: PersonTransaction, before: AiTask, after: AiTask, words: str) -> AiTask:
    """Save the work with a step in its history."""
    save_ai_task(transaction, after)
    note = ". ".join(one for one in (words, _cap_warning(before, after)) if one)
    event = AiEvent(
        at=after.updated_at, from_status=before.status, to_status=after.status, by_agent=transaction.agent_id, note=note
    )
    insert_event(transaction, after.id, event)
    return after


def _save_progress(transaction: PersonTransaction, before: AiTask, after: AiTask) -> AiTask:
    """Save the work; only what a person should know, such as an exceeded cap, becomes a step in its history."""
    if _cap_warning(before, after):
        return _save_step(transaction, before, after, "")
    save_ai_task(transaction, after)
    return after


def _unfinished_dependencies(transaction: PersonTransaction, task: AiTask) -> list[str]:
    """The dependencies that are not completed; deleted ones do not count."""
    stands = fetch_statuses(transaction, task.dependencies)
    return [one for one in task.dependencies if stands.get(one, AiStatus.COMPLETED) is not AiStatus.COMPLETED]


def _check_free(transaction: PersonTransaction, task: AiTask, now: datetime) -> None:
    if not has_live_lease(task, now):
        return
    until = f"{task.leased_until:%Y-%m-%dT%H:%M:%SZ}"
    if task.leased_by == transaction.agent_id:
        raise Conflict(f"You hold this AI task already, until {until}; report on it, which makes that longer")
    raise Conflict(f"'{task.leased_by}' works on this AI task and holds it until {until}; take another one")


def _not_in_progress(task: AiTask) -> Conflict:
    return Conflict(f"This AI task is {task.status}, and nobody works on it; accept it first")


def _merge_outcome(task: AiTask, fields: Mapping[str, Any]) -> AiTask:
    """Merge the outcome into the work; results of several reports are all kept."""
    said = {name: value for name, value in fields.items() if value is not None}
    if "execution_result" in said:
        result = parse_json_object({name: one for name, one in said["execution_result"].items() if one is not None})
        if result is None:
            raise Invalid("execution_result must be a JSON object that is not nested deeper than 64 levels")
        said["execution_result"] = {**task.execution_result, **result}
    return replace(task, **said)


def _cap_warning(before: AiTask, after: AiTask) -> str:
    """A warning if this change exceeds a cap; empty otherwise."""
    was, now = (
        describe_exceeded_caps(task.guardrails, task.actual_cost_usd, task.actual_duration_min)
        for task in (before, after)
    )
    return f"Warning: {now}" if now and now != was else ""


TASK_NAME = "Task"
TIME_FIELDS = {"due_at": DayEdge.END}
UPDATABLE_FIELDS = DEFINING_FIELDS | OUTCOME_FIELDS | {"status"}


def create_work(transaction: PersonTransaction, fields: Fields, agent_name: str, zone: str | None) -> AiTask:
    """Create a piece of work for one of the person's tasks."""
    transaction.lock_person()
    _check_field_names(fields, DEFINING_FIELDS | {"status"})
    given = parse_work_choices(parse_fields(transaction, fields, zone, TIME_FIELDS))
    now = transaction.lease_time()
    task_id = parse_id(str(given.get("task_id") or ""), TASK_NAME)
    require_found(task_id if task_exists(transaction, task_id) else None, TASK_NAME)
    identity = {
        "id": new_id(now),
        "task_id": task_id,
        "agent_name": agent_name,
        "dependencies": _parse_dependencies(transaction, given.get("dependencies") or ()),
    }
    task = new_ai_task(given, identity, now, by_agent=transaction.agent_id is not None)
    _check_agent_has_none(transaction, task)
    insert_ai_task(transaction, task)
    insert_event(
        transaction, task.id, AiEvent(at=now, from_status=None, to_status=task.status, by_agent=transaction.agent_id)
    )
    return add_history(transaction, task)


def update_work(
    transaction: PersonTransaction, ai_task_id: str, fields: Fields, agent_name: str | None, zone: str | None
) -> AiTask:
    """Change the definition, if nobody works on it, and the status, if the transition exists."""
    transaction.lock_person()
    task = get_locked_work(transaction, ai_task_id)
    given = parse_work_choices(parse_fields(transaction, fields, zone, TIME_FIELDS))
    if given.get("task_id") is not None and parse_id(str(given.pop("task_id")), TASK_NAME) != task.task_id:
        raise Invalid("An AI task stays with its task; create one for the other task")
    _check_field_names(given, UPDATABLE_FIELDS)
    defining = {name: value for name, value in given.items() if name in DEFINING_FIELDS}
    if agent_name is not None:
        defining["agent_name"] = agent_name
    said = WorkReport(
        status=given.get("status"), fields={name: given[name] for name in OUTCOME_FIELDS if name in given}
    )
    return _edit_and_report(transaction, task, defining, said)


def delete_work(transaction: PersonTransaction, ai_task_id: str) -> AiTask:
    transaction.lock_person()
    task = get_locked_work(transaction, ai_task_id)
    check_holder(transaction, task, None)
    delete_ai_task_row(transaction, task)
    return task


def approve_work(transaction: PersonTransaction, ai_task_id: str) -> AiTask:
    """The person approves the work as it is now."""
    if transaction.agent_id is not None:
        raise Denied("An agent cannot approve work; the person has to do it")
    task = get_locked_work(transaction, ai_task_id)
    if task.status is AiStatus.COMPLETED:
        raise Conflict("This AI task is completed; there is nothing left to approve")
    now = transaction.lease_time()
    approved = approve_ai_task(task, now)
    save_ai_task(transaction, approved)
    insert_event(transaction, task.id, AiEvent(at=now, from_status=task.status, to_status=task.status, note="Approved"))
    return add_history(transaction, approved)


def _edit_and_report(
    transaction: PersonTransaction, task: AiTask, defining: Mapping[str, Any], report: WorkReport
) -> AiTask:
    """Edit, then change the status; the other way round if the edit is only possible in the new status."""
    if defining and task.status in EDITABLE_STATUSES:
        task = _edit(transaction, task, defining)
        defining = {}
    if report.status is not None or report.fields:
        task = apply_report(transaction, task, report)
    if defining:
        task = _edit(transaction, task, defining)
    return add_history(transaction, task)


def _edit(transaction: PersonTransaction, task: AiTask, defining: Mapping[str, Any]) -> AiTask:
    if task.status not in EDITABLE_STATUSES:
        raise Conflict(
            f"An AI task that is {task.status} cannot be changed; it must be {_join_statuses(EDITABLE_STATUSES)}"
        )
    given = dict(defining)
    if given.get("dependencies"):
        given["dependencies"] = _parse_dependencies(transaction, given["dependencies"])
        _check_no_cycle(transaction, task.id, given["dependencies"])
    after = edit_ai_task(task, given, transaction.lease_time(), by_agent=transaction.agent_id is not None)
    if after.agent_id != task.agent_id:
        _check_agent_has_none(transaction, after)
    save_ai_task(transaction, after)
    return after


def _parse_dependencies(transaction: PersonTransaction, ids: Sequence[str]) -> tuple[str, ...]:
    """Check the ids of the dependencies; each counts once."""
    named = tuple(dict.fromkeys(parse_id(one, AI_TASK_NAME) for one in ids))
    if missing := set(named) - set(fetch_statuses(transaction, named)):
        raise Invalid(f"dependencies names an AI task that is not there: {min(missing)}")
    return named


def _check_no_cycle(transaction: PersonTransaction, ai_task_id: str, ids: Sequence[str]) -> None:
    """Raise an error if a piece of work would wait for itself."""
    seen, front = set[str](), set(ids)
    while front:
        if ai_task_id in front:
            raise Invalid("These dependencies go in a circle: the AI task would wait for itself")
        seen |= front
        front = fetch_dependencies(transaction, sorted(front)) - seen


def _check_agent_has_none(transaction: PersonTransaction, task: AiTask) -> None:
    if agent_has_work(transaction, task.task_id, task.agent_id):
        raise Conflict(f"Agent '{task.agent_id}' already has an AI task for this task; change that one, or delete it")


def _check_field_names(fields: Fields, names: frozenset[str]) -> None:
    if unknown := sorted(name for name in fields if name not in names):
        raise Invalid(f"An AI task has no '{unknown[0][:100]}' that could be set here")


def _join_statuses(statuses: frozenset[AiStatus]) -> str:
    return " or ".join(sorted(statuses))


DEFAULT_QUEUED = 100
MAX_AGENT_NAME = 200
REPORTABLE_STATUSES = (AiStatus.IN_PROGRESS, AiStatus.COMPLETED, AiStatus.FAILED, AiStatus.PAUSED)
RESULT_FIELDS = ("output", "artifacts", "logs", "metrics")


class WorkQueueService:
    """`name_of` returns the agent host's name for an agent id, None if it does not know the id.

    A single AI task includes its history; lists do not.
    """

    def __init__(self, records: PersonDatabase, name_of: Callable[[str], Awaitable[str | None]]) -> None:
        self._records = records
        self._name_of = name_of

    async def create(self, scope: PersonScope, fields: Fields, zone: str | None = None) -> AiTask:
        """Add work to the queue: it is assigned to its agent immediately, unless its status is `pending`."""
        scope.require(rights.AI_TASKS_WRITE)
        name = await self._find_agent_name(fields) or ""
        return await self._records.change(scope, partial(create_work, fields=fields, agent_name=name, zone=zone))

    async def list(self, scope: PersonScope, filters: AiTaskFilter) -> RecordPage[AiTask]:
        scope.require(rights.AI_TASKS_READ)
        return await self._records.read(scope, partial(list_ai_tasks, filters=filters))

    async def list_waiting(self, scope: PersonScope, agent_name: str, limit: int = DEFAULT_QUEUED) -> Sequence[AiTask]:
        """The work that waits for an agent, by its name or id, the oldest first; also work whose lease expired."""
        scope.require(rights.AI_TASKS_READ)

        def look(transaction: PersonTransaction) -> Sequence[AiTask]:
            return list_waiting_work(transaction, agent_name, transaction.lease_time(), limit)

        return await self._records.read(scope, look)

    async def get(self, scope: PersonScope, ai_task_id: str) -> AiTask:
        scope.require(rights.AI_TASKS_READ)
        return await self._records.read(scope, partial(get_work, ai_task_id=ai_task_id))

    async def update(self, scope: PersonScope, ai_task_id: str, fields: Fields, zone: str | None = None) -> AiTask:
        """Change the definition, if nobody works on it, and the status, if the transition exists."""
        scope.require(rights.AI_TASKS_WRITE)
        name = await self._find_agent_name(fields)
        work = partial(update_work, ai_task_id=ai_task_id, fields=fields, agent_name=name, zone=zone)
        return await self._records.change(scope, work)

    async def delete(self, scope: PersonScope, ai_task_id: str) -> AiTask:
        """Delete the work from the queue; returns it as it was."""
        scope.require(rights.AI_TASKS_WRITE)
        return await self._records.change(scope, partial(delete_work, ai_task_id=ai_task_id))

    async def approve(self, scope: PersonScope, ai_task_id: str) -> AiTask:
        """Approve the work as it is now; only the person can. A later edit by an agent needs a new approval."""
        scope.require(rights.AI_TASKS_WRITE)
        return await self._records.change(scope, partial(approve_work, ai_task_id=ai_task_id))

    async def accept(
        self,
        scope: PersonScope,
        ai_task_id: str,
        estimated_cost_usd: float | None = None,
        estimated_duration_min: int | None = None,
        *,
        agent_name: str | None = None,
        lease: timedelta | None = None,
    ) -> AiTask:
        """Claim this piece of work; `agent_name` names the worker if the caller is no agent.

        The default lease is a quarter of an hour, or the estimated duration of the work.
        """
        scope.require(rights.AI_TASKS_WRITE)
        begin = WorkClaim(
            estimated_cost_usd=estimated_cost_usd,
            estimated_duration_min=estimated_duration_min,
            agent_name=agent_name,
            lease=lease,
        )
        return await self._records.change(scope, partial(accept_work, ai_task_id=ai_task_id, begin=begin))

    async def claim(
        self, scope: PersonScope, agent_name: str | None = None, *, lease: timedelta | None = None
    ) -> AiTask | None:
        """Claim the agent's next piece of work, the highest priority first; None if no work can begin.

        Two workers never claim the same work. Work whose lease expired is claimed again.
        """
        scope.require(rights.AI_TASKS_WRITE)
        agent = agent_name or scope.agent_id
        if not agent:
            raise Invalid("Say for which agent the work is: give agent_name")
        return await self._records.change(scope, partial(claim_next_work, agent=agent, lease=lease))

    async def renew(
        self, scope: PersonScope, ai_task_id: str, claims: int, *, lease: timedelta | None = None
    ) -> AiTask:
        """Extend the lease; `claims` is the value from the claim."""
        scope.require(rights.AI_TASKS_WRITE)
        said = WorkReport(claims=claims, lease=lease)
        return await self._records.change(scope, partial(renew_claim, ai_task_id=ai_task_id, report=said))

    async def report(
        self,
        scope: PersonScope,
        ai_task_id: str,
        status: AiStatus | str | None = None,
        fields: Fields | None = None,
        *,
        claims: int | None = None,
        lease: timedelta | None = None,
    ) -> AiTask:
        """Report on the work and renew the lease. Only its holder or the person can.

        Costs and times above their caps are stored too, because they are already spent; the history gets a warning.
        """
        scope.require(rights.AI_TASKS_WRITE)
        if status is not None and status not in REPORTABLE_STATUSES:
            raise Invalid(f"status must be one of {', '.join(REPORTABLE_STATUSES)}")
        stands = None if status is None else AiStatus(status)
        said = WorkReport(status=stands, fields=_parse_report(fields or {}), claims=claims, lease=lease)
        return await self._records.change(scope, partial(report_work, ai_task_id=ai_task_id, report=said))

    async def complete(
        self, scope: PersonScope, ai_task_id: str, fields: Fields | None = None, *, claims: int | None = None
    ) -> AiTask:
        """Complete the work. `fields`: output, artifacts, logs, metrics, actual_cost_usd, actual_duration_min.

        All of them are stored; missing minutes are counted from the start of the work.
        """
        given = dict(fields or {})
        result = {name: given.pop(name) for name in RESULT_FIELDS if name in given}
        told = {**given, "execution_result": result} if result else given
        return await self.report(scope, ai_task_id, AiStatus.COMPLETED, told, claims=claims)

    async def fail(
        self, scope: PersonScope, ai_task_id: str, error_message: str, *, claims: int | None = None
    ) -> AiTask:
        """Mark the work as failed, with the reason. It can be assigned again."""
        return await self.report(scope, ai_task_id, AiStatus.FAILED, {"error_message": error_message}, claims=claims)

    async def stats(self, scope: PersonScope, zone: str | None = None) -> AiTaskStats:
        scope.require(rights.AI_TASKS_READ)
        return await self._records.read(scope, partial(ai_task_stats, zone=zone))

    async def _find_agent_name(self, fields: Fields) -> str | None:
        """The agent's name: as given, else from its host, else its id; None if no agent is given."""
        agent_id, given = fields.get("agent_id"), fields.get("agent_name")
        if given or not agent_id:
            return storable(given) if given else None
        try:
            return storable(await self._name_of(agent_id) or agent_id)[:MAX_AGENT_NAME]
        except Unavailable:
            # Work can be planned while the agent host is unreachable.
            return storable(agent_id)


def _parse_report(fields: Fields) -> Fields:
    """Check the fields of a report, and make them storable."""
    if unknown := sorted(set(fields) - OUTCOME_FIELDS):
        raise Invalid(f"A report has no '{unknown[0][:100]}'; it has {', '.join(sorted(OUTCOME_FIELDS))}")
    return {name: storable(value) if isinstance(value, str) else value for name, value in fields.items()}
