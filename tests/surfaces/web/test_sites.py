"""Another site's page may lead a browser here, and load nothing from here into itself."""

from collections.abc import Mapping

import pytest

from frontdesk.app import App
from frontdesk.interfaces.http.application import build_application
from tests.requirements import shows
from tests.support.pages import browsing

pytestmark = pytest.mark.anyio
PATHS = ("/access", "/live/now", "/static/app.js", "/sign-in")


def fetched(site: str, mode: str, dest: str = "empty") -> Mapping[str, str]:
    return {"sec-fetch-site": site, "sec-fetch-mode": mode, "sec-fetch-dest": dest}


@shows("WEB-SAFE")
@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("site", ["cross-site", "same-site"])
@pytest.mark.parametrize("mode", ["no-cors", "cors", "websocket", ""])
async def test_nothing_is_loaded_into_pages_of_others(app: App, path: str, site: str, mode: str) -> None:
    async with browsing(build_application(app)) as web:
        answer = await web.client.get(path, headers=fetched(site, mode, "image"))
        assert (answer.status_code, answer.json()["error"]) == (403, "forbidden_origin")


@shows("WEB-SAFE")
@pytest.mark.parametrize(
    "headers",
    [
        fetched("cross-site", "navigate", "document"),
        fetched("same-site", "navigate", "document"),
        fetched("same-origin", "cors"),
        fetched("none", "navigate", "document"),
        {},
    ],
)
async def test_links_from_elsewhere_and_what_pages_load_themselves_are_answered(
    app: App, headers: Mapping[str, str]
) -> None:
    async with browsing(build_application(app)) as web:
        for path in ("/access", "/sign-in", "/static/app.js"):
            assert (await web.client.get(path, headers=headers)).status_code == 200


async def test_what_is_no_page_is_open_to_pages_as_before(app: App) -> None:
    async with browsing(build_application(app)) as web:
        answer = await web.client.get("/api/health", headers=fetched("cross-site", "cors"))
        assert answer.status_code == 200
