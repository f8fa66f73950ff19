"""Keeps the events of replies in memory for a minute, so that a stream that connects late misses nothing."""

from bisect import insort
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Sequence
from contextlib import aclosing, contextmanager
from dataclasses import dataclass, field
from datetime import datetime

import anyio

from frontdesk.agents.chat.model import ReplyEnded, ReplyEvent
from frontdesk.llm.events import StopReason

# How long an ended reply is kept for a reader.
REPLY_KEPT_SECONDS = 60.0
# The last event has the whole text, so a reader who misses events before these loses little.
REPLY_KEPT_EVENTS = 20_000
# A stream without events is closed; its client connects again, and its credential is checked again.
IDLE_SECONDS = 600.0
REST_LOST = ReplyEnded(
    StopReason.INTERRUPTED,
    "",
    "The rest of this reply is lost: the server that made it stopped, or it ended more than a minute ago; "
    "the session's messages have what is kept",
)


@dataclass(frozen=True, slots=True)
class NumberedEvent:
    """An event of a reply, numbered from 1."""

    message_id: str
    number: int
    event: ReplyEvent


@dataclass(frozen=True, slots=True)
class StreamPosition:
    """The last event that a reader has; number 0 for none. `ended`: it was the last event of its reply."""

    message_id: str
    number: int
    ended: bool = False


class ChatReply:
    """The reply to one message; `own`: this process makes it, and did not copy it from another."""

    def __init__(self, session_id: str, message_id: str, opened_at: datetime, *, own: bool = True) -> None:
        self.session_id = session_id
        self.message_id = message_id
        self.opened_at = opened_at
        self.own = own
        self.read = False
        self.ended: ReplyEnded | None = None
        self.ended_at = 0.0
        self._events: deque[ReplyEvent] = deque(maxlen=REPLY_KEPT_EVENTS)
        self._count = 0
        self._changed = anyio.Event()

    def is_expired(self, now: float) -> bool:
        return self.ended is not None and now - self.ended_at >= REPLY_KEPT_SECONDS

    @property
    def next_number(self) -> int:
        return self._count + 1

    def add(self, event: ReplyEvent) -> None:
        """Add an event; does nothing after the last one."""
        if self.ended is not None:
            return
        self._events.append(event)
        self._count += 1
        if isinstance(event, ReplyEnded):
            self.ended, self.ended_at = event, anyio.current_time()
        self._changed.set()
        self._changed = anyio.Event()

    def events_after(self, number: int) -> Sequence[NumberedEvent]:
        """The stored events after this number."""
        gone = self._count - len(self._events)
        places = range(max(number - gone, 0), len(self._events))
        return [NumberedEvent(self.message_id, gone + place + 1, self._events[place]) for place in places]

    async def stream_events(self, number: int) -> AsyncGenerator[NumberedEvent]:
        """Stream the events after this number, to the end of the reply."""
        while True:
            changed = self._changed
            for event in self.events_after(number):
                yield event
                number = event.number
            if self.ended is not None and number >= self._count:
                return
            if changed is self._changed:
                await changed.wait()


@dataclass(slots=True)
class SessionFollowers:
    """The streams of this process that follow a session."""

    streams: int = 0
    arrived: anyio.Event = field(default_factory=anyio.Event)

    def wake(self) -> None:
        self.arrived.set()
        self.arrived = anyio.Event()


RefreshReplies = Callable[[str], Awaitable[bool]]
ReportRead = Callable[[ChatReply], Awaitable[None]]


class ReplyFeed:
    """The replies of every session, in the order of their messages."""

    def __init__(self) -> None:
        self._replies: dict[str, list[ChatReply]] = {}
        self._followed: dict[str, SessionFollowers] = {}
        self._closed = False

    @property
    def followed(self) -> Sequence[str]:
        return list(self._followed)

    def open(self, reply: ChatReply) -> ChatReply:
        insort(self._replies.setdefault(reply.session_id, []), reply, key=lambda one: (one.opened_at, one.message_id))
        if reply.session_id in self._followed:
            self._followed[reply.session_id].wake()
        return reply

    def of(self, session_id: str) -> Sequence[ChatReply]:
        return tuple(self._replies.get(session_id, ()))

    def forget(self, now: float) -> None:
        """Drop replies that ended a while ago; `now` is a time of the event loop's clock."""
        for session_id, replies in list(self._replies.items()):
            # A copy for readers who have left would never get the rest of its events.
            followed = session_id in self._followed
            kept = [one for one in replies if (one.own or followed or one.ended) and not one.is_expired(now)]
            if kept:
                self._replies[session_id] = kept
            else:
                del self._replies[session_id]

    def close(self) -> None:
        """End the feed: streams send the events that there are, and end."""
        self._closed = True
        for following in self._followed.values():
            following.wake()

    async def follow(
        self, session_id: str, place: StreamPosition | None, refresh: RefreshReplies, report_read: ReportRead
    ) -> AsyncGenerator[NumberedEvent]:
        """Stream every reply that was not sent yet, from `place` on; ends when a reply ends and no other follows.

        `refresh` copies the replies of other replicas, and returns whether all of them are known. `report_read` gets
        each reply that was read to its end.
        """
        with self._following(session_id) as following:
            all_known = await refresh(session_id)
            done_ids = self._skipped_replies(session_id, place)
            if place is not None and all_known and self._is_lost(session_id, place):
                yield NumberedEvent(place.message_id, place.number + 1, REST_LOST)
                if self._next_unread(session_id, done_ids) is None:
                    return
            while (reply := await self._next(session_id, done_ids, following)) is not None:
                heard_before = place.number if place and place.message_id == reply.message_id else 0
                async with aclosing(reply.stream_events(heard_before)) as events:
                    async for event in events:
                        yield event
                reply.read = True
                done_ids.add(reply.message_id)
                await report_read(reply)
                await refresh(session_id)
                if self._next_unread(session_id, done_ids) is None:
                    return

    @contextmanager
    def _following(self, session_id: str) -> Generator[SessionFollowers]:
        following = self._followed.setdefault(session_id, SessionFollowers())
        following.streams += 1
        try:
            yield following
        finally:
            following.streams -= 1
            if following.streams == 0:
                del self._followed[session_id]

    def _skipped_replies(self, session_id: str, place: StreamPosition | None) -> set[str]:
        """The replies that a new reader does not need: those before its position, and those that were read."""
        replies = self.of(session_id)
        ids = [reply.message_id for reply in replies]
        if place is not None and place.number == 0:
            return set()
        if place is None or place.message_id not in ids:
            return {reply.message_id for reply in replies if reply.read}
        index = ids.index(place.message_id)
        last = replies[index]
        done = last.ended is not None and place.number + 1 >= last.next_number
        return set(ids[: index + 1] if done else ids[:index])

    def _is_lost(self, session_id: str, place: StreamPosition) -> bool:
        """Whether a reader waits for the rest of a reply that is lost."""
        here = any(reply.message_id == place.message_id for reply in self.of(session_id))
        return bool(place.message_id) and not place.ended and not here

    async def _next(self, session_id: str, done_ids: set[str], following: SessionFollowers) -> ChatReply | None:
        """Wait for the next reply; returns None when none comes for a long time, or the feed is closed."""
        with anyio.move_on_after(IDLE_SECONDS):
            while (reply := self._next_unread(session_id, done_ids)) is None and not self._closed:
                await following.arrived.wait()
            return reply
        return None

    def _next_unread(self, session_id: str, done_ids: set[str]) -> ChatReply | None:
        return next((reply for reply in self.of(session_id) if reply.message_id not in done_ids), None)
