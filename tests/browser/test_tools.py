"""Tests tools in a browser: added, found while typing, tried, and given to an agent."""

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.conftest import Installation
from tests.requirements import shows
from tests.support.browsers import window
from tests.support.tool_servers import ToolServer, open_tool_server, tool

ISSUE = {
    "type": "object",
    "properties": {
        "title": {"type": "string", "description": "What it is about."},
        "kind": {"enum": ["bug", "wish"]},
        "labels": {"type": "array"},
    },
    "required": ["title", "kind"],
}
LISTED = [
    tool("create_issue", "File a new issue about a bug in a repository.", ISSUE),
    tool("send_mail", "Send a letter by electronic mail."),
    tool("weather_forecast", "Tell the weather of the next days in a city."),
]


@pytest.fixture(scope="module")
def shop() -> Iterator[ToolServer]:
    with open_tool_server("shop", LISTED) as server:
        yield server


def add(page: Page, name: str, shop: ToolServer) -> None:
    page.goto("/tools/servers")
    page.get_by_role("link", name="Add a server").click()
    page.get_by_label(re.compile("^Name")).fill(name)
    page.get_by_label("Address or command").fill(shop.url)
    page.get_by_role("button", name="Add it").click()
    expect(page.get_by_role("status")).to_contain_text(f"Added {name}: 3 tools")


@shows("WEB-TOOLS")
def test_a_person_adds_a_server_finds_a_tool_tries_it_and_hands_it_out(
    page: Page, installation: Installation, shop: ToolServer
) -> None:
    installation.run("agents", "create", "Ada")
    add(page, "shop", shop)
    page.goto("/tools")
    page.keyboard.press("/")
    page.keyboard.type("a new issue about a bug")
    found = page.locator("#found")
    expect(found.get_by_role("row").nth(1)).to_contain_text("shop::create_issue")
    expect(found.get_by_role("row").nth(1)).to_contain_text("words:")
    expect(page).to_have_url(re.compile("q=a.*new.*issue.*about.*a.*bug"))
    page.get_by_role("combobox", name="For").select_option(index=1)
    expect(page).to_have_url(re.compile("agent=agent-"))

    found.get_by_role("link", name="shop::create_issue").click()
    page.get_by_label(re.compile(r"^title \*")).fill("The login is broken")
    page.get_by_role("combobox", name="kind *").select_option("wish")
    page.get_by_label(re.compile("^labels")).fill('["login"]')
    page.get_by_role("button", name="Call it").click()
    expect(page.locator("#answer")).to_contain_text("shop: create_issue")

    page.goto("/tools")
    page.get_by_label("What should be done?").fill("a new issue about a bug")
    page.get_by_role("combobox", name="For").select_option(index=1)
    page.get_by_role("link", name="What would an agent get from this?").click()
    expect(page.get_by_text("This is a dry run")).to_be_visible()
    page.get_by_role("button", name="Do it").click()
    expect(page.get_by_role("status").first).to_contain_text("Attached: shop__create_issue")
    expect(page.get_by_text("Nothing would be changed.")).to_be_visible()


def test_tools_are_looked_at_tried_and_removed_without_scripts(
    chromium: Browser, installation: Installation, shop: ToolServer
) -> None:
    with window(chromium, installation.url, scripts=False) as context:
        page = context.new_page()
        add(page, "plain", shop)
        page.goto("/tools")
        page.get_by_label("What should be done?").fill("send a letter")
        page.get_by_role("button", name="Search").click()
        page.get_by_role("link", name="plain::send_mail").click()
        expect(page.get_by_text("Verdict")).to_be_visible()
        page.get_by_label(re.compile(r"^text \*")).fill("hello")
        page.get_by_role("button", name="Call it").click()
        expect(page.locator("#answer")).to_contain_text("shop: send_mail")
        page.goto("/tools/server/plain")
        page.get_by_text("Remove", exact=True).click()
        page.get_by_role("button", name="Yes, remove").click()
        expect(page.get_by_role("status")).to_contain_text("Removed plain")


def test_pages_fit_a_narrow_window(page: Page, installation: Installation, shop: ToolServer) -> None:
    add(page, "narrow", shop)
    page.set_viewport_size({"width": 400, "height": 800})
    for path in (
        "/tools?q=send+a+letter",
        "/tools/plan",
        "/tools/all",
        "/tools/servers",
        "/tools/add",
        "/tools/use",
        "/tools/quality",
        "/tools/tool/narrow%3A%3Acreate_issue",
    ):
        page.goto(path)
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), path
