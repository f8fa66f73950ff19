"""Tokens of sessions: remembered, recalled and forgotten by the session's id, which nobody else has.

A session acts for one person at most. Once a person's token came with any of its calls, it is closed: it keeps no
token, and only calls that carry one are answered.
"""

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta

from frontdesk.errors import Conflict, Invalid, Unauthenticated
from frontdesk.identity.model import Credential
from frontdesk.identity.sessions.sealing import (
    SESSION_ID,
    begun_at,
    id_hash,
    new_session_id,
    person_hash,
    seal,
    unseal,
)
from frontdesk.identity.sessions.store import SealedStore
from frontdesk.identity.tokens import unverified_claims

# How long a token is kept. A session itself goes on for longer: a client may leave a new token.
LIFETIME = timedelta(hours=24)
# What is known of a session is kept until its id is of no use: nothing that was seen in it is ever forgotten before.
SESSION_LIFETIME = timedelta(days=30)
# By how much clocks of replicas may differ.
CLOCKS = timedelta(hours=1)
NO_PERSON = "This token names no person; send one that was issued to somebody"
NO_SESSION = (
    "There is no session to keep a token in, or it is over: open one at /mcp/memory, or send the token with every "
    "request"
)
CLOSED = (
    "This session acts for nobody by itself: tokens of people came with its calls, or another person's was left in "
    "it. Nothing was kept. Send the token with every request, or open a session for this person alone"
)


class Sessions:
    """Nothing of them is in memory: whichever replica is asked, the id opens the token, or nothing does."""

    def __init__(self, store: SealedStore, authenticate: Callable[[str], Awaitable[Credential]]) -> None:
        self._store = store
        self._authenticate = authenticate

    @staticmethod
    def begin() -> str:
        """A new session id. Nothing is kept of it until there is a token."""
        return new_session_id(datetime.now(UTC))

    async def remember(self, session_id: str | None, token: str) -> Credential:
        """Keep a person's token for a session, if it holds now; it is checked anew whenever it is used.

        `Conflict` where the session has acted for somebody else, or tokens came with its calls.
        """
        now = datetime.now(UTC)
        ends = _end(session_id, now)
        if session_id is None or ends is None:
            raise Invalid(NO_SESSION)
        credential = await self._authenticate(token)
        if credential.user_id is None:
            raise Unauthenticated(NO_PERSON)
        person, sealed = person_hash(session_id, credential.user_id), seal(session_id, token)
        if not await self._store.put(id_hash(session_id), person, sealed, _end_of_token(token, now), ends):
            raise Conflict(CLOSED)
        return credential

    async def recall(self, session_id: str | None) -> str | None:
        """The token that was left for this session, unchecked."""
        now = datetime.now(UTC)
        if session_id is None or _end(session_id, now) is None:
            return None
        sealed = await self._store.get(id_hash(session_id), now)
        return None if sealed is None else unseal(session_id, sealed)

    async def token_came(self, session_id: str | None, *, proven: bool) -> None:
        """A call of this session carried a token of a person, or one that does not hold: it is closed from now on.

        What does not hold closes only a session of which something is known, since anybody can send that.
        """
        ends = _end(session_id, datetime.now(UTC))
        if session_id is None or ends is None:
            return
        known = id_hash(session_id)
        if not proven:
            await self._store.close_known(known)
        elif not await self._store.is_closed(known):
            await self._store.close(known, ends)

    async def forget(self, session_id: str) -> None:
        """Forget the token; the session is still this one person's."""
        await self._store.remove(id_hash(session_id))

    async def prune(self) -> None:
        await self._store.prune(datetime.now(UTC))


def _end(session_id: str | None, now: datetime) -> datetime | None:
    """When a session ends; None for what is no session's id, and for one that is over."""
    if session_id is None or not SESSION_ID.fullmatch(session_id):
        return None
    begun = begun_at(session_id)
    return begun + SESSION_LIFETIME if begun - CLOCKS <= now < begun + SESSION_LIFETIME else None


def _end_of_token(token: str, now: datetime) -> datetime:
    """When it is of no use any more: after a day, or when the token says so."""
    expires = unverified_claims(token).get("exp")
    day = LIFETIME.total_seconds()
    left = expires - now.timestamp() if isinstance(expires, int | float) else day
    return now + timedelta(seconds=max(0.0, min(day, left)))
