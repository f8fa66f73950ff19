"""Keeps a person's token for an MCP session, sealed with the session's id.

A session acts for one person at most. Once a person's token came with any of its calls, it is closed: it keeps no
token, and only calls that carry one are answered.
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
# Another derivation than the one whose result is in the database.
TOKEN_PURPOSE = b"frontdesk: the token of an MCP session"
PERSON_PURPOSE = b"frontdesk: the person of an MCP session: "


def new_session_id(now: datetime) -> str:
    """When the session began, and 224 random bits."""
    return f"{int(now.timestamp()):0{TIME_DIGITS}x}{secrets.token_hex(28)}"


def session_start(session_id: str) -> datetime:
    """When the session of an id of this form began."""
    return datetime.fromtimestamp(int(session_id[:TIME_DIGITS], 16), UTC)


def hash_session_id(session_id: str) -> bytes:
    return hashlib.sha256(session_id.encode()).digest()


def hash_session_person(session_id: str, user_id: str) -> bytes:
    """Tells one person of a session from another, and only to who has the session's id."""
    return hmac.digest(session_id.encode(), PERSON_PURPOSE + user_id.encode(), "sha256")


def seal_token(session_id: str, token: str) -> str:
    return jwe.encrypt_compact(SEAL_HEADER, token.encode(), _sealing_key(session_id))


def unseal_token(session_id: str, sealed: str) -> str | None:
    """The token; None where it was sealed for another id, or tampered with."""
    try:
        found = jwe.decrypt_compact(sealed, _sealing_key(session_id)).plaintext
    except JoseError:
        return None
    return None if found is None else found.decode()


def _sealing_key(session_id: str) -> OctKey:
    return OctKey.import_key(hmac.digest(session_id.encode(), TOKEN_PURPOSE, "sha256"))


# How long a token is kept. A session itself goes on for longer: a client may leave a new token.
TOKEN_LIFETIME = timedelta(hours=24)
# What is known of a session is kept until its id is of no use: nothing that was seen in it is ever forgotten before.
SESSION_LIFETIME = timedelta(days=30)
# By how much clocks of replicas may differ.
MAX_CLOCK_SKEW = timedelta(hours=1)
NO_PERSON = "This token names no person; send one that was issued to somebody"
NO_SESSION = (
    "There is no session to keep a token in, or it is over: open one at /mcp/memory, or send the token with every "
    "request"
)
SESSION_CLOSED = (
    "This session acts for nobody by itself: tokens of people came with its calls, or another person's was left in "
    "it. Nothing was kept. Send the token with every request, or open a session for this person alone"
)


class McpSessionTokens:
    """Nothing of them is in memory: whichever replica is asked, the id opens the token, or nothing does."""

    def __init__(self, store: McpSessionStore, authenticate: Callable[[str], Awaitable[Credential]]) -> None:
        self._store = store
        self._authenticate = authenticate

    @staticmethod
    def new_id() -> str:
        """A new session id. Nothing is kept of it until there is a token."""
        return new_session_id(datetime.now(UTC))

    async def remember(self, session_id: str | None, token: str) -> Credential:
        """Keep a person's token for a session, if it holds now; it is checked anew whenever it is used.

        `Conflict` where the session has acted for somebody else, or tokens came with its calls.
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
        """The token that was left for this session, unchecked."""
        now = datetime.now(UTC)
        if session_id is None or _session_end(session_id, now) is None:
            return None
        sealed = await self._store.get(hash_session_id(session_id), now)
        return None if sealed is None else unseal_token(session_id, sealed)

    async def note_token(self, session_id: str | None, *, proven: bool) -> None:
        """A call of this session carried a token of a person, or one that does not hold: it is closed from now on.

        What does not hold closes only a session of which something is known, since anybody can send that.
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
        """Forget the token; the session is still this one person's."""
        await self._store.remove(hash_session_id(session_id))

    async def prune(self) -> None:
        await self._store.prune(datetime.now(UTC))


def _session_end(session_id: str | None, now: datetime) -> datetime | None:
    """When a session ends; None for what is no session's id, and for one that is over."""
    if session_id is None or not SESSION_ID_PATTERN.fullmatch(session_id):
        return None
    begun = session_start(session_id)
    return begun + SESSION_LIFETIME if begun - MAX_CLOCK_SKEW <= now < begun + SESSION_LIFETIME else None


def _token_end(token: str, now: datetime) -> datetime:
    """When it is of no use any more: after a day, or when the token says so."""
    expires = unverified_claims(token).get("exp")
    day = TOKEN_LIFETIME.total_seconds()
    left = expires - now.timestamp() if isinstance(expires, int | float) else day
    return now + timedelta(seconds=max(0.0, min(day, left)))
