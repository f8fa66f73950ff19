"""Keeps a person's token for an MCP session, encrypted with the session's id.

A session acts for at most one person. When one of its calls carries a person's token, the session is closed: it keeps
no token, and only calls that carry a token are answered.
"""

import hashlib
import hmac
import re
import secrets
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta

from joserfc import jwe
from joserfc.errors import JoseError
from joserfc.jwk import OctKey

from frontdesk.errors import Conflict, Invalid, Unauthenticated
from frontdesk.identity.model import Credential
from frontdesk.identity.store import McpSessionStore
from frontdesk.identity.tokens import unverified_claims

SESSION_ID_PATTERN = re.compile(r"[0-9a-f]{64}")
# The seconds since 1970 in hexadecimal, until the year 2106.
TIME_DIGITS = 8
SEAL_HEADER = {"alg": "dir", "enc": "A256GCM"}
# Differs from the derivation of the hash that is stored in the database.
TOKEN_PURPOSE = b"frontdesk: the token of an MCP session"
PERSON_PURPOSE = b"frontdesk: the person of an MCP session: "


def new_session_id(now: datetime) -> str:
    """A new id: the time when the session began, and 224 random bits."""
    return f"{int(now.timestamp()):0{TIME_DIGITS}x}{secrets.token_hex(28)}"


def session_start(session_id: str) -> datetime:
    """The time when the session began, from its id."""
    return datetime.fromtimestamp(int(session_id[:TIME_DIGITS], 16), UTC)


def hash_session_id(session_id: str) -> bytes:
    return hashlib.sha256(session_id.encode()).digest()


def hash_session_person(session_id: str, user_id: str) -> bytes:
    """Identifies a person within a session. The hash is meaningless without the session's id."""
    return hmac.digest(session_id.encode(), PERSON_PURPOSE + user_id.encode(), "sha256")


def seal_token(session_id: str, token: str) -> str:
    return jwe.encrypt_compact(SEAL_HEADER, token.encode(), _sealing_key(session_id))


def unseal_token(session_id: str, sealed: str) -> str | None:
    """The token; None if it was changed, or encrypted for another id."""
    try:
        found = jwe.decrypt_compact(sealed, _sealing_key(session_id)).plaintext
    except JoseError:
        return None
    return None if found is None else found.decode()


def _sealing_key(session_id: str) -> OctKey:
    return OctKey.import_key(hmac.digest(session_id.encode(), TOKEN_PURPOSE, "sha256"))


# How long a token is kept. The session lasts longer: a client may log in again.
TOKEN_LIFETIME = timedelta(hours=24)
# How long a session is remembered. Its id is rejected after that, so a closed session cannot be reopened.
SESSION_LIFETIME = timedelta(days=30)
# The largest expected difference between the clocks of replicas.
MAX_CLOCK_SKEW = timedelta(hours=1)
NO_PERSON = "This token names no person; send one that was issued to somebody"
NO_SESSION = (
    "There is no session that could keep a token, or it has ended: open one at /mcp/memory, or send the token with "
    "every request"
)
SESSION_CLOSED = (
    "This session acts for nobody by itself: tokens of people came with its calls, or another person's was left in "
    "it. Nothing was kept. Send the token with every request, or open a session for this person alone"
)


class McpSessionTokens:
    """Tokens of MCP sessions. Nothing is kept in memory, so any replica can serve any session."""

    def __init__(self, store: McpSessionStore, authenticate: Callable[[str], Awaitable[Credential]]) -> None:
        self._store = store
        self._authenticate = authenticate

    @staticmethod
    def new_id() -> str:
        """A new session id. Nothing is stored for it until a token is."""
        return new_session_id(datetime.now(UTC))

    async def remember(self, session_id: str | None, token: str) -> Credential:
        """Store a person's token for a session, if the token is valid. It is checked again at every use.

        Raises `Conflict` if the session has acted for another person, or its calls carried tokens.
        """
        now = datetime.now(UTC)
        ends = _session_end(session_id, now)
        if session_id is None or ends is None:
            raise Invalid(NO_SESSION)
        credential = await self._authenticate(token)
        if credential.user_id is None:
            raise Unauthenticated(NO_PERSON)
        person, sealed = hash_session_person(session_id, credential.user_id), seal_token(session_id, token)
        if not await self._store.put(hash_session_id(session_id), person, sealed, _token_end(token, now), ends):
            raise Conflict(SESSION_CLOSED)
        return credential

    async def recall(self, session_id: str | None) -> str | None:
        """The token that is stored for this session, unchecked."""
        now = datetime.now(UTC)
        if session_id is None or _session_end(session_id, now) is None:
            return None
        sealed = await self._store.get(hash_session_id(session_id), now)
        return None if sealed is None else unseal_token(session_id, sealed)

    async def note_token(self, session_id: str | None, *, proven: bool) -> None:
        """Close the session, because one of its calls carried a person's token or an invalid token.

        An invalid token, which anybody can send, closes only a session that is already known.
        """
        ends = _session_end(session_id, datetime.now(UTC))
        if session_id is None or ends is None:
            return
        known = hash_session_id(session_id)
        if not proven:
            await self._store.close_known(known)
        elif not await self._store.is_closed(known):
            await self._store.close(known, ends)

    async def forget(self, session_id: str) -> None:
        """Delete the token. The session stays bound to its person."""
        await self._store.remove(hash_session_id(session_id))

    async def prune(self) -> None:
        await self._store.prune(datetime.now(UTC))


def _session_end(session_id: str | None, now: datetime) -> datetime | None:
    """When a session ends. None for an invalid id, and for a session that has ended."""
    if session_id is None or not SESSION_ID_PATTERN.fullmatch(session_id):
        return None
    begun = session_start(session_id)
    return begun + SESSION_LIFETIME if begun - MAX_CLOCK_SKEW <= now < begun + SESSION_LIFETIME else None


def _token_end(token: str, now: datetime) -> datetime:
    """When the token expires, or in a day if that is sooner."""
    expires = unverified_claims(token).get("exp")
    day = TOKEN_LIFETIME.total_seconds()
    left = expires - now.timestamp() if isinstance(expires, int | float) else day
    return now + timedelta(seconds=max(0.0, min(day, left)))
