"""Tests several schedulers that start together on due prompts, and cancels while everything is running."""

import random
from pathlib import Path

import pytest

from frontdesk.settings import Settings
from tests.requirements import shows
from tests.support.schedules.installation import SECOND, every, once, open_installation
from tests.support.schedules.processes import Nursery
from tests.support.schedules.receiver import How, Manner

# Several schedulers start together on due prompts: each prompt is sent once, and in order


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


# Cancels during deliveries: after the acknowledgement nothing of that schedule begins, or begins again


CANCEL_AGENTS = [f"agent-{number}" for number in range(10)]


@shows("SCHEDULE-CANCEL")
async def test_nothing_begins_after_its_cancel_though_workers_are_killed_and_agents_refuse(
    settings: Settings, nursery: Nursery, tmp_path: Path
) -> None:
    async with open_installation(tmp_path, settings, nursery, changes=("quick retries",)) as installation:
        dice = random.Random(11)
        installation.receiver.chance(seed=11, slowest=0.1, shares={How.ERROR: 0.3, How.BUSY: 0.2, How.DROP: 0.1})
        numbers = await installation.add(
            *(every(agent, "1s", installation.clock(), times=3) for agent in CANCEL_AGENTS * 4)
        )
        numbers += await installation.add(*(once(agent, installation.clock() + SECOND) for agent in CANCEL_AGENTS * 4))
        crew = installation.start(3)
        dice.shuffle(numbers)
        for count, number in enumerate(numbers[: len(numbers) * 3 // 4]):
            await installation.cancel(number)
            if count % 6 == 0:
                installation.kill(crew.pop(0))
                crew += installation.start()
        await installation.until(installation.is_over)
        installation.stop(*crew)
        history = installation.check()
        assert len(history.diary.cancelled) > len(numbers) // 2


@shows("SCHEDULE-CANCEL")
@pytest.mark.parametrize("lost", [True, False], ids=["its worker is lost", "its agent refuses"])
async def test_what_runs_when_it_is_cancelled_is_not_tried_again(
    lost: bool, settings: Settings, nursery: Nursery, tmp_path: Path
) -> None:
    async with open_installation(tmp_path, settings, nursery, changes=("quick retries",)) as installation:
        installation.receiver.manners("agent", Manner(How.HANG if lost else How.ERROR, seconds=0 if lost else 0.5))
        [number] = await installation.add(every("agent", "1s", installation.clock()))
        [first] = installation.start()
        await installation.until(lambda: installation.begun() == 1)
        await installation.cancel(number)
        await installation.add(once("agent", installation.clock()))
        if lost:
            installation.kill(first)
        [second] = installation.start()
        await installation.until(installation.is_over)
        installation.stop(*([second] if lost else [first, second]))
        history = installation.check()
        assert [row["standing"] for row in history.occurrences] == ["cancelled", "delivered"]
        assert len(history.arrivals) == 2
