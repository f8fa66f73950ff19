"""Whether a request's token is good for what it asks, and if not, which check it failed and what was expected."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from typing import cast

from frontdesk.identity.tokens import unverified_claims
from frontdesk.loop.text import one_line, storable
from frontdesk.platform.audiences import own_audience
from frontdesk.platform.constants import SHARED_APP_ID
from frontdesk.platform.declared.model import DeclaredServer
from frontdesk.platform.local.issuing import Mint
from frontdesk.platform.model import MCPServerConfig

SHOWN = 200
FOREVER = datetime.max.replace(tzinfo=UTC).timestamp()

Claims = Mapping[str, object]


class TokenMode(StrEnum):
    """How closely tokens are looked at: not at all, at what they say, or also at who made them."""

    OFF = "off"
    CLAIMS = "claims"
    SIGNED = "signed"


@dataclass(frozen=True, slots=True)
class Checked:
    """What was found: `failed` names the check that did not hold, `why` says it in full; no part of the token is in it.

    `claims` are what the token says of itself, whether that holds or not.
    """

    failed: str | None = None
    why: str = "ok"
    claims: Claims = field(default_factory=dict[str, object])


def audience_of(server: DeclaredServer) -> str:
    """The audience whose tokens a server takes."""
    config = MCPServerConfig(server.name, server.unique_name or server.name, audience=server.audience)
    return own_audience(config) or SHARED_APP_ID


def claims_of(authorization: str | None) -> Claims:
    """What the token of a request says, unproven; nothing where there is none."""
    return unverified_claims((authorization or "").strip().rpartition(" ")[2])


def check(authorization: str | None, audience: str, mode: TokenMode, mint: Mint, now: float) -> Checked:
    """Look at the Authorization header of a request that wants a token for this audience."""
    claims = claims_of(authorization)
    if mode is TokenMode.OFF:
        return Checked(None, "not checked", claims)
    failed, why = _problem(authorization or "", audience, mode, mint, now)
    return Checked(failed, why, claims)


def _problem(authorization: str, audience: str, mode: TokenMode, mint: Mint, now: float) -> tuple[str | None, str]:
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
    if mode is TokenMode.SIGNED and not mint.made(token):
        return "signature", "This platform did not make the token; get one at its /oauth2/v2.0/token"
    return _late(claims.get("exp"), now) or _for_others(claims.get("aud"), audience) or (None, "ok")


def _late(expires: object, now: float) -> tuple[str, str] | None:
    if isinstance(expires, bool) or not isinstance(expires, int | float):
        return "expiry", "The token does not say when it expires; its claim exp must be a number of seconds"
    # Asked this way round, because a NaN is neither before nor after anything.
    if now < expires:
        return None
    when = datetime.fromtimestamp(expires, UTC).isoformat() if 0 <= expires < FOREVER else str(expires)
    return "expiry", f"The token expired at {when}; get a new one"


def _for_others(said: object, audience: str) -> tuple[str, str] | None:
    named = [name for name in (cast("list[object]", said) if isinstance(said, list) else [said]) if name is not None]
    if any(isinstance(name, str) and _bare(name) == _bare(audience) for name in named):
        return None
    found = one_line(storable(", ".join(map(str, named))), SHOWN) or "none"
    return "audience", f"The token is for the audience {found}; expected is {audience}"


def _bare(audience: str) -> str:
    """As the platform compares them: an application's id and its address mean the same."""
    return audience.strip().lower().removeprefix("api://")
