"""The public keys of one issuer: fetched once, kept a while, fetched again when a new key id turns up."""

from collections.abc import Mapping
from typing import cast

import anyio
import httpx2
import structlog
from joserfc.errors import JoseError
from joserfc.jwk import KeySet, KeySetSerialization

from frontdesk.errors import Unavailable
from frontdesk.identity.documents import described, read_document
from frontdesk.settings import Issuer

FRESH_SECONDS = 600
# A stranger's token with a made-up key id must not make us fetch at will.
REFETCH_SECONDS = 10
STALE_SECONDS = 86_400
FETCH_SECONDS = 5
TOTAL_SECONDS = 10

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
                self._keys = _asymmetric(await self._fetch())
            self._fetched_at = now
        except (httpx2.HTTPError, JoseError, TimeoutError, ValueError, KeyError, TypeError) as error:
            log.warning("jwks_fetch_failed", issuer=self._issuer.issuer, error=type(error).__name__)

    async def _fetch(self) -> Mapping[str, object]:
        found = await read_document(self._client, self._issuer.jwks_url or await self._discover())
        if found is None:
            raise ValueError("the address of the keys does not give them")
        return found

    async def _discover(self) -> str:
        return str((await described(self._client, self._issuer.issuer))["jwks_uri"])


def _asymmetric(document: Mapping[str, object]) -> KeySet:
    # A symmetric key in a public document is no secret, and must never verify anything.
    keys = [key for key in cast("list[dict[str, object]]", document["keys"]) if key.get("kty") != "oct"]
    return KeySet.import_key_set(cast("KeySetSerialization", {"keys": keys}))
