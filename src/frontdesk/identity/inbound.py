"""Decides who is calling from what a request says: pure, per request, nothing kept."""

import reprlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import cast

from frontdesk.errors import AgentIdMismatch, Denied, InvalidAgentId
from frontdesk.identity import keys
from frontdesk.identity.model import ANY_AGENT, KEY, TOKEN, Caller, Claimed, Credential, Signals, Source, Trace
from frontdesk.settings import AGENT_ID, NO_ID, Settings

USER_ID_LENGTH = 200
METADATA_KEYS = ("dev.frontdesk/agentId", "agent_id", "agentId", "letta_agent_id", "caller_agent_id")
NESTED_IN = ("agent", "caller", "source_agent")
NESTED_KEYS = ("id", "agent_id", "agentId")
# The longest id that can be one, so that what is cut was none.
CLAIM_LENGTH = 128


@dataclass(frozen=True, slots=True)
class Policy:
    """The switches that bear on identity; `logs_in`: issuers or clients are set up, which prove who people are."""

    read_header: bool = True
    require_agent: bool = True
    strict: bool = False
    proof_required: bool = False
    default_agent: str | None = None
    single_agent_fallback: bool = False
    logs_in: bool = False

    @classmethod
    def of(cls, settings: Settings) -> "Policy":
        return cls(
            read_header=settings.enable_agent_id_header,
            require_agent=settings.require_agent_id,
            strict=settings.strict_agent_id_validation,
            proof_required=settings.auth_required,
            default_agent=settings.default_agent_id,
            single_agent_fallback=settings.single_agent_fallback,
            logs_in=bool(settings.trusted_issuers or settings.login_clients),
        )


def resolve(signals: Signals, policy: Policy, only_agent: str | None = None) -> Caller:
    """The caller behind a request; `only_agent` is the host's single agent where that fallback was asked for."""
    stated, source = _stated(signals, policy)
    credential = signals.credential
    proven = credential.named_agent if credential else None
    trusted = not (policy.proof_required or signals.forwarded)
    if proven is not None:
        if stated is not None and stated != proven:
            raise Denied(f"The credential is bound to agent '{proven}' and cannot speak for '{stated}'; use its own")
        return _caller(signals, proven, Source.CREDENTIAL, trusted=trusted, verified=True)

    if stated is not None:
        covered = credential is not None and credential.covers(stated)
        if not covered and not trusted:
            raise Denied(f"No credential covers agent '{stated}'; send a key that is bound to it")
        return _caller(signals, stated, source, trusted=trusted, verified=covered)

    unread = not policy.read_header and _named(signals.header) is not None
    if trusted or (credential is not None and credential.agent_id is not None):
        for fallback, origin in (
            (policy.default_agent, Source.ENVIRONMENT),
            (only_agent, Source.SINGLE_AGENT),
        ):
            if fallback and fallback.lower() not in NO_ID:
                return _caller(signals, checked(fallback), origin, trusted=trusted, verified=False, unread=unread)
    return _caller(signals, None, Source.NONE, trusted=trusted, verified=credential is not None, unread=unread)


def traced(signals: Signals, shown: str | None = None) -> Trace:
    """What a request says of its sender, for whoever wants to know later why it was refused; nothing of it is proven.

    The person is: the credential was checked before. `shown` is the text of one that was not, or did not hold; of a key
    it says which it would be.
    """
    found = metadata_agent(signals.metadata) if signals.metadata else None
    claimed = Claimed(
        header=_claim(signals.header),
        parameter=_claim(signals.parameter),
        metadata=_claim(found[1]) if found else None,
        credential=_shown(signals.credential) or _key_in(shown),
    )
    user_id = signals.credential.user_id if signals.credential else None
    return Trace(Caller(signals.request_id, user_id=user_id, source=claimed.source), claimed)


def _claim(said: object) -> str | None:
    if said is None or (isinstance(said, str) and said.strip().lower() in NO_ID):
        return None
    text = said if isinstance(said, str) else reprlib.repr(said)
    line = "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode() for char in text[:CLAIM_LENGTH]
    )
    return line if len(text) <= CLAIM_LENGTH >= len(line) else f"{line[: CLAIM_LENGTH - 1]}…"


def _shown(credential: Credential | None) -> str | None:
    if credential is None or not credential.id.startswith((KEY, TOKEN)):
        return None
    return _claim(f"{credential.agent_id} ({credential.id})" if credential.agent_id else credential.id)


def _key_in(shown: str | None) -> str | None:
    """The key that a text is, by its form; whether there is one, and whose, is another matter."""
    parsed = keys.parse(shown) if shown else None
    return None if parsed is None else f"{KEY}{parsed[0]}"


def checked(agent_id: str) -> str:
    """The id, if it has the form of one."""
    if not AGENT_ID.fullmatch(agent_id):
        raise InvalidAgentId(agent_id)
    return agent_id


def is_user_id(text: str) -> bool:
    """Whether a person's id can be stored and shown as it is."""
    return 0 < len(text) <= USER_ID_LENGTH and text.isprintable()


def metadata_agent(metadata: Mapping[str, object]) -> tuple[str, str] | None:
    """The first agent id in request metadata, as (key path, value); looked for at the top, then under `metadata`."""
    nested = metadata.get("metadata")
    for prefix, level in (("", metadata), ("metadata.", nested)):
        if isinstance(level, Mapping):
            for path, value in _candidates(cast("Mapping[str, object]", level)):
                named = value.strip() if isinstance(value, str) else ""
                if named.lower() not in NO_ID:
                    return prefix + path, named
    return None


def _candidates(level: Mapping[str, object]) -> Iterator[tuple[str, object]]:
    for key in METADATA_KEYS:
        yield key, level.get(key)
    for group in NESTED_IN:
        inner = level.get(group)
        if isinstance(inner, Mapping):
            for key in NESTED_KEYS:
                yield f"{group}.{key}", cast("Mapping[str, object]", inner).get(key)


def _stated(signals: Signals, policy: Policy) -> tuple[str | None, Source]:
    header = _named(signals.header) if policy.read_header else None
    parameter = _named(signals.parameter)
    if header and parameter and header != parameter:
        raise AgentIdMismatch(header, parameter)
    if header:
        return checked(header), Source.HEADER
    if parameter:
        return checked(parameter), Source.PARAMETER
    found = metadata_agent(signals.metadata) if signals.metadata else None
    return (checked(found[1]), Source.METADATA) if found else (None, Source.NONE)


def _named(value: object) -> str | None:
    if value is None:
        return None
    if not isinstance(value, str):
        raise InvalidAgentId(str(value))
    named = value.strip()
    return None if named.lower() in NO_ID else named


def _caller(
    signals: Signals, agent_id: str | None, source: Source, *, trusted: bool, verified: bool, unread: bool = False
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
        # Who names an agent means to be that agent, also where the name is not read.
        anonymous=unread and credential is None,
        unread_header=unread,
    )
