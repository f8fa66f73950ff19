"""Tests workers that are killed or paused: the whole history stays correct, on SQLite and on PostgreSQL."""

from dataclasses import replace
from pathlib import Path

import pytest

from frontdesk.settings import Settings
from tests.requirements import shows
from tests.support.schedules.history import TABLES, History
from tests.support.schedules.installation import Storm, blow, once, open_installation
from tests.support.schedules.processes import Nursery
from tests.support.schedules.receiver import How, Manner

# kill -9 of workers at random moments, on a shared SQLite file and on PostgreSQL


GALE = Storm(seed=5, kills=30, workers=4, repetitions=4)
HURRICANE = Storm(seed=55, kills=200, workers=4, repetitions=30)


async def _weathered(storm: Storm, settings: Settings, nursery: Nursery, folder: Path) -> History:
    async with open_installation(folder, settings, nursery, changes=("quick retries",)) as installation:
        await blow(installation, storm)
        return installation.check()


@shows("SCHEDULE-KILL")
async def test_workers_killed_at_random_lose_nothing_and_repeat_only_what_they_could_not_tell(
    settings: Settings, nursery: Nursery, tmp_path: Path
) -> None:
    history = await _weathered(GALE, settings, nursery, tmp_path)
    assert len(history.diary.lost) == GALE.kills
    assert len({one.worker for one in history.arrivals}) > GALE.workers


@pytest.mark.slow
@shows("SCHEDULE-KILL")
async def test_two_hundred_kills(settings: Settings, nursery: Nursery, tmp_path: Path) -> None:
    history = await _weathered(HURRICANE, settings, nursery, tmp_path)
    assert len(history.diary.lost) == HURRICANE.kills


# A worker is paused past its lease and then continues: another has done its work, and it changes nothing


AGENTS = [f"agent-{number}" for number in range(8)]
LEASE_S = 1.0
LEASES = "SELECT id, leased_until_us FROM occurrences"


@shows("SCHEDULE-LEASE")
async def test_a_worker_held_still_past_its_lease_changes_nothing_when_it_goes_on(
    settings: Settings, nursery: Nursery, tmp_path: Path
) -> None:
    async with open_installation(tmp_path, settings, nursery, lease_s=LEASE_S) as installation:
        for agent in AGENTS:
            installation.receiver.manners(agent, Manner(How.HANG))
        await installation.add(*(once(agent, installation.clock()) for agent in AGENTS))
        [first] = installation.start()
        await installation.until(lambda: len(installation.arrivals()) == len(AGENTS))
        await installation.hold_still(first)
        [second] = installation.start()
        await installation.until(installation.is_over)
        done = installation.books.rows(TABLES["occurrences"])
        for agent in AGENTS:
            installation.receiver.release(agent)
        installation.go_on(first)
        # After a request to stop, it first finishes the work that it believes it holds.
        installation.stop(first, second)
        assert installation.books.rows(TABLES["occurrences"]) == done
        history = installation.check()
        assert {one.worker for one in history.arrivals[len(AGENTS) :]} == {second}
        assert all(one.in_doubt for one in history.arrivals[len(AGENTS) :])


@shows("SCHEDULE-LEASE")
async def test_what_a_worker_on_another_machine_held_when_it_was_lost_is_free_when_its_lease_ends(
    settings: Settings, nursery: Nursery, tmp_path: Path
) -> None:
    async with open_installation(tmp_path, settings, nursery, lease_s=LEASE_S) as installation:
        for agent in AGENTS:
            installation.receiver.manners(agent, Manner(How.HANG))
        await installation.add(*(once(agent, installation.clock()) for agent in AGENTS))
        [first] = installation.start(orders=replace(installation.orders, machine="another"))
        await installation.until(lambda: len(installation.arrivals()) == len(AGENTS))
        held = {row["id"]: row["leased_until_us"] for row in installation.books.rows(LEASES)}
        installation.kill(first)
        [second] = installation.start()
        await installation.until(installation.is_over)
        installation.stop(second)
        again = installation.check().arrivals[len(AGENTS) :]
        assert {(one.worker, one.in_doubt, one.attempt) for one in again} == {(second, True, 1)}
        assert all(one.began_us > held[one.id] for one in again), "nobody could know before that it was lost"
