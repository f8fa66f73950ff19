"""Where an issuer has people sign in and codes redeemed: read from its own description, and kept a while."""

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

import anyio
import httpx2
import structlog

from frontdesk.identity.documents import TROUBLES, address, described
from frontdesk.identity.jwks import FRESH_SECONDS, REFETCH_SECONDS, STALE_SECONDS, TOTAL_SECONDS
from frontdesk.settings import is_loopback

log = structlog.get_logger("frontdesk.identity")


@dataclass(frozen=True, slots=True)
class Counter:
    """An issuer's addresses for people and for codes, and how it wants a client's secret."""

    authorize: str
    redeem: str
    secret_in_form: bool


class Kept:
    """One issuer's counter. Anybody may ask for it, so that the issuer itself is asked now and then alone.

    `now` is monotonic seconds.
    """

    def __init__(self, issuer: str, client: httpx2.AsyncClient) -> None:
        self._issuer = issuer
        self._client = client
        self._lock = anyio.Lock()
        self._counter: Counter | None = None
        self._tried_at = -float("inf")
        self._fetched_at = -float("inf")

    async def find(self, now: float) -> Counter | None:
        """None while the issuer does not say; what it said of late holds meanwhile."""
        if not self._is_current(now):
            async with self._lock:
                if not self._is_current(now):
                    await self._refresh(now)
        return self._counter if now - self._fetched_at < STALE_SECONDS else None

    def _is_current(self, now: float) -> bool:
        return now - self._tried_at < REFETCH_SECONDS or now - self._fetched_at < FRESH_SECONDS

    async def _refresh(self, now: float) -> None:
        try:
            with anyio.fail_after(TOTAL_SECONDS):
                self._counter = counter_of(self._issuer, await described(self._client, self._issuer))
            self._fetched_at = now
        except TROUBLES as error:
            self._tried_at = now
            log.warning("sign_in_issuer_failed", issuer=self._issuer, error=type(error).__name__)


def counter_of(issuer: str, document: Mapping[str, object]) -> Counter:
    if str(document.get("issuer", "")).rstrip("/") != issuer.rstrip("/"):
        raise ValueError("the description is another issuer's")
    methods = document.get("token_endpoint_auth_methods_supported")
    in_form = isinstance(methods, list) and "client_secret_basic" not in methods and "client_secret_post" in methods
    return Counter(_safe(document["authorization_endpoint"]), _safe(document["token_endpoint"]), in_form)


def _safe(said: object) -> str:
    """An address that a browser may be sent to, or a secret: over TLS, or on this machine."""
    found = urlsplit(address(said))
    if found.scheme != "https" and not (found.scheme == "http" and is_loopback(found.hostname or "")):
        raise ValueError("an address that is neither https nor on this machine")
    return found._replace(fragment="").geturl()
