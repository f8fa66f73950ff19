"""Stores keys, rate buckets, logins and the tokens of MCP sessions; secrets are stored as hashes."""

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Executable,
    RowMapping,
    Select,
    and_,
    bindparam,
    case,
    delete,
    exists,
    insert,
    not_,
    null,
    or_,
    select,
    update,
)
from sqlalchemy.exc import IntegrityError

from frontdesk.db.engine import Database, Transaction
from frontdesk.db.schema import (
    api_keys,
    buckets,
    mcp_session_persons,
    mcp_sessions,
    oauth_grants,
    oauth_requests,
    oauth_tokens,
)
from frontdesk.db.statements import per_dialect
from frontdesk.errors import Conflict
from frontdesk.identity.keys import FIRST_KEY_NAME, LOCAL_USER, ApiKey
from frontdesk.identity.model import (
    KEY_CREDENTIAL_PREFIX,
    AccessToken,
    AuthorizationRequest,
    LoginGrant,
    NewToken,
    Profile,
    TokenKind,
)
from frontdesk.settings import Rate

# The largest expected difference between replicas' clocks; a larger step back means that a clock was set back.
MAX_CLOCK_SKEW_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class TokenBucket:
    """The tokens that are left, and when they were counted, in seconds since the epoch."""

    tokens: float
    at: float

    def take_up_to(self, rate: Rate, count: int, now: float) -> tuple["TokenBucket", int, float]:
        """(the bucket afterwards, tokens granted, seconds until the next token if none was granted)."""
        per_second = rate.limit / rate.seconds
        # A clock that steps back refills nothing and removes nothing; counting continues from the new time.
        tokens = min(rate.limit, self.tokens + max(0.0, now - self.at) * per_second)
        granted = min(count, int(tokens))
        wait = 0.0 if granted else (1 - tokens) / per_second
        at = now if self.at - now > MAX_CLOCK_SKEW_SECONDS else max(now, self.at)
        return TokenBucket(tokens - granted, at), granted, wait


INSERT_BUCKET = per_dialect(lambda insert: insert(buckets).on_conflict_do_nothing())


class KeyStore:
    """API keys: the operator and people write them; every call with a key reads them."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def add(self, key: ApiKey) -> None:
        async with self._database.transaction() as connection:
            await _insert_key(connection, key)

    async def get(self, key_id: str) -> ApiKey | None:
        async with self._database.read_transaction() as connection:
            rows = await connection.execute(select(api_keys).where(api_keys.c.id == key_id))
            row = rows.mappings().one_or_none()
        return _key_of_row(row) if row else None

    async def list(self) -> Sequence[ApiKey]:
        async with self._database.read_transaction() as connection:
            rows = await connection.execute(select(api_keys).order_by(api_keys.c.created_at, api_keys.c.id))
            return [_key_of_row(row) for row in rows.mappings()]

    async def newest(
        self, now: datetime, limit: int, *, working: bool | None = None, before: str | None = None
    ) -> Sequence[ApiKey]:
        """Keys, newest first: working keys, ended keys, or all. `before` is the last key of the previous page."""
        query = select(api_keys).order_by(api_keys.c.created_at.desc(), api_keys.c.id.desc()).limit(limit)
        if working is not None:
            query = query.where(_key_works(now) if working else not_(_key_works(now)))
        if before is not None:
            made = select(api_keys.c.created_at).where(api_keys.c.id == before).scalar_subquery()
            same = and_(api_keys.c.created_at == made, api_keys.c.id < before)
            query = query.where(or_(api_keys.c.created_at < made, same))
        async with self._database.read_transaction() as connection:
            return [_key_of_row(row) for row in (await connection.execute(query)).mappings()]

    async def list_own(self, user_id: str) -> Sequence[ApiKey]:
        """A person's own keys, newest first."""
        query = select(api_keys).where(_is_own_key(user_id)).order_by(api_keys.c.created_at.desc(), api_keys.c.id)
        async with self._database.read_transaction() as connection:
            return [_key_of_row(row) for row in (await connection.execute(query)).mappings()]

    async def list_for_agent(self, agent_id: str, now: datetime) -> Sequence[ApiKey]:
        """The working keys of one agent."""
        query = select(api_keys).where(api_keys.c.agent_id == agent_id, _key_works(now)).order_by(api_keys.c.id)
        async with self._database.read_transaction() as connection:
            return [_key_of_row(row) for row in (await connection.execute(query)).mappings()]

    async def change(self, key_id: str, user_id: str, values: Mapping[str, Any]) -> ApiKey | None:
        """Change a person's own key, if it belongs to them."""
        mine = and_(api_keys.c.id == key_id, _is_own_key(user_id))
        changed = {name: _join_optional_scopes(value) if name == "scopes" else value for name, value in values.items()}
        async with self._database.transaction() as connection:
            with _refuse_duplicate_name(values.get("name", "")):
                await connection.execute(update(api_keys).where(mine).values(changed))
            row = (await connection.execute(select(api_keys).where(mine))).mappings().one_or_none()
        return _key_of_row(row) if row else None

    async def any_working(self, now: datetime) -> bool:
        """Whether any key works. The key of the first start is for this machine and does not count."""
        return await self._any(_key_works(now))

    async def any_made(self) -> bool:
        """Whether somebody created a key that is not revoked. The key of the first start does not count.

        Expired keys count: otherwise callers would gain rights when the last key expires.
        """
        return await self._any(api_keys.c.revoked_at.is_(None))

    async def _any(self, such: ColumnElement[bool]) -> bool:
        other = or_(
            not_(api_keys.c.own), api_keys.c.user_id != LOCAL_USER, not_(api_keys.c.name.startswith(FIRST_KEY_NAME))
        )
        async with self._database.read_transaction() as connection:
            query = select(api_keys.c.id).where(such, other).limit(1)
            return (await connection.execute(query)).first() is not None

    async def is_empty(self) -> bool:
        """Whether there never was a key."""
        async with self._database.read_transaction() as connection:
            return (await connection.execute(select(api_keys.c.id).limit(1))).first() is None

    async def successor(self, key_id: str) -> str | None:
        """The key that replaces this one, if it was rotated."""
        query = select(api_keys.c.id).where(api_keys.c.replaces == key_id).limit(1)
        async with self._database.read_transaction() as connection:
            return (await connection.execute(query)).scalar_one_or_none()

    async def replace(self, old: ApiKey, new: ApiKey, old_expires_at: datetime) -> None:
        """Add a key and let the key that it replaces expire, in one transaction. The new key takes over the name."""
        left: dict[str, object] = {"expires_at": old_expires_at}
        if old.own:
            left["name"] = f"{old.name} ({old.id})"
        async with self._database.transaction() as connection:
            await connection.execute(update(api_keys).where(api_keys.c.id == old.id).values(left))
            await _insert_key(connection, new)

    async def expire(self, key_id: str, now: datetime) -> None:
        """End a key that was replaced. Work that it requested continues with its successor."""
        lasts = or_(api_keys.c.expires_at.is_(None), api_keys.c.expires_at > now)
        async with self._database.transaction() as connection:
            await connection.execute(update(api_keys).where(api_keys.c.id == key_id, lasts).values(expires_at=now))

    async def revoke(self, key_id: str, now: datetime) -> bool:
        """Revoke a key and the grants that rest on it. Returns whether there was such a key."""
        ended = update(api_keys).where(api_keys.c.id == key_id, api_keys.c.revoked_at.is_(None)).values(revoked_at=now)
        allowed = update(oauth_grants).where(
            oauth_grants.c.proof == f"{KEY_CREDENTIAL_PREFIX}{key_id}", oauth_grants.c.revoked_at.is_(None)
        )
        async with self._database.transaction() as connection:
            done = await connection.execute(ended)
            await connection.execute(allowed.values(revoked_at=now))
        return done.rowcount > 0

    async def mark_used(self, used: Mapping[str, datetime]) -> None:
        if not used:
            return
        statement = update(api_keys).where(api_keys.c.id == bindparam("key")).values(last_used_at=bindparam("used"))
        async with self._database.transaction() as connection:
            await connection.execute(statement, [{"key": key, "used": at} for key, at in used.items()])


class BucketStore:
    """Token buckets that all replicas share."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def lease(self, key: str, rate: Rate, count: int, now: float) -> tuple[int, float]:
        """Take up to `count` tokens: (granted, seconds to wait if none was granted)."""
        full = {"key": key, "tokens": rate.limit, "refilled_at": now}
        async with self._database.transaction() as connection:
            await connection.execute(INSERT_BUCKET[connection.dialect.name], full)
            row = (await connection.execute(select(buckets).where(buckets.c.key == key).with_for_update())).one()
            bucket, granted, wait = TokenBucket(row.tokens, row.refilled_at).take_up_to(rate, count, now)
            await connection.execute(
                update(buckets).where(buckets.c.key == key).values(tokens=bucket.tokens, refilled_at=bucket.at)
            )
        return granted, wait

    async def prune(self, before: float) -> None:
        """Delete buckets that were not used since then. They are full again, as a new bucket is."""
        async with self._database.transaction() as connection:
            await connection.execute(delete(buckets).where(buckets.c.refilled_at < before))


async def _insert_key(connection: Transaction, key: ApiKey) -> None:
    with _refuse_duplicate_name(key.name):
        await connection.execute(insert(api_keys).values(_key_row(key)))


@contextmanager
def _refuse_duplicate_name(name: str) -> Generator[None]:
    """Translate the database's error about a duplicate name or key."""
    try:
        yield
    except IntegrityError as error:
        raise Conflict(f"There is a key named '{name}' already; choose another name") from error


def _key_works(now: datetime) -> ColumnElement[bool]:
    """The SQL form of `ApiKey.works_at`."""
    not_over = or_(api_keys.c.expires_at.is_(None), api_keys.c.expires_at > now)
    return and_(api_keys.c.is_active, api_keys.c.revoked_at.is_(None), not_over)


def _is_own_key(user_id: str) -> ColumnElement[bool]:
    return and_(api_keys.c.user_id == user_id, api_keys.c.own, api_keys.c.revoked_at.is_(None))


def _key_row(key: ApiKey) -> dict[str, Any]:
    return {column.name: getattr(key, column.name) for column in api_keys.columns} | {
        "scopes": _join_optional_scopes(key.scopes)
    }


def _join_optional_scopes(scopes: frozenset[str] | None) -> str | None:
    return None if scopes is None else " ".join(sorted(scopes))


def _key_of_row(row: RowMapping) -> ApiKey:
    values: dict[str, Any] = {column.name: row[column.name] for column in api_keys.columns}
    scopes = values.pop("scopes")
    return ApiKey(**values, scopes=None if scopes is None else frozenset(scopes.split()))


TOKEN_OF_GRANT = oauth_tokens.c.grant_id == oauth_grants.c.id
# Labels, because both tables have columns of the same names.
TOKEN_COLUMNS = (
    oauth_tokens.c.token_sha256,
    oauth_tokens.c.kind,
    oauth_tokens.c.scopes.label("token_scopes"),
    oauth_tokens.c.expires_at,
    oauth_tokens.c.used_at,
)


class OAuthStore:
    """Logins. Each step is one transaction, and any replica can take it."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def add_request(
        self, id_sha256: bytes, browser_sha256: bytes, request: AuthorizationRequest, expires_at: datetime
    ) -> None:
        row = {
            "id_sha256": id_sha256,
            "browser_sha256": browser_sha256,
            "client_id": request.client_id,
            "redirect_uri": request.redirect_uri,
            "scopes": _join_scopes(request.scopes),
            "state": request.state,
            "challenge": request.challenge,
            "expires_at": expires_at,
        }
        async with self._database.transaction() as connection:
            await connection.execute(insert(oauth_requests).values(row))

    async def find_request(self, id_sha256: bytes, browser_sha256: bytes, now: datetime) -> AuthorizationRequest | None:
        """The request that this browser may answer, if it has not expired."""
        query = select(oauth_requests).where(
            oauth_requests.c.id_sha256 == id_sha256,
            oauth_requests.c.browser_sha256 == browser_sha256,
            oauth_requests.c.expires_at > now,
        )
        async with self._database.read_transaction() as connection:
            row = (await connection.execute(query)).mappings().one_or_none()
        if row is None:
            return None
        return AuthorizationRequest(
            row["client_id"], row["redirect_uri"], _split_scopes(row["scopes"]), row["challenge"], row["state"]
        )

    async def settle_request(self, id_sha256: bytes, grant: LoginGrant | None = None) -> bool:
        """Answer a request, with a grant or without. Returns whether it was still open."""
        async with self._database.transaction() as connection:
            done = await connection.execute(delete(oauth_requests).where(oauth_requests.c.id_sha256 == id_sha256))
            if done.rowcount > 0 and grant is not None:
                await connection.execute(insert(oauth_grants).values(_grant_row(grant)))
        return done.rowcount > 0

    async def add_grant(self, grant: LoginGrant) -> None:
        async with self._database.transaction() as connection:
            await connection.execute(insert(oauth_grants).values(_grant_row(grant)))

    async def take_code(
        self, code_sha256: bytes, now: datetime, holds: Callable[[LoginGrant], bool], tokens: Sequence[NewToken]
    ) -> LoginGrant | None:
        """Redeem a code and store its tokens if it is valid. Using a code twice ends everything issued from it."""
        async with self._database.transaction() as connection:
            query = select(oauth_grants).where(oauth_grants.c.code_sha256 == code_sha256).with_for_update()
            row = (await connection.execute(query)).mappings().one_or_none()
            if row is None:
                return None
            if row["code_used_at"] is not None:
                await _revoke_grant(connection, row["id"], now)
                return None
            used = update(oauth_grants).where(oauth_grants.c.id == row["id"]).values(code_used_at=now)
            await connection.execute(used)
            grant = _grant_of_row(row)
            if row["revoked_at"] is not None or now >= grant.code_expires_at or not holds(grant):
                return None
            await _insert_tokens(connection, grant, tokens)
        return grant

    async def take_refresh(
        self, token_sha256: bytes, now: datetime, holds: Callable[[LoginGrant], bool], tokens: Sequence[NewToken]
    ) -> LoginGrant | None:
        """Replace a refresh token by new tokens. A second use, or a use by another client, ends the whole grant."""
        async with self._database.transaction() as connection:
            row = await _lock_token(connection, token_sha256)
            if row is None or row["kind"] != TokenKind.REFRESH:
                return None
            grant = _grant_of_row(row)
            if row["used_at"] is not None or not holds(grant):
                await _revoke_grant(connection, grant.id, now)
                return None
            if row["revoked_at"] is not None or now >= row["expires_at"]:
                return None
            mine = oauth_tokens.c.token_sha256 == token_sha256
            await connection.execute(update(oauth_tokens).where(mine).values(used_at=now))
            await _insert_tokens(connection, grant, tokens)
        return grant

    async def find_access_token(self, token_sha256: bytes) -> AccessToken | None:
        """The content of an access token that has not expired."""
        wanted = _select_tokens(
            oauth_tokens.c.token_sha256 == token_sha256,
            oauth_tokens.c.kind == TokenKind.ACCESS,
            oauth_grants.c.revoked_at.is_(None),
        )
        async with self._database.read_transaction() as connection:
            row = (await connection.execute(wanted)).mappings().one_or_none()
        if row is None:
            return None
        scopes, profile = _split_scopes(row["token_scopes"]), _profile_of_row(row)
        return AccessToken(row["user_id"], row["client_id"], scopes, profile, row["expires_at"], row["proof"])

    async def revoke(self, token_sha256: bytes, client_id: str, now: datetime) -> bool:
        """Revoke a token, and for a refresh token its whole grant. False if it belongs to another client."""
        async with self._database.transaction() as connection:
            row = await _lock_token(connection, token_sha256)
            if row is None:
                return True
            if row["client_id"] != client_id:
                return False
            if row["kind"] == TokenKind.REFRESH:
                await _revoke_grant(connection, row["id"], now)
            else:
                await connection.execute(delete(oauth_tokens).where(oauth_tokens.c.token_sha256 == token_sha256))
        return True

    async def prune(self, now: datetime) -> None:
        """Delete expired rows. A used refresh token is kept until it expires, to detect its reuse."""
        has_tokens = exists(select(oauth_tokens.c.token_sha256).where(TOKEN_OF_GRANT))
        async with self._database.transaction() as connection:
            await connection.execute(delete(oauth_requests).where(oauth_requests.c.expires_at <= now))
            await connection.execute(delete(oauth_tokens).where(oauth_tokens.c.expires_at <= now))
            await connection.execute(delete(oauth_grants).where(oauth_grants.c.code_expires_at <= now, ~has_tokens))


def _select_tokens(*conditions: ColumnElement[bool]) -> Select[Any]:
    return select(oauth_grants, *TOKEN_COLUMNS).where(TOKEN_OF_GRANT, *conditions)


async def _lock_token(connection: Transaction, token_sha256: bytes) -> RowMapping | None:
    wanted = _select_tokens(oauth_tokens.c.token_sha256 == token_sha256).with_for_update()
    return (await connection.execute(wanted)).mappings().one_or_none()


async def _insert_tokens(connection: Transaction, grant: LoginGrant, tokens: Sequence[NewToken]) -> None:
    rows = [
        {
            "token_sha256": token.sha256,
            "grant_id": grant.id,
            "kind": token.kind,
            "scopes": _join_scopes(grant.scopes if token.scopes is None else token.scopes),
            "expires_at": token.expires_at,
        }
        for token in tokens
    ]
    await connection.execute(insert(oauth_tokens), rows)


async def _revoke_grant(connection: Transaction, grant_id: str, now: datetime) -> None:
    mine = and_(oauth_grants.c.id == grant_id, oauth_grants.c.revoked_at.is_(None))
    await connection.execute(update(oauth_grants).where(mine).values(revoked_at=now))


def _grant_row(grant: LoginGrant) -> Mapping[str, object]:
    return {
        "id": grant.id,
        "client_id": grant.client_id,
        "user_id": grant.user_id,
        "scopes": _join_scopes(grant.scopes),
        "proof": grant.proof,
        "email": grant.profile.email,
        "name": grant.profile.name,
        "code_sha256": grant.code_sha256,
        "redirect_uri": grant.redirect_uri,
        "challenge": grant.challenge,
        "created_at": grant.created_at,
        "code_expires_at": grant.code_expires_at,
    }


def _grant_of_row(row: RowMapping) -> LoginGrant:
    return LoginGrant(
        row["id"],
        row["client_id"],
        row["user_id"],
        _split_scopes(row["scopes"]),
        row["proof"],
        _profile_of_row(row),
        row["code_sha256"],
        row["redirect_uri"],
        row["challenge"],
        row["created_at"],
        row["code_expires_at"],
    )


def _profile_of_row(row: RowMapping) -> Profile:
    return Profile(row["email"], row["name"])


def _join_scopes(scopes: frozenset[str]) -> str:
    return " ".join(sorted(scopes))


def _split_scopes(scopes: str) -> frozenset[str]:
    return frozenset(scopes.split())


def _upsert_token(insert: Any) -> Executable:  # noqa: ANN401 - the two dialects have no common type
    new = insert(mcp_sessions)
    values = {"sealed": new.excluded.sealed, "expires_at": new.excluded.expires_at}
    return new.on_conflict_do_update(index_elements=["id_sha256"], set_=values)


def _upsert_person(insert: Any) -> Executable:  # noqa: ANN401 - see above
    """The session's first person stays. A claim by another person, or after closing, clears the person."""
    new = insert(mcp_session_persons)
    same = mcp_session_persons.c.person_hash == new.excluded.person_hash
    values = {"person_hash": case((same, new.excluded.person_hash), else_=null())}
    return new.on_conflict_do_update(index_elements=["id_sha256"], set_=values).returning(
        mcp_session_persons.c.person_hash
    )


UPSERT_TOKEN, UPSERT_PERSON = per_dialect(_upsert_token), per_dialect(_upsert_person)


class McpSessionStore:
    """One row for each session with a token, and one for each session in which a person's token was used.

    Transactions that change both change the latter first, so that concurrent calls wait for each other.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    async def put(self, id_sha256: bytes, person: bytes, sealed: str, expires_at: datetime, ends_at: datetime) -> bool:
        """Store a person's token, unless the session acts for another person; then close the session."""
        claim = {"id_sha256": id_sha256, "person_hash": person, "expires_at": ends_at}
        row = {"id_sha256": id_sha256, "sealed": sealed, "expires_at": expires_at}
        async with self._database.transaction() as connection:
            name = connection.dialect.name
            if (await connection.execute(UPSERT_PERSON[name], claim)).scalar_one() is None:
                await connection.execute(_delete_token(id_sha256))
                return False
            await connection.execute(UPSERT_TOKEN[name], row)
            return True

    async def get(self, id_sha256: bytes, now: datetime) -> str | None:
        same = mcp_session_persons.c.id_sha256 == mcp_sessions.c.id_sha256
        query = (
            select(mcp_sessions.c.sealed)
            .join(mcp_session_persons, same)
            .where(
                mcp_sessions.c.id_sha256 == id_sha256,
                mcp_sessions.c.expires_at > now,
                mcp_session_persons.c.person_hash.is_not(None),
            )
        )
        async with self._database.read_transaction() as connection:
            return (await connection.execute(query)).scalar_one_or_none()

    async def is_closed(self, id_sha256: bytes) -> bool:
        """Whether the session is closed and keeps no token."""
        query = select(mcp_session_persons.c.id_sha256).where(
            mcp_session_persons.c.id_sha256 == id_sha256, mcp_session_persons.c.person_hash.is_(None)
        )
        async with self._database.read_transaction() as connection:
            return (await connection.execute(query)).first() is not None

    async def close(self, id_sha256: bytes, ends_at: datetime) -> None:
        """Delete the session's token, and keep none from now on."""
        row = {"id_sha256": id_sha256, "person_hash": None, "expires_at": ends_at}
        async with self._database.transaction() as connection:
            await connection.execute(UPSERT_PERSON[connection.dialect.name], row)
            await connection.execute(_delete_token(id_sha256))

    async def close_known(self, id_sha256: bytes) -> None:
        """Close the session only if it is known, because anybody may be calling."""
        closing = (
            update(mcp_session_persons).where(mcp_session_persons.c.id_sha256 == id_sha256).values(person_hash=None)
        )
        async with self._database.transaction() as connection:
            await connection.execute(closing)
            await connection.execute(_delete_token(id_sha256))

    async def remove(self, id_sha256: bytes) -> None:
        """Delete the token. The session stays bound to its person."""
        async with self._database.transaction() as connection:
            await connection.execute(_delete_token(id_sha256))

    async def prune(self, now: datetime) -> None:
        async with self._database.transaction() as connection:
            for table in (mcp_session_persons, mcp_sessions):
                await connection.execute(delete(table).where(table.c.expires_at <= now))


def _delete_token(id_sha256: bytes) -> Executable:
    return delete(mcp_sessions).where(mcp_sessions.c.id_sha256 == id_sha256)
