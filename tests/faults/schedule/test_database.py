"""A database that goes away in the middle: crashed and started again, cut off, locked by somebody else, or full."""

from pathlib import Path
from typing import Any

import pytest

from tests.conftest import settings_with
from tests.requirements import shows
from tests.support.postgres import Postgres
from tests.support.schedule.house import House, open_house
from tests.support.schedule.making import SECOND, once
from tests.support.schedule.manners import How, Manner
from tests.support.schedule.outages import disk_full, locked, open_own_postgres, terminate_backends
from tests.support.schedule.processes import Nursery

pytestmark = pytest.mark.anyio
AGENTS = [f"agent-{number}" for number in range(20)]
HELD = AGENTS[:6]
EACH = 10
QUICK = ("quick retries", "quick busy")
ROUNDS = 8
SHORT_S = 2.0
SHORT: dict[str, Any] = {"changes": QUICK, "lease_s": SHORT_S, "timeout_s": 60.0}
RUNNING = "SELECT leased_until_us FROM occurrences WHERE standing = 'running' AND agent_id IN ({agents})"
MEANWHILE = ("answered", "under way")


async def _under_way(house: House, workers: int) -> list[int]:
    """Everybody at work: some agents hold their first delivery until they are released."""
    house.receiver.chance(seed=3, slowest=0.05)
    for agent in HELD:
        house.receiver.manners(agent, Manner(How.HANG))
    await house.add(*(once(agent, house.clock() + number) for agent in AGENTS for number in range(EACH)))
    crew = house.start(workers)
    await house.until(lambda: set(HELD) <= {one.agent for one in house.visits()})
    return crew


async def _finish(house: House, crew: list[int]) -> None:
    """Everything was delivered once, by workers that all lived through it."""
    _release(house)
    await house.until(house.is_over)
    assert set(crew) <= set(house.nursery.alive()), house.said()
    house.stop(*crew)
    history = house.check()
    assert {row["standing"] for row in history.occurrences} == {"delivered"}
    assert len(history.visits) == len(history.occurrences) == EACH * len(AGENTS)


@shows("SCHEDULE-DATABASE")
async def test_postgresql_is_stopped_at_once_and_started_again(nursery: Nursery, tmp_path: Path) -> None:
    with open_own_postgres() as postgres:
        settings = settings_with(FRONTDESK_DATA=tmp_path, FRONTDESK_DATABASE_URL=postgres.server.create_database())
        async with open_house(tmp_path, settings, nursery, changes=QUICK, lease_s=6.0) as house:
            crew = await _under_way(house, 4)
            postgres.crash()
            # What they now have to tell, nobody hears.
            _release(house)
            await house.until(lambda: _answered(house))
            postgres.start()
            await _finish(house, crew)


@shows("SCHEDULE-DATABASE")
async def test_connections_to_postgresql_are_cut_again_and_again(
    postgres: Postgres, nursery: Nursery, tmp_path: Path
) -> None:
    url = postgres.create_database()
    settings = settings_with(FRONTDESK_DATA=tmp_path, FRONTDESK_DATABASE_URL=url)
    async with open_house(tmp_path, settings, nursery, changes=QUICK, lease_s=6.0) as house:
        crew = await _under_way(house, 4)
        cut = 0
        for _ in range(ROUNDS):
            begun = house.begun()
            cut += terminate_backends(url)
            await house.until(lambda: house.begun() > begun)  # noqa: B023 - it is called at once
        assert cut > ROUNDS
        await _finish(house, crew)


@shows("SCHEDULE-DATABASE")
@pytest.mark.parametrize("trouble", ["locked", "full"])
async def test_a_sqlite_file_that_takes_nothing_for_a_while(trouble: str, nursery: Nursery, tmp_path: Path) -> None:
    settings = settings_with(FRONTDESK_DATA=tmp_path)
    async with open_house(tmp_path, settings, nursery, changes=QUICK, lease_s=10.0) as house:
        crew = await _under_way(house, 3)
        file = tmp_path / "frontdesk.db"
        with locked(file) if trouble == "locked" else disk_full(file, crew):
            _release(house)
            await house.until(lambda: _answered(house))
            await house.until(lambda: house.said_by_all().count("does not answer") >= ROUNDS)
        await _finish(house, crew)


def _release(house: House) -> None:
    for agent in HELD:
        house.receiver.release(agent)


def _answered(house: House) -> bool:
    """Whether the agents that held their first delivery have answered it."""
    return set(HELD) <= {one.agent for one in house.visits() if one.how == How.HANG}


@shows("SCHEDULE-DATABASE")
@pytest.mark.parametrize("meanwhile", MEANWHILE)
async def test_postgresql_is_away_for_longer_than_a_lease(meanwhile: str, nursery: Nursery, tmp_path: Path) -> None:
    with open_own_postgres() as postgres:
        settings = settings_with(FRONTDESK_DATA=tmp_path, FRONTDESK_DATABASE_URL=postgres.server.create_database())
        async with open_house(tmp_path, settings, nursery, **SHORT) as house:
            crew = await _under_way(house, 4)
            postgres.crash()
            await _leases_end(house, meanwhile)
            postgres.start()
            await _leased_again(house, meanwhile)
            await _finish(house, crew)


@shows("SCHEDULE-DATABASE")
@pytest.mark.parametrize("meanwhile", MEANWHILE)
async def test_a_sqlite_file_is_locked_for_longer_than_a_lease(
    meanwhile: str, nursery: Nursery, tmp_path: Path
) -> None:
    settings = settings_with(FRONTDESK_DATA=tmp_path)
    async with open_house(tmp_path, settings, nursery, **SHORT) as house:
        crew = await _under_way(house, 3)
        with locked(tmp_path / "frontdesk.db"):
            await _leases_end(house, meanwhile)
        await _leased_again(house, meanwhile)
        await _finish(house, crew)


@shows("SCHEDULE-DATABASE")
@pytest.mark.parametrize("meanwhile", MEANWHILE)
async def test_postgresql_hangs_for_longer_than_a_lease(
    meanwhile: str, postgres: Postgres, nursery: Nursery, tmp_path: Path
) -> None:
    settings = settings_with(FRONTDESK_DATA=tmp_path, FRONTDESK_DATABASE_URL=postgres.create_database())
    async with open_house(tmp_path, settings, nursery, **SHORT) as house:
        crew = await _under_way(house, 4)
        with postgres.frozen():
            await _leases_end(house, meanwhile)
        await _leased_again(house, meanwhile)
        await _finish(house, crew)


async def _leases_end(house: House, meanwhile: str) -> None:
    """Until nobody can have a lease that has not run out; what is under way ends before that, or after it."""
    if meanwhile == "answered":
        _release(house)
    end = house.clock() + int(1.2 * SHORT_S * SECOND)
    await house.until(lambda: house.clock() > end)


async def _leased_again(house: House, meanwhile: str) -> None:
    """Until somebody has leased what is under way still."""
    running = RUNNING.format(agents=", ".join(f"'{agent}'" for agent in HELD))

    def leased() -> bool:
        return sum(row["leased_until_us"] > house.clock() for row in house.books.rows(running)) == len(HELD)

    if meanwhile == "under way":
        await house.until(leased)
