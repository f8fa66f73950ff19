"""Several schedulers started at once on what is already due: each prompt goes out once, and in order."""

from pathlib import Path

import pytest

from frontdesk.settings import Settings
from tests.requirements import shows
from tests.support.schedule.house import open_installation
from tests.support.schedule.making import SECOND, every, once
from tests.support.schedule.manners import How, Manner
from tests.support.schedule.processes import Nursery

pytestmark = pytest.mark.anyio
AGENTS = [f"agent-{number}" for number in range(40)]
ROUNDS = 5


@shows("SCHEDULE-MANY")
@pytest.mark.parametrize("count", [2, 6])
async def test_schedulers_started_at_once_send_everything_once(
    count: int, settings: Settings, nursery: Nursery, tmp_path: Path
) -> None:
    async with open_installation(tmp_path, settings, nursery) as installation:
        now = installation.clock()
        await installation.add(*(once(agent, now - number) for agent in AGENTS for number in range(6)))
        await installation.add(*(every(agent, "1s", now - 3 * SECOND, times=5) for agent in AGENTS))
        crew = installation.start(count)
        await installation.until(installation.is_over)
        installation.stop(*crew)
        history = installation.check()
        assert len(history.arrivals) == len(history.occurrences) == 11 * len(AGENTS)
        assert {row["standing"] for row in history.occurrences} == {"delivered"}
        assert len({one.worker for one in history.arrivals}) > 1


@shows("SCHEDULE-MANY")
async def test_a_worker_that_is_told_to_stop_leaves_the_rest_to_the_others_at_once(
    settings: Settings, nursery: Nursery, tmp_path: Path
) -> None:
    async with open_installation(tmp_path, settings, nursery) as installation:
        installation.receiver.chance(seed=1, slowest=0.2)
        crew = installation.start(2)
        for _ in range(ROUNDS):
            begun = installation.begun()
            await installation.add(
                *(once(agent, installation.clock() + number) for agent in AGENTS for number in range(2))
            )
            await installation.until(lambda: installation.begun() > begun + len(AGENTS) // 2)  # noqa: B023 - it is called at once
            crew += installation.start()
            installation.stop(crew.pop(0))
        await installation.until(installation.is_over)
        installation.stop(*crew)
        assert len(installation.check().arrivals) == 2 * ROUNDS * len(AGENTS), "nothing was sent twice"


@shows("SCHEDULE-MANY")
async def test_a_delivery_that_outlasts_its_workers_stop_is_handed_on_as_one_in_doubt(
    settings: Settings, nursery: Nursery, tmp_path: Path
) -> None:
    async with open_installation(tmp_path, settings, nursery, drain_s=0.2) as installation:
        installation.receiver.manners("agent", Manner(How.HANG))
        await installation.add(once("agent", installation.clock()))
        [first] = installation.start()
        await installation.until(lambda: installation.begun() == 1)
        [second] = installation.start()
        installation.cut_short(first)
        await installation.until(installation.is_over)
        installation.stop(second)
        history = installation.check()
        assert [(one.worker, one.attempt, one.in_doubt) for one in history.arrivals] == [
            (first, 1, False),
            (second, 1, True),
        ]
        assert [row["error"] for row in history.attempts] == ["The worker stopped before this ended"]
