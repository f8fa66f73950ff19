"""Our tokens: given for a code or for a refresh token, checked when they are shown, and ended."""

import secrets
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from urllib.parse import urlencode

from frontdesk.errors import LoginRefused, Unauthenticated
from frontdesk.identity.keyring import KEY_CACHE_SECONDS, KEY_CACHE_SIZE
from frontdesk.identity.model import KEY, TOKEN, Credential
from frontdesk.identity.oauth import checks
from frontdesk.identity.oauth.checks import sha256
from frontdesk.identity.oauth.clients import Terms
from frontdesk.identity.oauth.consent import Consent
from frontdesk.identity.oauth.model import (
    ACCESS_PREFIX,
    FIRST_LIFETIME,
    NEXT_LIFETIME,
    REFRESH_LIFETIME,
    REFRESH_PREFIX,
    Access,
    Client,
    Fault,
    Grant,
    Invitation,
    Issued,
    Kind,
    NewToken,
)
from frontdesk.identity.oauth.store import OAuthStore
from frontdesk.identity.recent import Recent

Holds = Callable[[Grant], bool]
Take = Callable[[datetime, Holds, Sequence[NewToken]], Awaitable[Grant | None]]

NO_CODE = "The code does not hold: it is unknown, used, too old, another client's, or the code_verifier is wrong"
NO_REFRESH = "The refresh_token does not hold: it is unknown, used, too old or another client's; log in again"


class OAuth:
    """The authorization server. It keeps tokens for a moment, by their hash; what is ended here is ended at once."""

    def __init__(self, store: OAuthStore, terms: Terms) -> None:
        self.terms = terms
        self.consent = Consent(store, terms)
        self._store = store
        self._recent = Recent[bytes, Access | None](KEY_CACHE_SECONDS, KEY_CACHE_SIZE)

    @property
    def is_open(self) -> bool:
        """Whether there is any client that could ask."""
        return bool(self.terms.clients)

    def authorize_url(
        self, client_id: str, redirect_uri: str | None = None, scope: str | None = None, state: str | None = None
    ) -> Invitation:
        """Where a person logs in for a client; what does not fit the clients that are set gives way to them."""
        client = self.terms.clients.get(client_id) or self.terms.own
        if client is None:
            raise LoginRefused(Fault.UNAUTHORIZED_CLIENT, "This client is not known here; see OAUTH_CLIENTS")
        target = redirect_uri if redirect_uri in client.redirect_uris else client.redirect_uris[0]
        scopes = " ".join(sorted(checks.scopes_for(client, scope or self.terms.scope)))
        verifier, chosen = checks.random_text(), state or secrets.token_hex(16)
        said = {
            "response_type": "code",
            "client_id": client.id,
            "redirect_uri": target,
            "scope": scopes,
            "state": chosen,
            "code_challenge": checks.challenge_of(verifier),
            "code_challenge_method": checks.S256,
        }
        url = f"{self.terms.issuer}/oauth/authorize?{urlencode(said)}"
        return Invitation(url, client.id, target, scopes, chosen, verifier)

    def client(self, client_id: str | None, secret: str | None) -> Client:
        """The client that somebody says they are, proven as far as that client can."""
        client = self.terms.clients.get(client_id or "")
        if client is None:
            raise LoginRefused(Fault.UNAUTHORIZED_CLIENT, "client_id names no client that is known here")
        if not checks.is_client(client, secret):
            raise LoginRefused(Fault.INVALID_CLIENT, "The client_secret is missing or wrong")
        return client

    async def exchange(self, code: str, redirect_uri: str, code_verifier: str, client: Client | None = None) -> Issued:
        """Tokens for a code, which is used up by it. Without a `client` it is our own tools that ask."""

        def holds(grant: Grant) -> bool:
            fits = grant.redirect_uri == redirect_uri and checks.fits(code_verifier, grant.challenge)
            return fits and self._is_for(grant, client)

        take = partial(self._store.take_code, sha256(code))
        return await self._issue(take, holds, FIRST_LIFETIME, None, NO_CODE)

    async def refresh(self, refresh_token: str, scope: str | None = None, client: Client | None = None) -> Issued:
        """New tokens for a refresh token, which is used up by it; `scope` may ask for less than there is."""
        less = frozenset(scope.split()) if scope else None

        def holds(grant: Grant) -> bool:
            if not self._is_for(grant, client):
                return False
            if less is not None and not less <= grant.scopes:
                raise LoginRefused(
                    Fault.INVALID_SCOPE, f"There is no more to have than: {' '.join(sorted(grant.scopes))}"
                )
            return True

        take = partial(self._store.take_refresh, sha256(refresh_token))
        return await self._issue(take, holds, NEXT_LIFETIME, less, NO_REFRESH)

    async def revoke(self, token: str, client: Client) -> None:
        """End a token of this client's; a refresh token takes all that came of the same login with it."""
        if not await self._store.revoke(sha256(token), client.id, datetime.now(UTC)):
            raise LoginRefused(Fault.UNAUTHORIZED_CLIENT, "The token was issued to another client")
        self.forget()

    async def check(self, token: str) -> Access:
        """What an access token proves, or `Unauthenticated`; no more than its client may have by now."""
        digest = sha256(token)
        found = await self._recent.find(digest, partial(self._store.access, digest))
        client = self.terms.clients.get(found.client_id) if found else None
        if found is None or client is None or datetime.now(UTC) >= found.expires_at:
            raise Unauthenticated("The token is not valid: unknown, expired or revoked; log in again")
        return found if found.scopes <= client.scopes else replace(found, scopes=found.scopes & client.scopes)

    def credential(self, access: Access) -> Credential:
        # What is asked for with it goes by the key as well that allowed the login, and ends with that key.
        key = f" {access.proof}" if access.proof.startswith(KEY) else ""
        return Credential(f"{TOKEN}{self.terms.issuer}{key}", user_id=access.user_id, scopes=access.scopes)

    def forget(self) -> None:
        """Look every token up anew: something that they hang on has ended."""
        self._recent.clear()

    async def prune(self) -> None:
        await self._store.prune(datetime.now(UTC))

    async def _issue(
        self, take: Take, holds: Holds, lifetime: timedelta, scopes: frozenset[str] | None, why_not: str
    ) -> Issued:
        now = datetime.now(UTC)
        access, renewal = ACCESS_PREFIX + checks.random_text(), REFRESH_PREFIX + checks.random_text()
        tokens = (
            NewToken(sha256(access), Kind.ACCESS, now + lifetime, scopes),
            NewToken(sha256(renewal), Kind.REFRESH, now + REFRESH_LIFETIME),
        )
        grant = await take(now, holds, tokens)
        if grant is None:
            # One that was shown a second time has ended what came of the first.
            self.forget()
            raise LoginRefused(Fault.INVALID_GRANT, why_not)
        return Issued(access, renewal, int(lifetime.total_seconds()), scopes or grant.scopes, grant.user_id)

    def _is_for(self, grant: Grant, client: Client | None) -> bool:
        """Our own tools speak for clients that could not prove themselves either, and for the one that is ours."""
        if client is not None:
            return grant.client_id == client.id
        asking = self.terms.clients.get(grant.client_id)
        return asking is not None and (asking.secret_sha256 is None or asking is self.terms.own)
