"""Work is put into the queue, changed, approved and taken out of it."""

from collections.abc import Mapping, Sequence
from typing import Any

from frontdesk.errors import Conflict, Denied, Invalid
from frontdesk.memory.given import Fields, taken, there
from frontdesk.memory.ids import known, new_id
from frontdesk.memory.model import AiEvent, AiStatus, AiTask
from frontdesk.memory.moments import Edge
from frontdesk.memory.queue import definition, states, store, working
from frontdesk.memory.store import Mine

TASK = "Task"
EDGES = {"due_at": Edge.END}
KNOWN = definition.DEFINING | working.OUTCOME | {"status"}


def create(mine: Mine, fields: Fields, agent_name: str, zone: str | None) -> AiTask:
    """A new piece of work for one of the person's tasks."""
    mine.hold()
    _check_names(fields, definition.DEFINING | {"status"})
    given = definition.typed(taken(mine, fields, zone, EDGES))
    now = mine.clock()
    task_id = known(str(given.get("task_id") or ""), TASK)
    there(task_id if store.is_task(mine, task_id) else None, TASK)
    identity = {
        "id": new_id(now),
        "task_id": task_id,
        "agent_name": agent_name,
        "dependencies": _dependencies(mine, given.get("dependencies") or ()),
    }
    task = definition.made(given, identity, now, by_agent=mine.agent_id is not None)
    _check_pair(mine, task)
    store.add(mine, task)
    store.note(mine, task.id, AiEvent(at=now, from_status=None, to_status=task.status, by_agent=mine.agent_id))
    return store.with_history(mine, task)


def update(mine: Mine, ai_task_id: str, fields: Fields, agent_name: str | None, zone: str | None) -> AiTask:
    """What it is, while nobody works on it, and how it stands, as far as there is a way."""
    mine.hold()
    task = working.held(mine, ai_task_id)
    given = definition.typed(taken(mine, fields, zone, EDGES))
    if given.get("task_id") is not None and known(str(given.pop("task_id")), TASK) != task.task_id:
        raise Invalid("An AI task stays with its task; create one for the other task")
    _check_names(given, KNOWN)
    defining = {name: value for name, value in given.items() if name in definition.DEFINING}
    if agent_name is not None:
        defining["agent_name"] = agent_name
    said = working.Said(
        status=given.get("status"), fields={name: given[name] for name in working.OUTCOME if name in given}
    )
    return _changed(mine, task, defining, said)


def delete(mine: Mine, ai_task_id: str) -> AiTask:
    mine.hold()
    task = working.held(mine, ai_task_id)
    working.check_holder(mine, task, None)
    store.remove(mine, task)
    return task


def approve(mine: Mine, ai_task_id: str) -> AiTask:
    """The person's word that it may be executed as it stands."""
    if mine.agent_id is not None:
        raise Denied("An agent cannot approve work; the person has to do it")
    task = working.held(mine, ai_task_id)
    if task.status is AiStatus.COMPLETED:
        raise Conflict("This AI task is completed; there is nothing left to approve")
    now = mine.clock()
    approved = definition.approved(task, now)
    store.write(mine, approved)
    store.note(mine, task.id, AiEvent(at=now, from_status=task.status, to_status=task.status, note="Approved"))
    return store.with_history(mine, approved)


def _changed(mine: Mine, task: AiTask, defining: Mapping[str, Any], said: working.Said) -> AiTask:
    """Reworded first and then moved, or the other way round where it can be reworded only then."""
    if defining and task.status in states.EDITABLE:
        task = _edit(mine, task, defining)
        defining = {}
    if said.status is not None or said.fields:
        task = working.carry_out(mine, task, said)
    if defining:
        task = _edit(mine, task, defining)
    return store.with_history(mine, task)


def _edit(mine: Mine, task: AiTask, defining: Mapping[str, Any]) -> AiTask:
    if task.status not in states.EDITABLE:
        raise Conflict(f"An AI task that is {task.status} cannot be changed; it must be {_either(states.EDITABLE)}")
    given = dict(defining)
    if given.get("dependencies"):
        given["dependencies"] = _dependencies(mine, given["dependencies"])
        _check_circle(mine, task.id, given["dependencies"])
    after = definition.edited(task, given, mine.clock(), by_agent=mine.agent_id is not None)
    if after.agent_id != task.agent_id:
        _check_pair(mine, after)
    store.write(mine, after)
    return after


def _dependencies(mine: Mine, ids: Sequence[str]) -> tuple[str, ...]:
    """The other pieces of work that are named, each once."""
    named = tuple(dict.fromkeys(known(one, working.AI_TASK) for one in ids))
    if missing := set(named) - set(store.statuses(mine, named)):
        raise Invalid(f"dependencies names an AI task that is not there: {min(missing)}")
    return named


def _check_circle(mine: Mine, ai_task_id: str, ids: Sequence[str]) -> None:
    """Nothing may have to wait for itself."""
    seen, front = set[str](), set(ids)
    while front:
        if ai_task_id in front:
            raise Invalid("These dependencies go in a circle: the AI task would wait for itself")
        seen |= front
        front = store.dependencies(mine, sorted(front)) - seen


def _check_pair(mine: Mine, task: AiTask) -> None:
    if store.is_taken(mine, task.task_id, task.agent_id):
        raise Conflict(f"Agent '{task.agent_id}' already has an AI task for this task; change that one, or delete it")


def _check_names(given: Fields, names: frozenset[str]) -> None:
    if unknown := sorted(name for name in given if name not in names):
        raise Invalid(f"An AI task has no '{unknown[0][:100]}' that could be set here")


def _either(statuses: frozenset[AiStatus]) -> str:
    return " or ".join(sorted(statuses))
