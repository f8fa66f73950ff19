"""Grants tokens as the real platform's identity service does, to whoever asks: this one is for a laptop alone."""

from collections.abc import Mapping

from frontdesk.identity.tokens import unverified_claims
from frontdesk.platform.local.issuing import LIFETIME_SECONDS, Mint

CLIENT_CREDENTIALS = "client_credentials"
ON_BEHALF_OF = "urn:ietf:params:oauth:grant-type:jwt-bearer"
EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange"
GRANTS = (CLIENT_CREDENTIALS, ON_BEHALF_OF, EXCHANGE)
DEFAULT_SCOPE = ".default"
PARENT = "xms_par_app_azp"
# Of whom a token speaks goes on to the one that is made from it.
PERSON = ("sub", "oid", "tid", "name", "preferred_username")
LONGEST = 500

Form = Mapping[str, str]


class Refused(Exception):
    """A request for a token that cannot be granted; `fault` is OAuth's word for why."""

    def __init__(self, fault: str, message: str) -> None:
        super().__init__(message)
        self.fault = fault


def grant(form: Form, mint: Mint, now: float) -> dict[str, object]:
    """The answer to a request for a token, or `Refused`."""
    kind = form.get("grant_type", "")
    if kind not in GRANTS:
        raise Refused("unsupported_grant_type", f"grant_type must be one of {', '.join(GRANTS)}")
    client = form.get("client_id", "").strip()
    if not client or len(client) > LONGEST:
        raise Refused("invalid_client", "client_id must be the id of the application that asks")
    audience, scopes = _asked(form)
    said = _assertion(form, kind, now)
    claims = {name: text for name in PERSON if (text := _short(said.get(name)))}
    claims |= {"appid": client, "azp": client}
    if scopes:
        claims["scp"] = " ".join(scopes)
    parent = _short(form.get(PARENT)) or _short(said.get(PARENT))
    if parent:
        claims[PARENT] = parent
    if kind == CLIENT_CREDENTIALS:
        claims |= {"sub": client, "oid": client, "idtyp": "app"}
    more = {"issued_token_type": "urn:ietf:params:oauth:token-type:access_token"} if kind == EXCHANGE else {}
    token = mint.token(audience, now, claims)
    return {"access_token": token, "token_type": "Bearer", "expires_in": LIFETIME_SECONDS, **more}


def _asked(form: Form) -> tuple[str, list[str]]:
    """(audience, scopes) that were asked for; an exchange may name the audience apart."""
    wanted = form.get("scope", "")[: 2 * LONGEST].split()
    apart = (form.get("audience") or form.get("resource") or "").strip()
    if 0 < len(apart) <= LONGEST:
        return apart, [scope for scope in wanted if scope != DEFAULT_SCOPE]
    parts = [scope.rpartition("/") for scope in wanted]
    audiences = {audience for audience, _, _ in parts}
    if len(audiences) != 1 or "" in audiences or any(not scope for _, _, scope in parts):
        raise Refused("invalid_scope", "scope must be <audience>/.default or <audience>/<scope>, of one audience")
    return audiences.pop(), [scope for _, _, scope in parts if scope != DEFAULT_SCOPE]


def _assertion(form: Form, kind: str, now: float) -> Mapping[str, object]:
    """What the token says that another is to be made from."""
    if kind == CLIENT_CREDENTIALS:
        return {}
    field = "subject_token" if kind == EXCHANGE else "assertion"
    if kind == ON_BEHALF_OF and form.get("requested_token_use") != "on_behalf_of":
        raise Refused("invalid_request", "requested_token_use must be on_behalf_of")
    claims = unverified_claims(form.get(field, "").strip())
    if not claims:
        raise Refused("invalid_request" if not form.get(field) else "invalid_grant", f"{field} must be a JWT")
    expires = claims.get("exp")
    if isinstance(expires, int | float) and not now < expires:
        raise Refused("invalid_grant", f"The token in {field} has expired; get a new one")
    return claims


def _short(said: object) -> str:
    return said if isinstance(said, str) and len(said) <= LONGEST else ""
