"""Sealed tokens in the database, by the hash of their session's id."""

from datetime import datetime
from typing import Any

from sqlalchemy import Executable, delete, select

from frontdesk.db.engine import Database
from frontdesk.db.schema import mcp_sessions
from frontdesk.db.upsert import per_dialect


def _put(insert: Any) -> Executable:  # noqa: ANN401 - the two dialects have no common type
    new = insert(mcp_sessions)
    values = {"sealed": new.excluded.sealed, "expires_at": new.excluded.expires_at}
    return new.on_conflict_do_update(index_elements=["id_sha256"], set_=values)


PUT = per_dialect(_put)


class SealedStore:
    """One row a session that has a token."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def put(self, id_sha256: bytes, sealed: str, expires_at: datetime) -> None:
        row = {"id_sha256": id_sha256, "sealed": sealed, "expires_at": expires_at}
        async with self._database.transaction() as connection:
            await connection.execute(PUT[connection.dialect.name], row)

    async def get(self, id_sha256: bytes, now: datetime) -> str | None:
        wanted = select(mcp_sessions.c.sealed).where(
            mcp_sessions.c.id_sha256 == id_sha256, mcp_sessions.c.expires_at > now
        )
        async with self._database.reading() as connection:
            return (await connection.execute(wanted)).scalar_one_or_none()

    async def remove(self, id_sha256: bytes) -> None:
        async with self._database.transaction() as connection:
            await connection.execute(delete(mcp_sessions).where(mcp_sessions.c.id_sha256 == id_sha256))

    async def prune(self, now: datetime) -> None:
        async with self._database.transaction() as connection:
            await connection.execute(delete(mcp_sessions).where(mcp_sessions.c.expires_at <= now))
