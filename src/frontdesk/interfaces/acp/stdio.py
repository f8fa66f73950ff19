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
# What waits on either side before whoever adds to it has to wait.
BACKLOG_BYTES = 4 * 1024 * 1024
CHUNK_BYTES = 64 * 1024


class ThreadNotifier:
    """Wakes tasks from another thread; hung up and rung under the lock of whoever has it."""

    def __init__(self) -> None:
        self._waiting: list[asyncio.Future[None]] = []

    def wait(self) -> asyncio.Future[None]:
        waiting = asyncio.get_running_loop().create_future()
        self._waiting.append(waiting)
        return waiting

    def notify(self) -> None:
        for waiting in self._waiting:
            # A loop that is closed has nobody who waits.
            with suppress(RuntimeError):
                waiting.get_loop().call_soon_threadsafe(_set_result, waiting)
        self._waiting.clear()


class FrameReader:
    """Reads lines; one task takes them, and reading waits for it."""

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
        """Nothing more is taken, whatever is still read."""
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
            # A terminal that is gone, a socket that was reset: an end like any other.
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
    """Writes lines in the order they are handed over, together what waits together.

    What can be written at once without waiting is: the thread would get to it only when nobody else has work.
    """

    def __init__(self, descriptor: int, on_broken: Callable[[], None] = lambda: None) -> None:
        """`on_broken` is called, in another thread, when the other side has been found to be gone."""
        self._descriptor = descriptor
        self._on_broken = on_broken
        self._frames: deque[bytes] = deque()
        self._size = 0
        self._closing = False
        self._ended = False
        self._work = threading.Condition()
        self._notifier = ThreadNotifier()
        self._straight = ImmediateWriter(descriptor)
        threading.Thread(target=self._write, name="acp-out", daemon=True).start()

    async def send(self, frame: bytes) -> None:
        with self._work:
            if self._closing or self._ended:
                raise ConnectionClosed("The other side does not listen any more")
            line = frame + b"\n"
            # Nothing waits, and nothing is being written.
            rest = self._straight.write(line) if self._size == 0 else line
            if not rest:
                return
            self._frames.append(rest)
            self._size += len(rest)
            self._work.notify()
        while space := self._space():
            await space

    async def close(self, seconds: float) -> None:
        """Let what was handed over go out; `seconds` is the longest that this waits for a reader that is slow."""
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
            # What was handed over is lost, and whoever handed it over may have nothing more to send.
            self._on_broken()
        finally:
            with self._work:
                os.close(self._descriptor)
                self._straight.close()
                self._ended = True
                self._frames.clear()
                self._notifier.notify()

    def _next(self) -> bytes:
        """What waits, up to a chunk or one frame; empty at the end."""
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
    """Writes what a pipe or a socket takes without making anybody wait."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._mode = os.fstat(descriptor).st_mode
        self._socket = socket.socket(fileno=os.dup(descriptor)) if stat.S_ISSOCK(self._mode) else None
        self._ready = select.poll() if stat.S_ISFIFO(self._mode) and hasattr(select, "poll") else None
        if self._ready is not None:
            self._ready.register(descriptor, select.POLLOUT)

    def write(self, data: bytes) -> bytes:
        """What is left of it; all of it where it would have to wait, or the other side is gone, which others find."""
        try:
            if self._socket is not None:
                return data[self._socket.send(data, socket.MSG_DONTWAIT) :]
            # So much a pipe takes whole, or it is not ready.
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
            # Whoever shares the descriptor made it so; to change that would change it for them.
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
    """Frames as lines; a `Carrier`."""

    def __init__(self, reading: int, writing: int, most_bytes: int = MOST_BYTES) -> None:
        """Both descriptors are this carrier's own from now on."""
        self._inlet = FrameReader(reading, most_bytes)
        # Who does not listen has left, even if he keeps the other direction open.
        self._outlet = FrameWriter(writing, self._inlet.end)

    @classmethod
    def open(cls) -> Self:
        """Take the standard descriptors over; what is printed goes to standard error, and children read nothing.

        Before the event loop is there, which would be given the number of one that we were started without.
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
        return await self._inlet.take()

    async def send(self, frame: bytes) -> None:
        await self._outlet.send(frame)

    async def close(self) -> None:
        await self._outlet.close(FLUSH_SECONDS)


def _fill_standard_descriptors() -> None:
    """A standard descriptor that we were started without would be given to the next file that is opened."""
    for standard in (0, 1, 2):
        try:
            os.fstat(standard)
        except OSError:
            # The lowest that is free, so it is the one.
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)


# By name: what it stands on takes seconds to import, and the first answer does not wait for it.
CONNECTION_MODULE = "frontdesk.interfaces.acp.connection"


def serve_stdio(user: str, agent: str | None) -> None:
    """Answer on standard output what comes by standard input, until that ends; `agent` is for every folder."""
    # Only the process that started us can write to our standard input: that is as near as loopback.
    settings = Settings.read().with_values(host="127.0.0.1", public_url="", allowed_hosts=(), require_auth=False)
    # Before there is an event loop, which would take the number of a descriptor that we were started without.
    carrier = StdioTransport.open()
    anyio.run(_serve_transport, settings, carrier, user, agent)


async def _serve_transport(settings: Settings, carrier: StdioTransport, user: str, agent: str | None) -> None:
    @asynccontextmanager
    async def connect(peer: RpcPeer, can: EditorCapabilities) -> AsyncGenerator["EditorConnection"]:
        connection_module = await anyio.to_thread.run_sync(import_module, CONNECTION_MODULE, abandon_on_cancel=True)
        async with connection_module.open_connection(settings, peer, can, user, agent) as connection:
            yield connection

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_stop_on_signal, tasks.cancel_scope)
        try:
            await AcpServer(carrier, agent_capabilities(settings), connect, partial(_log_error, settings)).run()
        finally:
            with anyio.CancelScope(shield=True):
                await carrier.close()
        tasks.cancel_scope.cancel()


async def _stop_on_signal(scope: anyio.CancelScope) -> None:
    with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        async for _ in signals:
            scope.cancel()


def _log_error(settings: Settings, error: Exception) -> None:
    # Loaded by then, mostly: without the app there is little that can go wrong.
    import structlog  # noqa: PLC0415

    from frontdesk.interfaces import logs  # noqa: PLC0415

    logs.configure_logs(settings)
    structlog.get_logger("frontdesk.acp").error("acp_request_failed", exc_info=error)
