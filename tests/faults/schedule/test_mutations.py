"""Take away what the scheduler stands on, one thing at a time: the reader of histories must notice."""

from pathlib import Path

import psycopg
import pytest

from frontdesk.settings import Settings
from tests.conftest import settings_with
from tests.requirements import shows
from tests.support.postgres import Postgres
from tests.support.schedule.house import Installation, open_installation
from tests.support.schedule.invariants import violations
from tests.support.schedule.making import once
from tests.support.schedule.manners import How, Manner
from tests.support.schedule.processes import Nursery

pytestmark = [pytest.mark.anyio, pytest.mark.slow]
AGENTS = [f"agent-{number}" for number in range(40)]
KEYS = (
    "DROP INDEX uq_occurrences_time",
    "DROP INDEX uq_occurrences_running",
    "ALTER TABLE occurrences DROP CONSTRAINT pk_occurrences",
)


def _found(installation: Installation) -> set[str]:
    """The kinds of things that are wrong."""
    return {wrong.partition(":")[0] for wrong in violations(installation.history(), installation.made)}


@shows("SCHEDULE-MUTATION")
@pytest.mark.parametrize("changes", [(), ("no fence",)], ids=["as it is", "without the fence"])
async def test_a_holder_whose_lease_ran_out_is_held_off_by_the_fence_alone(
    changes: tuple[str, ...], settings: Settings, nursery: Nursery, tmp_path: Path
) -> None:
    # It does not look whether it still holds what it does, so that the fence is all there is.
    told = ("no renewal", *changes)
    async with open_installation(tmp_path, settings, nursery, lease_s=1.0, changes=told) as installation:
        installation.receiver.manners("agent", Manner(How.HANG))
        await installation.add(once("agent", installation.clock()))
        [first] = installation.start()
        await installation.until(lambda: len(installation.arrivals()) == 1)
        await installation.hold_still(first)
        [second] = installation.start()
        await installation.until(installation.is_over)
        installation.receiver.release("agent")
        installation.go_on(first)
        installation.stop(first, second)
        assert (_found(installation) >= {"told_wrong", "unrecorded"}) if changes else _found(installation) == set()


@shows("SCHEDULE-MUTATION")
@pytest.mark.parametrize("changes", [(), ("no renewal",)], ids=["as it is", "without renewal"])
async def test_a_long_delivery_is_kept_from_others_by_the_renewal_of_its_lease(
    changes: tuple[str, ...], settings: Settings, nursery: Nursery, tmp_path: Path
) -> None:
    # Long enough for a worker that this machine, busy with other things, leaves out for a moment.
    lease_s = 0.5 if changes else 1.5
    async with open_installation(tmp_path, settings, nursery, lease_s=lease_s, changes=changes) as installation:
        installation.receiver.manners("agent", Manner(How.WELL, seconds=2.3 * lease_s + 0.2))
        await installation.add(once("agent", installation.clock()))
        crew = installation.start(2)
        await installation.until(installation.is_over)
        installation.stop(*crew)
        assert ({"begun_twice", "crowded"} <= _found(installation)) if changes else _found(installation) == set()


@shows("SCHEDULE-MUTATION")
@pytest.mark.parametrize("changes", [(), ("no takeover",)], ids=["as it is", "without takeover"])
async def test_what_a_killed_worker_held_is_finished_because_its_lease_can_be_lost(
    changes: tuple[str, ...], settings: Settings, nursery: Nursery, tmp_path: Path
) -> None:
    async with open_installation(tmp_path, settings, nursery, changes=changes) as installation:
        installation.receiver.manners("agent", Manner(How.HANG))
        await installation.add(once("agent", installation.clock()))
        [first] = installation.start()
        await installation.until(lambda: len(installation.arrivals()) == 1)
        installation.kill(first)
        await installation.add(once("other", installation.clock()))
        [second] = installation.start()
        await installation.until(lambda: len(installation.arrivals()) == (2 if changes else 3))
        installation.stop(second)
        assert _found(installation) == ({"unsettled"} if changes else set())


@shows("SCHEDULE-MUTATION")
@pytest.mark.parametrize("keys", [True, False], ids=["with the keys", "without the keys"])
async def test_where_two_look_at_once_the_keys_alone_keep_a_prompt_from_going_out_twice(
    keys: bool, postgres: Postgres, nursery: Nursery, tmp_path: Path
) -> None:
    url = postgres.create_database()
    settings = settings_with(FRONTDESK_DATA=tmp_path, FRONTDESK_DATABASE_URL=url)
    async with open_installation(tmp_path, settings, nursery, changes=("no lock",)) as installation:
        if not keys:
            with psycopg.connect(url, autocommit=True) as connection:
                for key in KEYS:
                    connection.execute(key.encode())
        installation.receiver.chance(seed=7, slowest=0.02)
        await installation.add(*(once(agent, installation.clock() + number) for agent in AGENTS for number in range(5)))
        crew = installation.start(4)
        await installation.until(installation.is_over)
        installation.stop(*crew)
        assert ({"repeated", "begun_twice"} <= _found(installation)) if not keys else _found(installation) == set()
