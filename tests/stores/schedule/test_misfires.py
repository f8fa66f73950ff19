"""Fires that nobody was there for: made up for, or left out, as the schedule says, and recorded either way."""

from itertools import pairwise
from typing import Any

import pytest

from frontdesk.schedules.history_store import HistoryQuery
from frontdesk.schedules.model import SECOND, Misfire, RunStatus, ScheduleState, TriggerKind
from frontdesk.schedules.model import Trigger as Rule
from frontdesk.schedules.triggers import first_fire
from tests.requirements import shows
from tests.stores.schedule.lab import MINUTE, NOW, Lab, every

pytestmark = pytest.mark.anyio
START = NOW - 10 * MINUTE


async def told(lab: Lab) -> list[tuple[str, int, str | None]]:
    """What became of each, and how many minutes after the start it was meant for."""
    return [(row["standing"], (row["intended_us"] - START) // MINUTE, row["reason"]) for row in await lab.rows()]


async def test_one_run_makes_up_for_all_by_default(lab: Lab) -> None:
    await lab.add(trigger=every("1m", START), at_us=START)
    assert [one.number for one in await lab.run_through()] == [1]
    assert await told(lab) == [
        ("skipped", 0, "caught up once (10 of them, until 2027-01-15T07:59:00+00:00)"),
        ("delivered", 10, None),
    ]


async def test_all_are_run_one_after_another_where_the_schedule_says_so(lab: Lab) -> None:
    await lab.add(trigger=every("1m", START), at_us=START, misfire=Misfire.ALL)
    assert [one.number for one in await lab.run_through()] == list(range(1, 12))
    assert await told(lab) == [("delivered", minute, None) for minute in range(11)]


async def test_what_was_missed_is_left_out_where_the_schedule_says_so(lab: Lab) -> None:
    await lab.add(trigger=every("4m", START), at_us=START, misfire=Misfire.SKIP)
    assert await lab.run_through() == []
    assert await told(lab) == [("skipped", 0, "missed (3 of them, until 2027-01-15T07:58:00+00:00)")]
    lab.now_us = START + 12 * MINUTE
    assert len(await lab.run_through()) == 1


async def test_what_comes_too_late_is_said_and_not_done(lab: Lab) -> None:
    schedule = await lab.add(at_us=NOW - 42 * 3600 * SECOND, max_late_s=3600)
    assert await lab.run_through() == []
    [past] = await lab.past.history(HistoryQuery(schedule_id=schedule))
    assert (past.standing, past.reason, past.started_us, past.ended_us) == (RunStatus.SKIPPED, "too late", None, NOW)
    stored = await lab.schedules.get(schedule)
    assert stored is not None
    assert (stored.state, stored.fired) == (ScheduleState.ENDED, 0)


async def test_the_window_bounds_what_is_caught_up(lab: Lab) -> None:
    await lab.add(trigger=every("1m", START), at_us=START, misfire=Misfire.ALL, max_late_s=150)
    assert len(await lab.run_through()) == 3
    assert [minute for standing, minute, _ in await told(lab) if standing == "delivered"] == [8, 9, 10]
    assert (await told(lab))[0] == ("skipped", 0, "too late (8 of them, until 2027-01-15T07:57:00+00:00)")


async def test_fires_left_out_do_not_count_as_repetitions(lab: Lab) -> None:
    await lab.add(trigger=every("1m", START), at_us=START, max_repetitions=2)
    await lab.run_through()
    lab.now_us += MINUTE
    assert [(one.number, one.last) for one in await lab.run_through()] == [(2, True)]


async def test_a_year_of_a_one_second_interval_costs_one_look(lab: Lab) -> None:
    start = NOW - 365 * 86_400 * SECOND
    await lab.add(trigger=every("1s", start), at_us=start)
    assert len(await lab.run_through()) == 1
    assert len(await lab.rows()) == 2


async def test_a_rule_that_ends_ends_its_schedule(lab: Lab) -> None:
    schedule = await lab.add(trigger=every("1m", START, end_us=START + MINUTE), at_us=START, misfire=Misfire.ALL)
    assert [one.last for one in await lab.run_through()] == [False, True]
    stored = await lab.schedules.get(schedule)
    assert stored is not None
    assert stored.state is ScheduleState.ENDED


async def test_a_cron_rule_is_caught_up_and_goes_on_in_its_zone(lab: Lab) -> None:
    rule = Rule(TriggerKind.CRON, "0 9 * * *", "Europe/Berlin")
    # 2027-01-15T08:00Z is nine in the morning in Berlin.
    schedule = await lab.add(trigger=rule, at_us=NOW - 2 * 86_400 * SECOND)
    assert [one.intended_us for one in await lab.run_through()] == [NOW]
    stored = await lab.schedules.get(schedule)
    assert stored is not None
    assert stored.intended_us == NOW + 86_400 * SECOND


async def test_what_one_machine_cannot_read_is_looked_at_again_within_a_minute(lab: Lab) -> None:
    schedule = await lab.add(trigger=Rule(TriggerKind.CRON, "* * * * *", "Nowhere/Town"), at_us=NOW)
    assert await lab.claim() == []
    stored = await lab.schedules.get(schedule)
    assert stored is not None
    assert (stored.intended_us, stored.fire_us, stored.state) == (NOW, NOW + MINUTE, ScheduleState.ACTIVE)


TEN, HOUR = 10 * MINUTE, 60 * MINUTE


def tens(agent_id: str) -> Rule:
    """A rule that comes every ten minutes: by the calendar, counted from a while ago, and from its making."""
    return {
        "calendar": Rule(TriggerKind.CRON, "*/10 * * * *"),
        "counted": every("10m", NOW - HOUR),
        "made": every("10m", NOW + TEN),
    }[agent_id]


@shows("KEPT-11")
@pytest.mark.parametrize(
    ("agent_id", "restarted", "policy"),
    [
        ("calendar", False, {}),
        ("calendar", True, {"max_late_s": 60}),
        ("counted", False, {"misfire": Misfire.ALL}),
        ("counted", True, {}),
        ("made", False, {"misfire": Misfire.SKIP}),
        ("made", True, {}),
    ],
)
async def test_what_recurs_goes_on_by_the_new_time_after_the_clock_was_set_back(
    lab: Lab, agent_id: str, restarted: bool, policy: dict[str, Any]
) -> None:
    trigger = tens(agent_id)
    await lab.add(agent_id, first_fire(trigger, NOW), trigger, **policy)
    await lab.add("later", NOW + 2 * HOUR)
    await lab.worker().recover(lambda _: False)
    lab.now_us += 3 * HOUR
    assert {"later", agent_id} <= {one.agent_id for one in await lab.run_through()}
    lab.now_us -= 3 * HOUR
    name = "another" if restarted else "one"
    ran: list[tuple[int, str]] = []
    for _ in range(4 * 12):
        await lab.worker(name).recover(lambda _: False)
        ran += [(lab.now_us, one.agent_id) for one in await lab.run_through(name)]
        lab.now_us += 5 * MINUTE
    assert {one for _, one in ran} == {agent_id}, "what comes once does not come again"
    times = [at for at, _ in ran]
    assert len(times) >= 4 * 6 - 1
    assert times[0] <= NOW + TEN
    assert {after - before for before, after in pairwise(times)} == {TEN}
    ids = [row["id"] for row in await lab.rows() if row["agent_id"] == agent_id]
    assert len(ids) == len(set(ids))


@shows("KEPT-11")
async def test_a_rule_waits_for_the_start_it_was_given_though_the_clock_was_set_back(lab: Lab) -> None:
    lab.now_us += HOUR
    start = lab.now_us + 5 * MINUTE
    await lab.add(trigger=every("10m", start), at_us=start)
    await lab.worker().recover(lambda _: False)
    lab.now_us -= HOUR
    await lab.worker().recover(lambda _: False)
    lab.now_us = start - MINUTE
    assert await lab.claim() == []
    lab.now_us = start
    assert len(await lab.claim()) == 1


@shows("KEPT-11")
async def test_an_interval_that_was_made_by_a_clock_that_was_ahead_begins_by_the_new_time(lab: Lab) -> None:
    lab.now_us += HOUR
    start = lab.now_us + TEN
    number = await lab.add(trigger=every("10m", start), at_us=start)
    lab.now_us = NOW
    await lab.worker("restarted").recover(lambda _: False)
    lab.now_us = NOW + TEN
    assert [one.schedule_id for one in await lab.claim("restarted")] == [number]
