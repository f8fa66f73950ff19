"""Verifies JWTs of the configured issuers and reads their claims."""

import base64
import binascii
import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import cast
from urllib.parse import urlsplit

import anyio
import httpx2
import structlog
from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import JWKRegistry, Key, KeySet, OctKey

from frontdesk.errors import Unauthenticated, Unavailable
from frontdesk.identity.inbound import is_user_id
from frontdesk.identity.model import TOKEN_CREDENTIAL_PREFIX, Credential, Profile
from frontdesk.settings import Issuer
from frontdesk.settings.model import AGENT_ID_PATTERN

# Key sets and metadata documents usually have a few thousand bytes.
MAX_DOCUMENT_BYTES = 1024 * 1024
METADATA_NAMES = ("openid-configuration", "oauth-authorization-server")
# The errors of a request to an issuer, and of parsing its documents.
ISSUER_ERRORS = (
    httpx2.HTTPError,
    httpx2.InvalidURL,
    JoseError,
    OSError,
    ValueError,
    LookupError,
    TypeError,
    ArithmeticError,
)


async def fetch_metadata(client: httpx2.AsyncClient, issuer: str) -> Mapping[str, object]:
    """An issuer's metadata document. Raises ValueError if there is none."""
    for name in METADATA_NAMES:
        found = await fetch_document(client, f"{issuer.rstrip('/')}/.well-known/{name}")
        if found is not None:
            return found
    raise ValueError(f"{issuer} does not describe itself")


async def fetch_document(client: httpx2.AsyncClient, url: str) -> Mapping[str, object] | None:
    """The JSON object at an address, or None if there is none."""
    async with client.stream("GET", url) as response:
        return await read_json_object(response) if response.is_success else None


def check_address(value: object) -> str:
    """An address from a document, if a request can be sent to it."""
    if not isinstance(value, str):
        raise TypeError("an address that is no text")
    url = urlsplit(value)
    # Reading the port checks it.
    if url.scheme not in ("http", "https") or not url.hostname or (url.port is not None and url.port == 0):
        raise ValueError("an address that cannot be asked")
    return value


async def read_json_object(response: httpx2.Response) -> Mapping[str, object]:
    """The JSON object of a response, read only up to the size limit."""
    body = bytearray()
    async for piece in response.aiter_bytes():
        body += piece
        if len(body) > MAX_DOCUMENT_BYTES:
            raise ValueError(f"larger than {MAX_DOCUMENT_BYTES} bytes")
    try:
        found: object = json.loads(body)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
    if not isinstance(found, dict):
        raise TypeError("not a JSON object")
    return cast("dict[str, object]", found)


FRESH_SECONDS = 600
# Tokens with invented key ids must not cause a request each.
REFETCH_SECONDS = 10
STALE_SECONDS = 86_400
FETCH_SECONDS = 5
TOTAL_SECONDS = 10
# Issuers publish few keys, and each takes time to parse.
MAX_KEYS = 500

log = structlog.get_logger("frontdesk.identity")


class IssuerKeys:
    """One issuer's key set. `now` is in monotonic seconds."""

    def __init__(self, issuer: Issuer, client: httpx2.AsyncClient) -> None:
        self._issuer = issuer
        self._client = client
        self._lock = anyio.Lock()
        self._keys: KeySet | None = None
        self._tried_at = -float("inf")
        self._fetched_at = -float("inf")

    async def keys(self, key_id: str | None, now: float) -> KeySet:
        """The key set, which includes `key_id` if the issuer has published that key."""
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
            # The client's own timeout applies to each read, and every token of this issuer waits here.
            with anyio.fail_after(TOTAL_SECONDS):
                self._keys = self._usable(await self._fetch())
            self._fetched_at = now
        except ISSUER_ERRORS as error:
            log.warning("jwks_fetch_failed", issuer=self._issuer.issuer, error=type(error).__name__)

    async def _fetch(self) -> Mapping[str, object]:
        found = await fetch_document(self._client, self._issuer.jwks_url or await self._discover())
        if found is None:
            raise ValueError("the address of the keys does not give them")
        return found

    async def _discover(self) -> str:
        return check_address((await fetch_metadata(self._client, self._issuer.issuer)).get("jwks_uri"))

    def _usable(self, document: Mapping[str, object]) -> KeySet:
        """The keys that can verify tokens. Keys of unknown kinds are skipped (RFC 7517)."""
        listed = document.get("keys")
        if not isinstance(listed, list):
            raise TypeError("no list of keys")
        found = cast("list[object]", listed)
        if len(found) > MAX_KEYS:
            raise ValueError(f"more than {MAX_KEYS} keys")
        keys = [key for key in map(_import_key, found) if key is not None]
        if len(keys) < len(found):
            log.warning("jwks_keys_passed_over", issuer=self._issuer.issuer, count=len(found) - len(keys))
        if not keys:
            raise ValueError("no key that can be used")
        return KeySet(keys)


def _import_key(value: object) -> Key | None:
    """A published key, or None if it is not usable."""
    published = cast("dict[str, str | list[str]]", value) if isinstance(value, dict) else {}
    # A symmetric key in a public document is no secret, and must never verify anything.
    if not published or published.get("kty") == OctKey.key_type:
        return None
    try:
        key = JWKRegistry.import_key(published)
        # The set asks each key for its id, and computes it for keys without one.
        key.ensure_kid()
    except (JoseError, ValueError, TypeError, LookupError, AttributeError, ArithmeticError):
        return None
    return key


Claims = Mapping[str, object]
MAX_PROFILE_LENGTH = 320


def credential_of_claims(claims: Claims, issuer: Issuer) -> Credential:
    """`sub` is the user; the outermost `act.sub`, or else the client, is the agent. Both get the issuer's prefix."""
    client = _claim_text(claims, "azp") or _claim_text(claims, "appid" if issuer.claims == "entra" else "client_id")
    user = _entra_user_id(claims) if issuer.claims == "entra" else _claim_text(claims, "sub")
    return Credential(
        id=f"{TOKEN_CREDENTIAL_PREFIX}{issuer.issuer}",
        agent_id=_actor_agent_id(claims, issuer.prefix) or _prefixed_agent_id(client, issuer.prefix),
        # A client that acts for itself (client credentials) is its own subject, and there is no user.
        user_id=None if user == client else _prefixed_user_id(user, issuer.prefix),
        scopes=_scopes_of_claims(claims),
    )


def profile_of_claims(claims: Claims) -> Profile:
    """The name and email address in a token. Supabase stores the name elsewhere in the token."""
    inner = claims.get("user_metadata")
    more: Claims = cast("Claims", inner) if isinstance(inner, Mapping) else {}
    name = _claim_text(claims, "name") or _claim_text(more, "full_name") or _claim_text(more, "name")
    return Profile(_shown_text(_claim_text(claims, "email") or _claim_text(more, "email")), _shown_text(name))


def _shown_text(text: str | None) -> str | None:
    return text if text and len(text) <= MAX_PROFILE_LENGTH and text.isprintable() else None


def _actor_agent_id(claims: Claims, prefix: str) -> str | None:
    act = claims.get("act")
    actor = _claim_text(cast("Claims", act), "sub") if isinstance(act, Mapping) else None
    agent = _prefixed_agent_id(actor, prefix)
    if actor is not None and agent is None:
        raise Unauthenticated("The token's act.sub is not a valid agent id")
    return agent


def _prefixed_agent_id(name: str | None, prefix: str) -> str | None:
    return prefix + name if name and AGENT_ID_PATTERN.fullmatch(prefix + name) else None


def _prefixed_user_id(name: str | None, prefix: str) -> str | None:
    if name is not None and not is_user_id(prefix + name):
        raise Unauthenticated(
            "The token's subject cannot be a user id: those are printable, with at most 200 characters"
        )
    return name and prefix + name


def _entra_user_id(claims: Claims) -> str | None:
    # With Entra ID `sub` differs per application, and `oid` is the person. An app-only token has no person: `idtyp`
    # says so, or its subject equals its `oid` and it has no delegated scope.
    oneself = "scp" not in claims and _claim_text(claims, "oid") == _claim_text(claims, "sub")
    return None if claims.get("idtyp") == "app" or oneself else _claim_text(claims, "oid") or _claim_text(claims, "sub")


def _scopes_of_claims(claims: Claims) -> frozenset[str] | None:
    said = [claims[name] for name in ("scope", "scp", "roles") if name in claims]
    return frozenset(scope for value in said for scope in _list_words(value)) if said else None


def _list_words(value: object) -> list[str]:
    if isinstance(value, str):
        return value.split()
    return [word for word in cast("list[object]", value) if isinstance(word, str)] if isinstance(value, list) else []


def _claim_text(claims: Claims, name: str) -> str | None:
    value = claims.get(name)
    return value if isinstance(value, str) and value else None


LEEWAY_SECONDS = 30
MAX_TOKEN_LENGTH = 16_384
INVALID_TOKEN = "The token is not valid here; get a new one from an issuer that this server lists"  # noqa: S105


class TokenVerifier:
    """The trusted issuers, each with its keys. `resources` are the default audiences."""

    def __init__(self, issuers: Sequence[Issuer], resources: frozenset[str], headers: Mapping[str, str]) -> None:
        self._client = httpx2.AsyncClient(timeout=FETCH_SECONDS, follow_redirects=False, headers=headers)
        self._issuers = {issuer.issuer: (issuer, IssuerKeys(issuer, self._client)) for issuer in issuers}
        self._resources = resources

    async def verify(self, token: str, now: datetime, monotonic: float) -> Credential:
        """The credential that a token proves. Raises `Unauthenticated`, which does not say which check failed."""
        header, unproven = _decode_unverified(token)
        named = unproven.get("iss")
        known = self._issuers.get(named) if isinstance(named, str) else None
        # RFC 7515: tokens with unknown critical extensions must be refused, and we know none.
        if known is None or "crit" in header:
            raise Unauthenticated(INVALID_TOKEN)
        issuer, jwks = known
        key = await self._key(issuer, jwks, header.get("kid"), monotonic)
        try:
            decoded = jwt.decode(token, key, algorithms=list(issuer.algorithms))
        except (JoseError, ValueError, RecursionError) as error:
            raise Unauthenticated(INVALID_TOKEN) from error
        proven = cast("Mapping[str, object]", decoded.claims)
        _check_times(proven, now.timestamp())
        _check_audience(proven.get("aud"), frozenset(issuer.audience) or self._resources)
        return credential_of_claims(proven, issuer)

    async def close(self) -> None:
        await self._client.aclose()

    @staticmethod
    async def _key(issuer: Issuer, jwks: IssuerKeys, key_id: object, monotonic: float) -> KeySet | OctKey:
        if issuer.hs256_secret is not None:
            return OctKey.import_key(issuer.hs256_secret.get_secret_value())
        return await jwks.keys(key_id if isinstance(key_id, str) else None, monotonic)


def unverified_claims(token: str) -> Mapping[str, object]:
    """The unverified claims of a token: for labels on outbound calls, never for rights. Empty if it is not a JWT."""
    try:
        return _decode_unverified(token)[1]
    except Unauthenticated:
        return {}


def _decode_unverified(token: str) -> tuple[Mapping[str, object], Mapping[str, object]]:
    parts = token.split(".")
    if len(parts) != 3 or len(token) > MAX_TOKEN_LENGTH:
        raise Unauthenticated(INVALID_TOKEN)
    return _decode_part(parts[0]), _decode_part(parts[1])


def _decode_part(part: str) -> Mapping[str, object]:
    try:
        value = json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))
    except (binascii.Error, ValueError, RecursionError) as error:
        raise Unauthenticated(INVALID_TOKEN) from error
    if not isinstance(value, dict):
        raise Unauthenticated(INVALID_TOKEN)
    return cast("dict[str, object]", value)


def _check_times(claims: Mapping[str, object], now: float) -> None:
    expires, not_before = claims.get("exp"), claims.get("nbf", 0)
    # Compared in this direction because a NaN is neither before nor after any value.
    if not (isinstance(expires, int | float) and now <= expires + LEEWAY_SECONDS):
        raise Unauthenticated("The token has expired; get a new one")
    if not (isinstance(not_before, int | float) and now >= not_before - LEEWAY_SECONDS):
        raise Unauthenticated(INVALID_TOKEN)


def _check_audience(audience: object, accepted: frozenset[str]) -> None:
    named = cast("list[object]", audience) if isinstance(audience, list) else [audience]
    if not any(isinstance(name, str) and name.rstrip("/") in accepted for name in named):
        raise Unauthenticated(INVALID_TOKEN)
