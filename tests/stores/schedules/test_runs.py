"""Tests runs through the service: manual starts, their history, and the overview, on both databases."""

import json
from datetime import UTC, datetime

import anyio
import pytest

from frontdesk.agents.host import NewAgent
from frontdesk.agents.turns.model import TurnQuery
from frontdesk.app import open_app
from frontdesk.errors import Invalid
from frontdesk.schedules import history_store
from frontdesk.schedules.model import SECOND, RunStatus, Trigger, TriggerKind, WebhookStatus, from_us, now_us, to_us
from frontdesk.schedules.overview_store import UpcomingFire
from frontdesk.schedules.queries import expand_fires
from frontdesk.schedules.requests import ListRuns, NewSchedule, ScheduleChange
from frontdesk.schedules.webhook_store import NewWebhookCall, WebhookStore, add_webhook_calls
from frontdesk.settings import Settings
from tests.stores.schedules.conftest import Installation, agent, begun, program
from tests.support.scheduling import OPERATOR

# Who starts due prompts by hand, and agents that would wait for themselves


SECONDS = 30


async def delivered(installation: Installation) -> set[int]:
    """The schedules that have run, as soon as any has."""
    with anyio.fail_after(SECONDS):
        while True:
            wanted = ListRuns(standing=RunStatus.DELIVERED)
            runs = (await installation.schedules.queries.history(agent(installation.ada), wanted)).runs
            if runs:
                return {run.schedule_id for run in runs}
            await anyio.lowlevel.checkpoint()


@pytest.mark.parametrize("user", [None, "ann"])
async def test_an_agent_does_not_wait_for_the_end_of_its_own_turn(installation: Installation, user: str | None) -> None:
    due = await installation.put(installation.ada, due_us=now_us() - SECOND)
    await installation.put(installation.bob, due_us=now_us() - SECOND)
    (told,) = await installation.schedules.executor.run_due(agent(installation.ada, user))
    assert (told.id, told.agent_id, told.delivered, told.later) == (due.id, installation.ada, False, True)
    assert told.error is not None
    assert "when your present turn has ended" in told.error
    assert told.delivery_id == f"run-{due.id}-{(due.intended_us or 0) // 1000}"
    assert await delivered(installation) == {due.id}


async def test_an_agent_in_a_scheduled_run_does_not_wait_however_it_is_named(installation: Installation) -> None:
    await installation.put(installation.ada, due_us=now_us() - 2 * SECOND)
    other = await installation.put(installation.ada, due_us=now_us() - SECOND)
    await begun(installation)
    (told,) = await installation.schedules.executor.run_due(program(installation.ada))
    assert (told.id, told.delivered, told.later) == (other.id, False, True)


async def test_a_loop_ends_where_something_waits_for_the_callers_own_turn(installation: Installation) -> None:
    rounds: list[int] = []

    async def told(number: int, _executed: object) -> None:
        rounds.append(number)

    await installation.put(installation.ada, due_us=now_us() - SECOND)
    with anyio.fail_after(SECONDS):
        assert await installation.schedules.executor.loop(agent(installation.ada), 1, 300, told) == 1
    assert rounds == [1]


async def test_the_next_time_is_one_at_which_something_is_due(installation: Installation) -> None:
    async def next_us() -> int | None:
        return (await installation.schedules.executor.state(OPERATOR)).next_us

    assert await next_us() is None
    soon, moved, later = [
        await installation.put(agent_id) for agent_id in (installation.ada, installation.bob, installation.bob)
    ]
    assert await next_us() == soon.intended_us
    await installation.schedules.cancel(OPERATOR, soon.id)
    assert await next_us() == moved.intended_us
    await installation.schedules.update(OPERATOR, moved.id, ScheduleChange(every="9h"))
    assert await next_us() == later.intended_us
    await installation.schedules.pause(OPERATOR, later.id)
    assert await next_us() == (await installation.schedules.queries.get(OPERATOR, moved.id)).intended_us


# The history of runs, page by page, and of answers that went on to a webhook


async def pages(installation: Installation, limit: int) -> list[str]:
    """The ids of all runs, read page by page."""
    found: list[str] = []
    before: str | None = None
    while True:
        listed = await installation.schedules.queries.history(OPERATOR, ListRuns(before=before, limit=limit))
        assert len(listed.runs) == limit or listed.next is None
        found += [run.id for run in listed.runs]
        if listed.next is None:
            return found
        before = listed.next


async def test_runs_that_were_due_at_one_moment_are_all_told_on_some_page(installation: Installation) -> None:
    due = now_us() - 10 * SECOND
    for at in (due, due, due, due, due + SECOND, due - SECOND):
        await installation.put(installation.ada, due_us=at)
    while await installation.schedules.executor.run_due(OPERATOR):
        pass
    runs = (await installation.schedules.queries.history(OPERATOR)).runs
    assert len(runs) == 6
    assert [run.intended_us for run in runs] == sorted((run.intended_us for run in runs), reverse=True)
    for limit in (1, 2, 3, 4, 6, 7):
        assert await pages(installation, limit) == [run.id for run in runs]
    since = (await installation.schedules.queries.history(OPERATOR, ListRuns(before=from_us(due).isoformat()))).runs
    assert [run.id for run in since] == [runs[-1].id]


@pytest.mark.parametrize("before", ["yesterday", "2026-03-04T12:00:00", "17.", "17", ".run-1-1", "17.run 1"])
async def test_a_place_in_the_history_that_is_none_is_told(installation: Installation, before: str) -> None:
    with pytest.raises(Invalid, match="`next` of the page before"):
        await installation.schedules.queries.history(OPERATOR, ListRuns(before=before))


async def test_an_answer_that_its_webhook_never_took_is_told_with_its_run(installation: Installation) -> None:
    await installation.put(installation.ada, due_us=now_us() - SECOND)
    (done,) = await installation.schedules.executor.run_due(OPERATOR)
    (run,) = (await installation.schedules.queries.history(agent(installation.ada))).runs
    assert run.forwarded is None
    forwards, now = WebhookStore(installation.app.database), now_us()
    new = [NewWebhookCall(done.delivery_id, "https://example.com/hook/secret", "{}")]
    await installation.app.database.write(lambda connection: add_webhook_calls(connection, new, now), small=True)
    (run,) = (await installation.schedules.queries.history(agent(installation.ada))).runs
    assert run.forwarded == WebhookStatus("waiting", 0)
    (due,) = await forwards.claim(1, now, now + SECOND)
    await forwards.failed(due, "example.com answered 410", None)
    (run,) = (await installation.schedules.queries.history(agent(installation.ada))).runs
    assert run.forwarded == WebhookStatus("dead", 1, "example.com answered 410")


# The overview of all schedules and runs


MINUTE = 60 * SECOND


@pytest.mark.parametrize("of_one_agent", [False, True])
async def test_runs_that_are_over_come_in_pages_that_leave_none_out(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, *, of_one_agent: bool
) -> None:
    monkeypatch.setattr(history_store, "RUNS_LOOKED_THROUGH", 2)
    async with open_app(settings) as app:
        agent = (await app.host.create(NewAgent("Ada"))).id
        number = (await app.schedules.add(OPERATOR, NewSchedule("Hello", agent, when="every day at 9"))).schedule.id
        runs = [await app.schedules.run_now(OPERATOR, number) for _ in range(5)]
        assert len(await app.schedules.overview.under_way(OPERATOR, None, 10)) == 5
        while await app.schedules.overview.under_way(OPERATOR, None, 1):
            await app.schedules.executor.run_due(OPERATOR)
        whose = agent if of_one_agent else None
        for standing, found in (
            (None, runs),
            (RunStatus.DELIVERED, runs),
            (RunStatus.SKIPPED, []),
            (RunStatus.DEAD, []),
        ):
            told: list[str] = []
            place: str | None = None
            while True:
                page = await app.schedules.overview.ended(OPERATOR, whose, standing, place, 2)
                told += [run.id for run in page.runs]
                place = page.next
                if place is None:
                    break
            assert sorted(told) == sorted(found)


async def test_what_changes_or_begins_is_told_by_the_mark(settings: Settings) -> None:
    async with open_app(settings) as app:
        schedules = app.schedules
        agent = (await app.host.create(NewAgent("Ada"))).id
        number = (await schedules.add(OPERATOR, NewSchedule("Hello", agent, when="every day at 9"))).schedule.id
        marks = [await schedules.overview.change_mark(OPERATOR, whose) for whose in (None, agent)]
        changes = (
            lambda: schedules.pause(OPERATOR, number),
            lambda: schedules.resume(OPERATOR, number),
            lambda: schedules.update(OPERATOR, number, ScheduleChange(when="every day at 10")),
            lambda: schedules.cancel(OPERATOR, number),
        )
        for permission_request in changes:
            await permission_request()
            after = [await schedules.overview.change_mark(OPERATOR, whose) for whose in (None, agent)]
            assert after[0] != marks[0]
            assert after[1] != marks[1]
            marks = after
        assert marks == [await schedules.overview.change_mark(OPERATOR, whose) for whose in (None, agent)]


async def test_a_run_knows_the_turns_of_all_its_attempts(settings: Settings) -> None:
    async with open_app(settings) as app:
        schedules = app.schedules
        agent = (await app.host.create(NewAgent("Ada"))).id
        fails = f"@@{json.dumps([{'error': 500}])}@@"
        number = (
            await schedules.add(OPERATOR, NewSchedule(fails, agent, when="every day at 9", attempts=1))
        ).schedule.id
        run = await schedules.run_now(OPERATOR, number)
        assert await schedules.overview.turns_of(OPERATOR, await schedules.queries.get_visible_run(OPERATOR, run)) == []
        await schedules.executor.run_due(OPERATOR)
        await schedules.redrive(OPERATOR, run)
        await schedules.executor.run_due(OPERATOR)
        past = await schedules.queries.get_visible_run(OPERATOR, run)
        taken = await app.turns.list(TurnQuery(agent_id=agent))
        assert await schedules.overview.turns_of(OPERATOR, past) == [one.id for one in taken if one.otid == run]
        assert len(past.earlier) == 1
        assert (await schedules.overview.run_references(OPERATOR, [run, "run-9-9"]))[run].schedule_id == number
        assert await schedules.overview.zones(OPERATOR, [past]) == {number: "UTC"}


def test_times_to_come_are_those_of_every_schedule_in_turn() -> None:
    begin = to_us(datetime(2031, 3, 1, tzinfo=UTC))
    often = UpcomingFire(begin, Trigger(TriggerKind.INTERVAL, "1m", start_us=begin))
    once = UpcomingFire(begin + 90 * SECOND, Trigger(TriggerKind.ONCE, "2031-03-01T00:01:30+00:00"))
    told, more = expand_fires([often, once], begin + 3 * MINUTE, 100)
    assert ([(at - begin) // SECOND for at in told], more) == ([0, 60, 90, 120, 180], False)
    told, more = expand_fires([often, once], begin + 300 * MINUTE, 4)
    assert (len(told), more) == (4, True)
    assert expand_fires([], MINUTE, 4) == ([], False)
