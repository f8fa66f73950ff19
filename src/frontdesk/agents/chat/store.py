"""Stores chat sessions, and the replies that replicas share."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import Row, and_, delete, func, insert, or_, select, update
from sqlalchemy.dialects.postgresql import insert as insert_missing

from frontdesk.agents.chat.feed import REPLY_KEPT_SECONDS, ChatReply
from frontdesk.agents.chat.model import RESTORABLE, ChatSession
from frontdesk.db.engine import Database
from frontdesk.db.schema import chat_replies, chat_sessions, chat_words
from frontdesk.db.statements import DATABASE_TIME, lease_time

# How far a session's expiry must move before it is written.
MIN_EXPIRY_CHANGE = timedelta(minutes=5)


class ChatSessionStore:
    """Stores chat sessions by id; the service checks to whom they belong."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def add(self, session: ChatSession) -> None:
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

    async def get(self, session_id: str) -> ChatSession | None:
        """The session, open or expired."""
        async with self._database.read_transaction() as connection:
            row = (
                await connection.execute(select(chat_sessions).where(chat_sessions.c.id == session_id))
            ).one_or_none()
        return _session(row) if row else None

    async def of_user(self, user_id: str, now: datetime, limit: int) -> Sequence[ChatSession]:
        """A person's open sessions, the newest first."""
        query = (
            select(chat_sessions)
            .where(chat_sessions.c.user_id == user_id, chat_sessions.c.expires_at > now)
            .order_by(chat_sessions.c.created_at.desc(), chat_sessions.c.id)
            .limit(limit)
        )
        async with self._database.read_transaction() as connection:
            return [_session(row) for row in (await connection.execute(query)).all()]

    async def is_a_persons(self, agent_id: str, conversation_id: str) -> bool:
        """Whether a chat session uses this conversation of the agent."""
        theirs = (chat_sessions.c.agent_id == agent_id, chat_sessions.c.conversation_id == conversation_id)
        async with self._database.read_transaction() as connection:
            return (await connection.execute(select(chat_sessions.c.id).where(*theirs).limit(1))).first() is not None

    async def use(self, session: ChatSession, now: datetime) -> ChatSession:
        """Note that the session was used now."""
        used = session.used_at(now)
        if used.expires_at - session.expires_at >= MIN_EXPIRY_CHANGE:
            change = update(chat_sessions).where(chat_sessions.c.id == session.id)
            async with self._database.transaction() as connection:
                await connection.execute(change.values(expires_at=used.expires_at))
        return used

    async def delete(self, session_id: str) -> None:
        async with self._database.transaction() as connection:
            await connection.execute(delete(chat_sessions).where(chat_sessions.c.id == session_id))

    async def prune(self, now: datetime) -> int:
        """Delete sessions that cannot be reopened any more; returns how many."""
        old = delete(chat_sessions).where(chat_sessions.c.expires_at < now - RESTORABLE)
        async with self._database.transaction() as connection:
            return (await connection.execute(old)).rowcount


def _session(row: Row[tuple[object, ...]]) -> ChatSession:
    return ChatSession(row.id, row.user_id, row.agent_id, row.conversation_id, row.created_at, row.expires_at)


# A reply that its replica has not touched for this long is given up.
REPLY_LOST_AFTER = timedelta(seconds=30)
REPLY_DELETED_AFTER = timedelta(minutes=2)


@dataclass(frozen=True, slots=True)
class ReplyRecord:
    """A reply as stored in the database, with the time at which it was read.

    All times but `opened_at` are of the database's clock. The process that makes the reply gives `opened_at`, which
    orders the replies of a session.
    """

    id: str
    session_id: str
    opened_at: datetime
    touched_at: datetime
    ended: bool
    read: bool
    seen_at: datetime

    @property
    def lost(self) -> bool:
        return not self.ended and self.touched_at < self.seen_at - REPLY_LOST_AFTER

    @property
    def over(self) -> bool:
        """Whether it ended so long ago that no reader waits for it."""
        return self.ended and self.touched_at < self.seen_at - timedelta(seconds=REPLY_KEPT_SECONDS)


@dataclass(frozen=True, slots=True)
class ReplyBatch:
    """Consecutive events of a reply, encoded; `number` is the number of the first event."""

    message_id: str
    number: int
    payload: str


class ReplyStore:
    """Stores the replies that replicas share; each has one writer, which adds its events in order."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def add(self, reply: ChatReply, user_id: str, limit: int) -> bool:
        """Announce a reply; returns False if its person already has `limit` running replies."""
        theirs = (chat_replies.c.user_id == user_id, ~chat_replies.c.ended)
        row = {
            "id": reply.message_id,
            "session_id": reply.session_id,
            "user_id": user_id,
            "opened_at": reply.opened_at,
            "touched_at": DATABASE_TIME,
            "ended": False,
            "read": False,
            "cancel_asked": False,
        }
        async with self._database.transaction() as connection:
            alive = chat_replies.c.touched_at > await lease_time(connection) - REPLY_LOST_AFTER
            under_way = select(func.count()).select_from(chat_replies).where(*theirs, alive)
            if (await connection.execute(under_way)).scalar_one() >= limit:
                return False
            await connection.execute(insert(chat_replies).values(row))
        return True

    async def write(self, batches: Sequence[ReplyBatch], ended: Collection[str]) -> None:
        """Add events, and mark replies as ended; a second identical call changes nothing."""
        rows = [{"message_id": one.message_id, "number": one.number, "payload": one.payload} for one in batches]
        over = update(chat_replies).where(chat_replies.c.id.in_(ended)).values(ended=True, touched_at=DATABASE_TIME)
        async with self._database.transaction() as connection:
            if rows:
                await connection.execute(insert_missing(chat_words).on_conflict_do_nothing(), rows)
            if ended:
                await connection.execute(over)

    async def replies(self, sessions: Collection[str]) -> Sequence[ReplyRecord]:
        columns = [chat_replies.c[name] for name in ReplyRecord.__slots__ if name != "seen_at"]
        query = select(*columns, DATABASE_TIME).where(chat_replies.c.session_id.in_(sessions))
        async with self._database.read_transaction() as connection:
            rows = (await connection.execute(query)).all()
        return [ReplyRecord(*row) for row in rows]

    async def words(self, wanted: Mapping[str, int]) -> Sequence[ReplyBatch]:
        """The events of replies in order, each from a number on."""
        which = [and_(chat_words.c.message_id == one, chat_words.c.number >= number) for one, number in wanted.items()]
        query = select(chat_words).where(or_(*which)).order_by(chat_words.c.message_id, chat_words.c.number)
        async with self._database.read_transaction() as connection:
            return [
                ReplyBatch(row.message_id, row.number, row.payload) for row in (await connection.execute(query)).all()
            ]

    async def touch(self, ids: Collection[str]) -> Collection[str]:
        """Mark these replies as still running; returns those that are to be cancelled."""
        ours = chat_replies.c.id.in_(ids)
        asked = select(chat_replies.c.id).where(ours, chat_replies.c.cancel_asked)
        async with self._database.transaction() as connection:
            await connection.execute(update(chat_replies).where(ours).values(touched_at=DATABASE_TIME))
            return (await connection.execute(asked)).scalars().all()

    async def ask_cancel(self, session_id: str) -> Collection[str]:
        """Ask the replicas to cancel the replies of a session; returns their ids."""
        change = update(chat_replies).where(chat_replies.c.session_id == session_id, ~chat_replies.c.ended)
        async with self._database.transaction() as connection:
            asked = await connection.execute(change.values(cancel_asked=True).returning(chat_replies.c.id))
            return asked.scalars().all()

    async def mark_read(self, message_id: str) -> None:
        async with self._database.transaction() as connection:
            await connection.execute(update(chat_replies).where(chat_replies.c.id == message_id).values(read=True))

    async def prune(self) -> None:
        """Delete replies that ended a while ago, and lost ones."""
        async with self._database.transaction() as connection:
            before = await lease_time(connection) - REPLY_DELETED_AFTER
            old = select(chat_replies.c.id).where(chat_replies.c.touched_at < before)
            ids = (await connection.execute(old)).scalars().all()
            await connection.execute(delete(chat_replies).where(chat_replies.c.id.in_(ids)))
            # This includes events that were written for a reply after it was deleted with its person.
            known = select(chat_replies.c.id).scalar_subquery()
            await connection.execute(delete(chat_words).where(chat_words.c.message_id.not_in(known)))
