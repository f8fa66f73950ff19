"""Sealed tokens in the database, by the hash of their session's id, and whom each session acts for."""

from datetime import datetime
from typing import Any

from sqlalchemy import Executable, case, delete, null, select, update

from frontdesk.db.engine import Database
from frontdesk.db.schema import mcp_session_persons as persons
from frontdesk.db.schema import mcp_sessions as sealed_tokens
from frontdesk.db.upsert import per_dialect


def _put(insert: Any) -> Executable:  # noqa: ANN401 - the two dialects have no common type
    new = insert(sealed_tokens)
    values = {"sealed": new.excluded.sealed, "expires_at": new.excluded.expires_at}
    return new.on_conflict_do_update(index_elements=["id_sha256"], set_=values)


def _claim(insert: Any) -> Executable:  # noqa: ANN401 - see above
    """The first person stays; anybody else, and any claim after the session was closed, leaves nobody."""
    new = insert(persons)
    same = persons.c.person_hash == new.excluded.person_hash
    values = {"person_hash": case((same, new.excluded.person_hash), else_=null())}
    return new.on_conflict_do_update(index_elements=["id_sha256"], set_=values).returning(persons.c.person_hash)


PUT, CLAIM = per_dialect(_put), per_dialect(_claim)


class SealedStore:
    """A row for each session that has a token, and one for each that any person's token was shown in.

    Whatever changes both takes the latter first, so that of two calls at once one waits for the other.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    async def put(self, id_sha256: bytes, person: bytes, sealed: str, expires_at: datetime, ends_at: datetime) -> bool:
        """Keep a person's token, if the session acts for nobody else; if it does, it acts for nobody from now on."""
        claim = {"id_sha256": id_sha256, "person_hash": person, "expires_at": ends_at}
        row = {"id_sha256": id_sha256, "sealed": sealed, "expires_at": expires_at}
        async with self._database.transaction() as connection:
            name = connection.dialect.name
            if (await connection.execute(CLAIM[name], claim)).scalar_one() is None:
                await connection.execute(_removal(id_sha256))
                return False
            await connection.execute(PUT[name], row)
            return True

    async def get(self, id_sha256: bytes, now: datetime) -> str | None:
        same = persons.c.id_sha256 == sealed_tokens.c.id_sha256
        wanted = (
            select(sealed_tokens.c.sealed)
            .join(persons, same)
            .where(
                sealed_tokens.c.id_sha256 == id_sha256,
                sealed_tokens.c.expires_at > now,
                persons.c.person_hash.is_not(None),
            )
        )
        async with self._database.reading() as connection:
            return (await connection.execute(wanted)).scalar_one_or_none()

    async def is_closed(self, id_sha256: bytes) -> bool:
        """Whether the session keeps no token any more."""
        wanted = select(persons.c.id_sha256).where(persons.c.id_sha256 == id_sha256, persons.c.person_hash.is_(None))
        async with self._database.reading() as connection:
            return (await connection.execute(wanted)).first() is not None

    async def close(self, id_sha256: bytes, ends_at: datetime) -> None:
        """Keep no token of this session, now or later."""
        row = {"id_sha256": id_sha256, "person_hash": None, "expires_at": ends_at}
        async with self._database.transaction() as connection:
            await connection.execute(CLAIM[connection.dialect.name], row)
            await connection.execute(_removal(id_sha256))

    async def close_known(self, id_sha256: bytes) -> None:
        """The same, and nothing for a session of which nothing is known: whoever calls may be anybody."""
        closing = update(persons).where(persons.c.id_sha256 == id_sha256).values(person_hash=None)
        async with self._database.transaction() as connection:
            await connection.execute(closing)
            await connection.execute(_removal(id_sha256))

    async def remove(self, id_sha256: bytes) -> None:
        """Forget the token. Whose session it is stays known."""
        async with self._database.transaction() as connection:
            await connection.execute(_removal(id_sha256))

    async def prune(self, now: datetime) -> None:
        async with self._database.transaction() as connection:
            for table in (persons, sealed_tokens):
                await connection.execute(delete(table).where(table.c.expires_at <= now))


def _removal(id_sha256: bytes) -> Executable:
    return delete(sealed_tokens).where(sealed_tokens.c.id_sha256 == id_sha256)
