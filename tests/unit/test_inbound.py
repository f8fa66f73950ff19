"""Who is calling: the order of signals, and what is never believed."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frontdesk.errors import AgentIdMismatch, Denied, InvalidAgentId
from frontdesk.identity.inbound import (
    METADATA_KEYS,
    NESTED_GROUPS,
    NESTED_KEYS,
    IdentityPolicy,
    agent_id_in_metadata,
    resolve_caller,
)
from frontdesk.identity.model import AgentIdSource, Caller, Credential, Signals
from tests.requirements import shows

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
