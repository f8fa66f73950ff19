"""Tests a database that fails during work: crashed and restarted, cut off, locked by another process, or full."""

from pathlib import Path
from typing import Any

import pytest

from tests.conftest import settings_with
from tests.requirements import shows
from tests.support.postgres import Postgres
from tests.support.schedules.installation import SECOND, Installation, once, open_installation
from tests.support.schedules.outages import disk_full, locked, open_own_postgres, terminate_backends
from tests.support.schedules.processes import Nursery
from tests.support.schedules.receiver import How, Manner

AGENTS = [f"agent-{number}" for number in range(20)]
HELD = AGENTS[:6]
EACH = 10
QUICK = ("quick retries", "quick busy")
ROUNDS = 8
SHORT_S = 2.0
SHORT: dict[str, Any] = {"changes": QUICK, "lease_s": SHORT_S, "timeout_s": 60.0}
RUNNING = "SELECT leased_until_us FROM occurrences WHERE standing = 'running' AND agent_id IN ({agents})"
MEANWHILE = ("answered", "under way")


async def _under_way(installation: Installation, workers: int) -> list[int]:
    """All workers are busy: some agents hold their first delivery until they are released."""
    installation.receiver.chance(seed=3, slowest=0.05)
    for agent in HELD:
        installation.receiver.manners(agent, Manner(How.HANG))
    await installation.add(*(once(agent, installation.clock() + number) for agent in AGENTS for number in range(EACH)))
    crew = installation.start(workers)
    await installation.until(lambda: set(HELD) <= {one.agent for one in installation.arrivals()})
    return crew


async def _finish(installation: Installation, crew: list[int]) -> None:
    """Everything was delivered once, by workers that all survived."""
    _release(installation)
    await installation.until(installation.is_over)
    assert set(crew) <= set(installation.nursery.alive()), installation.said()
    installation.stop(*crew)
    history = installation.check()
    assert {row["standing"] for row in history.occurrences} == {"delivered"}
    assert len(history.arrivals) == len(history.occurrences) == EACH * len(AGENTS)


@shows("SCHEDULE-DATABASE")
async def test_postgresql_is_stopped_at_once_and_started_again(nursery: Nursery, tmp_path: Path) -> None:
    with open_own_postgres() as postgres:
        settings = settings_with(FRONTDESK_DATA=tmp_path, FRONTDESK_DATABASE_URL=postgres.server.create_database())
        async with open_installation(tmp_path, settings, nursery, changes=QUICK, lease_s=6.0) as installation:
            crew = await _under_way(installation, 4)
            postgres.crash()
            # Nobody receives the results that they now report.
            _release(installation)
            await installation.until(lambda: _answered(installation))
            postgres.start()
            await _finish(installation, crew)


@shows("SCHEDULE-DATABASE")
async def test_connections_to_postgresql_are_cut_again_and_again(
    postgres: Postgres, nursery: Nursery, tmp_path: Path
) -> None:
    url = postgres.create_database()
    settings = settings_with(FRONTDESK_DATA=tmp_path, FRONTDESK_DATABASE_URL=url)
    async with open_installation(tmp_path, settings, nursery, changes=QUICK, lease_s=6.0) as installation:
        crew = await _under_way(installation, 4)
        cut = 0
        for _ in range(ROUNDS):
            begun = installation.begun()
            cut += terminate_backends(url)
            await installation.until(lambda: installation.begun() > begun)  # noqa: B023 - it is called at once
        assert cut > ROUNDS
        await _finish(installation, crew)


@shows("SCHEDULE-DATABASE")
@pytest.mark.parametrize("trouble", ["locked", "full"])
async def test_a_sqlite_file_that_takes_nothing_for_a_while(trouble: str, nursery: Nursery, tmp_path: Path) -> None:
    settings = settings_with(FRONTDESK_DATA=tmp_path)
    async with open_installation(tmp_path, settings, nursery, changes=QUICK, lease_s=10.0) as installation:
        crew = await _under_way(installation, 3)
        file = tmp_path / "frontdesk.db"
        with locked(file) if trouble == "locked" else disk_full(file, crew):
            _release(installation)
            await installation.until(lambda: _answered(installation))
            await installation.until(lambda: installation.said_by_all().count("does not answer") >= ROUNDS)
        await _finish(installation, crew)


def _release(installation: Installation) -> None:
    for agent in HELD:
        installation.receiver.release(agent)


def _answered(installation: Installation) -> bool:
    """Whether the agents that held their first delivery have answered it."""
    return set(HELD) <= {one.agent for one in installation.arrivals() if one.how == How.HANG}


@shows("SCHEDULE-DATABASE")
@pytest.mark.parametrize("meanwhile", MEANWHILE)
async def test_postgresql_is_away_for_longer_than_a_lease(meanwhile: str, nursery: Nursery, tmp_path: Path) -> None:
    with open_own_postgres() as postgres:
        settings = settings_with(FRONTDESK_DATA=tmp_path, FRONTDESK_DATABASE_URL=postgres.server.create_database())
        async with open_installation(tmp_path, settings, nursery, **SHORT) as installation:
            crew = await _under_way(installation, 4)
            postgres.crash()
            await _leases_end(installation, meanwhile)
            postgres.start()
            await _leased_again(installation, meanwhile)
            await _finish(installation, crew)


@shows("SCHEDULE-DATABASE")
@pytest.mark.parametrize("meanwhile", MEANWHILE)
async def test_a_sqlite_file_is_locked_for_longer_than_a_lease(
    meanwhile: str, nursery: Nursery, tmp_path: Path
) -> None:
    settings = settings_with(FRONTDESK_DATA=tmp_path)
    async with open_installation(tmp_path, settings, nursery, **SHORT) as installation:
        crew = await _under_way(installation, 3)
        with locked(tmp_path / "frontdesk.db"):
            await _leases_end(installation, meanwhile)
        await _leased_again(installation, meanwhile)
        await _finish(installation, crew)


@shows("SCHEDULE-DATABASE")
@pytest.mark.parametrize("meanwhile", MEANWHILE)
async def test_postgresql_hangs_for_longer_than_a_lease(
    meanwhile: str, postgres: Postgres, nursery: Nursery, tmp_path: Path
) -> None:
    settings = settings_with(FRONTDESK_DATA=tmp_path, FRONTDESK_DATABASE_URL=postgres.create_database())
    async with open_installation(tmp_path, settings, nursery, **SHORT) as installation:
        crew = await _under_way(installation, 4)
        with postgres.frozen():
            await _leases_end(installation, meanwhile)
        await _leased_again(installation, meanwhile)
        await _finish(installation, crew)


async def _leases_end(installation: Installation, meanwhile: str) -> None:
    """Wait until every lease must have expired; running deliveries end before that, or after it."""
    if meanwhile == "answered":
        _release(installation)
    end = installation.clock() + int(1.2 * SHORT_S * SECOND)
    await installation.until(lambda: installation.clock() > end)


async def _leased_again(installation: Installation, meanwhile: str) -> None:
    """Wait until a worker has leased the unfinished deliveries."""
    running = RUNNING.format(agents=", ".join(f"'{agent}'" for agent in HELD))

    def leased() -> bool:
        return sum(row["leased_until_us"] > installation.clock() for row in installation.books.rows(running)) == len(
            HELD
        )

    if meanwhile == "under way":
        await installation.until(leased)
