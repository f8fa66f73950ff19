"""Tests the pages of people in a browser: a person's data is viewed, exported and erased."""

import json
from pathlib import Path

from playwright.sync_api import Browser, Page, expect

from tests.browser.conftest import Installation
from tests.requirements import shows
from tests.support.browsers import window


@shows("WEB-PEOPLE")
def test_what_is_kept_of_somebody_is_looked_at_changed_handed_out_and_erased(
    page: Page, installation: Installation
) -> None:
    user = "ada@example.org"
    trip = installation.run("tasks", "add", "Plan the trip", "--due", "2031-03-01", "--user", user).strip()
    installation.run("tasks", "add", "Book the train", "--parent", trip, "--user", user)
    installation.run("memory", "add", "Ada takes her tea without milk", "--user", user)
    page.goto("/people")
    page.get_by_role("link", name=user).click()
    expect(page.get_by_role("heading", level=1)).to_have_text(user)

    page.get_by_role("link", name="0 of 1 done").click()
    page.get_by_role("button", name="Complete Book the train").click()
    expect(page.get_by_role("status")).to_have_text("Completed: Book the train")
    expect(page.get_by_role("button", name="Reopen Book the train")).to_be_visible()
    assert "completed" in installation.run("tasks", "list", "--search", "train", "--user", user)

    page.get_by_role("link", name="Export and erase").click()
    with page.expect_download() as caught:
        page.get_by_role("button", name="Download everything").click()
    kept = json.loads(Path(caught.value.path()).read_text(encoding="utf-8"))
    assert kept["user_id"] == user
    assert [task["status"] for task in kept["records"]["tasks"]] == ["pending", "completed"]
    assert caught.value.suggested_filename.endswith(".json")

    page.get_by_label("type their id").fill(user)
    page.get_by_role("button", name="Erase everything").click()
    expect(page.get_by_role("status")).to_contain_text("Erased: 3 timeline items, 2 tasks, 1 memories")
    expect(page.get_by_role("link", name=user)).to_have_count(0)
    assert user not in installation.run("memory", "people")


def test_memories_are_found_as_one_types(page: Page, installation: Installation) -> None:
    installation.run("memory", "add", "Grace found a moth in relay 70", "--user", "grace")
    installation.run("memory", "add", "Grace saw a ship", "--user", "grace")
    page.goto("/people/grace?tab=memories")
    found = page.locator("#found").get_by_role("listitem")
    expect(found.first).to_contain_text("Grace saw a ship")
    page.keyboard.press("/")
    page.keyboard.type("moth")
    expect(found.first).to_contain_text("words: moth")
    expect(page).to_have_url(f"{installation.url}/people/grace?tab=memories&q=moth")
    page.reload()
    expect(found.first).to_contain_text("words: moth")


def test_without_scripts_everything_is_found_read_and_done(chromium: Browser, installation: Installation) -> None:
    task = installation.run("tasks", "add", "Write the report", "--user", "alan").strip()
    installation.run("tasks", "start", task, "--user", "alan")
    with window(chromium, installation.other, scripts=False) as context:
        page = context.new_page()
        page.set_viewport_size({"width": 400, "height": 800})
        page.goto("/people?find=al")
        page.get_by_role("link", name="alan").click()
        page.get_by_label("Words in a task").fill("report")
        page.get_by_role("button", name="Show").click()
        expect(page.get_by_role("link", name="Write the report")).to_be_visible()
        page.get_by_role("link", name="Time", exact=True).click()
        page.get_by_role("button", name="Stop").click()
        expect(page.get_by_role("status")).to_have_text("Stopped: Write the report")
        page.get_by_role("link", name="Timeline").click()
        expect(page.get_by_role("cell", name="Write the report")).to_be_visible()
    assert "No timer runs" in installation.run("tasks", "running", "--user", "alan")
