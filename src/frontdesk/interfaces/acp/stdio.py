"""Serves the editor that started this process, on standard input and output."""

import asyncio
import os
import select
import signal
import socket
import stat
import sys
import threading
from collections import deque
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Self

import anyio

from frontdesk.interfaces.acp.handshake import AcpServer, EditorCapabilities, agent_capabilities
from frontdesk.interfaces.acp.jsonrpc import OVERLONG, ConnectionClosed, RpcPeer
from frontdesk.settings import Settings
from frontdesk.text import LineBuffer

if TYPE_CHECKING:
    from frontdesk.interfaces.acp.connection import EditorConnection

MOST_BYTES = 64 * 1024 * 1024
# How much may wait in either direction before the sender has to wait.
BACKLOG_BYTES = 4 * 1024 * 1024
CHUNK_BYTES = 64 * 1024


class ThreadNotifier:
    """Wakes tasks from another thread; `wait` and `notify` are called under the owner's lock."""

    def __init__(self) -> None:
        self._waiting: list[asyncio.Future[None]] = []

    def wait(self) -> asyncio.Future[None]:
        waiting = asyncio.get_running_loop().create_future()
        self._waiting.append(waiting)
        return waiting

    def notify(self) -> None:
        for waiting in self._waiting:
            # In a closed loop nobody waits.
            with suppress(RuntimeError):
                waiting.get_loop().call_soon_threadsafe(_set_result, waiting)
        self._waiting.clear()


class FrameReader:
    """Reads lines in a thread, which waits when the task that takes them falls behind."""

    def __init__(self, descriptor: int, most_bytes: int = MOST_BYTES) -> None:
        self._descriptor = descriptor
        self._lines = LineBuffer(most_bytes)
        self._frames: deque[bytes] = deque()
        self._size = 0
        self._ended = False
        self._space = threading.Condition()
        self._notifier = ThreadNotifier()
        threading.Thread(target=self._read, name="acp-in", daemon=True).start()

    async def take(self) -> bytes | None:
        while True:
            with self._space:
                if self._frames:
                    return self._first()
                if self._ended:
                    return None
                come = self._notifier.wait()
            await come

    def end(self) -> None:
        """End the input; lines that are read after this are dropped."""
        with self._space:
            self._ended = True
            self._frames.clear()
            self._notifier.notify()

    def _first(self) -> bytes:
        frame = self._frames.popleft()
        self._size -= len(frame)
        if self._size <= BACKLOG_BYTES:
            self._space.notify()
        return frame

    def _read(self) -> None:
        try:
            while data := _read_some(self._descriptor):
                self._put(data)
            self._put(b"\n")
        except OSError:
            # A closed terminal or a reset socket also ends the input.
            pass
        finally:
            with self._space:
                self._ended = True
                self._notifier.notify()
            os.close(self._descriptor)

    def _put(self, data: bytes) -> None:
        frames = [line if isinstance(line, bytes) else OVERLONG for line in self._lines.feed(data)]
        if not frames:
            return
        with self._space:
            self._space.wait_for(lambda: self._size <= BACKLOG_BYTES)
            self._frames += frames
            self._size += sum(map(len, frames))
            self._notifier.notify()


class FrameWriter:
    """Writes lines in order; lines that wait are written together.

    A line that can be written without waiting is written immediately: the thread runs only when no other task has work.
    """

    def __init__(self, descriptor: int, on_broken: Callable[[], None] = lambda: None) -> None:
        """`on_broken` is called, in another thread, when the other side has left."""
        self._descriptor = descriptor
        self._on_broken = on_broken
        self._frames: deque[bytes] = deque()
        self._size = 0
        self._closing = False
        self._ended = False
        self._work = threading.Condition()
        self._notifier = ThreadNotifier()
        self._immediate = ImmediateWriter(descriptor)
        threading.Thread(target=self._write, name="acp-out", daemon=True).start()

    async def send(self, frame: bytes) -> None:
        with self._work:
            if self._closing or self._ended:
                raise ConnectionClosed("The other side does not listen any more")
            line = frame + b"\n"
            # This is safe, as no line waits and none is being written.
            rest = self._immediate.write(line) if self._size == 0 else line
            if not rest:
                return
            self._frames.append(rest)
            self._size += len(rest)
            self._work.notify()
        while space := self._space():
            await space

    async def close(self, seconds: float) -> None:
        """Finish writing; waits for a slow reader for `seconds` at most."""
        with self._work:
            self._closing = True
            self._work.notify()
        with anyio.move_on_after(seconds, shield=True):
            while end := self._end():
                await end

    def _space(self) -> asyncio.Future[None] | None:
        with self._work:
            if self._ended:
                raise ConnectionClosed("The other side does not listen any more")
            return self._notifier.wait() if self._size > BACKLOG_BYTES else None

    def _end(self) -> asyncio.Future[None] | None:
        with self._work:
            return None if self._ended else self._notifier.wait()

    def _write(self) -> None:
        try:
            while data := self._next():
                _write_all(self._descriptor, data)
                self._written(len(data))
        except OSError:
            # The lines are lost, and their sender may not notice, as it may have nothing more to send.
            self._on_broken()
        finally:
            with self._work:
                os.close(self._descriptor)
                self._immediate.close()
                self._ended = True
                self._frames.clear()
                self._notifier.notify()

    def _next(self) -> bytes:
        """The lines that wait, up to a chunk or one frame; empty at the end."""
        with self._work:
            self._work.wait_for(lambda: self._frames or self._closing)
            together: list[bytes] = []
            size = 0
            while self._frames and size < CHUNK_BYTES:
                together.append(self._frames.popleft())
                size += len(together[-1])
        return b"".join(together)

    def _written(self, size: int) -> None:
        with self._work:
            self._size -= size
            if self._size <= BACKLOG_BYTES:
                self._notifier.notify()


class ImmediateWriter:
    """Writes what a pipe or a socket accepts without waiting."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._mode = os.fstat(descriptor).st_mode
        self._socket = socket.socket(fileno=os.dup(descriptor)) if stat.S_ISSOCK(self._mode) else None
        self._ready = select.poll() if stat.S_ISFIFO(self._mode) and hasattr(select, "poll") else None
        if self._ready is not None:
            self._ready.register(descriptor, select.POLLOUT)

    def write(self, data: bytes) -> bytes:
        """Returns the rest; all of it where writing would wait, or the other side has left."""
        try:
            if self._socket is not None:
                return data[self._socket.send(data, socket.MSG_DONTWAIT) :]
            # A pipe that is ready accepts this much as a whole.
            if self._ready is not None and len(data) <= select.PIPE_BUF and self._is_ready():
                return data[os.write(self._descriptor, data) :]
        except OSError:
            return data
        return data

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()

    def _is_ready(self) -> bool:
        return self._ready is not None and [event for _, event in self._ready.poll(0)] == [select.POLLOUT]


def _set_result(waiting: asyncio.Future[None]) -> None:
    if not waiting.done():
        waiting.set_result(None)


def _read_some(descriptor: int) -> bytes:
    while True:
        try:
            return os.read(descriptor, CHUNK_BYTES)
        except BlockingIOError:
            # A process that shares the descriptor has made it non-blocking, and would be affected by a change.
            select.select([descriptor], [], [])


def _write_all(descriptor: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        try:
            rest = rest[os.write(descriptor, rest) :]
        except BlockingIOError:
            select.select([], [descriptor], [])


FLUSH_SECONDS = 5


class StdioTransport:
    """A `FrameTransport` whose frames are lines."""

    def __init__(self, reading: int, writing: int, most_bytes: int = MOST_BYTES) -> None:
        """The transport owns both descriptors, and closes them."""
        self._reader = FrameReader(reading, most_bytes)
        # An editor that no longer reads has left, even if it keeps the other direction open.
        self._writer = FrameWriter(writing, self._reader.end)

    @classmethod
    def open(cls) -> Self:
        """Take over standard input and output; prints then go to standard error, and children read nothing.

        Call this before the event loop exists: that would get the number of a descriptor we were started without.
        """
        if sys.stdout is not None:
            sys.stdout.flush()
        _fill_standard_descriptors()
        reading, writing = os.dup(0), os.dup(1)
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        os.close(nothing)
        os.dup2(2, 1)
        return cls(reading, writing)

    async def receive(self) -> bytes | None:
        return await self._reader.take()

    async def send(self, frame: bytes) -> None:
        await self._writer.send(frame)

    async def close(self) -> None:
        await self._writer.close(FLUSH_SECONDS)


def _fill_standard_descriptors() -> None:
    """Open the standard descriptors that we were started without, or the next opened file would get their numbers."""
    for standard in (0, 1, 2):
        try:
            os.fstat(standard)
        except OSError:
            # The system gives the lowest free number, which is this one.
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)


# The module is imported by name: its imports take seconds, and the first answer does not wait for them.
CONNECTION_MODULE = "frontdesk.interfaces.acp.connection"


def serve_stdio(user: str, agent: str | None) -> None:
    """Serve the editor on standard input and output, until the input ends; `agent` is the agent for every folder."""
    # Only the process that started us can write to our standard input, so this is as safe as loopback.
    settings = Settings.read().with_values(host="127.0.0.1", public_url="", allowed_hosts=(), require_auth=False)
    # This must come before the event loop, see `open`.
    transport = StdioTransport.open()
    anyio.run(_serve_transport, settings, transport, user, agent)


async def _serve_transport(settings: Settings, transport: StdioTransport, user: str, agent: str | None) -> None:
    @asynccontextmanager
    async def connect(peer: RpcPeer, can: EditorCapabilities) -> AsyncGenerator["EditorConnection"]:
        module = await anyio.to_thread.run_sync(import_module, CONNECTION_MODULE, abandon_on_cancel=True)
        async with module.open_local_connection(settings, peer, can, user, agent) as connection:
            yield connection

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_stop_on_signal, tasks.cancel_scope)
        try:
            await AcpServer(transport, agent_capabilities(settings), connect, partial(_log_error, settings)).run()
        finally:
            with anyio.CancelScope(shield=True):
                await transport.close()
        tasks.cancel_scope.cancel()


async def _stop_on_signal(scope: anyio.CancelScope) -> None:
    with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        async for _ in signals:
            scope.cancel()


def _log_error(settings: Settings, error: Exception) -> None:
    # These are mostly loaded by then; before that, little can go wrong.
    import structlog  # noqa: PLC0415

    from frontdesk.interfaces import logs  # noqa: PLC0415

    logs.configure_logs(settings)
    structlog.get_logger("frontdesk.acp").error("acp_request_failed", exc_info=error)
