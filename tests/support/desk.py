"""Starts a real Frontdesk server process, as a user would."""

import io
import logging
import os
import re
import signal
import subprocess
import sys
import warnings
from collections.abc import Generator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path

import pytest

from frontdesk.interfaces.cli.main import main

# Far longer than a start or a stop takes, for a machine with other load.
START_SECONDS = 60
STOP_SECONDS = 30
ROOT = Path(__file__).parents[2]
FRONTDESK = (sys.executable, "-m", "frontdesk")
UP = (*FRONTDESK, "up")
OURS = (
    "FRONTDESK_",
    "LETTA_",
    "OPENAI_",
    "ANTHROPIC_",
    "PROMPTYOSELF_",
    "AGENT",
    "OAUTH_",
    "ZMEMORY_",
    "DEFAULT_AGENT_ID",
    "REQUIRE_",
    "STRICT_",
    "ENABLE_",
    "DEBUG_",
)


@dataclass(frozen=True, slots=True)
class Desk:
    """A running server: its address, its process, its data folder and its log."""

    url: str
    process: subprocess.Popen[bytes]
    data: Path
    log: Path

    @property
    def mcp(self) -> str:
        return f"{self.url}/mcp"

    def logged(self) -> str:
        return self.log.read_text()

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(STOP_SECONDS)


def clean_environment(**settings: str) -> dict[str, str]:
    """This process' environment without Frontdesk's settings, plus the given variables."""
    return {name: value for name, value in os.environ.items() if not name.startswith(OURS)} | settings


def frontdesk(
    *arguments: str, data: Path, program: Sequence[str] = FRONTDESK, **settings: str
) -> subprocess.CompletedProcess[str]:
    """Run the command to its end."""
    return subprocess.run(
        [*program, *arguments],
        env=clean_environment(FRONTDESK_DATA=str(data), **settings),
        cwd=data.parent,
        capture_output=True,
        text=True,
        timeout=START_SECONDS,
        check=False,
    )


def frontdesk_here(*arguments: str, data: Path, **settings: str) -> subprocess.CompletedProcess[str]:
    """Run the command to its end in this process, for tests that do not depend on how it starts."""
    out, err = io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err), _logs_kept():
        for name in [name for name in os.environ if name.startswith(OURS)]:
            patch.delenv(name)
        for name, value in {"FRONTDESK_DATA": str(data), **settings}.items():
            patch.setenv(name, value)
        patch.chdir(data.parent)
        patch.setattr(sys, "argv", ["frontdesk", *arguments])
        code = _exit_code()
    return subprocess.CompletedProcess(arguments, code, out.getvalue(), err.getvalue())


@contextmanager
def _logs_kept() -> Generator[None]:
    """A command configures the process' log, and some commands silence it; later tests need it."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    try:
        yield
    finally:
        root.handlers[:] = handlers
        root.setLevel(level)


def _exit_code() -> int:
    with warnings.catch_warnings():
        # The command gets its words as a shell passes them, not as its library's test helper does.
        warnings.filterwarnings("ignore", "Cyclopts application invoked without tokens")
        with pytest.raises(SystemExit) as left:
            main()
    assert isinstance(left.value.code, int)
    return left.value.code


@contextmanager
def open_desk(data: Path, *, command: Sequence[str] = UP, **settings: str) -> Generator[Desk]:
    """Start a server on a free port and stop it at the end; `command` may be another way to start one."""
    log = data.parent / f"{data.name}.log"
    given = {"FRONTDESK_DATA": str(data), "FRONTDESK_PORT": "0", **settings}
    with log.open("wb") as sink:
        process = subprocess.Popen(
            command,
            env=clean_environment(**given) | {"PYTHONPATH": str(ROOT)},
            stdout=sink,
            stderr=sink,
            cwd=data.parent,
        )
    try:
        yield Desk(_address(process, log), process, data, log)
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(STOP_SECONDS)
            raise


def _address(process: subprocess.Popen[bytes], log: Path) -> str:
    for _ in range(START_SECONDS * 20):
        found = re.search(r"is open: (http://[^\s/]+)/", log.read_text())
        if found:
            return found[1]
        try:
            process.wait(0.05)
        except subprocess.TimeoutExpired:
            continue
        break
    raise AssertionError(f"Frontdesk did not open:\n{log.read_text()}")
