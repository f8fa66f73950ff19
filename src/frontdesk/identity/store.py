"""Keys and shared rate buckets in the database."""

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, RowMapping, and_, bindparam, delete, insert, not_, or_, select, update
from sqlalchemy.exc import IntegrityError

from frontdesk.db.engine import Database, Transaction
from frontdesk.db.schema import api_keys, buckets, oauth_grants
from frontdesk.db.upsert import per_dialect
from frontdesk.errors import Conflict
from frontdesk.identity.buckets import Bucket
from frontdesk.identity.keys import FIRST_NAME, FIRST_USER, ApiKey
from frontdesk.identity.model import KEY
from frontdesk.settings import Rate

FILL = per_dialect(lambda insert: insert(buckets).on_conflict_do_nothing())


class KeyStore:
    """API keys: written by the operator and by people for themselves, read on every call that shows one."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def add(self, key: ApiKey) -> None:
        async with self._database.transaction() as connection:
            await _insert(connection, key)

    async def get(self, key_id: str) -> ApiKey | None:
        async with self._database.reading() as connection:
            rows = await connection.execute(select(api_keys).where(api_keys.c.id == key_id))
            row = rows.mappings().one_or_none()
        return _key(row) if row else None

    async def list(self) -> Sequence[ApiKey]:
        async with self._database.reading() as connection:
            rows = await connection.execute(select(api_keys).order_by(api_keys.c.created_at, api_keys.c.id))
            return [_key(row) for row in rows.mappings()]

    async def newest(
        self, now: datetime, limit: int, *, working: bool | None = None, before: str | None = None
    ) -> Sequence[ApiKey]:
        """Keys, the newest first: those that work, those that ended, or all; `before` is the last one seen."""
        wanted = select(api_keys).order_by(api_keys.c.created_at.desc(), api_keys.c.id.desc()).limit(limit)
        if working is not None:
            wanted = wanted.where(_works(now) if working else not_(_works(now)))
        if before is not None:
            made = select(api_keys.c.created_at).where(api_keys.c.id == before).scalar_subquery()
            same = and_(api_keys.c.created_at == made, api_keys.c.id < before)
            wanted = wanted.where(or_(api_keys.c.created_at < made, same))
        async with self._database.reading() as connection:
            return [_key(row) for row in (await connection.execute(wanted)).mappings()]

    async def owned(self, user_id: str) -> Sequence[ApiKey]:
        """A person's own keys, the newest first."""
        wanted = select(api_keys).where(_is_own(user_id)).order_by(api_keys.c.created_at.desc(), api_keys.c.id)
        async with self._database.reading() as connection:
            return [_key(row) for row in (await connection.execute(wanted)).mappings()]

    async def of_agent(self, agent_id: str, now: datetime) -> Sequence[ApiKey]:
        """The keys that work and speak for one agent."""
        wanted = select(api_keys).where(api_keys.c.agent_id == agent_id, _works(now)).order_by(api_keys.c.id)
        async with self._database.reading() as connection:
            return [_key(row) for row in (await connection.execute(wanted)).mappings()]

    async def change(self, key_id: str, user_id: str, values: Mapping[str, Any]) -> ApiKey | None:
        """Change a person's own key, if it is theirs."""
        mine = and_(api_keys.c.id == key_id, _is_own(user_id))
        changed = {name: _scope_text(value) if name == "scopes" else value for name, value in values.items()}
        async with self._database.transaction() as connection:
            with _named_apart(values.get("name", "")):
                await connection.execute(update(api_keys).where(mine).values(changed))
            row = (await connection.execute(select(api_keys).where(mine))).mappings().one_or_none()
        return _key(row) if row else None

    async def any_working(self, now: datetime) -> bool:
        """Whether anybody could get in with a key; that of the first start is for this machine, and does not count."""
        return await self._any(_works(now))

    async def any_made(self) -> bool:
        """Whether somebody made a key and has not revoked it; that of the first start nobody made.

        One that ran out counts: when it does, nobody gets rights that they did not have before.
        """
        return await self._any(api_keys.c.revoked_at.is_(None))

    async def _any(self, such: ColumnElement[bool]) -> bool:
        other = or_(
            not_(api_keys.c.own), api_keys.c.user_id != FIRST_USER, not_(api_keys.c.name.startswith(FIRST_NAME))
        )
        async with self._database.reading() as connection:
            wanted = select(api_keys.c.id).where(such, other).limit(1)
            return (await connection.execute(wanted)).first() is not None

    async def is_empty(self) -> bool:
        """Whether there never was a key."""
        async with self._database.reading() as connection:
            return (await connection.execute(select(api_keys.c.id).limit(1))).first() is None

    async def successor(self, key_id: str) -> str | None:
        """The key that replaces this one, if it was rotated."""
        wanted = select(api_keys.c.id).where(api_keys.c.replaces == key_id).limit(1)
        async with self._database.reading() as connection:
            return (await connection.execute(wanted)).scalar_one_or_none()

    async def replace(self, old: ApiKey, new: ApiKey, old_expires_at: datetime) -> None:
        """Add a key and let the one it replaces run out, in one step; its name goes over, where names differ."""
        left: dict[str, object] = {"expires_at": old_expires_at}
        if old.own:
            left["name"] = f"{old.name} ({old.id})"
        async with self._database.transaction() as connection:
            await connection.execute(update(api_keys).where(api_keys.c.id == old.id).values(left))
            await _insert(connection, new)

    async def run_out(self, key_id: str, now: datetime) -> None:
        """End a key that another one stands for by now; what was asked for with it goes on with that one."""
        lasts = or_(api_keys.c.expires_at.is_(None), api_keys.c.expires_at > now)
        async with self._database.transaction() as connection:
            await connection.execute(update(api_keys).where(api_keys.c.id == key_id, lasts).values(expires_at=now))

    async def revoke(self, key_id: str, now: datetime) -> bool:
        """End a key, and what clients were allowed on the strength of it; whether there was one to end."""
        ended = update(api_keys).where(api_keys.c.id == key_id, api_keys.c.revoked_at.is_(None)).values(revoked_at=now)
        allowed = update(oauth_grants).where(
            oauth_grants.c.proof == f"{KEY}{key_id}", oauth_grants.c.revoked_at.is_(None)
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


async def _insert(connection: Transaction, key: ApiKey) -> None:
    with _named_apart(key.name):
        await connection.execute(insert(api_keys).values(_row(key)))


@contextmanager
def _named_apart(name: str) -> Generator[None]:
    """What the database says of a name that a person gave twice, or a key that is there already, in our words."""
    try:
        yield
    except IntegrityError as error:
        raise Conflict(f"There is a key named '{name}' already; choose another name") from error


def _works(now: datetime) -> ColumnElement[bool]:
    """As `ApiKey.works_at` has it."""
    not_over = or_(api_keys.c.expires_at.is_(None), api_keys.c.expires_at > now)
    return and_(api_keys.c.is_active, api_keys.c.revoked_at.is_(None), not_over)


def _is_own(user_id: str) -> ColumnElement[bool]:
    return and_(api_keys.c.user_id == user_id, api_keys.c.own, api_keys.c.revoked_at.is_(None))


def _row(key: ApiKey) -> dict[str, Any]:
    return {column.name: getattr(key, column.name) for column in api_keys.columns} | {"scopes": _scope_text(key.scopes)}


def _scope_text(scopes: frozenset[str] | None) -> str | None:
    return None if scopes is None else " ".join(sorted(scopes))


def _key(row: RowMapping) -> ApiKey:
    values: dict[str, Any] = {column.name: row[column.name] for column in api_keys.columns}
    scopes = values.pop("scopes")
    return ApiKey(**values, scopes=None if scopes is None else frozenset(scopes.split()))
