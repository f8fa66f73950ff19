"""Runs commands on this machine, each in a process group of its own that is gone at the end."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, cast

import anyio
from typing_extensions import override

from frontdesk.errors import Invalid
from frontdesk.settings import Settings
from frontdesk.settings.model import variable_names

# Called with the id of the editor's terminal as soon as it is open, so that it can be shown.
OnTerminalOpened = Callable[[str], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class CommandResult:
    """The result of a command; `exit_code` is None where a signal or the time limit ended it."""

    output: str
    exit_code: int | None = None
    signal: str | None = None
    truncated: bool = False
    timed_out: bool = False


class CommandRunner(Protocol):
    """Runs one command line at a time, through a shell; a cancel leaves no process behind."""

    async def run(self, command: str, cwd: Path, seconds: float, opened: OnTerminalOpened) -> CommandResult: ...


OWN_PREFIXES = ("FRONTDESK_", "LETTA_")
# OAUTH_CLIENTS is a list with secrets in it. The other one belongs to a product that Frontdesk replaces.
OTHER_SECRET_VARIABLES = frozenset({"OAUTH_CLIENTS", "SUPABASE_SERVICE_ROLE_KEY"})
KEY_PROVIDERS = frozenset(
    {
        "ANTHROPIC",
        "AZURE_OPENAI",
        "CEREBRAS",
        "COHERE",
        "CO",
        "DEEPSEEK",
        "FIREWORKS",
        "GEMINI",
        "GOOGLE",
        "GROQ",
        "MISTRAL",
        "OPENAI",
        "OPENROUTER",
        "TOGETHER",
        "XAI",
    }
)
PLAIN_TERMINAL = {"PAGER": "cat", "GIT_PAGER": "cat", "TERM": "dumb"}


def command_environment(ours: Mapping[str, str]) -> dict[str, str]:
    """The environment of a command: this process's environment without its secrets."""
    return {name: value for name, value in ours.items() if not is_secret_variable(name)} | PLAIN_TERMINAL


def is_secret_variable(name: str) -> bool:
    """Whether a command must not see this variable, in upper or lower case."""
    upper = name.upper()
    return (
        upper.startswith(OWN_PREFIXES)
        or upper in SECRET_VARIABLES
        or (upper.endswith("_API_KEY") and upper.removesuffix("_API_KEY") in KEY_PROVIDERS)
    )


def _secret_settings() -> frozenset[str]:
    fields = Settings.model_fields.items()
    secret = (name for name, field in fields if "SecretStr" in str(field.annotation))
    return frozenset(variable.upper() for name in secret for variable in variable_names(name))


SECRET_VARIABLES = OTHER_SECRET_VARIABLES | _secret_settings()


class OutputBuffer:
    """Keeps the beginning and the end of an output, `most` bytes in all."""

    def __init__(self, most: int) -> None:
        self._half = most // 2
        self._head = bytearray()
        self._tail = bytearray()
        self._size = 0

    def feed(self, data: bytes) -> None:
        self._size += len(data)
        left = self._half - len(self._head)
        self._head += data[:left]
        self._tail += data[left:]
        # Not each time: that would copy the whole buffer for every few bytes of a long output.
        if len(self._tail) > 2 * self._half:
            del self._tail[: -self._half]

    @property
    def truncated(self) -> bool:
        return self._size > 2 * self._half

    def text(self) -> str:
        """The output as far as it was kept, without NUL characters, which databases and protocols refuse."""
        head, tail = bytes(self._head), bytes(self._tail[-self._half :])
        if not self.truncated:
            return _decode_output(head + tail)
        return f"{_decode_output(head)}{_gap_note(self._size - len(head) - len(tail), 'bytes')}{_decode_output(tail)}"


def shorten(text: str, most: int) -> str:
    """The beginning and the end of a text that is longer than `most`."""
    half = most // 2
    if len(text) <= 2 * half:
        return text
    return f"{text[:half]}{_gap_note(len(text) - 2 * half, 'characters')}{text[-half:]}"


def _gap_note(count: int, unit: str) -> str:
    return f"\n[{count} {unit} were left out here]\n"


def _decode_output(data: bytes) -> str:
    return data.decode(errors="replace").replace("\0", "")


STDOUT = 1
MAX_OUTPUT = 200_000
# How long killed processes may take to end, and their last output to come in.
KILL_SECONDS = 2.0
DRAIN_SECONDS = 0.5
# How long processes may take to end after they closed their output; without a reaper, dead ones seem to stay.
QUIET_SECONDS = 0.3
POLL_SECONDS = 0.02


class ProcessGroup(asyncio.SubprocessProtocol):
    """The processes of one command; `ended` is set when the first of them has ended."""

    def __init__(self) -> None:
        self.ended = asyncio.Event()
        self.output = OutputBuffer(MAX_OUTPUT)
        self._output_closed = asyncio.Event()
        self._transport: asyncio.SubprocessTransport | None = None

    @property
    def status(self) -> int | None:
        """The exit code, or the negative number of a signal."""
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
            self._output_closed.set()

    @override
    def process_exited(self) -> None:
        self.ended.set()

    async def end(self, patience: float) -> None:
        """Terminate the processes that are left, then kill them; returns when they are gone, in bounded time."""
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
            await self._output_closed.wait()

    async def _is_gone_within(self, seconds: float) -> None:
        with anyio.move_on_after(seconds):
            while self._exists():  # noqa: ASYNC110 - there is no event for the end of processes that are not our children
                await anyio.sleep(POLL_SECONDS)

    def _exists(self) -> bool:
        return sys.platform != "win32" and self._signal_group(0)

    async def _signal(self, number: signal.Signals) -> bool:
        """Returns False if no process is left."""
        if sys.platform != "win32":
            return self._signal_group(number)
        if self.ended.is_set():
            return False
        pid = str(self._pid)
        await anyio.run_process(["taskkill", "/T", "/F", "/PID", pid], check=False)
        return True

    def _signal_group(self, number: int) -> bool:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._pid, number)
            return True
        return False

    @property
    def _pid(self) -> int:
        return cast("asyncio.SubprocessTransport", self._transport).get_pid()


# How long a command may take to end when it is terminated.
TERM_SECONDS = 2.0


class LocalCommands:
    """Runs each command in a process group of its own, which is gone when the run ends in any way."""

    def __init__(self, patience: float = TERM_SECONDS) -> None:
        self._patience = patience

    async def run(self, command: str, cwd: Path, seconds: float, opened: OnTerminalOpened) -> CommandResult:  # noqa: ARG002 - the port's
        """Run a command; there is no terminal to show, so `opened` is not called."""
        group = await _start(command, cwd)
        try:
            with anyio.move_on_after(seconds) as limit:
                await group.ended.wait()
        finally:
            await group.end(self._patience)
        return _to_result(group, timed_out=limit.cancelled_caught)


async def _start(command: str, cwd: Path) -> ProcessGroup:
    group, loop = ProcessGroup(), asyncio.get_running_loop()
    try:
        # Shielded: after a cancel midway, a started process could not be found and ended.
        with anyio.CancelScope(shield=True):
            await loop.subprocess_shell(
                lambda: group,
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                cwd=cwd,
                env=command_environment(os.environ),
                start_new_session=True,
            )
    except (OSError, ValueError) as error:
        raise Invalid(f"The command cannot be started in {cwd} ({type(error).__name__}); check both") from error
    return group


def _to_result(group: ProcessGroup, *, timed_out: bool) -> CommandResult:
    text, truncated, status = group.output.text(), group.output.truncated, group.status
    if timed_out or status is None:
        return CommandResult(text, truncated=truncated, timed_out=timed_out)
    if status < 0:
        return CommandResult(text, signal=_signal_name(-status), truncated=truncated)
    return CommandResult(text, exit_code=status, truncated=truncated)


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
