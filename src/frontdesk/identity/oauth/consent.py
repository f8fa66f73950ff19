"""A person is asked whether a client may act for them, says yes or no, and is sent back with a code or without."""

import secrets
from datetime import UTC, datetime

from frontdesk.errors import LoginRefused
from frontdesk.identity import rights
from frontdesk.identity.oauth import checks
from frontdesk.identity.oauth.checks import Said, sha256
from frontdesk.identity.oauth.clients import Terms
from frontdesk.identity.oauth.model import CODE_LIFETIME, REQUEST_LIFETIME, Asked, Client, Fault, Grant, Proof
from frontdesk.identity.oauth.store import OAuthStore

TOO_OLD = "This page is too old, was used already, or was opened in another browser; begin again where you came from"
NOTHING_TO_GIVE = "What you showed may do none of what the client asks for; show one that may"


class Consent:
    """Nothing of it is kept in memory: any replica can take the next step."""

    def __init__(self, store: OAuthStore, terms: Terms) -> None:
        self._store = store
        self._terms = terms

    def destination(self, said: Said) -> tuple[Client, str]:
        """Which client asks, and where its answer goes."""
        return checks.destination(self._terms.clients, said)

    def asked(self, client: Client, redirect_uri: str, said: Said) -> Asked:
        """What it asks for, as far as it may."""
        return checks.asked(client, redirect_uri, said, self._terms.scope, self._terms.resources)

    async def open(self, asked: Asked, browser: str) -> str:
        """Begin to ask a person, in this browser alone; gives the id under which they answer."""
        request_id = checks.random_text()
        until = datetime.now(UTC) + REQUEST_LIFETIME
        await self._store.add_request(sha256(request_id), sha256(browser), asked, until)
        return request_id

    async def opened(self, request_id: str, browser: str) -> Asked:
        """What the person was asked under this id."""
        asked = await self._store.request(sha256(request_id), sha256(browser), datetime.now(UTC))
        if asked is None or asked.client_id not in self._terms.clients:
            raise LoginRefused(Fault.INVALID_REQUEST, TOO_OLD)
        return asked

    async def allow(self, asked: Asked, proof: Proof, request_id: str | None = None) -> str:
        """The person says yes: where to send them, with a code."""
        code = secrets.token_hex(24)
        grant = _grant(asked, proof, code, datetime.now(UTC))
        if request_id is None:
            await self._store.add_grant(grant)
        elif not await self._store.settle(sha256(request_id), grant):
            raise LoginRefused(Fault.INVALID_REQUEST, TOO_OLD)
        return self.sent_back(asked.redirect_uri, asked.state, code=code)

    async def deny(self, asked: Asked, request_id: str) -> str:
        """The person says no: where to send them."""
        await self._store.settle(sha256(request_id))
        return self.sent_back(asked.redirect_uri, asked.state, error=Fault.ACCESS_DENIED)

    def sent_back(self, redirect_uri: str, state: str | None, **answer: str) -> str:
        return checks.sent_back(redirect_uri, self._terms.issuer, state, **answer)


def _grant(asked: Asked, proof: Proof, code: str, now: datetime) -> Grant:
    """Nobody gives away more than they may do themselves."""
    scopes = frozenset(scope for scope in asked.scopes if rights.may_give(proof.credential.scopes, scope))
    if not scopes:
        raise LoginRefused(Fault.INVALID_SCOPE, NOTHING_TO_GIVE)
    return Grant(
        id=secrets.token_hex(16),
        client_id=asked.client_id,
        user_id=proof.user_id,
        scopes=scopes,
        proof=proof.credential.id,
        profile=proof.profile,
        code_sha256=sha256(code),
        redirect_uri=asked.redirect_uri,
        challenge=asked.challenge,
        created_at=now,
        code_expires_at=now + CODE_LIFETIME,
    )
