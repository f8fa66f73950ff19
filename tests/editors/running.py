"""Runs a published client with Frontdesk as its agent, and reads the frames between them."""

import json
import shlex
import signal
import subprocess
import threading
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.editors import node
from tests.support.acp import schema
from tests.support.acp.process import FRONTDESK, MARK, left_behind
from tests.support.acp.schema import Json
from tests.support.desk import START_SECONDS, STOP_SECONDS, clean_environment
from tests.support.environments import NODE

RUN_SECONDS = 2 * START_SECONDS
# Methods that only an agent sends; acpx does not show which side an answer comes from.
AGENTS = frozenset(
    {
        "session/update",
        "session/request_permission",
        "fs/read_text_file",
        "fs/write_text_file",
        "terminal/create",
        "terminal/output",
        "terminal/wait_for_exit",
        "terminal/kill",
        "terminal/release",
        "elicitation/create",
    }
)


@dataclass(slots=True)
class Exchange:
    """The frames of both sides that acpx shows, as they come; the agent's frames are checked against the schema."""

    process: subprocess.Popen[str]
    frames: list[Json] = field(default_factory=list[Json])

    def read(self) -> Iterator[Json]:
        """Frame by frame, until acpx has ended."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            frame: dict[str, Any] = json.loads(line)
            self.frames.append(frame)
            if frame.get("method") in AGENTS:
                schema.check_sent(frame)
            yield frame

    def finish(self) -> int:
        """Its exit code."""
        for _ in self.read():
            pass
        return self.process.wait(STOP_SECONDS)

    def until(self, holds: Callable[[Json], bool]) -> Json:
        return next(frame for frame in self.read() if holds(frame))

    def interrupt(self) -> None:
        """Interrupt it as Ctrl-C does."""
        self.process.send_signal(signal.SIGINT)

    def updates(self, kind: str) -> Sequence[Json]:
        told = [frame["params"]["update"] for frame in self.frames if frame.get("method") == "session/update"]
        return [update for update in told if update["sessionUpdate"] == kind]

    def asked(self, method: str) -> Sequence[Json]:
        return [frame["params"] for frame in self.frames if frame.get("method") == method]

    def said(self) -> str:
        return "".join(update["content"]["text"] for update in self.updates("agent_message_chunk"))

    @property
    def stop(self) -> str:
        return self.frames[-1]["result"]["stopReason"]


@contextmanager
def acpx(work: Path, home: Path, *arguments: str) -> Generator[Exchange]:
    """acpx at work in a folder; it, its agent and all their processes have ended at the end."""
    shown = ("--cwd", str(work), "--format", "json", "--json-strict", "--agent", shlex.join(FRONTDESK))
    with running([str(node.acpx()), *shown, *arguments], work, home) as process:
        yield Exchange(process)


@contextmanager
def running(
    command: Sequence[str], work: Path, home: Path, surroundings: Mapping[str, str] | None = None
) -> Generator[subprocess.Popen[str]]:
    """A Node program; it always ends with the block, and leaves nothing behind."""
    environment = clean_environment(FRONTDESK_DATA=str(home / "data"), HOME=str(home), **(surroundings or {}))
    mark = home.as_posix()
    with (home / "stderr.log").open("wb") as sink:
        process = subprocess.Popen(
            [str(NODE), *command],
            env=environment | {MARK: mark},
            cwd=work,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=sink,
            text=True,
        )
    # Nobody reads from it for ever.
    limit = threading.Timer(RUN_SECONDS, process.kill)
    limit.start()
    try:
        yield process
    finally:
        limit.cancel()
        _end(process)
    assert left_behind(mark) == []


def _end(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.wait(STOP_SECONDS)
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            pipe.close()
