"""Keys as they are shown at a door: looked up, held for a moment, and their use noted."""

from datetime import UTC, datetime
from functools import partial

from frontdesk.errors import Unauthenticated, Unavailable
from frontdesk.identity import keys
from frontdesk.identity.keys import ApiKey
from frontdesk.identity.model import Credential
from frontdesk.identity.recent import Recent
from frontdesk.identity.store import KeyStore

# How long a key that was revoked elsewhere may still work here.
KEY_CACHE_SECONDS = 2.0
KEY_CACHE_SIZE = 10_000


class Keyring:
    """It keeps keys for a moment; what is changed here counts at once."""

    def __init__(self, store: KeyStore) -> None:
        self._store = store
        self._recent = Recent[str, ApiKey | None](KEY_CACHE_SECONDS, KEY_CACHE_SIZE)
        self._used: dict[str, datetime] = {}

    async def check(self, text: str) -> Credential:
        """The credential that a key proves, or `Unauthenticated`."""
        parsed = keys.parse(text)
        key = await self._recent.find(parsed[0], partial(self._store.get, parsed[0])) if parsed else None
        now = datetime.now(UTC)
        if parsed is None or key is None or not key.matches(parsed[1]) or not key.works_at(now):
            raise Unauthenticated("The API key is not valid: mistyped, expired or revoked")
        self._used[key.id] = now
        return key.credential

    def drop(self, key_id: str) -> None:
        """Look it up anew the next time it is shown."""
        self._recent.drop(key_id)

    async def write_down(self) -> None:
        """Note in the database when keys were last used."""
        used, self._used = self._used, {}
        try:
            await self._store.mark_used(used)
        except Unavailable:
            self._used = used | self._used
            raise
