"""Tests who is calling, by which signals and claims; API keys, rights and rate limits."""

import hashlib
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frontdesk.errors import AgentIdMismatch, Denied, Invalid, InvalidAgentId, RateLimited, Unauthenticated
from frontdesk.identity import keys, rights
from frontdesk.identity.inbound import (
    METADATA_KEYS,
    NESTED_GROUPS,
    NESTED_KEYS,
    IdentityPolicy,
    agent_id_in_metadata,
    resolve_caller,
)
from frontdesk.identity.keys import ALPHABET, ApiKey
from frontdesk.identity.model import AgentIdSource, Caller, Credential, Signals
from frontdesk.identity.rates import MAX_BUCKETS, RateLimiter
from frontdesk.identity.rights import SCHEDULES_ADMIN
from frontdesk.identity.store import TokenBucket
from frontdesk.identity.tokens import credential_of_claims
from frontdesk.settings import Issuer, Rate
from tests.requirements import shows
from tests.support.scheduling import visitors

# The caller: the order of signals, and claims that are never trusted


OPEN = IdentityPolicy()
EXPOSED = IdentityPolicy(proof_required=True)
ids = st.from_regex(r"[A-Za-z0-9_-]{1,128}", fullmatch=True).filter(lambda text: text.lower() not in ("none", "null"))
maybe_ids = st.none() | ids


def signals(**values: object) -> Signals:
    return replace(Signals("r-1"), **values)


def key(agent_id: str | None = None, user_id: str | None = None) -> Credential:
    return Credential("key:1", agent_id, user_id)


@shows("ID-ORDER")
@given(
    credential=maybe_ids, header=maybe_ids, parameter=maybe_ids, metadata=maybe_ids, default=maybe_ids, only=maybe_ids
)
def test_the_most_trusted_signal_names_the_agent(
    credential: str | None,
    header: str | None,
    parameter: str | None,
    metadata: str | None,
    default: str | None,
    only: str | None,
) -> None:
    if header and parameter:
        parameter = header
    if credential:
        header = header and credential
        parameter = parameter and credential
        metadata = metadata and credential
    said = signals(
        credential=key(credential) if credential else None,
        header=header,
        parameter=parameter,
        metadata={"agent_id": metadata} if metadata else {},
    )
    caller = resolve_caller(said, IdentityPolicy(default_agent=default), only)
    order = [
        (credential, AgentIdSource.CREDENTIAL),
        (header, AgentIdSource.HEADER),
        (parameter, AgentIdSource.PARAMETER),
        (metadata, AgentIdSource.METADATA),
        (default, AgentIdSource.ENVIRONMENT),
        (only, AgentIdSource.SINGLE_AGENT),
        (None, AgentIdSource.NONE),
    ]
    expected = next((agent, source) for agent, source in order if agent or source is AgentIdSource.NONE)
    assert (caller.agent_id, caller.source) == expected
    assert caller.verified == (credential is not None)


@shows("ID-MATCH")
@given(header=ids, parameter=ids)
def test_header_and_parameter_must_match(header: str, parameter: str) -> None:
    if header == parameter:
        assert resolve_caller(signals(header=header, parameter=parameter), OPEN).agent_id == header
    else:
        with pytest.raises(AgentIdMismatch) as caught:
            resolve_caller(signals(header=header, parameter=parameter), OPEN)
        assert str(caught.value) == f"Agent ID mismatch: header '{header}' != parameter '{parameter}'"


@shows("ID-FORMAT")
@given(st.text(min_size=1, max_size=200))
def test_an_id_is_either_well_formed_or_refused(text: str) -> None:
    said, text = signals(parameter=text), text.strip()
    if text.lower() in ("", "none", "null"):
        assert resolve_caller(said, OPEN).agent_id is None
    elif len(text) <= 128 and text.isascii() and all(char.isalnum() or char in "_-" for char in text):
        assert resolve_caller(said, OPEN).agent_id == text
    else:
        with pytest.raises(InvalidAgentId):
            resolve_caller(said, OPEN)


@pytest.mark.parametrize("value", ["", "none", "None", "NULL", None])
def test_no_id_by_another_name_is_no_id(value: str | None) -> None:
    assert resolve_caller(signals(header=value, parameter=value), OPEN) == Caller("r-1", local=True, any_agent=True)


@pytest.mark.parametrize(
    "value", [1.5, 0, True, ["agent-1"], {"id": "agent-1"}, "agent\n1", "a" * 129, "ágent", "invalid@id"]
)
def test_what_is_not_an_id_is_refused(value: object) -> None:
    with pytest.raises(InvalidAgentId, match="Invalid agent ID format: "):
        resolve_caller(signals(parameter=value), OPEN)


@pytest.mark.parametrize(
    "path", [*METADATA_KEYS, *(f"{group}.{name}" for group in NESTED_GROUPS for name in NESTED_KEYS)]
)
@pytest.mark.parametrize("prefix", ["", "metadata."])
def test_metadata_is_read_under_every_name_and_nesting(path: str, prefix: str) -> None:
    metadata: object = "agent-7"
    for name in reversed(
        (prefix + path).split(".") if not path.startswith("dev.") else [*filter(None, [prefix[:-1]]), path]
    ):
        metadata = {name: metadata}
    assert isinstance(metadata, dict)
    assert agent_id_in_metadata(metadata) == (prefix + path, "agent-7")
    assert resolve_caller(signals(metadata=metadata), OPEN).agent_id == "agent-7"


@given(
    st.dictionaries(
        st.text(max_size=10),
        st.recursive(
            st.none() | st.integers() | st.text(),
            lambda inner: st.lists(inner) | st.dictionaries(st.text(max_size=8), inner),
            max_leaves=8,
        ),
    )
)
def test_no_metadata_breaks_resolution(metadata: dict[str, object]) -> None:
    for shaped in (metadata, {"metadata": metadata}, {"agent": metadata}):
        try:
            caller = resolve_caller(signals(metadata=shaped), OPEN)
        except InvalidAgentId:
            continue
        assert caller.source in (AgentIdSource.METADATA, AgentIdSource.NONE)


@shows("ID-EXPOSED")
@given(stated=ids, bound=maybe_ids, user=maybe_ids, source=st.sampled_from(["header", "parameter", "metadata"]))
def test_beyond_loopback_only_a_covering_credential_names_an_agent(
    stated: str, bound: str | None, user: str | None, source: str
) -> None:
    value: object = {"agent_id": stated} if source == "metadata" else stated
    credential = key(bound, user) if bound or user else None
    said = signals(credential=credential, **{source: value})
    if bound == stated:
        assert resolve_caller(said, EXPOSED).verified
    else:
        with pytest.raises(Denied):
            resolve_caller(said, EXPOSED)


def test_a_platform_key_speaks_for_the_agent_it_names() -> None:
    caller = resolve_caller(signals(credential=key("*", "u"), header="agent-1"), EXPOSED)
    assert (caller.agent_id, caller.source, caller.verified, caller.user_id) == (
        "agent-1",
        AgentIdSource.HEADER,
        True,
        "u",
    )


def test_a_request_that_a_proxy_passed_on_is_not_from_loopback() -> None:
    with pytest.raises(Denied):
        resolve_caller(signals(header="agent-1", forwarded=True), OPEN)


def test_a_stranger_beyond_loopback_does_not_get_the_default_agent() -> None:
    policy = IdentityPolicy(proof_required=True, default_agent="agent-1")
    assert resolve_caller(signals(credential=key(None, "u")), policy, "agent-2").agent_id is None
    assert resolve_caller(signals(credential=key("*")), policy).agent_id == "agent-1"


def test_a_credential_does_not_speak_for_another_agent() -> None:
    with pytest.raises(Denied, match="bound to agent 'agent-1'"):
        resolve_caller(signals(credential=key("agent-1"), parameter="agent-2"), OPEN)


def test_the_header_is_not_read_when_it_is_switched_off() -> None:
    policy = IdentityPolicy(read_header=False)
    assert resolve_caller(signals(header="agent-1"), policy).agent_id is None
    assert resolve_caller(signals(header="agent-1", parameter="agent-2"), policy).agent_id == "agent-2"


# A token's claims about user, agent and scopes


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


# API keys as text, and the fields of a stored one


NOW = datetime(2026, 3, 1, tzinfo=UTC)


def stored(secret: str, **values: object) -> ApiKey:
    return ApiKey("A" * 12, keys.hash_secret(secret), "n", "agent-1", None, None, NOW, **values)  # pyright: ignore[reportArgumentType] - the test names fields


@pytest.mark.parametrize("prefix", keys.KEY_PREFIXES)
def test_a_minted_key_reads_back(prefix: str) -> None:
    key_id, secret, text = keys.generate_key(prefix)
    assert text.startswith(f"{prefix}{key_id}_")
    assert keys.parse_key(text) == (key_id, secret)
    assert stored(secret).matches(secret)
    assert not stored(secret).matches(secret[:-1])


@given(st.integers(min_value=3), st.sampled_from(ALPHABET), st.sampled_from(keys.KEY_PREFIXES))
def test_a_mistyped_letter_is_caught(position: int, letter: str, prefix: str) -> None:
    text = keys.generate_key(prefix)[2]
    place = position % len(text)
    wrong = text[:place] + letter + text[place + 1 :]
    assert wrong == text or keys.parse_key(wrong) is None


@given(st.text(max_size=120))
def test_no_text_breaks_the_parser(text: str) -> None:
    assert keys.parse_key(text) is None
    assert keys.parse_key(f"fd_{text}") is None
    assert keys.parse_key(f"zm_{text}") is None


def test_two_keys_are_never_alike() -> None:
    assert len({keys.generate_key()[2] for _ in range(100)}) == 100


def test_a_key_works_until_it_expires_or_is_revoked() -> None:
    assert stored("s").works_at(NOW)
    assert stored("s", expires_at=NOW + timedelta(1)).works_at(NOW)
    assert not stored("s", expires_at=NOW).works_at(NOW)
    assert not stored("s", revoked_at=NOW).works_at(NOW)
    assert not stored("s", is_active=False).works_at(NOW)


def test_a_key_from_elsewhere_is_known_by_its_hash() -> None:
    text = "zm_" + "0123456789abcdef" * 4
    digest = hashlib.sha256(text.encode()).digest()
    assert keys.parse_key(text) == (digest.hex()[:12], text)
    assert keys.hash_imported_key(text, hashed=False) == (digest, "zm_***abcdef")
    assert keys.hash_imported_key(digest.hex(), hashed=True) == (digest, "zm_***")
    assert ApiKey(digest.hex()[:12], digest, "n", None, "ann", None, NOW).matches(text)
    for wrong in (text.upper(), text[:-1], f"{text}0", text.replace("zm_", "fd_")):
        assert keys.parse_key(wrong) is None
        with pytest.raises(Invalid):
            keys.hash_imported_key(wrong, hashed=False)


@pytest.mark.parametrize("own", [False, True])
def test_a_successor_has_the_rights_and_the_lifetime_of_the_old_one(*, own: bool) -> None:
    old = stored("s", own=own, expires_at=NOW + timedelta(days=30), last_used_at=NOW)
    new, text = keys.rotated_key(old, NOW + timedelta(days=10))
    assert text.startswith("zm_" if own else "fd_")
    assert new.preview == f"{text[:3]}***{text[-6:]}"
    assert (new.expires_at, new.replaces, new.last_used_at) == (NOW + timedelta(days=40), old.id, None)
    parsed = keys.parse_key(text)
    assert parsed is not None
    assert (new.id, new.matches(parsed[1]), old.matches(parsed[1])) == (parsed[0], True, False)


# Every kind of caller, from this machine and from elsewhere, with and without a credential


EVERYONE = list(visitors())


@shows("TOOLS-ADMIN")
def test_the_operator_is_an_unlimited_caller_from_this_machine_or_one_with_the_scope_by_name() -> None:
    assert len(EVERYONE) > 300
    for visitor, caller in EVERYONE:
        scopes = visitor.shows.scopes if visitor.shows else None
        granted = scopes is not None and SCHEDULES_ADMIN in scopes
        at_home = visitor.trusted and not visitor.forwarded
        assert rights.is_local_or_granted(caller, SCHEDULES_ADMIN) is (granted or (at_home and scopes is None)), visitor


def test_a_key_makes_nobody_the_operator_and_the_operator_may_change_the_installation() -> None:
    for visitor, caller in EVERYONE:
        if rights.is_operator(caller):
            assert (visitor.shows, visitor.names) == (None, None)
            assert visitor.trusted
            assert not visitor.forwarded
        if rights.is_operator_or_granted(caller, SCHEDULES_ADMIN):
            assert rights.is_local_or_granted(caller, SCHEDULES_ADMIN)


def test_a_caller_without_a_key_is_told_from_one_who_shows_it_here() -> None:
    for visitor, caller in EVERYONE:
        assert caller.local is (visitor.trusted and not visitor.forwarded)
        assert caller.keyless is (caller.local and visitor.shows is None)


# Token buckets, and the limiter that applies them to callers


ANN = Caller("r", agent_id="agent-1", user_id="ann")


@given(
    limit=st.integers(1, 50),
    seconds=st.floats(0.5, 100),
    steps=st.lists(st.tuples(st.floats(0, 10), st.integers(1, 5)), max_size=60),
)
def test_no_window_ever_grants_more_than_burst_plus_refill(
    limit: int, seconds: float, steps: list[tuple[float, int]]
) -> None:
    rate, now, granted = Rate(limit=limit, seconds=seconds), 1000.0, 0
    bucket = TokenBucket(limit, now)
    for pause, count in steps:
        now += pause
        bucket, got, wait = bucket.take_up_to(rate, count, now)
        granted += got
        assert (got > 0) == (wait == 0)
        assert 0 <= bucket.tokens <= limit
    assert granted <= limit + (now - 1000.0) * limit / seconds + 1e-6


def test_waiting_as_long_as_told_is_long_enough() -> None:
    rate = Rate(limit=3, seconds=60)
    bucket, _, wait = TokenBucket(0.25, 1000.0).take_up_to(rate, 1, 1000.0)
    assert bucket.take_up_to(rate, 1, 1000.0 + wait)[1] == 1


@shows("KEPT-11")
def test_a_clock_that_steps_back_grants_nothing_and_is_gone_by_from_then_on() -> None:
    rate = Rate(limit=60, seconds=60)
    bucket, granted, wait = TokenBucket(0, 1000.0).take_up_to(rate, 1, 500.0)
    assert (granted, wait) == (0, 1.0)
    assert bucket.take_up_to(rate, 1, 500.0 + wait)[1] == 1
    bucket, granted, _ = TokenBucket(0, 1000.0).take_up_to(rate, 1, 990.0)
    assert (granted, bucket.at) == (0, 1000.0), "another replica's clock is ahead"


@pytest.mark.anyio
async def test_each_agent_and_each_user_has_a_rate_of_its_own() -> None:
    limiter = RateLimiter(Rate(limit=1, seconds=60), Rate(limit=2, seconds=60), None)
    await limiter.admit(ANN, 0)
    with pytest.raises(RateLimited, match="agent agent-1") as caught:
        await limiter.admit(ANN, 0)
    assert caught.value.retry_after == 60
    await limiter.admit(Caller("r", agent_id="agent-2", user_id="ann"), 0)
    with pytest.raises(RateLimited, match="user ann"):
        await limiter.admit(Caller("r", agent_id="agent-3", user_id="ann"), 0)
    await limiter.admit(Caller("r"), 0)


@pytest.mark.anyio
async def test_the_limiter_forgets_the_oldest_rather_than_grow() -> None:
    limiter = RateLimiter(Rate(limit=1, seconds=60), None, None)
    for number in range(MAX_BUCKETS + 5):
        await limiter.admit(Caller("r", agent_id=f"a{number}"), 0)
    assert len(limiter._buckets) == MAX_BUCKETS
