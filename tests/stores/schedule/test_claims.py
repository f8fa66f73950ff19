"""Claims: each due prompt goes to one worker, an agent's prompts in order and one at a time, nobody behind another."""

import anyio
import pytest
from sqlalchemy import update
from structlog.testing import capture_logs

from frontdesk.db.schema import schedules
from frontdesk.schedules.delivery_rules import MAX_PARALLEL_RUNS, ClaimRequest
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
from tests.stores.schedule.lab import MINUTE, NOW, Lab, every

pytestmark = pytest.mark.anyio


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
    # One that found all that was left locked by others has stopped; nothing is lost by that.
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
