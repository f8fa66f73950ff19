"""Tests people's tokens: sent by clients, kept for a session, and from malformed issuers."""

import base64
import json
import time
from collections.abc import AsyncGenerator, Generator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import anyio
import httpx2
import pytest
from joserfc import jws
from sqlalchemy import select, update
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from frontdesk.app import open_app
from frontdesk.db.schema import mcp_sessions
from frontdesk.errors import Invalid, Unauthenticated
from frontdesk.identity import rights
from frontdesk.identity.inbound import credential_on_behalf
from frontdesk.identity.model import Credential
from frontdesk.interfaces.http.application import build_application
from frontdesk.interfaces.http.context import ASGIApp, RequestContext
from frontdesk.interfaces.http.middleware import PERSON_TOKEN_HEADER, act_for_person
from frontdesk.settings import Settings
from tests.conftest import settings_with
from tests.interfaces.access.conftest import BASE, ISSUER, MEMORY_ENDPOINT, Lab, by_code, opened, token, with_issuer
from tests.requirements import shows
from tests.support.issuer import Issuer
from tests.support.postgres import Ready
from tests.support.serving import address_of, listen, serve
from tests.support.wire import MODERN, Answer, call, send

# A person's token in a header: which clients may send it, and its effect beside the client's own credential


def unsigned() -> str:
    said = {"iss": ISSUER, "sub": "ann", "aud": f"{BASE}/mcp", "exp": int(time.time()) + 600}
    parts = [
        base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=").decode() for part in ({"alg": "none"}, said)
    ]
    return ".".join([*parts, ""])


def forged() -> list[str]:
    swapped = [*token("ann").split(".")[:2], token("bob").split(".")[2]]
    return [
        unsigned(),
        ".".join(swapped),
        token(exp=1),
        token(aud="https://elsewhere.example/mcp"),
        token(iss="https://elsewhere.example"),
        "nonsense",
        "zm_" + "0" * 64,
        "zt_nobodys",
        f"{token()}, {token('bob')}",
    ]


@shows("BEHALF")
async def test_a_program_on_this_machine_names_people_by_their_tokens(lab: Lab) -> None:
    for sub, sent in (("ann", token()), ("bob", f"Bearer {token('bob')}"), ("ann", f"bearer {await lab.key('ann')}")):
        answer = await lab.mine(x_user_auth_token=sent)
        assert answer.json()["result"]["structuredContent"] == {"user_id": sub}
    assert (await lab.mine()).status_code == 401, "nothing is kept"
    assert (await lab.mine(x_user_auth_token="")).status_code == 401
    assert (await lab.mine("/mcp", x_user_auth_token=token(), x_agent_id="a")).status_code == 200


@shows("BEHALF")
async def test_a_platform_names_people_by_their_tokens_from_anywhere(settings: Settings) -> None:
    async with opened(with_issuer(settings.with_values(require_auth=True))) as lab:
        platform = await lab.key(agent="*")
        answer = await lab.mine(authorization=f"Bearer {platform}", x_user_auth_token=token(), x_forwarded_for="::1")
        assert answer.json()["result"]["structuredContent"] == {"user_id": "ann"}
        alone = await lab.mine(authorization=f"Bearer {platform}")
        assert alone.json()["error"]["code"] == -32011, "the platform itself is nobody"


@shows("BEHALF")
async def test_from_anybody_else_it_is_refused_even_if_it_holds(lab: Lab) -> None:
    agents = await lab.key(agent="clerk")
    for shown in (
        {"authorization": f"Bearer {agents}"},
        {"authorization": f"Bearer {token(sub='app', azp='app')}"},
    ):
        for sent in (token(), "nonsense"):
            answer = await lab.mine(x_user_auth_token=sent, **shown)
            assert answer.status_code == 403
            assert "trusted client alone" in answer.json()["error_description"]
    passed_on = await lab.mine(x_user_auth_token=token(), x_forwarded_for="198.51.100.7")
    assert passed_on.json()["result"]["structuredContent"] == {"user_id": "ann"}, "alone it is her own credential there"
    elsewhere = await lab.mine("/mcp", x_user_auth_token=token(), x_forwarded_for="198.51.100.7")
    assert elsewhere.status_code == 401, "by a proxy there is nobody without a credential"


@shows("BEHALF")
async def test_two_people_in_one_request_are_refused_and_one_twice_is_not(lab: Lab) -> None:
    for own in (await lab.key("bob"), await lab.key("bob", agent="*"), token("bob")):
        other = await lab.mine(authorization=f"Bearer {own}", x_user_auth_token=token("ann"))
        assert other.status_code == 403
        same = await lab.mine(authorization=f"Bearer {own}", x_user_auth_token=token("bob"))
        assert same.json()["result"]["structuredContent"] == {"user_id": "bob"}


@shows("BEHALF")
async def test_a_token_that_does_not_hold_is_refused_everywhere(lab: Lab) -> None:
    platform = f"Bearer {await lab.key(agent='*')}"
    for wrong in forged():
        for answer in (
            await lab.mine(authorization=f"Bearer {wrong}"),
            await lab.mine(x_user_auth_token=wrong),
            await lab.mine(authorization=platform, x_user_auth_token=wrong),
            await lab.web.get("/oauth/userinfo", headers={"authorization": f"Bearer {wrong}"}),
            await lab.web.get("/api/user/api-keys", headers={"authorization": f"Bearer {wrong}"}),
            await lab.issue(wrong),
        ):
            assert answer.status_code == 401, wrong
    nobody = await lab.mine(x_user_auth_token=token(sub="app", azp="app"))
    assert nobody.status_code == 401
    assert "names no person" in nobody.json()["error_description"]


@pytest.mark.parametrize(
    ("client", "person", "together"),
    [
        (None, None, None),
        ({"tasks.read"}, None, {"tasks.read"}),
        (None, {"tasks.read"}, {"tasks.read"}),
        ({"tasks.read", "tasks.write"}, {"tasks.read", "memories.read"}, {"tasks.read"}),
        ({"admin"}, {"tasks.read"}, {"tasks.read"}),
        ({"admin"}, {"admin", "tools:call"}, {"admin"}),
        ({"tools:call"}, {"admin"}, set[str]()),
    ],
)
def test_what_two_credentials_allow_together_is_what_each_allows(
    client: set[str] | None, person: set[str] | None, together: set[str] | None
) -> None:
    platform = Credential("key:1", "*", scopes=None if client is None else frozenset(client))
    ann = Credential("token:i", "an-app", "ann", None if person is None else frozenset(person))
    found = credential_on_behalf(platform, ann)
    assert (found.id, found.agent_id, found.user_id) == ("token:i", "*", "ann")
    assert found.scopes == together
    assert credential_on_behalf(None, ann).agent_id is None, "which app it was issued to is no agent of ours"
    for scope in rights.SCOPES:
        each = rights.allows_scope(platform.scopes, scope) and rights.allows_scope(ann.scopes, scope)
        assert rights.allows_scope(found.scopes, scope) == each


async def test_what_goes_on_to_tool_servers_is_the_persons_token_and_never_a_key_of_ours(lab: Lab) -> None:
    ours = (await lab.trade(by_code(await lab.code(token())))).json()["access_token"]
    passed_on: list[bool] = []
    for sent in (token(), await lab.key("ann"), ours):
        request_context = RequestContext("1", {PERSON_TOKEN_HEADER: sent})
        await act_for_person(lab.app.identity, request_context, sent, local=True)
        passed_on.append(request_context.token is not None)
        assert sent not in repr(request_context)
    assert passed_on == [True, False, False]


# Tokens that clients of the older era leave in their session: sealed, shared by replicas, checked each time


PEOPLE = 20
OPENING = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}


async def begin(lab: Lab, endpoint: str = MEMORY_ENDPOINT, method: str = "initialize") -> str | None:
    """Open a session; gives its id if there is one."""
    call = {"jsonrpc": "2.0", "id": 1, "method": method, "params": OPENING if method == "initialize" else {}}
    answer = await lab.web.post(endpoint, json=call, headers={"mcp-protocol-version": "2025-06-18"})
    assert answer.status_code == 200, answer.text
    return answer.headers.get("mcp-session-id")


async def opened_session(lab: Lab) -> str:
    session_id = await begin(lab)
    assert session_id is not None
    return session_id


def person(answer: httpx2.Response) -> str | None:
    """The person that the server identified as the caller."""
    return answer.json()["result"]["structuredContent"]["user_id"] if answer.status_code == 200 else None


@shows("BEHALF")
async def test_a_token_left_at_one_replica_counts_at_every_other(settings: Settings) -> None:
    async with opened(with_issuer(settings)) as here, opened(with_issuer(settings)) as there:
        ours, theirs = await opened_session(here), await opened_session(there)
        assert len({ours, theirs}) == 2
        await here.app.identity.sessions.remember(ours, token("ann"))
        await there.app.identity.sessions.remember(theirs, token("bob"))
        for lab in (here, there):
            assert person(await lab.mine(mcp_session_id=ours)) == "ann"
            assert person(await lab.mine(mcp_session_id=theirs)) == "bob"
            assert (await lab.mine()).status_code == 401
            assert (await lab.mine(mcp_session_id="0" * 64)).status_code == 401
        gone = await there.web.delete(MEMORY_ENDPOINT, headers={"mcp-session-id": ours})
        assert (gone.status_code, gone.content) == (204, b"")
        for lab in (here, there):
            answer = await lab.mine(mcp_session_id=ours)
            assert (answer.status_code, answer.json()["error"]["code"]) == (401, -32010)
            assert person(await lab.mine(mcp_session_id=theirs)) == "bob"


@shows("BEHALF")
async def test_many_sessions_at_once_get_nobody_elses_answer(lab: Lab) -> None:
    heard: dict[str, set[str | None]] = {}

    async def one(name: str) -> None:
        session_id = await opened_session(lab)
        await lab.app.identity.sessions.remember(session_id, token(name))
        heard[name] = {person(await lab.mine(mcp_session_id=session_id)) for _ in range(5)}

    async with anyio.create_task_group() as group:
        for number in range(PEOPLE):
            group.start_soon(one, f"user-{number}")
    assert heard == {f"user-{number}": {f"user-{number}"} for number in range(PEOPLE)}


async def test_only_the_memory_endpoint_opens_sessions_and_only_in_the_older_era(lab: Lab) -> None:
    assert await begin(lab, "/mcp") is None
    assert await begin(lab, method="ping") is None
    session_id = await opened_session(lab)
    await lab.app.identity.sessions.remember(session_id, token())
    at_mcp = await lab.mine("/mcp", mcp_session_id=session_id)
    assert "user_id" not in at_mcp.text, "elsewhere it says nothing"
    assert (await lab.web.delete("/mcp", headers={"mcp-session-id": session_id})).status_code == 405
    assert (await lab.web.delete(MEMORY_ENDPOINT)).status_code == 400
    assert (await lab.web.get(MEMORY_ENDPOINT, headers={"mcp-session-id": session_id})).status_code == 405


@shows("BEHALF")
async def test_what_is_kept_cannot_be_read_without_the_sessions_id(lab: Lab) -> None:
    session_id, shown = await opened_session(lab), token()
    await lab.app.identity.sessions.remember(session_id, shown)
    async with lab.app.database.read_transaction() as connection:
        [row] = (await connection.execute(select(mcp_sessions))).all()
    kept = row.id_sha256.hex() + row.sealed
    assert not any(part in kept for part in (session_id, shown, *shown.split(".")))
    other = await opened_session(lab)
    async with lab.app.database.transaction() as connection:
        await connection.execute(update(mcp_sessions).values(id_sha256=bytes.fromhex("00" * 32)))
    assert await lab.app.identity.sessions.recall(session_id) is None
    assert await lab.app.identity.sessions.recall(other) is None


@shows("BEHALF")
async def test_a_session_is_no_proof_of_its_own(lab: Lab) -> None:
    session_id = await opened_session(lab)
    await lab.app.identity.sessions.remember(session_id, token("ann"))
    stranger = await lab.mine(mcp_session_id=session_id, authorization=f"Bearer {await lab.key(agent='clerk')}")
    assert stranger.status_code == 403, "the client must be one that may name people"
    passed_on = await lab.mine(mcp_session_id=session_id, x_forwarded_for="198.51.100.7")
    assert passed_on.status_code == 401
    platform = await lab.mine(mcp_session_id=session_id, authorization=f"Bearer {await lab.key(agent='*')}")
    assert person(platform) == "ann"
    own = await lab.mine(mcp_session_id=session_id, authorization=f"Bearer {await lab.key('bob')}")
    assert person(own) == "bob", "who shows who they are is not somebody else"
    sent = await lab.mine(mcp_session_id=session_id, x_user_auth_token=token("bob"))
    assert person(sent) == "bob", "what comes with the request goes before what was left"


async def test_a_token_that_no_longer_holds_leaves_the_session_to_a_new_one(lab: Lab) -> None:
    session_id = await opened_session(lab)
    key, text = await lab.app.identity.create_key(name="", agent_id=None, user_id="ann")
    await lab.app.identity.sessions.remember(session_id, text)
    assert person(await lab.mine(mcp_session_id=session_id)) == "ann"
    await lab.app.identity.revoke_key(key.id)
    assert (await lab.mine(mcp_session_id=session_id)).status_code == 401, "it is checked each time"
    assert await begin(lab) is not None
    await lab.app.identity.sessions.remember(session_id, token("ann"))
    assert person(await lab.mine(mcp_session_id=session_id)) == "ann"


async def test_what_is_left_must_hold_and_ends_with_the_token_or_after_a_day(lab: Lab) -> None:
    sessions, session_id = lab.app.identity.sessions, await opened_session(lab)
    for wrong in (token(exp=1), token(aud="https://elsewhere.example"), "zm_\ud800", token(sub="app", azp="app")):
        with pytest.raises(Unauthenticated):
            await sessions.remember(session_id, wrong)
    for nowhere in (None, "", "not-an-id"):
        with pytest.raises(Invalid):
            await sessions.remember(nowhere, token())
        assert await sessions.recall(nowhere) is None
    now = datetime.now(UTC)
    for exp, most in ((int(now.timestamp()) + 600, timedelta(minutes=11)), (10**12, timedelta(hours=25))):
        await sessions.remember(session_id, token(exp=exp))
        async with lab.app.database.read_transaction() as connection:
            ends = (await connection.execute(select(mcp_sessions.c.expires_at))).scalar_one()
        assert now + most - timedelta(hours=2) < ends < now + most
    async with lab.app.database.transaction() as connection:
        await connection.execute(update(mcp_sessions).values(expires_at=now))
    assert await sessions.recall(session_id) is None
    await sessions.prune()
    async with lab.app.database.read_transaction() as connection:
        assert (await connection.execute(select(mcp_sessions))).all() == []


async def test_a_modern_client_is_given_no_session(lab: Lab) -> None:
    headers = {"mcp-protocol-version": "2026-07-28", "mcp-method": "initialize"}
    call = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": OPENING})
    answer = await lab.web.post(MEMORY_ENDPOINT, content=call, headers={**headers, "content-type": "application/json"})
    assert "mcp-session-id" not in answer.headers


# Issuers with malformed documents or tokens: each call is refused in plain words, and nothing breaks


RESOURCE = "http://127.0.0.1:3020/mcp"
DEEP = "[" * 100_000
GOOD = "good"
SIGNING = Issuer("")
RSA: Mapping[str, Any] = SIGNING.keys["RS256"].as_dict(private=False)
EC: Mapping[str, Any] = SIGNING.keys["ES256"].as_dict(private=False)
# Each of these documents gives no key.
KEYLESS: Mapping[str, Any] = {
    "strings": {"keys": ["one", "two"]},
    "numbers": {"keys": [1, 2.5, None, True]},
    "lists": {"keys": [[], [[]]]},
    "no-list": {"keys": 7},
    "a-string": {"keys": "abc"},
    "an-object": {"keys": {"kty": "RSA"}},
    "null": {"keys": None},
    "missing": {},
    "kty-a-list": {"keys": [{**RSA, "kty": ["RSA"]}]},
    "kty-an-object": {"keys": [{**RSA, "kty": {}}]},
    "n-a-number": {"keys": [{**RSA, "n": 5}]},
    "n-deep": {"keys": [{**RSA, "n": [[]]}]},
    "n-not-base64": {"keys": [{**RSA, "n": "\u00e9\ud800"}]},
    "n-huge": {"keys": [{**RSA, "n": "A" * 300_000 + "B"}]},
    "e-even": {"keys": [{**RSA, "e": "AA"}]},
    "no-such-curve": {"keys": [{**EC, "crv": ["P-256"]}]},
    "off-the-curve": {"keys": [{**EC, "x": EC["y"]}]},
    "symmetric": {"keys": [{"kty": "oct", "k": "c2VjcmV0", "kid": RSA["kid"]}]},
    "too-many": {"keys": [1] * 100_000 + [RSA]},
    "private-oddly": {"keys": [{**RSA, "d": 7}]},
}
RAW: Mapping[str, str] = {
    "deep": f'{{"keys": {DEEP}',
    "deep-key": '{"keys": [' + '{"a":' * 100_000,
    "endless-number": '{"keys": [' + "9" * 5000 + "]}",
    "not-json": "<html>",
    "no-object": "[]",
    "not-utf-8": "\xff\xfe",
    "nothing": "",
}
# The values of a metadata document in place of the keys' address.
PLACES: Mapping[str, Any] = {
    "place-a-list": ["http://127.0.0.1/"],
    "place-a-number": 7,
    "place-broken": "http://[",
    "place-with-a-null": "http://127.0.0.1/\0",
    "place-a-file": "file:///etc/hostname",
    "place-empty": "",
    "place-without-port": "http://127.0.0.1:99999999/",
    "place-deep": None,
}
# Beside the unreadable key there is a readable one.
MIXED: Mapping[str, Any] = {
    "mixed": {"keys": ["one", 2, None, {"kty": "RSA"}, {**EC, "x": 1}, {**RSA, "kid": "other", "use": ["sig"]}, RSA]},
    "odd-ids": {"keys": [{**EC, "kid": 7}, {**EC, "kid": ["a"]}, {**EC, "kid": {}}, RSA]},
    "twice": {"keys": [RSA, RSA]},
    "many": {"keys": [*[1] * 400, RSA]},
}


def _application(url: str) -> Starlette:
    async def described(request: Request) -> Response:
        name = request.path_params["name"]
        place = PLACES.get(name, f"{url}/{name}/jwks")
        text = f'{{"jwks_uri": {DEEP}' if name == "place-deep" else json.dumps({"jwks_uri": place})
        return Response(text, media_type="application/json")

    async def keys(request: Request) -> Response:
        name = request.path_params["name"]
        said = RAW[name] if name in RAW else json.dumps({**KEYLESS, **MIXED}.get(name, {"keys": [RSA, EC]}))
        return Response(said.encode("latin-1", "replace"), media_type="application/json")

    return Starlette(routes=[Route("/{name}/.well-known/openid-configuration", described), Route("/{name}/jwks", keys)])


@pytest.fixture(scope="module")
def issuers() -> Generator[str]:
    listener = listen()
    with serve(_application(address_of(listener)), listener) as url:
        yield url


@pytest.fixture(scope="module")
async def asgi(tmp_path_factory: pytest.TempPathFactory, ready: Ready, issuers: str) -> AsyncGenerator[ASGIApp]:
    trusted = [
        {"issuer": f"{issuers}/{name}", "prefix": f"{name}-"} for name in (*KEYLESS, *RAW, *PLACES, *MIXED, GOOD)
    ]
    trusted.append({"issuer": f"{issuers}/entra", "claims": "entra", "prefix": "entra-"})
    data = ready.in_folder(tmp_path_factory.mktemp("odd") / "data")
    async with open_app(settings_with(FRONTDESK_DATA=data, FRONTDESK_ISSUERS=trusted)) as app:
        yield build_application(app)


async def shown(asgi: ASGIApp, token: str) -> Answer:
    said, body = call(MODERN)
    return await send(asgi, said | {"authorization": f"Bearer {token}"}, body)


def signed_token(issuer: str, **said: Any) -> str:
    """A token with a correct signature, whatever its contents."""
    key = SIGNING.keys["RS256"]
    claims = SIGNING.claims(**({"sub": "alice", "aud": RESOURCE, "iss": issuer} | said))
    return jws.serialize_compact({"alg": "RS256", "typ": "at+jwt", "kid": key.kid}, json.dumps(claims).encode(), key)


def _part(text: str) -> str:
    return base64.urlsafe_b64encode(text.encode()).rstrip(b"=").decode()


@shows("KEPT-11")
@pytest.mark.parametrize("name", [*KEYLESS, *RAW, *PLACES])
async def test_an_issuer_without_a_usable_key_is_said_to_be_away(asgi: ASGIApp, issuers: str, name: str) -> None:
    answer = await shown(asgi, signed_token(f"{issuers}/{name}"))

    assert (answer.status, answer.json["error"]) == (503, "unavailable")


@shows("KEPT-11")
@pytest.mark.parametrize("name", MIXED)
async def test_a_key_that_cannot_be_read_does_not_take_the_others_along(asgi: ASGIApp, issuers: str, name: str) -> None:
    assert (await shown(asgi, signed_token(f"{issuers}/{name}"))).structured["user_id"] == f"{name}-alice"


HEADERS: Mapping[str, str] = {
    "alg-a-list": '{"alg":["RS256"]}',
    "alg-an-object": '{"alg":{"a":1}}',
    "alg-null": '{"alg":null}',
    "no-alg": "{}",
    "kid-an-object": '{"alg":"RS256","kid":{}}',
    "kid-a-list": '{"alg":"RS256","kid":["a"]}',
    "kid-a-number": '{"alg":"RS256","kid":7}',
    "b64": '{"alg":"RS256","b64":false,"crit":["b64"]}',
    "zip": '{"alg":"RS256","zip":7}',
    "typ-a-list": '{"alg":"RS256","typ":[]}',
    "jwk-a-string": '{"alg":"RS256","jwk":"x","x5c":7,"jku":[]}',
    "encrypted": '{"alg":"RSA-OAEP","enc":"A256GCM"}',
}


@shows("KEPT-11")
@pytest.mark.parametrize("header", HEADERS)
async def test_a_token_with_an_odd_header_is_refused(asgi: ASGIApp, issuers: str, header: str) -> None:
    _, claims, signature = signed_token(f"{issuers}/{GOOD}").split(".")

    assert (await shown(asgi, f"{_part(HEADERS[header])}.{claims}.{signature}")).status == 401


@shows("KEPT-11")
async def test_however_deep_a_token_is_nested_it_is_refused(asgi: ASGIApp, issuers: str) -> None:
    header, claims, signature = signed_token(f"{issuers}/{GOOD}").split(".")
    for depth in range(700, 1000, 3):
        nested = "[" * depth + "]" * depth
        said = _part(f'{{"alg":"RS256","x":{nested}}}'), _part(f'{{"iss":{nested}}}')
        assert (await shown(asgi, f"{said[0]}.{claims}.{signature}")).status == 401
        assert (await shown(asgi, f"{header}.{said[1]}.{signature}")).status == 401


@shows("KEPT-11")
@pytest.mark.parametrize(
    "claims",
    [
        '{"iss":["a"]}',
        '{"iss":{"a":1}}',
        '{"iss":7}',
        '{"iss":"GOOD","exp":1e999}',
        f'{{"iss":"GOOD","exp":{"9" * 4000}}}',
    ],
)
async def test_a_token_with_odd_claims_and_no_proof_is_refused(asgi: ASGIApp, issuers: str, claims: str) -> None:
    header, _, signature = signed_token(f"{issuers}/{GOOD}").split(".")

    said = _part(claims.replace("GOOD", f"{issuers}/{GOOD}"))
    assert (await shown(asgi, f"{header}.{said}.{signature}")).status == 401


ODD: tuple[Any, ...] = (
    None,
    True,
    7,
    -1,
    1.5,
    10**400,
    float("inf"),
    "",
    "é",
    "\ud800",
    "\0",
    [],
    [7],
    [None],
    {},
    {"a": {}},
)
NAMES = ("exp", "nbf", "iat", "aud", "sub", "azp", "client_id", "act", "scope", "scp", "roles", "jti")
ENTRA = ("exp", "aud", "sub", "oid", "tid", "appid", "azp", "idtyp", "scp", "roles", "ver", "act")
SUPABASE = ("user_metadata", "app_metadata", "email", "name", "role", "aal", "amr", "session_id", "is_anonymous")


@shows("KEPT-11")
@pytest.mark.parametrize(("issuer", "names"), [(GOOD, NAMES), (GOOD, SUPABASE), ("entra", ENTRA)])
async def test_a_signed_token_with_claims_of_odd_kinds_is_taken_or_refused(
    asgi: ASGIApp, issuers: str, issuer: str, names: tuple[str, ...]
) -> None:
    for name in names:
        for odd in ODD:
            said = signed_token(f"{issuers}/{issuer}", **({"oid": "alice"} | {name: odd}))
            assert (await shown(asgi, said)).status in (200, 400, 401, 403), (name, odd)
