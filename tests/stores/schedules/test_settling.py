"""Tests how attempts end: delivered, retried or given up; only the lease holder can settle; the last run."""

import json
from dataclasses import replace

import pytest
from sqlalchemy import select
from sqlalchemy.dialects.postgresql import dialect

from frontdesk.db.schema import forwards
from frontdesk.journal.model import EntryKind, Outcome
from frontdesk.journal.store import JournalQuery, JournalStore
from frontdesk.schedules.delivery_store import LOCK_QUEUES
from frontdesk.schedules.history_store import HistoryQuery
from frontdesk.schedules.model import (
    SECOND,
    AnswerForwarding,
    DeliveryFailed,
    Overlap,
    RunStatus,
    Schedule,
    ScheduleState,
)
from tests.stores.schedules.conftest import MINUTE, NOW, Lab, every, once

# How attempts end: delivered, retried, given up; and that only the lease holder can settle


async def test_a_delivery_is_recorded_with_its_answer_and_the_schedule_ends(lab: Lab) -> None:
    schedule = await lab.add()
    [claimed] = await lab.claim()
    stored = await lab.schedules.get(schedule)
    assert stored is not None
    assert stored.state is ScheduleState.ACTIVE, "it is over when its last run is"
    lab.now_us += 3 * SECOND
    assert await lab.settle([claimed], "Good morning")
    [past] = await lab.past.history(HistoryQuery(schedule_id=schedule))
    assert (past.standing, past.answer, past.reason) == (RunStatus.DELIVERED, "Good morning", None)
    assert (past.started_us, past.ended_us, past.attempt) == (NOW, lab.now_us, 1)
    stored = await lab.schedules.get(schedule)
    assert stored is not None
    assert stored.state is ScheduleState.ENDED


async def test_the_journal_tells_of_each_attempt_but_not_what_was_said(lab: Lab) -> None:
    await lab.add(user_id="u1", attempts=2)
    [claimed] = await lab.claim()
    lab.now_us += 3 * SECOND
    await lab.settle([claimed], DeliveryFailed("no such luck"))
    lab.now_us += MINUTE
    await lab.settle(await lab.claim(), "secret")
    told = [entry for _, entry in await JournalStore(lab.database).read(JournalQuery())]
    assert [(one.kind, one.outcome, one.reason) for one in told] == [
        (EntryKind.DELIVERY, Outcome.FAILED, "waiting"),
        (EntryKind.DELIVERY, Outcome.OK, None),
    ]
    assert {(one.surface, one.action, one.agent_id, one.user_id, one.request_id) for one in told} == {
        ("schedule", "deliver", "ada", "u1", claimed.id)
    }
    assert [one.duration_us for one in told] == [3 * SECOND, 0]
    assert "secret" not in repr(told)


@pytest.mark.parametrize("stale", ["fence", "owner", "settled"])
async def test_a_holder_that_lost_its_place_changes_nothing(lab: Lab, stale: str) -> None:
    await lab.add()
    [claimed] = await lab.claim()
    late, name = claimed, "one"
    if stale == "fence":
        late = replace(claimed, fence=claimed.fence - 1)
    elif stale == "owner":
        name = "another"
    else:
        await lab.settle([claimed])
    before = await lab.rows()
    assert await lab.settle([late], "too late", name) == []
    assert await lab.rows() == before
    assert len(await JournalStore(lab.database).read(JournalQuery())) == (1 if stale == "settled" else 0)


async def test_of_ends_told_together_those_that_do_not_count_spoil_nothing(lab: Lab) -> None:
    for agent in ("ada", "bob", "cleo"):
        await lab.add(agent)
    ada, bob, cleo = sorted(await lab.claim(), key=lambda one: one.agent_id)
    kept = await lab.settle([ada, replace(bob, fence=7), cleo])
    assert [one.occurrence.agent_id for one in kept] == ["ada", "cleo"]
    assert {row["agent_id"]: row["standing"] for row in await lab.rows()} == {
        "ada": "delivered",
        "bob": "running",
        "cleo": "delivered",
    }


async def test_what_fails_is_tried_again_later_each_time_and_then_given_up(lab: Lab) -> None:
    schedule = await lab.add(attempts=4)
    waits: list[int] = []
    for attempt in (1, 2, 3, 4):
        [claimed] = await lab.claim()
        assert (claimed.attempt, claimed.fence, claimed.intended_us) == (attempt, attempt, NOW)
        await lab.settle([claimed], DeliveryFailed(f"failure {attempt}"))
        due = await lab.schedules.next_due()
        waits.append(0 if due is None else (due - lab.now_us) // SECOND)
        lab.now_us = due or lab.now_us
    assert waits == [2, 4, 8, 0]
    [past] = await lab.past.history(HistoryQuery(standings=[RunStatus.DEAD]))
    assert (past.attempt, past.reason) == (4, "failure 4")
    assert [(one.number, one.error) for one in past.earlier] == [(n, f"failure {n}") for n in (1, 2, 3)]
    stored = await lab.schedules.get(schedule)
    assert stored is not None
    assert stored.state is ScheduleState.ENDED
    lab.now_us += 3600 * SECOND
    assert await lab.claim() == []


async def test_what_trying_again_cannot_help_is_given_up_at_once(lab: Lab) -> None:
    await lab.add()
    await lab.settle(await lab.claim(), DeliveryFailed("there is no such agent", permanent=True))
    assert await lab.standings() == ["dead"]


async def test_a_recurring_schedule_goes_on_after_a_dead_letter(lab: Lab) -> None:
    await lab.add(trigger=every("1m", NOW), at_us=NOW, attempts=1)
    await lab.settle(await lab.claim(), DeliveryFailed("no"))
    lab.now_us += MINUTE
    assert [one.number for one in await lab.run_through()] == [2]
    assert await lab.standings() == ["dead", "delivered"]


async def test_a_busy_agent_is_waited_for_without_counting(lab: Lab) -> None:
    await lab.add(attempts=2)
    for _ in range(5):
        [claimed] = await lab.claim()
        assert claimed.attempt == 1
        await lab.settle([claimed], DeliveryFailed("busy", counted=False))
        lab.now_us = await lab.schedules.next_due() or 0
    [claimed] = await lab.claim()
    assert await lab.settle([claimed])
    assert await lab.standings() == ["delivered"]


async def test_nobody_waits_for_a_busy_agent_for_ever(lab: Lab) -> None:
    await lab.add(attempts=1)
    await lab.settle(await lab.claim(), DeliveryFailed("busy", counted=False))
    lab.now_us += 25 * 3600 * SECOND
    await lab.settle(await lab.claim(), DeliveryFailed("busy", counted=False))
    assert await lab.standings() == ["dead"]


async def test_the_other_side_may_say_how_long_to_wait(lab: Lab) -> None:
    await lab.add()
    await lab.settle(await lab.claim(), DeliveryFailed("too many", counted=False, retry_after=90))
    assert await lab.schedules.next_due() == NOW + 90 * SECOND


async def test_a_doubt_is_kept_until_the_end(lab: Lab) -> None:
    await lab.add()
    for outcome in (DeliveryFailed("cut off", in_doubt=True), DeliveryFailed("not reached")):
        await lab.settle(await lab.claim(), outcome)
        lab.now_us += MINUTE
    [claimed] = await lab.claim()
    assert claimed.in_doubt


async def test_a_dead_letter_is_tried_again_on_somebodys_word(lab: Lab) -> None:
    schedule = await lab.add(attempts=1)
    [claimed] = await lab.claim()
    await lab.settle([claimed], DeliveryFailed("no"))
    assert await lab.past.redrive(claimed.id, lab.now_us)
    assert not await lab.past.redrive(claimed.id, lab.now_us), "it is dead no longer"
    [again] = await lab.claim()
    assert (again.id, again.attempt, again.fence, again.intended_us) == (claimed.id, 1, 2, NOW)
    await lab.settle([again], "at last")
    [past] = await lab.past.history(HistoryQuery(schedule_id=schedule))
    assert (past.standing, past.answer) == (RunStatus.DELIVERED, "at last")


async def test_a_dead_letter_waits_in_line_when_its_agent_is_busy(lab: Lab) -> None:
    await lab.add(attempts=1, prompt="dead", at_us=NOW - 1)
    [dead] = await lab.claim()
    await lab.settle([dead], DeliveryFailed("no"))
    await lab.add(prompt="running")
    running = await lab.claim()
    assert await lab.past.redrive(dead.id, lab.now_us)
    assert await lab.claim("another") == []
    await lab.settle(running)
    assert [one.prompt for one in await lab.claim()] == ["dead"]


async def test_an_answer_that_goes_on_is_written_down_with_the_delivery(lab: Lab) -> None:
    await lab.add(forward=AnswerForwarding("https://example.org/hook"))
    await lab.add("bob")
    claimed = await lab.claim()
    assert len(await lab.settle(claimed, "an answer")) == 2
    async with lab.database.read_transaction() as connection:
        [row] = (await connection.execute(select(forwards))).mappings().all()
    [ada] = [one for one in claimed if one.agent_id == "ada"]
    assert (row["occurrence_id"], row["url"], row["state"]) == (ada.id, "https://example.org/hook", "waiting")
    assert json.loads(row["body"])["answer"] == "an answer"


async def test_queues_are_locked_in_the_order_of_their_characters_whatever_the_collation_of_the_database() -> None:
    assert 'ORDER BY lanes.name COLLATE "C" FOR UPDATE' in " ".join(str(LOCK_QUEUES.compile(dialect=dialect())).split())


async def test_what_fell_into_a_run_is_left_out_where_the_schedule_says_so(lab: Lab) -> None:
    await lab.add(trigger=every("10s", NOW), at_us=NOW, overlap=Overlap.SKIP, misfire="all")
    running = await lab.claim()
    lab.now_us += 35 * SECOND
    await lab.settle(running)
    lab.now_us += 6 * SECOND
    assert [one.intended_us for one in await lab.run_through()] == [NOW + 40 * SECOND]
    left_out = (await lab.rows())[1]
    assert (left_out["standing"], left_out["intended_us"]) == ("skipped", NOW + 10 * SECOND)
    assert left_out["reason"].startswith("still running (3 of them, until ")


async def test_an_answer_that_no_database_takes_is_stored_as_far_as_it_goes(lab: Lab) -> None:
    await lab.add()
    await lab.settle(await lab.claim(), "zero \x00, half \ud83d.")
    assert [row["answer"] for row in await lab.rows()] == ["zero , half \N{REPLACEMENT CHARACTER}."]


# A schedule's last run: its state is written once, when the run is over, and not before


LATER = NOW + 10 * MINUTE


async def seen(lab: Lab, schedule_id: int) -> Schedule:
    found = await lab.schedules.get(schedule_id)
    assert found is not None
    return found


@pytest.mark.parametrize("overlap", list(Overlap))
async def test_it_has_no_next_time_from_when_its_last_run_begins(lab: Lab, overlap: Overlap) -> None:
    number = await lab.add(at_us=NOW, overlap=overlap)
    claimed = await lab.claim()
    lab.now_us += MINUTE
    running = await seen(lab, number)
    assert (running.state, running.intended_us, running.fire_us) == (ScheduleState.ACTIVE, None, None)
    assert (running.fired, running.last_us) == (1, NOW)
    figures = await lab.past.figures(lab.now_us)
    assert (figures.due, figures.oldest_overdue_us, figures.running) == (0, 0, 1)
    assert await lab.past.next_us() is None
    await lab.settle(claimed)
    over = await seen(lab, number)
    assert (over.state, over.intended_us, over.fired, over.last_us) == (ScheduleState.ENDED, None, 1, NOW)
    assert over.updated_us == NOW + MINUTE


async def test_it_waits_for_its_next_attempt_and_not_for_its_time(lab: Lab) -> None:
    number = await lab.add(at_us=NOW)
    await lab.settle(await lab.claim(), DeliveryFailed("not yet", retry_after=120))
    assert await lab.claim() == []
    assert await lab.past.next_us() == NOW + 2 * MINUTE
    lab.now_us += 2 * MINUTE
    [again] = await lab.claim()
    assert (again.attempt, again.last, again.next_us) == (2, True, None)
    await lab.settle([again])
    over = await seen(lab, number)
    assert (over.state, over.fired, over.last_us) == (ScheduleState.ENDED, 1, NOW)


async def test_what_comes_after_it_in_the_line_is_next(lab: Lab) -> None:
    await lab.add(at_us=NOW - MINUTE, prompt="first")
    await lab.add(at_us=NOW, prompt="second")
    assert [one.prompt for one in await lab.run_through()] == ["first", "second"]


@pytest.mark.parametrize("ends_well", [True, False])
async def test_changed_to_another_time_meanwhile_it_goes_on(lab: Lab, *, ends_well: bool) -> None:
    number = await lab.add(at_us=NOW)
    claimed = await lab.claim()
    what = (await seen(lab, number)).what
    await lab.schedules.update(number, replace(what, trigger=once(LATER)), LATER, lab.now_us)
    await lab.settle(claimed, None if ends_well else DeliveryFailed("no", permanent=True))
    changed = await seen(lab, number)
    assert (changed.state, changed.intended_us, changed.fired) == (ScheduleState.ACTIVE, LATER, 1)
    lab.now_us = LATER
    [last] = await lab.claim()
    assert (last.number, last.last) == (2, True)


async def test_paused_and_resumed_meanwhile_it_is_over_all_the_same(lab: Lab) -> None:
    number = await lab.add(at_us=NOW)
    claimed = await lab.claim()
    assert await lab.schedules.pause(number, lab.now_us)
    assert (await seen(lab, number)).fired == 1
    resumed = await lab.schedules.resume(number, lab.now_us)
    assert resumed is not None
    assert (resumed.state, resumed.intended_us) == (ScheduleState.ENDED, None)
    await lab.settle(claimed)
    assert ((await seen(lab, number)).fired, await lab.run_through()) == (1, [])


async def test_paused_meanwhile_it_is_over_when_the_run_is(lab: Lab) -> None:
    number = await lab.add(at_us=NOW)
    claimed = await lab.claim()
    await lab.schedules.pause(number, lab.now_us)
    await lab.settle(claimed)
    assert (await seen(lab, number)).state is ScheduleState.ENDED


async def test_cancelled_meanwhile_it_stays_cancelled(lab: Lab) -> None:
    number = await lab.add(at_us=NOW)
    claimed = await lab.claim()
    assert await lab.schedules.cancel(number, lab.now_us)
    await lab.settle(claimed)
    assert ((await seen(lab, number)).state, await lab.run_through()) == (ScheduleState.CANCELLED, [])


async def test_the_last_of_so_many_repetitions_counts(lab: Lab) -> None:
    number = await lab.add(trigger=every("1m", NOW), max_repetitions=2)
    await lab.settle(await lab.claim())
    lab.now_us += MINUTE
    claimed = await lab.claim()
    assert ((await seen(lab, number)).fired, (await seen(lab, number)).intended_us) == (2, None)
    await lab.settle(claimed)
    over = await seen(lab, number)
    assert (over.state, over.fired, over.last_us) == (ScheduleState.ENDED, 2, lab.now_us)


async def test_run_by_hand_beside_its_last_run_it_is_over_with_that(lab: Lab) -> None:
    number = await lab.add(at_us=NOW)
    claimed = await lab.claim()
    await lab.schedules.run_now(number, lab.now_us)
    await lab.settle(claimed)
    assert [one.manual for one in await lab.run_through()] == [True]
    assert ((await seen(lab, number)).state, (await seen(lab, number)).fired) == (ScheduleState.ENDED, 1)
