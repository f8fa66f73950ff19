"""One connection to a server: a request goes out, the parser calls back, and an answer takes shape."""

import asyncio
import select
from collections import deque
from typing import cast

import httptools
from typing_extensions import override

from frontdesk.loop.mcp.http import Failure

# Head, trailers and chunk headers between two pieces of the body; what needs more is no server of ours.
MAX_OVERHEAD = 64 * 1024
# What may lie here unread before the sender is made to wait.
MAX_UNREAD = 256 * 1024
CUT_OFF = "the connection broke off"


class Received:
    """An answer, while it comes in."""

    __slots__ = ("_chunks", "_connection", "_failure", "_more", "_unread", "complete", "headers", "status")

    def __init__(self, connection: "Connection", status: int, headers: dict[str, str]) -> None:
        self.status = status
        self.headers = headers
        self.complete = False
        self._connection = connection
        self._chunks: deque[bytes] = deque()
        self._unread = 0
        self._failure: str | None = None
        self._more: asyncio.Future[None] | None = None

    def chunks(self) -> "Received":
        # Not a generator: one that is left halfway costs a turn of the loop to be cleared away.
        return self

    def __aiter__(self) -> "Received":
        return self

    async def __anext__(self) -> bytes:
        while not self._chunks:
            if self._failure is not None:
                raise Failure(self._failure)
            if self.complete:
                raise StopAsyncIteration
            self._connection.go_on_reading()
            self._more = self._connection.loop.create_future()
            await self._more
        chunk = self._chunks.popleft()
        self._unread -= len(chunk)
        return chunk

    def add(self, chunk: bytes) -> None:
        self._chunks.append(chunk)
        self._unread += len(chunk)
        if self._unread > MAX_UNREAD:
            self._connection.stop_reading()
        self._wake()

    def end(self, failure: str | None = None) -> None:
        self.complete = failure is None
        self._failure = failure
        self._wake()

    def _wake(self) -> None:
        if self._more is not None and not self._more.done():
            self._more.set_result(None)


class Connection(asyncio.Protocol):
    """Carries one exchange at a time. `reusable`: the last one ended so that another can follow."""

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.reusable = True
        self.idle_since = 0.0
        self._parser: httptools.HttpResponseParser | None = httptools.HttpResponseParser(self)
        self._transport: asyncio.Transport | None = None
        self._readable = select.poll()
        self._head: asyncio.Future[Received] | None = None
        self._headers: dict[str, str] = {}
        self._answer: Received | None = None
        self._overhead = 0
        self._paused = False

    async def ask(self, request: bytes) -> Received:
        """Send a request; gives its answer once the head is here."""
        if self._transport is None or self._transport.is_closing():
            raise Failure(CUT_OFF)
        self._head, self._answer, self._overhead = self.loop.create_future(), None, 0
        self._transport.write(request)
        return await self._head

    def is_quiet(self) -> bool:
        """Whether the other side has neither hung up nor said anything since the last answer."""
        alive = self.reusable and self._transport is not None and not self._transport.is_closing()
        return alive and not self._readable.poll(0)

    def close(self) -> None:
        self.reusable = False
        if self._transport is not None:
            self._transport.abort()

    def stop_reading(self) -> None:
        if not self._paused and self._transport is not None:
            self._paused = True
            self._transport.pause_reading()

    def go_on_reading(self) -> None:
        if self._paused and self._transport is not None:
            self._paused = False
            self._transport.resume_reading()

    @override
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._readable.register(transport.get_extra_info("socket"), select.POLLIN)

    @override
    def data_received(self, data: bytes) -> None:
        if self._parser is None or (self._head is None and self._answer is None):
            # Nothing was asked: whatever this is, it must not pass for the answer to what comes next.
            self.close()
            return
        self._overhead += len(data)
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade):
            self._fail("the answer is not HTTP")
        if self._overhead > MAX_OVERHEAD:
            self._fail("the head of the answer is too large")

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        self.reusable = False
        # The parser holds on to this object, and this to the parser.
        self._parser = self._transport = None
        answer = self._answer
        if answer is not None and exc is None and _ends_with_connection(answer):
            self._answer = None
            answer.end()
        else:
            self._fail(CUT_OFF)

    def on_message_begin(self) -> None:
        if self._head is None:
            # A second answer to one request; the next one must not take it for its own.
            self.reusable = False

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._answer is None:
            self._headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        status = self._parser.get_status_code() if self._parser else 0
        headers, self._headers = self._headers, {}
        if status < 200 or self._head is None or self._head.done():
            return
        self._answer = Received(self, status, headers)
        self._head.set_result(self._answer)

    def on_body(self, body: bytes) -> None:
        self._overhead = 0
        if self._answer is not None:
            self._answer.add(body)

    def on_message_complete(self) -> None:
        if self._answer is None:
            return
        keeps = self._parser is not None and self._parser.should_keep_alive()
        sent = self._transport is not None and not self._transport.get_write_buffer_size()
        self.reusable = self.reusable and keeps and sent
        answer, self._answer, self._head = self._answer, None, None
        answer.end()

    def _fail(self, reason: str) -> None:
        answer, self._answer, head, self._head = self._answer, None, self._head, None
        if answer is not None:
            answer.end(reason)
        elif head is not None and not head.done():
            head.set_exception(Failure(reason))
        self.close()


def _ends_with_connection(answer: Received) -> bool:
    return "content-length" not in answer.headers and "transfer-encoding" not in answer.headers
