"""Checks OAuth JWTs from configured issuers; the algorithm comes from the configuration, never from the token."""

import base64
import binascii
import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import cast

import httpx2
from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import KeySet, OctKey

from frontdesk.errors import Unauthenticated
from frontdesk.identity import claims as claim_names
from frontdesk.identity.jwks import FETCH_SECONDS, Jwks
from frontdesk.identity.model import Credential
from frontdesk.settings import Issuer

LEEWAY_SECONDS = 30
MAX_TOKEN_LENGTH = 16_384
INVALID = "The token is not valid here; get a new one from an issuer that this server lists"


class Tokens:
    """The issuers we trust, each with its keys. `resources` are the audiences we answer to by default."""

    def __init__(self, issuers: Sequence[Issuer], resources: frozenset[str], headers: Mapping[str, str]) -> None:
        self._client = httpx2.AsyncClient(timeout=FETCH_SECONDS, follow_redirects=False, headers=headers)
        self._issuers = {issuer.issuer: (issuer, Jwks(issuer, self._client)) for issuer in issuers}
        self._resources = resources

    async def verify(self, token: str, now: datetime, monotonic: float) -> Credential:
        """The credential that a token proves, or `Unauthenticated` without a word on which check failed."""
        header, unproven = _peek(token)
        named = unproven.get("iss")
        known = self._issuers.get(named) if isinstance(named, str) else None
        # RFC 7515: a token with a critical extension that one does not know must be refused, and we know none.
        if known is None or "crit" in header:
            raise Unauthenticated(INVALID)
        issuer, jwks = known
        key = await self._key(issuer, jwks, header.get("kid"), monotonic)
        try:
            decoded = jwt.decode(token, key, algorithms=list(issuer.algorithms))
        except (JoseError, ValueError, RecursionError) as error:
            raise Unauthenticated(INVALID) from error
        proven = cast("Mapping[str, object]", decoded.claims)
        _check_times(proven, now.timestamp())
        _check_audience(proven.get("aud"), frozenset(issuer.audience) or self._resources)
        return claim_names.credential(proven, issuer)

    async def close(self) -> None:
        await self._client.aclose()

    @staticmethod
    async def _key(issuer: Issuer, jwks: Jwks, key_id: object, monotonic: float) -> KeySet | OctKey:
        if issuer.hs256_secret is not None:
            return OctKey.import_key(issuer.hs256_secret.get_secret_value())
        return await jwks.keys(key_id if isinstance(key_id, str) else None, monotonic)


def unverified_claims(token: str) -> Mapping[str, object]:
    """What a token says, unproven: for labels on outbound calls, never for rights. Empty if it is no JWT."""
    try:
        return _peek(token)[1]
    except Unauthenticated:
        return {}


def _peek(token: str) -> tuple[Mapping[str, object], Mapping[str, object]]:
    parts = token.split(".")
    if len(parts) != 3 or len(token) > MAX_TOKEN_LENGTH:
        raise Unauthenticated(INVALID)
    return _decode(parts[0]), _decode(parts[1])


def _decode(part: str) -> Mapping[str, object]:
    try:
        value = json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))
    except (binascii.Error, ValueError, RecursionError) as error:
        raise Unauthenticated(INVALID) from error
    if not isinstance(value, dict):
        raise Unauthenticated(INVALID)
    return cast("dict[str, object]", value)


def _check_times(claims: Mapping[str, object], now: float) -> None:
    expires, not_before = claims.get("exp"), claims.get("nbf", 0)
    # Asked this way round, because a NaN is neither before nor after anything.
    if not (isinstance(expires, int | float) and now <= expires + LEEWAY_SECONDS):
        raise Unauthenticated("The token has expired; get a new one")
    if not (isinstance(not_before, int | float) and now >= not_before - LEEWAY_SECONDS):
        raise Unauthenticated(INVALID)


def _check_audience(audience: object, accepted: frozenset[str]) -> None:
    named = cast("list[object]", audience) if isinstance(audience, list) else [audience]
    if not any(isinstance(name, str) and name.rstrip("/") in accepted for name in named):
        raise Unauthenticated(INVALID)
