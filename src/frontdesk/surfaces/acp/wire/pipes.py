"""Frames through descriptors that block, each in a thread of its own: one that reads, one that writes."""

import asyncio
import os
import select
import socket
import stat
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress

import anyio

from frontdesk.loop.mcp.stdio.lines import Lines
from frontdesk.surfaces.acp.wire.model import OVERLONG, Gone

MOST_BYTES = 64 * 1024 * 1024
# What waits on either side before whoever adds to it has to wait.
BACKLOG_BYTES = 4 * 1024 * 1024
CHUNK_BYTES = 64 * 1024


class Bell:
    """Wakes tasks from another thread; hung up and rung under the lock of whoever has it."""

    def __init__(self) -> None:
        self._waiting: list[asyncio.Future[None]] = []

    def hang(self) -> asyncio.Future[None]:
        waiting = asyncio.get_running_loop().create_future()
        self._waiting.append(waiting)
        return waiting

    def ring(self) -> None:
        for waiting in self._waiting:
            # A loop that is closed has nobody who waits.
            with suppress(RuntimeError):
                waiting.get_loop().call_soon_threadsafe(_settle, waiting)
        self._waiting.clear()


class Inlet:
    """Reads lines; one task takes them, and reading waits for it."""

    def __init__(self, descriptor: int, most_bytes: int = MOST_BYTES) -> None:
        self._descriptor = descriptor
        self._lines = Lines(most_bytes)
        self._frames: deque[bytes] = deque()
        self._size = 0
        self._ended = False
        self._room = threading.Condition()
        self._bell = Bell()
        threading.Thread(target=self._read, name="acp-in", daemon=True).start()

    async def take(self) -> bytes | None:
        while True:
            with self._room:
                if self._frames:
                    return self._first()
                if self._ended:
                    return None
                come = self._bell.hang()
            await come

    def end(self) -> None:
        """Nothing more is taken, whatever is still read."""
        with self._room:
            self._ended = True
            self._frames.clear()
            self._bell.ring()

    def _first(self) -> bytes:
        frame = self._frames.popleft()
        self._size -= len(frame)
        if self._size <= BACKLOG_BYTES:
            self._room.notify()
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
            with self._room:
                self._ended = True
                self._bell.ring()
            os.close(self._descriptor)

    def _put(self, data: bytes) -> None:
        frames = [line if isinstance(line, bytes) else OVERLONG for line in self._lines.feed(data)]
        if not frames:
            return
        with self._room:
            self._room.wait_for(lambda: self._size <= BACKLOG_BYTES)
            self._frames += frames
            self._size += sum(map(len, frames))
            self._bell.ring()


class Outlet:
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
        self._bell = Bell()
        self._straight = Straight(descriptor)
        threading.Thread(target=self._write, name="acp-out", daemon=True).start()

    async def send(self, frame: bytes) -> None:
        with self._work:
            if self._closing or self._ended:
                raise Gone("The other side does not listen any more")
            line = frame + b"\n"
            # Nothing waits, and nothing is being written.
            rest = self._straight.write(line) if self._size == 0 else line
            if not rest:
                return
            self._frames.append(rest)
            self._size += len(rest)
            self._work.notify()
        while room := self._room():
            await room

    async def close(self, seconds: float) -> None:
        """Let what was handed over go out; `seconds` is the longest that this waits for a reader that is slow."""
        with self._work:
            self._closing = True
            self._work.notify()
        with anyio.move_on_after(seconds, shield=True):
            while end := self._end():
                await end

    def _room(self) -> asyncio.Future[None] | None:
        with self._work:
            if self._ended:
                raise Gone("The other side does not listen any more")
            return self._bell.hang() if self._size > BACKLOG_BYTES else None

    def _end(self) -> asyncio.Future[None] | None:
        with self._work:
            return None if self._ended else self._bell.hang()

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
                self._bell.ring()

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
                self._bell.ring()


class Straight:
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


def _settle(waiting: asyncio.Future[None]) -> None:
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
