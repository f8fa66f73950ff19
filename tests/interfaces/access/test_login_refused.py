"""Tests every way in which a client gets no token, each with its reason."""

from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import parse_qs, urlsplit

import anyio
import pytest
from sqlalchemy import update

from frontdesk.db.schema import oauth_grants, oauth_requests, oauth_tokens
from frontdesk.identity.oauth_server import challenge_of
from frontdesk.settings import Settings
from tests.interfaces.access.conftest import (
    BASE,
    CALLBACK,
    SAFE,
    SAFE_CALLBACK,
    SAFE_SECRET,
    VERIFIER,
    Form,
    Lab,
    by_code,
    by_refresh,
    opened,
    token,
    wish,
    with_issuer,
)
from tests.requirements import shows

PAST = datetime.now(UTC) - timedelta(seconds=1)
AT_ONCE = 8


@shows("LOGIN-REFUSED")
@pytest.mark.parametrize(
    ("asked", "fault"),
    [
        ({"client_id": None}, "invalid_request"),
        ({"redirect_uri": None}, "invalid_request"),
        ({"client_id": "nobody"}, "unauthorized_client"),
        ({"redirect_uri": f"{CALLBACK}/"}, "invalid_redirect_uri"),
        ({"redirect_uri": f"{CALLBACK}?x=1"}, "invalid_redirect_uri"),
        ({"redirect_uri": "http://localhost:3001/callback"}, "invalid_redirect_uri"),
        ({"redirect_uri": SAFE_CALLBACK}, "invalid_redirect_uri"),
        ({"code_challenge": None}, "invalid_request"),
        ({"code_challenge_method": None}, "invalid_request"),
        ({"code_challenge_method": "plain"}, "invalid_request"),
        ({"code_challenge": "short"}, "invalid_request"),
        ({"state": "s" * 2001}, "invalid_request"),
        ({"scope": "tools:admin everything"}, "invalid_scope"),
        ({"resource": "https://elsewhere.example/mcp"}, "invalid_target"),
    ],
)
async def test_a_wish_that_cannot_be_granted_is_refused_by_page_and_by_json(
    lab: Lab, asked: dict[str, str | None], fault: str
) -> None:
    answer = await lab.issue(token(), **asked)
    assert (answer.status_code, answer.json()["error"]) == (400, fault)
    shown = await lab.web.get("/oauth/authorize", params={"response_type": "code", **wish(**asked)})
    if fault in ("unauthorized_client", "invalid_redirect_uri") or None in (
        asked.get("client_id", ""),
        asked.get("redirect_uri", ""),
    ):
        assert shown.status_code == 400, "nobody is sent to an address that is not the client's"
        assert "location" not in shown.headers
    else:
        assert shown.status_code == 302
        assert shown.headers["location"].startswith(f"{CALLBACK}?")
        assert parse_qs(urlsplit(shown.headers["location"]).query)["error"] == [fault]


async def test_only_a_code_is_to_be_had_at_the_page(lab: Lab) -> None:
    answer = await lab.web.get("/oauth/authorize", params={**wish(), "response_type": "token"})
    assert parse_qs(urlsplit(answer.headers["location"]).query)["error"] == ["unsupported_response_type"]
    twice = await lab.web.get(f"/oauth/authorize?client_id=a&{'&'.join(f'{k}={v}' for k, v in wish().items())}")
    assert (twice.status_code, "more than once" in twice.text) == (400, True)


@shows("LOGIN-REFUSED")
async def test_without_a_persons_own_key_or_token_nothing_is_issued(lab: Lab) -> None:
    for shown in (None, "nonsense", token(exp=1), token(aud="https://elsewhere.example"), await lab.key(agent="*")):
        answer = await lab.issue(shown)
        assert (answer.status_code, answer.json()["error"]) == (401, "Unauthorized"), shown


@shows("LOGIN-REFUSED")
@pytest.mark.parametrize(
    ("said", "status", "fault"),
    [
        ({"code_verifier": "w" * 64}, 400, "invalid_grant"),
        ({"code_verifier": challenge_of(VERIFIER)}, 400, "invalid_grant"),
        ({"code_verifier": ""}, 400, "invalid_request"),
        ({"redirect_uri": "cursor://desk/cb"}, 400, "invalid_grant"),
        ({"code": "0" * 48}, 400, "invalid_grant"),
        ({"code": ""}, 400, "invalid_request"),
        ({"client_id": "nobody"}, 400, "unauthorized_client"),
        ({"client_id": SAFE}, 401, "invalid_client"),
        ({"client_id": SAFE, "client_secret": "wrong"}, 401, "invalid_client"),
        ({"client_id": SAFE, "client_secret": SAFE_SECRET}, 400, "invalid_grant"),
        ({"grant_type": "password"}, 400, "unsupported_grant_type"),
        ({"grant_type": "client_credentials"}, 400, "unsupported_grant_type"),
        ({"grant_type": ""}, 400, "invalid_request"),
    ],
)
async def test_a_code_is_worth_nothing_with_anything_wrong(
    lab: Lab, said: dict[str, str], status: int, fault: str
) -> None:
    answer = await lab.trade(by_code(await lab.code(token()), **said))
    assert (answer.status_code, answer.json()["error"]) == (status, fault)
    assert answer.headers["cache-control"] == "no-store"
    assert ("www-authenticate" in answer.headers) == (status == 401)


@shows("LOGIN-REFUSED")
async def test_a_code_is_used_up_by_whoever_shows_it(lab: Lab) -> None:
    code = await lab.code(token())
    assert (await lab.trade(by_code(code, code_verifier="w" * 64))).json()["error"] == "invalid_grant"
    assert (await lab.trade(by_code(code))).json()["error"] == "invalid_grant"


@shows("LOGIN-REFUSED")
async def test_a_code_that_is_shown_again_ends_what_came_of_it(lab: Lab) -> None:
    code = await lab.code(token())
    got = (await lab.trade(by_code(code))).json()
    assert await lab.whose(got["access_token"]) == "ann"
    assert (await lab.trade(by_code(code))).json()["error"] == "invalid_grant", "not even a moment later"
    assert (await lab.mine(authorization=f"Bearer {got['access_token']}")).status_code == 401
    assert (await lab.trade(by_refresh(got["refresh_token"]))).json()["error"] == "invalid_grant"


@shows("LOGIN-REFUSED")
async def test_a_refresh_token_that_is_shown_again_or_by_another_ends_the_login(lab: Lab) -> None:
    for other in ({}, {"client_id": SAFE, "client_secret": SAFE_SECRET}):
        first = (await lab.trade(by_code(await lab.code(token())))).json()
        second = (await lab.trade(by_refresh(first["refresh_token"]))).json()
        shown = first["refresh_token"] if not other else second["refresh_token"]
        assert (await lab.trade(by_refresh(shown, **other))).json()["error"] == "invalid_grant"
        for got in (first, second):
            assert (await lab.mine(authorization=f"Bearer {got['access_token']}")).status_code == 401
        assert (await lab.trade(by_refresh(second["refresh_token"]))).json()["error"] == "invalid_grant"


async def test_a_refresh_token_gives_no_more_than_there_was(lab: Lab) -> None:
    got = (await lab.trade(by_code(await lab.code(token())))).json()
    more = await lab.trade(by_refresh(got["refresh_token"], scope="tasks.read tasks.write"))
    assert (more.status_code, more.json()["error"]) == (400, "invalid_scope")
    assert (await lab.trade(by_refresh(got["refresh_token"]))).status_code == 200, "which costs it nothing"
    assert (await lab.trade(by_refresh(got["access_token"]))).json()["error"] == "invalid_grant"
    shown = await lab.web.get("/oauth/userinfo", headers={"authorization": f"Bearer {got['refresh_token']}"})
    assert shown.status_code == 401, "it opens no door itself"


@shows("LOGIN-REFUSED")
async def test_what_is_over_is_over(lab: Lab) -> None:
    late = await lab.code(token())
    got = (await lab.trade(by_code(await lab.code(token())))).json()
    page = await lab.web.get("/oauth/authorize", params={"response_type": "code", **wish()})
    async with lab.app.database.transaction() as connection:
        await connection.execute(update(oauth_grants).values(code_expires_at=PAST))
        await connection.execute(update(oauth_tokens).values(expires_at=PAST))
        await connection.execute(update(oauth_requests).values(expires_at=PAST))
    assert (await lab.trade(by_code(late))).json()["error"] == "invalid_grant"
    assert (await lab.mine(authorization=f"Bearer {got['access_token']}")).status_code == 401
    assert (await lab.trade(by_refresh(got["refresh_token"]))).json()["error"] == "invalid_grant"
    form = Form(page.text)
    answer = await lab.web.post(form.action, data={**form.fields, "credential": token(), "decision": "allow"})
    assert (answer.status_code, "has expired" in answer.text) == (400, True)
    await lab.app.identity.oauth.prune()
    async with lab.app.database.read_transaction() as connection:
        for table in (oauth_grants, oauth_tokens, oauth_requests):
            assert (await connection.execute(table.select())).all() == [], "and is forgotten"


@shows("LOGIN-REFUSED")
async def test_a_code_or_refresh_token_is_taken_once_however_many_show_it_at_once(settings: Settings) -> None:
    async with opened(with_issuer(settings)) as lab, opened(with_issuer(settings)) as other:
        first = await together([lab, other], by_code(await lab.code(token())))
        assert sorted(first) == [200, *[400] * (AT_ONCE - 1)]
        got = (await lab.trade(by_code(await lab.code(token())))).json()
        again = await together([lab, other], by_refresh(got["refresh_token"]))
        assert sorted(again) == [200, *[400] * (AT_ONCE - 1)]


async def together(labs: list[Lab], said: dict[str, str]) -> list[int]:
    statuses: list[int] = []

    async def one(lab: Lab) -> None:
        statuses.append((await lab.trade(said)).status_code)

    async with anyio.create_task_group() as group:
        for number in range(AT_ONCE):
            group.start_soon(one, labs[number % len(labs)])
    return statuses


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (b"[]", "application/json"),
        (b'{"grant_type": 1}', "application/json"),
        (b'{"code": "\\ud800"}', "application/json"),
        (b"{" * 100_000, "application/json"),
        (b"\xff", "application/x-www-form-urlencoded"),
        (b"grant_type=a&grant_type=b", "application/x-www-form-urlencoded"),
        (b"a=" + b"b" * 70_000, "application/x-www-form-urlencoded"),
        (b"", "text/plain"),
    ],
)
async def test_no_body_breaks_the_server(lab: Lab, body: bytes, kind: str) -> None:
    for path in ("/oauth/token", "/oauth/revoke", "/oauth/authorize/issue"):
        answer = await lab.web.post(path, content=body, headers={"content-type": kind})
        assert answer.status_code in (400, 401), path


async def test_a_client_named_in_two_ways_is_refused(lab: Lab) -> None:
    said: dict[str, Any] = by_code("0" * 48)
    answer = await lab.trade(said, (SAFE, SAFE_SECRET))
    assert (answer.status_code, answer.json()["error"]) == (400, "invalid_request")
    broken = await lab.web.post("/oauth/token", data=said, headers={"authorization": "Basic !!"})
    assert (broken.status_code, broken.json()["error"]) == (401, "invalid_client")


async def test_a_desk_without_clients_says_nothing_of_logins(settings: Settings) -> None:
    async with opened(settings) as lab:
        assert (await lab.web.get("/.well-known/oauth-authorization-server")).status_code == 404
        resource = (await lab.web.get("/.well-known/oauth-protected-resource")).json()
        assert "authorization_servers" not in resource
        answer = await lab.issue(await lab.key("ann"))
        assert (answer.status_code, answer.json()["error"]) == (400, "unauthorized_client")
        assert BASE not in answer.text
