"""Tests that pages are open only to this machine or to signed-in people, and that other sites get nothing from them."""

import gzip
import re
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import httpx2
import pytest
from sqlalchemy import select

from frontdesk.app import App, open_app
from frontdesk.db.schema import mcp_sessions
from frontdesk.identity import rights
from frontdesk.interfaces.http.application import build_application
from frontdesk.interfaces.http.context import RequestContext
from frontdesk.interfaces.web import model as places
from frontdesk.interfaces.web.model import SECTIONS, safe_return_path
from frontdesk.interfaces.web.rendering import SECURITY_HEADERS
from frontdesk.interfaces.web.routes import while_allowed
from frontdesk.interfaces.web.sessions import BrowserCookies, is_still_allowed, pack_text, unpack_text
from frontdesk.settings import Settings
from tests.conftest import settings_with
from tests.requirements import shows
from tests.support.browsers import BASE, TOKEN, Browser, browsing, text_of

# Pages are open only to this machine or to signed-in people, and forms from other sites are refused


LOADED = re.compile(r'(?:src|href)="(/static/[^"]+)"')
MOST_BYTES = 100_000
CHROMIUM = "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8"
PUBLIC = "https://desk.example"


@asynccontextmanager
async def guarded(tmp_path: Path, **values: object) -> AsyncGenerator[tuple[App, Browser]]:
    """An installation that demands sign-in also on this machine."""
    settings = settings_with(FRONTDESK_DATA=tmp_path / "data", **{"FRONTDESK_REQUIRE_AUTH": True, **values})
    async with open_app(settings) as app, browsing(build_application(app)) as web:
        yield app, web


async def admin_key(app: App, *scopes: str, user: str | None = "ann", agent: str | None = None) -> tuple[str, str]:
    """(id, text) of an operator's key, or of one with these scopes."""
    limits = frozenset(scopes or ("house:admin",))
    key, text = await app.identity.create_key(name="", agent_id=agent, user_id=user, scopes=limits)
    return key.id, text


async def sign_in(web: Browser, text: str, status: int = 200, **more: str) -> str:
    return await web.post("/sign-in", {"credential": text, **more}, status)


def location(answer: httpx2.Response) -> str:
    assert answer.status_code == 303
    return answer.headers["location"]


@shows("WEB-SAFE")
async def test_this_machine_needs_no_key_but_a_proxy_before_it_does(app: App) -> None:
    async with browsing(build_application(app)) as web:
        for section in SECTIONS:
            await web.get(section.path)
    for name in ("x-forwarded-for", "x-forwarded-proto", "via", "forwarded"):
        async with browsing(build_application(app), **{name: "198.51.100.7"}) as web:
            assert location(await web.client.get("/agents")) == "/sign-in?next=%2Fagents"
            assert (await web.client.get("/sign-in")).status_code == 200


@shows("WEB-SAFE")
async def test_where_credentials_are_demanded_one_signs_in_and_out(tmp_path: Path) -> None:
    async with guarded(tmp_path) as (app, web):
        for section in SECTIONS:
            assert location(await web.client.get(section.path)).startswith("/sign-in?next=")
        _, text = await admin_key(app)
        asked = await web.client.get("/access?keys=all")
        page = await web.client.get(location(asked))
        form = {"form_token": TOKEN.findall(page.text)[0], "credential": f" {text} "}
        form["next"] = re.findall(r'name="next" value="([^"]+)"', page.text)[0]
        answer = await web.client.post("/sign-in", data=form)
        assert location(answer) == "/access?keys=all"
        assert "you are signed in with this one" in text_of(await web.get("/access"))
        assert "Sign out" in text_of(await web.get("/"))
        session = web.client.cookies["frontdesk_session"]
        assert "Sign in to Frontdesk" in text_of(await web.post("/sign-out"))
        assert "frontdesk_session" not in web.client.cookies
        web.client.cookies.set("frontdesk_session", session)
        assert location(await web.client.get("/")) == "/sign-in?next=%2F", "the session itself has ended"


async def test_a_session_opens_on_every_replica_and_is_nothing_in_the_database(settings: Settings) -> None:
    demanding = settings.with_values(require_auth=True)
    async with open_app(demanding) as one, open_app(demanding) as two:
        _, text = await admin_key(one)
        async with browsing(build_application(one)) as web:
            await sign_in(web, text)
            cookies = dict(web.client.cookies)
        async with browsing(build_application(two)) as web:
            web.client.cookies.update(cookies)
            assert "you are signed in with this one" in text_of(await web.get("/access"))
        async with one.database.read_transaction() as connection:
            kept = [str(row) for row in (await connection.execute(select(mcp_sessions))).all()]
    assert len(kept) == 1
    assert not any(secret in kept[0] for secret in (text, cookies["frontdesk_session"]))


@shows("WEB-SAFE")
async def test_a_revoked_key_is_out_at_once_and_its_session_with_it(tmp_path: Path) -> None:
    async with guarded(tmp_path) as (app, web):
        key_id, text = await admin_key(app)
        await sign_in(web, text)
        await web.get("/")
        await app.identity.revoke_key(key_id)
        assert location(await web.client.get("/")).startswith("/sign-in")
        assert "frontdesk_session" not in web.client.cookies


async def test_on_this_machine_a_session_that_ended_lets_one_in_as_nobody(app: App) -> None:
    key_id, text = await admin_key(app)
    async with browsing(build_application(app)) as web:
        await sign_in(web, text)
        await app.identity.revoke_key(key_id)
        answer = await web.client.get("/access?keys=all")
        assert location(answer) == "/access?keys=all"
        assert "Sign out" not in text_of(await web.get(location(answer)))
    async with browsing(build_application(app), authorization=f"Bearer {text}", cookie="frontdesk_session=x") as web:
        assert location(await web.client.get("/access")).startswith("/sign-in"), "and does not go round in circles"


@shows("WEB-SAFE")
async def test_a_key_without_the_operators_scope_is_told_which_scope_is_needed(tmp_path: Path) -> None:
    async with guarded(tmp_path) as (app, web):
        _, limited = await admin_key(app, "tools:admin", "schedules:admin", "admin")
        refused = text_of(await sign_in(web, limited, 403))
        assert "house:admin" in refused
        assert "frontdesk keys create" in refused
        _, everything = await app.identity.create_key(name="", agent_id="*", user_id="ann")
        assert "house:admin" in text_of(await sign_in(web, everything, 403)), "a key without limits runs no house"
        _, nobodys = await admin_key(app, user=None, agent="agent-1")
        assert "names no person" in text_of(await sign_in(web, nobodys, 403))
        assert "frontdesk_session" not in web.client.cookies
        async with browsing(build_application(app), authorization=f"Bearer {limited}") as shown:
            assert "house:admin" in text_of(await shown.get("/access", 403))
            assert (await shown.client.get("/live/now")).status_code in (403, 404)


@pytest.mark.parametrize("text", ["", "nonsense", "fd_a_b_c", "Bearer x", "ü", "x" * 1000, "a.b.c", "\x00"])
async def test_what_is_no_key_is_refused_and_kept_nowhere(tmp_path: Path, text: str) -> None:
    async with guarded(tmp_path) as (app, web):
        page = await sign_in(web, text, 401, next="/tools")
        assert "not valid here" in text_of(page)
        assert 'name="next" value="/tools"' in page
        if len(text) > 4:
            assert text not in page
        await app.journal.flush()
        rows = await app.journal.denials(None, 10)
        assert ("web", "POST /sign-in", "Unauthenticated") in {(row.surface, row.action, row.reason) for _, row in rows}


async def test_on_this_machine_a_key_without_limits_will_do_but_not_through_a_proxy(app: App) -> None:
    _, text = await app.identity.create_key(name="", agent_id=None, user_id="ann")
    async with browsing(build_application(app)) as web:
        await sign_in(web, text)
        await web.get("/access")
    async with browsing(build_application(app), **{"x-forwarded-for": "198.51.100.7"}) as web:
        assert "house:admin" in text_of(await sign_in(web, text, 403))


@shows("WEB-SAFE")
@pytest.mark.parametrize("path", ["/sign-in", "/sign-out", "/access/keys", "/access/keys/x/revoke"])
async def test_no_form_is_taken_without_the_token_of_its_page(app: App, path: str) -> None:
    async with browsing(build_application(app)) as web:
        await web.get("/access")
        for form in ({}, {"form_token": ""}, {"form_token": "guessed"}):
            answer = await web.client.post(path, data=form)
            assert answer.status_code == 403
            assert "is not from this site" in text_of(answer.text)
        token = web.client.cookies["frontdesk_form"]
        web.client.cookies.clear()
        assert (await web.client.post(path, data={"form_token": token})).status_code == 403
        web.client.cookies.set("frontdesk_form", "")
        assert (await web.client.post(path, data={"form_token": ""})).status_code == 403


@shows("WEB-SAFE")
@pytest.mark.parametrize(
    ("origin", "status"),
    [
        (BASE, 303),
        ("http://127.0.0.1:5173", 403),
        ("http://localhost:3020", 403),
        ("https://app.example", 403),
        ("https://evil.example", 403),
        ("null", 403),
        ("file://", 403),
        ("http://127.0.0.1:3020.evil.example", 403),
        ("http://u@127.0.0.1:3020", 403),
    ],
)
async def test_pages_answer_to_themselves_alone(tmp_path: Path, origin: str, status: int) -> None:
    values = {"FRONTDESK_REQUIRE_AUTH": False, "FRONTDESK_ALLOWED_ORIGINS": "https://app.example"}
    async with guarded(tmp_path, **values) as (app, web):
        key, _ = await app.identity.create_key(name="", agent_id="a", user_id=None)
        await web.get("/access")
        form = {"form_token": web.client.cookies["frontdesk_form"]}
        answer = await web.client.post(f"/access/keys/{key.id}/revoke", data=form, headers={"origin": origin})
        assert answer.status_code == status
        kept = await app.keys.get(key.id)
        assert kept is not None
        assert (kept.revoked_at is None) == (status == 403)


@pytest.mark.parametrize(
    ("host", "origin", "status"),
    [
        ("desk.example", "https://desk.example", 200),
        ("127.0.0.1:3020", "https://desk.example", 200),
        ("desk.example", "http://desk.example", 403),
        ("desk.example", "https://other.desk.example", 403),
        ("evil.example", "http://evil.example", 421),
    ],
)
async def test_behind_a_proxy_pages_go_by_their_public_address(
    tmp_path: Path, host: str, origin: str, status: int
) -> None:
    async with guarded(tmp_path, FRONTDESK_PUBLIC_URL=PUBLIC) as (_, web):
        answer = await web.client.get("/sign-in", headers={"host": host, "origin": origin})
        assert answer.status_code == status


@shows("WEB-SAFE")
async def test_every_answer_has_the_headers_that_keep_others_out(tmp_path: Path) -> None:
    async with guarded(tmp_path) as (app, web):
        _, text = await admin_key(app)
        asked: list[tuple[str, int, Mapping[str, str]]] = [
            ("/", 303, {}),
            ("/sign-in", 200, {}),
            ("/static/app.css", 200, {}),
            ("/static/nothing.css", 404, {}),
            ("/access", 421, {"host": "evil.example"}),
            ("/access", 403, {"origin": "https://evil.example"}),
            ("/access", 401, {"hx-request": "true"}),
        ]
        shown = {"authorization": f"Bearer {text}"}
        asked += [
            (path, status, shown) for path, status in (("/access", 200), ("/access/x/y", 404), ("/sign-out", 405))
        ]
        for path, status, headers in asked:
            answer = await web.client.get(path, headers=headers)
            assert answer.status_code == status, path
            for name, value in SECURITY_HEADERS.items():
                if name == "cache-control" and path == "/static/app.css":
                    continue
                assert answer.headers.get_list(name) == [value], (path, name)


async def test_what_is_not_there_is_told_on_a_page(app: App) -> None:
    async with browsing(build_application(app)) as web:
        assert "There is no such page" in text_of(await web.get("/access/nothing", 404))
        assert "does not accept this method" in text_of(await web.get("/access/keys", 405))
        for path, accept, kind in (
            ("/nothing", "*/*", "application/json"),
            ("/nothing", "application/json, text/html;q=0.9", "application/json"),
            ("/nothing", "text/html;q=x", "application/json"),
            ("/nothing", CHROMIUM, "text/html; charset=utf-8"),
            ("/nothing/at/all", CHROMIUM, "text/html; charset=utf-8"),
            ("/api/nothing", CHROMIUM, "application/json"),
            ("/mcp/nothing", CHROMIUM, "application/json"),
            ("/oauth/nothing", CHROMIUM, "application/json"),
        ):
            answer = await web.client.get(path, headers={"accept": accept})
            assert (answer.status_code, answer.headers["content-type"]) == (404, kind), (path, accept)
            if kind.startswith("text/html"):
                assert "There is no such page" in text_of(answer.text)
                assert {name: answer.headers[name] for name in SECURITY_HEADERS} == SECURITY_HEADERS


def test_the_policy_lets_nothing_in_from_elsewhere() -> None:
    policy = dict(part.split(" ", 1) for part in SECURITY_HEADERS["content-security-policy"].split("; "))
    assert policy["default-src"] == "'none'"
    assert policy["script-src"] == policy["style-src"] == policy["connect-src"] == "'self'"
    assert policy["frame-ancestors"] == policy["base-uri"] == "'none'"
    assert "unsafe" not in SECURITY_HEADERS["content-security-policy"]


@shows("WEB-SAFE")
@pytest.mark.parametrize(
    ("said", "leads"),
    [
        ("/agents/a?x=1", "/agents/a?x=1"),
        ("/?a=b", "/?a=b"),
        ("/tools?q=%2F%2Fevil.example", "/tools?q=%2F%2Fevil.example"),
        *(
            (trick, "/")
            for trick in (
                None,
                "",
                "//evil.example",
                "///evil.example",
                "/\\evil.example",
                "/\\/evil.example",
                "\\\\evil.example",
                "/\t/evil.example",
                "/\n/evil.example",
                " //evil.example",
                "https://evil.example",
                "https:/evil.example",
                "javascript:alert(1)",
                "evil.example",
                "/agents\r\nSet-Cookie: a=b",
                "/agents\\..\\..",
                "/nothing",
                "/.//evil.example",
                "/%2F/evil.example",
                "/@evil.example",
                "/sign-out",
                "/sign-in?next=/",
                "/static/app.js",
                "/live/now",
                "/ünicode",
                "/agents/" + "x" * 3000,
            )
        ),
    ],
)
async def test_after_signing_in_one_is_led_to_a_page_of_ours(app: App, said: str | None, leads: str) -> None:
    assert safe_return_path(said) == leads
    _, text = await admin_key(app)
    async with browsing(build_application(app)) as web:
        await web.get("/sign-in")
        form = {"form_token": web.client.cookies["frontdesk_form"], "credential": text, "next": said or ""}
        assert location(await web.client.post("/sign-in", data=form)) == leads


async def test_who_is_sent_to_sign_in_comes_back_to_what_they_saw(tmp_path: Path) -> None:
    async with guarded(tmp_path) as (_, web):
        assert (
            location(await web.client.get("/tools?q=a%20b&x=%C3%BC"))
            == "/sign-in?next=%2Ftools%3Fq%3Da%2520b%26x%3D%25C3%25BC"
        )
        assert location(await web.client.post("/access/keys/x/revoke")) == "/sign-in?next=%2Faccess"
        assert location(await web.client.get("//evil.example")) == "/sign-in?next=%2F"
        htmx = {"hx-request": "true", "hx-current-url": f"{BASE}/tools?q=x"}
        part = await web.client.get("/tools/found", headers=htmx)
        assert (part.status_code, part.headers["hx-redirect"]) == (401, "/sign-in?next=%2Ftools%3Fq%3Dx")


@shows("WEB-SAFE")
async def test_cookies_are_out_of_reach_and_over_tls_bound_to_the_host(tmp_path: Path) -> None:
    async with guarded(tmp_path) as (app, web):
        _, text = await admin_key(app)
        await web.get("/sign-in")
        form = {"form_token": web.client.cookies["frontdesk_form"], "credential": text}
        answer = await web.client.post("/sign-in", data=form)
        given = answer.headers.get_list("set-cookie")
        assert {cookie.partition("=")[0] for cookie in given} == {"frontdesk_session", "frontdesk_form"}
        for cookie in given:
            assert "HttpOnly" in cookie
            assert "SameSite=strict" in cookie
            assert "Path=/" in cookie
            assert "Secure" not in cookie
            assert "Domain" not in cookie
        assert form["form_token"] != web.client.cookies["frontdesk_form"], "the token is a new one too"
        tls = await web.client.get("/sign-in", headers={"x-forwarded-proto": "https"})
        assert "__Host-frontdesk_form=" in tls.headers["set-cookie"]
        assert "Secure" in tls.headers["set-cookie"]
    async with guarded(tmp_path / "public", FRONTDESK_PUBLIC_URL=PUBLIC) as (_, web):
        answer = await web.client.get("/sign-in")
        assert answer.headers["set-cookie"].startswith("__Host-frontdesk_form=")
        assert "Secure" in answer.headers["set-cookie"]


def test_cookies_of_neighbours_on_this_machine_are_no_hindrance() -> None:
    said = {"cookie": 'odd={"a": "b, c"}; other; frontdesk_session=abc; x=[1]'}
    assert BrowserCookies.of(settings_with(), RequestContext("1", said)).read("frontdesk_session") == "abc"
    assert unpack_text(pack_text("Grüße")) == "Grüße"
    for nonsense in ("a", "\u20ac", "a" * 5000, "gICA", None, ""):
        assert unpack_text(nonsense) is None


async def test_what_is_told_live_ends_with_the_right_to_it(tmp_path: Path) -> None:
    async with guarded(tmp_path) as (app, web):
        key_id, text = await admin_key(app)
        request_context = RequestContext(
            "1", {"authorization": f"Bearer {text}"}, await app.identity.authenticate(text)
        )
        told: list[int] = []

        async def counting() -> AsyncGenerator[Mapping[str, int]]:
            for number in range(100):
                yield {"number": number}

        async for one in while_allowed(app, request_context, counting()):
            told.append(one["number"])
            if len(told) == 3:
                await app.identity.revoke_key(key_id)
        assert told == [0, 1, 2]
        _, text = await admin_key(app)
        await sign_in(web, text)
        session = {"cookie": f"frontdesk_session={web.client.cookies['frontdesk_session']}"}
        request_context = RequestContext("2", session, await app.identity.authenticate(text))
        assert await is_still_allowed(app, request_context)
        await web.post("/sign-out")
        assert not await is_still_allowed(app, request_context)


async def test_a_login_gives_no_client_the_operators_scope_unless_the_person_has_it_by_name() -> None:
    assert rights.may_grant_scope(None, "tasks.read")
    assert not rights.may_grant_scope(None, rights.INSTALLATION_ADMIN)
    assert not rights.may_grant_scope(frozenset({"admin"}), rights.INSTALLATION_ADMIN)
    assert rights.may_grant_scope(frozenset({rights.INSTALLATION_ADMIN}), rights.INSTALLATION_ADMIN)
    assert rights.INSTALLATION_ADMIN not in {
        *rights.ADVERTISED_SCOPES,
        *rights.LOGIN_SCOPES,
        *rights.DEFAULT_KEY_SCOPES,
    }


@pytest.mark.parametrize("size", [40 * 1024, 2 * 1024 * 1024])
async def test_bodies_are_bounded(app: App, size: int) -> None:
    async with browsing(build_application(app)) as web:
        page = await sign_in(web, "x" * size, 400)
        assert "too large" in text_of(page)
        if size > 1024 * 1024:
            assert "too large" in text_of(await web.post("/access/keys", {"name": "x" * size}, 400))
        many = "&".join(f"a{number}=1" for number in range(2000))
        answer = await web.client.post("/access/keys", content=many)
        assert "cannot be read" in text_of(answer.text)
        answer = await web.client.post("/access/keys", content=b"\xff\xfe")
        assert answer.status_code == 400


@pytest.mark.parametrize("path", [section.path for section in SECTIONS])
async def test_a_page_with_all_it_loads_is_small(app: App, path: str) -> None:
    async with browsing(build_application(app)) as web:
        page = await web.get(path)
        sizes = {path: len(gzip.compress(page.encode()))}
        for file in set(LOADED.findall(page)):
            async with web.client.stream("GET", file, headers={"accept-encoding": "gzip"}) as answer:
                assert answer.status_code == 200, file
                sizes[file] = sum([len(part) async for part in answer.aiter_raw()])
                assert answer.headers.get("content-encoding") == "gzip" or sizes[file] < 1000, file
    assert sum(sizes.values()) < MOST_BYTES, sizes


def test_nothing_is_loaded_from_elsewhere_and_nothing_is_written_into_pages() -> None:
    folder = Path(places.__file__).with_name("templates")
    for file in folder.rglob("*.html"):
        # A variable that a template sets for itself is not an attribute.
        text = re.sub(r"\{%\s*set \w+ =", "", file.read_text())
        assert not re.search(r"\|\s*safe\b", text), file
        assert not re.search(r"<script(?![^>]* src=\")", text), file
        assert not re.search(r"\son[a-z]+\s*=|\sstyle\s*=|<style|hx-on|javascript:|autoescape", text), file
        assert not re.search(
            r'src="(?!/static/|{{ block.picture }})|<link[^>]*href="(?!/static/)|<iframe|<object|<embed', text
        ), file


# Another site's page may lead a browser here, but cannot embed anything from here


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
