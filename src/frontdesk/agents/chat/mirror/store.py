"""Replies that are being told, in the database that replicas share."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import and_, delete, func, insert, or_, select, update
from sqlalchemy.dialects.postgresql import insert as insert_missing

from frontdesk.agents.chat.feed import KEPT_SECONDS, Reply
from frontdesk.db import clock
from frontdesk.db.engine import Database
from frontdesk.db.schema import chat_replies, chat_words

# A reply that its replica has not touched for so long is given up.
LOST = timedelta(seconds=30)
FORGOTTEN = timedelta(minutes=2)


@dataclass(frozen=True, slots=True)
class ReplyRecord:
    """A reply as the database has it, and when it was read there, by the database's clock as every time but one.

    `opened_at` is told by whoever makes the reply, and puts the replies of a session in order.
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
        return not self.ended and self.touched_at < self.seen_at - LOST

    @property
    def over(self) -> bool:
        """Whether it ended too long ago for anybody to wait for it."""
        return self.ended and self.touched_at < self.seen_at - timedelta(seconds=KEPT_SECONDS)


@dataclass(frozen=True, slots=True)
class Batch:
    """Some words of a reply in a row, written down; `number` is the first one's."""

    message_id: str
    number: int
    payload: str


class MirrorStore:
    """Each reply has one writer, the replica that makes it; its words are added in order."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def add(self, reply: Reply, user_id: str, limit: int) -> bool:
        """Announce a reply; False if its reader has `limit` of them under way."""
        theirs = (chat_replies.c.user_id == user_id, ~chat_replies.c.ended)
        row = {
            "id": reply.message_id,
            "session_id": reply.session_id,
            "user_id": user_id,
            "opened_at": reply.opened_at,
            "touched_at": clock.NOW,
            "ended": False,
            "read": False,
            "cancel_asked": False,
        }
        async with self._database.transaction() as connection:
            alive = chat_replies.c.touched_at > await clock.now(connection) - LOST
            under_way = select(func.count()).select_from(chat_replies).where(*theirs, alive)
            if (await connection.execute(under_way)).scalar_one() >= limit:
                return False
            await connection.execute(insert(chat_replies).values(row))
        return True

    async def write(self, batches: Sequence[Batch], ended: Collection[str]) -> None:
        """Add words, and note which replies they end; the same again changes nothing."""
        rows = [{"message_id": one.message_id, "number": one.number, "payload": one.payload} for one in batches]
        over = update(chat_replies).where(chat_replies.c.id.in_(ended)).values(ended=True, touched_at=clock.NOW)
        async with self._database.transaction() as connection:
            if rows:
                await connection.execute(insert_missing(chat_words).on_conflict_do_nothing(), rows)
            if ended:
                await connection.execute(over)

    async def replies(self, sessions: Collection[str]) -> Sequence[ReplyRecord]:
        columns = [chat_replies.c[name] for name in ReplyRecord.__slots__ if name != "seen_at"]
        found = select(*columns, clock.NOW).where(chat_replies.c.session_id.in_(sessions))
        async with self._database.reading() as connection:
            rows = (await connection.execute(found)).all()
        return [ReplyRecord(*row) for row in rows]

    async def words(self, wanted: Mapping[str, int]) -> Sequence[Batch]:
        """The words of replies, each from a number on, in order."""
        which = [and_(chat_words.c.message_id == one, chat_words.c.number >= number) for one, number in wanted.items()]
        found = select(chat_words).where(or_(*which)).order_by(chat_words.c.message_id, chat_words.c.number)
        async with self._database.reading() as connection:
            return [Batch(row.message_id, row.number, row.payload) for row in (await connection.execute(found)).all()]

    async def touch(self, ids: Collection[str]) -> Collection[str]:
        """Say that these replies are still being made; those that somebody asked to cancel."""
        ours = chat_replies.c.id.in_(ids)
        asked = select(chat_replies.c.id).where(ours, chat_replies.c.cancel_asked)
        async with self._database.transaction() as connection:
            await connection.execute(update(chat_replies).where(ours).values(touched_at=clock.NOW))
            return (await connection.execute(asked)).scalars().all()

    async def ask_cancel(self, session_id: str) -> Collection[str]:
        """Have the replicas cancel what they do for a session; the replies that are meant."""
        change = update(chat_replies).where(chat_replies.c.session_id == session_id, ~chat_replies.c.ended)
        async with self._database.transaction() as connection:
            asked = await connection.execute(change.values(cancel_asked=True).returning(chat_replies.c.id))
            return asked.scalars().all()

    async def mark_read(self, message_id: str) -> None:
        async with self._database.transaction() as connection:
            await connection.execute(update(chat_replies).where(chat_replies.c.id == message_id).values(read=True))

    async def prune(self) -> None:
        """Forget what has been told, and what was lost."""
        async with self._database.transaction() as connection:
            before = await clock.now(connection) - FORGOTTEN
            old = select(chat_replies.c.id).where(chat_replies.c.touched_at < before)
            ids = (await connection.execute(old)).scalars().all()
            await connection.execute(delete(chat_replies).where(chat_replies.c.id.in_(ids)))
            # Those too that were written for a reply after it had been deleted with its person.
            known = select(chat_replies.c.id).scalar_subquery()
            await connection.execute(delete(chat_words).where(chat_words.c.message_id.not_in(known)))
