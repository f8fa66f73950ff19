"""A tab that nobody sees asks nothing of the server, and is up to date once it is shown."""

from playwright.sync_api import Page, expect

from tests.web.conftest import Installation

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
