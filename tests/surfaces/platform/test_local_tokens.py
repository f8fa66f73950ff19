"""The local platform hands out tokens, by the grants that agents use, and takes them at its own endpoints."""

import base64
from collections.abc import Iterator, Mapping
from typing import Any

import httpx2
import pytest

from frontdesk.agent365.environment import SHARED_APP_ID
from frontdesk.identity.tokens import unverified_claims
from tests.requirements import shows
from tests.support.platform import LocalPlatform, local_platform

MANIFEST = {"mcpServers": [{"mcpServerName": "Mail"}, {"mcpServerName": "Own", "audience": "api://own"}]}
SHARED = f"{SHARED_APP_ID}/.default"
ON_BEHALF_OF = "urn:ietf:params:oauth:grant-type:jwt-bearer"
EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange"


@pytest.fixture(scope="module")
def platform() -> Iterator[LocalPlatform]:
    with local_platform(MANIFEST, tokens="signed") as running:
        yield running


def ask(platform: LocalPlatform, path: str = "/oauth2/v2.0/token", login: str = "", **form: str) -> httpx2.Response:
    headers = {"authorization": f"Basic {base64.b64encode(login.encode()).decode()}"} if login else {}
    return platform.http.post(f"{platform.url}{path}", data=form, headers=headers)


def granted(platform: LocalPlatform, **form: str) -> tuple[str, Mapping[str, Any]]:
    found = ask(platform, **form)
    assert found.status_code == 200, found.text
    assert found.headers["cache-control"] == "no-store"
    told = found.json()
    assert (told["token_type"], told["expires_in"]) == ("Bearer", 3600)
    return told["access_token"], unverified_claims(told["access_token"])


@shows("A365-LOCAL")
def test_an_application_gets_a_token_that_is_good_for_what_it_asked(platform: LocalPlatform) -> None:
    token, claims = granted(platform, grant_type="client_credentials", client_id="app-1", scope=SHARED)
    assert (claims["aud"], claims["appid"], claims["azp"]) == (SHARED_APP_ID, "app-1", "app-1")
    assert claims["exp"] - claims["iat"] == 3600
    assert "xms_par_app_azp" not in claims
    said = {"authorization": f"Bearer {token}"}
    assert platform.discover(said).status_code == 200
    assert platform.rpc("Mail", "tools/list", headers=said).status_code == 200
    assert platform.rpc("Own", "tools/list", headers=said).json()["check"] == "audience"


def test_a_scope_of_a_servers_own_audience_gives_a_token_for_it(platform: LocalPlatform) -> None:
    token, claims = granted(platform, grant_type="client_credentials", client_id="a", scope="api://own/Mail.Read")
    assert (claims["aud"], claims["scp"]) == ("api://own", "Mail.Read")
    assert platform.rpc("Own", "tools/list", headers={"authorization": f"Bearer {token}"}).status_code == 200


def test_a_token_on_behalf_of_somebody_speaks_of_them(platform: LocalPlatform) -> None:
    theirs = platform.token("app-1", sub="ann", oid="ann-1", xms_par_app_azp="blueprint-1")
    form = {"grant_type": ON_BEHALF_OF, "requested_token_use": "on_behalf_of", "client_id": "a", "scope": SHARED}
    _, claims = granted(platform, assertion=theirs, **form)
    assert (claims["sub"], claims["oid"], claims["xms_par_app_azp"]) == ("ann", "ann-1", "blueprint-1")
    assert claims["appid"] == "a"
    _, claims = granted(platform, assertion=theirs, xms_par_app_azp="blueprint-2", **form)
    assert claims["xms_par_app_azp"] == "blueprint-2"


def test_a_token_is_exchanged_for_one_of_another_audience(platform: LocalPlatform) -> None:
    theirs = platform.token("app-1", sub="ann")
    form = {"grant_type": EXCHANGE, "client_id": "a", "subject_token": theirs}
    _, claims = granted(platform, audience="api://own", **form)
    assert (claims["aud"], claims["sub"]) == ("api://own", "ann")
    _, claims = granted(platform, scope=SHARED, **form)
    assert claims["aud"] == SHARED_APP_ID


def test_a_tenant_and_a_basic_login_are_taken_too(platform: LocalPlatform) -> None:
    found = ask(platform, "/t-1/oauth2/v2.0/token", "app%2D2:hush", grant_type="client_credentials", scope=SHARED)
    assert unverified_claims(found.json()["access_token"])["appid"] == "app-2"
    assert "hush" not in str(platform.requests())


@pytest.mark.parametrize(
    ("form", "fault"),
    [
        ({}, "unsupported_grant_type"),
        ({"grant_type": "password"}, "unsupported_grant_type"),
        ({"grant_type": "client_credentials", "scope": SHARED}, "invalid_client"),
        ({"grant_type": "client_credentials", "client_id": "a" * 501, "scope": SHARED}, "invalid_client"),
        ({"grant_type": "client_credentials", "client_id": "a"}, "invalid_scope"),
        ({"grant_type": "client_credentials", "client_id": "a", "scope": ".default"}, "invalid_scope"),
        ({"grant_type": "client_credentials", "client_id": "a", "scope": "x/"}, "invalid_scope"),
        ({"grant_type": "client_credentials", "client_id": "a", "scope": "x/.default y/z"}, "invalid_scope"),
        ({"grant_type": ON_BEHALF_OF, "client_id": "a", "scope": SHARED, "assertion": "x"}, "invalid_request"),
        ({"grant_type": EXCHANGE, "client_id": "a", "scope": SHARED}, "invalid_request"),
        ({"grant_type": EXCHANGE, "client_id": "a", "scope": SHARED, "subject_token": "x"}, "invalid_grant"),
    ],
)
def test_what_cannot_be_granted_is_refused_in_oauths_words(
    platform: LocalPlatform, form: dict[str, str], fault: str
) -> None:
    found = ask(platform, **form)
    assert (found.status_code, found.json()["error"]) == (400, fault)
    assert found.json()["error_description"]


def test_an_expired_assertion_is_refused(platform: LocalPlatform) -> None:
    form = {"grant_type": EXCHANGE, "client_id": "a", "scope": SHARED}
    assert ask(platform, subject_token=platform.token(exp=1), **form).json()["error"] == "invalid_grant"


@pytest.mark.parametrize("body", [b"\xff\xfe", b"&".join(b"a=1" for _ in range(200)), b'{"grant_type": 1}'])
def test_what_is_no_form_is_refused(platform: LocalPlatform, body: bytes) -> None:
    assert platform.http.post(f"{platform.url}/oauth2/v2.0/token", content=body).status_code == 400
