"""Tests the demo: the data of one day, made by running the product."""

from collections.abc import AsyncGenerator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from frontdesk.agents.host import NewAgent, Prompt
from frontdesk.agents.turns.model import TurnQuery
from frontdesk.app import App, open_app
from frontdesk.errors import Conflict, Invalid
from frontdesk.identity.model import Caller
from frontdesk.interfaces.cli.demo import (
    ACTIVITIES,
    DEMO_PERSON,
    HOME_ZONE,
    TASKS,
    TIME_ENTRIES,
    SampleData,
    create_sample_data,
)
from frontdesk.interfaces.demo_server import CLOTHES, DemoDay
from frontdesk.interfaces.http.application import build_application
from frontdesk.journal.model import EntryKind, Outcome
from frontdesk.journal.store import JournalQuery, ToolUseQuery
from frontdesk.llm.events import TextChunk
from frontdesk.llm.scripted_models import OFFLINE_ANSWER
from frontdesk.memory.activities_rules import ActivityFilter
from frontdesk.memory.model import PersonScope
from frontdesk.schedules.model import RunStatus
from frontdesk.schedules.requests import ListRuns, ListSchedules
from frontdesk.settings import Settings
from tests.conftest import settings_with
from tests.requirements import shows
from tests.support.browsers import browsing, text_of
from tests.support.desk import frontdesk_here
from tests.support.postgres import Ready

LOCAL = Caller("test", local=True, any_agent=True)
ANN = Caller("test", user_id=DEMO_PERSON, local=True, any_agent=True)
SCRIPT = "@@"
PAGES = {
    "/start": "3 of 5 steps are done",
    "/agents": "Bruno",
    "/tools/all": "weather_forecast",
    "/schedule": "given up",
    f"/people/{DEMO_PERSON}": "Write the offer for Nord",
    "/turns": "Cleo ann done",
    "/access": "Ann's phone",
}


@pytest.fixture
async def lived_in(settings: Settings) -> AsyncGenerator[App]:
    async with open_app(settings) as app:
        await create_sample_data(app, LOCAL, datetime.now(UTC))
        yield app


@shows("WEB-START")
async def test_a_day_leaves_something_to_see_in_every_capability_and_on_every_page(lived_in: App) -> None:
    app = lived_in
    await app.journal.flush()
    rows = [entry for _, entry in await app.journal.read(JournalQuery(limit=1000))]
    assert {EntryKind.CALL, EntryKind.DENIAL, EntryKind.TURN, EntryKind.TOOL, EntryKind.DELIVERY} == {
        row.kind for row in rows
    }
    assert {Outcome.OK, Outcome.FAILED, Outcome.REFUSED, Outcome.DENIED} == {row.outcome for row in rows}
    assert {"credential", "header", "parameter", "schedule"} <= {str(row.source) for row in rows}
    used = {use.tool for use in await app.tools.administration.usage(LOCAL, ToolUseQuery())}
    assert {"demo-desk::weather_forecast", "demo-desk::search_tickets", "demo-desk::summarize_sales"} <= used
    runs = (await app.schedules.queries.history(LOCAL, ListRuns())).runs
    assert {run.standing for run in runs} == {RunStatus.DELIVERED, RunStatus.DEAD}
    assert any("growth 5 %" in (run.answer or "") for run in runs)
    async with browsing(build_application(app)) as web:
        for path, words in PAGES.items():
            assert words in text_of(await web.get(path)), path


async def test_what_is_shown_was_said_by_people_at_hours_that_fit_and_is_counted(app: App) -> None:
    filled = await create_sample_data(app, LOCAL, datetime.now(UTC))
    await _nothing_is_shown_of_scripts(app)
    await _everything_was_done_at_its_hour(app)
    await _what_there_is_was_counted(app, filled)
    agent = (await app.host.list(1))[0]
    assert agent.model is None
    said = [event async for event in app.host.send(Prompt(agent.id, ANN, CLOTHES))]
    assert "".join(event.text for event in said if isinstance(event, TextChunk)) == OFFLINE_ANSWER


async def _nothing_is_shown_of_scripts(app: App) -> None:
    turns = await app.turns.list(TurnQuery(limit=100))
    assert all(turn.input_tokens > 500 for turn in turns if turn.failure is None)
    told = [str(said.event) for turn in turns for said in await app.host.turn_history(turn)]
    schedules = (await app.schedules.queries.list(LOCAL, ListSchedules(include_cancelled=True))).schedules
    told += [schedule.what.prompt for schedule in schedules]
    told += [str(run) for run in (await app.schedules.queries.history(LOCAL, ListRuns())).runs]
    for agent in await app.host.list(10):
        told += [talk.title for talk in await app.host.conversations(agent.id, 50)]
    assert [words for words in told if SCRIPT in words] == []
    async with browsing(build_application(app)) as web:
        for turn in turns:
            assert SCRIPT not in text_of(await web.get(f"/turns/{turn.id}"))


async def _everything_was_done_at_its_hour(app: App) -> None:
    scope, now = PersonScope.for_caller(ANN), datetime.now(UTC)
    done = (await app.memory.activities.list(scope, ActivityFilter())).items
    assert {one.title: f"{one.started_at.astimezone(HOME_ZONE):%H:%M}" for one in done} == {
        "Run along the river": "07:00",
        "Lunch with Jo": "12:30",
        "Read about queues": "21:00",
    }
    assert all(one.ended_at is not None and one.ended_at <= now for one in done)
    week = await app.memory.time_tracking.entries_between(scope, *_days(now, 7))
    assert len(week) == len(TIME_ENTRIES) + 1
    assert all(entry.end_at is None or entry.end_at <= now for entry in week)


def _days(now: datetime, count: int) -> tuple[str, str]:
    return (now - timedelta(days=count)).isoformat(), now.isoformat()


async def _what_there_is_was_counted(app: App, filled: SampleData) -> None:
    kept = await app.memory.people.counts(PersonScope.for_caller(ANN))
    assert dict(filled.counts) == {
        "agents": 3,
        "tools": 6,
        "turns": len(await app.turns.list(TurnQuery(limit=100))),
        "schedules": 7,
        "keys": len(await app.keys.list()),
        "tasks": kept["tasks"],
        "memories": kept["memories"],
        "activities": 3,
        "time entries": kept["time_entries"],
    }
    assert kept["tasks"] == len(TASKS) + 3


@pytest.mark.parametrize("clock", ["00:00", "05:13", "09:48", "12:31", "16:00", "23:59"])
@pytest.mark.parametrize("date", ["2026-03-29", "2026-10-25", "2026-11-20"])
def test_what_has_been_done_is_over_and_keeps_its_hour_whenever_the_day_is_made(date: str, clock: str) -> None:
    day = DemoDay(datetime.fromisoformat(f"{date}T{clock}").replace(tzinfo=HOME_ZONE).astimezone(UTC), HOME_ZONE)
    spans = [(day.past(hour, minutes, days), minutes) for _, days, hour, minutes, _ in TIME_ENTRIES]
    spans += [(day.past(hour, minutes), minutes) for hour, minutes, _ in ACTIVITIES]
    assert all(start + timedelta(minutes=minutes) <= day.now for start, minutes in spans)
    assert f"{day.past('12:30', 55):%H:%M}" == "12:30"
    assert day.past("07:00", 40) >= day.now - timedelta(hours=26)
    friday = day.friday("18:00")
    assert (f"{friday:%A %H:%M}", friday > day.now) == ("Friday 18:00", True)


async def test_an_installation_with_agents_is_left_alone(app: App) -> None:
    await app.identity.first_key()
    await app.host.create(NewAgent("Ada"))
    with pytest.raises(Conflict, match="agents or keys already"):
        await create_sample_data(app, LOCAL, datetime.now(UTC))
    assert [agent.name for agent in await app.host.list(5)] == ["Ada"]


async def test_an_installation_with_a_key_of_somebody_is_left_alone(app: App) -> None:
    await app.identity.create_key(name="mine", agent_id=None, user_id="ann")
    with pytest.raises(Conflict, match="--data DIR"):
        await create_sample_data(app, LOCAL, datetime.now(UTC))


async def test_agents_on_letta_are_left_alone(tmp_path: Path, ready: Ready) -> None:
    data = ready.in_folder(tmp_path / "data")
    async with open_app(settings_with(FRONTDESK_DATA=data, LETTA_BASE_URL="http://127.0.0.1:9")) as app:
        with pytest.raises(Invalid, match="LETTA_BASE_URL"):
            await create_sample_data(app, LOCAL, datetime.now(UTC))


def test_the_command_says_what_it_made_and_where_to_look_and_does_it_once(tmp_path: Path) -> None:
    data, own = tmp_path / "data", tmp_path / "own"
    done = frontdesk_here("demo", "--data", str(own), data=data)
    assert done.returncode == 0, done.stderr
    assert "3 agents, 6 tools" in done.stdout
    assert "9 tasks" in done.stdout
    assert done.stderr == ""
    assert f"FRONTDESK_DATA={own} frontdesk up" in done.stdout
    assert "/schedule" in done.stdout
    assert not data.exists()
    again = frontdesk_here("demo", data=own)
    assert (again.returncode, again.stdout) == (1, "")
    assert "agents or keys already" in again.stderr
