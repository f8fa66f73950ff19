"""The page Start in a real browser: each step with its form, and for reading without scripts."""

import re

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.requirements import shows
from tests.support.chromium import MILLISECONDS, window
from tests.web.conftest import Installation


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
