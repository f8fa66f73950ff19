"""Tests the page Start, which guides a newcomer: the text, action and refusals of each step."""

from pathlib import Path

import pytest

from frontdesk.agents.host import NewAgent
from frontdesk.app import App, open_app
from frontdesk.identity.keys import LOCAL_USER
from frontdesk.identity.model import Caller
from frontdesk.interfaces.demo_server import DEMO_SERVER
from frontdesk.interfaces.http.application import build_application
from frontdesk.schedules.requests import NewSchedule
from frontdesk.settings import Settings
from tests.conftest import settings_with
from tests.support.browsers import browsing, text_of
from tests.support.postgres import Ready
from tests.support.tool_servers import open_tool_server, tools

LOCAL = Caller("test", local=True, any_agent=True)
HOSTILE = '<script>alert(1)</script>\u202e"><img src=x onerror=alert(1)>'
SCRIPT = '@@[{"text": "here I am"}]@@'


async def test_an_empty_installation_says_what_to_do_at_each_step(settings: Settings) -> None:
    async with open_app(settings) as app, browsing(build_application(app)) as web:
        html = await web.get("/start")
    said = text_of(html)
    assert "0 of 5 steps are done" in said
    assert "offline stand-in" in said
    for command in ("ANTHROPIC_API_KEY=", "LETTA_BASE_URL=", "frontdesk agents create Ada", "frontdesk tools add"):
        assert command in said
    assert "An agent is needed first" in said
    assert str(settings.data) in html


async def test_an_agent_is_made_with_the_form(settings: Settings) -> None:
    async with open_app(settings) as app, browsing(build_application(app)) as web:
        said = text_of(await web.post("/start/agent", {"name": "Ada", "persona": "I am brief.", "model": ""}))
        [agent] = await app.host.list(5)
        blocks = {block.label: block.value for block in await app.host.blocks(agent.id)}
    assert (agent.name, blocks["persona"]) == ("Ada", "I am brief.")
    assert "Created Ada" in said
    assert "1 of 5 steps are done" in said


@pytest.mark.parametrize("name", ["", "  "])
async def test_an_agent_without_a_name_is_refused(app: App, name: str) -> None:
    async with browsing(build_application(app)) as web:
        assert "An agent needs a name" in text_of(await web.post("/start/agent", {"name": name}, 400))
    assert await app.host.list(5) == []


async def test_a_tool_server_is_added_with_the_form_and_asked_for_its_tools(settings: Settings) -> None:
    with open_tool_server("files", tools(("read", "write"))) as server:
        async with open_app(settings) as app, browsing(build_application(app)) as web:
            form = {"name": "files", "url": server.url, "transport": "http", "token": "tell-nobody"}
            html = await web.post("/start/server", form)
    assert "files answered, and has 2 tools" in text_of(html)
    assert "1 of 5 steps are done" in text_of(html)
    assert "tell-nobody" not in html


@pytest.mark.parametrize(
    ("url", "status", "words"),
    [
        ("http://127.0.0.1:9/mcp", 400, "was not added"),
        ("nowhere", 400, "must be http(s)://host/path"),
        ("http://127.0.0.1/${OPENAI_API_KEY}", 403, "send the value itself"),
        ("http://127.0.0.1/" + "a" * 3000, 400, "That does not fit"),
    ],
)
async def test_a_server_that_cannot_be_one_is_refused_and_not_kept(app: App, url: str, status: int, words: str) -> None:
    async with browsing(build_application(app)) as web:
        assert words in text_of(await web.post("/start/server", {"name": "gone", "url": url}, status))
        assert "gone" not in text_of(await web.get("/start"))


async def test_the_tools_that_come_with_frontdesk_are_added_with_a_button(app: App) -> None:
    async with browsing(build_application(app)) as web:
        said = text_of(await web.post("/start/demo-tools"))
    assert f"{DEMO_SERVER} answered, and has 6 tools" in said


async def test_a_prompt_is_scheduled_in_plain_words_and_its_answer_is_shown(settings: Settings) -> None:
    async with open_app(settings) as app, browsing(build_application(app)) as web:
        agent = await app.host.create(NewAgent("Ada"))
        form = {"agent": agent.id, "prompt": f"Hello {SCRIPT}", "when": "every weekday at 9", "zone": "Europe/Berlin"}
        said = text_of(await web.post("/start/schedule", form))
        assert "Scheduled with number 1" in said
        assert "Europe/Berlin" in said
        assert "It runs now" in text_of(await web.post("/start/run", {"schedule": "1"}))
        await app.schedules.executor.run_due(LOCAL)
        html = await web.get("/start", made="1")
    assert "The agent said: here I am" in text_of(html)
    assert "hx-trigger" not in html


async def test_a_prompt_that_is_due_soon_has_the_page_look_again(app: App) -> None:
    agent = await app.host.create(NewAgent("Ada"))
    async with browsing(build_application(app)) as web:
        html = await web.post("/start/schedule", {"agent": agent.id, "prompt": "Hello", "when": "in 2 minutes"})
    assert 'hx-get="/start?made=1"' in html
    assert "It has not run yet" in text_of(html)


@pytest.mark.parametrize(
    ("when", "words"), [("whenever it suits", "whenever it suits"), ("", "Must specify when it should run")]
)
async def test_a_time_that_cannot_be_read_is_refused_in_words(app: App, when: str, words: str) -> None:
    agent = await app.host.create(NewAgent("Ada"))
    async with browsing(build_application(app)) as web:
        form = {"agent": agent.id, "prompt": "Hello", "when": when}
        assert words in text_of(await web.post("/start/schedule", form, 400))


async def test_a_schedule_that_is_not_there_is_not_shown(app: App) -> None:
    async with browsing(build_application(app)) as web:
        for page in (await web.get("/start", 404, made="77"), await web.post("/start/run", {"schedule": "77"}, 404)):
            assert "77" in text_of(page)


async def test_an_editor_that_was_opened_counts(app: App, tmp_path: Path) -> None:
    await app.workspace.sessions.open(Caller("test", user_id=LOCAL_USER, local=True), tmp_path)
    async with browsing(build_application(app)) as web:
        html = await web.get("/start")
    assert '<li class="is-done"><a href="#editor">' in html


async def test_a_model_and_the_platform_are_told_without_their_keys(tmp_path: Path, ready: Ready) -> None:
    settings = settings_with(
        FRONTDESK_DATA=ready.in_folder(tmp_path / "data"),
        ANTHROPIC_API_KEY="sk-secret",
        FRONTDESK_PLATFORM_APP_ID="app-1",
        FRONTDESK_PLATFORM_TOKEN="platform-secret",
    )
    async with open_app(settings) as app, browsing(build_application(app)) as web:
        html = await web.get("/start")
    assert "anthropic:claude" in text_of(html)
    assert "Agent 365 is asked for tool servers" in text_of(html)
    assert "secret" not in html


async def test_an_editor_is_led_to_the_same_installation_without_its_secrets(tmp_path: Path, ready: Ready) -> None:
    settings = settings_with(
        FRONTDESK_DATA=ready.in_folder(tmp_path / "data"),
        LETTA_BASE_URL="http://127.0.0.1:9",
        LETTA_SERVER_PASSWORD="letta-secret",
    )
    async with open_app(settings) as app, browsing(build_application(app)) as web:
        html = text_of(await web.get("/start"))
    assert f'"FRONTDESK_DATA": "{settings.data}", "LETTA_BASE_URL": "http://127.0.0.1:9"' in html
    assert f"FRONTDESK_DATA={settings.data} LETTA_BASE_URL=http://127.0.0.1:9 LETTA_SERVER_PASSWORD='…' toad" in html
    assert "letta-secret" not in html


async def test_a_letta_server_that_is_away_is_told_of_on_the_page(tmp_path: Path, ready: Ready) -> None:
    data = ready.in_folder(tmp_path / "data")
    settings = settings_with(FRONTDESK_DATA=data, LETTA_BASE_URL="http://127.0.0.1:9")
    async with open_app(settings) as app, browsing(build_application(app)) as web:
        html = await web.get("/start")
    assert "The agents are those of the Letta server at http://127.0.0.1:9" in text_of(html)
    assert 'class="wrong"' in html


async def test_what_agents_are_called_and_say_is_shown_inert(app: App) -> None:
    agent = await app.host.create(NewAgent(HOSTILE))
    answer = HOSTILE.replace('"', "'") + "a" * 15_000
    script = f'@@[{{"text": "{answer}"}}]@@'
    async with browsing(build_application(app)) as web:
        await app.schedules.add(LOCAL, NewSchedule(script, agent_id=agent.id, when="every weekday at 9"))
        await web.post("/start/run", {"schedule": "1"})
        await app.schedules.executor.run_due(LOCAL)
        html = await web.get("/start")
    assert "<script>alert" not in html
    assert "<img" not in html.replace('<img src="/static/icon.svg"', "")
    assert "all 15,0" in html
