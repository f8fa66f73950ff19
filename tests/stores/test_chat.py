"""Tests chat sessions on both databases, and replies that replicas share."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import anyio
import pytest
from sqlalchemy import text

from frontdesk.agents.chat.feed import REST_LOST, ChatReply, NumberedEvent, ReplyFeed, StreamPosition
from frontdesk.agents.chat.model import (
    LIFETIME,
    RESTORABLE,
    ChatSession,
    ReplyEnded,
    ReplyEvent,
    ToolResult,
    dump_reply_events,
    load_reply_events,
    new_message_id,
    new_session_id,
)
from frontdesk.agents.chat.replies import PART_NOT_SHAREABLE, ReplyReplicator
from frontdesk.agents.chat.store import ChatSessionStore, ReplyBatch, ReplyStore
from frontdesk.db.engine import Database
from frontdesk.db.schema import chat_replies
from frontdesk.llm.events import (
    ApprovalRequest,
    MemoryEdit,
    Plan,
    PlanStep,
    Started,
    StopReason,
    TextChunk,
    ThoughtChunk,
    ToolCall,
    ToolStatus,
    Usage,
)
from tests.conftest import settings_with
from tests.requirements import shows
from tests.support.postgres import Postgres
from tests.support.waiting import age, set_clock_ahead

NOW = datetime(2026, 3, 1, tzinfo=UTC)
SECONDS = 10
WORDS: list[ReplyEvent] = [
    Started("turn-1", "conv-1"),
    ThoughtChunk("hm"),
    TextChunk("\0 \ud800 é"),
    ToolCall("call-1", "look", {"a": [1, None]}),
    ToolResult("call-1", "look", {"a": [1, None]}, "nothing", ToolStatus.ERROR),
    ApprovalRequest("call-2", "act", {}),
    MemoryEdit("human", "", "likes tea"),
    Plan([PlanStep("wait")]),
    Usage(1, 2, cost_usd=0.5),
    ReplyEnded(StopReason.REQUIRES_APPROVAL, "é"),
]


def a_session(user: str = "ann", at: datetime = NOW) -> ChatSession:
    return ChatSession(new_session_id(), user, "agent-1", "conv-1", at, at + LIFETIME)


async def test_a_session_is_found_and_listed_for_its_owner_while_it_is_open(database: Database) -> None:
    store = ChatSessionStore(database)
    older, newer, other = a_session(), a_session(at=NOW + timedelta(hours=1)), a_session("bob")
    for session in (older, newer, other):
        await store.add(session)
    assert await store.get(older.id) == older
    assert await store.get(new_session_id()) is None
    assert await store.of_user("ann", NOW, 10) == [newer, older]
    assert await store.of_user("ann", NOW, 1) == [newer]
    assert await store.of_user("ann", older.expires_at, 10) == [newer]
    await store.delete(older.id)
    assert await store.get(older.id) is None


async def test_a_session_that_is_used_lives_on_and_one_that_is_not_is_forgotten(database: Database) -> None:
    store = ChatSessionStore(database)
    session = a_session()
    await store.add(session)
    soon = NOW + timedelta(minutes=1)
    assert (await store.use(session, soon)).expires_at == soon + LIFETIME
    assert await store.get(session.id) == session
    later = NOW + timedelta(hours=2)
    used = replace(session, expires_at=later + LIFETIME)
    assert await store.use(session, later) == await store.get(session.id) == used
    assert await store.prune(used.expires_at + RESTORABLE) == 0
    assert await store.prune(used.expires_at + RESTORABLE + timedelta(seconds=1)) == 1


def test_every_word_comes_back_as_it_was() -> None:
    assert load_reply_events(dump_reply_events(WORDS)) == WORDS


class Replica:
    """One process' side of the shared replies."""

    def __init__(self, database: Database) -> None:
        self.feed = ReplyFeed()
        self.store = ReplyStore(database)
        self.cancelled: list[str] = []
        self.mirror = ReplyReplicator(self.store, self.feed, self.cancelled.append)

    async def begin(self, session: str, *, user: str = "ann", limit: int = 8) -> ChatReply | None:
        reply = ChatReply(session, new_message_id(), datetime.now(UTC))
        return self.feed.open(reply) if await self.mirror.announce(reply, user, limit) else None

    async def heard(self, session: str, place: StreamPosition | None = None) -> list[NumberedEvent]:
        words = self.feed.follow(session, place, self.mirror.refresh, self.mirror.report_read)
        with anyio.fail_after(SECONDS):
            return [word async for word in words]


@pytest.fixture
async def shared(postgres: Postgres, tmp_path: Path) -> AsyncGenerator[Database]:
    settings = settings_with(FRONTDESK_DATA=tmp_path, FRONTDESK_DATABASE_URL=postgres.create_database())
    database = await Database.open(settings)
    yield database
    await database.close()


@shows("CHAT-REPLICAS")
async def test_what_one_replica_says_another_tells_once_and_in_order(shared: Database) -> None:
    one, two = Replica(shared), Replica(shared)
    session = new_session_id()
    reply = await one.begin(session)
    assert reply is not None
    heard: list[NumberedEvent] = []

    async def listen() -> None:
        heard.extend(await two.heard(session))

    with anyio.fail_after(SECONDS):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(listen)
            for word in WORDS:
                reply.add(word)
                await one.mirror.flush()
                async with anyio.create_task_group() as looks:
                    looks.start_soon(two.mirror.refresh, session)
                    looks.start_soon(two.mirror.refresh, session)
    assert [(word.number, word.event) for word in heard] == list(enumerate(WORDS, 1))
    assert {word.message_id for word in heard} == {reply.message_id}
    await one.mirror.refresh(session)
    assert reply.read


@shows("CHAT-REPLICAS")
async def test_words_whose_fate_is_unknown_are_sent_again_and_stored_once(shared: Database) -> None:
    one, two = Replica(shared), Replica(shared)
    session = new_session_id()
    reply = await one.begin(session)
    assert reply is not None
    reply.add(TextChunk("a"))
    sent = ReplyBatch(reply.message_id, 1, dump_reply_events([TextChunk("a")]))
    for _ in range(2):
        await one.store.write([sent], ())
    await one.mirror.flush()
    reply.add(WORDS[-1])
    await one.mirror.flush()
    assert [word.event for word in await two.heard(session)] == [TextChunk("a"), WORDS[-1]]


async def test_a_reply_whose_replica_died_is_told_as_interrupted(shared: Database) -> None:
    one, two = Replica(shared), Replica(shared)
    session = new_session_id()
    reply = await one.begin(session)
    assert reply is not None
    reply.add(TextChunk("half of"))
    await one.mirror.flush()
    await age(shared, chat_replies.c.touched_at, timedelta(seconds=31))
    assert [word.event for word in await two.heard(session)] == [
        TextChunk("half of"),
        ReplyEnded(StopReason.INTERRUPTED, ""),
    ]


async def test_a_reply_that_is_being_made_is_not_given_up_where_a_clock_is_ahead(
    shared: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = Replica(shared), Replica(shared)
    session = new_session_id()
    reply = await one.begin(session)
    assert reply is not None
    reply.add(TextChunk("half of"))
    await one.mirror.flush()
    set_clock_ahead(monkeypatch)
    await two.mirror._prune()
    await two.mirror.refresh(session)
    [told] = two.feed.of(session)
    assert told.ended is None
    assert await two.begin(new_session_id(), limit=1) is None, "it counts as under way"


async def test_a_cancel_at_one_replica_reaches_the_others(shared: Database) -> None:
    one, two = Replica(shared), Replica(shared)
    session = new_session_id()
    reply, other = await one.begin(session), await one.begin(new_session_id())
    assert reply is not None
    assert other is not None
    asked = await two.mirror.ask_cancel(session)
    assert asked == [reply.message_id]
    await one.mirror._touch()
    assert one.cancelled == [reply.message_id]
    reply.add(ReplyEnded(StopReason.CANCELLED, ""))
    await one.mirror.flush()
    with anyio.fail_after(SECONDS):
        await two.mirror.wait_until_ended(session, asked)
    assert await two.mirror.ask_cancel(session) == []


async def test_replies_under_way_are_counted_over_all_replicas(shared: Database) -> None:
    one, two = Replica(shared), Replica(shared)
    first = await one.begin(new_session_id(), limit=2)
    assert first is not None
    assert await two.begin(new_session_id(), limit=2) is not None
    assert await two.begin(new_session_id(), limit=2) is None
    assert await two.begin(new_session_id(), user="bob", limit=2) is not None
    first.add(WORDS[-1])
    await one.mirror.flush()
    assert await two.begin(new_session_id(), limit=2) is not None


async def test_what_has_been_told_is_forgotten(shared: Database) -> None:
    one, two = Replica(shared), Replica(shared)
    session = new_session_id()
    reply = await one.begin(session)
    assert reply is not None
    reply.add(WORDS[-1])
    await one.mirror.flush()
    await age(shared, chat_replies.c.touched_at, timedelta(minutes=1))
    await one.store.prune()
    assert len(await one.store.replies([session])) == 1
    await age(shared, chat_replies.c.touched_at, timedelta(minutes=2))
    await one.store.prune()
    assert await one.store.replies([session]) == []
    assert await one.store.words({reply.message_id: 1}) == []
    await two.mirror.refresh(session)
    assert two.feed.of(session) == ()
    one.feed.forget(anyio.current_time() + 61)
    assert one.feed.of(session) == ()


def nested(depth: int) -> Mapping[str, Any]:
    inner: dict[str, Any] = {}
    for _ in range(depth):
        inner = {"in": inner}
    return inner


@shows("CHAT-REPLICAS")
async def test_a_reply_that_cannot_be_written_down_fails_and_the_others_are_told(shared: Database) -> None:
    one, two = Replica(shared), Replica(shared)
    sessions = [new_session_id() for _ in range(3)]
    replies = [await one.begin(session) for session in sessions]
    for reply in replies:
        assert reply is not None
        reply.add(TextChunk("a"))
    bad = replies[1]
    assert bad is not None
    await one.mirror.flush()
    bad.add(ToolCall("call-1", "look", nested(5000)))
    for reply in (replies[0], replies[2]):
        assert reply is not None
        reply.add(WORDS[-1])
    await one.mirror.flush()
    told = [[word.event for word in await two.heard(session)] for session in sessions]
    assert told == [[TextChunk("a"), last] for last in (WORDS[-1], PART_NOT_SHAREABLE, WORDS[-1])]
    assert bad.ended == PART_NOT_SHAREABLE
    assert one.mirror._outgoing == {}


async def test_a_reply_that_another_replica_makes_is_not_taken_for_lost(shared: Database) -> None:
    one, two = Replica(shared), Replica(shared)
    session = new_session_id()
    reply = await one.begin(session)
    assert reply is not None
    for word in WORDS:
        reply.add(word)
    await one.mirror.flush()
    heard = await two.heard(session, StreamPosition(reply.message_id, 3))
    assert [word.event for word in heard] == WORDS[3:]
    unknown = StreamPosition(new_message_id(), 3)
    assert await two.heard(session, unknown) == [NumberedEvent(unknown.message_id, 4, REST_LOST)]


async def test_while_the_database_cannot_tell_no_reply_is_taken_for_lost(
    shared: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("frontdesk.agents.chat.feed.IDLE_SECONDS", 0.05)
    one = Replica(shared)
    async with shared.transaction() as connection:
        await connection.execute(text("DROP TABLE chat_words, chat_replies CASCADE"))
    assert await one.heard(new_session_id(), StreamPosition(new_message_id(), 3)) == []


async def test_a_copy_is_kept_while_it_is_followed_or_can_be_told_to_its_end(shared: Database) -> None:
    one, two = Replica(shared), Replica(shared)
    session = new_session_id()
    reply = await one.begin(session)
    assert reply is not None
    reply.add(TextChunk("half of"))
    await one.mirror.flush()
    words = two.feed.follow(session, None, two.mirror.refresh, two.mirror.report_read)
    with anyio.fail_after(SECONDS):
        async with aclosing(words):
            assert (await anext(words)).event == TextChunk("half of")
            two.feed.forget(anyio.current_time())
            assert [copy.message_id for copy in two.feed.of(session)] == [reply.message_id]
    for replica in (one, two):
        replica.feed.forget(anyio.current_time())
    assert (one.feed.of(session), two.feed.of(session)) == ((reply,), ())
    reply.add(WORDS[-1])
    await one.mirror.flush()
    assert [word.event for word in await two.heard(session)] == [TextChunk("half of"), WORDS[-1]]
    two.feed.forget(anyio.current_time())
    assert len(two.feed.of(session)) == 1
