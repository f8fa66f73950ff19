"""Checks credentials, identifies callers, limits their rate, and manages keys."""

import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

import structlog

from frontdesk.errors import (
    Conflict,
    FrontdeskError,
    Invalid,
    NotFound,
    RateLimited,
    Unauthenticated,
    Unavailable,
    UnknownAgent,
)
from frontdesk.identity import keys, rights
from frontdesk.identity.authority import Authority, limit_caller
from frontdesk.identity.inbound import IdentityPolicy, check_agent_id, is_user_id, resolve_caller, trace_refusal
from frontdesk.identity.key_service import KEY_CACHE_SECONDS, KeyChecker, PersonalKeys, RecentCache, rotate_key
from frontdesk.identity.keys import ApiKey
from frontdesk.identity.mcp_sessions import McpSessionTokens
from frontdesk.identity.model import (
    ACCESS_PREFIX,
    ANY_AGENT,
    Caller,
    Credential,
    Profile,
    ProvenPerson,
    RefusalTrace,
    Signals,
)
from frontdesk.identity.oauth_server import AuthorizationServer
from frontdesk.identity.rates import RateLimiter
from frontdesk.identity.store import KeyStore, McpSessionStore
from frontdesk.identity.tokens import INVALID_TOKEN, TokenVerifier, profile_of_claims, unverified_claims

NAME_LENGTH = 200
# How often expired logins and sessions are deleted. Housekeeping itself runs every few seconds.
PRUNE_SECONDS = 600

log = structlog.get_logger("frontdesk.identity")


@dataclass(frozen=True, slots=True)
class AgentLookup:
    """What identity needs from the agents' host.

    `exists` returns whether there is such an agent, `only_agent` the id if there is exactly one, and `turn_authority`
    the rights of the turn that an agent is taking now: the agent itself may be the caller.
    """

    exists: Callable[[str], Awaitable[bool]]
    only_agent: Callable[[], Awaitable[str | None]]
    turn_authority: Callable[[str], Awaitable[Authority]]


class Identity:
    """Identifies callers. It caches keys for a moment, but never callers."""

    def __init__(
        self,
        policy: IdentityPolicy,
        store: KeyStore,
        tokens: TokenVerifier,
        limiter: RateLimiter,
        agents: AgentLookup,
        *,
        oauth: AuthorizationServer,
        sealed: McpSessionStore,
        log_sources: bool = False,
    ) -> None:
        self.policy = policy
        self.oauth = oauth
        self.sessions = McpSessionTokens(sealed, self.authenticate)
        self.own_keys = PersonalKeys(store, self._forget_key)
        self._store = store
        self._keyring = KeyChecker(store)
        self._tokens = tokens
        self._limiter = limiter
        self._agents = agents
        self._any_made = RecentCache[None, bool](KEY_CACHE_SECONDS, 1)
        self._log_sources = log_sources
        self._pruned_at = -float("inf")

    async def authenticate(self, text: str) -> Credential:
        """The credential that a key or token proves. Raises `Unauthenticated`."""
        if not text.isascii():
            raise Unauthenticated(INVALID_TOKEN)
        if text.startswith(keys.KEY_PREFIXES):
            return await self._keyring.check(text)
        if text.startswith(ACCESS_PREFIX):
            return self.oauth.credential(await self.oauth.check(text))
        return await self._tokens.verify(text, datetime.now(UTC), time.monotonic())

    async def prove(self, text: str) -> ProvenPerson:
        """The person who logs in with a key or a token. Tokens that a client got by an earlier login do not count."""
        credential = await self.authenticate(text)
        if credential.user_id is None or text.startswith(ACCESS_PREFIX):
            raise Unauthenticated("This key or token belongs to no person; use one that was created for you")
        return ProvenPerson(credential, credential.user_id, await self.profile(text))

    async def profile(self, text: str) -> Profile:
        """The name and email address in a valid token. A key has none."""
        if text.startswith(ACCESS_PREFIX):
            return (await self.oauth.check(text)).profile
        return Profile() if text.startswith(keys.KEY_PREFIXES) else profile_of_claims(unverified_claims(text))

    async def identify(self, signals: Signals) -> Caller:
        """The caller of this request. Raises `RateLimited` if the caller exceeds its rate."""
        try:
            caller = resolve_caller(signals, self.policy)
            if caller.agent_id is None and self.policy.single_agent_fallback:
                caller = resolve_caller(signals, self.policy, await self._agents.only_agent())
            if rights.is_operator(caller) and await self._demands_proof():
                caller = replace(caller, anonymous=True)
            if caller.agent_id is not None and rights.names_agent(caller):
                bound = await self._agents.turn_authority(caller.agent_id)
                caller = replace(limit_caller(caller, bound), verified=caller.verified)
            # The rate is checked first, because asking the agent host is expensive and anybody could cause it.
            try:
                await self._limiter.admit(caller, time.time())
            except RateLimited as error:
                error.trace = RefusalTrace(caller, trace_refusal(signals).claimed)
                raise
            if self.policy.strict and caller.agent_id is not None and not await self._agents.exists(caller.agent_id):
                raise UnknownAgent(caller.agent_id)
        except FrontdeskError as error:
            error.trace = error.trace or trace_refusal(signals)
            raise
        if self._log_sources:
            log.info(
                "agent_id_source",
                agent_id=caller.agent_id,
                source=caller.source,
                request_id=caller.request_id,
            )
        return caller

    def require_agent(self, caller: Caller) -> None:
        """Raise an error for a call that needs an agent and names none."""
        if caller.agent_id is None and self.policy.require_agent:
            raise rights.missing_agent_error(caller)

    async def _demands_proof(self) -> bool:
        """Whether keys or logins are set up, so that a caller without a credential is anonymous."""
        if self.policy.logs_in:
            return True
        try:
            return await self._any_made.get_or_load(None, self._store.any_made)
        except Unavailable:
            return True

    def whoami(self, caller: Caller) -> Caller:
        """The resolved caller. A proven person needs no agent."""
        rights.require_scope(caller, rights.IDENTITY_READ)
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
        replaces: str | None = None,
    ) -> tuple[ApiKey, str]:
        """A new key and its text, which is shown only once. `replaces` is the id of a key that will expire."""
        if agent_id is None and user_id is None:
            raise Invalid("A key needs someone to speak for: give an agent, a user, or both")
        if agent_id not in (None, ANY_AGENT):
            check_agent_id(agent_id)
        _check_key_fields(name, user_id, scopes)
        now = datetime.now(UTC)
        wanted = ApiKey("", b"", name, agent_id, user_id, scopes, now, keys.expiry(now, lifetime), replaces=replaces)
        key, text = keys.with_new_secret(wanted)
        await self._store.add(key)
        self._any_made.clear()
        return key, text

    async def import_key(
        self, text: str, *, hashed: bool, user_id: str, name: str, scopes: frozenset[str] | None
    ) -> ApiKey:
        """Import a key that was issued elsewhere, as text or as its hash."""
        digest, preview = keys.hash_imported_key(text, hashed=hashed)
        key_id = keys.key_id_of_hash(digest)
        _check_key_fields(name, user_id, scopes)
        if await self._store.get(key_id) is not None:
            raise Conflict(f"This key is known already, as '{key_id}'")
        key = ApiKey(
            key_id,
            digest,
            name or f"imported {key_id}",
            None,
            user_id,
            scopes or frozenset(rights.DEFAULT_KEY_SCOPES),
            datetime.now(UTC),
            own=True,
            preview=preview,
        )
        await self._store.add(key)
        self._forget_key(key_id)
        return key

    async def first_key(self) -> tuple[ApiKey, str] | None:
        """A key for the local person, if there never was any key."""
        if not await self._store.is_empty():
            return None
        now = datetime.now(UTC)
        wanted = ApiKey("", b"", keys.FIRST_KEY_NAME, None, keys.LOCAL_USER, None, now, own=True)
        key, text = keys.with_new_secret(wanted)
        try:
            await self._store.add(key)
        except Conflict:
            # Another process started at the same moment and created it.
            return None
        return key, text

    async def rotate_key(self, key_id: str, overlap: timedelta) -> tuple[ApiKey, str]:
        """A new key with the same rights. The old key works for `overlap` longer, or until it expires if sooner."""
        old = await self._store.get(key_id)
        if old is None or not old.works_at(datetime.now(UTC)):
            raise _no_working_key(key_id)
        made = await rotate_key(self._store, old, overlap)
        self._forget_key(key_id)
        return made

    async def revoke_key(self, key_id: str) -> None:
        if not await self._store.revoke(key_id, datetime.now(UTC)):
            raise _no_working_key(key_id)
        self._forget_key(key_id)

    async def expire_replaced_key(self, key_id: str) -> None:
        """Let a key expire after another was created in its place."""
        await self._store.expire(key_id, datetime.now(UTC))
        self._forget_key(key_id)

    async def run_housekeeping(self) -> None:
        """Do the regular work that no request does."""
        await self._limiter.prune(time.time())
        await self._keyring.save_last_used()
        if time.monotonic() - self._pruned_at > PRUNE_SECONDS:
            self._pruned_at = time.monotonic()
            await self.oauth.prune()
            await self.sessions.prune()

    def _forget_key(self, key_id: str) -> None:
        """Drop a changed key, and tokens that may rest on it, from the caches."""
        self._keyring.drop(key_id)
        self._any_made.clear()
        self.oauth.clear_cache()


def _check_key_fields(name: str, user_id: str | None, scopes: frozenset[str] | None) -> None:
    if user_id is not None and not is_user_id(user_id):
        raise Invalid("A user id is printable text of at most 200 characters")
    if len(name) > NAME_LENGTH:
        raise Invalid(f"A key's name has at most {NAME_LENGTH} characters")
    for scope in scopes or ():
        if scope not in rights.SCOPES:
            raise Invalid(f"There is no scope '{scope}'; there are: {', '.join(rights.SCOPES)}")


def _no_working_key(key_id: str) -> NotFound:
    return NotFound(f"There is no working key '{key_id}'; `frontdesk keys list` shows them")
