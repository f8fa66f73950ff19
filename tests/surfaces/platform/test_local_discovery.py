"""The local platform names the servers of its manifest, to those whose token is good for it."""

import base64
import json
from collections.abc import Iterator
from typing import Any

import pytest

from frontdesk.agent365.environment import SHARED_APP_ID
from tests.requirements import shows
from tests.support.platform import LocalPlatform, local_platform

MAIL = {"mcpServerName": "Mail", "publisher": "Contoso", "tools": [{"name": "send", "description": "Sends."}]}
CALENDAR = {"mcpServerName": "Calendar", "mcpServerUniqueName": "calendar-1", "url": "https://calendar.example/mcp"}
OWN = {"mcpServerName": "Own", "audience": " API://Own-App "}
MANIFEST = {"mcpServers": [MAIL, CALENDAR, OWN, {"mcpServerName": "Closed", "enabled": False}]}


@pytest.fixture(scope="module")
def platform() -> Iterator[LocalPlatform]:
    with local_platform(MANIFEST) as running:
        yield running


def part(value: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()


def unsigned(**claims: object) -> dict[str, str]:
    said = {"aud": SHARED_APP_ID, "exp": 4_000_000_000, **claims}
    return {"authorization": f"Bearer {part({'alg': 'none'})}.{part(said)}."}


@shows("A365-LOCAL")
def test_servers_are_given_out_as_they_were_written_without_what_is_for_the_stand_in(platform: LocalPlatform) -> None:
    found = platform.discover()
    assert found.status_code == 200
    assert found.json() == {"mcpServers": [{key: MAIL[key] for key in MAIL if key != "tools"}, CALENDAR, OWN]}


@pytest.mark.parametrize("app_id", ["an app", "ä/../x", "a%2fb", "x\n", "…"])
def test_any_app_id_can_ask(platform: LocalPlatform, app_id: str) -> None:
    assert platform.discover(app_id=app_id).status_code == 200


def test_an_empty_app_id_cannot(platform: LocalPlatform) -> None:
    assert platform.discover(app_id="").status_code == 404


@pytest.mark.parametrize(
    "aud", [SHARED_APP_ID, f"api://{SHARED_APP_ID}", f" {SHARED_APP_ID.upper()} ", [SHARED_APP_ID]]
)
def test_the_shared_audience_may_be_spelt_as_the_platform_takes_it(platform: LocalPlatform, aud: object) -> None:
    assert platform.discover(unsigned(aud=aud)).status_code == 200


@pytest.mark.parametrize(
    ("headers", "check", "why"),
    [
        ({}, "none", f"made for the audience {SHARED_APP_ID}"),
        ({"authorization": ""}, "none", "no token"),
        ({"authorization": "Basic YTpi"}, "scheme", "the word Bearer"),
        ({"authorization": "Bearer"}, "scheme", "the word Bearer"),
        ({"authorization": "Bearer Bearer x.y.z"}, "scheme", "twice"),
        ({"authorization": "Bearer garbage"}, "form", "no JWT"),
        ({"authorization": "Bearer a.b.c"}, "form", "no JWT"),
        ({"authorization": f"Bearer {part({})}.{part([1])}.x"}, "form", "no JWT"),
        (unsigned(exp=1_700_000_000), "expiry", "expired at 2023-11-14T22:13:20"),
        (unsigned(exp=-(10**400)), "expiry", "expired at -1000"),
        (unsigned(exp=float("nan")), "expiry", "expired at nan"),
        (unsigned(exp=None), "expiry", "exp must be a number"),
        (unsigned(exp="tomorrow"), "expiry", "exp must be a number"),
        (unsigned(exp=True), "expiry", "exp must be a number"),
        (unsigned(aud="other"), "audience", f"is for the audience other; expected is {SHARED_APP_ID}"),
        (unsigned(aud=None), "audience", "is for the audience none"),
        (unsigned(aud=["a", 5]), "audience", "is for the audience a, 5"),
        (unsigned(aud='"\r\nx: \ud800'), "audience", "is for the audience"),
        (unsigned(aud=f"{SHARED_APP_ID}x"), "audience", "expected"),
    ],
)
@shows("A365-LOCAL")
def test_a_token_that_is_not_good_is_told_which_check_it_failed(
    platform: LocalPlatform, headers: dict[str, str], check: str, why: str
) -> None:
    found = platform.discover(headers)
    told: Any = found.json()
    assert (found.status_code, told["check"], told["expected"]) == (401, check, {"audience": SHARED_APP_ID})
    assert why in told["error_description"]
    assert found.headers["www-authenticate"].startswith("Bearer error=")
    token = headers.get("authorization", "").rpartition(" ")[2]
    assert not token or token == "Bearer" or token not in found.text
    assert platform.requests()[-1]["token"] == ("none" if check == "none" else told["error_description"])


def test_a_server_of_its_own_audience_takes_no_shared_token_and_others_do(platform: LocalPlatform) -> None:
    refused = platform.rpc("Own", "tools/list")
    assert (refused.status_code, refused.json()["expected"]) == (401, {"audience": "api://own-app"})
    for spelt in ("own-app", "api://own-app", "API://OWN-APP"):
        assert platform.rpc("Own", "tools/list", headers=platform.headers(spelt)).status_code == 200
    assert platform.rpc("Mail", "tools/list").status_code == 200
    assert platform.rpc("Mail", "tools/list", headers=platform.headers("own-app")).status_code == 401


def test_a_server_that_is_switched_off_is_not_there(platform: LocalPlatform) -> None:
    assert platform.rpc("Closed", "tools/list").status_code == 404


def test_without_checks_nobody_needs_a_token() -> None:
    with local_platform(MANIFEST, tokens="off") as platform:
        assert platform.discover({}).status_code == 200
        assert platform.rpc("Own", "tools/list", headers={"authorization": "nonsense"}).status_code == 200
        assert [seen["token"] for seen in platform.requests()] == ["not checked", "not checked"]


def test_where_tokens_must_be_signed_only_those_of_this_platform_are_taken() -> None:
    with local_platform(MANIFEST, tokens="signed") as platform, local_platform(MANIFEST) as other:
        assert platform.discover().status_code == 200
        head, body, signature = platform.token().split(".")
        forged = part({"aud": SHARED_APP_ID, "exp": 4_000_000_000, "appid": "somebody-else"})
        for token in (
            f"{head}.{forged}.{signature}",
            f"{part({'alg': 'none'})}.{body}.",
            f"{part({'alg': 'HS256', 'typ': 'JWT'})}.{body}.{signature}",
            f"{part({'alg': 5, 'kid': []})}.{body}.{signature}",
            f"{part({'alg': 'ES256', 'crit': ['x'], 'x': 1})}.{body}.{signature}",
            f"{head}.{body}.{signature[:-4]}",
            f"{head}.{body}.!!",
            f"{head}.{body}.",
            other.token(),
        ):
            found = platform.discover({"authorization": f"Bearer {token}"})
            assert (found.status_code, found.json()["check"]) == (401, "signature")
        expired = platform.discover(platform.headers(exp=1))
        assert expired.json()["check"] == "expiry"
        assert platform.discover(platform.headers("other")).json()["check"] == "audience"
