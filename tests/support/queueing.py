"""A work queue with work in it, and leases that are over without waiting."""

from collections.abc import Sequence
from datetime import timedelta
from functools import partial
from typing import Any

from sqlalchemy import update

from frontdesk.db.schema import ai_tasks
from frontdesk.memory.model import AiTask, AiTaskType, PersonScope, Task
from frontdesk.memory.store import PersonDatabase, PersonTransaction
from frontdesk.memory.tasks_store import insert_task
from frontdesk.memory.validation import new_id
from frontdesk.memory.work_queue import WorkQueueService

NAMES = {"agent-ada": "Ada", "agent-bob": "Bob"}


async def name_of(agent_id: str) -> str | None:
    return NAMES.get(agent_id)


def queue_on(records: PersonDatabase) -> WorkQueueService:
    return WorkQueueService(records, name_of)


async def add_tasks(records: PersonDatabase, scope: PersonScope, count: int = 1) -> Sequence[str]:
    """So many tasks of a person."""
    return await records.change(scope, partial(_add_tasks, count=count))


async def add_work(records: PersonDatabase, scope: PersonScope, agent_id: str = "agent-ada", **fields: Any) -> AiTask:
    """Work for an agent, on a task of its own."""
    [task_id] = await add_tasks(records, PersonScope(scope.user_id))
    given = {"objective": "Compare three hotels", "task_type": AiTaskType.RESEARCH, "agent_id": agent_id}
    return await queue_on(records).create(scope, {**given, "task_id": task_id, **fields})


async def let_lapse(records: PersonDatabase, scope: PersonScope) -> None:
    """From now on every lease that the person's agents hold is over."""

    def age(mine: PersonTransaction) -> None:
        leased = (ai_tasks.c.user_id == mine.user_id, ai_tasks.c.leased_until.is_not(None))
        mine.connection.execute(
            update(ai_tasks).where(*leased).values(leased_until=mine.lease_time() - timedelta(hours=1))
        )

    await records.change(scope, age)


def _add_tasks(mine: PersonTransaction, count: int) -> Sequence[str]:
    made = [
        Task(id=new_id(mine.now), title=f"Task {number}", created_at=mine.now, updated_at=mine.now)
        for number in range(count)
    ]
    for task in made:
        insert_task(mine, task)
    return [task.id for task in made]
