"""Reads a checked token's claims: which user, which agent, which scopes; Entra's names are mapped."""

from collections.abc import Mapping
from typing import cast

from frontdesk.errors import Unauthenticated
from frontdesk.identity.inbound import is_user_id
from frontdesk.identity.model import TOKEN, Credential, Profile
from frontdesk.settings import AGENT_ID, Issuer

Claims = Mapping[str, object]
TOLD_LENGTH = 320


def credential(claims: Claims, issuer: Issuer) -> Credential:
    """`sub` is the user, the outermost `act.sub` or else the client is the agent; both behind the issuer's prefix."""
    client = _text(claims, "azp") or _text(claims, "appid" if issuer.claims == "entra" else "client_id")
    user = _entra_user(claims) if issuer.claims == "entra" else _text(claims, "sub")
    return Credential(
        id=f"{TOKEN}{issuer.issuer}",
        agent_id=_actor(claims, issuer.prefix) or _agent(client, issuer.prefix),
        # A client that acts for itself (client credentials) is its own subject: there is no user.
        user_id=None if user == client else _person(user, issuer.prefix),
        scopes=_scopes(claims),
    )


def profile(claims: Claims) -> Profile:
    """What a token says of a person besides who they are; Supabase has the name in a place of its own."""
    inner = claims.get("user_metadata")
    more: Claims = cast("Claims", inner) if isinstance(inner, Mapping) else {}
    name = _text(claims, "name") or _text(more, "full_name") or _text(more, "name")
    return Profile(_told(_text(claims, "email") or _text(more, "email")), _told(name))


def _told(text: str | None) -> str | None:
    return text if text and len(text) <= TOLD_LENGTH and text.isprintable() else None


def _actor(claims: Claims, prefix: str) -> str | None:
    act = claims.get("act")
    actor = _text(cast("Claims", act), "sub") if isinstance(act, Mapping) else None
    agent = _agent(actor, prefix)
    if actor is not None and agent is None:
        raise Unauthenticated("The token's act.sub is not a valid agent id")
    return agent


def _agent(name: str | None, prefix: str) -> str | None:
    return prefix + name if name and AGENT_ID.fullmatch(prefix + name) else None


def _person(name: str | None, prefix: str) -> str | None:
    if name is not None and not is_user_id(prefix + name):
        raise Unauthenticated(
            "The token's subject cannot be a user id: those are printable, with at most 200 characters"
        )
    return name and prefix + name


def _entra_user(claims: Claims) -> str | None:
    # `sub` differs per application there; `oid` is the person. An app-only token has no person: it says so, or its
    # subject is itself and it carries no delegated scope.
    oneself = "scp" not in claims and _text(claims, "oid") == _text(claims, "sub")
    return None if claims.get("idtyp") == "app" or oneself else _text(claims, "oid") or _text(claims, "sub")


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
