"""Debian's Chromium, driven by Playwright: started once, with a new profile for each test."""

import shutil
from collections.abc import Generator
from contextlib import contextmanager

from playwright.sync_api import Browser, BrowserContext, sync_playwright

ARGUMENTS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
MILLISECONDS = 30_000


def program() -> str:
    found = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    assert found is not None, "there is no Chromium; ./dev test installs it"
    return found


@contextmanager
def open_chromium() -> Generator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program(), args=list(ARGUMENTS))
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def window(browser: Browser, base_url: str, *, dark: bool = False, scripts: bool = True) -> Generator[BrowserContext]:
    """A browser window on one installation; the tests' fixture checks that the console of its pages stays empty."""
    context = browser.new_context(
        base_url=base_url,
        color_scheme="dark" if dark else "light",
        java_script_enabled=scripts,
        viewport={"width": 1280, "height": 900},
    )
    context.set_default_timeout(MILLISECONDS)
    try:
        yield context
    finally:
        context.close()
