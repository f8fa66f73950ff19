"""A picture of every page in both themes, in a build folder; with `--pictures` that of the first goes into the docs."""

import re
import shutil

import pytest
from playwright.sync_api import Browser, expect

from tests.support.chromium import window
from tests.support.desk import ROOT
from tests.web.conftest import Installation
from tests.web.lived_in import addresses

SCREENS = ROOT / ".build" / "screens"
README_PICTURE = ROOT / "docs" / "now.png"
SOME_ID = re.compile(r"(agent|turn)-[0-9a-f]{8}-[0-9a-f-]{27}|(?<=/schedule/)\d+")
NARROW = {"width": 400, "height": 800}


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_every_page_is_drawn_in_both_themes(
    lived_in: Installation, chromium: Browser, dark: bool, pytestconfig: pytest.Config
) -> None:
    SCREENS.mkdir(parents=True, exist_ok=True)
    theme = "dark" if dark else "light"
    every = addresses(lived_in)
    with window(chromium, lived_in.url, dark=dark) as context:
        page = context.new_page()
        for address in every:
            page.goto(address)
            expect(page.locator("h1")).to_be_visible()
            if address == "/":
                expect(page.locator(".chart canvas")).to_have_count(2)
            page.screenshot(path=SCREENS / f"{name_of(address)}-{theme}.png")
    assert len({name_of(address) for address in every}) == len(every)
    if pytestconfig.getoption("pictures") and not dark:
        shutil.copyfile(SCREENS / "now-light.png", README_PICTURE)


def name_of(address: str) -> str:
    """The same each time, whichever agent, turn or schedule it is of."""
    return re.sub(r"[^a-z0-9]+", "-", SOME_ID.sub("one", address.lower())).strip("-") or "now"


def test_no_page_is_wider_than_a_telephone(lived_in: Installation, chromium: Browser) -> None:
    wide: list[str] = []
    with window(chromium, lived_in.url) as context:
        page = context.new_page()
        page.set_viewport_size({"width": NARROW["width"], "height": NARROW["height"]})
        for address in addresses(lived_in):
            page.goto(address)
            if page.evaluate("document.documentElement.scrollWidth") > NARROW["width"]:
                wide.append(address)
    assert wide == []
