"""Reads a checked token's claims: which user, which agent, which scopes; Entra's names are mapped."""

from collections.abc import Mapping
from typing import cast

from frontdesk.errors import Unauthenticated
from frontdesk.identity.inbound import AGENT_ID, is_user_id
from frontdesk.identity.model import Credential
from frontdesk.settings import Issuer

Claims = Mapping[str, object]


def credential(claims: Claims, issuer: Issuer) -> Credential:
    """`sub` is the user, the outermost `act.sub` or else the client is the agent."""
    client = _text(claims, "azp") or _text(claims, "appid" if issuer.claims == "entra" else "client_id")
    user = _entra_user(claims) if issuer.claims == "entra" else _text(claims, "sub")
    if user is not None and not is_user_id(user):
        raise Unauthenticated("The token's subject is too long or not printable, and cannot be a user id here")
    return Credential(
        id=f"token:{issuer.issuer}",
        agent_id=_actor(claims) or (client if client and AGENT_ID.fullmatch(client) else None),
        # A client that acts for itself (client credentials) is its own subject: there is no user.
        user_id=None if user == client else user,
        scopes=_scopes(claims),
    )


def _actor(claims: Claims) -> str | None:
    act = claims.get("act")
    if not isinstance(act, Mapping):
        return None
    actor = _text(cast("Claims", act), "sub")
    if actor is not None and not AGENT_ID.fullmatch(actor):
        raise Unauthenticated("The token's act.sub is not a valid agent id")
    return actor


def _entra_user(claims: Claims) -> str | None:
    # `sub` differs per application there; `oid` is the person. An app-only token has no person.
    return None if claims.get("idtyp") == "app" else _text(claims, "oid") or _text(claims, "sub")


def _scopes(claims: Claims) -> frozenset[str] | None:
    said = [claims[name] for name in ("scope", "scp", "roles") if name in claims]
    return frozenset(scope for value in said for scope in _words(value)) if said else None


def _words(value: object) -> list[str]:
    if isinstance(value, str):
        return value.split()
    return [word for word in cast("list[object]", value) if isinstance(word, str)] if isinstance(value, list) else []


def _text(claims: Claims, name: str) -> str | None:
    value = claims.get(name)
    return value if isinstance(value, str) and value else None
