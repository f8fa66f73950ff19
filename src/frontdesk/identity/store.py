"""Keys and shared rate buckets in the database."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import RowMapping, bindparam, delete, insert, or_, select, update

from frontdesk.db.engine import Database
from frontdesk.db.schema import api_keys, buckets
from frontdesk.db.upsert import per_dialect
from frontdesk.identity.buckets import Bucket
from frontdesk.identity.keys import ApiKey
from frontdesk.settings import Rate

FILL = per_dialect(lambda insert: insert(buckets).on_conflict_do_nothing())


class KeyStore:
    """API keys: written by the operator, read on every call that shows one."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def add(self, key: ApiKey) -> None:
        async with self._database.transaction() as connection:
            await connection.execute(insert(api_keys).values(_row(key)))

    async def get(self, key_id: str) -> ApiKey | None:
        async with self._database.reading() as connection:
            rows = await connection.execute(select(api_keys).where(api_keys.c.id == key_id))
            row = rows.mappings().one_or_none()
        return _key(row) if row else None

    async def list(self) -> Sequence[ApiKey]:
        async with self._database.reading() as connection:
            rows = await connection.execute(select(api_keys).order_by(api_keys.c.created_at, api_keys.c.id))
            return [_key(row) for row in rows.mappings()]

    async def any_working(self, now: datetime) -> bool:
        """Whether anybody could get in with a key."""
        not_over = or_(api_keys.c.expires_at.is_(None), api_keys.c.expires_at > now)
        wanted = select(api_keys.c.id).where(api_keys.c.revoked_at.is_(None), not_over).limit(1)
        async with self._database.reading() as connection:
            return (await connection.execute(wanted)).first() is not None

    async def successor(self, key_id: str) -> str | None:
        """The key that replaces this one, if it was rotated."""
        wanted = select(api_keys.c.id).where(api_keys.c.replaces == key_id).limit(1)
        async with self._database.reading() as connection:
            return (await connection.execute(wanted)).scalar_one_or_none()

    async def replace(self, old_id: str, new: ApiKey, old_expires_at: datetime) -> None:
        """Add a key and let the one it replaces run out, in one step."""
        async with self._database.transaction() as connection:
            await connection.execute(insert(api_keys).values(_row(new)))
            await connection.execute(update(api_keys).where(api_keys.c.id == old_id).values(expires_at=old_expires_at))

    async def revoke(self, key_id: str, now: datetime) -> bool:
        """End a key; whether there was one to end."""
        async with self._database.transaction() as connection:
            done = await connection.execute(
                update(api_keys).where(api_keys.c.id == key_id, api_keys.c.revoked_at.is_(None)).values(revoked_at=now)
            )
        return done.rowcount > 0

    async def mark_used(self, used: Mapping[str, datetime]) -> None:
        if not used:
            return
        statement = update(api_keys).where(api_keys.c.id == bindparam("key")).values(last_used_at=bindparam("used"))
        async with self._database.transaction() as connection:
            await connection.execute(statement, [{"key": key, "used": at} for key, at in used.items()])


class BucketStore:
    """Token buckets that all replicas draw on."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def lease(self, key: str, rate: Rate, count: int, now: float) -> tuple[int, float]:
        """Take up to `count` tokens: (granted, seconds to wait when none was)."""
        full = {"key": key, "tokens": rate.limit, "refilled_at": now}
        async with self._database.transaction() as connection:
            await connection.execute(FILL[connection.dialect.name], full)
            row = (await connection.execute(select(buckets).where(buckets.c.key == key).with_for_update())).one()
            bucket, granted, wait = Bucket(row.tokens, row.refilled_at).take_up_to(rate, count, now)
            await connection.execute(
                update(buckets).where(buckets.c.key == key).values(tokens=bucket.tokens, refilled_at=bucket.at)
            )
        return granted, wait

    async def prune(self, before: float) -> None:
        """Forget buckets that nobody drew on since; they are full again, as a new one would be."""
        async with self._database.transaction() as connection:
            await connection.execute(delete(buckets).where(buckets.c.refilled_at < before))


def _row(key: ApiKey) -> dict[str, object]:
    return {
        "id": key.id,
        "secret_sha256": key.secret_sha256,
        "name": key.name,
        "agent_id": key.agent_id,
        "user_id": key.user_id,
        "scopes": None if key.scopes is None else " ".join(sorted(key.scopes)),
        "created_at": key.created_at,
        "expires_at": key.expires_at,
        "revoked_at": key.revoked_at,
        "last_used_at": key.last_used_at,
        "replaces": key.replaces,
    }


def _key(row: RowMapping) -> ApiKey:
    values: dict[str, Any] = {column.name: row[column.name] for column in api_keys.columns}
    scopes = values.pop("scopes")
    return ApiKey(**values, scopes=None if scopes is None else frozenset(scopes.split()))
