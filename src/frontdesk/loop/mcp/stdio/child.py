"""One child process: lines in, lines out, its last words kept, and its whole group gone when it is closed."""

import asyncio
import os
import re
import signal
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import cast

import anyio
import structlog
from typing_extensions import override

from frontdesk.errors import Unavailable
from frontdesk.loop.mcp.duplex import Mailbox
from frontdesk.loop.mcp.model import Broken, McpServer, Unfit
from frontdesk.loop.mcp.stdio.lines import Lines, Overlong

MAX_LINE = 16 * 1024 * 1024
MAX_UNSENT = 16 * 1024 * 1024
INHERITED = ("PATH", "HOME", "LANG")
STDIN, STDOUT, STDERR = 0, 1, 2
# How long a child may take to leave of itself, to leave when told to, and to be gone when it is killed.
LEAVE_SECONDS = 0.5
TERM_SECONDS = 2.0
KILL_SECONDS = 2.0
LAST_WORDS = 5
# Of what comes in at once; one who says more than anybody can read is not to keep others waiting.
HEARD = 50
WORD_LENGTH = 300
SECRET_LENGTH = 6
NUMBER = re.compile(rb'"id"\s*:\s*(\d{1,15})')

log = structlog.get_logger("frontdesk.loop.mcp")


class Child(asyncio.SubprocessProtocol):
    """The process of a server on stdio, from its start to its end; `ended` is called when it ends unasked."""

    def __init__(self, server: McpServer, ended: Callable[[], None]) -> None:
        self.mailbox = Mailbox(server, self._reply)
        self._server = server
        self._ended = ended
        self._transport: asyncio.SubprocessTransport | None = None
        self._stdin: asyncio.WriteTransport | None = None
        self._gone = asyncio.Event()
        self._leaving = False
        self._broken = False
        self._spoke = False
        self._told = False
        self._answers = Lines(MAX_LINE)
        self._errors = Lines(WORD_LENGTH * 16)
        self._last_words: deque[str] = deque(maxlen=LAST_WORDS)
        self._closing: asyncio.TimerHandle | None = None

    @property
    def lost(self) -> bool:
        return self._transport is None or self._broken or self._leaving

    async def open(self) -> None:
        loop = asyncio.get_running_loop()
        inherited = {name: os.environ[name] for name in INHERITED if name in os.environ}
        try:
            transport, _ = await loop.subprocess_exec(
                lambda: self,
                *self._server.command,
                env={**inherited, **self._server.env},
                cwd=self._server.cwd,
                # A group of its own, so that what it starts can be ended with it, and Ctrl-C is not for it.
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            self._leaving = True
            self._tell_of_end()
            raise Broken(f"{self._server} cannot be started ({type(error).__name__}); check its command") from None
        self._stdin = cast("asyncio.WriteTransport", transport.get_pipe_transport(STDIN))

    async def send(self, body: bytes, _said: Mapping[str, str]) -> None:
        """Hand over one frame; a child has no headers, so what is said of a call is in the frame already."""
        if self.lost:
            if self._transport is not None:
                # Its last words may still be on their way.
                await self._is_gone_within(2 * LEAVE_SECONDS)
            raise self._farewell()
        self._write(body)

    async def close(self) -> None:
        """Let it leave, make it leave, kill it with all it started; returns when it is gone, within bounds."""
        self._leaving = True
        if not self._spoke:
            # It was given up before it said a word, which is no better than an end.
            self._tell_of_end()
        self.mailbox.close(Broken(f"{self._server} was stopped; try again"))
        if self._transport is None:
            return
        with anyio.CancelScope(shield=True):
            if self._stdin is not None:
                self._stdin.close()
            for seconds, told in ((LEAVE_SECONDS, signal.SIGTERM), (TERM_SECONDS, signal.SIGKILL)):
                if await self._is_gone_within(seconds):
                    break
                self._signal(told)
            await self._is_gone_within(KILL_SECONDS)
            self._transport.close()

    @override
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.SubprocessTransport", transport)

    @override
    def pipe_data_received(self, fd: int, data: bytes) -> None:
        if fd == STDERR:
            self._hear(self._errors.feed(data))
            return
        strange: list[bytes] = []
        for line in self._answers.feed(data):
            if isinstance(line, Overlong):
                self._refuse(line)
            elif line.startswith(b"{") and self.mailbox.deliver(line):
                self._spoke = True
            else:
                strange.append(line)
        # Many print a greeting there; it is no frame, and no reason to give up on them.
        for line in strange[-HEARD:]:
            log.debug("mcp_server_garbage", server=self._server.name, size=len(line))
            self._last_words.append(self._shown(b"(on stdout) " + line))

    @override
    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        if fd != STDERR and not self._broken and not self._leaving:
            self._broken = True
            # Usually it is about to end; one that only closed its ears or mouth is of no use any more.
            self._closing = asyncio.get_running_loop().call_later(LEAVE_SECONDS, self._signal, signal.SIGKILL)

    @override
    def process_exited(self) -> None:
        self._broken = True
        # What it started and left behind would run on, and hold its pipes open.
        self._signal(signal.SIGKILL)
        if self._transport is not None:
            self._closing = asyncio.get_running_loop().call_later(LEAVE_SECONDS, self._transport.close)

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        self._broken = True
        if self._closing is not None:
            self._closing.cancel()
        self.mailbox.close(self._farewell())
        if self._transport is not None:
            self._transport.close()
        self._gone.set()
        if not self._leaving:
            log.warning("mcp_server_ended", server=self._server.name, status=self._status())
            self._tell_of_end()

    def _tell_of_end(self) -> None:
        if not self._told:
            self._told = True
            self._ended()

    def _reply(self, body: bytes) -> None:
        # One who asks without reading the answers gets none.
        with suppress(Broken):
            self._write(body)

    def _write(self, body: bytes) -> None:
        if self._stdin is None or self._stdin.is_closing():
            return
        if self._stdin.get_write_buffer_size() > MAX_UNSENT:
            raise Broken(f"{self._server} does not read what it is sent; try again later")
        self._stdin.write(body + b"\n")

    def _refuse(self, line: Overlong) -> None:
        """Fail the request whose answer was too long; where that is not to be seen, all of them."""
        found = {int(number) for number in NUMBER.findall(line.head) + NUMBER.findall(line.tail)}
        waiting = set(self.mailbox.numbers)
        error = Unfit(f"{self._server} sends more than {MAX_LINE // 1024**2} MiB; ask it for less at a time")
        for number in (found & waiting) or waiting:
            self.mailbox.fail(number, error)

    def _hear(self, lines: list[bytes | Overlong]) -> None:
        for line in lines[-HEARD:]:
            shown = self._shown(line.head if isinstance(line, Overlong) else line)
            log.debug("mcp_server_said", server=self._server.name, line=shown)
            self._last_words.append(shown)

    def _shown(self, line: bytes) -> str:
        text = line.decode(errors="replace")
        for value in self._server.env.values():
            if len(value) >= SECRET_LENGTH:
                text = text.replace(value, "[secret]")
        return text[:WORD_LENGTH]

    def _farewell(self) -> Unavailable:
        """What became of it; its last words may be about another caller, and are not for everybody."""
        told = f"{self._server} ended ({self._status()})"
        said = f"; it last said: {' | '.join(self._last_words)}" if self._last_words else ""
        return Broken(f"{told}{said}", public=told)

    def _status(self) -> str:
        code = self._transport.get_returncode() if self._transport is not None else None
        if code is None:
            return "it closed its pipes"
        return f"signal {-code}" if code < 0 else f"exit status {code}"

    def _signal(self, number: signal.Signals) -> None:
        if self._transport is not None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._transport.get_pid(), number)

    async def _is_gone_within(self, seconds: float) -> bool:
        with anyio.move_on_after(seconds):
            await self._gone.wait()
        return self._gone.is_set()
