"""Chat sessions in the database."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from sqlalchemy import Row, delete, insert, select, update

from frontdesk.agents.chat.model import RESTORABLE, Session
from frontdesk.db.engine import Database
from frontdesk.db.schema import chat_sessions

# How much a session's end must move before that is written down.
MOVED = timedelta(minutes=5)


class SessionStore:
    """A session is found by its id; whose it is, is for the service to ask."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def add(self, session: Session) -> None:
        row = {
            "id": session.id,
            "user_id": session.user_id,
            "agent_id": session.agent_id,
            "conversation_id": session.conversation_id,
            "created_at": session.created_at,
            "expires_at": session.expires_at,
        }
        async with self._database.transaction() as connection:
            await connection.execute(insert(chat_sessions).values(row))

    async def get(self, session_id: str) -> Session | None:
        """The session, whether it is open or has run out."""
        async with self._database.reading() as connection:
            row = (
                await connection.execute(select(chat_sessions).where(chat_sessions.c.id == session_id))
            ).one_or_none()
        return _session(row) if row else None

    async def of_user(self, user_id: str, now: datetime, limit: int) -> Sequence[Session]:
        """A person's open sessions, the newest first."""
        wanted = (
            select(chat_sessions)
            .where(chat_sessions.c.user_id == user_id, chat_sessions.c.expires_at > now)
            .order_by(chat_sessions.c.created_at.desc(), chat_sessions.c.id)
            .limit(limit)
        )
        async with self._database.reading() as connection:
            return [_session(row) for row in (await connection.execute(wanted)).all()]

    async def is_a_persons(self, agent_id: str, conversation_id: str) -> bool:
        """Whether somebody talks, or has lately talked, with the agent in this conversation."""
        theirs = (chat_sessions.c.agent_id == agent_id, chat_sessions.c.conversation_id == conversation_id)
        async with self._database.reading() as connection:
            return (await connection.execute(select(chat_sessions.c.id).where(*theirs).limit(1))).first() is not None

    async def use(self, session: Session, now: datetime) -> Session:
        """The session as it is once used now."""
        used = session.used_at(now)
        if used.expires_at - session.expires_at >= MOVED:
            change = update(chat_sessions).where(chat_sessions.c.id == session.id)
            async with self._database.transaction() as connection:
                await connection.execute(change.values(expires_at=used.expires_at))
        return used

    async def delete(self, session_id: str) -> None:
        async with self._database.transaction() as connection:
            await connection.execute(delete(chat_sessions).where(chat_sessions.c.id == session_id))

    async def prune(self, now: datetime) -> int:
        """Forget sessions that nobody may have back any more; how many went."""
        old = delete(chat_sessions).where(chat_sessions.c.expires_at < now - RESTORABLE)
        async with self._database.transaction() as connection:
            return (await connection.execute(old)).rowcount


def _session(row: Row[tuple[object, ...]]) -> Session:
    return Session(row.id, row.user_id, row.agent_id, row.conversation_id, row.created_at, row.expires_at)
