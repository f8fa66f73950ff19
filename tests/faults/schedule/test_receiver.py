"""Agents that are down, slow, refuse, hang or break off: each delivery comes to its end, and no other waits for it."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from frontdesk.settings import Settings
from tests.requirements import shows
from tests.support.schedule.history import History, Visit
from tests.support.schedule.house import House, open_house
from tests.support.schedule.making import SECOND, once
from tests.support.schedule.manners import How, Manner
from tests.support.schedule.processes import Nursery

pytestmark = pytest.mark.anyio
QUICK = ("quick retries",)
LINE = 100


async def _one(house: House, *manners: Manner, attempts: int = 10) -> tuple[History, Sequence[Visit]]:
    """What becomes of one prompt whose agent answers in these manners, and well after that."""
    house.receiver.manners("agent", *manners)
    await house.add(once("agent", house.clock(), attempts=attempts))
    crew = house.start(2)
    await house.until(house.is_over)
    house.stop(*crew)
    history = house.check()
    return history, history.visits


@shows("SCHEDULE-AGENT")
@pytest.mark.parametrize("how", [How.ERROR, How.CUT, How.DROP])
async def test_a_prompt_that_came_to_nothing_is_sent_again_under_the_same_id(
    how: How, settings: Settings, nursery: Nursery, tmp_path: Path
) -> None:
    async with open_house(tmp_path, settings, nursery, changes=QUICK) as house:
        history, visits = await _one(house, Manner(how), Manner(how))
        assert [one.attempt for one in visits] == [1, 2, 3]
        assert len({one.id for one in visits}) == 1
        assert [one.in_doubt for one in visits] == [False, True, True], (
            "it may have reached the agent, and that is told"
        )
        assert [row["standing"] for row in history.occurrences] == ["delivered"]
        assert [row["number"] for row in history.attempts] == [1, 2]


@shows("SCHEDULE-AGENT")
async def test_an_agent_that_never_answers_is_given_up_and_asked_again(
    settings: Settings, nursery: Nursery, tmp_path: Path
) -> None:
    async with open_house(tmp_path, settings, nursery, changes=QUICK, timeout_s=0.3) as house:
        history, visits = await _one(house, Manner(How.HANG))
        assert [(one.attempt, one.in_doubt) for one in visits] == [(1, False), (2, True)]
        assert [row["standing"] for row in history.occurrences] == ["delivered"]


@shows("SCHEDULE-AGENT")
async def test_a_busy_agent_is_waited_for_and_no_attempt_is_counted(
    settings: Settings, nursery: Nursery, tmp_path: Path
) -> None:
    async with open_house(tmp_path, settings, nursery, changes=QUICK) as house:
        history, visits = await _one(house, *[Manner(How.BUSY)] * 5, attempts=2)
        assert [one.attempt for one in visits] == [1] * 6
        assert [row["standing"] for row in history.occurrences] == ["delivered"]


@shows("SCHEDULE-AGENT")
async def test_who_is_told_to_come_later_does(settings: Settings, nursery: Nursery, tmp_path: Path) -> None:
    async with open_house(tmp_path, settings, nursery, changes=QUICK) as house:
        _, [first, second] = await _one(house, Manner(How.LATER, retry_after="1"))
        assert second.began_us - first.began_us >= SECOND


@shows("SCHEDULE-AGENT")
async def test_a_prompt_that_fails_to_the_last_is_a_dead_letter_and_can_be_sent_again(
    settings: Settings, nursery: Nursery, tmp_path: Path
) -> None:
    async with open_house(tmp_path, settings, nursery, changes=QUICK) as house:
        history, visits = await _one(house, *[Manner(How.ERROR)] * 3, attempts=3)
        [row] = history.occurrences
        assert (row["standing"], row["attempt"], len(visits)) == ("dead", 3, 3)
        assert "500" in row["reason"]
        assert await house.past.redrive(row["id"], house.clock())
        [worker] = house.start()
        await house.until(house.is_over)
        house.stop(worker)
        assert [row["standing"] for row in house.check().occurrences] == ["delivered"]


@shows("SCHEDULE-AGENT")
async def test_an_agent_that_does_not_exist_is_not_asked_twice(
    settings: Settings, nursery: Nursery, tmp_path: Path
) -> None:
    async with open_house(tmp_path, settings, nursery, changes=QUICK) as house:
        history, visits = await _one(house, Manner(How.UNKNOWN))
        assert [row["standing"] for row in history.occurrences] == ["dead"]
        assert len(visits) == 1


@shows("SCHEDULE-AGENT")
async def test_agents_that_are_down_for_a_while_get_everything_when_they_are_back(
    settings: Settings, nursery: Nursery, tmp_path: Path
) -> None:
    async with open_house(tmp_path, settings, nursery, changes=QUICK) as house:
        agents = [f"agent-{number}" for number in range(10)]
        house.receiver.manners("agent-0", Manner(How.HANG))
        await house.add(*(once(agent, house.clock() + number) for agent in agents for number in range(3)))
        crew = house.start(2)
        await house.until(lambda: "agent-0" in {one.agent for one in house.visits()})
        house.kill_receiver()
        await house.add(*(once(agent, house.clock()) for agent in agents))
        await house.until(lambda: house.failures() > len(agents))
        house.receiver.start()
        await house.until(house.is_over)
        house.stop(*crew)
        history = house.check()
        assert {row["standing"] for row in history.occurrences} == {"delivered"}
        assert len(history.occurrences) == 40


@shows("SCHEDULE-SLOW")
async def test_one_slow_agent_with_a_long_line_before_it_delays_no_other(
    settings: Settings, nursery: Nursery, tmp_path: Path
) -> None:
    async with open_house(tmp_path, settings, nursery, concurrency=2) as house:
        now, quick = house.clock(), [f"quick-{number}" for number in range(20)]
        house.receiver.manners("slow", Manner(How.HANG))
        # Everything of the slow one is due before anything of the others.
        await house.add(*(once("slow", now - 10 * SECOND + number) for number in range(LINE)))
        await house.add(*(once(agent, now + number) for agent in quick for number in range(3)))
        [worker] = house.start()
        await house.until(lambda: sum(one.how is not None for one in house.visits()) == 60)
        assert [one.how for one in house.visits() if one.agent == "slow"] == [None], "it is at its first still"
        house.receiver.release("slow")
        await house.until(house.is_over)
        house.stop(worker)
        assert len(house.check().visits) == 60 + LINE
