"""Cancels while everything is under way: once one was acknowledged nothing of that schedule begins, or begins again."""

import random
from pathlib import Path

import pytest

from frontdesk.settings import Settings
from tests.requirements import shows
from tests.support.schedule.house import open_house
from tests.support.schedule.making import SECOND, every, once
from tests.support.schedule.manners import How, Manner
from tests.support.schedule.processes import Nursery

pytestmark = pytest.mark.anyio
AGENTS = [f"agent-{number}" for number in range(10)]


@shows("SCHEDULE-CANCEL")
async def test_nothing_begins_after_its_cancel_though_workers_are_killed_and_agents_refuse(
    settings: Settings, nursery: Nursery, tmp_path: Path
) -> None:
    async with open_house(tmp_path, settings, nursery, changes=("quick retries",)) as house:
        dice = random.Random(11)
        house.receiver.chance(seed=11, slowest=0.1, shares={How.ERROR: 0.3, How.BUSY: 0.2, How.DROP: 0.1})
        numbers = await house.add(*(every(agent, "1s", house.clock(), times=3) for agent in AGENTS * 4))
        numbers += await house.add(*(once(agent, house.clock() + SECOND) for agent in AGENTS * 4))
        crew = house.start(3)
        dice.shuffle(numbers)
        for count, number in enumerate(numbers[: len(numbers) * 3 // 4]):
            await house.cancel(number)
            if count % 6 == 0:
                house.kill(crew.pop(0))
                crew += house.start()
        await house.until(house.is_over)
        house.stop(*crew)
        history = house.check()
        assert len(history.diary.cancelled) > len(numbers) // 2


@shows("SCHEDULE-CANCEL")
@pytest.mark.parametrize("lost", [True, False], ids=["its worker is lost", "its agent refuses"])
async def test_what_runs_when_it_is_cancelled_is_not_tried_again(
    lost: bool, settings: Settings, nursery: Nursery, tmp_path: Path
) -> None:
    async with open_house(tmp_path, settings, nursery, changes=("quick retries",)) as house:
        house.receiver.manners("agent", Manner(How.HANG if lost else How.ERROR, seconds=0 if lost else 0.5))
        [number] = await house.add(every("agent", "1s", house.clock()))
        [first] = house.start()
        await house.until(lambda: house.begun() == 1)
        await house.cancel(number)
        await house.add(once("agent", house.clock()))
        if lost:
            house.kill(first)
        [second] = house.start()
        await house.until(house.is_over)
        house.stop(*([second] if lost else [first, second]))
        history = house.check()
        assert [row["standing"] for row in history.occurrences] == ["cancelled", "delivered"]
        assert len(history.visits) == 2
