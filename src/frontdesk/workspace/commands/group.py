"""A process with all that it starts: what it says is kept, and when it is ended nothing of it is left."""

import asyncio
import os
import signal
import sys
from contextlib import suppress
from typing import cast

import anyio
from typing_extensions import override

from frontdesk.workspace.commands.output import Kept

STDOUT = 1
MAX_OUTPUT = 200_000
# How long they may take to be gone when they are killed, and the last they said to come in.
KILL_SECONDS = 2.0
DRAIN_SECONDS = 0.5
# How long those may take to leave who shut their output; where nobody takes note of the dead, they seem to stay.
QUIET_SECONDS = 0.3
POLL_SECONDS = 0.02


class Group(asyncio.SubprocessProtocol):
    """`ended` is set when the first of them has ended, whatever the others do and whoever holds its output open."""

    def __init__(self) -> None:
        self.ended = asyncio.Event()
        self.output = Kept(MAX_OUTPUT)
        self._said_all = asyncio.Event()
        self._transport: asyncio.SubprocessTransport | None = None

    @property
    def status(self) -> int | None:
        """The exit code, or a signal's number below zero."""
        return self._transport.get_returncode() if self._transport is not None else None

    @override
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.SubprocessTransport", transport)

    @override
    def pipe_data_received(self, fd: int, data: bytes) -> None:
        self.output.feed(data)

    @override
    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        if fd == STDOUT:
            self._said_all.set()

    @override
    def process_exited(self) -> None:
        self.ended.set()

    async def end(self, patience: float) -> None:
        """Ask all that are left to leave, kill those that do not; returns when they are gone, within bounds."""
        if self._transport is None:
            return
        with anyio.CancelScope(shield=True):
            for number, seconds in ((signal.SIGTERM, patience), (signal.SIGKILL, KILL_SECONDS)):
                if await self._signal(number):
                    await self._is_silent_within(seconds)
                    await self._is_gone_within(min(seconds, QUIET_SECONDS))
            await self._is_silent_within(DRAIN_SECONDS)
            self._transport.close()

    async def _is_silent_within(self, seconds: float) -> None:
        with anyio.move_on_after(seconds):
            await self.ended.wait()
            await self._said_all.wait()

    async def _is_gone_within(self, seconds: float) -> None:
        with anyio.move_on_after(seconds):
            while self._exists():  # noqa: ASYNC110 - nobody is told of the end of those that are not our children
                await anyio.sleep(POLL_SECONDS)

    def _exists(self) -> bool:
        return sys.platform != "win32" and self._told(0)

    async def _signal(self, number: signal.Signals) -> bool:
        """Whether there was anybody to tell."""
        if sys.platform != "win32":
            return self._told(number)
        if self.ended.is_set():
            return False
        pid = str(self._pid)
        await anyio.run_process(["taskkill", "/T", "/F", "/PID", pid], check=False)
        return True

    def _told(self, number: int) -> bool:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._pid, number)
            return True
        return False

    @property
    def _pid(self) -> int:
        return cast("asyncio.SubprocessTransport", self._transport).get_pid()
