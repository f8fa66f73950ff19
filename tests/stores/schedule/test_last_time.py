"""A schedule's last time: it is written once, when the run is over, and nobody can tell until then."""

from dataclasses import replace

import pytest

from frontdesk.schedules.model import DeliveryFailed, Overlap, Schedule, ScheduleState
from tests.stores.schedule.lab import MINUTE, NOW, Lab, every, once

pytestmark = pytest.mark.anyio
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
