"""Tests how a person allows a client by page or by JSON, and what the client gets."""

import re
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import anyio
import httpx2
import pytest
import uvicorn
from mcp import Client
from mcp.client.auth import OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import (
    AuthorizationCodeResult,
    OAuthClientInformationFull,
    OAuthClientMetadata,
    OAuthMetadata,
    OAuthToken,
)
from pydantic import AnyUrl

from frontdesk.app import App, open_app
from frontdesk.errors import Unauthenticated
from frontdesk.identity.model import Profile
from frontdesk.interfaces.http.application import build_application
from frontdesk.interfaces.http.uvicorn_server import UvicornServer, open_listener
from frontdesk.interfaces.oauth import server_metadata
from tests.conftest import settings_with
from tests.interfaces.access.conftest import (
    BASE,
    CALLBACK,
    CLIENT,
    MEMORY_ENDPOINT,
    SAFE,
    SAFE_CALLBACK,
    SAFE_SECRET,
    VERIFIER,
    Form,
    Lab,
    by_code,
    by_refresh,
    token,
    wish,
    with_issuer,
    with_mine,
)
from tests.requirements import shows
from tests.support.postgres import Ready
from tests.support.serving import address_of

# A person allows a client by page or by JSON; what the client gets, and for how long


async def page(lab: Lab, **asked: str | None) -> Form:
    answer = await lab.web.get("/oauth/authorize", params={"response_type": "code", **wish(**asked)})
    assert answer.status_code == 200, answer.text
    return Form(answer.text)


@shows("LOGIN")
@pytest.mark.parametrize("shown", ["token", "own key", "house key"])
async def test_a_person_logs_in_by_the_page_and_the_client_acts_for_them(lab: Lab, shown: str) -> None:
    proof = token(email="ann@example.com", name="Ann") if shown == "token" else await lab.key("ann")
    if shown == "own key":
        made = await lab.web.post(
            "/api/user/api-keys", json={"name": "k"}, headers={"authorization": f"Bearer {token()}"}
        )
        proof = made.json()["data"]["api_key"]
    form = await page(lab)
    answer = await lab.web.post(form.action, data={**form.fields, "credential": f" {proof}\n", "decision": "allow"})
    assert answer.status_code == 303, answer.text
    back = urlsplit(answer.headers["location"])
    said = {name: values[0] for name, values in parse_qs(back.query).items()}
    assert answer.headers["location"].startswith(f"{CALLBACK}?")
    assert (said["state"], said["iss"]) == ("xyz & co", BASE)
    assert re.fullmatch(r"[0-9a-f]{48}", said["code"])

    traded = await lab.trade(by_code(said["code"]))
    assert traded.status_code == 200, traded.text
    assert traded.headers["cache-control"] == "no-store"
    got = traded.json()
    assert (got["token_type"], got["expires_in"]) == ("Bearer", 28800)
    assert got["scope"] == "memories.read tasks.read", "as far as the client may ask"
    assert await lab.whose(got["access_token"]) == "ann"
    info = await lab.web.get("/oauth/userinfo", headers={"authorization": f"Bearer {got['access_token']}"})
    known = shown == "token"
    expected = {"sub": "ann", "email": "ann@example.com" if known else None, "name": "Ann" if known else None}
    assert info.json() == expected

    renewed = await lab.web.post("/oauth/token", json=by_refresh(got["refresh_token"], scope="tasks.read"))
    assert (renewed.json()["expires_in"], renewed.json()["scope"]) == (3600, "tasks.read")
    assert await lab.whose(renewed.json()["access_token"]) == "ann"
    assert await lab.whose(got["access_token"]) == "ann", "until it is over"
    last = await lab.trade(by_refresh(renewed.json()["refresh_token"]))
    assert last.json()["scope"] == "memories.read tasks.read", "less was asked for that once"


@shows("LOGIN")
async def test_the_page_is_escaped_has_no_script_and_loads_nothing(lab: Lab) -> None:
    odd = {**wish(state='"><script>alert(1)</script>'), "response_type": "code", "more": "<b>"}
    answer = await lab.web.get("/oauth/authorize", params=odd)
    form = Form(answer.text)
    assert "script" not in form.tags
    assert not {"img", "link", "iframe", "a"} & set(form.tags)
    assert "localhost:3000" in answer.text
    assert "tools:admin" not in answer.text, "what the client may not have is not asked for"
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy
    assert f"form-action 'self' {CALLBACK.removesuffix('/callback')}" in policy
    assert answer.headers["x-frame-options"] == "DENY"
    assert answer.headers["cache-control"] == "no-store"
    cookie = answer.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie


async def test_an_app_of_its_own_scheme_can_be_led_back_to(lab: Lab) -> None:
    params = {"response_type": "code", **wish(redirect_uri="cursor://desk/cb")}
    answer = await lab.web.get("/oauth/authorize", params=params)
    assert "form-action 'self' cursor://desk" in answer.headers["content-security-policy"]
    form = Form(answer.text)
    back = await lab.web.post(form.action, data={**form.fields, "credential": token(), "decision": "allow"})
    assert back.headers["location"].startswith("cursor://desk/cb?code=")


@shows("LOGIN")
async def test_a_person_may_say_no(lab: Lab) -> None:
    form = await page(lab)
    answer = await lab.web.post(form.action, data={**form.fields, "decision": "deny"})
    assert answer.status_code == 303
    assert parse_qs(urlsplit(answer.headers["location"]).query)["error"] == ["access_denied"]
    late = await lab.web.post(form.action, data={**form.fields, "credential": token(), "decision": "allow"})
    assert late.status_code == 400, "that is settled"


@shows("LOGIN-REFUSED")
async def test_a_wrong_key_is_told_on_the_page_which_can_be_tried_again(lab: Lab) -> None:
    form = await page(lab)
    access = (await lab.trade(by_code(await lab.code(token())))).json()["access_token"]
    for wrong in (
        "",
        "nonsense",
        token(exp=1),
        token(aud="https://elsewhere.example"),
        await lab.key(agent="a"),
        access,
    ):
        answer = await lab.web.post(form.action, data={**form.fields, "credential": wrong, "decision": "allow"})
        assert answer.status_code == 401, wrong
        assert "location" not in answer.headers
        again = Form(answer.text)
        assert (again.action, again.fields) == (form.action, form.fields)
        assert wrong == "" or wrong not in answer.text
    little = await lab.key("ann", "identity:read")
    answer = await lab.web.post(form.action, data={**form.fields, "credential": little, "decision": "allow"})
    assert answer.status_code == 400
    assert "allows nothing of what the client requests" in answer.text
    done = await lab.web.post(form.action, data={**form.fields, "credential": token(), "decision": "allow"})
    assert done.status_code == 303


@shows("LOGIN-REFUSED")
async def test_a_form_counts_once_and_in_the_browser_that_was_asked(lab: Lab) -> None:
    form = await page(lab)
    said = {**form.fields, "credential": token(), "decision": "allow"}
    bound = dict(lab.web.cookies)
    lab.web.cookies.clear()
    assert (await lab.web.post(form.action, data=said)).status_code == 400
    lab.web.cookies.set("frontdesk_login", "x" * 43)
    assert (await lab.web.post(form.action, data=said)).status_code == 400
    lab.web.cookies.clear()
    lab.web.cookies.update(bound)
    assert (await lab.web.post(form.action, data={**said, "request": "made-up"})).status_code == 400
    second = await page(lab)
    assert {cookie.value for cookie in lab.web.cookies.jar} == set(bound.values()), (
        "two pages of one browser do not get into each other's way"
    )
    for data in (said, {**said, "request": second.fields["request"]}):
        assert (await lab.web.post(form.action, data=data)).status_code == 303
    assert (await lab.web.post(form.action, data=said)).status_code == 400


@shows("LOGIN")
async def test_nobody_gives_away_more_than_they_may_do(lab: Lab) -> None:
    for held, given in (
        (await lab.key("ann", "tasks.read"), "tasks.read"),
        (await lab.key("ann", "admin"), "memories.read tasks.read"),
        (token(scope="memories.read tasks.time"), "memories.read"),
    ):
        got = (await lab.trade(by_code(await lab.code(held)))).json()
        assert got["scope"] == given


async def test_a_client_that_names_no_scope_gets_the_usual_one(lab: Lab) -> None:
    got = (await lab.trade(by_code(await lab.code(token(), scope=None)))).json()
    assert got["scope"] == "tasks.write"


@shows("LOGIN")
async def test_a_client_with_a_secret_shows_it_by_header_or_body(lab: Lab) -> None:
    asked = {"client_id": SAFE, "redirect_uri": SAFE_CALLBACK, "scope": "tasks.read"}
    back = await lab.issue(token(), **asked)
    assert back.json()["redirect"].startswith(f"{SAFE_CALLBACK}&code=")
    by_header = by_code(await lab.code(token(), **asked), redirect_uri=SAFE_CALLBACK)
    del by_header["client_id"]
    first = await lab.trade(by_header, (SAFE, SAFE_SECRET))
    assert first.status_code == 200, first.text
    by_body = by_refresh(first.json()["refresh_token"], client_id=SAFE, client_secret=SAFE_SECRET)
    assert (await lab.trade(by_body)).status_code == 200


@shows("LOGIN")
async def test_what_is_revoked_works_no_longer(lab: Lab) -> None:
    got = (await lab.trade(by_code(await lab.code(token())))).json()
    access = {"token": got["access_token"], "client_id": CLIENT}
    assert await lab.whose(got["access_token"]) == "ann"
    others = await lab.web.post("/oauth/revoke", data=access | {"client_id": SAFE}, auth=(SAFE, SAFE_SECRET))
    assert (others.status_code, others.json()["error"]) == (400, "unauthorized_client")
    assert (await lab.web.post("/oauth/revoke", data=access)).status_code == 200
    assert (await lab.mine(authorization=f"Bearer {got['access_token']}")).status_code == 401
    renewed = (await lab.trade(by_refresh(got["refresh_token"]))).json()
    assert (
        await lab.web.post("/oauth/revoke", data={"token": renewed["refresh_token"], "client_id": CLIENT})
    ).status_code == 200
    assert (await lab.mine(authorization=f"Bearer {renewed['access_token']}")).status_code == 401, "all of the login"
    unknown = await lab.web.post("/oauth/revoke", data={"token": "nobody's", "client_id": CLIENT})
    assert (unknown.status_code, unknown.content) == (200, b"")


@shows("LOGIN")
async def test_what_was_allowed_with_a_key_ends_with_the_key(lab: Lab) -> None:
    key = await lab.key("ann")
    got = (await lab.trade(by_code(await lab.code(key)))).json()
    assert await lab.whose(got["access_token"]) == "ann"
    await lab.app.identity.revoke_key(key.split("_")[1])
    assert (await lab.mine(authorization=f"Bearer {got['access_token']}")).status_code == 401
    assert (await lab.trade(by_refresh(got["refresh_token"]))).json()["error"] == "invalid_grant"


async def test_a_token_of_ours_is_never_a_persons_word_for_another_login_nor_passed_on(lab: Lab) -> None:
    got = (await lab.trade(by_code(await lab.code(token())))).json()
    refused = await lab.issue(got["access_token"])
    assert (refused.status_code, refused.json()["error"]) == (401, "Unauthorized")
    with pytest.raises(Unauthenticated):
        await lab.app.identity.prove(got["access_token"])
    assert await lab.app.identity.profile(await lab.key("ann")) == Profile()


@shows("LOGIN")
async def test_what_a_client_has_to_know_can_be_found(lab: Lab) -> None:
    resource = (await lab.web.get(f"/.well-known/oauth-protected-resource{MEMORY_ENDPOINT}")).json()
    assert resource["authorization_servers"] == [BASE, "https://id.example"], "our own first"
    found = (await lab.web.get("/.well-known/oauth-authorization-server")).json()
    assert found["issuer"] == BASE
    assert found["code_challenge_methods_supported"] == ["S256"]
    for name in ("authorization", "token", "revocation", "userinfo"):
        assert found[f"{name}_endpoint"].startswith(f"{BASE}/oauth/")
    needed = await lab.mine()
    assert needed.status_code == 401
    assert needed.json()["error"]["code"] == -32010
    where = f'resource_metadata="{BASE}/.well-known/oauth-protected-resource{MEMORY_ENDPOINT}"'
    assert where in needed.headers["www-authenticate"]


async def test_our_own_tools_can_lead_a_person_through_it(lab: Lab) -> None:
    oauth = lab.app.identity.oauth
    invited = oauth.authorize_url(CLIENT, "https://not.its.own", None, "here")
    assert (invited.redirect_uri, invited.scope, invited.state) == (CALLBACK, "tasks.write", "here")
    form = Form((await lab.web.get(invited.url)).text)
    answer = await lab.web.post(form.action, data={**form.fields, "credential": token(), "decision": "allow"})
    [code] = parse_qs(urlsplit(answer.headers["location"]).query)["code"]
    issued = await oauth.exchange(code, invited.redirect_uri, invited.code_verifier)
    assert await lab.whose(issued.access_token) == "ann"
    renewed = await oauth.refresh(issued.refresh_token)
    assert (renewed.user_id, renewed.scopes) == ("ann", {"tasks.write"})
    assert issued.access_token not in repr(issued)
    assert VERIFIER not in repr(invited)


async def test_the_journal_has_every_step_and_no_secret(lab: Lab) -> None:
    form = await page(lab)
    code = await lab.code(token())
    got = (await lab.trade(by_code(code))).json()
    await lab.trade(by_code(code))
    rows = [(row.surface, row.action, row.outcome, row.user_id) for row in lab.app.journal._waiting]
    assert rows == [
        ("oauth", "authorize", "ok", None),
        ("oauth", "authorize/issue", "ok", "ann"),
        ("oauth", "token authorization_code", "ok", "ann"),
        ("oauth", "token authorization_code", "refused", None),
    ]
    told = str(list(lab.app.journal._waiting))
    assert not any(secret in told for secret in (code, got["access_token"], form.fields["request"]))


# The login with the MCP SDK's own client, against a server on a socket


SECONDS = 30


@dataclass
class Storage:
    """The client's given credentials, and the tokens that it gets."""

    client: OAuthClientInformationFull
    tokens: list[OAuthToken] = field(default_factory=list[OAuthToken])

    async def get_tokens(self) -> OAuthToken | None:
        return self.tokens[-1] if self.tokens else None

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self.tokens.append(tokens)

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self.client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        raise AssertionError(f"{client_info.client_id}: clients are known beforehand")


@dataclass
class Person:
    """A person at a browser who allows everything with their key."""

    key: str
    asked: int = 0
    back: str = ""

    async def open(self, url: str) -> None:
        self.asked += 1
        async with httpx2.AsyncClient(base_url=url.partition("/oauth")[0]) as browser:
            form = Form((await browser.get(url)).text)
            said = {**form.fields, "credential": self.key, "decision": "allow"}
            self.back = (await browser.post(form.action, data=said)).headers["location"]

    async def came_back(self) -> AuthorizationCodeResult:
        said = {name: values[0] for name, values in parse_qs(urlsplit(self.back).query).items()}
        return AuthorizationCodeResult(code=said["code"], state=said["state"], iss=said["iss"])


@asynccontextmanager
async def served(data: Path, **values: object) -> AsyncGenerator[App]:
    """A server with the tool `mine`, on a socket."""
    wanted = with_issuer(settings_with(FRONTDESK_DATA=data, FRONTDESK_PORT=0, **values))
    listener = open_listener(wanted)
    async with open_app(wanted.with_values(port=listener.getsockname()[1])) as app, anyio.create_task_group() as tasks:
        server = UvicornServer(
            uvicorn.Config(build_application(app, with_mine(app)), lifespan="off", access_log=False, log_config=None)
        )
        tasks.start_soon(server.serve, [listener])
        yield app
        assert app.identity.oauth.config.issuer == address_of(listener)
        server.should_exit = True


def provider(server_url: str, storage: Storage, person: Person) -> OAuthClientProvider:
    wanted = OAuthClientMetadata(redirect_uris=storage.client.redirect_uris, client_name="t")
    return OAuthClientProvider(server_url, wanted, storage, person.open, person.came_back)


async def mine(auth: OAuthClientProvider, mode: str) -> object:
    """The person for whom the server takes a client after this login."""
    url = auth.context.server_url
    async with (
        httpx2.AsyncClient(auth=auth, timeout=SECONDS) as web,
        Client(streamable_http_client(url, http_client=web), mode=mode) as client,
    ):
        return (await client.call_tool("mine", {})).structured_content


@shows("LOGIN")
@pytest.mark.parametrize("guarded", [False, True])
@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_the_sdks_client_logs_a_person_in(tmp_path: Path, ready: Ready, mode: str, *, guarded: bool) -> None:
    known = OAuthClientInformationFull(
        client_id=CLIENT, redirect_uris=[AnyUrl(CALLBACK)], token_endpoint_auth_method="none"
    )
    if guarded:
        known = OAuthClientInformationFull(
            client_id=SAFE,
            client_secret=SAFE_SECRET,
            redirect_uris=[AnyUrl(SAFE_CALLBACK)],
            token_endpoint_auth_method="client_secret_basic",
        )
    storage = Storage(known)
    with anyio.fail_after(SECONDS):
        async with served(ready.in_folder(tmp_path / "data"), FRONTDESK_REQUIRE_AUTH=guarded) as app:
            url = f"{app.identity.oauth.config.issuer}/mcp/memory"
            person = Person((await app.identity.create_key(name="", agent_id=None, user_id="ann"))[1])
            assert await mine(provider(url, storage, person), mode) == {"user_id": "ann"}
            assert await mine(provider(url, storage, person), mode) == {"user_id": "ann"}
            assert person.asked == 1
            [got] = storage.tokens
            assert got.scope is not None
            assert "tasks.read" in got.scope.split()
            assert (got.expires_in, "tools:admin" in got.scope) == (28800, False)

            later = provider(url, storage, person)
            await later._initialize()
            later.context.oauth_metadata = OAuthMetadata.model_validate(
                server_metadata(app.identity.oauth.config.issuer)
            )
            later.context.token_expiry_time = 1
            assert await mine(later, mode) == {"user_id": "ann"}
            assert (person.asked, storage.tokens[-1].expires_in) == (1, 3600), "the next one without a word"
