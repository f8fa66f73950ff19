"""Makes replies, one task for each message, and shares them with other replicas."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import Any

import anyio
import structlog
from anyio.abc import TaskGroup

from frontdesk.agents.chat.feed import ChatReply, NumberedEvent, ReplyFeed, StreamPosition
from frontdesk.agents.chat.model import (
    AcceptedMessage,
    ChatSession,
    ReplyBuilder,
    ReplyEnded,
    dump_reply_events,
    load_reply_events,
    new_message_id,
)
from frontdesk.agents.chat.store import ReplyBatch, ReplyRecord, ReplyStore
from frontdesk.agents.host import AgentHost, Prompt
from frontdesk.background import BackgroundJob
from frontdesk.errors import Conflict, FrontdeskError, RateLimited, Unavailable
from frontdesk.journal.model import EntryKind, Outcome
from frontdesk.journal.service import CallRecord, Journal
from frontdesk.llm.events import Started, StopReason

COPY_SECONDS = 0.1
TOUCH_SECONDS = 1.0
PRUNE_SECONDS = 60.0
REPLICA_LOST = ReplyEnded(StopReason.INTERRUPTED, "")
PART_NOT_SHAREABLE = ReplyEnded(
    StopReason.ERROR, "", "A part of this reply cannot be passed on; the session's messages have what is kept"
)

log = structlog.get_logger("frontdesk.chat")
REPLICATION = BackgroundJob(log, "chat_mirror_waits", "chat_mirror_failed")


@dataclass(slots=True)
class OutgoingReply:
    """A reply of this process, and the number of its last event that was put into a batch."""

    reply: ChatReply
    number: int = 0


@dataclass(frozen=True, slots=True)
class OutgoingBatch:
    """The events written in one transaction; they are written again unchanged if the write's outcome is unknown."""

    batches: Sequence[ReplyBatch]
    ended: frozenset[str]


class ReplyReplicator:
    """Shares replies with other replicas through the database.

    `cancel` is called with the message id of a reply that another replica wants cancelled.
    """

    def __init__(self, store: ReplyStore, feed: ReplyFeed, cancel: Callable[[str], None]) -> None:
        self._store = store
        self._feed = feed
        self._cancel = cancel
        self._outgoing: dict[str, OutgoingReply] = {}
        self._unsent: OutgoingBatch | None = None
        self._writing = anyio.Lock()

    async def announce(self, reply: ChatReply, user_id: str, limit: int) -> bool:
        """Announce a reply of this process to other replicas; returns False if the person has too many running."""
        # Recorded as our own before it is in the database, so that a concurrent copy does not take it for a foreign
        # reply.
        self._outgoing[reply.message_id] = OutgoingReply(reply)
        admitted = False
        try:
            admitted = await self._store.add(reply, user_id, limit)
        finally:
            if not admitted:
                del self._outgoing[reply.message_id]
        return admitted

    async def refresh(self, session_id: str) -> bool:
        """Copy other replicas' replies of a session; returns False if the database failed."""
        return await REPLICATION.attempt(partial(self._copy, [session_id]))

    async def report_read(self, reply: ChatReply) -> None:
        """Tell other replicas that a reply was read to its end."""
        await REPLICATION.attempt(partial(self._store.mark_read, reply.message_id))

    async def ask_cancel(self, session_id: str) -> Collection[str]:
        """Ask other replicas to cancel their replies of a session; returns the ids of these replies."""
        return await self._store.ask_cancel(session_id)

    async def wait_until_ended(self, session_id: str, ids: Collection[str]) -> None:
        """Wait until these replies of a session have ended on any replica."""
        while True:
            records = await self._store.replies([session_id])
            if not any(one.id in ids and not one.ended and not one.lost for one in records):
                return
            await anyio.sleep(COPY_SECONDS)

    async def run(self) -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(REPLICATION.run_every, COPY_SECONDS, self._exchange)
            tasks.start_soon(REPLICATION.run_every, TOUCH_SECONDS, self._touch)
            tasks.start_soon(REPLICATION.run_every, PRUNE_SECONDS, self._prune)

    async def flush(self) -> None:
        """Write the events that are new since the last write."""
        async with self._writing:
            if self._unsent is None:
                self._unsent = _pack(self._outgoing.values())
            if self._unsent is None:
                return
            await self._store.write(self._unsent.batches, self._unsent.ended)
            for message_id in self._unsent.ended:
                del self._outgoing[message_id]
            self._unsent = None

    async def close(self) -> None:
        await REPLICATION.attempt(self.flush)

    async def _exchange(self) -> None:
        await self.flush()
        if self._feed.followed:
            await self._copy(self._feed.followed)

    async def _copy(self, sessions: Collection[str]) -> None:
        """Copy the replies of other replicas; two concurrent copies add nothing twice."""
        records = {record.id: record for record in await self._store.replies(sessions)}
        here = {reply.message_id: reply for session_id in sessions for reply in self._feed.of(session_id)}
        for record in records.values():
            if record.id not in here and record.id not in self._outgoing and not record.over:
                here[record.id] = self._feed.open(_copy_of(record))
            if record.read and record.id in here:
                here[record.id].read = True
        wanted = {reply.message_id: reply.next_number for reply in here.values() if _is_foreign_and_open(reply)}
        for batch in await self._store.words(wanted) if wanted else ():
            _add_batch(here[batch.message_id], batch)
        for message_id in wanted:
            if _is_lost(records.get(message_id)):
                here[message_id].add(REPLICA_LOST)

    async def _touch(self) -> None:
        if self._outgoing:
            for message_id in await self._store.touch(set(self._outgoing)):
                self._cancel(message_id)

    async def _prune(self) -> None:
        await self._store.prune()


def _pack(outgoing: Iterable[OutgoingReply]) -> OutgoingBatch | None:
    batches: list[ReplyBatch] = []
    ended: set[str] = set()
    for one in outgoing:
        if events := one.reply.events_after(one.number):
            batches.append(_make_batch(one.reply, events))
            one.number = events[-1].number
        if one.reply.ended is not None:
            ended.add(one.reply.message_id)
    return OutgoingBatch(batches, frozenset(ended)) if batches or ended else None


def _make_batch(reply: ChatReply, events: Sequence[NumberedEvent]) -> ReplyBatch:
    """A batch of consecutive events; a reply with an event that cannot be encoded ends there as failed."""
    number = events[0].number
    try:
        return ReplyBatch(reply.message_id, number, dump_reply_events([each.event for each in events]))
    except (RecursionError, TypeError, ValueError) as error:
        log.warning("chat_reply_not_shared", message_id=reply.message_id, error=type(error).__name__)
        reply.add(PART_NOT_SHAREABLE)
        return ReplyBatch(reply.message_id, number, dump_reply_events([PART_NOT_SHAREABLE]))


def _copy_of(record: ReplyRecord) -> ChatReply:
    return ChatReply(record.session_id, record.id, record.opened_at, own=False)


def _add_batch(reply: ChatReply, batch: ReplyBatch) -> None:
    for number, event in enumerate(load_reply_events(batch.payload), batch.number):
        if number >= reply.next_number:
            reply.add(event)


def _is_foreign_and_open(reply: ChatReply) -> bool:
    return not reply.own and reply.ended is None


def _is_lost(record: ReplyRecord | None) -> bool:
    return record is None or record.lost


REPLIES_PER_PERSON = 8
# How long the sender of a message waits for its turn to begin.
BEGIN_SECONDS = 2.0
RETRY_SECONDS = 1.0
FORGET_SECONDS = 5.0
END_SECONDS = 10
REPLY_FAILED = "The reply failed inside Frontdesk; its log says why"
SERVER_STOPPING = "Frontdesk is stopping; send the message again in a moment"

REPLY_CLEANUP = BackgroundJob(log, "chat_replies_not_forgotten", "chat_replies_not_forgotten")


@dataclass(slots=True)
class ReplyJob:
    """A reply that is being made.

    Before the turn has `started`, it may wait behind another turn, or be `refused`; `settled` is set once either is
    known.
    """

    session: ChatSession
    prompt: Prompt
    reply: ChatReply
    builder: ReplyBuilder
    started: bool = False
    refused: FrontdeskError | None = None
    settled: anyio.Event = field(default_factory=anyio.Event)
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    finished: anyio.Event = field(default_factory=anyio.Event)

    def start(self) -> None:
        self.started = True
        self.settled.set()

    def end(self, stop: StopReason, error: FrontdeskError | None = None) -> None:
        """Add the last event; if the turn has not begun, `error` is the reason."""
        if not self.started:
            self.refused = error
        self.reply.add(
            self.builder.end(stop, error.public_message if error is not None and stop is StopReason.ERROR else None)
        )


class ReplyService:
    """Makes the replies of this process.

    `interrupt` ends their turns; `shared` is given if other replicas may stream them.
    """

    def __init__(
        self,
        host: AgentHost,
        journal: Journal,
        tasks: TaskGroup,
        interrupt: Callable[[], Awaitable[None]],
        shared: ReplyStore | None,
    ) -> None:
        self._host = host
        self._journal = journal
        self._tasks = tasks
        self._interrupt = interrupt
        self._feed = ReplyFeed()
        self._replicator = ReplyReplicator(shared, self._feed, self._cancel) if shared else None
        self._jobs: dict[str, ReplyJob] = {}
        self._closing = False

    async def begin(
        self, session: ChatSession, prompt: Prompt, calls: Mapping[str, Mapping[str, Any]] | None = None
    ) -> AcceptedMessage:
        """Begin a reply, and wait a moment for its turn; `calls` are the calls that the prompt approves or rejects.

        Raises an error by which the host refuses the turn within that time.
        """
        if self._closing:
            raise Unavailable(SERVER_STOPPING)
        reply = ChatReply(session.id, new_message_id(), datetime.now(UTC))
        if not await self._admitted(reply, session.user_id):
            raise RateLimited(f"user {session.user_id} ({REPLIES_PER_PERSON} replies under way)", RETRY_SECONDS)
        job = ReplyJob(session, prompt, self._feed.open(reply), ReplyBuilder(dict(calls or {})))
        self._jobs[reply.message_id] = job
        self._tasks.start_soon(self._make, job)
        with anyio.move_on_after(BEGIN_SECONDS):
            await job.settled.wait()
        if job.refused is not None:
            # The sender gets the error now, so later streams need not send it again.
            await self._mark_read(reply)
            raise job.refused
        return AcceptedMessage(reply.message_id, queued=not job.settled.is_set())

    def follow(self, session_id: str, place: StreamPosition | None) -> AsyncGenerator[NumberedEvent]:
        if self._replicator is None:
            return self._feed.follow(session_id, place, _refresh_nothing, _report_to_nobody)
        return self._feed.follow(session_id, place, self._replicator.refresh, self._replicator.report_read)

    async def stop(self, session: ChatSession) -> bool:
        """Stop a session's replies on all replicas, and wait for their ends; returns False if there were none."""
        here = [job for job in self._jobs.values() if job.session.id == session.id]
        # Waiting replies first: they would begin as soon as the running one stops.
        for job in here:
            if not job.started:
                job.scope.cancel()
        everywhere = await self._replicator.ask_cancel(session.id) if self._replicator is not None else ()
        stopped = await self._host.cancel(session.agent_id, session.conversation_id, session.user_id)
        with anyio.move_on_after(END_SECONDS):
            for job in here:
                await job.finished.wait()
            if self._replicator is not None and everywhere:
                await self._replicator.wait_until_ended(session.id, everywhere)
        return bool(here) or bool(everywhere) or stopped

    async def run(self) -> None:
        async with anyio.create_task_group() as tasks:
            if self._replicator is not None:
                tasks.start_soon(self._replicator.run)
            await REPLY_CLEANUP.run_every(FORGET_SECONDS, self._forget)

    async def close(self) -> None:
        """Interrupt the running replies; can be called again."""
        self._closing = True
        for job in self._jobs.values():
            if not job.started:
                job.scope.cancel()
        await self._interrupt()
        with anyio.move_on_after(END_SECONDS, shield=True):
            for job in list(self._jobs.values()):
                await job.finished.wait()
            if self._replicator is not None:
                await self._replicator.close()
        self._feed.close()

    async def _forget(self) -> None:
        self._feed.forget(anyio.current_time())

    async def _admitted(self, reply: ChatReply, user_id: str) -> bool:
        if self._replicator is not None:
            return await self._replicator.announce(reply, user_id, REPLIES_PER_PERSON)
        return sum(job.session.user_id == user_id for job in self._jobs.values()) < REPLIES_PER_PERSON

    async def _mark_read(self, reply: ChatReply) -> None:
        reply.read = True
        if self._replicator is not None:
            await self._replicator.report_read(reply)

    def _cancel(self, message_id: str) -> None:
        if message_id in self._jobs:
            self._jobs[message_id].scope.cancel()

    async def _make(self, job: ReplyJob) -> None:
        record = CallRecord(self._journal, "chat", "turn", job.prompt.agent_caller, EntryKind.TURN)
        try:
            with job.scope:
                await self._run_turn(job)
            if job.scope.cancelled_caught:
                if self._closing:
                    job.end(StopReason.INTERRUPTED, Unavailable(SERVER_STOPPING))
                else:
                    job.end(
                        StopReason.CANCELLED, Conflict("The message was cancelled before its turn began; send it again")
                    )
        except FrontdeskError as error:
            job.end(StopReason.ERROR, error)
        except Exception:
            log.exception("reply_failed", request_id=job.prompt.caller.request_id)
            job.end(StopReason.ERROR, FrontdeskError(REPLY_FAILED))
        finally:
            job.reply.add(job.builder.end(StopReason.INTERRUPTED))
            stop = job.reply.ended.stop if job.reply.ended else StopReason.INTERRUPTED
            record.outcome, record.reason = (Outcome.FAILED, stop) if stop.is_broken else (Outcome.OK, None)
            record.write()
            del self._jobs[job.reply.message_id]
            job.settled.set()
            job.finished.set()

    async def _run_turn(self, job: ReplyJob) -> None:
        async with aclosing(self._host.send(job.prompt)) as events:
            async for event in events:
                if isinstance(event, Started):
                    job.start()
                reply_event = job.builder.add_event(event)
                if reply_event is not None:
                    job.reply.add(reply_event)


async def _refresh_nothing(_session_id: str) -> bool:
    """Without other replicas, all replies are known."""
    return True


async def _report_to_nobody(_reply: ChatReply) -> None:
    """Without other replicas, there is nobody to inform."""
