"""Tests schedules in a browser: created in plain words, run, paused, cancelled, redriven."""

import re

from playwright.sync_api import Browser, Page, expect

from tests.browser.conftest import Installation
from tests.requirements import shows
from tests.support.browsers import window

WORDS = "every weekday at 9 Berlin time"


@shows("WEB-SCHEDULE")
def test_a_prompt_is_planned_in_plain_words_run_paused_and_cancelled(page: Page, installation: Installation) -> None:
    installation.run("agents", "create", "Ada")
    page.goto("/schedule")
    page.get_by_role("link", name="New schedule").click()
    page.get_by_label("When").press_sequentially("every weekday at")
    preview = page.get_by_role("status")
    expect(preview.get_by_text("comes a time of day")).to_be_visible()
    page.get_by_label("When").press_sequentially(" 9 Berlin time")
    expect(preview.get_by_text("every weekday at 09:00")).to_be_visible()
    expect(preview.get_by_text("cron 0 9 * * MON-FRI")).to_be_visible()
    expect(preview.get_by_role("listitem")).to_have_count(5)
    page.get_by_role("combobox", name="Agent").select_option(index=1)
    page.get_by_label("Prompt").fill("Write the daily report")
    page.get_by_role("button", name="Create").click()
    expect(page.get_by_text("Created schedule").filter(has_text="every weekday at 09:00, next")).to_be_visible()
    expect(page.get_by_text("It has not run yet")).to_be_visible()
    page.get_by_role("button", name="Run now").click()
    # The server notifies the page when the run has ended; nobody reloads it.
    expect(page.get_by_role("article").get_by_text("delivered")).to_be_visible()
    expect(page.get_by_role("article")).to_contain_text("offline stand-in")
    page.get_by_role("button", name="Pause", exact=True).click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("paused")
    page.get_by_role("button", name="Resume", exact=True).click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("active")
    page.get_by_text("Cancel", exact=True).click()
    page.get_by_role("button", name="Yes, cancel").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("cancelled")


@shows("WEB-SCHEDULE")
def test_a_run_that_was_given_up_is_found_on_the_time_line_and_redriven(page: Page, installation: Installation) -> None:
    agent = installation.run("agents", "create", "Ben").strip()
    number = installation.run("schedule", "add", agent, "Water the plants", WORDS).split()[0]
    installation.run("agents", "delete", agent, "--yes")
    page.goto(f"/schedule/{number}")
    page.get_by_role("button", name="Run now").click()
    expect(page.get_by_role("article").get_by_text("dead", exact=True)).to_be_visible()
    page.goto(f"/schedule?agent={agent}")
    expect(page.get_by_role("img", name=re.compile("1 given up"))).to_be_visible()
    page.get_by_role("link", name="Look at it").click()
    expect(page).to_have_url(re.compile("show=runs.*state=dead|state=dead.*show=runs"))
    page.get_by_role("button", name="Redrive").click()
    expect(page.get_by_text("is retried, from its first attempt")).to_be_visible()
    expect(page.get_by_text("1 earlier attempt")).to_be_visible()


def test_the_list_tells_of_a_schedule_made_elsewhere_unless_it_is_paused(
    page: Page, installation: Installation
) -> None:
    agent = installation.run("agents", "create", "Cleo").strip()
    page.goto(f"/schedule?agent={agent}")
    expect(page.get_by_text("No schedule is like this")).to_be_visible()
    installation.run("schedule", "add", agent, "Feed the cat", WORDS)
    expect(page.get_by_role("cell", name="Feed the cat")).to_be_visible()
    page.get_by_role("button", name="Pause live").click()
    expect(page.locator("[data-live]")).to_have_attribute("data-state", "paused")
    expect(page.get_by_role("button", name="Resume live")).to_be_visible()


@shows("WEB-SCHEDULE")
def test_the_list_tells_of_a_schedule_that_was_paused_elsewhere(page: Page, installation: Installation) -> None:
    agent = installation.run("agents", "create", "Ede").strip()
    number = installation.run("schedule", "add", agent, "Wind the clock", WORDS).split()[0]
    page.goto(f"/schedule?agent={agent}")
    expect(page.get_by_role("cell", name="Wind the clock")).to_be_visible()
    installation.run("schedule", "pause", number)
    expect(page.get_by_text("No schedule is like this")).to_be_visible()


@shows("WEB-SCHEDULE")
def test_what_somebody_is_doing_stays_while_things_happen_and_gives_way_when_they_are_done(
    page: Page, installation: Installation
) -> None:
    agent = installation.run("agents", "create", "Fay").strip()
    number = installation.run("schedule", "add", agent, "Water the plants", WORDS).split()[0]
    part = page.locator("[data-live]")
    page.goto(f"/schedule/{number}")
    page.get_by_text("Cancel", exact=True).click()
    installation.run("schedule", "pause", number)
    expect(part).to_have_attribute("data-held", "yes")
    expect(page.get_by_role("button", name="Yes, cancel")).to_be_visible()
    page.get_by_text("Cancel", exact=True).click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("paused")
    expect(part).not_to_have_attribute("data-held", "yes")

    page.goto(f"/schedule?agent={agent}")
    chosen = page.get_by_label("Show")
    chosen.select_option("paused")
    chosen.focus()
    installation.run("schedule", "add", agent, "Feed the fish", WORDS)
    expect(part).to_have_attribute("data-held", "yes")
    expect(chosen).to_have_value("paused")
    expect(chosen).to_be_focused()
    page.get_by_role("button", name="Filter").click()
    expect(page.get_by_role("cell", name="Water the plants")).to_be_visible()


def test_whoever_goes_by_keys_stays_where_they_are_until_they_leave(page: Page, installation: Installation) -> None:
    agent = installation.run("agents", "create", "Gus").strip()
    number = installation.run("schedule", "add", agent, "Fetch the mail", WORDS).split()[0]
    page.goto(f"/schedule/{number}")
    page.get_by_role("button", name="Run now").focus()
    page.keyboard.press("Tab")
    page.keyboard.press("Shift+Tab")
    installation.run("schedule", "pause", number)
    expect(page.locator("[data-live]")).to_have_attribute("data-held", "yes")
    expect(page.get_by_role("button", name="Run now")).to_be_focused()
    page.get_by_role("heading", level=1).click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("paused")


def test_without_javascript_a_schedule_is_previewed_and_made(chromium: Browser, installation: Installation) -> None:
    installation.run("agents", "create", "Dora")
    with window(chromium, installation.other, scripts=False) as context:
        page = context.new_page()
        page.goto("/schedule/new?when=whenever")
        expect(page.get_by_text("is no rule that can be read")).to_be_visible()
        page.get_by_label("When").fill("every day at 7")
        page.get_by_label("Time zone").fill("Asia/Tokyo")
        page.get_by_label("Prompt").fill("Greet the team")
        page.get_by_role("button", name="Preview").click()
        expect(page.get_by_role("status").get_by_role("listitem")).to_have_count(5)
        page.get_by_role("combobox", name="Agent").select_option(index=1)
        page.get_by_role("button", name="Create").click()
        expect(page.get_by_text("Created schedule").filter(has_text="every day at 07:00, next")).to_be_visible()
        page.get_by_role("link", name="← Schedule").click()
        page.get_by_label("Show").select_option("any")
        page.get_by_role("button", name="Filter").click()
        expect(page.get_by_role("cell", name="Greet the team").first).to_be_visible()


def test_on_a_small_screen_nothing_runs_over_the_edge(page: Page, installation: Installation) -> None:
    agent = installation.run("agents", "create", "Ada of the very long and quite remarkable name").strip()
    number = installation.run("schedule", "add", agent, "word" * 300, WORDS).split()[0]
    page.set_viewport_size({"width": 400, "height": 800})
    for address in ("/schedule", "/schedule?show=runs", "/schedule/new", f"/schedule/{number}"):
        page.goto(address)
        assert page.evaluate("document.documentElement.scrollWidth") <= 400
