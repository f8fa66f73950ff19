"""Tokens of sessions: remembered, recalled and forgotten by the session's id, which nobody else has."""

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta

from frontdesk.errors import Invalid, Unauthenticated
from frontdesk.identity.model import Credential
from frontdesk.identity.sessions.sealing import SESSION_ID, id_hash, new_session_id, seal, unseal
from frontdesk.identity.sessions.store import SealedStore
from frontdesk.identity.tokens import unverified_claims

LIFETIME = timedelta(hours=24)
NO_PERSON = "This token names no person; send one that was issued to somebody"
NO_SESSION = "There is no session to keep a token in: open one at /mcp/memory, or send the token with every request"


class Sessions:
    """Nothing of them is in memory: whichever replica is asked, the id opens the token, or nothing does."""

    def __init__(self, store: SealedStore, authenticate: Callable[[str], Awaitable[Credential]]) -> None:
        self._store = store
        self._authenticate = authenticate

    @staticmethod
    def begin() -> str:
        """A new session id. Nothing is kept of it until there is a token."""
        return new_session_id()

    async def remember(self, session_id: str | None, token: str) -> Credential:
        """Keep a person's token for a session, if it holds now; it is checked anew whenever it is used."""
        if session_id is None or not SESSION_ID.fullmatch(session_id):
            raise Invalid(NO_SESSION)
        credential = await self._authenticate(token)
        if credential.user_id is None:
            raise Unauthenticated(NO_PERSON)
        now = datetime.now(UTC)
        await self._store.put(id_hash(session_id), seal(session_id, token), _end(token, now))
        return credential

    async def recall(self, session_id: str | None) -> str | None:
        """The token that was left for this session, unchecked."""
        if session_id is None or not SESSION_ID.fullmatch(session_id):
            return None
        sealed = await self._store.get(id_hash(session_id), datetime.now(UTC))
        return None if sealed is None else unseal(session_id, sealed)

    async def forget(self, session_id: str) -> None:
        await self._store.remove(id_hash(session_id))

    async def prune(self) -> None:
        await self._store.prune(datetime.now(UTC))


def _end(token: str, now: datetime) -> datetime:
    """When it is of no use any more: after a day, or when the token says so."""
    expires = unverified_claims(token).get("exp")
    day = LIFETIME.total_seconds()
    left = expires - now.timestamp() if isinstance(expires, int | float) else day
    return now + timedelta(seconds=max(0.0, min(day, left)))
