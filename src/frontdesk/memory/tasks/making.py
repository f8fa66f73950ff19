"""Makes tasks, and says what they wait for."""

from collections.abc import Sequence
from dataclasses import replace

from frontdesk.errors import Conflict, NotFound
from frontdesk.memory.given import Fields, there
from frontdesk.memory.ids import known, new_id
from frontdesk.memory.model import Relation, Task, TaskLink, TaskStatus
from frontdesk.memory.store import Mine
from frontdesk.memory.tasks import given, rules, store
from frontdesk.memory.tasks.links import store as links
from frontdesk.memory.tasks.upward import settle

WHAT = "Task"


def found(mine: Mine, task_id: str) -> Task:
    """One of the person's own."""
    return there(store.get(mine, known(task_id, WHAT)), WHAT)


def make(mine: Mine, fields: Fields, zone: str | None) -> Task:
    mine.hold()
    said = given.for_new(mine, fields, zone)
    parent = found(mine, said["parent_task_id"]) if said.get("parent_task_id") else None
    place = said.get("subtask_order", store.next_place(mine, said.get("parent_task_id")))
    bare = Task(id=new_id(mine.now), created_at=mine.now, updated_at=mine.now, **{**said, "subtask_order": place})
    task = rules.standing(rules.placed(bare, parent), mine.now)
    given.check(task)
    store.add(mine, task)
    depend(mine, replace(task, dependencies=()), task.dependencies)
    if task.status is TaskStatus.COMPLETED:
        rules.check_unblocked(task, links.still_open(mine, task.id))
    settle(mine, None, task)
    return found(mine, task.id)


def depend(mine: Mine, task: Task, on: Sequence[str]) -> None:
    """Have a task depend on these, and on no others."""
    old, new = set(task.dependencies) - set(on), [one for one in on if one not in task.dependencies]
    if old:
        links.remove_dependencies(mine, task.id, sorted(old))
    for one in new:
        found(mine, one)
    if new:
        rules.check_no_loop(links.waits_for(mine), task.id, new)
    # Ids of one moment have no order among them, and what is given has.
    ids = sorted(new_id(mine.now) for _ in new)
    pairs = zip(ids, new, strict=True)
    links.add(mine, [_link(mine, link_id, task.id, one, Relation.DEPENDENCY) for link_id, one in pairs])


def link(mine: Mine, task_id: str, related_id: str, relation: Relation) -> TaskLink:
    mine.hold()
    task, related = found(mine, task_id), found(mine, related_id)
    if task.id == related.id:
        raise Conflict("A task cannot be linked with itself; name two tasks")
    if any((one.task_id, one.relation) == (task.id, relation) for one in links.every(mine, related.id)):
        raise Conflict(f"These tasks are linked as {relation} already")
    if relation in rules.WAITING:
        rules.check_no_loop(links.waits_for(mine), task.id, [related.id])
    made = _link(mine, new_id(mine.now), task.id, related.id, relation)
    links.add(mine, [made])
    return made


def unlink(mine: Mine, link_id: str) -> TaskLink:
    what = "Relation"
    gone = links.get(mine, known(link_id, what))
    if gone is None:
        raise NotFound(f"{what} not found")
    links.remove(mine, gone.id)
    return gone


def _link(mine: Mine, link_id: str, task_id: str, related_id: str, relation: Relation) -> TaskLink:
    return TaskLink(id=link_id, task_id=task_id, related_task_id=related_id, relation=relation, created_at=mine.now)
