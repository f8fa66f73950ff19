"""A host that takes connections and never answers holds no page up for long, and pages say so."""

import socket
from collections.abc import AsyncGenerator
from pathlib import Path

import anyio
import pytest

from frontdesk.agents import host
from frontdesk.app import open_app
from frontdesk.interfaces.http.application import build_application
from tests.conftest import settings_with
from tests.support.pages import Browser, browsing, text_of
from tests.support.ready import Ready

pytestmark = pytest.mark.anyio
# Of each page: far less than Letta is otherwise waited for.
SECONDS = 10


@pytest.fixture
async def web(tmp_path: Path, ready: Ready, monkeypatch: pytest.MonkeyPatch) -> AsyncGenerator[Browser]:
    monkeypatch.setattr(host, "HOST_LOOK_SECONDS", 0.2)
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen(50)
        settings = settings_with(
            FRONTDESK_DATA=ready.in_folder(tmp_path / "data"),
            LETTA_BASE_URL=f"http://127.0.0.1:{silent.getsockname()[1]}",
        )
        async with open_app(settings) as app, browsing(build_application(app)) as browser:
            yield browser


@pytest.mark.parametrize("path", ["/schedule", "/schedule/new", "/turns", "/start"])
async def test_a_page_that_needs_no_more_than_names_says_that_the_host_is_silent(web: Browser, path: str) -> None:
    with anyio.fail_after(SECONDS):
        page = text_of(await web.get(path))
    assert "host has not answered" in page


@pytest.mark.parametrize("path", ["/", "/tools", "/tools/use", "/access"])
async def test_a_page_on_which_names_do_not_matter_is_shown_without_them(web: Browser, path: str) -> None:
    with anyio.fail_after(SECONDS):
        assert "<h1" in await web.get(path)


@pytest.mark.parametrize("path", ["/agents", "/agents/agent-1"])
async def test_a_page_of_agents_themselves_is_refused_soon(web: Browser, path: str) -> None:
    with anyio.fail_after(SECONDS):
        assert "host has not answered" in text_of(await web.get(path, 503))
