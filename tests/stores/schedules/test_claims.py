"""Tests claims and leases: one worker gets each due prompt in order; another continues a lost worker's work."""

from dataclasses import replace

import anyio
import pytest
from sqlalchemy import update
from structlog.testing import capture_logs

from frontdesk.agents.turns.model import LeaseOwner
from frontdesk.db.schema import schedules
from frontdesk.schedules.claim_store import WORKER_LOST, WORKER_LOST_TOO_OFTEN
from frontdesk.schedules.delivery_rules import (
    MAX_LOST,
    MAX_PARALLEL_RUNS,
    WORKER_STOPPED,
    ClaimRequest,
    LeaseWatch,
    RunLease,
)
from frontdesk.schedules.delivery_store import DeliveryStore
from frontdesk.schedules.history_store import HistoryQuery
from frontdesk.schedules.model import (
    SECOND,
    DeliveryFailed,
    Occurrence,
    Overlap,
    OwnerFilter,
    ScheduleState,
    Trigger,
    TriggerKind,
    delivery_id,
)
from tests.stores.schedules.conftest import LEASE, MINUTE, NOW, Lab, every

# Claims: each due prompt goes to one worker, an agent's prompts in order and one at a time, no agent behind another


async def test_nothing_is_claimed_before_its_time(lab: Lab) -> None:
    schedule = await lab.add(at_us=NOW + 1)
    assert await lab.claim() == []
    lab.now_us += 1
    [claimed] = await lab.claim()
    assert (claimed.schedule_id, claimed.intended_us, claimed.id) == (schedule, NOW + 1, delivery_id(schedule, NOW + 1))
    assert (claimed.number, claimed.attempt, claimed.fence, claimed.last) == (1, 1, 1, True)


async def test_workers_that_claim_at_once_share_what_is_due(lab: Lab) -> None:
    for number in range(60):
        await lab.add(f"agent-{number}")
    claimed: list[Occurrence] = []

    async def work(name: str) -> None:
        while found := await lab.claim(name, places=7):
            claimed.extend(found)

    async with anyio.create_task_group() as workers:
        for name in ("one", "two", "three", "four"):
            workers.start_soon(work, name)
    # A worker that found all the remaining prompts locked has stopped; nothing is lost by that.
    claimed.extend(await lab.claim())
    assert len(claimed) == 60
    assert len({one.id for one in claimed}) == 60


async def test_of_many_workers_that_want_the_one_due_prompt_one_gets_it(lab: Lab) -> None:
    await lab.add()
    found: list[Occurrence] = []

    async def claim(name: str) -> None:
        found.extend(await lab.claim(name))

    async with anyio.create_task_group() as workers:
        for number in range(8):
            workers.start_soon(claim, f"worker-{number}")
    assert len(found) == 1


async def test_an_agent_gets_its_prompts_one_at_a_time_and_in_order(lab: Lab) -> None:
    for number in (3, 1, 2):
        await lab.add(at_us=NOW - 10 + number, prompt=f"number {number}")
    told: list[str] = []
    for name in ("one", "two", "one"):
        [claimed] = await lab.claim(name)
        assert await lab.claim("another") == [], "while one runs no other begins"
        told.append(claimed.prompt)
        assert await lab.settle([claimed], name=name)
    assert told == ["number 1", "number 2", "number 3"]
    assert await lab.claim() == []


async def test_a_prompt_that_waits_for_another_try_keeps_its_place_in_the_line(lab: Lab) -> None:
    await lab.add(at_us=NOW - 2, prompt="first")
    await lab.add(at_us=NOW - 1, prompt="second")
    await lab.settle(await lab.claim(), DeliveryFailed("not now"))
    assert await lab.claim("another") == []
    lab.now_us += MINUTE
    assert [one.prompt for one in await lab.claim()] == ["first"]


async def test_a_long_backlog_of_one_agent_does_not_delay_another(lab: Lab) -> None:
    for number in range(40):
        await lab.add("busy", at_us=NOW - MINUTE + number)
    await lab.add("idle", at_us=NOW)
    assert {one.agent_id for one in await lab.claim(places=2)} == {"busy", "idle"}


async def test_there_are_no_more_claims_than_places_and_the_oldest_come_first(lab: Lab) -> None:
    for number in range(10):
        await lab.add(f"agent-{number}", at_us=NOW - number)
    assert {one.agent_id for one in await lab.claim(places=3)} == {"agent-9", "agent-8", "agent-7"}
    assert len(await lab.rows()) == 3
    assert await lab.claim(places=0) == []
    assert len(await lab.claim()) == 7


async def test_a_queue_that_gives_nothing_makes_room_for_another(lab: Lab) -> None:
    await lab.add("late", at_us=NOW - MINUTE, max_late_s=1)
    await lab.add("punctual", at_us=NOW)
    assert [one.agent_id for one in await lab.claim(places=1)] == ["punctual"]


async def test_what_may_overlap_runs_beside_the_line_but_not_without_end(lab: Lab) -> None:
    start = NOW - 100 * SECOND
    await lab.add(trigger=every("1s", start), at_us=start, overlap=Overlap.ALLOW, misfire="all")
    await lab.add(prompt="in line")
    beside = [one for one in await lab.claim() if one.overlap is Overlap.ALLOW]
    while more := await lab.claim():
        beside += more
    assert [one.intended_us for one in beside] == [start + number * SECOND for number in range(MAX_PARALLEL_RUNS)]
    await lab.settle(beside[:2])
    assert len(await lab.claim()) == 2


async def test_a_recurring_schedule_goes_on_from_its_intended_times(lab: Lab) -> None:
    schedule = await lab.add(trigger=every("1m", NOW), at_us=NOW)
    for number in range(3):
        lab.now_us = NOW + number * MINUTE + 7 * SECOND
        [claimed] = await lab.claim()
        assert (claimed.intended_us, claimed.number) == (NOW + number * MINUTE, number + 1)
        assert (claimed.next_us, claimed.recurring, claimed.last) == (NOW + (number + 1) * MINUTE, True, False)
        await lab.settle([claimed])
        assert await lab.claim() == []
    stored = await lab.schedules.get(schedule)
    assert stored is not None
    assert (stored.fired, stored.last_us, stored.state) == (3, lab.now_us, ScheduleState.ACTIVE)


async def test_repetitions_never_exceed_their_maximum(lab: Lab) -> None:
    schedule = await lab.add(trigger=every("1s", NOW), at_us=NOW, max_repetitions=3, misfire="all")
    lab.now_us += MINUTE
    ran = await lab.run_through()
    assert [one.number for one in ran] == [1, 2, 3]
    assert [one.last for one in ran] == [False, False, True]
    stored = await lab.schedules.get(schedule)
    assert stored is not None
    assert (stored.state, stored.intended_us, stored.fired) == (ScheduleState.ENDED, None, 3)


async def test_a_jitter_delays_the_fire_and_not_what_was_intended(lab: Lab) -> None:
    schedule = await lab.add(trigger=every("1h", NOW, jitter_s=600), at_us=NOW)
    stored = await lab.schedules.get(schedule)
    assert stored is not None
    assert stored.fire_us is not None
    assert NOW < stored.fire_us <= NOW + 600 * SECOND
    lab.now_us = stored.fire_us - 1
    assert await lab.claim() == []
    lab.now_us += 1
    assert [one.intended_us for one in await lab.claim()] == [NOW]


async def test_a_claim_for_somebody_leaves_what_is_others(lab: Lab) -> None:
    await lab.add("ada", user_id="u1")
    await lab.add("bob", user_id="u2")
    await lab.add("cleo")
    assert [one.agent_id for one in await lab.claim(whose=OwnerFilter("ada"))] == ["ada"]
    assert await lab.claim(whose=OwnerFilter("bob", "u1")) == []
    assert [one.agent_id for one in await lab.claim(whose=OwnerFilter(user_id="u1", include_unowned=True))] == ["cleo"]
    assert [one.agent_id for one in await lab.claim(whose=OwnerFilter(user_id="u2"))] == ["bob"]


async def test_the_same_time_of_a_schedule_is_never_begun_twice(lab: Lab) -> None:
    schedule = await lab.add(trigger=every("1m", NOW), at_us=NOW)
    await lab.run_through()
    stored = await lab.schedules.get(schedule)
    assert stored is not None
    await lab.schedules.update(schedule, stored.what, NOW, lab.now_us)
    assert await lab.claim() == []
    assert len(await lab.rows()) == 1
    lab.now_us += MINUTE
    assert [one.intended_us for one in await lab.claim()] == [NOW + MINUTE]


async def test_a_step_tells_when_to_look_next(lab: Lab) -> None:
    worker = lab.worker()
    assert (await worker.settle_and_claim((), ClaimRequest(1))).next_us is None
    await lab.add(at_us=NOW + MINUTE)
    assert (await worker.settle_and_claim((), ClaimRequest(1))).next_us == NOW + MINUTE
    assert await lab.schedules.next_due() == NOW + MINUTE


@pytest.mark.parametrize(
    "strange",
    [{"zone": "Nowhere/Town"}, {"kind": "moonlight"}, {"overlap": "perhaps"}, {"value": "61 * * * *"}],
    ids=str,
)
async def test_a_rule_that_cannot_be_read_here_lets_the_others_go_on(lab: Lab, strange: dict[str, str]) -> None:
    unread = await lab.add("ada", trigger=Trigger(TriggerKind.CRON, "* * * * *", "Europe/Berlin"), at_us=NOW)
    await lab.add("bob")
    async with lab.database.transaction() as connection:
        await connection.execute(update(schedules).where(schedules.c.id == unread).values(**strange))
    with capture_logs() as logged:
        assert [one.agent_id for one in await lab.claim()] == ["bob"]
    assert [(line["event"], line["schedule_id"]) for line in logged] == [("schedule_unreadable", unread)]


async def test_a_mistake_of_ours_is_not_taken_for_a_rule_that_cannot_be_read(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    def mistaken(*_: object) -> None:
        raise AttributeError("a mistake")

    await lab.add()
    monkeypatch.setattr("frontdesk.schedules.claim_store.plan_fire", mistaken)
    with pytest.raises(AttributeError):
        await lab.claim()
    monkeypatch.undo()
    assert len(await lab.claim()) == 1


# Leases: another worker continues a lost worker's work, but not a living one's, whatever the clock shows


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
    """The abandoned work at each look, this many seconds after the look before."""
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
    # The database answers nobody for longer than a lease, and then works again.
    for seconds in (0, 20, 70, 20, 20):
        steady[0] += seconds
        lab.now_us += seconds * SECOND
        await lab.worker("another").recover(lambda _: False, watch.observe)
        taken.append(len(await lab.claim("another", is_abandoned=watch.is_abandoned)))
    assert taken == [0, 0, 0, 0, 1]
    assert lab.worker("another").held_ids == {lost.id}
