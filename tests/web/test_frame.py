"""What every page has: the navigation, keys, themes, and a policy that nothing breaks."""

from playwright.sync_api import Page, expect

from tests.web.conftest import House


def test_the_navigation_leads_to_every_page_and_a_key_back(page: Page, house: House) -> None:
    page.goto("/")
    expect(page).to_have_title("Now · Frontdesk")
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_be_visible()
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Theme").click()
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
