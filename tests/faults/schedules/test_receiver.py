"""Tests agents that are down, slow, refuse, hang or hang up: each delivery ends, and no other waits for it."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from frontdesk.settings import Settings
from tests.requirements import shows
from tests.support.schedules.history import Arrival, History
from tests.support.schedules.installation import SECOND, Installation, once, open_installation
from tests.support.schedules.processes import Nursery
from tests.support.schedules.receiver import How, Manner

QUICK = ("quick retries",)
LINE = 100


async def _one(installation: Installation, *manners: Manner, attempts: int = 10) -> tuple[History, Sequence[Arrival]]:
    """The outcome of one prompt whose agent answers in these ways, some time after that."""
    installation.receiver.manners("agent", *manners)
    await installation.add(once("agent", installation.clock(), attempts=attempts))
    crew = installation.start(2)
    await installation.until(installation.is_over)
    installation.stop(*crew)
    history = installation.check()
    return history, history.arrivals


@shows("SCHEDULE-AGENT")
@pytest.mark.parametrize("how", [How.ERROR, How.CUT, How.DROP])
async def test_a_prompt_that_came_to_nothing_is_sent_again_under_the_same_id(
    how: How, settings: Settings, nursery: Nursery, tmp_path: Path
) -> None:
    async with open_installation(tmp_path, settings, nursery, changes=QUICK) as installation:
        history, arrivals = await _one(installation, Manner(how), Manner(how))
        assert [one.attempt for one in arrivals] == [1, 2, 3]
        assert len({one.id for one in arrivals}) == 1
        assert [one.in_doubt for one in arrivals] == [False, True, True], (
            "it may have reached the agent, and that is told"
        )
        assert [row["standing"] for row in history.occurrences] == ["delivered"]
        assert [row["number"] for row in history.attempts] == [1, 2]


@shows("SCHEDULE-AGENT")
async def test_an_agent_that_never_answers_is_given_up_and_asked_again(
    settings: Settings, nursery: Nursery, tmp_path: Path
) -> None:
    async with open_installation(tmp_path, settings, nursery, changes=QUICK, timeout_s=0.3) as installation:
        history, arrivals = await _one(installation, Manner(How.HANG))
        assert [(one.attempt, one.in_doubt) for one in arrivals] == [(1, False), (2, True)]
        assert [row["standing"] for row in history.occurrences] == ["delivered"]


@shows("SCHEDULE-AGENT")
async def test_a_busy_agent_is_waited_for_and_no_attempt_is_counted(
    settings: Settings, nursery: Nursery, tmp_path: Path
) -> None:
    async with open_installation(tmp_path, settings, nursery, changes=QUICK) as installation:
        history, arrivals = await _one(installation, *[Manner(How.BUSY)] * 5, attempts=2)
        assert [one.attempt for one in arrivals] == [1] * 6
        assert [row["standing"] for row in history.occurrences] == ["delivered"]


@shows("SCHEDULE-AGENT")
async def test_who_is_told_to_come_later_does(settings: Settings, nursery: Nursery, tmp_path: Path) -> None:
    async with open_installation(tmp_path, settings, nursery, changes=QUICK) as installation:
        _, [first, second] = await _one(installation, Manner(How.LATER, retry_after="1"))
        assert second.began_us - first.began_us >= SECOND


@shows("SCHEDULE-AGENT")
async def test_a_prompt_that_fails_to_the_last_is_a_dead_letter_and_can_be_sent_again(
    settings: Settings, nursery: Nursery, tmp_path: Path
) -> None:
    async with open_installation(tmp_path, settings, nursery, changes=QUICK) as installation:
        history, arrivals = await _one(installation, *[Manner(How.ERROR)] * 3, attempts=3)
        [row] = history.occurrences
        assert (row["standing"], row["attempt"], len(arrivals)) == ("dead", 3, 3)
        assert "500" in row["reason"]
        assert await installation.past.redrive(row["id"], installation.clock())
        [worker] = installation.start()
        await installation.until(installation.is_over)
        installation.stop(worker)
        assert [row["standing"] for row in installation.check().occurrences] == ["delivered"]


@shows("SCHEDULE-AGENT")
async def test_an_agent_that_does_not_exist_is_not_asked_twice(
    settings: Settings, nursery: Nursery, tmp_path: Path
) -> None:
    async with open_installation(tmp_path, settings, nursery, changes=QUICK) as installation:
        history, arrivals = await _one(installation, Manner(How.UNKNOWN))
        assert [row["standing"] for row in history.occurrences] == ["dead"]
        assert len(arrivals) == 1


@shows("SCHEDULE-AGENT")
async def test_agents_that_are_down_for_a_while_get_everything_when_they_are_back(
    settings: Settings, nursery: Nursery, tmp_path: Path
) -> None:
    async with open_installation(tmp_path, settings, nursery, changes=QUICK) as installation:
        agents = [f"agent-{number}" for number in range(10)]
        installation.receiver.manners("agent-0", Manner(How.HANG))
        await installation.add(*(once(agent, installation.clock() + number) for agent in agents for number in range(3)))
        crew = installation.start(2)
        await installation.until(lambda: "agent-0" in {one.agent for one in installation.arrivals()})
        installation.kill_receiver()
        await installation.add(*(once(agent, installation.clock()) for agent in agents))
        await installation.until(lambda: installation.failures() > len(agents))
        installation.receiver.start()
        await installation.until(installation.is_over)
        installation.stop(*crew)
        history = installation.check()
        assert {row["standing"] for row in history.occurrences} == {"delivered"}
        assert len(history.occurrences) == 40


@shows("SCHEDULE-SLOW")
async def test_one_slow_agent_with_a_long_line_before_it_delays_no_other(
    settings: Settings, nursery: Nursery, tmp_path: Path
) -> None:
    async with open_installation(tmp_path, settings, nursery, concurrency=2) as installation:
        now, quick = installation.clock(), [f"quick-{number}" for number in range(20)]
        installation.receiver.manners("slow", Manner(How.HANG))
        # Everything for the slow agent is due before anything for the others.
        await installation.add(*(once("slow", now - 10 * SECOND + number) for number in range(LINE)))
        await installation.add(*(once(agent, now + number) for agent in quick for number in range(3)))
        [worker] = installation.start()
        await installation.until(lambda: sum(one.how is not None for one in installation.arrivals()) == 60)
        assert [one.how for one in installation.arrivals() if one.agent == "slow"] == [None], "it is at its first still"
        installation.receiver.release("slow")
        await installation.until(installation.is_over)
        installation.stop(worker)
        assert len(installation.check().arrivals) == 60 + LINE
