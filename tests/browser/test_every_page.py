"""Tests what holds for every page in a browser: axe, navigation, themes, inert text and pictures."""

import json
import re
import shutil
import sqlite3
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from functools import cache
from pathlib import Path
from urllib.parse import quote

import anyio
import pytest
from playwright.sync_api import Browser, Page, expect

from frontdesk.agents.host import NewAgent, Prompt
from frontdesk.app import open_app
from frontdesk.identity.model import Caller
from frontdesk.memory.model import PersonScope
from frontdesk.schedules.requests import NewSchedule
from frontdesk.tools.servers import ServerSpec
from tests.browser.conftest import Installation
from tests.conftest import settings_with
from tests.requirements import shows
from tests.support.browsers import window
from tests.support.desk import ROOT, open_desk
from tests.support.environments import Packages
from tests.support.tool_servers import open_tool_server, tool

# The addresses of every page of an installation with the data of one day


PLAIN = (
    "/",
    "/start",
    "/agents",
    "/tools",
    "/tools/plan",
    "/tools/all",
    "/tools/servers",
    "/tools/add",
    "/tools/use",
    "/tools/quality",
    "/schedule",
    "/schedule?show=runs",
    "/schedule/new",
    "/people",
    "/turns",
    "/access",
    "/access/denied",
    "/sign-in",
)
TABS = ("tasks", "memories", "timeline", "time", "work", "everything")


def addresses(installation: Installation) -> list[str]:
    """The addresses of lists, and one of each kind of listed thing."""
    with closing(sqlite3.connect(installation.data / "frontdesk.db", timeout=30)) as found:
        agent = _first(found, "SELECT id FROM agents LIMIT 1")
        tool = _first(found, "SELECT id FROM tools LIMIT 1")
        schedule = _first(found, "SELECT id FROM schedules LIMIT 1")
        turn = _first(found, "SELECT id FROM turns ORDER BY started_at DESC LIMIT 1")
    person = json.loads(installation.run("memory", "people", "--json").splitlines()[0])["user_id"]
    one_of_each = (
        f"/agents/{quote(agent)}",
        f"/agents/{quote(agent)}/memory",
        f"/agents/{quote(agent)}/talk",
        f"/tools/tool/{quote(tool, safe='')}",
        f"/schedule/{schedule}",
        f"/turns/{quote(turn)}",
        *(f"/people/{quote(person, safe='')}?tab={tab}" for tab in TABS),
    )
    return [*PLAIN, *one_of_each]


def _first(connection: sqlite3.Connection, query: str) -> str:
    row = connection.execute(query).fetchone()
    assert row is not None, query
    return str(row[0])


# Parts of every page: the navigation, keys, themes, and a content policy that nothing violates


NO_CLIPBOARD = "Object.defineProperty(navigator, 'clipboard', { value: undefined })"


def agent_of(installation: Installation, name: str) -> str:
    """An agent, made in a thread: Playwright has an event loop of its own in this one."""
    with ThreadPoolExecutor(1) as aside:
        return aside.submit(installation.run, "agents", "create", name).result().strip()


def test_the_navigation_leads_to_every_page_and_a_key_back(page: Page, installation: Installation) -> None:
    page.goto("/")
    expect(page).to_have_title("Now · Frontdesk")
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_be_visible()
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Theme").click()
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"


def test_an_id_is_copied_by_a_click_and_said_to_be_only_then(page: Page, installation: Installation) -> None:
    agent = agent_of(installation, "Copied")
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.goto(f"/agents/{agent}")
    page.locator("dl.facts code.id").click()
    expect(page.locator("dl.facts code.id.copied")).to_be_visible()
    assert page.evaluate("navigator.clipboard.readText()") == agent


def test_where_pages_may_not_copy_the_whole_text_is_selected(page: Page, installation: Installation) -> None:
    agent = agent_of(installation, "Selected")
    page.add_init_script(NO_CLIPBOARD)
    page.goto(f"/agents/{agent}")
    page.locator("dl.facts code.id").click()
    assert page.evaluate("getSelection().toString()") == agent
    expect(page.locator(".copied")).to_have_count(0)


# axe-core's findings: the rules that matter for people who cannot see or use a mouse


PACKAGES = Packages(Path(__file__).parent)
GRAVE = ("serious", "critical")


@cache
def _program() -> str:
    return PACKAGES.install().joinpath("axe-core/axe.min.js").read_text()


def findings(page: Page) -> list[str]:
    """The serious findings, each with its rule and place."""
    # Through the browser's own console: the page's policy blocks scripts, as it should.
    page.evaluate(_program())
    found = page.evaluate("async () => (await axe.run(document, {resultTypes: ['violations']})).violations")
    return [
        f"{one['id']} ({one['impact']}): {one['help']}: {node['html'][:200]}"
        for one in found
        if one["impact"] in GRAVE
        for node in one["nodes"][:3]
    ]


# Every page in both themes, checked with axe


@shows("WEB-AXE")
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_axe_finds_nothing_serious_on_any_page(lived_in: Installation, chromium: Browser, dark: bool) -> None:
    found: dict[str, list[str]] = {}
    with window(chromium, lived_in.url, dark=dark) as context:
        page = context.new_page()
        for address in addresses(lived_in):
            page.goto(address)
            found[address] = findings(page)
    assert {address: wrong for address, wrong in found.items() if wrong} == {}


# An installation full of hostile texts: scripts, markup, direction marks, a megabyte


ATTACK = (
    "<script>window.pwned = 1</script><img src=x onerror='window.pwned = 1'>"
    "\"'><svg onload=window.pwned=1></svg>{{ 7 * 7 }}\u202etxt.exe"
)
MEGABYTE = ATTACK + "A" * 1_000_000
PERSON = "eve <img src=x onerror=window.pwned=1>"


@contextmanager
def hostile_installation(folder: Path) -> Generator[Installation]:
    """Every capability of it holds the attack text."""
    data = folder / "data"
    with open_tool_server("evil", [tool("attack", MEGABYTE[:100_000]), tool("plain", ATTACK)]) as server:
        # In a thread, since Playwright has an event loop of its own in this one.
        with ThreadPoolExecutor(1) as aside:
            aside.submit(anyio.run, _fill, data, server.url).result()
        with open_desk(data) as desk:
            yield Installation((desk,), data, {})


async def _fill(data: Path, url: str) -> None:
    operator = Caller("hostile", local=True, any_agent=True)
    async with open_app(settings_with(FRONTDESK_DATA=data)) as app:
        agent = await app.host.create(NewAgent(ATTACK[:190], description=ATTACK))
        await app.host.write_block(agent.id, "human", ATTACK)
        await app.host.write_block(agent.id, "human", ATTACK[::-1])
        prompt = Prompt(agent.id, Caller("hostile", user_id=PERSON), MEGABYTE)
        async for _ in app.host.send(prompt):
            continue
        await app.tools.administration.add_server(operator, ServerSpec("evil", url=url, description=ATTACK))
        scheduled = Caller("hostile", agent.id, local=True, any_agent=True)
        await app.schedules.add(scheduled, NewSchedule(ATTACK, every="1h"))
        scope = PersonScope.for_caller(Caller("hostile", user_id=PERSON, local=True, any_agent=True))
        await app.memory.tasks.create(scope, {"title": ATTACK[:200], "description": ATTACK})
        await app.memory.memories.create(scope, {"title": ATTACK[:200], "note": ATTACK})


# Other people's text stays text on every page


LARGEST = 1_000_000


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Generator[Installation]:
    with hostile_installation(tmp_path_factory.mktemp("hostile")) as installation:
        yield installation


@shows("WEB-INERT")
def test_no_page_runs_or_draws_what_others_wrote(hostile: Installation, chromium: Browser) -> None:
    shown: set[str] = set()
    with window(chromium, hostile.url) as context:
        page = context.new_page()
        page.on("dialog", lambda dialog: pytest.fail(f"a dialog: {dialog.message}"))
        for address in addresses(hostile):
            answer = page.goto(address)
            assert answer is not None
            assert answer.status == 200, address
            assert len(answer.body()) < LARGEST, address
            assert page.evaluate("window.pwned") is None, address
            assert page.locator("img[src=x], main script, main svg[onload]").count() == 0, address
            assert "49" not in page.locator("h1").inner_text(), address
            if "window.pwned" in page.locator("main").inner_text():
                shown.add(address.split("/")[1])
    assert {"agents", "tools", "schedule", "people", "turns"} <= shown


# A picture of every page in both themes, in a build folder; with `--pictures` the first theme's go into the docs


SCREENS = ROOT / ".build" / "screens"
README_PICTURE = ROOT / "docs" / "now.png"
SOME_ID = re.compile(r"(agent|turn)-[0-9a-f]{8}-[0-9a-f-]{27}|(?<=/schedule/)\d+")
NARROW = {"width": 400, "height": 800}


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_every_page_is_drawn_in_both_themes(
    lived_in: Installation, chromium: Browser, dark: bool, pytestconfig: pytest.Config
) -> None:
    SCREENS.mkdir(parents=True, exist_ok=True)
    theme = "dark" if dark else "light"
    every = addresses(lived_in)
    with window(chromium, lived_in.url, dark=dark) as context:
        page = context.new_page()
        for address in every:
            page.goto(address)
            expect(page.locator("h1")).to_be_visible()
            if address == "/":
                expect(page.locator(".chart canvas")).to_have_count(2)
            page.screenshot(path=SCREENS / f"{name_of(address)}-{theme}.png")
    assert len({name_of(address) for address in every}) == len(every)
    if pytestconfig.getoption("pictures") and not dark:
        shutil.copyfile(SCREENS / "now-light.png", README_PICTURE)


def name_of(address: str) -> str:
    """The same name each time, for any agent, turn or schedule."""
    return re.sub(r"[^a-z0-9]+", "-", SOME_ID.sub("one", address.lower())).strip("-") or "now"


def test_no_page_is_wider_than_a_telephone(lived_in: Installation, chromium: Browser) -> None:
    wide: list[str] = []
    with window(chromium, lived_in.url) as context:
        page = context.new_page()
        page.set_viewport_size({"width": NARROW["width"], "height": NARROW["height"]})
        for address in addresses(lived_in):
            page.goto(address)
            if page.evaluate("document.documentElement.scrollWidth") > NARROW["width"]:
                wide.append(address)
    assert wide == []
