"""What people have allowed or rejected for good, by person, folder and scope."""

import os
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

from sqlalchemy import ColumnElement, Executable, delete, select

from frontdesk.db.engine import Database
from frontdesk.db.schema import permissions
from frontdesk.db.upsert import per_dialect
from frontdesk.loop.text import storable
from frontdesk.workspace.permissions.model import Remembered

NOBODY = ""


def _keep(insert: Any) -> Executable:  # noqa: ANN401 - the two dialects' inserts have no common type
    new = insert(permissions)
    again = {"allowed": new.excluded.allowed, "created_at": new.excluded.created_at}
    return new.on_conflict_do_update(index_elements=["user_id", "cwd_sha256", "scope_sha256"], set_=again)


KEEP = per_dialect(_keep)


class PermissionStore:
    """One row a scope; what is said last counts."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def of(self, user_id: str | None, cwd: Path) -> Sequence[Remembered]:
        """In the order of their scopes."""
        wanted = select(permissions).where(*_here(user_id, cwd))
        async with self._database.reading() as connection:
            rows = await connection.execute(wanted)
            found = [Remembered(row.scope, row.allowed, row.created_at) for row in rows]
        # Databases differ in how they sort text.
        return sorted(found, key=lambda one: one.scope)

    async def keep(self, user_id: str | None, cwd: Path, remembered: Remembered) -> None:
        scope = storable(remembered.scope)
        row = {
            "user_id": user_id or NOBODY,
            "cwd_sha256": _digest(cwd),
            "scope_sha256": sha256(scope.encode()).hexdigest(),
            "cwd": storable(str(cwd)),
            "scope": scope,
            "allowed": remembered.allowed,
            "created_at": remembered.created_at,
        }
        async with self._database.brief() as connection:
            await connection.execute(KEEP[connection.dialect.name], row)

    async def forget(self, user_id: str | None, cwd: Path) -> int:
        """How many there were."""
        async with self._database.brief() as connection:
            return (await connection.execute(delete(permissions).where(*_here(user_id, cwd)))).rowcount


def _here(user_id: str | None, cwd: Path) -> tuple[ColumnElement[bool], ...]:
    return permissions.c.user_id == (user_id or NOBODY), permissions.c.cwd_sha256 == _digest(cwd)


def _digest(cwd: Path) -> str:
    return sha256(os.fsencode(cwd)).hexdigest()
