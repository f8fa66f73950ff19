"""What a token's claims say about user, agent and scopes."""

import pytest

from frontdesk.errors import Unauthenticated
from frontdesk.identity.model import Credential
from frontdesk.identity.tokens import credential_of_claims
from frontdesk.settings import Issuer

STANDARD = Issuer(issuer="https://id.example")
ENTRA = Issuer(issuer="https://login.example/tenant", claims="entra")


def told(issuer: Issuer = STANDARD, **claims: object) -> tuple[str | None, str | None]:
    found = credential_of_claims(claims, issuer)
    return found.user_id, found.agent_id


@pytest.mark.parametrize(
    ("claims", "expected"),
    [
        ({"sub": "ann"}, ("ann", None)),
        ({"sub": "ann", "azp": "agent-1"}, ("ann", "agent-1")),
        ({"sub": "ann", "client_id": "agent-1"}, ("ann", "agent-1")),
        ({"sub": "ann", "azp": "app", "act": {"sub": "agent-1", "act": {"sub": "inner"}}}, ("ann", "agent-1")),
        ({"sub": "agent-1", "client_id": "agent-1"}, (None, "agent-1")),
        ({"sub": "ann", "azp": "https://app.example"}, ("ann", None)),
        ({"sub": "ann", "act": "agent-1"}, ("ann", None)),
        ({"sub": 5}, (None, None)),
    ],
)
def test_subject_is_the_user_and_actor_or_client_the_agent(
    claims: dict[str, object], expected: tuple[str | None, str | None]
) -> None:
    found = credential_of_claims(claims, STANDARD)
    assert (found.user_id, found.agent_id) == expected


def test_an_actor_that_is_no_agent_id_is_refused_not_replaced() -> None:
    with pytest.raises(Unauthenticated):
        told(sub="ann", azp="agent-1", act={"sub": "not an id"})


def test_entra_names_are_mapped() -> None:
    assert told(ENTRA, sub="pairwise", oid="ann", azp="app-1") == ("ann", "app-1")
    assert told(ENTRA, sub="pairwise", oid="ann", appid="app-1") == ("ann", "app-1")
    assert told(ENTRA, sub="app-1-object", oid="app-1-object", appid="app-1", idtyp="app") == (None, "app-1")
    assert told(ENTRA, sub="app-1-object", oid="app-1-object", appid="app-1", roles=["r"]) == (None, "app-1")


def test_an_issuers_prefix_keeps_its_people_and_agents_apart() -> None:
    assert told(Issuer(issuer="i", prefix="corp-"), sub="ann", azp="agent-1") == ("corp-ann", "corp-agent-1")
    assert told(Issuer(issuer="i", prefix="corp-"), sub="ann", azp="a" * 126) == ("corp-ann", None)


@pytest.mark.parametrize(
    ("claims", "scopes"),
    [
        ({}, None),
        ({"scope": ""}, frozenset[str]()),
        ({"scope": "a b"}, frozenset({"a", "b"})),
        ({"scp": ["a"], "roles": ["b", 5]}, frozenset({"a", "b"})),
        ({"scope": 7}, frozenset[str]()),
    ],
)
def test_scopes_are_limits_only_where_a_token_carries_some(
    claims: dict[str, object], scopes: frozenset[str] | None
) -> None:
    found: Credential = credential_of_claims({"sub": "ann", **claims}, STANDARD)
    assert found.scopes == scopes


@pytest.mark.parametrize("subject", ["a" * 201, "a\x00b", "line\nbreak"])
def test_a_subject_that_cannot_be_stored_is_refused(subject: str) -> None:
    with pytest.raises(Unauthenticated):
        told(sub=subject)
