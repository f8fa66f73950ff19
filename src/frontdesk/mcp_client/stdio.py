"""Runs an MCP server as a child process, and says how soon it may be started again after it died.

`client.py` starts it again for the next request.
"""

import asyncio
import os
import re
import signal
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import cast

import anyio
import structlog
from typing_extensions import override

from frontdesk.errors import Unavailable
from frontdesk.mcp_client.model import McpServer, McpServerUnavailable, UnsupportedRequest
from frontdesk.mcp_client.session import BackgroundCalls, DuplexSession, PendingRequests
from frontdesk.text import LineBuffer, OverlongLine

FIRST_RESTART_DELAY = 0.5
LONGEST_RESTART_DELAY = 30.0
# A program that ran this long before it ended did not fail to start.
STABLE_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class RestartBackoff:
    """The first restart is immediate, the next ones after pauses that double."""

    crashes: int = 0
    not_before: float = 0.0

    def remaining_delay(self, now: float) -> float:
        """The seconds until the next start."""
        return max(0.0, self.not_before - now)

    def after_crash(self, started: float, now: float) -> "RestartBackoff":
        crashes = 1 if now - started >= STABLE_SECONDS else self.crashes + 1
        pause = 0.0 if crashes == 1 else min(LONGEST_RESTART_DELAY, FIRST_RESTART_DELAY * 2.0 ** min(crashes - 2, 16))
        return replace(self, crashes=crashes, not_before=now + pause)


MAX_LINE = 16 * 1024 * 1024
MAX_UNSENT = 16 * 1024 * 1024
INHERITED_VARIABLES = ("PATH", "HOME", "LANG")
STDIN, STDOUT, STDERR = 0, 1, 2
# The limits for a child's exit: by itself, after SIGTERM, and after SIGKILL.
EXIT_SECONDS = 0.5
TERM_SECONDS = 2.0
KILL_SECONDS = 2.0
LAST_LINES = 5
# The limit of output handled in one step, so that a server with much output does not delay others.
MAX_LINES_AT_ONCE = 50
LINE_SHOWN = 300
SECRET_LENGTH = 6
REQUEST_NUMBER = re.compile(rb'"id"\s*:\s*(\d{1,15})')

log = structlog.get_logger("frontdesk.mcp_client")


class ServerProcess(asyncio.SubprocessProtocol):
    """The process of a server on stdio, from its start to its end; `ended` is called if it ends by itself."""

    def __init__(self, server: McpServer, ended: Callable[[], None]) -> None:
        self.pending = PendingRequests(server, self._reply)
        self._server = server
        self._ended = ended
        self._transport: asyncio.SubprocessTransport | None = None
        self._stdin: asyncio.WriteTransport | None = None
        self._gone = asyncio.Event()
        self._leaving = False
        self._broken = False
        self._spoke = False
        self._end_reported = False
        self._answers = LineBuffer(MAX_LINE)
        self._errors = LineBuffer(LINE_SHOWN * 16)
        self._last_lines: deque[str] = deque(maxlen=LAST_LINES)
        self._closing: asyncio.TimerHandle | None = None

    @property
    def lost(self) -> bool:
        return self._transport is None or self._broken or self._leaving

    async def open(self) -> None:
        loop = asyncio.get_running_loop()
        inherited = {name: os.environ[name] for name in INHERITED_VARIABLES if name in os.environ}
        try:
            transport, _ = await loop.subprocess_exec(
                lambda: self,
                *self._server.command,
                env={**inherited, **self._server.env},
                cwd=self._server.cwd,
                # A separate process group, so that its children end with it, and Ctrl-C does not reach it.
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            self._leaving = True
            self._report_end()
            raise McpServerUnavailable(
                f"{self._server} cannot be started ({type(error).__name__}); check its command"
            ) from None
        self._stdin = cast("asyncio.WriteTransport", transport.get_pipe_transport(STDIN))

    async def send(self, body: bytes, _said: Mapping[str, str]) -> None:
        """Send one frame; a child has no headers, so the frame already contains the identity of the call."""
        if self.lost:
            if self._transport is not None:
                # Its last output may still be on its way.
                await self._is_gone_within(2 * EXIT_SECONDS)
            raise self._end_error()
        self._write(body)

    async def close(self) -> None:
        """Wait for its end, terminate it, kill it with its children; returns when it is gone, in bounded time."""
        self._leaving = True
        if not self._spoke:
            # It was closed before its first output, which counts as a failed start.
            self._report_end()
        self.pending.close(McpServerUnavailable(f"{self._server} was stopped; try again"))
        if self._transport is None:
            return
        with anyio.CancelScope(shield=True):
            if self._stdin is not None:
                self._stdin.close()
            for seconds, told in ((EXIT_SECONDS, signal.SIGTERM), (TERM_SECONDS, signal.SIGKILL)):
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
            self._take_stderr(self._errors.feed(data))
            return
        strange: list[bytes] = []
        for line in self._answers.feed(data):
            if isinstance(line, OverlongLine):
                self._fail_overlong(line)
            elif line.startswith(b"{") and self.pending.deliver(line):
                self._spoke = True
            else:
                strange.append(line)
        # Many servers print a greeting there; it is not a frame, and no reason to stop.
        for line in strange[-MAX_LINES_AT_ONCE:]:
            log.debug("mcp_server_garbage", server=self._server.name, size=len(line))
            self._last_lines.append(self._redacted_line(b"(on stdout) " + line))

    @override
    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        if fd != STDERR and not self._broken and not self._leaving:
            self._broken = True
            # Usually the child is about to end; if it only closed a pipe, it is of no use either.
            self._closing = asyncio.get_running_loop().call_later(EXIT_SECONDS, self._signal, signal.SIGKILL)

    @override
    def process_exited(self) -> None:
        self._broken = True
        # Otherwise its children would continue, and keep its pipes open.
        self._signal(signal.SIGKILL)
        if self._transport is not None:
            self._closing = asyncio.get_running_loop().call_later(EXIT_SECONDS, self._transport.close)

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        self._broken = True
        if self._closing is not None:
            self._closing.cancel()
        self.pending.close(self._end_error())
        if self._transport is not None:
            self._transport.close()
        self._gone.set()
        if not self._leaving:
            log.warning("mcp_server_ended", server=self._server.name, status=self._status())
            self._report_end()

    def _report_end(self) -> None:
        if not self._end_reported:
            self._end_reported = True
            self._ended()

    def _reply(self, body: bytes) -> None:
        # If the server sends requests but does not read the answers, it gets none.
        with suppress(McpServerUnavailable):
            self._write(body)

    def _write(self, body: bytes) -> None:
        if self._stdin is None or self._stdin.is_closing():
            return
        if self._stdin.get_write_buffer_size() > MAX_UNSENT:
            raise McpServerUnavailable(f"{self._server} does not read what it is sent; try again later")
        self._stdin.write(body + b"\n")

    def _fail_overlong(self, line: OverlongLine) -> None:
        """Fail the request whose answer was too long; if its number is unknown, fail all requests."""
        found = {int(number) for number in REQUEST_NUMBER.findall(line.head) + REQUEST_NUMBER.findall(line.tail)}
        waiting = set(self.pending.numbers)
        error = UnsupportedRequest(
            f"{self._server} sends more than {MAX_LINE // 1024**2} MiB; ask it for less at a time"
        )
        for number in (found & waiting) or waiting:
            self.pending.fail(number, error)

    def _take_stderr(self, lines: list[bytes | OverlongLine]) -> None:
        for line in lines[-MAX_LINES_AT_ONCE:]:
            shown = self._redacted_line(line.head if isinstance(line, OverlongLine) else line)
            log.debug("mcp_server_said", server=self._server.name, line=shown)
            self._last_lines.append(shown)

    def _redacted_line(self, line: bytes) -> str:
        text = line.decode(errors="replace")
        for value in self._server.env.values():
            if len(value) >= SECRET_LENGTH:
                text = text.replace(value, "[secret]")
        return text[:LINE_SHOWN]

    def _end_error(self) -> Unavailable:
        """How the process ended, without its last output, which may be about another caller."""
        told = f"{self._server} ended ({self._status()})"
        said = f"; it last said: {' | '.join(self._last_lines)}" if self._last_lines else ""
        return McpServerUnavailable(f"{told}{said}", public=told)

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


class ProcessLauncher:
    """Opens sessions, each with its own process, and remembers how the last processes ended."""

    def __init__(self, server: McpServer, background: BackgroundCalls) -> None:
        self._server = server
        self._background = background
        self._restarts = RestartBackoff()
        self._started = 0.0

    def session(self) -> DuplexSession:
        now = asyncio.get_running_loop().time()
        if wait := self._restarts.remaining_delay(now):
            raise McpServerUnavailable(
                f"{self._server} ended {self._restarts.crashes} times in a row; try again in {wait:.1f} s"
            )
        self._started = now
        child = ServerProcess(self._server, self._crashed)
        return DuplexSession(self._server, child, self._background, is_kept=True, says_in_meta=True)

    def _crashed(self) -> None:
        self._restarts = self._restarts.after_crash(self._started, asyncio.get_running_loop().time())
