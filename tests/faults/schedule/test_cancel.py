"""Cancels while everything is under way: once one was acknowledged nothing of that schedule begins, or begins again."""

import random
from pathlib import Path

import pytest

from frontdesk.settings import Settings
from tests.requirements import shows
from tests.support.schedule.house import open_installation
from tests.support.schedule.making import SECOND, every, once
from tests.support.schedule.manners import How, Manner
from tests.support.schedule.processes import Nursery

pytestmark = pytest.mark.anyio
AGENTS = [f"agent-{number}" for number in range(10)]


@shows("SCHEDULE-CANCEL")
async def test_nothing_begins_after_its_cancel_though_workers_are_killed_and_agents_refuse(
    settings: Settings, nursery: Nursery, tmp_path: Path
) -> None:
    async with open_installation(tmp_path, settings, nursery, changes=("quick retries",)) as installation:
        dice = random.Random(11)
        installation.receiver.chance(seed=11, slowest=0.1, shares={How.ERROR: 0.3, How.BUSY: 0.2, How.DROP: 0.1})
        numbers = await installation.add(*(every(agent, "1s", installation.clock(), times=3) for agent in AGENTS * 4))
        numbers += await installation.add(*(once(agent, installation.clock() + SECOND) for agent in AGENTS * 4))
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
