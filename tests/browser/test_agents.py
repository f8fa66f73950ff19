"""Tests the pages of agents and of their turns in a browser."""

import json
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing
from typing import TypeVar

import anyio
from playwright.sync_api import Browser, Page, expect

from frontdesk.agents.host import NewAgent, Prompt
from frontdesk.app import open_app
from frontdesk.identity.model import Caller
from frontdesk.llm.events import Started
from tests.browser.conftest import Installation
from tests.conftest import settings_with
from tests.requirements import shows
from tests.support.browsers import window
from tests.support.chat import somebody

# Agents, as an operator uses them


def script(*steps: dict[str, object]) -> str:
    """Instructions for the offline model."""
    return f"@@{json.dumps(steps)}@@"


@shows("WEB-AGENTS")
def test_an_agent_is_made_talked_with_edited_and_deleted(page: Page, installation: Installation) -> None:
    installation.run("agents", "create", "Hedy")
    page.goto("/agents")
    page.get_by_text("Make an agent").click()
    page.get_by_label("Name").fill("Grace")
    page.get_by_label("Description").fill("Finds moths")
    page.get_by_role("button", name="Make it").click()
    expect(page.get_by_role("status")).to_have_text("Grace is made")
    expect(page.get_by_role("heading", level=1)).to_have_text("Grace")

    page.get_by_label("Message").fill("Look in relay 70 " + script({"text": "A moth is in it"}))
    page.get_by_role("button", name="Send").click()
    expect(page.locator("#newest")).to_contain_text("A moth is in it")

    page.get_by_role("link", name="Memory").click()
    page.get_by_role("link", name="human").click()
    page.get_by_label("Its text").fill("Likes moths")
    page.get_by_role("button", name="Write").click()
    expect(page.get_by_role("status")).to_contain_text("Saved human")
    expect(page.locator("ins")).to_have_text("Likes moths")
    assert installation.run("agents", "block", "Grace", "human").strip() == "Likes moths"

    page.get_by_role("link", name="Agent", exact=True).click()
    page.get_by_text("Delete", exact=True).last.click()
    page.get_by_role("button", name="Yes, delete").click()
    expect(page.get_by_role("status")).to_contain_text("Grace is deleted")
    assert "Grace" not in installation.run("agents", "list")


def test_the_list_is_narrowed_as_one_types_and_the_address_says_so(page: Page, installation: Installation) -> None:
    for name in ("Ada", "Boole"):
        installation.run("agents", "create", name)
    page.goto("/agents")
    page.keyboard.press("/")
    page.keyboard.type("boo")
    expect(page.get_by_role("link", name="Boole")).to_be_visible()
    expect(page.get_by_role("link", name="Ada")).to_have_count(0)
    expect(page).to_have_url(f"{installation.url}/agents?q=boo")


def test_another_replica_shows_what_was_said_at_the_first(page: Page, installation: Installation) -> None:
    agent = installation.run("agents", "create", "Alan").strip()
    page.goto(f"/agents/{agent}/talk")
    page.get_by_label("Message").fill(script({"text": "Both of us"}))
    page.get_by_role("button", name="Send").click()
    expect(page.locator("#newest")).to_contain_text("Both of us")
    page.goto(f"{installation.other}/agents/{agent}/talk")
    expect(page.locator("#newest")).to_contain_text("Both of us")


def test_without_scripts_everything_is_there_and_can_be_done(chromium: Browser, installation: Installation) -> None:
    agent = installation.run("agents", "create", "Emmy").strip()
    with window(chromium, installation.url, scripts=False) as context:
        page = context.new_page()
        page.goto(f"/agents?q={agent}")
        page.get_by_role("link", name="Emmy").click()
        expect(page.get_by_role("heading", level=1)).to_have_text("Emmy")
        page.get_by_label("Message").fill(script({"text": "By hand"}))
        page.get_by_role("button", name="Send").click()
        expect(page.locator("#newest")).to_contain_text("By hand")


def test_on_a_narrow_screen_nothing_is_out_of_reach(chromium: Browser, installation: Installation) -> None:
    agent = installation.run("agents", "create", "Kurt", "--description", "W" * 300).strip()
    with window(chromium, installation.url) as context:
        page = context.new_page()
        page.set_viewport_size({"width": 400, "height": 800})
        for path in ("/agents", f"/agents/{agent}", f"/agents/{agent}/memory", f"/agents/{agent}/talk"):
            page.goto(path)
            assert page.evaluate("document.documentElement.scrollWidth") == 400


# Turns: new ones appear; one is followed, cancelled and answered


T = TypeVar("T")
NEVER = 600
EDIT = {"tool": "memory_rethink", "args": {"label": "human", "new_memory": "Ann likes tea."}}


def turns_script(*steps: object) -> str:
    return f"@@{json.dumps(steps)}@@"


def done(work: Callable[[], Awaitable[T]]) -> T:
    """The result of this coroutine, from a thread, since Playwright has an event loop of its own in this one."""
    with ThreadPoolExecutor(1) as aside:
        return aside.submit(anyio.run, work).result()


def agent_of(installation: Installation, name: str) -> str:
    async def make() -> str:
        async with open_app(settings_with(FRONTDESK_DATA=installation.data, **installation.settings)) as app:
            return (await app.host.create(NewAgent(name))).id

    return done(make)


def say(installation: Installation, agent: str, text: str) -> None:
    """Send an agent a message, at the other replica if there is one, without waiting for it."""

    async def tell() -> None:
        async with somebody(installation.other) as person:
            await person.say(await person.open(agent), text)

    done(tell)


def ask(installation: Installation, agent: str) -> str:
    """The id of a turn that waits for a decision."""

    async def take() -> str:
        asks = frozenset({"memory_rethink"})
        prompt = Prompt(agent, Caller("req-test"), turns_script(EDIT, {"text": "Noted."}), asks=asks)
        async with (
            open_app(settings_with(FRONTDESK_DATA=installation.data, **installation.settings)) as app,
            aclosing(app.host.send(prompt)) as events,
        ):
            return next(one.turn_id for one in [one async for one in events] if isinstance(one, Started))

    return done(take)


@shows("WEB-TURNS")
def test_a_new_turn_appears_by_itself_and_is_followed_and_cancelled(page: Page, installation: Installation) -> None:
    agent = agent_of(installation, "Runner")
    page.goto(f"/turns?agent={agent}")
    expect(page.get_by_text("No turn is like that")).to_be_visible()
    say(installation, agent, turns_script(EDIT, {"delay": NEVER, "text": "never"}))
    row = page.get_by_role("row", name="Runner")
    expect(row).to_contain_text("running")
    row.get_by_role("link").first.click()
    expect(page.get_by_role("heading", name="Turn of Runner")).to_be_visible()
    expect(page.get_by_role("listitem").filter(has_text="Memory “human” changed")).to_be_visible()
    page.get_by_text("Raw JSON").click()
    expect(page.locator("#raw")).to_have_attribute("open", "")
    page.get_by_text("Cancel this turn", exact=True).click()
    page.get_by_role("button", name="Yes, cancel this turn").click()
    expect(page.get_by_role("status").filter(has_text="cancelled")).to_be_visible()


@shows("WEB-TURNS")
def test_a_call_that_waits_is_approved_and_the_agent_goes_on(page: Page, installation: Installation) -> None:
    turn = ask(installation, agent_of(installation, "Asker"))
    page.goto("/turns?outcome=waiting")
    page.locator(f"a[href='/turns/{turn}']").click()
    expect(page.get_by_role("group", name="May it call memory_rethink?")).to_be_visible()
    page.get_by_role("button", name="Approve").click()
    expect(page.get_by_text("Your answer is recorded")).to_be_visible()
    expect(page.get_by_role("listitem").filter(has_text="The agent said")).to_contain_text("Noted.")
    page.get_by_role("link", name="The turn before").click()
    expect(page.get_by_text("The answer was given")).to_be_visible()


def test_what_is_live_can_be_paused_by_key(page: Page, installation: Installation) -> None:
    agent = agent_of(installation, "Quiet")
    page.goto(f"/turns?agent={agent}")
    live = page.locator("[data-live]")
    expect(live).to_have_attribute("data-state", "live")
    page.keyboard.press("p")
    expect(live).to_have_attribute("data-state", "paused")
    expect(page.get_by_role("button", name="Resume live")).to_be_visible()
    say(installation, agent, "hello")
    expect(page.get_by_text("No turn is like that")).to_be_visible()
    page.keyboard.press("p")
    expect(page.get_by_role("row", name="Quiet")).to_contain_text("done")


def test_what_was_opened_in_a_turn_stays_open_while_it_goes_on(page: Page, installation: Installation) -> None:
    agent = agent_of(installation, "Opener")
    page.goto(f"/turns?agent={agent}")
    say(installation, agent, turns_script({"delay": 3, **EDIT}, {"delay": NEVER, "text": "never"}))
    page.get_by_role("row", name="Opener").get_by_role("link").first.click()
    page.get_by_text("Raw JSON").click()
    expect(page.get_by_role("listitem").filter(has_text="Memory “human” changed")).to_be_visible()
    expect(page.locator("#raw")).to_have_attribute("open", "")


@shows("WEB-TURNS")
def test_turns_are_read_and_answered_without_javascript(chromium: Browser, installation: Installation) -> None:
    turn = ask(installation, agent_of(installation, "Plain"))
    with window(chromium, installation.url, scripts=False) as context:
        page = context.new_page()
        page.set_viewport_size({"width": 400, "height": 800})
        page.goto("/turns")
        page.get_by_label("How it ended").select_option("waiting")
        page.get_by_role("button", name="Show").click()
        page.locator(f"a[href='/turns/{turn}']").click()
        page.get_by_label("Why not, if you reject it").fill("not today")
        page.get_by_role("button", name="Reject").click()
        expect(page.get_by_text("Your answer is recorded")).to_be_visible()
        page.get_by_role("link", name="The turn before").click()
        expect(page.get_by_text("The answer was given")).to_be_visible()
        assert page.evaluate("document.documentElement.scrollWidth") <= 400
