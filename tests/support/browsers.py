"""Chromium with Playwright, and a browser without a window that reads pages in process."""

import re
import shutil
from collections.abc import AsyncGenerator, Generator, Mapping
from contextlib import asynccontextmanager, contextmanager
from html import unescape
from typing import Any

import httpx2
from playwright.sync_api import Browser as ChromiumBrowser
from playwright.sync_api import BrowserContext, sync_playwright

from frontdesk.interfaces.http.context import ASGIApp

# Debian's Chromium with Playwright: started once, with a new profile for each test


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
def open_chromium() -> Generator[ChromiumBrowser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program(), args=list(ARGUMENTS))
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def window(
    browser: ChromiumBrowser, base_url: str, *, dark: bool = False, scripts: bool = True
) -> Generator[BrowserContext]:
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


# A browser without a window, in process: it keeps cookies, fills in the token of forms, and reads pages


BASE = "http://127.0.0.1:3020"
SECONDS = 60
TOKEN = re.compile(r'name="form_token" value="([^"]+)"')
TAGS = re.compile(r"<(script|style)\b.*?</\1>|<[^>]+>", re.DOTALL)


class Browser:
    """Loads pages and sends their forms; returns the HTML."""

    def __init__(self, client: httpx2.AsyncClient) -> None:
        self.client = client
        self.answer: httpx2.Response | None = None

    async def get(self, path: str, status: int = 200, /, *, part: bool = False, **query: Any) -> str:
        """The page at an address; with `part` as htmx requests one."""
        headers = {"hx-request": "true"} if part else {}
        self.answer = await self.client.get(path, params=query or None, headers=headers)
        assert self.answer.status_code == status, (path, self.answer.status_code, text_of(self.answer.text)[-2000:])
        return self.answer.text

    async def post(self, path: str, form: Mapping[str, str] | None = None, status: int = 200, /) -> str:
        """Send a form with the pages' token, and follow the redirect."""
        token = self.client.cookies.get("frontdesk_form") or TOKEN.findall(await self.get("/sign-in"))[0]
        sent = {"form_token": token, **(form or {})}
        self.answer = await self.client.post(path, data=sent, follow_redirects=True)
        assert self.answer.status_code == status, (path, self.answer.status_code, text_of(self.answer.text)[-2000:])
        return self.answer.text


@asynccontextmanager
async def browsing(asgi: ASGIApp, **headers: str) -> AsyncGenerator[Browser]:
    """A person at this machine, or with these headers."""
    transport = httpx2.ASGITransport(asgi)
    async with httpx2.AsyncClient(transport=transport, base_url=BASE, timeout=SECONDS, headers=headers) as client:
        yield Browser(client)


def text_of(html: str) -> str:
    """The visible text of a page, in one line."""
    return " ".join(unescape(TAGS.sub(" ", html)).split())
