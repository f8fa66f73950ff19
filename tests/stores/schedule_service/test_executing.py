"""Who runs due prompts by hand, and who would wait for itself."""

import anyio
import pytest

from frontdesk.schedules.model import SECOND, RunStatus, now_us
from frontdesk.schedules.requests import ListRuns, ScheduleChange
from tests.stores.schedule_service.conftest import Installation, agent, begun, program
from tests.support.scheduling import OPERATOR

pytestmark = pytest.mark.anyio
SECONDS = 30


async def delivered(installation: Installation) -> set[int]:
    """The schedules that were run, as soon as any was."""
    with anyio.fail_after(SECONDS):
        while True:
            wanted = ListRuns(standing=RunStatus.DELIVERED)
            runs = (await installation.schedules.queries.history(agent(installation.ada), wanted)).runs
            if runs:
                return {run.schedule_id for run in runs}
            await anyio.lowlevel.checkpoint()


@pytest.mark.parametrize("user", [None, "ann"])
async def test_an_agent_does_not_wait_for_the_end_of_its_own_turn(installation: Installation, user: str | None) -> None:
    due = await installation.put(installation.ada, due_us=now_us() - SECOND)
    await installation.put(installation.bob, due_us=now_us() - SECOND)
    (told,) = await installation.schedules.executor.run_due(agent(installation.ada, user))
    assert (told.id, told.agent_id, told.delivered, told.later) == (due.id, installation.ada, False, True)
    assert told.error is not None
    assert "when your present turn has ended" in told.error
    assert told.delivery_id == f"run-{due.id}-{(due.intended_us or 0) // 1000}"
    assert await delivered(installation) == {due.id}


async def test_an_agent_in_a_scheduled_run_does_not_wait_however_it_is_named(installation: Installation) -> None:
    await installation.put(installation.ada, due_us=now_us() - 2 * SECOND)
    other = await installation.put(installation.ada, due_us=now_us() - SECOND)
    await begun(installation)
    (told,) = await installation.schedules.executor.run_due(program(installation.ada))
    assert (told.id, told.delivered, told.later) == (other.id, False, True)


async def test_a_loop_ends_where_something_waits_for_the_callers_own_turn(installation: Installation) -> None:
    rounds: list[int] = []

    async def told(number: int, _executed: object) -> None:
        rounds.append(number)

    await installation.put(installation.ada, due_us=now_us() - SECOND)
    with anyio.fail_after(SECONDS):
        assert await installation.schedules.executor.loop(agent(installation.ada), 1, 300, told) == 1
    assert rounds == [1]


async def test_the_next_time_is_one_at_which_something_is_due(installation: Installation) -> None:
    async def next_us() -> int | None:
        return (await installation.schedules.executor.state(OPERATOR)).next_us

    assert await next_us() is None
    soon, moved, later = [
        await installation.put(agent_id) for agent_id in (installation.ada, installation.bob, installation.bob)
    ]
    assert await next_us() == soon.intended_us
    await installation.schedules.cancel(OPERATOR, soon.id)
    assert await next_us() == moved.intended_us
    await installation.schedules.update(OPERATOR, moved.id, ScheduleChange(every="9h"))
    assert await next_us() == later.intended_us
    await installation.schedules.pause(OPERATOR, later.id)
    assert await next_us() == (await installation.schedules.queries.get(OPERATOR, moved.id)).intended_us
