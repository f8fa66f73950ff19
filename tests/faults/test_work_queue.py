"""Tests fifty agents on five hundred pieces of work while some die: each is done once, and none is lost."""

import sys
from collections import Counter
from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from subprocess import PIPE, Popen

import anyio
import pytest

from frontdesk.db.engine import Database
from frontdesk.errors import Conflict
from frontdesk.memory.model import AiStatus, AiTask, AiTaskType, PersonScope
from frontdesk.memory.store import PersonDatabase, PersonTransaction
from frontdesk.memory.work_queue import WorkQueueService, create_work
from frontdesk.memory.work_queue_rules import AiTaskFilter
from frontdesk.settings import Settings
from tests.support.desk import ROOT, clean_environment
from tests.support.memory import add_tasks, add_work, let_lapse, queue_on
from tests.support.waiting import until

ANN = PersonScope("ann")
AGENTS, WORK = 50, 500
REPLICAS = 2
# Every fifth agent dies with its third piece of work, right after it claimed it.
MORTAL, LAST = 5, 3
BRIEF, AMPLE = timedelta(milliseconds=1), timedelta(minutes=10)
SECONDS = 60

# Claims a piece of work, prints which, and waits for the kill.
PROGRAM = """
import anyio
from datetime import timedelta
from frontdesk.db.engine import Database
from frontdesk.memory.model import PersonScope
from frontdesk.memory.store import PersonDatabase
from frontdesk.settings import Settings
from tests.support.memory import queue_on

async def main():
    queue = queue_on(PersonDatabase(await Database.open(Settings.read())))
    taken = await queue.claim(PersonScope("ann", "agent-doomed"), "Ada", lease=timedelta(minutes=10))
    print(taken.id, flush=True)
    await anyio.sleep_forever()

anyio.run(main)
"""


@dataclass
class Race:
    """What everybody can see: which living agents hold work, which agent did what, and which died with what."""

    queues: Sequence[WorkQueueService]
    holding: dict[str, str] = field(default_factory=dict[str, str])
    done_by: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    dead: list[AiTask] = field(default_factory=list[AiTask])

    async def run(self, number: int, *, mortal: bool) -> None:
        """One agent, from its first claim until no work is left for it."""
        scope, queue = PersonScope("ann", f"agent-{number}"), self.queues[number % len(self.queues)]
        taken = 0
        while True:
            dies = mortal and number % MORTAL == 0 and taken == LAST - 1
            task = await queue.claim(scope, "worker", lease=BRIEF if dies else AMPLE)
            if task is None:
                return
            taken += 1
            if dies:
                self.dead.append(task)
                return
            await self._work(scope, queue, task)

    async def shift(self, *, mortal: bool) -> None:
        async with anyio.create_task_group() as agents:
            for number in range(AGENTS):
                agents.start_soon(partial(self.run, number, mortal=mortal))

    async def _work(self, scope: PersonScope, queue: WorkQueueService, task: AiTask) -> None:
        name = scope.agent_id or ""
        assert self.holding.setdefault(task.id, name) == name, "no two who live hold the same"
        assert (task.leased_by, task.status) == (name, AiStatus.IN_PROGRESS)
        await anyio.lowlevel.checkpoint()
        await queue.complete(scope, task.id, {"output": name}, claims=task.claims)
        assert self.holding.pop(task.id) == name
        self.done_by.setdefault(task.id, []).append(name)


@pytest.fixture
async def replicas(settings: Settings) -> AsyncGenerator[Sequence[PersonDatabase]]:
    async with AsyncExitStack() as stack:
        opened = [await Database.open(settings) for _ in range(REPLICAS)]
        for database in opened:
            stack.push_async_callback(database.close)
        yield [PersonDatabase(database) for database in opened]


async def test_fifty_agents_do_five_hundred_pieces_of_work_once_each_though_some_die_holding_one(
    replicas: Sequence[PersonDatabase],
) -> None:
    made = await _fill(replicas[0])
    race = Race([queue_on(records) for records in replicas])
    await race.shift(mortal=True)
    assert len(race.dead) == AGENTS // MORTAL
    ended = max(task.leased_until or datetime.min.replace(tzinfo=UTC) for task in race.dead)
    await until(lambda: datetime.now(UTC) > ended)
    await race.shift(mortal=False)

    deaths = Counter(task.id for task in race.dead)
    assert set(race.done_by) == made, "none is lost"
    assert {len(names) for names in race.done_by.values()} == {1}, "none is done twice"
    queue = race.queues[0]
    assert (await queue.stats(ANN)).by_status == {"completed": WORK}
    page = await queue.list(ANN, AiTaskFilter(limit=WORK))
    assert {task.id: task.claims for task in page.items} == {name: 1 + deaths[name] for name in made}
    assert all(task.execution_result == {"output": race.done_by[task.id][0]} for task in page.items)
    for task in race.dead:
        told = (await queue.get(ANN, task.id)).history
        assert [step.by_agent for step in told if step.to_status is AiStatus.COMPLETED] == race.done_by[task.id]
        assert sum("lapsed; taken over" in step.note for step in told) == deaths[task.id]
        with pytest.raises(Conflict, match="another agent works on it now"):
            await queue.complete(PersonScope("ann", task.leased_by), task.id, {"output": "late"}, claims=task.claims)


async def test_what_an_agent_held_that_was_killed_goes_to_the_next_one(
    settings: Settings, replicas: Sequence[PersonDatabase]
) -> None:
    records = replicas[0]
    work = await add_work(records, ANN)
    await anyio.to_thread.run_sync(_claim_and_be_killed, settings, work.id)
    queue, eve = queue_on(records), PersonScope("ann", "agent-eve")
    assert await queue.claim(eve, "Ada") is None, "nobody knows yet that it is dead"
    await let_lapse(records, ANN)
    taken = await queue.claim(eve, "Ada")
    assert taken is not None
    assert (taken.id, taken.claims, taken.leased_by) == (work.id, 2, "agent-eve")
    assert "'agent-doomed' lapsed" in taken.history[-1].note
    assert (await queue.complete(eve, work.id)).status is AiStatus.COMPLETED


async def _fill(records: PersonDatabase) -> set[str]:
    task_ids = await add_tasks(records, ANN, WORK)

    def fill(mine: PersonTransaction) -> set[str]:
        given = {"objective": "x", "task_type": AiTaskType.CODING, "agent_id": "agent-worker"}
        return {create_work(mine, {**given, "task_id": one}, "worker", None).id for one in task_ids}

    return await records.change(ANN, fill, small=False)


def _claim_and_be_killed(settings: Settings, expected: str) -> None:
    url = settings.database_url
    shared = {} if url is None else {"FRONTDESK_DATABASE_URL": url.get_secret_value()}
    environment = clean_environment(FRONTDESK_DATA=str(settings.data), PYTHONPATH=str(ROOT), **shared)
    with Popen([sys.executable, "-c", PROGRAM], env=environment, stdout=PIPE, text=True) as process:
        assert process.stdout is not None
        taken = process.stdout.readline().strip()
        process.kill()
        process.wait(SECONDS)
    assert taken == expected
