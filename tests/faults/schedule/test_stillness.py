"""A worker that is held still past its lease and then goes on: another has done its work, and it changes nothing."""

from dataclasses import replace
from pathlib import Path

import pytest

from frontdesk.settings import Settings
from tests.requirements import shows
from tests.support.schedule.history import TABLES
from tests.support.schedule.house import open_house
from tests.support.schedule.making import once
from tests.support.schedule.manners import How, Manner
from tests.support.schedule.processes import Nursery

pytestmark = pytest.mark.anyio
AGENTS = [f"agent-{number}" for number in range(8)]
LEASE_S = 1.0
LEASES = "SELECT id, leased_until_us FROM occurrences"


@shows("SCHEDULE-LEASE")
async def test_a_worker_held_still_past_its_lease_changes_nothing_when_it_goes_on(
    settings: Settings, nursery: Nursery, tmp_path: Path
) -> None:
    async with open_house(tmp_path, settings, nursery, lease_s=LEASE_S) as house:
        for agent in AGENTS:
            house.receiver.manners(agent, Manner(How.HANG))
        await house.add(*(once(agent, house.clock()) for agent in AGENTS))
        [first] = house.start()
        await house.until(lambda: len(house.visits()) == len(AGENTS))
        await house.hold_still(first)
        [second] = house.start()
        await house.until(house.is_over)
        done = house.books.rows(TABLES["occurrences"])
        for agent in AGENTS:
            house.receiver.release(agent)
        house.go_on(first)
        # Asked to stop, it first brings to an end what it believes it holds.
        house.stop(first, second)
        assert house.books.rows(TABLES["occurrences"]) == done
        history = house.check()
        assert {one.worker for one in history.visits[len(AGENTS) :]} == {second}
        assert all(one.in_doubt for one in history.visits[len(AGENTS) :])


@shows("SCHEDULE-LEASE")
async def test_what_a_worker_on_another_machine_held_when_it_was_lost_is_free_when_its_lease_ends(
    settings: Settings, nursery: Nursery, tmp_path: Path
) -> None:
    async with open_house(tmp_path, settings, nursery, lease_s=LEASE_S) as house:
        for agent in AGENTS:
            house.receiver.manners(agent, Manner(How.HANG))
        await house.add(*(once(agent, house.clock()) for agent in AGENTS))
        [first] = house.start(orders=replace(house.orders, machine="another"))
        await house.until(lambda: len(house.visits()) == len(AGENTS))
        held = {row["id"]: row["leased_until_us"] for row in house.books.rows(LEASES)}
        house.kill(first)
        [second] = house.start()
        await house.until(house.is_over)
        house.stop(second)
        again = house.check().visits[len(AGENTS) :]
        assert {(one.worker, one.in_doubt, one.attempt) for one in again} == {(second, True, 1)}
        assert all(one.began_us > held[one.id] for one in again), "nobody could know before that it was lost"
