"""Stores the sessions of code editors, the agent of each folder, and lasting permissions."""

import base64
import hashlib
import json
import os
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any, Unpack

from sqlalchemy import ColumnElement, Executable, Row, and_, delete, insert, or_, select, update

from frontdesk.coding.model import (
    SESSION_ID,
    CodingSession,
    CodingSessionChanges,
    CodingSessionPage,
    PermissionMode,
    StoredPermission,
)
from frontdesk.db.engine import Database
from frontdesk.db.schema import editor_sessions, permissions, workspaces
from frontdesk.db.statements import per_dialect
from frontdesk.errors import Invalid, NotFound
from frontdesk.text import storable

LONGEST_CURSOR = 200


def cursor_after(session: CodingSession) -> str:
    place = [session.updated_at.astimezone(UTC).isoformat(), session.id]
    return base64.urlsafe_b64encode(json.dumps(place).encode()).decode()


def parse_cursor(cursor: str) -> tuple[datetime, str]:
    """The time of last use and the id of the last session on the previous page."""
    try:
        if len(cursor) > LONGEST_CURSOR:
            raise ValueError("too long")
        when, session_id = json.loads(base64.b64decode(cursor, altchars=b"-_", validate=True))
        used = datetime.fromisoformat(when)
        if not SESSION_ID.fullmatch(session_id) or used.tzinfo is None:
            raise ValueError("not ours")
        return used.astimezone(UTC), session_id
    except (ValueError, TypeError, OverflowError, RecursionError) as error:
        raise Invalid("That cursor is none of ours; list the sessions from the start") from error


INSERT_FOLDER_AGENT = per_dialect(lambda insert: insert(workspaces).on_conflict_do_nothing())


class CodingSessionStore:
    """Stores sessions; a session is found only with the user id of its owner."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def add(self, session: CodingSession) -> None:
        row = {
            "id": session.id,
            "user_id": session.user_id or "",
            "agent_id": session.agent_id,
            "conversation_id": session.conversation_id,
            "title": session.title,
            "mode": session.mode,
            "model": session.model,
            "effort": session.effort,
            "asks_memory": session.asks_memory,
            "cost_usd": session.cost_usd,
            "created_at": session.created_at,
            "updated_at": session.updated_at,
            **_to_columns({"cwd": session.cwd, "directories": session.directories}),
        }
        async with self._database.transaction() as connection:
            await connection.execute(insert(editor_sessions).values(row))

    async def get(self, session_id: str, user_id: str | None) -> CodingSession | None:
        query = select(editor_sessions).where(_session_is(session_id, user_id))
        async with self._database.read_transaction() as connection:
            row = (await connection.execute(query)).one_or_none()
        return _to_session(row) if row else None

    async def list(self, user_id: str | None, cwd: Path | None, after: str | None, limit: int) -> CodingSessionPage:
        """List sessions, the last used first; a session that is used during paging moves to the front."""
        mine = [editor_sessions.c.user_id == (user_id or "")]
        if cwd is not None:
            mine.append(editor_sessions.c.cwd == str(cwd))
        if after is not None:
            mine.append(_used_before(*parse_cursor(after)))
        order = (editor_sessions.c.updated_at.desc(), editor_sessions.c.id.desc())
        query = select(editor_sessions).where(*mine).order_by(*order).limit(limit + 1)
        async with self._database.read_transaction() as connection:
            found = [_to_session(row) for row in (await connection.execute(query)).all()]
        return CodingSessionPage(found[:limit], cursor_after(found[limit - 1]) if len(found) > limit else None)

    async def change(self, session: CodingSession, **fields: Unpack[CodingSessionChanges]) -> CodingSession:
        """Change only these fields, so that two simultaneous changes do not undo each other."""
        if fields:
            change = (
                update(editor_sessions)
                .where(_session_is(session.id, session.user_id))
                .values(_to_columns(dict(fields)))
            )
            async with self._database.transaction() as connection:
                if (await connection.execute(change)).rowcount == 0:
                    raise NotFound("Session not found")
        return replace(session, **fields)

    async def has_conversation(self, user_id: str, agent_id: str, conversation_id: str) -> bool:
        """Whether a person has a session on this conversation."""
        theirs = (
            editor_sessions.c.agent_id == agent_id,
            editor_sessions.c.user_id == user_id,
            editor_sessions.c.conversation_id == conversation_id,
        )
        async with self._database.read_transaction() as connection:
            found = await connection.execute(select(editor_sessions.c.id).where(*theirs).limit(1))
            return found.first() is not None

    async def touch(self, session: CodingSession, now: datetime) -> CodingSession:
        """Note that the session was used now; does nothing where it was deleted meanwhile."""
        change = update(editor_sessions).where(
            _session_is(session.id, session.user_id), editor_sessions.c.updated_at < now
        )
        async with self._database.transaction() as connection:
            await connection.execute(change.values(updated_at=now))
        return replace(session, updated_at=max(now, session.updated_at))

    async def delete(self, session_id: str, user_id: str | None) -> bool:
        """Delete a session; returns False if there was none."""
        async with self._database.transaction() as connection:
            return (
                await connection.execute(delete(editor_sessions).where(_session_is(session_id, user_id)))
            ).rowcount > 0

    async def folder_agent(self, user_id: str | None, cwd: Path) -> str | None:
        """The agent of a folder."""
        async with self._database.read_transaction() as connection:
            found = await connection.execute(select(workspaces.c.agent_id).where(_folder_is(user_id, cwd)))
            return found.scalar_one_or_none()

    async def set_folder_agent(
        self, user_id: str | None, cwd: Path, agent_id: str, now: datetime, *, instead_of: str | None = None
    ) -> str:
        """Set the agent of a folder; returns the folder's agent, which is another one where that came first.

        `instead_of` is a deleted agent, which is replaced.
        """
        row = {"user_id": user_id or "", "cwd_sha256": _folder_digest(cwd), "cwd": str(cwd)}
        async with self._database.transaction() as connection:
            if instead_of is not None:
                gone = delete(workspaces).where(_folder_is(user_id, cwd), workspaces.c.agent_id == instead_of)
                await connection.execute(gone)
            insert_agent = INSERT_FOLDER_AGENT[connection.dialect.name]
            await connection.execute(insert_agent, {**row, "agent_id": agent_id, "created_at": now})
            found = await connection.execute(select(workspaces.c.agent_id).where(_folder_is(user_id, cwd)))
            return str(found.scalar_one())


def _session_is(session_id: str, user_id: str | None) -> ColumnElement[bool]:
    return and_(editor_sessions.c.id == session_id, editor_sessions.c.user_id == (user_id or ""))


def _folder_is(user_id: str | None, cwd: Path) -> ColumnElement[bool]:
    return and_(workspaces.c.user_id == (user_id or ""), workspaces.c.cwd_sha256 == _folder_digest(cwd))


def _used_before(used: datetime, session_id: str) -> ColumnElement[bool]:
    when = editor_sessions.c.updated_at
    return or_(when < used, and_(when == used, editor_sessions.c.id < session_id))


def _folder_digest(cwd: Path) -> str:
    return hashlib.sha256(str(cwd).encode()).hexdigest()


def _to_columns(fields: dict[str, Any]) -> dict[str, Any]:
    """Fields as columns: paths become text."""
    if "cwd" in fields:
        fields["cwd"] = str(fields["cwd"])
    if "directories" in fields:
        fields["directories"] = json.dumps([str(one) for one in fields["directories"]])
    return fields


def _to_session(row: Row[Any]) -> CodingSession:
    return CodingSession(
        id=row.id,
        agent_id=row.agent_id,
        conversation_id=row.conversation_id,
        cwd=Path(row.cwd),
        created_at=row.created_at,
        updated_at=row.updated_at,
        user_id=row.user_id or None,
        directories=tuple(Path(one) for one in json.loads(row.directories)),
        title=row.title,
        mode=PermissionMode(row.mode),
        model=row.model,
        effort=row.effort,
        asks_memory=row.asks_memory,
        cost_usd=row.cost_usd,
    )


NOBODY = ""


def _upsert_permission(insert: Any) -> Executable:  # noqa: ANN401 - the two dialects' inserts have no common type
    new = insert(permissions)
    again = {"allowed": new.excluded.allowed, "created_at": new.excluded.created_at}
    return new.on_conflict_do_update(index_elements=["user_id", "cwd_sha256", "scope_sha256"], set_=again)


UPSERT_PERMISSION = per_dialect(_upsert_permission)


class PermissionStore:
    """Stores lasting answers, one row per scope; the last answer counts."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def list(self, user_id: str | None, cwd: Path) -> Sequence[StoredPermission]:
        """List the answers, in the order of their scopes."""
        query = select(permissions).where(*_permissions_in(user_id, cwd))
        async with self._database.read_transaction() as connection:
            rows = await connection.execute(query)
            found = [StoredPermission(row.scope, row.allowed, row.created_at) for row in rows]
        # Databases differ in how they sort text.
        return sorted(found, key=lambda one: one.scope)

    async def save(self, user_id: str | None, cwd: Path, remembered: StoredPermission) -> None:
        scope = storable(remembered.scope)
        row = {
            "user_id": user_id or NOBODY,
            "cwd_sha256": _permission_folder_digest(cwd),
            "scope_sha256": sha256(scope.encode()).hexdigest(),
            "cwd": storable(str(cwd)),
            "scope": scope,
            "allowed": remembered.allowed,
            "created_at": remembered.created_at,
        }
        async with self._database.brief_transaction() as connection:
            await connection.execute(UPSERT_PERMISSION[connection.dialect.name], row)

    async def forget(self, user_id: str | None, cwd: Path) -> int:
        """Delete the answers; returns how many there were."""
        async with self._database.brief_transaction() as connection:
            return (await connection.execute(delete(permissions).where(*_permissions_in(user_id, cwd)))).rowcount


def _permissions_in(user_id: str | None, cwd: Path) -> tuple[ColumnElement[bool], ...]:
    return permissions.c.user_id == (user_id or NOBODY), permissions.c.cwd_sha256 == _permission_folder_digest(cwd)


def _permission_folder_digest(cwd: Path) -> str:
    return sha256(os.fsencode(cwd)).hexdigest()
