"""The public keys of one issuer: fetched once, kept a while, fetched again when a new key id turns up."""

from collections.abc import Mapping
from typing import cast

import anyio
import httpx2
import structlog
from joserfc.errors import JoseError
from joserfc.jwk import JWKRegistry, Key, KeySet, OctKey

from frontdesk.errors import Unavailable
from frontdesk.identity.documents import TROUBLES, address, described, read_document
from frontdesk.settings import Issuer

FRESH_SECONDS = 600
# A stranger's token with a made-up key id must not make us fetch at will.
REFETCH_SECONDS = 10
STALE_SECONDS = 86_400
FETCH_SECONDS = 5
TOTAL_SECONDS = 10
# Issuers publish a handful; each costs some time to read.
MOST_KEYS = 500

log = structlog.get_logger("frontdesk.identity")


class Jwks:
    """One issuer's key set; `now` is monotonic seconds."""

    def __init__(self, issuer: Issuer, client: httpx2.AsyncClient) -> None:
        self._issuer = issuer
        self._client = client
        self._lock = anyio.Lock()
        self._keys: KeySet | None = None
        self._tried_at = -float("inf")
        self._fetched_at = -float("inf")

    async def keys(self, key_id: str | None, now: float) -> KeySet:
        """The key set, with `key_id` in it if the issuer has published it."""
        if not self._is_current(key_id, now):
            async with self._lock:
                if not self._is_current(key_id, now):
                    await self._refresh(now)
        if self._keys is None or now - self._fetched_at > STALE_SECONDS:
            raise Unavailable(f"The keys of issuer {self._issuer.issuer} cannot be fetched; try again shortly")
        return self._keys

    def _is_current(self, key_id: str | None, now: float) -> bool:
        if now - self._tried_at < REFETCH_SECONDS:
            return True
        if self._keys is None or now - self._fetched_at > FRESH_SECONDS:
            return False
        return key_id is None or any(key.kid == key_id for key in self._keys.keys)

    async def _refresh(self, now: float) -> None:
        self._tried_at = now
        try:
            # The client's own limit is for each read, and every token of this issuer waits here.
            with anyio.fail_after(TOTAL_SECONDS):
                self._keys = self._usable(await self._fetch())
            self._fetched_at = now
        except TROUBLES as error:
            log.warning("jwks_fetch_failed", issuer=self._issuer.issuer, error=type(error).__name__)

    async def _fetch(self) -> Mapping[str, object]:
        found = await read_document(self._client, self._issuer.jwks_url or await self._discover())
        if found is None:
            raise ValueError("the address of the keys does not give them")
        return found

    async def _discover(self) -> str:
        return address((await described(self._client, self._issuer.issuer)).get("jwks_uri"))

    def _usable(self, document: Mapping[str, object]) -> KeySet:
        """The keys that can verify something; those of a kind we do not know are passed over, as RFC 7517 wants."""
        listed = document.get("keys")
        if not isinstance(listed, list):
            raise TypeError("no list of keys")
        found = cast("list[object]", listed)
        if len(found) > MOST_KEYS:
            raise ValueError(f"more than {MOST_KEYS} keys")
        keys = [key for key in map(_key, found) if key is not None]
        if len(keys) < len(found):
            log.warning("jwks_keys_passed_over", issuer=self._issuer.issuer, count=len(found) - len(keys))
        if not keys:
            raise ValueError("no key that can be used")
        return KeySet(keys)


def _key(said: object) -> Key | None:
    """A key as it was published, or None for what is none."""
    published = cast("dict[str, str | list[str]]", said) if isinstance(said, dict) else {}
    # A symmetric key in a public document is no secret, and must never verify anything.
    if not published or published.get("kty") == OctKey.key_type:
        return None
    try:
        key = JWKRegistry.import_key(published)
        # The set asks each key for its id, which for one without is computed.
        key.ensure_kid()
    except (JoseError, ValueError, TypeError, LookupError, AttributeError, ArithmeticError):
        return None
    return key
