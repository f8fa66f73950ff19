"""Who a token or a turn says is calling."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from frontdesk.agent365 import get_agent_id_from_token, get_app_id_from_token, resolve_agent_identity
from tests.requirements import shows
from tests.support.gateways import jwt, turn

NOBODY = "00000000-0000-0000-0000-000000000000"
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=8,
)
CLAIMS = st.dictionaries(st.sampled_from(["xms_par_app_azp", "appid", "azp", "sub"]), JSON)


class Agentic:
    """An activity of an agentic request, as a host has them."""

    def __init__(self, instance: object, *, agentic: bool = True) -> None:
        self.instance = instance
        self.agentic = agentic

    def is_agentic_request(self) -> bool:
        return self.agentic

    def get_agentic_instance_id(self) -> object:
        if isinstance(self.instance, Exception):
            raise self.instance
        return self.instance


@shows("A365-HOSTILE")
@given(JSON | CLAIMS)
@settings(deadline=None)
def test_whatever_a_token_claims_an_id_is_one_line_of_plain_text_or_empty(claims: object) -> None:
    for found in (get_agent_id_from_token(jwt(claims)), get_app_id_from_token(jwt(claims))):
        assert type(found) is str
        assert len(found) <= 256
        assert found == "" or (found.isascii() and found.isprintable() and found == found.strip())


@shows("A365-HOSTILE")
@given(st.text() | st.binary().map(lambda raw: raw.decode("latin-1")))
@settings(deadline=None)
def test_whatever_a_token_is_reading_it_raises_nothing(token: str) -> None:
    for text in (token, f"{token}.{token}.{token}", f"e30.{token}."):
        assert isinstance(get_agent_id_from_token(text), str)
        assert isinstance(get_app_id_from_token(text), str)


@pytest.mark.parametrize("claim", [123, True, 1.5, ["a"], {"a": "b"}, "a\r\nb", "ü", "x" * 257, "\x00", " "])
def test_a_claim_that_no_header_can_hold_gives_way_to_the_next(claim: object) -> None:
    assert get_agent_id_from_token(jwt(xms_par_app_azp=claim, appid=claim, azp="azp")) == "azp"


def test_an_expired_token_still_says_who() -> None:
    assert get_agent_id_from_token(jwt(appid="app", exp=1)) == "app"


def test_claims_nested_too_deeply_to_read_say_nothing() -> None:
    head = "e30"
    deep = "W1tb" * 4_000
    assert get_agent_id_from_token(f"{head}.{deep}.x") == ""


@pytest.mark.parametrize("token", [None, "", "  "])
def test_without_a_token_the_application_is_a_guid_of_zeros(token: str | None) -> None:
    assert get_app_id_from_token(token) == NOBODY


def test_the_application_is_appid_before_azp_and_never_the_blueprint() -> None:
    assert get_app_id_from_token(jwt(xms_par_app_azp="blueprint", appid="app", azp="azp")) == "app"
    assert get_app_id_from_token(jwt(xms_par_app_azp="blueprint", azp="azp")) == "azp"
    assert get_app_id_from_token(jwt(xms_par_app_azp="blueprint")) == ""
    assert get_app_id_from_token("not a token") == ""


@shows("A365-DISCOVER")
@pytest.mark.parametrize(
    ("context", "agent"),
    [
        (turn(), "app"),
        (None, "app"),
        (type("Turn", (), {"activity": None})(), "app"),
        (type("Turn", (), {"activity": Agentic("instance")})(), "instance"),
        (type("Turn", (), {"activity": Agentic("instance", agentic=False)})(), "app"),
        (type("Turn", (), {"activity": Agentic(None)})(), ""),
        (type("Turn", (), {"activity": Agentic(5)})(), ""),
        (type("Turn", (), {"activity": Agentic(RuntimeError("no"))})(), "app"),
    ],
)
def test_the_servers_asked_for_are_those_of_the_turns_instance_else_of_the_token(context: object, agent: str) -> None:
    assert resolve_agent_identity(context, jwt(appid="app")) == agent
