"""Agents in a browser, as an operator would go about it."""

import json

from playwright.sync_api import Browser, Page, expect

from tests.requirements import shows
from tests.support.chromium import window
from tests.web.conftest import Installation


def script(*steps: dict[str, object]) -> str:
    """What the offline model is to do."""
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
