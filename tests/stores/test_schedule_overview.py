"""All schedules and runs at a glance, on both databases."""

import json
from datetime import UTC, datetime

import pytest

from frontdesk.agents.host import NewAgent
from frontdesk.agents.turns.model import TurnQuery
from frontdesk.app import open_app
from frontdesk.schedules import history_store
from frontdesk.schedules.model import SECOND, RunStatus, Trigger, TriggerKind, to_us
from frontdesk.schedules.overview_store import UpcomingFire
from frontdesk.schedules.queries import expand_fires
from frontdesk.schedules.requests import NewSchedule, ScheduleChange
from frontdesk.settings import Settings
from tests.support.scheduling import OPERATOR

pytestmark = pytest.mark.anyio
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
