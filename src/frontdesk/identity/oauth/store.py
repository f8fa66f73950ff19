"""Logins in the database: what was asked, what was allowed, and the tokens that came of it; secrets as hashes alone."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, RowMapping, Select, and_, delete, exists, insert, select, update

from frontdesk.db.engine import Database, Transaction
from frontdesk.db.schema import oauth_grants, oauth_requests, oauth_tokens
from frontdesk.identity.model import Profile
from frontdesk.identity.oauth.model import Access, Asked, Grant, Kind, NewToken

IS_OURS = oauth_tokens.c.grant_id == oauth_grants.c.id
# Two columns of one name would be told apart by nobody.
TOKEN = (
    oauth_tokens.c.token_sha256,
    oauth_tokens.c.kind,
    oauth_tokens.c.scopes.label("token_scopes"),
    oauth_tokens.c.expires_at,
    oauth_tokens.c.used_at,
)


class OAuthStore:
    """One transaction a step, whichever replica takes it."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def add_request(self, id_sha256: bytes, browser_sha256: bytes, asked: Asked, expires_at: datetime) -> None:
        row = {
            "id_sha256": id_sha256,
            "browser_sha256": browser_sha256,
            "client_id": asked.client_id,
            "redirect_uri": asked.redirect_uri,
            "scopes": _joined(asked.scopes),
            "state": asked.state,
            "challenge": asked.challenge,
            "expires_at": expires_at,
        }
        async with self._database.transaction() as connection:
            await connection.execute(insert(oauth_requests).values(row))

    async def request(self, id_sha256: bytes, browser_sha256: bytes, now: datetime) -> Asked | None:
        """What was asked of this browser, if it was not too long ago."""
        wanted = select(oauth_requests).where(
            oauth_requests.c.id_sha256 == id_sha256,
            oauth_requests.c.browser_sha256 == browser_sha256,
            oauth_requests.c.expires_at > now,
        )
        async with self._database.reading() as connection:
            row = (await connection.execute(wanted)).mappings().one_or_none()
        if row is None:
            return None
        return Asked(row["client_id"], row["redirect_uri"], _split(row["scopes"]), row["challenge"], row["state"])

    async def settle(self, id_sha256: bytes, grant: Grant | None = None) -> bool:
        """A request is answered, with a grant or without one; whether it still was to be."""
        async with self._database.transaction() as connection:
            done = await connection.execute(delete(oauth_requests).where(oauth_requests.c.id_sha256 == id_sha256))
            if done.rowcount > 0 and grant is not None:
                await connection.execute(insert(oauth_grants).values(_row(grant)))
        return done.rowcount > 0

    async def add_grant(self, grant: Grant) -> None:
        async with self._database.transaction() as connection:
            await connection.execute(insert(oauth_grants).values(_row(grant)))

    async def take_code(
        self, code_sha256: bytes, now: datetime, holds: Callable[[Grant], bool], tokens: Sequence[NewToken]
    ) -> Grant | None:
        """Use a code up, and keep the tokens for it if it holds; one that is shown again ends all that came of it."""
        async with self._database.transaction() as connection:
            wanted = select(oauth_grants).where(oauth_grants.c.code_sha256 == code_sha256).with_for_update()
            row = (await connection.execute(wanted)).mappings().one_or_none()
            if row is None:
                return None
            if row["code_used_at"] is not None:
                await _revoke(connection, row["id"], now)
                return None
            used = update(oauth_grants).where(oauth_grants.c.id == row["id"]).values(code_used_at=now)
            await connection.execute(used)
            grant = _grant(row)
            if row["revoked_at"] is not None or now >= grant.code_expires_at or not holds(grant):
                return None
            await _add(connection, grant, tokens)
        return grant

    async def take_refresh(
        self, token_sha256: bytes, now: datetime, holds: Callable[[Grant], bool], tokens: Sequence[NewToken]
    ) -> Grant | None:
        """Put new tokens in the place of a refresh token; one in the wrong hands ends all that came of its grant."""
        async with self._database.transaction() as connection:
            row = await _token(connection, token_sha256)
            if row is None or row["kind"] != Kind.REFRESH:
                return None
            grant = _grant(row)
            if row["used_at"] is not None or not holds(grant):
                await _revoke(connection, grant.id, now)
                return None
            if row["revoked_at"] is not None or now >= row["expires_at"]:
                return None
            mine = oauth_tokens.c.token_sha256 == token_sha256
            await connection.execute(update(oauth_tokens).where(mine).values(used_at=now))
            await _add(connection, grant, tokens)
        return grant

    async def access(self, token_sha256: bytes) -> Access | None:
        """What an access token proves, as long as it is not over."""
        wanted = _joined_with(
            oauth_tokens.c.token_sha256 == token_sha256,
            oauth_tokens.c.kind == Kind.ACCESS,
            oauth_grants.c.revoked_at.is_(None),
        )
        async with self._database.reading() as connection:
            row = (await connection.execute(wanted)).mappings().one_or_none()
        if row is None:
            return None
        scopes, profile = _split(row["token_scopes"]), _profile(row)
        return Access(row["user_id"], row["client_id"], scopes, profile, row["expires_at"], row["proof"])

    async def revoke(self, token_sha256: bytes, client_id: str, now: datetime) -> bool:
        """End a token, a refresh token with all of its grant; False where it is another client's."""
        async with self._database.transaction() as connection:
            row = await _token(connection, token_sha256)
            if row is None:
                return True
            if row["client_id"] != client_id:
                return False
            if row["kind"] == Kind.REFRESH:
                await _revoke(connection, row["id"], now)
            else:
                await connection.execute(delete(oauth_tokens).where(oauth_tokens.c.token_sha256 == token_sha256))
        return True

    async def prune(self, now: datetime) -> None:
        """Forget what nobody can use any more; a refresh token that was used is known until its end."""
        has_tokens = exists(select(oauth_tokens.c.token_sha256).where(IS_OURS))
        async with self._database.transaction() as connection:
            await connection.execute(delete(oauth_requests).where(oauth_requests.c.expires_at <= now))
            await connection.execute(delete(oauth_tokens).where(oauth_tokens.c.expires_at <= now))
            await connection.execute(delete(oauth_grants).where(oauth_grants.c.code_expires_at <= now, ~has_tokens))


def _joined_with(*conditions: ColumnElement[bool]) -> Select[Any]:
    return select(oauth_grants, *TOKEN).where(IS_OURS, *conditions)


async def _token(connection: Transaction, token_sha256: bytes) -> RowMapping | None:
    wanted = _joined_with(oauth_tokens.c.token_sha256 == token_sha256).with_for_update()
    return (await connection.execute(wanted)).mappings().one_or_none()


async def _add(connection: Transaction, grant: Grant, tokens: Sequence[NewToken]) -> None:
    rows = [
        {
            "token_sha256": token.sha256,
            "grant_id": grant.id,
            "kind": token.kind,
            "scopes": _joined(grant.scopes if token.scopes is None else token.scopes),
            "expires_at": token.expires_at,
        }
        for token in tokens
    ]
    await connection.execute(insert(oauth_tokens), rows)


async def _revoke(connection: Transaction, grant_id: str, now: datetime) -> None:
    mine = and_(oauth_grants.c.id == grant_id, oauth_grants.c.revoked_at.is_(None))
    await connection.execute(update(oauth_grants).where(mine).values(revoked_at=now))


def _row(grant: Grant) -> Mapping[str, object]:
    return {
        "id": grant.id,
        "client_id": grant.client_id,
        "user_id": grant.user_id,
        "scopes": _joined(grant.scopes),
        "proof": grant.proof,
        "email": grant.profile.email,
        "name": grant.profile.name,
        "code_sha256": grant.code_sha256,
        "redirect_uri": grant.redirect_uri,
        "challenge": grant.challenge,
        "created_at": grant.created_at,
        "code_expires_at": grant.code_expires_at,
    }


def _grant(row: RowMapping) -> Grant:
    return Grant(
        row["id"],
        row["client_id"],
        row["user_id"],
        _split(row["scopes"]),
        row["proof"],
        _profile(row),
        row["code_sha256"],
        row["redirect_uri"],
        row["challenge"],
        row["created_at"],
        row["code_expires_at"],
    )


def _profile(row: RowMapping) -> Profile:
    return Profile(row["email"], row["name"])


def _joined(scopes: frozenset[str]) -> str:
    return " ".join(sorted(scopes))


def _split(scopes: str) -> frozenset[str]:
    return frozenset(scopes.split())
