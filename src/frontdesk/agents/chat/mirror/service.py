"""Keeps our replies and the shared database alike: ours go out, and those that are followed here come in."""

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import partial

import anyio
import structlog

from frontdesk.agents.chat.feed import Feed, Heard, Reply
from frontdesk.agents.chat.mirror.store import Batch, MirrorStore, ReplyRecord
from frontdesk.agents.chat.words import Ended, dump, load
from frontdesk.background import Chore
from frontdesk.loop.events import StopReason

COPY_SECONDS = 0.1
TOUCH_SECONDS = 1.0
PRUNE_SECONDS = 60.0
LOST = Ended(StopReason.INTERRUPTED, "")
UNTELLABLE = Ended(
    StopReason.ERROR, "", "A part of this reply cannot be passed on; the session's messages have what is kept"
)

log = structlog.get_logger("frontdesk.chat")
CHORE = Chore(log, "chat_mirror_waits", "chat_mirror_failed")


@dataclass(slots=True)
class Outgoing:
    """A reply of ours, and the number of the last word that was put into a parcel."""

    reply: Reply
    number: int = 0


@dataclass(frozen=True, slots=True)
class Parcel:
    """What is written in one go; sent again as it is when nobody knows whether it arrived."""

    batches: Sequence[Batch]
    ended: frozenset[str]


class Mirror:
    """`cancel` is called with the message id of a reply that another replica wants cancelled."""

    def __init__(self, store: MirrorStore, feed: Feed, cancel: Callable[[str], None]) -> None:
        self._store = store
        self._feed = feed
        self._cancel = cancel
        self._outgoing: dict[str, Outgoing] = {}
        self._parcel: Parcel | None = None
        self._writing = anyio.Lock()

    async def announce(self, reply: Reply, user_id: str, limit: int) -> bool:
        """Let the others know of a reply of ours; False if the person has too many under way."""
        # Ours before it is in the database: a copy made at this moment must not take it for another's.
        self._outgoing[reply.message_id] = Outgoing(reply)
        admitted = False
        try:
            admitted = await self._store.add(reply, user_id, limit)
        finally:
            if not admitted:
                del self._outgoing[reply.message_id]
        return admitted

    async def look(self, session_id: str) -> bool:
        """Learn what the others have said in a session up to now; whether the database could tell."""
        return await CHORE.attempt(partial(self._copy, [session_id]))

    async def note(self, reply: Reply) -> None:
        """Let the others know that a reply was read to its end."""
        await CHORE.attempt(partial(self._store.mark_read, reply.message_id))

    async def ask_cancel(self, session_id: str) -> Collection[str]:
        """Have the others cancel what they do for a session; the replies that are meant."""
        return await self._store.ask_cancel(session_id)

    async def ended(self, session_id: str, ids: Collection[str]) -> None:
        """Wait until replies of a session have ended, wherever they were made."""
        while True:
            records = await self._store.replies([session_id])
            if not any(one.id in ids and not one.ended and not one.lost for one in records):
                return
            await anyio.sleep(COPY_SECONDS)

    async def run(self) -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(CHORE.every, COPY_SECONDS, self._exchange)
            tasks.start_soon(CHORE.every, TOUCH_SECONDS, self._touch)
            tasks.start_soon(CHORE.every, PRUNE_SECONDS, self._prune)

    async def flush(self) -> None:
        """Write down what has been said here since the last time."""
        async with self._writing:
            if self._parcel is None:
                self._parcel = _pack(self._outgoing.values())
            if self._parcel is None:
                return
            await self._store.write(self._parcel.batches, self._parcel.ended)
            for message_id in self._parcel.ended:
                del self._outgoing[message_id]
            self._parcel = None

    async def close(self) -> None:
        await CHORE.attempt(self.flush)

    async def _exchange(self) -> None:
        await self.flush()
        if self._feed.followed:
            await self._copy(self._feed.followed)

    async def _copy(self, sessions: Collection[str]) -> None:
        """Bring in the replies of others; what two copies at once bring in twice is added once."""
        records = {record.id: record for record in await self._store.replies(sessions)}
        here = {reply.message_id: reply for session_id in sessions for reply in self._feed.of(session_id)}
        for record in records.values():
            if record.id not in here and record.id not in self._outgoing and not record.over:
                here[record.id] = self._feed.open(_copied(record))
            if record.read and record.id in here:
                here[record.id].read = True
        wanted = {reply.message_id: reply.next_number for reply in here.values() if _awaited(reply)}
        for batch in await self._store.words(wanted) if wanted else ():
            _take_in(here[batch.message_id], batch)
        for message_id in wanted:
            if _lost(records.get(message_id)):
                here[message_id].add(LOST)

    async def _touch(self) -> None:
        if self._outgoing:
            for message_id in await self._store.touch(set(self._outgoing)):
                self._cancel(message_id)

    async def _prune(self) -> None:
        await self._store.prune()


def _pack(outgoing: Iterable[Outgoing]) -> Parcel | None:
    batches: list[Batch] = []
    ended: set[str] = set()
    for one in outgoing:
        if heard := one.reply.since(one.number):
            batches.append(_batch(one.reply, heard))
            one.number = heard[-1].number
        if one.reply.ended is not None:
            ended.add(one.reply.message_id)
    return Parcel(batches, frozenset(ended)) if batches or ended else None


def _batch(reply: Reply, heard: Sequence[Heard]) -> Batch:
    """Words in a row; a reply with a word that cannot be written down ends in their place, as failed."""
    number = heard[0].number
    try:
        return Batch(reply.message_id, number, dump([each.word for each in heard]))
    except (RecursionError, TypeError, ValueError) as error:
        log.warning("chat_reply_not_shared", message_id=reply.message_id, error=type(error).__name__)
        reply.add(UNTELLABLE)
        return Batch(reply.message_id, number, dump([UNTELLABLE]))


def _copied(record: ReplyRecord) -> Reply:
    return Reply(record.session_id, record.id, record.opened_at, own=False)


def _take_in(reply: Reply, batch: Batch) -> None:
    for number, word in enumerate(load(batch.payload), batch.number):
        if number >= reply.next_number:
            reply.add(word)


def _awaited(reply: Reply) -> bool:
    return not reply.own and reply.ended is None


def _lost(record: ReplyRecord | None) -> bool:
    return record is None or record.lost
