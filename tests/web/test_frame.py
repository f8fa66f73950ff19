"""What every page has: the navigation, keys, themes, and a policy that nothing breaks."""

from concurrent.futures import ThreadPoolExecutor

from playwright.sync_api import Page, expect

from tests.web.conftest import Installation

NO_CLIPBOARD = "Object.defineProperty(navigator, 'clipboard', { value: undefined })"


def agent_of(installation: Installation, name: str) -> str:
    """An agent, made aside: Playwright has a loop of its own in this thread."""
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
