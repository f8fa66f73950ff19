"""Leases: what a lost worker held goes on elsewhere, what a living one holds does not, whatever the clock says."""

from dataclasses import replace

import pytest

from frontdesk.agents.turns.model import LeaseOwner
from frontdesk.schedules.claim_store import WORKER_LOST, WORKER_LOST_TOO_OFTEN
from frontdesk.schedules.delivery_rules import MAX_LOST, WORKER_STOPPED, LeaseWatch, RunLease
from frontdesk.schedules.delivery_store import DeliveryStore
from frontdesk.schedules.history_store import HistoryQuery
from frontdesk.schedules.model import SECOND, DeliveryFailed
from tests.stores.schedule.lab import LEASE, NOW, Lab

pytestmark = pytest.mark.anyio
HOUR = 3600 * SECOND


def not_left_alone(_lease: RunLease) -> bool:
    return False


async def test_what_a_lost_worker_held_goes_on_elsewhere_when_its_lease_is_over(lab: Lab) -> None:
    await lab.add()
    [lost] = await lab.claim("lost")
    lab.now_us += LEASE
    assert await lab.claim("another") == [], "it holds until then"
    lab.now_us += SECOND
    [taken] = await lab.claim("another")
    assert (taken.id, taken.attempt, taken.fence, taken.in_doubt) == (lost.id, 1, 2, True)
    assert await lab.settle([lost], "too late", "lost") == []
    assert await lab.settle([taken], "in time", "another")
    [past] = await lab.past.history(HistoryQuery())
    assert past.answer == "in time"
    assert [(one.number, one.error, one.started_us) for one in past.earlier] == [(1, WORKER_LOST, NOW)]


async def test_a_worker_that_lives_keeps_what_it_holds(lab: Lab) -> None:
    await lab.add()
    [held] = await lab.claim()
    for _ in range(5):
        lab.now_us += LEASE - SECOND
        assert await lab.worker().renew() == frozenset()
        assert await lab.claim("another") == []
    assert await lab.settle([held])


async def test_a_worker_learns_what_was_taken_from_it(lab: Lab) -> None:
    await lab.add("ada")
    [ada] = await lab.claim("stopped")
    lab.now_us += LEASE + SECOND
    await lab.claim("another")
    await lab.add("bob")
    [bob] = await lab.claim("stopped")
    assert await lab.worker("stopped").renew() == {ada.id}
    assert lab.worker("stopped").held_ids == {bob.id}


async def test_what_a_dead_process_of_this_machine_held_goes_on_at_once(lab: Lab) -> None:
    here = LeaseOwner()
    dead, elsewhere = str(replace(here, pid=2**22 + 1)), str(replace(here, host="another-machine"))
    for agent, owner in (("ada", dead), ("bob", elsewhere)):
        await lab.add(agent)
        assert len(await lab.claim(owner)) == 1
    lab.workers["here"] = DeliveryStore(lab.database, str(here), LEASE, lab.clock)
    found = await lab.worker("here").recover(here.knows_ended)
    assert found == {dead}
    assert [one.agent_id for one in await lab.claim("here", dead_owners=found)] == ["ada"]


async def test_a_worker_that_stops_hands_back_what_it_has_not_ended(lab: Lab) -> None:
    for agent in ("ada", "bob"):
        await lab.add(agent)
    held = await lab.claim("stopping")
    assert await lab.worker("stopping").release([one.id for one in held]) == 2
    assert lab.worker("stopping").held_ids == set()
    taken = await lab.claim("another")
    assert {(one.agent_id, one.attempt, one.fence, one.in_doubt) for one in taken} == {
        ("ada", 1, 2, True),
        ("bob", 1, 2, True),
    }
    assert await lab.settle(held, name="stopping") == []
    [past, _] = await lab.past.history(HistoryQuery())
    assert [one.error for one in past.earlier] == [WORKER_STOPPED]


async def test_a_claim_whose_answer_was_lost_is_handed_back_and_what_is_held_is_not(lab: Lab) -> None:
    await lab.add("ada")
    [ada] = await lab.claim()
    await lab.add("bob")
    await lab.claim()
    worker = lab.worker()
    worker.held_ids = {ada.id}
    assert await worker.release() == 1
    assert {row["agent_id"]: row["standing"] for row in await lab.rows()} == {"ada": "running", "bob": "waiting"}


async def test_one_that_takes_its_worker_down_each_time_is_given_up(lab: Lab) -> None:
    await lab.add()
    for number in range(MAX_LOST + 1):
        assert len(await lab.claim(f"worker-{number}")) == 1
        lab.now_us += LEASE + SECOND
    assert await lab.claim("last") == []
    [row] = await lab.rows()
    assert (row["standing"], row["reason"], row["attempt"]) == ("dead", WORKER_LOST_TOO_OFTEN, 1)


async def test_the_next_prompt_of_an_agent_waits_for_one_that_was_taken_over(lab: Lab) -> None:
    await lab.add(prompt="first")
    await lab.claim("lost")
    await lab.add(prompt="second", at_us=NOW + 1)
    lab.now_us += LEASE + SECOND
    [taken] = await lab.claim("another")
    assert taken.prompt == "first"
    assert await lab.claim("third") == []


async def test_a_clock_that_was_set_forward_takes_nothing_from_a_worker_that_lives(lab: Lab) -> None:
    await lab.add()
    [held] = await lab.claim("alive")
    lab.now_us += HOUR
    assert await lab.claim("another", is_abandoned=not_left_alone) == []
    assert await lab.worker("alive").renew() == frozenset()
    lab.now_us += LEASE // 2
    assert await lab.claim("another") == []
    assert await lab.settle([held], name="alive")


async def test_a_clock_that_was_set_back_does_not_keep_a_lost_workers_prompt_for_an_hour(lab: Lab) -> None:
    await lab.add()
    [lost] = await lab.claim("lost")
    lab.now_us -= HOUR
    await lab.worker("another").recover(lambda _: False)
    assert await lab.claim("another", is_abandoned=not_left_alone) == [], "its worker may live, and renew it"
    lab.now_us += LEASE
    await lab.worker("another").recover(lambda _: False)
    assert [one.id for one in await lab.claim("another")] == [lost.id]


async def test_a_clock_that_was_set_back_fires_nothing_twice(lab: Lab) -> None:
    await lab.add()
    assert len(await lab.run_through()) == 1
    lab.now_us -= HOUR
    assert await lab.claim() == []
    lab.now_us += 2 * HOUR
    assert await lab.claim() == []


async def test_a_failure_is_tried_again_though_the_clock_was_set_back(lab: Lab) -> None:
    await lab.add()
    await lab.settle(await lab.claim(), DeliveryFailed("no"))
    lab.now_us -= HOUR
    assert await lab.claim() == []
    await lab.worker().recover(lambda _: False)
    assert [one.attempt for one in await lab.claim()] == [2]


LEASES = [RunLease(f"run-{number}", "another", NOW + number) for number in range(3)]


def seen(*looks: tuple[float, list[RunLease]]) -> list[set[RunLease]]:
    """What was found left alone at each look, so many seconds after the one before."""
    steady = [1000.0]
    watch = LeaseWatch(LEASE, lambda: steady[0])
    found: list[set[RunLease]] = []
    for seconds, leases in looks:
        steady[0] += seconds
        found.append(watch.observe(leases))
    return found


def test_a_lease_that_nobody_renews_for_two_thirds_of_its_length_was_left_alone() -> None:
    one, two, three = LEASES
    renewed = two._replace(until_us=two.until_us + LEASE)
    found = seen((0, [one, two]), (20, [one, renewed]), (19, [one, renewed, three]), (1, [one, renewed, three]))
    assert found == [set(), set(), set(), {one}]


def test_nothing_is_known_of_leases_from_before_a_silence_of_a_third_of_their_length() -> None:
    found = seen(*((step, LEASES) for step in (0, 20, 19, 21, 20, 19, 1)))
    assert found == [set(), set(), set(), set(), set(), set(), set(LEASES)]


def test_a_look_that_lies_too_far_back_tells_nothing() -> None:
    steady = [0.0]
    watch = LeaseWatch(LEASE, lambda: steady[0])
    told: list[bool] = []
    for seconds in (0, 20, 20):
        steady[0] += seconds
        watch.observe(LEASES[:1])
    for seconds in (0, 20, 1):
        steady[0] += seconds
        told.append(watch.is_abandoned(LEASES[0]))
    assert told == [True, True, False]
    assert not watch.is_abandoned(LEASES[1])


async def test_what_a_lost_worker_held_is_looked_for_when_it_was_left_alone(lab: Lab) -> None:
    await lab.add()
    [lost] = await lab.claim("lost")
    steady = [0.0]
    watch = LeaseWatch(LEASE, lambda: steady[0])
    taken: list[int] = []
    # The database answers nobody for longer than a lease, and then again.
    for seconds in (0, 20, 70, 20, 20):
        steady[0] += seconds
        lab.now_us += seconds * SECOND
        await lab.worker("another").recover(lambda _: False, watch.observe)
        taken.append(len(await lab.claim("another", is_abandoned=watch.is_abandoned)))
    assert taken == [0, 0, 0, 0, 1]
    assert lab.worker("another").held_ids == {lost.id}
