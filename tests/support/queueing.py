"""A work queue with work in it, and leases that are over without waiting."""

from collections.abc import Sequence
from datetime import timedelta
from functools import partial
from typing import Any

from sqlalchemy import update

from frontdesk.db.schema import ai_tasks
from frontdesk.memory.ids import new_id
from frontdesk.memory.model import AiTask, AiTaskType, Task
from frontdesk.memory.queue.service import Queue
from frontdesk.memory.scope import Scope
from frontdesk.memory.store import Mine, Records
from frontdesk.memory.tasks import store as tasks

NAMES = {"agent-ada": "Ada", "agent-bob": "Bob"}


async def name_of(agent_id: str) -> str | None:
    return NAMES.get(agent_id)


def queue_on(records: Records) -> Queue:
    return Queue(records, name_of)


async def add_tasks(records: Records, scope: Scope, count: int = 1) -> Sequence[str]:
    """So many tasks of a person."""
    return await records.change(scope, partial(_add_tasks, count=count))


async def add_work(records: Records, scope: Scope, agent_id: str = "agent-ada", **fields: Any) -> AiTask:
    """Work for an agent, on a task of its own."""
    [task_id] = await add_tasks(records, Scope(scope.user_id))
    given = {"objective": "Compare three hotels", "task_type": AiTaskType.RESEARCH, "agent_id": agent_id}
    return await queue_on(records).create(scope, {**given, "task_id": task_id, **fields})


async def let_lapse(records: Records, scope: Scope) -> None:
    """From now on every lease that the person's agents hold is over."""

    def age(mine: Mine) -> None:
        leased = (ai_tasks.c.user_id == mine.user_id, ai_tasks.c.leased_until.is_not(None))
        mine.connection.execute(update(ai_tasks).where(*leased).values(leased_until=mine.clock() - timedelta(hours=1)))

    await records.change(scope, age)


def _add_tasks(mine: Mine, count: int) -> Sequence[str]:
    made = [
        Task(id=new_id(mine.now), title=f"Task {number}", created_at=mine.now, updated_at=mine.now)
        for number in range(count)
    ]
    for task in made:
        tasks.add(mine, task)
    return [task.id for task in made]
