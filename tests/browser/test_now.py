"""Tests the first page and the page Start in a browser; a hidden tab sends no requests to the server."""

import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.request import urlopen

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.conftest import Installation
from tests.requirements import shows
from tests.support.browsers import MILLISECONDS, window
from tests.support.desk import open_desk

# The first page: it shows the state of the installation, updates itself, and can be paused


def run(installation: Installation, *words: str) -> None:
    """The command, run in a thread, since Playwright has an event loop of its own in this one."""
    with ThreadPoolExecutor(1) as aside:
        aside.submit(installation.run, *words).result()


@shows("WEB-NOW")
def test_the_first_page_goes_on_by_itself_and_can_be_told_to_wait(page: Page, installation: Installation) -> None:
    page.goto("/")
    state, journal = page.locator("[data-live-state]"), page.locator("#journal")
    invitation = page.get_by_role("heading", name="This installation is new")
    expect(state).to_have_text("live")
    expect(page.locator(".chart canvas")).to_have_count(2)
    # The latest value, without a pointer on the chart, and on a 24-hour clock.
    expect(page.locator(".u-legend").first).to_have_text(re.compile(r"at\d\d:\d\d:\d\dall[\d.]+/sfailed0/s"))
    expect(page.locator(".u-legend").last).to_contain_text("95 %")
    expect(invitation).to_be_visible()
    expect(page.get_by_role("link", name="Set it up, step by step")).to_have_attribute("href", "/start")

    run(installation, "agents", "create", "Ada")
    expect(journal).to_contain_text("agents create")
    expect(invitation).to_be_hidden()

    page.keyboard.press("p")
    expect(state).to_have_text("paused")
    run(installation, "agents", "create", "Bob")
    run(installation, "tools", "add", "weather", "http://127.0.0.1:9/mcp", "--force")
    expect(journal.get_by_text("agents create")).to_have_count(1)
    expect(page.get_by_text("Tool server 'weather'")).to_have_count(0)

    page.get_by_role("button", name="Resume live").click()
    expect(state).to_have_text("live")
    expect(journal.get_by_text("agents create")).to_have_count(2)
    expect(page.get_by_text("Tool server 'weather'")).to_be_visible()
    page.get_by_role("link", name="0 of 1").click()
    expect(page).to_have_url(f"{installation.url}/tools/servers")


def test_what_somebody_is_about_to_use_is_not_taken_away(page: Page, installation: Installation) -> None:
    page.goto("/")
    expect(page.locator("[data-live-state]")).to_have_text("live")
    run(installation, "agents", "list")
    link = page.locator("#journal code.id").first
    expect(link).to_be_visible()
    link.focus()
    run(installation, "agents", "create", "Eve")
    expect(page.locator("[data-part='figures']")).to_be_visible()
    expect(link).to_be_focused()


def test_the_first_page_can_be_read_without_scripts(chromium: Browser, installation: Installation) -> None:
    with window(chromium, installation.url, scripts=False) as context:
        page = context.new_page()
        page.goto("/")
        expect(page.get_by_role("status").first).to_be_visible()
        expect(page.get_by_text("Oldest overdue")).to_be_visible()
        expect(page.get_by_role("heading", name="Last in the journal")).to_be_visible()
        expect(page.get_by_role("button", name="Pause live")).to_be_hidden()
        expect(page.locator("[data-charts]")).to_be_hidden()
        page.get_by_role("link", name="Built in").click()
        expect(page).to_have_url(f"{installation.url}/agents")


def test_on_a_telephone_the_way_round_takes_little_room(page: Page, installation: Installation) -> None:
    page.set_viewport_size({"width": 400, "height": 800})
    page.goto("/")
    assert page.evaluate("document.querySelector('header.top').offsetHeight") < 80
    assert page.evaluate("document.documentElement.scrollWidth") <= 400
    page.get_by_role("link", name="Access").click()
    expect(page).to_have_url(f"{installation.url}/access")


def test_a_server_that_stops_waits_for_nobody_who_listens(tmp_path: Path) -> None:
    with open_desk(tmp_path / "data") as desk:
        listening = urlopen(f"{desk.url}/live/now")
        assert listening.readline().startswith(b"data:")
    listening.close()


# A hidden tab sends no requests, and is up to date once it is shown


SET = """hidden => {
  Object.defineProperty(document, "hidden", { value: hidden, configurable: true });
  document.dispatchEvent(new Event("visibilitychange"));
}"""


def test_a_hidden_tab_closes_its_streams_and_opens_them_when_it_is_shown(
    page: Page, installation: Installation
) -> None:
    page.goto("/turns")
    live = page.locator("[data-live]")
    expect(live).to_have_attribute("data-state", "live")
    page.evaluate(SET, True)
    expect(live).to_have_attribute("data-state", "paused")
    page.evaluate(SET, False)
    expect(live).to_have_attribute("data-state", "live")


def test_what_was_paused_stays_so_when_the_tab_is_shown_again(page: Page, installation: Installation) -> None:
    page.goto("/turns")
    live = page.locator("[data-live]")
    page.keyboard.press("p")
    page.evaluate(SET, True)
    page.evaluate(SET, False)
    expect(live).to_have_attribute("data-state", "paused")
    page.keyboard.press("p")
    expect(live).to_have_attribute("data-state", "live")


# The page Start: each step with its form, and readable without scripts


@shows("WEB-START")
def test_a_newcomer_makes_an_agent_and_tools_with_forms_and_sees_the_steps_done(
    page: Page, installation: Installation
) -> None:
    page.goto("/start")
    agent = page.get_by_role("form", name="Make an agent")
    agent.get_by_label("Name").fill("Grace")
    agent.get_by_label("Who it is").fill("I am Grace.")
    agent.get_by_role("button", name="Make the agent").click()
    expect(page.get_by_text("Created Grace")).to_be_visible()
    expect(page.get_by_role("heading", name="2. Make an agent done")).to_be_visible()
    page.get_by_role("button", name="Add the demo tools").click()
    expect(page.get_by_text("demo-desk answered, and has 6 tools")).to_be_visible(timeout=MILLISECONDS)
    expect(page.get_by_role("heading", name="3. Add a tool server done")).to_be_visible()
    assert "Grace" in installation.run("agents", "list")
    assert "weather_forecast" in installation.run("tools", "list")


def test_what_was_done_at_one_server_is_seen_at_the_other(page: Page, installation: Installation) -> None:
    installation.run("agents", "create", "Hedy")
    page.goto(f"{installation.other}/start")
    expect(page.get_by_role("link", name="Hedy")).to_be_visible()


def test_a_snippet_is_copied_with_a_click(page: Page, installation: Installation) -> None:
    page.context.grant_permissions(["clipboard-read", "clipboard-write"], origin=installation.url)
    page.goto("/start")
    page.get_by_role("region", name="Zed").click()
    expect(page.get_by_role("region", name="Zed")).to_have_class(re.compile("copied"))
    assert '"acp"' in page.evaluate("navigator.clipboard.readText()")


@pytest.mark.parametrize("width", [400, 1280])
def test_the_steps_are_read_and_taken_without_scripts_at_any_width(
    chromium: Browser, installation: Installation, width: int
) -> None:
    with window(chromium, installation.url, scripts=False) as context:
        page = context.new_page()
        page.set_viewport_size({"width": width, "height": 800})
        page.goto("/start")
        form = page.get_by_role("form", name="Make an agent")
        form.get_by_label("Name").fill(f"Joan {width}")
        form.get_by_role("button", name="Make the agent").click()
        expect(page.get_by_text(f"Created Joan {width}")).to_be_visible()
        page.get_by_text("JetBrains IDEs").click()
        expect(page.get_by_role("region", name="JetBrains IDEs")).to_be_visible()
        across = page.locator("html").bounding_box()
    assert across is not None
    assert across["width"] <= width
