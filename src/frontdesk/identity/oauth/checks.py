"""What may be asked and what holds: pure, over what was said and what is configured."""

import base64
import hashlib
import hmac
import re
import secrets
from collections.abc import Mapping
from urllib.parse import urlencode

from frontdesk.errors import LoginRefused
from frontdesk.identity.oauth.model import Asked, Client, Fault

S256 = "S256"
CHALLENGE = re.compile(r"[A-Za-z0-9_-]{43}")
VERIFIER = re.compile(r"[A-Za-z0-9._~-]{43,128}")
STATE_LENGTH = 2000

Said = Mapping[str, str]


def destination(clients: Mapping[str, Client], said: Said) -> tuple[Client, str]:
    """Which client asks, and where its answer goes: until both are known, nobody is sent anywhere."""
    client_id, redirect_uri = said.get("client_id"), said.get("redirect_uri")
    if not client_id or not redirect_uri:
        raise LoginRefused(Fault.INVALID_REQUEST, "client_id and redirect_uri are both needed")
    client = clients.get(client_id)
    if client is None:
        raise LoginRefused(Fault.UNAUTHORIZED_CLIENT, "This client is not known here; see OAUTH_CLIENTS")
    if redirect_uri not in client.redirect_uris:
        raise LoginRefused(
            Fault.INVALID_REDIRECT_URI, "This redirect_uri is not among those of the client, letter by letter"
        )
    return client, redirect_uri


def asked(client: Client, redirect_uri: str, said: Said, usual: str, resources: frozenset[str]) -> Asked:
    """What a client asks for: never more than it may, and only with a proof key."""
    state, challenge = said.get("state"), said.get("code_challenge", "")
    if said.get("code_challenge_method") != S256 or not CHALLENGE.fullmatch(challenge):
        raise LoginRefused(
            Fault.INVALID_REQUEST, "A code_challenge is needed, with code_challenge_method=S256 (RFC 7636)"
        )
    if len(state or "") > STATE_LENGTH:
        raise LoginRefused(Fault.INVALID_REQUEST, f"state has at most {STATE_LENGTH} characters")
    resource = said.get("resource")
    if resource is not None and resource.rstrip("/") not in resources:
        raise LoginRefused(Fault.INVALID_TARGET, "The resource is not one of this server's addresses")
    return Asked(client.id, redirect_uri, scopes_for(client, said.get("scope") or usual), challenge, state)


def scopes_for(client: Client, scope: str) -> frozenset[str]:
    """Of the scopes asked for those that the client may have; clients ask for all that a server lists."""
    scopes = frozenset(scope.split()) & client.scopes
    if not scopes:
        raise LoginRefused(Fault.INVALID_SCOPE, f"This client may ask for: {' '.join(sorted(client.scopes))}")
    return scopes


def is_client(client: Client, secret: str | None) -> bool:
    """Whether somebody who says so is this client, as far as it can prove it."""
    if client.secret_sha256 is None:
        return True
    return secret is not None and hmac.compare_digest(client.secret_sha256, sha256(secret))


def fits(verifier: str, challenge: str) -> bool:
    """Whether whoever brings the code is whoever asked for it."""
    return bool(VERIFIER.fullmatch(verifier)) and hmac.compare_digest(challenge_of(verifier), challenge)


def challenge_of(verifier: str) -> str:
    return base64.urlsafe_b64encode(sha256(verifier)).rstrip(b"=").decode()


def sent_back(redirect_uri: str, issuer: str, state: str | None, **answer: str) -> str:
    """The address that takes a person back to the client, with what the client is told (RFC 9207: and by whom)."""
    told = {**answer, **({} if state is None else {"state": state}), "iss": issuer}
    return f"{redirect_uri}{'&' if '?' in redirect_uri else '?'}{urlencode(told)}"


def sha256(text: str) -> bytes:
    # Whatever came in with JSON: half a surrogate pair has no bytes of its own.
    return hashlib.sha256(text.encode(errors="surrogatepass")).digest()


def random_text() -> str:
    """256 random bits that go into an address as they are."""
    return secrets.token_urlsafe(32)
