"""The first page in a real browser: it says how the house is, goes on saying so, and can be told to wait."""

import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.request import urlopen

from playwright.sync_api import Browser, Page, expect

from tests.requirements import shows
from tests.support.chromium import window
from tests.support.desk import open_desk
from tests.web.conftest import House


def run(house: House, *words: str) -> None:
    """The command; aside, since Playwright has a loop of its own in this thread."""
    with ThreadPoolExecutor(1) as aside:
        aside.submit(house.run, *words).result()


@shows("WEB-NOW")
def test_the_first_page_goes_on_by_itself_and_can_be_told_to_wait(page: Page, house: House) -> None:
    page.goto("/")
    state, journal = page.locator("[data-live-state]"), page.locator("#journal")
    invitation = page.get_by_role("heading", name="This installation is new")
    expect(state).to_have_text("live")
    expect(page.locator(".chart canvas")).to_have_count(2)
    # The latest, though nobody points at anything, and on a clock of 24 hours.
    expect(page.locator(".u-legend").first).to_have_text(re.compile(r"at\d\d:\d\d:\d\dall[\d.]+/sfailed0/s"))
    expect(page.locator(".u-legend").last).to_contain_text("95 %")
    expect(invitation).to_be_visible()
    expect(page.get_by_role("link", name="Set it up, step by step")).to_have_attribute("href", "/start")

    run(house, "agents", "create", "Ada")
    expect(journal).to_contain_text("agents create")
    expect(invitation).to_be_hidden()

    page.keyboard.press("p")
    expect(state).to_have_text("paused")
    run(house, "agents", "create", "Bob")
    run(house, "tools", "add", "weather", "http://127.0.0.1:9/mcp", "--force")
    expect(journal.get_by_text("agents create")).to_have_count(1)
    expect(page.get_by_text("Tool server 'weather'")).to_have_count(0)

    page.get_by_role("button", name="Resume live").click()
    expect(state).to_have_text("live")
    expect(journal.get_by_text("agents create")).to_have_count(2)
    expect(page.get_by_text("Tool server 'weather'")).to_be_visible()
    page.get_by_role("link", name="0 of 1").click()
    expect(page).to_have_url(f"{house.url}/tools/servers")


def test_what_somebody_is_about_to_use_is_not_taken_away(page: Page, house: House) -> None:
    page.goto("/")
    expect(page.locator("[data-live-state]")).to_have_text("live")
    run(house, "agents", "list")
    link = page.locator("#journal code.id").first
    expect(link).to_be_visible()
    link.focus()
    run(house, "agents", "create", "Eve")
    expect(page.locator("[data-part='figures']")).to_be_visible()
    expect(link).to_be_focused()


def test_the_first_page_can_be_read_without_scripts(chromium: Browser, house: House) -> None:
    with window(chromium, house.url, scripts=False) as context:
        page = context.new_page()
        page.goto("/")
        expect(page.get_by_role("status").first).to_be_visible()
        expect(page.get_by_text("Oldest overdue")).to_be_visible()
        expect(page.get_by_role("heading", name="Last in the journal")).to_be_visible()
        expect(page.get_by_role("button", name="Pause live")).to_be_hidden()
        expect(page.locator("[data-charts]")).to_be_hidden()
        page.get_by_role("link", name="Built in").click()
        expect(page).to_have_url(f"{house.url}/agents")


def test_on_a_telephone_the_way_round_takes_little_room(page: Page, house: House) -> None:
    page.set_viewport_size({"width": 400, "height": 800})
    page.goto("/")
    assert page.evaluate("document.querySelector('header.top').offsetHeight") < 80
    assert page.evaluate("document.documentElement.scrollWidth") <= 400
    page.get_by_role("link", name="Access").click()
    expect(page).to_have_url(f"{house.url}/access")


def test_a_server_that_stops_waits_for_nobody_who_listens(tmp_path: Path) -> None:
    with open_desk(tmp_path / "data") as desk:
        listening = urlopen(f"{desk.url}/live/now")
        assert listening.readline().startswith(b"data:")
    listening.close()
