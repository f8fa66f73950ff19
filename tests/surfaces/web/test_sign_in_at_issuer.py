"""Signing in to the pages at an issuer: there and back, and everything a browser could come back with instead."""

from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import parse_qs, quote, urlencode, urlsplit

import httpx2
import pytest

from frontdesk.app import App, open_app
from frontdesk.interfaces.http.application import build_application
from tests.conftest import settings_with
from tests.requirements import shows
from tests.support.issuer import Issuer, open_issuer
from tests.support.pages import BASE, Browser, browsing, text_of

pytestmark = pytest.mark.anyio
BACK = "/sign-in/back"
SECRET = "s3cret & more"
OTHERS_STATE = "was not begun in this browser"


@pytest.fixture(scope="module")
def issuer() -> Iterator[Issuer]:
    with open_issuer(("house:admin", "tools:read")) as opened:
        opened.clients["pages"] = [BASE + BACK]
        yield opened


@asynccontextmanager
async def guarded(tmp_path: Path, issuer: str, **sign_in: str) -> AsyncGenerator[tuple[App, Browser]]:
    """An installation whose people sign in at that issuer."""
    known_as = {"client_id": "pages", "name": "Corp & Sons", **sign_in}
    settings = settings_with(
        FRONTDESK_DATA=tmp_path / "data",
        FRONTDESK_REQUIRE_AUTH=True,
        FRONTDESK_ISSUERS=[{"issuer": issuer, "sign_in": known_as}],
    )
    async with open_app(settings) as app, browsing(build_application(app)) as web:
        yield app, web


async def sent(web: Browser, issuer: Issuer, back: str = "/access") -> str:
    """Follow the link to the issuer; where that leads the browser back to."""
    await web.get(f"/sign-in/with?issuer={quote(issuer.url, safe='')}&next={quote(back, safe='')}", 303)
    assert web.answer is not None
    async with httpx2.AsyncClient() as elsewhere:
        answer = await elsewhere.get(web.answer.headers["location"])
    assert answer.status_code == 302, answer.text
    return answer.headers["location"].removeprefix(BASE)


def state_dropped(web: Browser) -> bool:
    return "frontdesk_errand" not in web.client.cookies


@shows("WEB-SAFE")
async def test_somebody_signs_in_at_an_issuer_and_comes_back_to_what_they_wanted(
    tmp_path: Path, issuer: Issuer
) -> None:
    async with guarded(tmp_path, issuer.url) as (_, web):
        await web.get("/access?keys=all", 303)
        page = await web.get("/sign-in?next=%2Faccess%3Fkeys%3Dall")
        assert "Sign in with Corp & Sons" in text_of(page)
        back = await sent(web, issuer, "/access?keys=all")
        assert back.startswith(f"{BACK}?")
        page = await web.get(back)
        assert 'http-equiv="refresh" content="0;url=/access?keys=all"' in page
        assert state_dropped(web)
        assert "Sign out" in text_of(await web.get("/access"))


async def test_the_issuer_is_asked_for_a_token_for_us_with_a_proof_that_nobody_else_has(
    tmp_path: Path, issuer: Issuer
) -> None:
    async with guarded(tmp_path, issuer.url, scope="house:admin openid") as (_, web):
        await web.get(f"/sign-in/with?issuer={quote(issuer.url, safe='')}", 303)
        assert web.answer is not None
        asked = {name: value[0] for name, value in parse_qs(urlsplit(web.answer.headers["location"]).query).items()}
        assert asked["redirect_uri"] == BASE + BACK
        assert asked["resource"] == BASE
        assert asked["scope"] == "house:admin openid"
        assert asked["code_challenge_method"] == "S256"
        cookie = next(one for one in web.answer.headers.get_list("set-cookie") if "frontdesk_errand" in one).lower()
        assert "samesite=lax" in cookie
        assert "httponly" in cookie
        assert asked["state"] not in web.answer.headers.get_list("set-cookie")[0]


async def test_the_secret_goes_to_the_issuer_alone(tmp_path: Path, issuer: Issuer) -> None:
    async with guarded(tmp_path, issuer.url, client_secret=SECRET) as (_, web):
        await web.get(await sent(web, issuer))
        proof = httpx2.BasicAuth("pages", "s3cret+%26+more")
        request = next(proof.auth_flow(httpx2.Request("GET", BASE)))
        assert issuer.proofs[-1] == request.headers["authorization"]
        assert "s3cret" not in await web.get("/access")


@pytest.mark.parametrize(
    "changed",
    [
        {"state": "another"},
        {"state": ""},
        {"state": "ümläut"},
        {"iss": "https://evil.example"},
    ],
)
async def test_the_answer_to_another_sign_in_is_refused(
    tmp_path: Path, issuer: Issuer, changed: dict[str, str]
) -> None:
    async with guarded(tmp_path, issuer.url) as (_, web):
        query = parse_qs(urlsplit(await sent(web, issuer)).query)
        said = {name: values[0] for name, values in query.items()} | changed
        assert OTHERS_STATE in text_of(await web.get(f"{BACK}?{urlencode(said)}", 403))
        assert state_dropped(web)
        await web.get("/access", 303)


@shows("WEB-SAFE")
@pytest.mark.parametrize("cookie", [None, "x", "bm8ganNvbg", "WzEsIDJd"])
async def test_nobody_is_signed_in_by_a_link_that_somebody_else_sends_them(
    tmp_path: Path, issuer: Issuer, cookie: str | None
) -> None:
    async with guarded(tmp_path, issuer.url) as (app, web):
        back = await sent(web, issuer)
        async with browsing(build_application(app)) as victim:
            if cookie is not None:
                victim.client.cookies.set("frontdesk_errand", cookie)
            assert OTHERS_STATE in text_of(await victim.get(back, 403))
            await victim.get("/access", 303)


async def test_a_code_works_once(tmp_path: Path, issuer: Issuer) -> None:
    async with guarded(tmp_path, issuer.url) as (_, web):
        back = await sent(web, issuer)
        sign_in_state = web.client.cookies["frontdesk_errand"]
        await web.get(back)
        web.client.cookies.clear()
        web.client.cookies.set("frontdesk_errand", sign_in_state)
        assert "gave no token" in text_of(await web.get(back, 401))


async def test_who_says_no_at_the_issuer_is_told_so_and_nothing_comes_alive(tmp_path: Path, issuer: Issuer) -> None:
    async with guarded(tmp_path, issuer.url) as (_, web):
        state = parse_qs(urlsplit(await sent(web, issuer)).query)["state"][0]
        said = urlencode({"state": state, "error": "<script>access_denied</script>"})
        page = await web.get(f"{BACK}?{said}", 403)
        assert "did not let you in: <script>access_denied</script>" in text_of(page.replace("&amp;", "&"))
        assert "<script>access" not in page


async def test_a_token_without_the_operators_scope_lets_nobody_in(tmp_path: Path, issuer: Issuer) -> None:
    async with guarded(tmp_path, issuer.url, scope="tools:read") as (_, web):
        assert "has the scope 'house:admin'" in text_of(await web.get(await sent(web, issuer), 403))
        await web.get("/access", 303)


@pytest.mark.parametrize("path", ["/sign-in/with", "/sign-in/with?issuer=https%3A%2F%2Fevil.example"])
async def test_browsers_are_sent_to_issuers_that_are_set_and_nowhere_else(
    tmp_path: Path, issuer: Issuer, path: str
) -> None:
    async with guarded(tmp_path, issuer.url) as (_, web):
        assert "Nobody signs in there" in text_of(await web.get(path, 404))


async def test_an_issuer_that_is_away_leaves_the_way_in_with_a_key(tmp_path: Path) -> None:
    with open_issuer() as gone:
        pass
    async with guarded(tmp_path, gone.url) as (_, web):
        page = text_of(await web.get(f"/sign-in/with?issuer={quote(gone.url, safe='')}&next=%2Fturns", 503))
        assert "Corp & Sons cannot be asked right now" in page
        assert "Your key or token" in page


async def test_without_an_issuer_to_sign_in_at_the_page_offers_none(tmp_path: Path) -> None:
    settings = settings_with(FRONTDESK_DATA=tmp_path / "data", FRONTDESK_REQUIRE_AUTH=True)
    async with open_app(settings) as app, browsing(build_application(app)) as web:
        assert "Sign in with" not in text_of(await web.get("/sign-in"))
