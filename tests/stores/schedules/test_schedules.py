"""Tests schedules created, changed, paused and cancelled while workers claim them; and missed runs."""

from dataclasses import replace
from itertools import pairwise
from typing import Any

import anyio
import pytest
from typing_extensions import override

from frontdesk.db.engine import Database
from frontdesk.errors import Conflict, NotFound
from frontdesk.schedules.history_store import HistoryCursor, HistoryQuery
from frontdesk.schedules.model import (
    SECOND,
    AnswerForwarding,
    DeliveryFailed,
    Misfire,
    Overlap,
    OwnerFilter,
    RunStatus,
    ScheduleDefinition,
    SchedulePolicy,
    ScheduleState,
    Trigger,
    TriggerKind,
)
from frontdesk.schedules.model import Trigger as Rule
from frontdesk.schedules.store import DefaultAgentStore, ScheduleFilter
from frontdesk.schedules.triggers import first_fire
from tests.requirements import shows
from tests.stores.schedules.conftest import MINUTE, NOW, Lab, every, once

# Schedules: created, listed, changed, paused and cancelled, while workers claim them


FULL = ScheduleDefinition(
    agent_id="ada",
    prompt="Water the plants",
    trigger=Trigger(TriggerKind.CRON, "0 9 * * MON-FRI", "Europe/Berlin", NOW, NOW + 365 * 86_400 * SECOND, 30),
    user_id="u1",
    policy=SchedulePolicy(Overlap.SKIP, Misfire.ALL, 3600, 3),
    max_repetitions=7,
    words="every weekday at 9 Berlin time",
    forward=AnswerForwarding("https://example.org/hook", timeline=True),
    conversation_id="conv-1",
    made_by="run-1-2",
)


async def test_a_schedule_is_kept_as_it_was_made(lab: Lab) -> None:
    made = await lab.schedules.add(FULL, NOW + MINUTE, NOW)
    assert made == await lab.schedules.get(made.id)
    assert made.what == FULL
    assert (made.state, made.fired, made.last_us, made.intended_us) == (ScheduleState.ACTIVE, 0, None, NOW + MINUTE)
    assert (made.created_us, made.updated_us) == (NOW, NOW)
    assert await lab.schedules.get(made.id + 1) is None


async def test_many_are_made_at_once(lab: Lab) -> None:
    news = [(replace(FULL, agent_id=f"agent-{number % 7}", prompt=str(number)), NOW + number) for number in range(2500)]
    ids = await lab.schedules.add_many(news, NOW)
    assert len(set(ids)) == 2500
    for number in (0, 1, 2499):
        stored = await lab.schedules.get(ids[number])
        assert stored is not None
        assert (stored.what, stored.intended_us) == news[number]
        assert stored.fire_us is not None
        assert stored.fire_us > NOW + number
    assert await lab.schedules.add_many([], NOW) == []


async def test_an_agent_has_no_more_schedules_than_it_may_even_when_they_come_at_once(lab: Lab) -> None:
    made: list[int] = []

    async def add() -> None:
        try:
            made.append((await lab.schedules.add(FULL, NOW + MINUTE, NOW, limit=3)).id)
        except Conflict as error:
            assert "the most it may have" in str(error)  # noqa: PT017 - some are refused, and some are not

    async with anyio.create_task_group() as tasks:
        for _ in range(8):
            tasks.start_soon(add)
    assert len(made) == 3
    assert await lab.schedules.count_active("ada") == 3
    await lab.schedules.pause(made[0], NOW)
    with pytest.raises(Conflict):
        await lab.schedules.add(FULL, NOW + MINUTE, NOW, limit=3)
    await lab.schedules.cancel(made[0], NOW)
    await lab.schedules.add(FULL, NOW + MINUTE, NOW, limit=3)


async def test_everybody_sees_what_is_theirs(lab: Lab) -> None:
    for agent, user in (("ada", "u1"), ("ada", "u2"), ("ada", None), ("bob", "u1"), ("bob", None)):
        await lab.add(agent, user_id=user, made_by=f"run-{agent}")

    async def seen(whose: OwnerFilter) -> list[tuple[str, str | None]]:
        found = await lab.schedules.list(ScheduleFilter(whose))
        assert await lab.schedules.count(ScheduleFilter(whose)) == len(found)
        return [(one.what.agent_id, one.what.user_id) for one in found]

    assert await seen(OwnerFilter("ada")) == [("ada", "u1"), ("ada", "u2"), ("ada", None)]
    assert await seen(OwnerFilter("ada", "u1")) == [("ada", "u1")]
    assert await seen(OwnerFilter("ada", "u1", include_unowned=True)) == [("ada", "u1"), ("ada", None)]
    assert await seen(OwnerFilter(user_id="u1")) == [("ada", "u1"), ("bob", "u1")]
    assert len(await seen(OwnerFilter())) == 5
    assert await lab.schedules.count(ScheduleFilter(made_by="run-bob")) == 2


async def test_long_lists_come_in_pages_and_by_state(lab: Lab) -> None:
    ids = [await lab.add() for _ in range(5)]
    await lab.schedules.pause(ids[1], NOW)
    await lab.schedules.cancel(ids[2], NOW)
    page = await lab.schedules.list(ScheduleFilter(limit=2))
    assert [one.id for one in page] == [ids[0], ids[3]]
    assert [one.id for one in await lab.schedules.list(ScheduleFilter(after=ids[3]))] == [ids[4]]
    assert [one.id for one in await lab.schedules.list(ScheduleFilter(states=[ScheduleState.PAUSED]))] == [ids[1]]
    assert len(await lab.schedules.list(ScheduleFilter(states=()))) == 5


async def test_a_second_cancel_is_told_apart_from_the_first(lab: Lab) -> None:
    schedule = await lab.add()
    assert await lab.schedules.cancel(schedule, NOW)
    assert not await lab.schedules.cancel(schedule, NOW)
    assert not await lab.schedules.cancel(schedule + 1, NOW)
    assert await lab.claim() == []


class Ticking(Lab):
    """A clock that returns a later time at each call."""

    @override
    def clock(self) -> int:
        self.now_us += 1
        return self.now_us


async def test_nothing_begins_after_a_cancel_was_acknowledged(database: Database) -> None:
    lab = Ticking(database)
    schedules = [await lab.add(f"agent-{number}") for number in range(30)]
    acknowledged: dict[int, int] = {}

    async def cancel() -> None:
        for schedule in reversed(schedules):
            assert await lab.schedules.cancel(schedule, lab.now_us)
            acknowledged[schedule] = lab.clock()

    async def work(name: str) -> None:
        for _ in range(20):
            await lab.claim(name, places=1)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(work, "one")
        tasks.start_soon(cancel)
        tasks.start_soon(work, "two")
    rows = await lab.rows()
    assert rows
    assert [row for row in rows if row["started_us"] > acknowledged[row["schedule_id"]]] == []
    assert await lab.claim("one") == []


async def test_a_run_under_way_ends_after_a_cancel_but_is_not_tried_again(lab: Lab) -> None:
    ended, failed = await lab.add("ada", at_us=NOW), await lab.add("bob", at_us=NOW)
    ada, bob = sorted(await lab.claim(), key=lambda one: one.agent_id)
    for schedule in (ended, failed):
        assert await lab.schedules.cancel(schedule, NOW)
    assert await lab.settle([ada])
    assert await lab.settle([bob], DeliveryFailed("no"))
    lab.now_us += MINUTE
    assert await lab.claim() == []
    assert {row["agent_id"]: row["standing"] for row in await lab.rows()} == {"ada": "delivered", "bob": "cancelled"}
    stored = await lab.schedules.get(ended)
    assert stored is not None
    assert stored.state is ScheduleState.CANCELLED


async def test_what_waits_for_another_try_is_cancelled_and_lets_the_next_one_go(lab: Lab) -> None:
    schedule = await lab.add(at_us=NOW - 1)
    await lab.settle(await lab.claim(), DeliveryFailed("no"))
    await lab.add(prompt="next")
    assert await lab.claim() == []
    await lab.schedules.cancel(schedule, NOW)
    assert [one.prompt for one in await lab.claim()] == ["next"]


async def test_what_a_lost_worker_had_of_a_cancelled_schedule_is_not_begun_again(lab: Lab) -> None:
    schedule = await lab.add()
    await lab.claim("lost")
    await lab.schedules.cancel(schedule, NOW)
    lab.now_us += 2 * MINUTE
    assert await lab.claim("another") == []
    assert await lab.standings() == ["cancelled"]


async def test_a_paused_schedule_fires_when_it_is_resumed_and_leaves_out_what_passed(lab: Lab) -> None:
    schedule = await lab.add(trigger=every("10m", NOW), at_us=NOW)
    assert await lab.schedules.pause(schedule, NOW)
    assert not await lab.schedules.pause(schedule, NOW)
    lab.now_us += 25 * MINUTE
    assert await lab.claim() == []
    resumed = await lab.schedules.resume(schedule, lab.now_us)
    assert resumed is not None
    assert (resumed.state, resumed.intended_us) == (ScheduleState.ACTIVE, NOW + 30 * MINUTE)
    assert await lab.schedules.resume(schedule, lab.now_us) is None
    assert await lab.claim() == []
    lab.now_us += 5 * MINUTE
    assert [one.number for one in await lab.claim()] == [1]


async def test_a_single_prompt_that_was_due_while_paused_is_run_when_it_is_resumed(lab: Lab) -> None:
    schedule = await lab.add(at_us=NOW + MINUTE)
    await lab.schedules.pause(schedule, NOW)
    lab.now_us += 5 * MINUTE
    await lab.schedules.resume(schedule, lab.now_us)
    assert [one.intended_us for one in await lab.claim()] == [NOW + MINUTE]


async def test_resuming_what_will_never_fire_again_ends_it(lab: Lab) -> None:
    schedule = await lab.add(trigger=every("10m", NOW, end_us=NOW + 20 * MINUTE), at_us=NOW)
    await lab.schedules.pause(schedule, NOW)
    resumed = await lab.schedules.resume(schedule, NOW + 30 * MINUTE)
    assert resumed is not None
    assert resumed.state is ScheduleState.ENDED


async def test_a_changed_schedule_goes_by_what_it_is_now(lab: Lab) -> None:
    schedule = await lab.add(at_us=NOW + MINUTE)
    what = ScheduleDefinition("ada", "Something else", once(NOW + 1), policy=SchedulePolicy(Overlap.ALLOW))
    changed = await lab.schedules.update(schedule, what, NOW + 1, NOW)
    assert changed is not None
    assert (changed.what, changed.intended_us, changed.fire_us) == (what, NOW + 1, NOW + 1)
    kept = await lab.schedules.update(schedule, replace(what, prompt="And again"), None, NOW)
    assert kept is not None
    assert kept.intended_us == NOW + 1
    lab.now_us += 1
    assert [(one.prompt, one.overlap) for one in await lab.claim()] == [("And again", Overlap.ALLOW)]
    with pytest.raises(Conflict, match="stays with its agent"):
        await lab.schedules.update(schedule, replace(what, agent_id="bob"), None, NOW)
    await lab.schedules.cancel(schedule, NOW)
    assert await lab.schedules.update(schedule, what, None, NOW) is None


async def test_a_schedule_is_run_on_somebodys_word_beside_its_rule(lab: Lab) -> None:
    schedule = await lab.add(trigger=every("1h", NOW + MINUTE), at_us=NOW + MINUTE, max_repetitions=1)
    names = {await lab.schedules.run_now(schedule, NOW) for _ in range(3)}
    assert len(names) == 3
    ran = await lab.run_through()
    assert {one.id for one in ran} == names
    assert all(one.manual and one.attempt == 1 for one in ran)
    lab.now_us += MINUTE
    assert [(one.manual, one.number, one.last) for one in await lab.run_through()] == [(False, 1, True)]


async def test_what_was_cancelled_or_never_was_is_not_run(lab: Lab) -> None:
    schedule = await lab.add()
    await lab.schedules.cancel(schedule, NOW)
    with pytest.raises(Conflict, match="cancelled"):
        await lab.schedules.run_now(schedule, NOW)
    with pytest.raises(NotFound):
        await lab.schedules.run_now(schedule + 1, NOW)
    with pytest.raises(NotFound):
        await lab.past.redrive("run-1-1", NOW)


async def test_the_run_that_an_agent_is_in_is_known(lab: Lab) -> None:
    assert await lab.schedules.under_way("ada") is None
    await lab.add(trigger=every("1h", NOW), at_us=NOW)
    claimed = await lab.claim()
    assert await lab.schedules.under_way("ada") == claimed[0]
    assert claimed[0].recurring
    await lab.settle(claimed)
    assert await lab.schedules.under_way("ada") is None


async def test_history_is_told_newest_first_and_to_whom_it_concerns(lab: Lab) -> None:
    await lab.add("ada", trigger=every("1m", NOW), at_us=NOW, user_id="u1")
    await lab.add("bob", at_us=NOW)
    for _ in range(3):
        await lab.run_through()
        lab.now_us += MINUTE
    told = await lab.past.history(HistoryQuery(OwnerFilter("ada")))
    assert [one.intended_us for one in told] == [NOW + 2 * MINUTE, NOW + MINUTE, NOW]
    page = await lab.past.history(HistoryQuery(OwnerFilter("ada"), before=HistoryCursor(NOW + 2 * MINUTE), limit=1))
    assert page == told[1:2]
    assert len(await lab.past.history(HistoryQuery(OwnerFilter(user_id="u1")))) == 3
    assert await lab.past.history(HistoryQuery(standings=[RunStatus.DEAD])) == []
    assert await lab.past.get(told[0].id) == told[0]
    assert await lab.past.get("run-0-0") is None


async def test_the_figures_say_how_things_stand(lab: Lab) -> None:
    figures = await lab.past.figures(NOW)
    assert (figures.due, figures.oldest_overdue_us, figures.running, figures.waiting, figures.dead) == (0, 0, 0, 0, 0)
    for number in range(3):
        await lab.add("ada", at_us=NOW - 30 * SECOND + number)
    await lab.add("bob", at_us=NOW - 10 * SECOND)
    await lab.add("cleo", at_us=NOW - 5 * SECOND, attempts=1)
    await lab.add("dora", at_us=NOW + MINUTE)
    figures = await lab.past.figures(NOW)
    assert (figures.due, figures.oldest_overdue_us) == (5, 30 * SECOND)
    ada, bob, cleo = sorted(await lab.claim(), key=lambda one: one.agent_id)
    await lab.settle([bob], DeliveryFailed("later"))
    await lab.settle([cleo], DeliveryFailed("never"))
    figures = await lab.past.figures(NOW)
    assert (figures.due, figures.oldest_overdue_us, figures.running) == (2, 30 * SECOND - 1, 1)
    assert (figures.waiting, figures.dead) == (1, 1)
    assert ada.agent_id == "ada"


async def test_what_is_long_over_is_forgotten_and_dead_letters_later(lab: Lab) -> None:
    day = 86_400 * SECOND
    await lab.add("ada")
    await lab.add("bob", attempts=1)
    imported = await lab.add("cleo", made_by="import:1", at_us=NOW + 400 * day)
    await lab.schedules.cancel(imported, NOW)
    await lab.add("dora", trigger=every("1h", NOW), at_us=NOW)
    for one in await lab.claim():
        await lab.settle([one], DeliveryFailed("no") if one.agent_id == "bob" else None)
    assert await lab.past.prune(NOW - day, NOW - day) == 0
    assert await lab.past.prune(NOW + day, NOW - day) == 2
    assert [row["agent_id"] for row in await lab.rows()] == ["bob"]
    left = await lab.schedules.list(ScheduleFilter(states=()))
    assert [one.what.agent_id for one in left] == ["bob", "cleo", "dora"]
    assert await lab.past.prune(NOW + day, NOW + day) == 1
    assert await lab.rows() == []


async def test_each_scope_has_a_default_agent_of_its_own(database: Database) -> None:
    store = DefaultAgentStore(database)
    assert await store.get("") is None
    await store.set("", "ada", NOW)
    await store.set("client", "bob", NOW)
    await store.set("client", "cleo", NOW)
    assert (await store.get(""), await store.get("client")) == ("ada", "cleo")
    await store.set("client", None, NOW)
    assert (await store.get(""), await store.get("client")) == ("ada", None)


# Missed runs: caught up or skipped, as the schedule says, and recorded in both cases


START = NOW - 10 * MINUTE


async def told(lab: Lab) -> list[tuple[str, int, str | None]]:
    """The outcome of each, and its time in minutes after the start."""
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
    """A rule for every ten minutes: by the calendar, counted from some time ago, and from its creation."""
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
