"""Every page, in both themes, as people with other senses have it."""

import pytest
from playwright.sync_api import Browser

from tests.requirements import shows
from tests.support.chromium import window
from tests.web.axe import findings
from tests.web.conftest import Installation
from tests.web.lived_in import addresses


@shows("WEB-AXE")
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_axe_finds_nothing_serious_on_any_page(lived_in: Installation, chromium: Browser, dark: bool) -> None:
    found: dict[str, list[str]] = {}
    with window(chromium, lived_in.url, dark=dark) as context:
        page = context.new_page()
        for address in addresses(lived_in):
            page.goto(address)
            found[address] = findings(page)
    assert {address: wrong for address, wrong in found.items() if wrong} == {}
