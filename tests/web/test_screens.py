"""A picture of every page in both themes, in a build folder; that of the first page is in the README."""

import re

import pytest
from playwright.sync_api import Browser, expect

from tests.support.chromium import window
from tests.support.desk import ROOT
from tests.web.conftest import House
from tests.web.lived_in import addresses

SCREENS = ROOT / ".build" / "screens"
NARROW = {"width": 400, "height": 800}


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_every_page_is_drawn_in_both_themes(lived_in: House, chromium: Browser, dark: bool) -> None:
    SCREENS.mkdir(parents=True, exist_ok=True)
    theme = "dark" if dark else "light"
    with window(chromium, lived_in.url, dark=dark) as context:
        page = context.new_page()
        for address in addresses(lived_in):
            page.goto(address)
            expect(page.locator("h1")).to_be_visible()
            name = re.sub(r"[^a-z0-9]+", "-", address.split("?")[0].lower())[:40].strip("-") or "now"
            page.screenshot(path=SCREENS / f"{name}-{theme}.png")


def test_no_page_is_wider_than_a_telephone(lived_in: House, chromium: Browser) -> None:
    wide: list[str] = []
    with window(chromium, lived_in.url) as context:
        page = context.new_page()
        page.set_viewport_size({"width": NARROW["width"], "height": NARROW["height"]})
        for address in addresses(lived_in):
            page.goto(address)
            if page.evaluate("document.documentElement.scrollWidth") > NARROW["width"]:
                wide.append(address)
    assert wide == []
