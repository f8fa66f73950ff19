"""Tests attacks on credentials over HTTP that the scanners do not try, and the valid credentials."""

import base64
import hashlib
import hmac
import json
import re
import secrets
import threading
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime

import httpx2
import pytest
from joserfc.jwk import RSAKey

from frontdesk.errors import Unauthenticated
from frontdesk.identity import keys
from frontdesk.identity.tokens import REFETCH_SECONDS, TokenVerifier
from frontdesk.settings import Issuer as Trusted
from tests.requirements import shows
from tests.scanners.conftest import Installation, send_call, who
from tests.support.issuer import open_issuer

STRANGERS = 20
RESOURCE = "http://127.0.0.1:3020/mcp"
# Longer than a server may accept a revoked key.
NOTICE_SECONDS = 40
POLL_SECONDS = 0.2

Forge = Callable[[Installation], str]


def unsigned(installation: Installation) -> str:
    return _compact({"alg": "none", "typ": "at+jwt"}, _claims(installation), b"")


def unsigned_under_a_known_key(installation: Installation) -> str:
    return _compact({"alg": "none", "kid": installation.issuer.keys["RS256"].kid}, _claims(installation), b"")


def signed_with_the_public_key_as_a_secret(installation: Installation) -> str:
    key = installation.issuer.keys["RS256"]
    header = {"alg": "HS256", "typ": "at+jwt", "kid": key.kid}
    body = _compact(header, _claims(installation), b"").rpartition(".")[0]
    signature = hmac.digest(key.as_pem(private=False), body.encode(), hashlib.sha256)
    return f"{body}.{_base64(signature)}"


def with_its_claims_swapped(installation: Installation) -> str:
    header, _, signature = installation.token().split(".")
    return f"{header}.{_base64(json.dumps(_claims(installation, sub='mallory')).encode())}.{signature}"


def signed_with_a_key_it_brings_along(installation: Installation) -> str:
    own = RSAKey.generate_key(2048)
    return installation.token(key=own, header={"jwk": own.as_dict(private=False)})


def for_another_resource(installation: Installation) -> str:
    return installation.token(aud="https://elsewhere.example/mcp")


def for_an_address_that_only_begins_like_ours(installation: Installation) -> str:
    return installation.token(aud=f"{installation.desk.mcp}.elsewhere.example")


def for_nobody_in_particular(installation: Installation) -> str:
    return installation.token(aud=[])


def expired(installation: Installation) -> str:
    return installation.token(exp=int(time.time()) - 120)


def without_an_end(installation: Installation) -> str:
    return installation.token(exp=None)


def not_yet_valid(installation: Installation) -> str:
    return installation.token(nbf=int(time.time()) + 600)


def under_an_unknown_key_id(installation: Installation) -> str:
    return installation.token(kid="nobody-knows")


def from_an_unknown_issuer(installation: Installation) -> str:
    return installation.token(iss="https://elsewhere.example")


def under_an_algorithm_that_is_no_name(installation: Installation) -> str:
    return _compact({"alg": ["RS256"], "kid": installation.issuer.keys["RS256"].kid}, _claims(installation), b"x")


def with_critical_fields_that_are_no_list(installation: Installation) -> str:
    return _compact(
        {"alg": "RS256", "kid": installation.issuer.keys["RS256"].kid, "crit": 1}, _claims(installation), b"x"
    )


FORGERIES: tuple[Forge, ...] = (
    unsigned,
    unsigned_under_a_known_key,
    signed_with_the_public_key_as_a_secret,
    with_its_claims_swapped,
    signed_with_a_key_it_brings_along,
    for_another_resource,
    for_an_address_that_only_begins_like_ours,
    for_nobody_in_particular,
    expired,
    without_an_end,
    not_yet_valid,
    under_an_unknown_key_id,
    from_an_unknown_issuer,
    under_an_algorithm_that_is_no_name,
    with_critical_fields_that_are_no_list,
)


@shows("TOKEN-CHECKS")
@pytest.mark.parametrize("forge", FORGERIES, ids=lambda forge: forge.__name__)
def test_a_token_is_refused(installation: Installation, forge: Forge) -> None:
    refused(installation.send_call(forge(installation)), installation)


@shows("TOKEN-CHECKS")
@pytest.mark.parametrize("algorithm", ["RS256", "ES256"])
def test_a_token_of_the_issuer_for_this_server_says_who_is_calling(installation: Installation, algorithm: str) -> None:
    known = who(installation.send_call(installation.token(alg=algorithm)))

    assert (known["user_id"], known["verified"]) == ("alice", True)


def test_a_request_without_a_credential_is_challenged_without_an_error(installation: Installation) -> None:
    refused(send_call(installation.desk.mcp, {}), installation, shown=False)


def test_a_token_in_the_url_counts_for_nothing(installation: Installation) -> None:
    refused(send_call(f"{installation.desk.mcp}?access_token={installation.token()}", {}), installation, shown=False)


def test_a_key_gets_in_as_a_bearer_and_as_x_api_key(installation: Installation) -> None:
    key = installation.keys("create", "--agent", "reception")

    assert who(installation.send_call(key))["agent_id"] == "reception"
    assert who(send_call(installation.desk.mcp, {"x-api-key": key}))["agent_id"] == "reception"


def test_a_mistyped_key_is_refused_under_either_header(installation: Installation) -> None:
    key = installation.keys("create", "--agent", "reception")
    mistyped = key[:-1] + ("0" if key[-1] != "0" else "1")

    refused(installation.send_call(mistyped), installation)
    refused(send_call(installation.desk.mcp, {"x-api-key": mistyped}), installation)


def test_a_well_formed_key_that_nobody_handed_out_is_refused(installation: Installation) -> None:
    refused(installation.send_call(keys.generate_key()[2]), installation)


def test_a_revoked_key_stops_working_without_a_restart(installation: Installation) -> None:
    key = installation.keys("create", "--agent", "reception")
    assert installation.send_call(key).status_code == 200

    installation.keys("revoke", key.split("_")[1])

    refused(until(lambda: installation.send_call(key), status=401), installation)


@pytest.mark.anyio
async def test_a_new_key_of_the_issuer_is_picked_up_and_strangers_cannot_have_keys_fetched_at_will() -> None:
    with open_issuer() as issuer:
        tokens = TokenVerifier([Trusted(issuer=issuer.url, jwks_url=issuer.jwks_url)], frozenset({RESOURCE}), {})

        async def user_of(token: str, second: float) -> str | None:
            try:
                return (await tokens.verify(token, datetime.now(UTC), second)).user_id
            except Unauthenticated:
                return None

        before = issuer.token(sub="alice", aud=RESOURCE)
        assert await user_of(before, 0) == "alice"
        assert issuer.jwks_fetches == 1

        for _ in range(STRANGERS):
            stranger = issuer.token(sub="alice", aud=RESOURCE, kid=secrets.token_hex(8))
            assert await user_of(stranger, REFETCH_SECONDS + 1) is None
        assert issuer.jwks_fetches == 2

        issuer.rotate()
        after = issuer.token(sub="alice", aud=RESOURCE)
        assert await user_of(after, 2 * REFETCH_SECONDS) is None, "the strangers have used up this while's fetch"
        assert await user_of(after, 2 * REFETCH_SECONDS + 1) == "alice"
        assert await user_of(before, 2 * REFETCH_SECONDS + 1) is None
        assert issuer.jwks_fetches == 3
        await tokens.close()


def refused(response: httpx2.Response, installation: Installation, *, shown: bool = True) -> None:
    """Check a 401: it says where to get a token and for which scopes, and no more about the error than it must."""
    assert response.status_code == 401, response.text
    scheme, _, rest = response.headers["www-authenticate"].partition(" ")
    said = dict(re.findall(r'(\w+)="([^"]*)"', rest))
    assert scheme == "Bearer"
    assert said["resource_metadata"] == f"{installation.desk.url}/.well-known/oauth-protected-resource/mcp"
    assert said["scope"]
    assert said.get("error") == ("invalid_token" if shown else None)


def until(ask: Callable[[], httpx2.Response], *, status: int) -> httpx2.Response:
    """The first answer with this status, within a limited number of requests."""
    pause = threading.Event()
    for _ in range(int(NOTICE_SECONDS / POLL_SECONDS)):
        answer = ask()
        if answer.status_code == status:
            return answer
        pause.wait(POLL_SECONDS)
    raise AssertionError(f"no answer with status {status} in {NOTICE_SECONDS} s")


def _claims(installation: Installation, sub: str = "alice") -> dict[str, object]:
    return installation.issuer.claims(sub=sub, aud=installation.desk.mcp)


def _compact(header: Mapping[str, object], claims: Mapping[str, object], signature: bytes) -> str:
    return ".".join(map(_base64, (json.dumps(header).encode(), json.dumps(claims).encode(), signature)))


def _base64(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()
