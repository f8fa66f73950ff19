"""Issues and checks the tokens of the local platform."""

import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from typing import cast

from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import ECKey

from frontdesk.agent365.environment import SHARED_APP_ID
from frontdesk.agent365.manifest.model import DeclaredServer
from frontdesk.agent365.model import MCPServerConfig, own_audience
from frontdesk.identity.tokens import unverified_claims
from frontdesk.text import one_line, storable

ALGORITHM = "ES256"
LIFETIME_SECONDS = 3600


class TokenSigner:
    """Signs claims for an audience, and recognizes its own tokens."""

    def __init__(self) -> None:
        self._key_id = secrets.token_hex(8)
        self._key = ECKey.generate_key("P-256", {"kid": self._key_id, "use": "sig", "alg": ALGORITHM})

    def issue(self, audience: str, now: float, claims: Mapping[str, object]) -> str:
        """Issue a token; the given claims replace the usual ones."""
        usual = {"aud": audience, "iat": int(now), "exp": int(now) + LIFETIME_SECONDS, "jti": secrets.token_hex(8)}
        header = {"alg": ALGORITHM, "typ": "JWT", "kid": self._key_id}
        return jwt.encode(header, {**usual, **claims}, self._key, [ALGORITHM])

    def is_own_token(self, token: str) -> bool:
        """Whether we signed a token; the token does not choose the algorithm."""
        try:
            jwt.decode(token, self._key, algorithms=[ALGORITHM])
        except (JoseError, ValueError):
            return False
        return True


SHOWN_LENGTH = 200
FOREVER = datetime.max.replace(tzinfo=UTC).timestamp()

TokenClaims = Mapping[str, object]


class TokenMode(StrEnum):
    """How strictly tokens are checked: not at all, by their claims, or also by their signature."""

    OFF = "off"
    CLAIMS = "claims"
    SIGNED = "signed"


@dataclass(frozen=True, slots=True)
class TokenCheck:
    """The result of a check: `failed` names the check, `why` explains it in full; neither contains any part of the
    token.

    `claims` are the token's own claims, whether they hold or not.
    """

    failed: str | None = None
    why: str = "ok"
    claims: TokenClaims = field(default_factory=dict[str, object])


def audience_of(server: DeclaredServer) -> str:
    """The audience whose tokens a server takes."""
    config = MCPServerConfig(server.name, server.unique_name or server.name, audience=server.audience)
    return own_audience(config) or SHARED_APP_ID


def read_claims(authorization: str | None) -> TokenClaims:
    """The unproven claims of a request's token; empty where there is none."""
    return unverified_claims((authorization or "").strip().rpartition(" ")[2])


def check_token(authorization: str | None, audience: str, mode: TokenMode, mint: TokenSigner, now: float) -> TokenCheck:
    """Check the Authorization header of a request that needs a token for this audience."""
    claims = read_claims(authorization)
    if mode is TokenMode.OFF:
        return TokenCheck(None, "not checked", claims)
    failed, why = _find_problem(authorization or "", audience, mode, mint, now)
    return TokenCheck(failed, why, claims)


def _find_problem(
    authorization: str, audience: str, mode: TokenMode, mint: TokenSigner, now: float
) -> tuple[str | None, str]:
    if not authorization.strip():
        return "none", f"There is no token; send Authorization: Bearer <token>, made for the audience {audience}"
    scheme, _, token = authorization.strip().partition(" ")
    token = token.strip()
    if scheme.lower() != "bearer" or not token:
        return "scheme", "The Authorization header must be the word Bearer, a space and the token"
    if token.lower().startswith("bearer "):
        return "scheme", "The word Bearer stands twice in the Authorization header; send it once"
    claims = unverified_claims(token)
    if not claims:
        return "form", "The token is no JWT: three parts with dots between them, of which the second holds claims"
    if mode is TokenMode.SIGNED and not mint.is_own_token(token):
        return "signature", "This platform did not make the token; get one at its /oauth2/v2.0/token"
    return _expiry_problem(claims.get("exp"), now) or _audience_problem(claims.get("aud"), audience) or (None, "ok")


def _expiry_problem(expires: object, now: float) -> tuple[str, str] | None:
    if isinstance(expires, bool) or not isinstance(expires, int | float):
        return "expiry", "The token does not say when it expires; its claim exp must be a number of seconds"
    # The comparison stands this way round because a NaN is neither before nor after anything.
    if now < expires:
        return None
    when = datetime.fromtimestamp(expires, UTC).isoformat() if 0 <= expires < FOREVER else str(expires)
    return "expiry", f"The token expired at {when}; get a new one"


def _audience_problem(value: object, audience: str) -> tuple[str, str] | None:
    named = [name for name in (cast("list[object]", value) if isinstance(value, list) else [value]) if name is not None]
    if any(isinstance(name, str) and _normalize_audience(name) == _normalize_audience(audience) for name in named):
        return None
    found = one_line(storable(", ".join(map(str, named))), SHOWN_LENGTH) or "none"
    return "audience", f"The token is for the audience {found}; expected is {audience}"


def _normalize_audience(audience: str) -> str:
    """Normalize as the platform compares audiences: an application's id and its address mean the same."""
    return audience.strip().lower().removeprefix("api://")


CLIENT_CREDENTIALS = "client_credentials"
ON_BEHALF_OF = "urn:ietf:params:oauth:grant-type:jwt-bearer"
TOKEN_EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange"  # noqa: S105
GRANTS = (CLIENT_CREDENTIALS, ON_BEHALF_OF, TOKEN_EXCHANGE)
DEFAULT_SCOPE = ".default"
PARENT_CLAIM = "xms_par_app_azp"
# The claims about a person that a new token takes over from the token that it is made from.
PERSON_CLAIMS = ("sub", "oid", "tid", "name", "preferred_username")
LONGEST_VALUE = 500

TokenForm = Mapping[str, str]


class GrantRefused(Exception):
    """A request for a token is refused; `fault` is OAuth's error code."""

    def __init__(self, fault: str, message: str) -> None:
        super().__init__(message)
        self.error_code = fault


def grant_token(form: TokenForm, mint: TokenSigner, now: float) -> dict[str, object]:
    """The answer to a request for a token; raises `GrantRefused`."""
    kind = form.get("grant_type", "")
    if kind not in GRANTS:
        raise GrantRefused("unsupported_grant_type", f"grant_type must be one of {', '.join(GRANTS)}")
    client = form.get("client_id", "").strip()
    if not client or len(client) > LONGEST_VALUE:
        raise GrantRefused("invalid_client", "client_id must be the id of the application that asks")
    audience, scopes = _requested_audience(form)
    said = _assertion_claims(form, kind, now)
    claims = {name: text for name in PERSON_CLAIMS if (text := _short_text(said.get(name)))}
    claims |= {"appid": client, "azp": client}
    if scopes:
        claims["scp"] = " ".join(scopes)
    parent = _short_text(form.get(PARENT_CLAIM)) or _short_text(said.get(PARENT_CLAIM))
    if parent:
        claims[PARENT_CLAIM] = parent
    if kind == CLIENT_CREDENTIALS:
        claims |= {"sub": client, "oid": client, "idtyp": "app"}
    more = {"issued_token_type": "urn:ietf:params:oauth:token-type:access_token"} if kind == TOKEN_EXCHANGE else {}
    token = mint.issue(audience, now, claims)
    return {"access_token": token, "token_type": "Bearer", "expires_in": LIFETIME_SECONDS, **more}


def _requested_audience(form: TokenForm) -> tuple[str, list[str]]:
    """The requested (audience, scopes); an exchange may name the audience separately."""
    wanted = form.get("scope", "")[: 2 * LONGEST_VALUE].split()
    apart = (form.get("audience") or form.get("resource") or "").strip()
    if 0 < len(apart) <= LONGEST_VALUE:
        return apart, [scope for scope in wanted if scope != DEFAULT_SCOPE]
    parts = [scope.rpartition("/") for scope in wanted]
    audiences = {audience for audience, _, _ in parts}
    if len(audiences) != 1 or "" in audiences or any(not scope for _, _, scope in parts):
        raise GrantRefused("invalid_scope", "scope must be <audience>/.default or <audience>/<scope>, of one audience")
    return audiences.pop(), [scope for _, _, scope in parts if scope != DEFAULT_SCOPE]


def _assertion_claims(form: TokenForm, kind: str, now: float) -> Mapping[str, object]:
    """The claims of the token from which another one is made."""
    if kind == CLIENT_CREDENTIALS:
        return {}
    field = "subject_token" if kind == TOKEN_EXCHANGE else "assertion"
    if kind == ON_BEHALF_OF and form.get("requested_token_use") != "on_behalf_of":
        raise GrantRefused("invalid_request", "requested_token_use must be on_behalf_of")
    claims = unverified_claims(form.get(field, "").strip())
    if not claims:
        raise GrantRefused("invalid_request" if not form.get(field) else "invalid_grant", f"{field} must be a JWT")
    expires = claims.get("exp")
    if isinstance(expires, int | float) and not now < expires:
        raise GrantRefused("invalid_grant", f"The token in {field} has expired; get a new one")
    return claims


def _short_text(value: object) -> str:
    return value if isinstance(value, str) and len(value) <= LONGEST_VALUE else ""
