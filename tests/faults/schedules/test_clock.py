"""Tests a moved clock and a long absence of workers: the runs are exactly those of the policies."""

from dataclasses import replace
from pathlib import Path

import pytest

from frontdesk.schedules.model import Misfire, ScheduleDefinition, SchedulePolicy
from frontdesk.settings import Settings
from tests.conftest import settings_with
from tests.requirements import shows
from tests.support.postgres import Postgres
from tests.support.schedules import oracle
from tests.support.schedules.history import History
from tests.support.schedules.installation import SECOND, Installation, cron, every, once, open_installation
from tests.support.schedules.invariants import times_of
from tests.support.schedules.processes import Nursery
from tests.support.schedules.receiver import How, Manner

HOUR, DAY = 3600, 86400
POLICIES = {
    "once": SchedulePolicy(misfire=Misfire.ONCE),
    "all": SchedulePolicy(misfire=Misfire.ALL),
    "skip": SchedulePolicy(misfire=Misfire.SKIP),
    "late": SchedulePolicy(misfire=Misfire.ALL, max_late_s=2 * HOUR),
    "late-once": SchedulePolicy(misfire=Misfire.ONCE, max_late_s=600),
    "late-skip": SchedulePolicy(misfire=Misfire.SKIP, max_late_s=30),
}
CHANGES = ("quick retries", "light sleep")


def _rules(now_us: int) -> list[ScheduleDefinition]:
    """Each policy on an interval, on a cron rule, and with a limited count; and two one-time schedules."""
    soon = now_us + 5 * SECOND
    made: list[ScheduleDefinition] = []
    for name, policy in POLICIES.items():
        made.append(every(f"interval-{name}", "17m", soon, policy=policy))
        made.append(cron(f"cron-{name}", "*/20 * * * *", soon, policy=policy))
        made.append(every(f"counted-{name}", "10m", soon, policy=policy, times=4))
    return [*made, once("once", soon), once("later", soon + DAY * SECOND // 2)]


@shows("SCHEDULE-CLOCK")
@pytest.mark.parametrize(
    ("there", "away"),
    [(True, HOUR), (True, DAY), (False, DAY)],
    ids=["the clock is set on by an hour", "the clock is set on by a day", "nobody was there for a day"],
)
async def test_what_was_missed_is_made_up_for_as_the_policy_says(
    there: bool, away: int, settings: Settings, nursery: Nursery, tmp_path: Path
) -> None:
    async with open_installation(tmp_path, settings, nursery, changes=CHANGES) as installation:
        installation.clock.hold()
        await installation.add(*_rules(installation.clock()))
        crew = installation.start(3 if there else 0)
        installation.clock.move(away)
        crew = crew or installation.start(3)
        await installation.until(installation.is_quiet)
        installation.stop(*crew)
        _check_predicted(installation, installation.check())


def _check_predicted(installation: Installation, history: History) -> None:
    for number, new in installation.made.items():
        meant = oracle.times(new.trigger, history.now_us)
        predicted = oracle.after_downtime(meant, new.policy, history.now_us, new.max_repetitions)
        rows = [row for row in history.occurrences if row["schedule_id"] == number]
        run = [row["intended_us"] for row in rows if row["standing"] == "delivered"]
        passed = sorted(at for row in rows if row["standing"] == "skipped" for at in times_of(row, meant))
        assert (run, passed) == (list(predicted.run), list(predicted.skipped)), (new.agent_id, len(meant))


@shows("SCHEDULE-CLOCK")
@pytest.mark.parametrize("away", [HOUR, DAY], ids=["an hour", "a day"])
async def test_a_clock_that_is_set_back_makes_nothing_early_and_nothing_twice(
    away: int, settings: Settings, nursery: Nursery, tmp_path: Path
) -> None:
    async with open_installation(tmp_path, settings, nursery, changes=CHANGES) as installation:
        now = installation.clock()
        await installation.add(*(every(f"agent-{number}", "1s", now, times=4) for number in range(5)))
        await installation.add(once("later", now + 3 * SECOND))
        crew = installation.start(2)
        # A prompt that is being delivered when the clock moves was due when its delivery began.
        await installation.until(lambda: len(installation.arrivals()) >= 8 and installation.is_quiet())
        installation.clock.move(-away)
        early = len(installation.arrivals())
        await installation.add(*(once(f"other-{number}", installation.clock()) for number in range(5)))
        await installation.until(installation.is_quiet)
        assert installation.arrivals()[early:], "what is due by the new time is not held up by the old"
        installation.clock.move(away)
        await installation.until(installation.is_over)
        installation.stop(*crew)
        history = installation.check()
        assert len(history.arrivals) == len(history.occurrences) == 26


@shows("SCHEDULE-CLOCK")
@pytest.mark.parametrize("away", [HOUR, DAY, -HOUR, -DAY], ids=["an hour on", "a day on", "an hour back", "a day back"])
async def test_what_is_under_way_when_the_clock_is_moved_is_not_sent_again(
    away: int, settings: Settings, nursery: Nursery, tmp_path: Path
) -> None:
    async with open_installation(tmp_path, settings, nursery, changes=CHANGES, lease_s=3.0) as installation:
        agents = [f"agent-{number}" for number in range(6)]
        for agent in agents:
            installation.receiver.manners(agent, Manner(How.HANG))
        await installation.add(*(once(agent, installation.clock()) for agent in agents))
        crew = installation.start(3)
        await installation.until(lambda: len(installation.arrivals()) == len(agents))
        installation.clock.move(away)
        # Other workers come by in the meantime, and look for abandoned work.
        await installation.add(*(once(f"other-{number}", installation.clock()) for number in range(6)))
        await installation.until(lambda: len(installation.arrivals()) >= 2 * len(agents))
        for agent in agents:
            installation.receiver.release(agent)
        await installation.until(installation.is_over)
        installation.stop(*crew)
        # The reader looks back from a time at which everything was due.
        installation.clock.move(max(0, -away))
        assert len(installation.check().arrivals) == 2 * len(agents)


@shows("SCHEDULE-CLOCK")
async def test_workers_whose_clocks_are_wrong_go_by_the_clock_of_postgresql(
    postgres: Postgres, nursery: Nursery, tmp_path: Path
) -> None:
    settings = settings_with(FRONTDESK_DATA=tmp_path, FRONTDESK_DATABASE_URL=postgres.create_database())
    async with open_installation(tmp_path, settings, nursery, clock="") as installation:
        now = installation.clock()
        await installation.add(*(every(f"agent-{number}", "1s", now + SECOND, times=3) for number in range(10)))
        crew = [
            *installation.start(orders=replace(installation.orders, changes=("an hour fast",))),
            *installation.start(orders=replace(installation.orders, changes=("an hour slow",))),
        ]
        await installation.until(installation.is_over)
        installation.stop(*crew)
        history = installation.check()
        assert len(history.arrivals) == len(history.occurrences) == 30
        assert {one.worker for one in history.arrivals} == set(crew)
