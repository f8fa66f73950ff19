"""Decides from a request who is calling. No I/O and no state."""

import reprlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import cast

from frontdesk.errors import AgentIdMismatch, Denied, InvalidAgentId, Unauthenticated
from frontdesk.identity import keys, rights
from frontdesk.identity.model import (
    ANY_AGENT,
    KEY_CREDENTIAL_PREFIX,
    TOKEN_CREDENTIAL_PREFIX,
    AgentIdSource,
    Caller,
    ClaimedIds,
    Credential,
    RefusalTrace,
    Signals,
)
from frontdesk.settings import Settings
from frontdesk.settings.model import AGENT_ID_PATTERN, EMPTY_AGENT_IDS

USER_ID_LENGTH = 200
METADATA_KEYS = ("dev.frontdesk/agentId", "agent_id", "agentId", "letta_agent_id", "caller_agent_id")
NESTED_GROUPS = ("agent", "caller", "source_agent")
NESTED_KEYS = ("id", "agent_id", "agentId")
# The longest valid id: a claim that is cut here was not a valid id.
MAX_CLAIM_LENGTH = 128


@dataclass(frozen=True, slots=True)
class IdentityPolicy:
    """The settings that affect identity. `logs_in`: issuers or login clients are configured."""

    read_header: bool = True
    require_agent: bool = True
    strict: bool = False
    proof_required: bool = False
    default_agent: str | None = None
    single_agent_fallback: bool = False
    logs_in: bool = False

    @classmethod
    def of(cls, settings: Settings) -> "IdentityPolicy":
        return cls(
            read_header=settings.enable_agent_id_header,
            require_agent=settings.require_agent_id,
            strict=settings.strict_agent_id_validation,
            proof_required=settings.auth_required,
            default_agent=settings.default_agent_id,
            single_agent_fallback=settings.single_agent_fallback,
            logs_in=bool(settings.trusted_issuers or settings.login_clients),
        )


def resolve_caller(signals: Signals, policy: IdentityPolicy, only_agent: str | None = None) -> Caller:
    """The caller behind a request. `only_agent` is the host's single agent, where that fallback is enabled."""
    stated, source = _stated_agent(signals, policy)
    credential = signals.credential
    proven = credential.named_agent if credential else None
    trusted = not (policy.proof_required or signals.forwarded)
    if proven is not None:
        if stated is not None and stated != proven:
            raise Denied(f"The credential is bound to agent '{proven}' and cannot speak for '{stated}'; use its own")
        return _make_caller(signals, proven, AgentIdSource.CREDENTIAL, trusted=trusted, verified=True)

    if stated is not None:
        covered = credential is not None and credential.covers(stated)
        if not covered and not trusted:
            raise Denied(f"No credential covers agent '{stated}'; send a key that is bound to it")
        return _make_caller(signals, stated, source, trusted=trusted, verified=covered)

    unread = not policy.read_header and _agent_id_text(signals.header) is not None
    if trusted or (credential is not None and credential.agent_id is not None):
        for fallback, origin in (
            (policy.default_agent, AgentIdSource.ENVIRONMENT),
            (only_agent, AgentIdSource.SINGLE_AGENT),
        ):
            if fallback and fallback.lower() not in EMPTY_AGENT_IDS:
                return _make_caller(
                    signals, check_agent_id(fallback), origin, trusted=trusted, verified=False, unread=unread
                )
    return _make_caller(
        signals, None, AgentIdSource.NONE, trusted=trusted, verified=credential is not None, unread=unread
    )


def trace_refusal(signals: Signals, shown: str | None = None) -> RefusalTrace:
    """The unproven claims of a refused request about its sender, for the journal.

    Only the person is proven, by a credential that was checked before. `shown` is the text of a credential that was
    invalid or not checked; if it looks like a key, the claims include the id of that key.
    """
    found = agent_id_in_metadata(signals.metadata) if signals.metadata else None
    claimed = ClaimedIds(
        header=_claim_text(signals.header),
        parameter=_claim_text(signals.parameter),
        metadata=_claim_text(found[1]) if found else None,
        credential=_credential_claim(signals.credential) or _key_claim(shown),
    )
    user_id = signals.credential.user_id if signals.credential else None
    return RefusalTrace(Caller(signals.request_id, user_id=user_id, source=claimed.source), claimed)


def _claim_text(value: object) -> str | None:
    if value is None or (isinstance(value, str) and value.strip().lower() in EMPTY_AGENT_IDS):
        return None
    text = value if isinstance(value, str) else reprlib.repr(value)
    line = "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode() for char in text[:MAX_CLAIM_LENGTH]
    )
    return line if len(text) <= MAX_CLAIM_LENGTH >= len(line) else f"{line[: MAX_CLAIM_LENGTH - 1]}…"


def _credential_claim(credential: Credential | None) -> str | None:
    if credential is None or not credential.id.startswith((KEY_CREDENTIAL_PREFIX, TOKEN_CREDENTIAL_PREFIX)):
        return None
    return _claim_text(f"{credential.agent_id} ({credential.id})" if credential.agent_id else credential.id)


def _key_claim(shown: str | None) -> str | None:
    """The id of the key that a text looks like. The key may not exist."""
    parsed = keys.parse_key(shown) if shown else None
    return None if parsed is None else f"{KEY_CREDENTIAL_PREFIX}{parsed[0]}"


def check_agent_id(agent_id: str) -> str:
    """The id, if it has a valid form."""
    if not AGENT_ID_PATTERN.fullmatch(agent_id):
        raise InvalidAgentId(agent_id)
    return agent_id


def is_user_id(text: str) -> bool:
    """Whether a person's id can be stored and shown unchanged."""
    return 0 < len(text) <= USER_ID_LENGTH and text.isprintable()


def agent_id_in_metadata(metadata: Mapping[str, object]) -> tuple[str, str] | None:
    """The first agent id in request metadata as (key path, value): first at the top level, then under `metadata`."""
    nested = metadata.get("metadata")
    for prefix, level in (("", metadata), ("metadata.", nested)):
        if isinstance(level, Mapping):
            for path, value in _metadata_candidates(cast("Mapping[str, object]", level)):
                named = value.strip() if isinstance(value, str) else ""
                if named.lower() not in EMPTY_AGENT_IDS:
                    return prefix + path, named
    return None


def _metadata_candidates(level: Mapping[str, object]) -> Iterator[tuple[str, object]]:
    for key in METADATA_KEYS:
        yield key, level.get(key)
    for group in NESTED_GROUPS:
        inner = level.get(group)
        if isinstance(inner, Mapping):
            for key in NESTED_KEYS:
                yield f"{group}.{key}", cast("Mapping[str, object]", inner).get(key)


def _stated_agent(signals: Signals, policy: IdentityPolicy) -> tuple[str | None, AgentIdSource]:
    header = _agent_id_text(signals.header) if policy.read_header else None
    parameter = _agent_id_text(signals.parameter)
    if header and parameter and header != parameter:
        raise AgentIdMismatch(header, parameter)
    if header:
        return check_agent_id(header), AgentIdSource.HEADER
    if parameter:
        return check_agent_id(parameter), AgentIdSource.PARAMETER
    found = agent_id_in_metadata(signals.metadata) if signals.metadata else None
    return (check_agent_id(found[1]), AgentIdSource.METADATA) if found else (None, AgentIdSource.NONE)


def _agent_id_text(value: object) -> str | None:
    if value is None:
        return None
    if not isinstance(value, str):
        raise InvalidAgentId(str(value))
    named = value.strip()
    return None if named.lower() in EMPTY_AGENT_IDS else named


def _make_caller(
    signals: Signals,
    agent_id: str | None,
    source: AgentIdSource,
    *,
    trusted: bool,
    verified: bool,
    unread: bool = False,
) -> Caller:
    credential = signals.credential
    bound = credential is not None and credential.named_agent is not None
    return Caller(
        request_id=signals.request_id,
        agent_id=agent_id,
        user_id=credential.user_id if credential else None,
        source=source,
        verified=verified,
        scopes=credential.scopes if credential else None,
        name=signals.name,
        capabilities=signals.capabilities,
        local=trusted,
        any_agent=not bound and (trusted or (credential is not None and credential.agent_id == ANY_AGENT)),
        credential_id=credential.id if credential else None,
        # A client that names an agent wants to act as that agent, even where the name is ignored.
        anonymous=unread and credential is None,
        unread_header=unread,
    )


CLIENT_NOT_TRUSTED = (
    "A person's token is taken from a trusted client alone: a program on this machine, or one with a key for every "
    "agent (frontdesk keys create --agent '*'); send the token as Authorization: Bearer … instead"
)

NAMES_NO_PERSON = "The token in X-User-Auth-Token names no person"


def is_trusted_client(credential: Credential | None, *, local: bool) -> bool:
    """A client with a key for every agent, or a local client without a credential."""
    return local if credential is None else credential.agent_id == ANY_AGENT


def check_trusted_client(credential: Credential | None, *, local: bool) -> None:
    """Refuse a client that may not act for people. A client bound to a person may repeat that person's token."""
    if not is_trusted_client(credential, local=local) and (credential is None or credential.user_id is None):
        raise Denied(CLIENT_NOT_TRUSTED)


def credential_on_behalf(client: Credential | None, person: Credential) -> Credential:
    """A credential for the client's agent and the person, limited to what both may do."""
    if person.user_id is None:
        raise Unauthenticated(NAMES_NO_PERSON)
    # The client of a token is not one of our agents: the request names the agent. A key may be bound to an agent.
    bound = person.named_agent if person.id.startswith(KEY_CREDENTIAL_PREFIX) else None
    if client is None:
        return replace(person, agent_id=bound)
    if client.user_id is not None and client.user_id != person.user_id:
        raise Denied("X-User-Auth-Token is another person's than the credential of this request; send one of them")
    if bound is not None and client.named_agent not in (None, bound):
        raise Denied("The key in X-User-Auth-Token is bound to another agent than the credential of this request")
    return replace(
        person, agent_id=bound or client.agent_id, scopes=rights.intersect_scopes(client.scopes, person.scopes)
    )
