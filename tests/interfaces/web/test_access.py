"""Tests the page Access, and signing in to the pages at an issuer."""

import re
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import parse_qs, quote, urlencode, urlsplit

import httpx2
import pytest
from pydantic import SecretStr

from frontdesk.agents.host import NewAgent
from frontdesk.app import App, open_app
from frontdesk.identity.model import AgentIdSource
from frontdesk.interfaces.http.application import build_application
from frontdesk.journal.model import EntryKind, JournalEntry, Outcome
from frontdesk.settings import Issuer, OAuthClient, Settings
from tests.conftest import settings_with
from tests.requirements import shows
from tests.support.browsers import BASE, Browser, browsing, text_of
from tests.support.issuer import Issuer as IssuerServer
from tests.support.issuer import open_issuer

# Access: keys are made, rotated and revoked; refused callers; callers that still send an id as a parameter


KEY_TEXT = re.compile(r'id="key">(fd_[0-9A-Za-z_]+)<')
OLDER = re.compile(r'rel="next" href="[^"]*before=([^"&]+)')
LONG = f"agent-{'0' * 100}"
HOSTILE = "<script>alert(1)</script>\u202eevil" + "x" * 150


def a_call(
    number: int, *, outcome: Outcome = Outcome.OK, source: AgentIdSource = AgentIdSource.NONE, **said: str
) -> JournalEntry:
    at = datetime.now(UTC) - timedelta(minutes=number)
    who, why = said.get("agent"), said.get("reason")
    return JournalEntry(at, EntryKind.DENIAL, "http", "/mcp", outcome, 5, agent_id=who, reason=why, source=source)


@shows("WEB-ACCESS")
async def test_a_key_is_made_and_its_text_shown_this_once(settings: Settings) -> None:
    async with open_app(settings) as app, browsing(build_application(app)) as web:
        assert "No keys yet" in text_of(await web.get("/access"))
        form = {"name": "the clerk's", "agent": "agent-1", "user": "ann", "lasting": "30"}
        made = await web.post("/access/keys", {**form, "limits": "ticked", "scope:tools:call": "on"})
        text = KEY_TEXT.findall(made)[0]
        assert web.answer is not None
        assert web.answer.headers["cache-control"] == "no-store"
        credential = await app.identity.authenticate(text)
        assert (credential.agent_id, credential.user_id) == ("agent-1", "ann")
        assert credential.scopes == {"tools:call"}
        listed = await web.get("/access")
        for said in ("the clerk's", "agent-1", "ann", "tools:call", "in 30 d", "works", "never"):
            assert said in text_of(listed), said
        secret = text.split("_")[2]
        for path in ("/access", "/access?keys=all", "/access/denied"):
            assert secret not in await web.get(path)
        await app.journal.flush()
        assert secret not in repr(await app.journal.denials(None, 100))


async def test_a_key_that_may_do_everything_has_to_be_asked_for(app: App) -> None:
    async with browsing(build_application(app)) as web:
        for form, words in (
            ({"agent": "a"}, "Tick what the key may do"),
            ({"limits": "everything"}, "A key needs someone to speak for"),
            ({"limits": "everything", "agent": "not an id"}, "Invalid agent ID"),
            ({"limits": "everything", "agent": "a", "lasting": "x"}, "A key works for"),
            ({"scope:nonsense": "on", "agent": "a"}, "There is no scope 'nonsense'"),
        ):
            assert words in text_of(await web.post("/access/keys", form, 400)), form
        assert await app.keys.is_empty()
        made = await web.post("/access/keys", {"limits": "everything", "agent": "*", "lasting": ""})
        assert (await app.identity.authenticate(KEY_TEXT.findall(made)[0])).scopes is None
        assert "any agent everything" in text_of(await web.get("/access"))


async def test_a_key_that_is_not_made_leaves_the_form_as_it_was_filled_in(app: App) -> None:
    async with browsing(build_application(app)) as web:
        form = {"name": "the clerk's", "agent": "agent-1", "user": "ann", "lasting": "30", "limits": "ticked"}
        page = await web.post("/access/keys", form, 400)
        assert "Tick what the key may do" in text_of(page)
        for kept in ('value="the clerk&#39;s"', 'value="agent-1"', 'value="ann"', '<option value="30" selected>'):
            assert kept in page, kept
        assert re.search(r'<details class="card" id="make" open>', page)
        page = await web.post("/access/keys", {"scope:tools:call": "on", "agent": "not an id"}, 400)
        assert 'name="scope:tools:call" checked' in page
        assert page.count(" checked") == 2
        page = await web.post("/access/keys", {"limits": "everything", "lasting": ""}, 400)
        assert 'value="everything" checked' in page
        assert '<option value="" selected>' in page
        assert "checked" not in re.sub('value="ticked" checked', "", await web.get("/access", limits="everything")), (
            "a link does not say what a key may do"
        )


@shows("WEB-ACCESS")
async def test_a_key_is_rotated_and_the_old_one_works_on_for_a_while(settings: Settings) -> None:
    async with open_app(settings) as app, browsing(build_application(app)) as web:
        old, old_text = await app.identity.create_key(name="n", agent_id="a", user_id=None)
        shown = await web.post(f"/access/keys/{old.id}/rotate", {"overlap": "1"})
        text = KEY_TEXT.findall(shown)[0]
        assert text != old_text
        assert "which works until in 60 min" in text_of(shown)
        for one in (old_text, text):
            assert (await app.identity.authenticate(one)).agent_id == "a"
        again = await web.post(f"/access/keys/{old.id}/rotate", {"overlap": "1"}, 400)
        assert "was replaced by" in text_of(again)
        assert "The old key works on for" in text_of(await web.post("/access/keys/x/rotate", {"overlap": "9"}, 400))


@shows("WEB-ACCESS")
async def test_a_revoked_key_is_out_and_listed_among_the_ended(settings: Settings) -> None:
    async with open_app(settings) as app, browsing(build_application(app)) as web:
        key, text = await app.identity.create_key(name="lost", agent_id="a", user_id=None)
        assert f"Key {key.id} no longer works." in text_of(await web.post(f"/access/keys/{key.id}/revoke"))
        async with browsing(build_application(app), authorization=f"Bearer {text}") as other:
            await other.client.get("/access")
            assert (await other.client.post("/mcp", json={})).status_code == 401
        assert key.id not in await web.get("/access")
        assert "lost" in text_of(await web.get("/access", keys="ended"))
        assert "revoked" in text_of(await web.get("/access", keys="all"))
        await web.post(f"/access/keys/{key.id}/revoke", {}, 404)
        await web.get(f"/access/keys/{key.id}/revoke", 405)
        await web.get("/access", 400, keys="nonsense")


async def test_many_keys_are_shown_a_page_at_a_time(settings: Settings) -> None:
    async with open_app(settings) as app, browsing(build_application(app)) as web:
        for number in range(60):
            await app.identity.create_key(name=f"key-{number:02}", agent_id="a", user_id=None)
        first = await web.get("/access")
        second = await web.get("/access", before=OLDER.findall(first)[0])
        seen = [re.findall(r"key-\d\d", page) for page in (first, second)]
        assert [len(names) for names in seen] == [50, 10]
        assert seen[0] + seen[1] == [f"key-{number:02}" for number in reversed(range(60))]
        assert 'rel="prev" href="/access"' in second


async def test_who_was_turned_away_is_told_with_the_reason(settings: Settings) -> None:
    async with open_app(settings) as app, browsing(build_application(app)) as web:
        assert "No call was denied" in text_of(await web.get("/access"))
        app.journal.record(a_call(60 * 25, outcome=Outcome.DENIED, agent="long-ago", reason="Denied"))
        for number in range(60):
            reason = "RateLimited" if number % 2 else "MissingScope"
            outcome = Outcome.LIMITED if number % 2 else Outcome.DENIED
            app.journal.record(a_call(60 - number, outcome=outcome, agent=f"agent-{number}", reason=reason))
        await app.journal.flush()
        page = text_of(await web.get("/access"))
        assert "Its key lacks the scope that this needs" in page
        assert "FRONTDESK_RATE_AGENT" in page
        assert "agent-59" in page
        first = await web.get("/access/denied")
        second = await web.get("/access/denied", before=OLDER.findall(first)[0])
        found = re.findall(r'href="/agents/(agent-\d+)"', first + second)
        assert found == [f"agent-{number}" for number in reversed(range(60))]
        assert "long-ago" not in first + second
        await web.get("/access/denied", 400, before="x")


async def test_who_was_denied_is_known_or_not_and_no_row_says_both(settings: Settings) -> None:
    async with open_app(settings) as app, browsing(build_application(app)) as web:
        ada = await app.host.create(NewAgent("Ada"))
        app.journal.record(a_call(1, outcome=Outcome.DENIED, reason="Denied"))
        app.journal.record(a_call(2, outcome=Outcome.DENIED, reason="Denied", agent=ada.id))
        await app.journal.flush()
        for path in ("/access", "/access/denied"):
            rows = [text_of(row) for row in (await web.get(path)).split("<tr>") if "denied Denied" in text_of(row)]
            assert ["It is identified" in row for row in rows] == [True, False]
            assert "Ada" in rows[0]
            assert "refused before it was identified" in rows[1]
            assert "nobody known" in rows[1]


async def test_agents_that_send_their_id_as_a_parameter_are_told_which_header_to_send(settings: Settings) -> None:
    async with open_app(settings) as app, browsing(build_application(app)) as web:
        assert "No agent among" in text_of(await web.get("/access"))
        for agent, source in (
            (LONG, AgentIdSource.PARAMETER),
            (LONG, AgentIdSource.PARAMETER),
            (LONG, AgentIdSource.HEADER),
            ("new", AgentIdSource.HEADER),
        ):
            app.journal.record(a_call(1, source=source, agent=agent))
        await app.journal.flush()
        page = await web.get("/access")
        assert f">x-agent-id: {LONG}</code>" in page, "whole, however long"
        assert "x-agent-id: new" not in page
        (one,) = await app.journal.agent_ids_by_parameter(100, 10)
        assert (one.times, one.by_header) == (2, 1)
        assert abs(one.last_at - datetime.now(UTC)) < timedelta(minutes=5)
        assert await app.journal.agent_ids_by_parameter(1, 10) == [], "only the newest rows are looked at"


async def test_issuers_and_programs_are_shown_without_their_secrets(app: App) -> None:
    secret = "not-for-anybodys-eyes-at-all-really"
    settings = app.settings.with_values(
        issuers=(Issuer(issuer="https://id.example", hs256_secret=SecretStr(secret), algorithms=("HS256",)),),
        oauth_clients=(
            OAuthClient(
                client_id="notes", client_secret=SecretStr(secret), redirect_uris=("https://notes.example/cb",)
            ),
        ),
    )
    async with open_app(settings) as other, browsing(build_application(other)) as web:
        page = await web.get("/access")
        for said in ("https://id.example", "a shared secret, not shown", "notes", "has one"):
            assert said in text_of(page), said
        assert secret not in page
    async with browsing(build_application(app)) as web:
        assert "No issuer is trusted" in text_of(await web.get("/access"))


async def test_hostile_names_are_inert(settings: Settings) -> None:
    async with open_app(settings) as app, browsing(build_application(app)) as web:
        await app.identity.create_key(name=HOSTILE, agent_id=None, user_id="<b>ann</b>")
        hostile = {"reason": "<img src=x>", "agent": '"><i>'}
        app.journal.record(a_call(1, outcome=Outcome.DENIED, source=AgentIdSource.PARAMETER, **hostile))
        await app.journal.flush()
        for page in (await web.get("/access"), await web.get("/access/denied"), await web.get("/access", user=HOSTILE)):
            for markup in ("<script>alert", "<b>", "<img src=x", "<i>"):
                assert markup not in page
            assert "<strong>\u202e" not in page


# Signing in to the pages at an issuer: the way there and back, and every other way in which a browser can return


BACK = "/sign-in/back"
SECRET = "s3cret & more"
OTHERS_STATE = "was not begun in this browser"


@pytest.fixture(scope="module")
def issuer() -> Iterator[IssuerServer]:
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


async def sent(web: Browser, issuer: IssuerServer, back: str = "/access") -> str:
    """Follow the link to the issuer; gives the address to which it leads the browser back."""
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
    tmp_path: Path, issuer: IssuerServer
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
    tmp_path: Path, issuer: IssuerServer
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


async def test_the_secret_goes_to_the_issuer_alone(tmp_path: Path, issuer: IssuerServer) -> None:
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
    tmp_path: Path, issuer: IssuerServer, changed: dict[str, str]
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
    tmp_path: Path, issuer: IssuerServer, cookie: str | None
) -> None:
    async with guarded(tmp_path, issuer.url) as (app, web):
        back = await sent(web, issuer)
        async with browsing(build_application(app)) as victim:
            if cookie is not None:
                victim.client.cookies.set("frontdesk_errand", cookie)
            assert OTHERS_STATE in text_of(await victim.get(back, 403))
            await victim.get("/access", 303)


async def test_a_code_works_once(tmp_path: Path, issuer: IssuerServer) -> None:
    async with guarded(tmp_path, issuer.url) as (_, web):
        back = await sent(web, issuer)
        sign_in_state = web.client.cookies["frontdesk_errand"]
        await web.get(back)
        web.client.cookies.clear()
        web.client.cookies.set("frontdesk_errand", sign_in_state)
        assert "gave no token" in text_of(await web.get(back, 401))


async def test_who_says_no_at_the_issuer_is_told_so_and_nothing_comes_alive(
    tmp_path: Path, issuer: IssuerServer
) -> None:
    async with guarded(tmp_path, issuer.url) as (_, web):
        state = parse_qs(urlsplit(await sent(web, issuer)).query)["state"][0]
        said = urlencode({"state": state, "error": "<script>access_denied</script>"})
        page = await web.get(f"{BACK}?{said}", 403)
        assert "did not let you in: <script>access_denied</script>" in text_of(page.replace("&amp;", "&"))
        assert "<script>access" not in page


async def test_a_token_without_the_operators_scope_lets_nobody_in(tmp_path: Path, issuer: IssuerServer) -> None:
    async with guarded(tmp_path, issuer.url, scope="tools:read") as (_, web):
        assert "has the scope 'house:admin'" in text_of(await web.get(await sent(web, issuer), 403))
        await web.get("/access", 303)


@pytest.mark.parametrize("path", ["/sign-in/with", "/sign-in/with?issuer=https%3A%2F%2Fevil.example"])
async def test_browsers_are_sent_to_issuers_that_are_set_and_nowhere_else(
    tmp_path: Path, issuer: IssuerServer, path: str
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
