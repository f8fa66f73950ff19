"""Grants OAuth tokens: asks a person for consent, exchanges codes, and checks and revokes tokens."""

import base64
import hashlib
import hmac
import re
import secrets
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from urllib.parse import urlencode

from frontdesk.errors import ConfigurationError, LoginRefused, Unauthenticated
from frontdesk.identity import rights
from frontdesk.identity.key_service import KEY_CACHE_SECONDS, KEY_CACHE_SIZE, RecentCache
from frontdesk.identity.model import (
    ACCESS_PREFIX,
    CODE_LIFETIME,
    FIRST_ACCESS_LIFETIME,
    KEY_CREDENTIAL_PREFIX,
    REFRESH_LIFETIME,
    REFRESH_PREFIX,
    REFRESHED_ACCESS_LIFETIME,
    REQUEST_LIFETIME,
    TOKEN_CREDENTIAL_PREFIX,
    AccessToken,
    AuthorizationRequest,
    Credential,
    IssuedTokens,
    LoginGrant,
    LoginLink,
    NewToken,
    OAuthErrorCode,
    ProvenPerson,
    RegisteredClient,
    TokenKind,
)
from frontdesk.identity.rights import LOGIN_SCOPES, SCOPES
from frontdesk.identity.store import OAuthStore
from frontdesk.settings import OAuthClient, Settings

S256 = "S256"
CHALLENGE_PATTERN = re.compile(r"[A-Za-z0-9_-]{43}")
VERIFIER_PATTERN = re.compile(r"[A-Za-z0-9._~-]{43,128}")
MAX_STATE_LENGTH = 2000

OAuthParameters = Mapping[str, str]


def find_client(clients: Mapping[str, RegisteredClient], parameters: OAuthParameters) -> tuple[RegisteredClient, str]:
    """The client of a request, and its redirect URI. Both must be valid before anybody is redirected."""
    client_id, redirect_uri = parameters.get("client_id"), parameters.get("redirect_uri")
    if not client_id or not redirect_uri:
        raise LoginRefused(OAuthErrorCode.INVALID_REQUEST, "client_id and redirect_uri are both needed")
    client = clients.get(client_id)
    if client is None:
        raise LoginRefused(OAuthErrorCode.UNAUTHORIZED_CLIENT, "This client is not known here; see OAUTH_CLIENTS")
    if redirect_uri not in client.redirect_uris:
        raise LoginRefused(
            OAuthErrorCode.INVALID_REDIRECT_URI, "This redirect_uri is not among those of the client, letter by letter"
        )
    return client, redirect_uri


def parse_authorization(
    client: RegisteredClient, redirect_uri: str, parameters: OAuthParameters, usual: str, resources: frozenset[str]
) -> AuthorizationRequest:
    """The valid part of a client's request: at most the scopes that it may have, and only with a proof key (PKCE)."""
    state, challenge = parameters.get("state"), parameters.get("code_challenge", "")
    if parameters.get("code_challenge_method") != S256 or not CHALLENGE_PATTERN.fullmatch(challenge):
        raise LoginRefused(
            OAuthErrorCode.INVALID_REQUEST, "A code_challenge is needed, with code_challenge_method=S256 (RFC 7636)"
        )
    if len(state or "") > MAX_STATE_LENGTH:
        raise LoginRefused(OAuthErrorCode.INVALID_REQUEST, f"state has at most {MAX_STATE_LENGTH} characters")
    resource = parameters.get("resource")
    if resource is not None and resource.rstrip("/") not in resources:
        raise LoginRefused(OAuthErrorCode.INVALID_TARGET, "The resource is not one of this server's addresses")
    return AuthorizationRequest(
        client.id, redirect_uri, allowed_scopes(client, parameters.get("scope") or usual), challenge, state
    )


def allowed_scopes(client: RegisteredClient, scope: str) -> frozenset[str]:
    """The requested scopes that the client may have. Clients request every scope that a server lists."""
    scopes = frozenset(scope.split()) & client.scopes
    if not scopes:
        raise LoginRefused(OAuthErrorCode.INVALID_SCOPE, f"This client may ask for: {' '.join(sorted(client.scopes))}")
    return scopes


def proves_client(client: RegisteredClient, secret: str | None) -> bool:
    """Whether the caller proves to be this client. A client without a secret needs no proof."""
    if client.secret_sha256 is None:
        return True
    return secret is not None and hmac.compare_digest(client.secret_sha256, sha256_of(secret))


def verifier_fits(verifier: str, challenge: str) -> bool:
    """Whether the code is redeemed by the client that requested it."""
    return bool(VERIFIER_PATTERN.fullmatch(verifier)) and hmac.compare_digest(challenge_of(verifier), challenge)


def challenge_of(verifier: str) -> str:
    return base64.urlsafe_b64encode(sha256_of(verifier)).rstrip(b"=").decode()


def redirect_url(redirect_uri: str, issuer: str, state: str | None, **answer: str) -> str:
    """The address that leads a person back to the client, with the response parameters and our issuer (RFC 9207)."""
    told = {**answer, **({} if state is None else {"state": state}), "iss": issuer}
    return f"{redirect_uri}{'&' if '?' in redirect_uri else '?'}{urlencode(told)}"


def sha256_of(text: str) -> bytes:
    # JSON may contain half a surrogate pair, which cannot be encoded.
    return hashlib.sha256(text.encode(errors="surrogatepass")).digest()


def random_text() -> str:
    """256 random bits that need no escaping in an address."""
    return secrets.token_urlsafe(32)


@dataclass(frozen=True, slots=True)
class OAuthServerConfig:
    """The clients, the default scopes, our issuer name, and the addresses that tokens are valid for.

    `own` is the client of our own login tools.
    """

    issuer: str
    resources: frozenset[str] = frozenset()
    clients: Mapping[str, RegisteredClient] = field(default_factory=dict[str, RegisteredClient])
    scope: str = ""
    own_client: RegisteredClient | None = None

    @classmethod
    def of(cls, settings: Settings, issuer: str, resources: frozenset[str]) -> "OAuthServerConfig":
        """The configuration from the settings. Raises an error for unknown scopes."""
        _check_scopes("OAUTH_SCOPE", settings.oauth_scope.split())
        clients = {one.client_id: _registered_client(one) for one in settings.login_clients}
        return cls(issuer, resources, clients, settings.oauth_scope, clients.get(settings.oauth_client_id or ""))


def _registered_client(given: OAuthClient) -> RegisteredClient:
    _check_scopes(f"The client '{given.client_id}' in OAUTH_CLIENTS", given.scopes)
    secret = given.client_secret
    return RegisteredClient(
        given.client_id,
        given.redirect_uris,
        frozenset(given.scopes) or LOGIN_SCOPES,
        None if secret is None else sha256_of(secret.get_secret_value()),
    )


def _check_scopes(where: str, scopes: Iterable[str]) -> None:
    for scope in scopes:
        if scope not in SCOPES:
            raise ConfigurationError(f"{where} names the scope '{scope}'; there are: {', '.join(SCOPES)}")


REQUEST_OVER = "This page has expired, was already used, or was opened in another browser; start the login again"
NO_SCOPE_TO_GRANT = "Your key or token allows nothing of what the client requests; use one that does"


class ConsentService:
    """The steps of a person's consent. Nothing is kept in memory: any replica can take the next step."""

    def __init__(self, store: OAuthStore, terms: OAuthServerConfig) -> None:
        self._store = store
        self._terms = terms

    def find_client(self, parameters: OAuthParameters) -> tuple[RegisteredClient, str]:
        """The client of a request, and its redirect URI."""
        return find_client(self._terms.clients, parameters)

    def parse_authorization(
        self, client: RegisteredClient, redirect_uri: str, parameters: OAuthParameters
    ) -> AuthorizationRequest:
        """The valid part of the client's request."""
        return parse_authorization(client, redirect_uri, parameters, self._terms.scope, self._terms.resources)

    async def open_request(self, request: AuthorizationRequest, browser: str) -> str:
        """Store the question to a person for this browser only, and return its id."""
        request_id = random_text()
        until = datetime.now(UTC) + REQUEST_LIFETIME
        await self._store.add_request(sha256_of(request_id), sha256_of(browser), request, until)
        return request_id

    async def find_request(self, request_id: str, browser: str) -> AuthorizationRequest:
        """The stored request, if this browser may answer it."""
        asked = await self._store.find_request(sha256_of(request_id), sha256_of(browser), datetime.now(UTC))
        if asked is None or asked.client_id not in self._terms.clients:
            raise LoginRefused(OAuthErrorCode.INVALID_REQUEST, REQUEST_OVER)
        return asked

    async def allow(self, request: AuthorizationRequest, proof: ProvenPerson, request_id: str | None = None) -> str:
        """Accept the request. Returns the address to send the person to, with a code."""
        code = secrets.token_hex(24)
        grant = _make_grant(request, proof, code, datetime.now(UTC))
        if request_id is None:
            await self._store.add_grant(grant)
        elif not await self._store.settle_request(sha256_of(request_id), grant):
            raise LoginRefused(OAuthErrorCode.INVALID_REQUEST, REQUEST_OVER)
        return self.redirect_url(request.redirect_uri, request.state, code=code)

    async def deny(self, request: AuthorizationRequest, request_id: str) -> str:
        """Decline the request. Returns the address to send the person to."""
        await self._store.settle_request(sha256_of(request_id))
        return self.redirect_url(request.redirect_uri, request.state, error=OAuthErrorCode.ACCESS_DENIED)

    def redirect_url(self, redirect_uri: str, state: str | None, **answer: str) -> str:
        return redirect_url(redirect_uri, self._terms.issuer, state, **answer)


def _make_grant(request: AuthorizationRequest, proof: ProvenPerson, code: str, now: datetime) -> LoginGrant:
    """The scopes that the person may grant: those that their own credential allows."""
    scopes = frozenset(scope for scope in request.scopes if rights.may_grant_scope(proof.credential.scopes, scope))
    if not scopes:
        raise LoginRefused(OAuthErrorCode.INVALID_SCOPE, NO_SCOPE_TO_GRANT)
    return LoginGrant(
        id=secrets.token_hex(16),
        client_id=request.client_id,
        user_id=proof.user_id,
        scopes=scopes,
        proof=proof.credential.id,
        profile=proof.profile,
        code_sha256=sha256_of(code),
        redirect_uri=request.redirect_uri,
        challenge=request.challenge,
        created_at=now,
        code_expires_at=now + CODE_LIFETIME,
    )


GrantCheck = Callable[[LoginGrant], bool]
TakeGrant = Callable[[datetime, GrantCheck, Sequence[NewToken]], Awaitable[LoginGrant | None]]

CODE_INVALID = "The code is not valid: it is unknown, used, expired, another client's, or the code_verifier is wrong"
REFRESH_TOKEN_INVALID = "The refresh_token is not valid: it is unknown, used, expired or another client's; log in again"  # noqa: S105


class AuthorizationServer:
    """The authorization server. It caches tokens by hash for a moment; revoking one here works immediately."""

    def __init__(self, store: OAuthStore, terms: OAuthServerConfig) -> None:
        self.config = terms
        self.consent = ConsentService(store, terms)
        self._store = store
        self._recent = RecentCache[bytes, AccessToken | None](KEY_CACHE_SECONDS, KEY_CACHE_SIZE)

    @property
    def has_clients(self) -> bool:
        """Whether any client is configured."""
        return bool(self.config.clients)

    def authorize_url(
        self, client_id: str, redirect_uri: str | None = None, scope: str | None = None, state: str | None = None
    ) -> LoginLink:
        """The address where a person logs in for a client. Configured clients take precedence over the arguments."""
        client = self.config.clients.get(client_id) or self.config.own_client
        if client is None:
            raise LoginRefused(OAuthErrorCode.UNAUTHORIZED_CLIENT, "This client is not known here; see OAUTH_CLIENTS")
        target = redirect_uri if redirect_uri in client.redirect_uris else client.redirect_uris[0]
        scopes = " ".join(sorted(allowed_scopes(client, scope or self.config.scope)))
        verifier, chosen = random_text(), state or secrets.token_hex(16)
        said = {
            "response_type": "code",
            "client_id": client.id,
            "redirect_uri": target,
            "scope": scopes,
            "state": chosen,
            "code_challenge": challenge_of(verifier),
            "code_challenge_method": S256,
        }
        url = f"{self.config.issuer}/oauth/authorize?{urlencode(said)}"
        return LoginLink(url, client.id, target, scopes, chosen, verifier)

    def authenticate_client(self, client_id: str | None, secret: str | None) -> RegisteredClient:
        """The client of a token request, after it proved itself. A public client needs no proof."""
        client = self.config.clients.get(client_id or "")
        if client is None:
            raise LoginRefused(OAuthErrorCode.UNAUTHORIZED_CLIENT, "client_id names no client that is known here")
        if not proves_client(client, secret):
            raise LoginRefused(OAuthErrorCode.INVALID_CLIENT, "The client_secret is missing or wrong")
        return client

    async def exchange(
        self, code: str, redirect_uri: str, code_verifier: str, client: RegisteredClient | None = None
    ) -> IssuedTokens:
        """Exchange a code, which works only once, for tokens. Without a `client`, our own tools make the request."""

        def holds(grant: LoginGrant) -> bool:
            fits = grant.redirect_uri == redirect_uri and verifier_fits(code_verifier, grant.challenge)
            return fits and self._is_for(grant, client)

        take = partial(self._store.take_code, sha256_of(code))
        return await self._issue(take, holds, FIRST_ACCESS_LIFETIME, None, CODE_INVALID)

    async def refresh(
        self, refresh_token: str, scope: str | None = None, client: RegisteredClient | None = None
    ) -> IssuedTokens:
        """Exchange a refresh token, which works only once, for new tokens; `scope` may name fewer scopes."""
        less = frozenset(scope.split()) if scope else None

        def holds(grant: LoginGrant) -> bool:
            if not self._is_for(grant, client):
                return False
            if less is not None and not less <= grant.scopes:
                raise LoginRefused(
                    OAuthErrorCode.INVALID_SCOPE, f"There is no more to have than: {' '.join(sorted(grant.scopes))}"
                )
            return True

        take = partial(self._store.take_refresh, sha256_of(refresh_token))
        return await self._issue(take, holds, REFRESHED_ACCESS_LIFETIME, less, REFRESH_TOKEN_INVALID)

    async def revoke(self, token: str, client: RegisteredClient) -> None:
        """Revoke a token of this client; revoking a refresh token ends all tokens of the same login."""
        if not await self._store.revoke(sha256_of(token), client.id, datetime.now(UTC)):
            raise LoginRefused(OAuthErrorCode.UNAUTHORIZED_CLIENT, "The token was issued to another client")
        self.clear_cache()

    async def check(self, token: str) -> AccessToken:
        """The content of a valid access token, limited to its client's present scopes. Raises `Unauthenticated`."""
        digest = sha256_of(token)
        found = await self._recent.get_or_load(digest, partial(self._store.find_access_token, digest))
        client = self.config.clients.get(found.client_id) if found else None
        if found is None or client is None or datetime.now(UTC) >= found.expires_at:
            raise Unauthenticated("The token is not valid: unknown, expired or revoked; log in again")
        return found if found.scopes <= client.scopes else replace(found, scopes=found.scopes & client.scopes)

    def credential(self, access: AccessToken) -> Credential:
        # Work that this token requests also rests on the key of the login, and ends with that key.
        key = f" {access.proof}" if access.proof.startswith(KEY_CREDENTIAL_PREFIX) else ""
        return Credential(
            f"{TOKEN_CREDENTIAL_PREFIX}{self.config.issuer}{key}", user_id=access.user_id, scopes=access.scopes
        )

    def clear_cache(self) -> None:
        """Load every token from the database again, because a key or grant has ended."""
        self._recent.clear()

    async def prune(self) -> None:
        await self._store.prune(datetime.now(UTC))

    async def _issue(
        self, take: TakeGrant, holds: GrantCheck, lifetime: timedelta, scopes: frozenset[str] | None, why_not: str
    ) -> IssuedTokens:
        now = datetime.now(UTC)
        access, renewal = ACCESS_PREFIX + random_text(), REFRESH_PREFIX + random_text()
        tokens = (
            NewToken(sha256_of(access), TokenKind.ACCESS, now + lifetime, scopes),
            NewToken(sha256_of(renewal), TokenKind.REFRESH, now + REFRESH_LIFETIME),
        )
        grant = await take(now, holds, tokens)
        if grant is None:
            # The second use of a token has ended everything that was issued from it.
            self.clear_cache()
            raise LoginRefused(OAuthErrorCode.INVALID_GRANT, why_not)
        return IssuedTokens(access, renewal, int(lifetime.total_seconds()), scopes or grant.scopes, grant.user_id)

    def _is_for(self, grant: LoginGrant, client: RegisteredClient | None) -> bool:
        """Whether our own tools may act for a client: for public clients, and for our own client."""
        if client is not None:
            return grant.client_id == client.id
        asking = self.config.clients.get(grant.client_id)
        return asking is not None and (asking.secret_sha256 is None or asking is self.config.own_client)
