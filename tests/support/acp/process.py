"""Starts the agent as an editor does, as a process with pipes, and finds the processes that it leaves behind."""

import asyncio
import os
import sys
import uuid
from collections.abc import AsyncGenerator, Collection, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil

from tests.support.desk import STOP_SECONDS, clean_environment
from tests.support.waiting import comes_true, until

FRONTDESK = (sys.executable, "-m", "frontdesk", "acp")
LONGEST_FRAME = 64 * 1024 * 1024
# Everything that the agent starts inherits this, so that it can always be found.
MARK = "TEST_RUN"


@dataclass(frozen=True, slots=True)
class Agent:
    """A started agent; its log is its output to stderr."""

    process: asyncio.subprocess.Process
    mark: str
    log: Path

    def descendants(self) -> list[psutil.Process]:
        """The processes that it started and that still run."""
        return psutil.Process(self.process.pid).children(recursive=True)

    async def ended(self) -> int:
        # Not `wait`: that also waits for processes that hold its pipes, even if it has ended long ago.
        await until(lambda: self.process.returncode is not None, STOP_SECONDS)
        return self.process.returncode or 0

    def told(self) -> str:
        return self.log.read_text(errors="replace")


@asynccontextmanager
async def started(data: Path, command: Sequence[str] = FRONTDESK, **settings: str) -> AsyncGenerator[Agent]:
    """An agent with a data folder and no keys; it has always ended at the end of the block."""
    mark, log = uuid.uuid4().hex, data.parent / f"{data.name}.{uuid.uuid4().hex[:8]}.log"
    with log.open("wb") as sink:
        process = await asyncio.create_subprocess_exec(
            *command,
            env=clean_environment(FRONTDESK_DATA=str(data), **settings) | {MARK: mark},
            cwd=data.parent,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=sink,
            limit=LONGEST_FRAME,
        )
    try:
        yield Agent(process, mark, log)
    finally:
        if process.returncode is None:
            process.kill()
        for left in _there(mark, ()):
            left.kill()
        async with asyncio.timeout(STOP_SECONDS):
            await process.communicate()


def left_behind(mark: str, known: Collection[psutil.Process] = ()) -> list[psutil.Process]:
    """The processes of an ended agent that still run, after some time to end."""
    comes_true(lambda: not _there(mark, known), STOP_SECONDS)
    return _there(mark, known)


def _there(mark: str, known: Collection[psutil.Process]) -> list[psutil.Process]:
    marked = [process for process in psutil.process_iter() if _has(process, mark)]
    return [*marked, *(process for process in known if process not in marked and _runs(process))]


def _has(process: psutil.Process, mark: str) -> bool:
    try:
        return process.pid != os.getpid() and process.environ().get(MARK) == mark
    except (psutil.Error, OSError):
        # It has ended meanwhile, or belongs to another user.
        return False


def _runs(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
