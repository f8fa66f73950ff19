"""People who sign in at an issuer: where their browser is sent, and the token that its code is worth."""

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
from frontdesk.identity.documents import TROUBLES, read_object
from frontdesk.identity.jwks import FETCH_SECONDS, TOTAL_SECONDS
from frontdesk.identity.oauth.checks import sha256
from frontdesk.identity.oauth.counters import Counter, Kept
from frontdesk.settings import Issuer, SignIn

# Where issuers lead a browser back to; each of them has to know it.
BACK = "/sign-in/back"
LONGEST_WORD = 80
OTHER_ERRAND = "This sign-in was not begun in this browser, or too long ago; begin it again"
NOTHING_GIVEN = "{issuer} gave no token for this sign-in; begin it again"
AWAY = "{issuer} cannot be asked right now; try again shortly, or sign in with a key"

log = structlog.get_logger("frontdesk.identity")


@dataclass(frozen=True, slots=True)
class Errand:
    """What a browser that was sent to an issuer has to come back with, and what its code is redeemed by."""

    issuer: str
    state: str
    verifier: str


class Upstreams:
    """The issuers at which people sign in. Nothing of an errand is kept here: the browser carries it."""

    def __init__(self, issuers: Sequence[Issuer], base_url: str, headers: Mapping[str, str]) -> None:
        self._client = httpx2.AsyncClient(timeout=FETCH_SECONDS, follow_redirects=False, headers=headers)
        self._issuers = {one.issuer: (one, one.sign_in) for one in issuers if one.sign_in is not None}
        self._counters = {issuer: Kept(issuer, self._client) for issuer in self._issuers}
        self._redirect_uri = base_url + BACK
        self._resource = base_url

    @property
    def names(self) -> Mapping[str, str]:
        """What people know each issuer by."""
        return {
            issuer: known_as.name or urlsplit(issuer).hostname or issuer
            for issuer, (_, known_as) in self._issuers.items()
        }

    async def send(self, issuer: str) -> tuple[str, Errand]:
        """The address to send a browser to, and its errand there."""
        trusted, known_as = self._known(issuer)
        errand = Errand(issuer, secrets.token_urlsafe(24), secrets.token_urlsafe(48))
        counter = await self._counter(issuer)
        asked = {
            "response_type": "code",
            "client_id": known_as.client_id,
            "redirect_uri": self._redirect_uri,
            "scope": known_as.scope,
            "state": errand.state,
            "code_challenge": base64.urlsafe_b64encode(sha256(errand.verifier)).rstrip(b"=").decode(),
            "code_challenge_method": "S256",
            **self._for_us(trusted),
        }
        joined = "&" if "?" in counter.authorize else "?"
        return f"{counter.authorize}{joined}{urlencode(asked)}", errand

    async def redeem(self, errand: Errand, said: Mapping[str, str]) -> str:
        """The token for the code that a browser came back with, unchecked."""
        trusted, known_as = self._known(errand.issuer)
        same = hmac.compare_digest(said.get("state", "").encode(), errand.state.encode())
        # RFC 9207: a code of another issuer's must not be taken to this one.
        if not same or said.get("iss", errand.issuer).rstrip("/") != errand.issuer.rstrip("/"):
            raise Denied(OTHER_ERRAND)
        if "code" not in said:
            reason = said.get("error", "no code came back")[:LONGEST_WORD]
            raise Denied(f"{self.names[errand.issuer]} did not let you in: {reason}")
        form = {
            "grant_type": "authorization_code",
            "code": said["code"],
            "redirect_uri": self._redirect_uri,
            "client_id": known_as.client_id,
            "code_verifier": errand.verifier,
            **self._for_us(trusted),
        }
        token = (await self._exchange(errand.issuer, known_as, form)).get("access_token")
        if not isinstance(token, str):
            raise Unauthenticated(NOTHING_GIVEN.format(issuer=self.names[errand.issuer]))
        return token

    async def close(self) -> None:
        await self._client.aclose()

    def _known(self, issuer: str) -> tuple[Issuer, SignIn]:
        if issuer not in self._issuers:
            raise NotFound("Nobody signs in there; begin at the page itself")
        return self._issuers[issuer]

    def _for_us(self, issuer: Issuer) -> Mapping[str, str]:
        """RFC 8707: whom the token is for. Entra ID takes no such word, and goes by the scope."""
        resource = issuer.audience[0] if issuer.audience else self._resource
        return {} if issuer.claims == "entra" else {"resource": resource}

    async def _counter(self, issuer: str) -> Counter:
        found = await self._counters[issuer].find(time.monotonic())
        if found is None:
            raise self._away(issuer)
        return found

    async def _exchange(self, issuer: str, known_as: SignIn, form: Mapping[str, str]) -> Mapping[str, object]:
        counter = await self._counter(issuer)
        more, auth = _proof(known_as.client_id, known_as.client_secret, in_form=counter.secret_in_form)
        try:
            request = self._client.build_request("POST", counter.redeem, data={**form, **more})
            with anyio.fail_after(TOTAL_SECONDS):
                response = await self._client.send(request, stream=True, auth=auth)
                try:
                    # A refused code says so in JSON, or in whatever; there is no token in it.
                    return await read_object(response) if response.is_success else {}
                finally:
                    await response.aclose()
        except TROUBLES as error:
            log.warning("sign_in_issuer_failed", issuer=issuer, error=type(error).__name__)
            raise self._away(issuer) from error

    def _away(self, issuer: str) -> Unavailable:
        return Unavailable(AWAY.format(issuer=self.names[issuer]))


def _proof(
    client_id: str, secret: SecretStr | None, *, in_form: bool
) -> tuple[Mapping[str, str], httpx2.BasicAuth | None]:
    if secret is None:
        return {}, None
    if in_form:
        return {"client_secret": secret.get_secret_value()}, None
    # RFC 6749, 2.3.1: both are written as in a form first.
    return {}, httpx2.BasicAuth(quote_plus(client_id), quote_plus(secret.get_secret_value()))
