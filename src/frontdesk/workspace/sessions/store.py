"""Editors' sessions in the database, and which agent is at home in which folder."""

import hashlib
import json
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any, Unpack

from sqlalchemy import ColumnElement, Row, and_, delete, insert, or_, select, update

from frontdesk.db.engine import Database
from frontdesk.db.schema import editor_sessions, workspaces
from frontdesk.db.upsert import per_dialect
from frontdesk.errors import NotFound
from frontdesk.workspace.permissions.model import Mode
from frontdesk.workspace.sessions.cursors import cursor_after, place_of
from frontdesk.workspace.sessions.model import Changes, Page, Session

MOVE_IN = per_dialect(lambda insert: insert(workspaces).on_conflict_do_nothing())


class SessionStore:
    """A session is found by its owner alone; for everybody else it is not there."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def add(self, session: Session) -> None:
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
            **_places({"cwd": session.cwd, "directories": session.directories}),
        }
        async with self._database.transaction() as connection:
            await connection.execute(insert(editor_sessions).values(row))

    async def get(self, session_id: str, user_id: str | None) -> Session | None:
        wanted = select(editor_sessions).where(_is(session_id, user_id))
        async with self._database.reading() as connection:
            row = (await connection.execute(wanted)).one_or_none()
        return _session(row) if row else None

    async def list(self, user_id: str | None, cwd: Path | None, after: str | None, limit: int) -> Page:
        """Those that were used last come first. One that is used while somebody pages is at the front from then on."""
        mine = [editor_sessions.c.user_id == (user_id or "")]
        if cwd is not None:
            mine.append(editor_sessions.c.cwd == str(cwd))
        if after is not None:
            mine.append(_older(*place_of(after)))
        order = (editor_sessions.c.updated_at.desc(), editor_sessions.c.id.desc())
        wanted = select(editor_sessions).where(*mine).order_by(*order).limit(limit + 1)
        async with self._database.reading() as connection:
            found = [_session(row) for row in (await connection.execute(wanted)).all()]
        return Page(found[:limit], cursor_after(found[limit - 1]) if len(found) > limit else None)

    async def change(self, session: Session, **fields: Unpack[Changes]) -> Session:
        """The session with these and no other fields changed, so that two who change it do not undo each other."""
        if fields:
            change = update(editor_sessions).where(_is(session.id, session.user_id)).values(_places(dict(fields)))
            async with self._database.transaction() as connection:
                if (await connection.execute(change)).rowcount == 0:
                    raise NotFound("Session not found")
        return replace(session, **fields)

    async def keeps(self, user_id: str, agent_id: str, conversation_id: str) -> bool:
        """Whether a person has a session on this conversation."""
        theirs = (
            editor_sessions.c.agent_id == agent_id,
            editor_sessions.c.user_id == user_id,
            editor_sessions.c.conversation_id == conversation_id,
        )
        async with self._database.reading() as connection:
            found = await connection.execute(select(editor_sessions.c.id).where(*theirs).limit(1))
            return found.first() is not None

    async def touch(self, session: Session, now: datetime) -> Session:
        """The session as it is once used now; one that is gone meanwhile stays so."""
        change = update(editor_sessions).where(_is(session.id, session.user_id), editor_sessions.c.updated_at < now)
        async with self._database.transaction() as connection:
            await connection.execute(change.values(updated_at=now))
        return replace(session, updated_at=max(now, session.updated_at))

    async def delete(self, session_id: str, user_id: str | None) -> bool:
        """Whether there was one."""
        async with self._database.transaction() as connection:
            return (await connection.execute(delete(editor_sessions).where(_is(session_id, user_id)))).rowcount > 0

    async def agent_of(self, user_id: str | None, cwd: Path) -> str | None:
        """The agent that is at home in a folder."""
        async with self._database.reading() as connection:
            found = await connection.execute(select(workspaces.c.agent_id).where(_at(user_id, cwd)))
            return found.scalar_one_or_none()

    async def settle(
        self, user_id: str | None, cwd: Path, agent_id: str, now: datetime, *, instead_of: str | None = None
    ) -> str:
        """Have an agent move in; gives whoever lives there now, which is another one where that was first.

        `instead_of` is one that is no more, and makes room.
        """
        row = {"user_id": user_id or "", "cwd_sha256": _digest(cwd), "cwd": str(cwd)}
        async with self._database.transaction() as connection:
            if instead_of is not None:
                gone = delete(workspaces).where(_at(user_id, cwd), workspaces.c.agent_id == instead_of)
                await connection.execute(gone)
            move_in = MOVE_IN[connection.dialect.name]
            await connection.execute(move_in, {**row, "agent_id": agent_id, "created_at": now})
            found = await connection.execute(select(workspaces.c.agent_id).where(_at(user_id, cwd)))
            return str(found.scalar_one())


def _is(session_id: str, user_id: str | None) -> ColumnElement[bool]:
    return and_(editor_sessions.c.id == session_id, editor_sessions.c.user_id == (user_id or ""))


def _at(user_id: str | None, cwd: Path) -> ColumnElement[bool]:
    return and_(workspaces.c.user_id == (user_id or ""), workspaces.c.cwd_sha256 == _digest(cwd))


def _older(used: datetime, session_id: str) -> ColumnElement[bool]:
    when = editor_sessions.c.updated_at
    return or_(when < used, and_(when == used, editor_sessions.c.id < session_id))


def _digest(cwd: Path) -> str:
    return hashlib.sha256(str(cwd).encode()).hexdigest()


def _places(fields: dict[str, Any]) -> dict[str, Any]:
    """Fields as they are written: paths as text."""
    if "cwd" in fields:
        fields["cwd"] = str(fields["cwd"])
    if "directories" in fields:
        fields["directories"] = json.dumps([str(one) for one in fields["directories"]])
    return fields


def _session(row: Row[Any]) -> Session:
    return Session(
        id=row.id,
        agent_id=row.agent_id,
        conversation_id=row.conversation_id,
        cwd=Path(row.cwd),
        created_at=row.created_at,
        updated_at=row.updated_at,
        user_id=row.user_id or None,
        directories=tuple(Path(one) for one in json.loads(row.directories)),
        title=row.title,
        mode=Mode(row.mode),
        model=row.model,
        effort=row.effort,
        asks_memory=row.asks_memory,
        cost_usd=row.cost_usd,
    )
