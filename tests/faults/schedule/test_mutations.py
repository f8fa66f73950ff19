"""Take away what the scheduler stands on, one thing at a time: the reader of histories must notice."""

from pathlib import Path

import psycopg
import pytest

from frontdesk.settings import Settings
from tests.conftest import settings_with
from tests.requirements import shows
from tests.support.postgres import Postgres
from tests.support.schedule.house import House, open_house
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


def _found(house: House) -> set[str]:
    """The kinds of things that are wrong."""
    return {wrong.partition(":")[0] for wrong in violations(house.history(), house.made)}


@shows("SCHEDULE-MUTATION")
@pytest.mark.parametrize("changes", [(), ("no fence",)], ids=["as it is", "without the fence"])
async def test_a_holder_whose_lease_ran_out_is_held_off_by_the_fence_alone(
    changes: tuple[str, ...], settings: Settings, nursery: Nursery, tmp_path: Path
) -> None:
    # It does not look whether it still holds what it does, so that the fence is all there is.
    told = ("no renewal", *changes)
    async with open_house(tmp_path, settings, nursery, lease_s=1.0, changes=told) as house:
        house.receiver.manners("agent", Manner(How.HANG))
        await house.add(once("agent", house.clock()))
        [first] = house.start()
        await house.until(lambda: len(house.visits()) == 1)
        await house.hold_still(first)
        [second] = house.start()
        await house.until(house.is_over)
        house.receiver.release("agent")
        house.go_on(first)
        house.stop(first, second)
        assert (_found(house) >= {"told_wrong", "unrecorded"}) if changes else _found(house) == set()


@shows("SCHEDULE-MUTATION")
@pytest.mark.parametrize("changes", [(), ("no renewal",)], ids=["as it is", "without renewal"])
async def test_a_long_delivery_is_kept_from_others_by_the_renewal_of_its_lease(
    changes: tuple[str, ...], settings: Settings, nursery: Nursery, tmp_path: Path
) -> None:
    # Long enough for a worker that this machine, busy with other things, leaves out for a moment.
    lease_s = 0.5 if changes else 1.5
    async with open_house(tmp_path, settings, nursery, lease_s=lease_s, changes=changes) as house:
        house.receiver.manners("agent", Manner(How.WELL, seconds=2.3 * lease_s + 0.2))
        await house.add(once("agent", house.clock()))
        crew = house.start(2)
        await house.until(house.is_over)
        house.stop(*crew)
        assert ({"begun_twice", "crowded"} <= _found(house)) if changes else _found(house) == set()


@shows("SCHEDULE-MUTATION")
@pytest.mark.parametrize("changes", [(), ("no takeover",)], ids=["as it is", "without takeover"])
async def test_what_a_killed_worker_held_is_finished_because_its_lease_can_be_lost(
    changes: tuple[str, ...], settings: Settings, nursery: Nursery, tmp_path: Path
) -> None:
    async with open_house(tmp_path, settings, nursery, changes=changes) as house:
        house.receiver.manners("agent", Manner(How.HANG))
        await house.add(once("agent", house.clock()))
        [first] = house.start()
        await house.until(lambda: len(house.visits()) == 1)
        house.kill(first)
        await house.add(once("other", house.clock()))
        [second] = house.start()
        await house.until(lambda: len(house.visits()) == (2 if changes else 3))
        house.stop(second)
        assert _found(house) == ({"unsettled"} if changes else set())


@shows("SCHEDULE-MUTATION")
@pytest.mark.parametrize("keys", [True, False], ids=["with the keys", "without the keys"])
async def test_where_two_look_at_once_the_keys_alone_keep_a_prompt_from_going_out_twice(
    keys: bool, postgres: Postgres, nursery: Nursery, tmp_path: Path
) -> None:
    url = postgres.create_database()
    settings = settings_with(FRONTDESK_DATA=tmp_path, FRONTDESK_DATABASE_URL=url)
    async with open_house(tmp_path, settings, nursery, changes=("no lock",)) as house:
        if not keys:
            with psycopg.connect(url, autocommit=True) as connection:
                for key in KEYS:
                    connection.execute(key.encode())
        house.receiver.chance(seed=7, slowest=0.02)
        await house.add(*(once(agent, house.clock() + number) for agent in AGENTS for number in range(5)))
        crew = house.start(4)
        await house.until(house.is_over)
        house.stop(*crew)
        assert ({"repeated", "begun_twice"} <= _found(house)) if not keys else _found(house) == set()
