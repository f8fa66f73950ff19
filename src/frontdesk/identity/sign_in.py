"""Signs people in to the pages at an OAuth issuer."""

import base64
import hmac
import secrets
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import quote_plus, urlencode, urlsplit

import anyio
import httpx2
import structlog
from pydantic import SecretStr

from frontdesk.errors import Denied, NotFound, Unauthenticated, Unavailable
from frontdesk.identity.oauth_server import sha256_of
from frontdesk.identity.tokens import (
    FETCH_SECONDS,
    FRESH_SECONDS,
    ISSUER_ERRORS,
    REFETCH_SECONDS,
    STALE_SECONDS,
    TOTAL_SECONDS,
    check_address,
    fetch_metadata,
    read_json_object,
)
from frontdesk.settings import Issuer, SignIn, is_loopback

log = structlog.get_logger("frontdesk.identity")


@dataclass(frozen=True, slots=True)
class IssuerEndpoints:
    """An issuer's endpoints for people and for codes, and the method by which it takes a client's secret."""

    authorization_url: str
    token_url: str
    secret_in_form: bool


class IssuerEndpointCache:
    """Caches one issuer's endpoints: anybody can cause a request here, so the issuer gets only a few.

    `now` is monotonic seconds.
    """

    def __init__(self, issuer: str, client: httpx2.AsyncClient) -> None:
        self._issuer = issuer
        self._client = client
        self._lock = anyio.Lock()
        self._counter: IssuerEndpoints | None = None
        self._tried_at = -float("inf")
        self._fetched_at = -float("inf")

    async def find(self, now: float) -> IssuerEndpoints | None:
        """The endpoints, or the last known ones while the issuer does not answer. None if there are none."""
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
                self._counter = read_endpoints(self._issuer, await fetch_metadata(self._client, self._issuer))
            self._fetched_at = now
        except ISSUER_ERRORS as error:
            self._tried_at = now
            log.warning("sign_in_issuer_failed", issuer=self._issuer, error=type(error).__name__)


def read_endpoints(issuer: str, document: Mapping[str, object]) -> IssuerEndpoints:
    if str(document.get("issuer", "")).rstrip("/") != issuer.rstrip("/"):
        raise ValueError("the description is another issuer's")
    methods = document.get("token_endpoint_auth_methods_supported")
    in_form = isinstance(methods, list) and "client_secret_basic" not in methods and "client_secret_post" in methods
    return IssuerEndpoints(
        _check_endpoint(document["authorization_endpoint"]), _check_endpoint(document["token_endpoint"]), in_form
    )


def _check_endpoint(value: object) -> str:
    """An address that a browser or a secret may be sent to: over TLS, or on this machine."""
    found = urlsplit(check_address(value))
    if found.scheme != "https" and not (found.scheme == "http" and is_loopback(found.hostname or "")):
        raise ValueError("an address that is neither https nor on this machine")
    return found._replace(fragment="").geturl()


# The redirect URI, which must be registered with each issuer.
CALLBACK_PATH = "/sign-in/back"
MAX_ERROR_LENGTH = 80
OTHER_SIGN_IN = "This sign-in was not begun in this browser, or too long ago; begin it again"
NO_TOKEN_GIVEN = "{issuer} gave no token for this sign-in; begin it again"  # noqa: S105
ISSUER_UNAVAILABLE = "{issuer} cannot be asked right now; try again shortly, or sign in with a key"


@dataclass(frozen=True, slots=True)
class SignInState:
    """The data that a browser keeps during a sign-in: the expected state, and the secrets for its code."""

    issuer: str
    state: str
    verifier: str


class SignInIssuers:
    """The issuers at which people sign in. The state of a sign-in is kept in the browser."""

    def __init__(self, issuers: Sequence[Issuer], base_url: str, headers: Mapping[str, str]) -> None:
        self._client = httpx2.AsyncClient(timeout=FETCH_SECONDS, follow_redirects=False, headers=headers)
        self._issuers = {one.issuer: (one, one.sign_in) for one in issuers if one.sign_in is not None}
        self._counters = {issuer: IssuerEndpointCache(issuer, self._client) for issuer in self._issuers}
        self._redirect_uri = base_url + CALLBACK_PATH
        self._resource = base_url

    @property
    def names(self) -> Mapping[str, str]:
        """The display name of each issuer."""
        return {
            issuer: known_as.name or urlsplit(issuer).hostname or issuer
            for issuer, (_, known_as) in self._issuers.items()
        }

    async def begin(self, issuer: str) -> tuple[str, SignInState]:
        """The address to send a browser to, and the state that the browser keeps."""
        trusted, known_as = self._find_issuer(issuer)
        sign_in = SignInState(issuer, secrets.token_urlsafe(24), secrets.token_urlsafe(48))
        counter = await self._endpoints(issuer)
        asked = {
            "response_type": "code",
            "client_id": known_as.client_id,
            "redirect_uri": self._redirect_uri,
            "scope": known_as.scope,
            "state": sign_in.state,
            "code_challenge": base64.urlsafe_b64encode(sha256_of(sign_in.verifier)).rstrip(b"=").decode(),
            "code_challenge_method": "S256",
            **self._resource_parameter(trusted),
        }
        joined = "&" if "?" in counter.authorization_url else "?"
        return f"{counter.authorization_url}{joined}{urlencode(asked)}", sign_in

    async def redeem(self, sign_in: SignInState, parameters: Mapping[str, str]) -> str:
        """Exchange the code that a browser brought back for a token, which is not checked here."""
        trusted, known_as = self._find_issuer(sign_in.issuer)
        same = hmac.compare_digest(parameters.get("state", "").encode(), sign_in.state.encode())
        # RFC 9207: a code of one issuer must not be sent to another.
        if not same or parameters.get("iss", sign_in.issuer).rstrip("/") != sign_in.issuer.rstrip("/"):
            raise Denied(OTHER_SIGN_IN)
        if "code" not in parameters:
            reason = parameters.get("error", "no code came back")[:MAX_ERROR_LENGTH]
            raise Denied(f"{self.names[sign_in.issuer]} did not let you in: {reason}")
        form = {
            "grant_type": "authorization_code",
            "code": parameters["code"],
            "redirect_uri": self._redirect_uri,
            "client_id": known_as.client_id,
            "code_verifier": sign_in.verifier,
            **self._resource_parameter(trusted),
        }
        token = (await self._exchange(sign_in.issuer, known_as, form)).get("access_token")
        if not isinstance(token, str):
            raise Unauthenticated(NO_TOKEN_GIVEN.format(issuer=self.names[sign_in.issuer]))
        return token

    async def close(self) -> None:
        await self._client.aclose()

    def _find_issuer(self, issuer: str) -> tuple[Issuer, SignIn]:
        if issuer not in self._issuers:
            raise NotFound("Nobody signs in there; begin at the page itself")
        return self._issuers[issuer]

    def _resource_parameter(self, issuer: Issuer) -> Mapping[str, str]:
        """RFC 8707: the resource that the token is for. Entra ID has no such parameter and uses the scope."""
        resource = issuer.audience[0] if issuer.audience else self._resource
        return {} if issuer.claims == "entra" else {"resource": resource}

    async def _endpoints(self, issuer: str) -> IssuerEndpoints:
        found = await self._counters[issuer].find(time.monotonic())
        if found is None:
            raise self._unavailable(issuer)
        return found

    async def _exchange(self, issuer: str, known_as: SignIn, form: Mapping[str, str]) -> Mapping[str, object]:
        counter = await self._endpoints(issuer)
        more, auth = _client_proof(known_as.client_id, known_as.client_secret, in_form=counter.secret_in_form)
        try:
            request = self._client.build_request("POST", counter.token_url, data={**form, **more})
            with anyio.fail_after(TOTAL_SECONDS):
                response = await self._client.send(request, stream=True, auth=auth)
                try:
                    # The response to a refused code may have any format; it contains no token.
                    return await read_json_object(response) if response.is_success else {}
                finally:
                    await response.aclose()
        except ISSUER_ERRORS as error:
            log.warning("sign_in_issuer_failed", issuer=issuer, error=type(error).__name__)
            raise self._unavailable(issuer) from error

    def _unavailable(self, issuer: str) -> Unavailable:
        return Unavailable(ISSUER_UNAVAILABLE.format(issuer=self.names[issuer]))


def _client_proof(
    client_id: str, secret: SecretStr | None, *, in_form: bool
) -> tuple[Mapping[str, str], httpx2.BasicAuth | None]:
    if secret is None:
        return {}, None
    if in_form:
        return {"client_secret": secret.get_secret_value()}, None
    # RFC 6749, 2.3.1: both are form-encoded first.
    return {}, httpx2.BasicAuth(quote_plus(client_id), quote_plus(secret.get_secret_value()))
