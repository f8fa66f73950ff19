"""The demo: a day that has passed in a house, made by running the product."""

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from frontdesk.agents.host import NewAgent
from frontdesk.app import App, open_app
from frontdesk.errors import Conflict, Invalid
from frontdesk.identity.model import Caller
from frontdesk.journal.model import Kind, Outcome
from frontdesk.journal.store import Query, UseQuery
from frontdesk.schedule.asked import PastWanted
from frontdesk.schedule.model import Standing
from frontdesk.settings import Settings
from frontdesk.surfaces.demo.filling import PERSON, fill
from frontdesk.surfaces.http import build
from tests.conftest import settings_with
from tests.requirements import shows
from tests.support.desk import frontdesk_here
from tests.support.pages import browsing, text_of
from tests.support.ready import Ready

LOCAL = Caller("test", local=True, any_agent=True)
PAGES = {
    "/start": "3 of 5 steps are done",
    "/agents": "Bruno",
    "/tools/all": "weather_forecast",
    "/schedule": "given up",
    f"/people/{PERSON}": "Write the offer for Nord",
    "/turns": "Cleo ann done",
    "/access": "Ann's phone",
}


@pytest.fixture
async def lived_in(settings: Settings) -> AsyncGenerator[App]:
    async with open_app(settings) as app:
        await fill(app, LOCAL)
        yield app


@shows("WEB-START")
async def test_a_day_leaves_something_to_see_in_every_room_and_on_every_page(lived_in: App) -> None:
    app = lived_in
    await app.journal.flush()
    rows = [entry for _, entry in await app.journal.read(Query(limit=1000))]
    assert {Kind.CALL, Kind.DENIAL, Kind.TURN, Kind.TOOL, Kind.DELIVERY} == {row.kind for row in rows}
    assert {Outcome.OK, Outcome.FAILED, Outcome.REFUSED, Outcome.DENIED} == {row.outcome for row in rows}
    assert {"credential", "header", "parameter", "schedule"} <= {str(row.source) for row in rows}
    used = {use.tool for use in await app.tools.house.usage(LOCAL, UseQuery())}
    assert {"demo-desk::weather_forecast", "demo-desk::search_tickets", "demo-desk::summarize_sales"} <= used
    runs = (await app.schedules.looking.history(LOCAL, PastWanted())).runs
    assert {run.standing for run in runs} == {Standing.DELIVERED, Standing.DEAD}
    assert any("growth 5 %" in (run.answer or "") for run in runs)
    async with browsing(build(app)) as web:
        for path, words in PAGES.items():
            assert words in text_of(await web.get(path)), path


async def test_a_house_where_somebody_lives_is_left_alone(app: App) -> None:
    await app.identity.first_key()
    await app.host.create(NewAgent("Ada"))
    with pytest.raises(Conflict, match="agents or keys already"):
        await fill(app, LOCAL)
    assert [agent.name for agent in await app.host.list(5)] == ["Ada"]


async def test_a_house_with_a_key_of_somebodys_is_left_alone(app: App) -> None:
    await app.identity.create_key(name="mine", agent_id=None, user_id="ann")
    with pytest.raises(Conflict, match="--data DIR"):
        await fill(app, LOCAL)


async def test_agents_on_letta_are_left_alone(tmp_path: Path, ready: Ready) -> None:
    data = ready.in_folder(tmp_path / "data")
    async with open_app(settings_with(FRONTDESK_DATA=data, LETTA_BASE_URL="http://127.0.0.1:9")) as app:
        with pytest.raises(Invalid, match="LETTA_BASE_URL"):
            await fill(app, LOCAL)


def test_the_command_says_what_it_made_and_where_to_look_and_does_it_once(tmp_path: Path) -> None:
    data, own = tmp_path / "data", tmp_path / "own"
    done = frontdesk_here("demo", "--data", str(own), data=data)
    assert done.returncode == 0, done.stderr
    assert "3 agents, 6 tools" in done.stdout
    assert f"FRONTDESK_DATA={own} frontdesk up" in done.stdout
    assert "/schedule" in done.stdout
    assert not data.exists()
    again = frontdesk_here("demo", data=own)
    assert (again.returncode, again.stdout) == (1, "")
    assert "agents or keys already" in again.stderr
