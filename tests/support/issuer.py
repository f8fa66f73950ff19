"""Runs an authorization server on a free loopback port: it consents to everything, and issues any requested token."""

import base64
import hashlib
import secrets
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, urlencode

from joserfc import jwt
from joserfc.jwk import ECKey, KeySet, RSAKey
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route

from tests.support.serving import address_of, listen, serve

LIFETIME_SECONDS = 3600
NOT_STORED = {"cache-control": "no-store"}

SigningKey = RSAKey | ECKey


class Issuer:
    """An issuer as a test sees it: its address, its tokens, its keys, and how often those were fetched."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.jwks_fetches = 0
        # The Authorization header of each token request; None if there was none.
        self.proofs: list[str | None] = []
        # The clients that need not register, with their redirect addresses.
        self.clients: dict[str, list[str]] = {}
        self.keys: Mapping[str, SigningKey] = {}
        self._generation = 0
        self.rotate()

    @property
    def jwks_url(self) -> str:
        return f"{self.url}/jwks"

    def rotate(self) -> None:
        """Replace the keys with new ones under new ids; the old ones are no longer published."""
        self._generation += 1
        rsa, elliptic = (f"{kind}-{self._generation}" for kind in ("rs", "es"))
        self.keys = {
            "RS256": RSAKey.generate_key(2048, {"kid": rsa, "use": "sig", "alg": "RS256"}),
            "ES256": ECKey.generate_key("P-256", {"kid": elliptic, "use": "sig", "alg": "ES256"}),
        }

    def token(
        self,
        *,
        sub: str,
        aud: str | list[str],
        alg: str = "RS256",
        kid: str | None = None,
        key: SigningKey | None = None,
        header: Mapping[str, object] | None = None,
        **claims: object,
    ) -> str:
        """A signed token; given claims and header fields replace the usual ones."""
        signing = key or self.keys[alg]
        said = {"alg": alg, "typ": "at+jwt", "kid": kid or self.keys[alg].kid, **(header or {})}
        return jwt.encode(said, self.claims(sub=sub, aud=aud, **claims), signing, [alg])

    def claims(self, *, sub: str, aud: str | list[str], **claims: object) -> dict[str, object]:
        """The claims of a token of this issuer."""
        now = int(time.time())
        usual = {"iss": self.url, "sub": sub, "aud": aud, "iat": now, "exp": now + LIFETIME_SECONDS}
        return {**usual, "jti": secrets.token_hex(8), **claims}

    def published(self) -> Mapping[str, Any]:
        """The public halves of the keys, as the key set document."""
        self.jwks_fetches += 1
        return {**KeySet(list(self.keys.values())).as_dict(private=False)}


@dataclass(frozen=True, slots=True)
class Grant:
    """One consent: the client, the resource and the scopes."""

    client: str
    resource: str
    scope: str
    redirect_uri: str = ""
    challenge: str = ""


@dataclass(frozen=True, slots=True)
class Counter:
    """The OAuth endpoints: registration, the authorization code flow with PKCE, and rotating refresh tokens."""

    issuer: Issuer
    scopes: tuple[str, ...]
    codes: dict[str, Grant] = field(default_factory=dict[str, Grant])
    refresh: dict[str, Grant] = field(default_factory=dict[str, Grant])

    async def metadata(self, _request: Request) -> Response:
        url = self.issuer.url
        return JSONResponse(
            {
                "issuer": url,
                "authorization_endpoint": f"{url}/authorize",
                "token_endpoint": f"{url}/token",
                "registration_endpoint": f"{url}/register",
                "jwks_uri": self.issuer.jwks_url,
                "response_types_supported": ["code"],
                "grant_types_supported": ["authorization_code", "refresh_token"],
                "token_endpoint_auth_methods_supported": ["none", "client_secret_basic"],
                "code_challenge_methods_supported": ["S256"],
                "scopes_supported": list(self.scopes),
                "authorization_response_iss_parameter_supported": True,
            }
        )

    async def jwks(self, _request: Request) -> Response:
        return JSONResponse(self.issuer.published())

    async def register(self, request: Request) -> Response:
        asked = await request.json()
        client = f"client-{secrets.token_hex(8)}"
        self.issuer.clients[client] = asked["redirect_uris"]
        return JSONResponse({**asked, "client_id": client, "client_id_issued_at": int(time.time())}, 201)

    async def authorize(self, request: Request) -> Response:
        asked = request.query_params
        client, redirect_uri = asked.get("client_id", ""), asked.get("redirect_uri", "")
        if redirect_uri not in self.issuer.clients.get(client, []):
            return PlainTextResponse("This client has not registered this redirect_uri", 400)
        answer = {"state": asked.get("state", ""), "iss": self.issuer.url}
        challenge = asked.get("code_challenge", "")
        if asked.get("response_type") != "code" or not challenge or asked.get("code_challenge_method") != "S256":
            return RedirectResponse(f"{redirect_uri}?{urlencode({**answer, 'error': 'invalid_request'})}", 302)
        granted = [scope for scope in asked.get("scope", "").split() if scope in self.scopes] or self.scopes
        code = secrets.token_urlsafe(24)
        self.codes[code] = Grant(client, asked.get("resource", ""), " ".join(granted), redirect_uri, challenge)
        return RedirectResponse(f"{redirect_uri}?{urlencode({**answer, 'code': code})}", 302)

    async def token(self, request: Request) -> Response:
        form = dict(parse_qsl((await request.body()).decode()))
        self.issuer.proofs.append(request.headers.get("authorization"))
        kind = form.get("grant_type")
        grant = self._redeemed(form) if kind == "authorization_code" else self._refreshed(form)
        if grant is None:
            return _refused("invalid_grant")
        if not grant.resource or form.get("resource", grant.resource) != grant.resource:
            return _refused("invalid_target")
        renewal = secrets.token_urlsafe(32)
        self.refresh[renewal] = grant
        access = self.issuer.token(sub="visitor", aud=grant.resource, client_id=grant.client, scope=grant.scope)
        answer = {"access_token": access, "token_type": "Bearer", "expires_in": LIFETIME_SECONDS}
        return JSONResponse({**answer, "refresh_token": renewal, "scope": grant.scope}, headers=NOT_STORED)

    def _redeemed(self, form: Mapping[str, str]) -> Grant | None:
        # A code can be used only once, whatever the result.
        grant = self.codes.pop(form.get("code", ""), None)
        if grant is None or grant.challenge != _s256(form.get("code_verifier", "")):
            return None
        same = (grant.client, grant.redirect_uri) == (form.get("client_id"), form.get("redirect_uri"))
        return grant if same else None

    def _refreshed(self, form: Mapping[str, str]) -> Grant | None:
        grant = self.refresh.pop(form.get("refresh_token", ""), None)
        return grant if grant is not None and grant.client == form.get("client_id") else None


@contextmanager
def open_issuer(scopes: tuple[str, ...] = ("identity:read",), host: str = "127.0.0.1") -> Generator[Issuer]:
    """Run an authorization server that grants these scopes, until the end of the block."""
    listener = listen()
    issuer = Issuer(address_of(listener).replace("127.0.0.1", host))
    with serve(_application(Counter(issuer, scopes)), listener):
        yield issuer


def _application(counter: Counter) -> Starlette:
    return Starlette(
        routes=[
            Route("/.well-known/oauth-authorization-server", counter.metadata),
            Route("/jwks", counter.jwks),
            Route("/register", counter.register, methods=["POST"]),
            Route("/authorize", counter.authorize),
            Route("/token", counter.token, methods=["POST"]),
        ]
    )


def _refused(error: str) -> Response:
    return JSONResponse({"error": error}, 400, NOT_STORED)


def _s256(verifier: str) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()
