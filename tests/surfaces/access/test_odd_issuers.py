"""Issuers whose documents or tokens are malformed: each call is refused in plain words, and nothing breaks."""

import base64
import json
from collections.abc import AsyncGenerator, Generator, Mapping
from typing import Any

import pytest
from joserfc import jws
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from frontdesk.app import open_app
from frontdesk.interfaces.http.application import build_application
from frontdesk.interfaces.http.context import ASGIApp
from tests.conftest import settings_with
from tests.requirements import shows
from tests.support.issuer import Issuer
from tests.support.ready import Ready
from tests.support.serving import address_of, listen, serve
from tests.support.wire import MODERN, Answer, call, send

pytestmark = pytest.mark.anyio
RESOURCE = "http://127.0.0.1:3020/mcp"
DEEP = "[" * 100_000
GOOD = "good"
SIGNING = Issuer("")
RSA: Mapping[str, Any] = SIGNING.keys["RS256"].as_dict(private=False)
EC: Mapping[str, Any] = SIGNING.keys["ES256"].as_dict(private=False)
# Whatever one of these says, no key can be had from it.
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
# What a description says instead of the address of the keys.
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
# Beside what cannot be read stands a key that can.
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


def token(issuer: str, **said: Any) -> str:
    """A token that is signed as it should be, whatever it says."""
    key = SIGNING.keys["RS256"]
    claims = SIGNING.claims(**({"sub": "alice", "aud": RESOURCE, "iss": issuer} | said))
    return jws.serialize_compact({"alg": "RS256", "typ": "at+jwt", "kid": key.kid}, json.dumps(claims).encode(), key)


def _part(text: str) -> str:
    return base64.urlsafe_b64encode(text.encode()).rstrip(b"=").decode()


@shows("KEPT-11")
@pytest.mark.parametrize("name", [*KEYLESS, *RAW, *PLACES])
async def test_an_issuer_without_a_usable_key_is_said_to_be_away(asgi: ASGIApp, issuers: str, name: str) -> None:
    answer = await shown(asgi, token(f"{issuers}/{name}"))

    assert (answer.status, answer.json["error"]) == (503, "unavailable")


@shows("KEPT-11")
@pytest.mark.parametrize("name", MIXED)
async def test_a_key_that_cannot_be_read_does_not_take_the_others_along(asgi: ASGIApp, issuers: str, name: str) -> None:
    assert (await shown(asgi, token(f"{issuers}/{name}"))).structured["user_id"] == f"{name}-alice"


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
    _, claims, signature = token(f"{issuers}/{GOOD}").split(".")

    assert (await shown(asgi, f"{_part(HEADERS[header])}.{claims}.{signature}")).status == 401


@shows("KEPT-11")
async def test_however_deep_a_token_is_nested_it_is_refused(asgi: ASGIApp, issuers: str) -> None:
    header, claims, signature = token(f"{issuers}/{GOOD}").split(".")
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
    header, _, signature = token(f"{issuers}/{GOOD}").split(".")

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
            said = token(f"{issuers}/{issuer}", **({"oid": "alice"} | {name: odd}))
            assert (await shown(asgi, said)).status in (200, 400, 401, 403), (name, odd)
