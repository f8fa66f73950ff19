"""Identity as the doors use it: check a credential, name the caller, hold them to their rate."""

import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import structlog

from frontdesk.errors import (
    ConfigurationError,
    MissingAgentId,
    NotFound,
    Unauthenticated,
    Unavailable,
    UnknownAgent,
)
from frontdesk.identity import keys, rights
from frontdesk.identity.inbound import Policy, checked, is_user_id, resolve
from frontdesk.identity.keys import PREFIX, ApiKey
from frontdesk.identity.model import ANY_AGENT, Caller, Credential, Signals
from frontdesk.identity.rates import RateLimiter
from frontdesk.identity.store import KeyStore
from frontdesk.identity.tokens import Tokens

# How long a key that was revoked elsewhere may still work here.
KEY_CACHE_SECONDS = 2.0
KEY_CACHE_SIZE = 10_000
NAME_LENGTH = 200

log = structlog.get_logger("frontdesk.identity")

KnowsAgent = Callable[[str], Awaitable[bool]]
OnlyAgent = Callable[[], Awaitable[str | None]]


class Identity:
    """The one place that says who is calling. It keeps keys for a moment, and callers not at all."""

    def __init__(
        self,
        policy: Policy,
        store: KeyStore,
        tokens: Tokens,
        limiter: RateLimiter,
        knows_agent: KnowsAgent,
        only_agent: OnlyAgent,
        *,
        log_sources: bool = False,
    ) -> None:
        self.policy = policy
        self._store = store
        self._tokens = tokens
        self._limiter = limiter
        self._knows_agent = knows_agent
        self._only_agent = only_agent
        self._log_sources = log_sources
        self._cached: dict[str, tuple[float, ApiKey | None]] = {}
        self._used: dict[str, datetime] = {}

    async def authenticate(self, text: str) -> Credential:
        """The credential that a key or token proves, or `Unauthenticated`."""
        if not text.startswith(PREFIX):
            return await self._tokens.verify(text, datetime.now(UTC), time.monotonic())
        parsed = keys.parse(text)
        key = await self._find(parsed[0]) if parsed else None
        now = datetime.now(UTC)
        if parsed is None or key is None or not key.matches(parsed[1]) or not key.works_at(now):
            raise Unauthenticated("The API key is not valid: mistyped, expired or revoked")
        self._used[key.id] = now
        return key.credential

    async def identify(self, signals: Signals) -> Caller:
        """The caller of this one request, within their rate."""
        caller = resolve(signals, self.policy)
        if caller.agent_id is None and self.policy.single_agent_fallback:
            caller = resolve(signals, self.policy, await self._only_agent())
        # The rate comes first: asking the agent host is the dear part, and a stranger could have us do it at will.
        await self._limiter.admit(caller, time.time())
        if self.policy.strict and caller.agent_id is not None and not await self._knows_agent(caller.agent_id):
            raise UnknownAgent(caller.agent_id)
        if self._log_sources:
            log.info(
                "agent_id_source",
                agent_id=caller.agent_id,
                source=caller.source,
                request_id=caller.request_id,
            )
        return caller

    def require_agent(self, caller: Caller) -> None:
        """For calls that are made for an agent."""
        if caller.agent_id is None and self.policy.require_agent:
            raise MissingAgentId

    def whoami(self, caller: Caller) -> Caller:
        """The caller as resolved; a person who is proven needs no agent to ask."""
        rights.require(caller, rights.IDENTITY_READ)
        if caller.user_id is None:
            self.require_agent(caller)
        return caller

    async def create_key(
        self,
        *,
        name: str,
        agent_id: str | None,
        user_id: str | None,
        scopes: frozenset[str] | None = None,
        lifetime: timedelta | None = None,
    ) -> tuple[ApiKey, str]:
        """A new key and its text, which is not to be had again."""
        if agent_id is None and user_id is None:
            raise ConfigurationError("A key needs someone to speak for: give an agent, a user, or both")
        if agent_id not in (None, ANY_AGENT):
            checked(agent_id)
        if user_id is not None and not is_user_id(user_id):
            raise ConfigurationError("A user id is printable text of at most 200 characters")
        if len(name) > NAME_LENGTH:
            raise ConfigurationError(f"A key's name has at most {NAME_LENGTH} characters")
        for scope in scopes or ():
            if scope not in rights.SCOPES:
                raise ConfigurationError(f"There is no scope '{scope}'; there are: {', '.join(rights.SCOPES)}")
        now = datetime.now(UTC)
        key_id, secret, text = keys.mint()
        key = ApiKey(
            id=key_id,
            secret_sha256=keys.hash_secret(secret),
            name=name,
            agent_id=agent_id,
            user_id=user_id,
            scopes=scopes,
            created_at=now,
            expires_at=now + lifetime if lifetime else None,
        )
        await self._store.add(key)
        return key, text

    async def rotate_key(self, key_id: str, overlap: timedelta) -> tuple[ApiKey, str]:
        """A key with the same rights; the old one goes on for `overlap`, or until its own end if that is sooner."""
        old = await self._store.get(key_id)
        now = datetime.now(UTC)
        if old is None or not old.works_at(now):
            raise _no_key(key_id)
        successor = await self._store.successor(key_id)
        if successor is not None:
            raise ConfigurationError(f"Key '{key_id}' was replaced by '{successor}' already; rotate that one")
        new_id, secret, text = keys.mint()
        new = replace(
            old,
            id=new_id,
            secret_sha256=keys.hash_secret(secret),
            created_at=now,
            expires_at=now + (old.expires_at - old.created_at) if old.expires_at else None,
            last_used_at=None,
            replaces=old.id,
        )
        await self._store.replace(old.id, new, min(now + overlap, old.expires_at or now + overlap))
        self._cached.pop(old.id, None)
        return new, text

    async def revoke_key(self, key_id: str) -> None:
        if not await self._store.revoke(key_id, datetime.now(UTC)):
            raise _no_key(key_id)
        self._cached.pop(key_id, None)

    async def tidy(self) -> None:
        """What is to be done now and then, and never by a request."""
        await self._limiter.prune(time.time())
        await self._flush_used()

    async def _flush_used(self) -> None:
        """Write down when keys were last used."""
        used, self._used = self._used, {}
        try:
            await self._store.mark_used(used)
        except Unavailable:
            self._used = used | self._used
            raise

    async def _find(self, key_id: str) -> ApiKey | None:
        now = time.monotonic()
        held = self._cached.get(key_id)
        if held is not None and now - held[0] < KEY_CACHE_SECONDS:
            return held[1]
        key = await self._store.get(key_id)
        if len(self._cached) >= KEY_CACHE_SIZE:
            self._cached.clear()
        self._cached[key_id] = (now, key)
        return key


def _no_key(key_id: str) -> NotFound:
    return NotFound(f"There is no working key '{key_id}'; `frontdesk keys list` shows them")
