"""What others wrote is text on every page, and nothing else."""

from collections.abc import Generator

import pytest
from playwright.sync_api import Browser

from tests.requirements import shows
from tests.support.chromium import window
from tests.web.conftest import Installation
from tests.web.hostile import hostile_installation
from tests.web.lived_in import addresses

LARGEST = 1_000_000


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Generator[Installation]:
    with hostile_installation(tmp_path_factory.mktemp("hostile")) as installation:
        yield installation


@shows("WEB-INERT")
def test_no_page_runs_or_draws_what_others_wrote(hostile: Installation, chromium: Browser) -> None:
    shown: set[str] = set()
    with window(chromium, hostile.url) as context:
        page = context.new_page()
        page.on("dialog", lambda dialog: pytest.fail(f"a dialog: {dialog.message}"))
        for address in addresses(hostile):
            answer = page.goto(address)
            assert answer is not None
            assert answer.status == 200, address
            assert len(answer.body()) < LARGEST, address
            assert page.evaluate("window.pwned") is None, address
            assert page.locator("img[src=x], main script, main svg[onload]").count() == 0, address
            assert "49" not in page.locator("h1").inner_text(), address
            if "window.pwned" in page.locator("main").inner_text():
                shown.add(address.split("/")[1])
    assert {"agents", "tools", "schedule", "people", "turns"} <= shown
