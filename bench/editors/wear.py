"""What an agent leaves lying in its own process over a long day: memory, threads, descriptors, children."""

import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from bench.editors.overhead import READ
from bench.editors.ways import ThroughEditor, through_desk
from bench.processes import ROOT
from bench.turns import TEXT

RUN = '@@[{"tool": "run_command", "args": {"command": "true"}}, {"text": "Done"}]@@'
CROWD = 64
# Which prompts of a session do more than talk.
SELDOM = {1: READ, 2: RUN}
# An editor's own server in one of so many loads: to start one takes longer than all the rest.
SERVED = 20
SERVER = {
    "name": "bench",
    "command": sys.executable,
    "args": [str(ROOT / "tests" / "support" / "stdio_server.py")],
    "env": [],
}
# How long threads that nobody needs may stay, and what was closed may take to go.
REST_SECONDS = 30
LOOK_SECONDS = 0.5


@dataclass(frozen=True, slots=True)
class Stand:
    """What a process has at one moment."""

    resident: int
    threads: int
    descriptors: int
    children: int

    @classmethod
    def of(cls, pid: int) -> "Stand":
        process = psutil.Process(pid)
        children = process.children(recursive=True)
        return cls(process.memory_info().rss, process.num_threads(), process.num_fds(), len(children))

    def more_than(self, other: "Stand") -> int:
        """The most that there is more of anything but memory."""
        return max(
            self.threads - other.threads, self.descriptors - other.descriptors, self.children - other.children, 0
        )


@dataclass(frozen=True, slots=True)
class Wear:
    """Before and after so many prompts and loads, and the memory on the way."""

    prompts: int
    loads: int
    before: Stand
    after: Stand
    resident: Sequence[int]

    @property
    def grown_mb(self) -> float:
        return (self.after.resident - self.before.resident) / 1e6


@dataclass(slots=True)
class Day:
    """A person who opens a session, works in it, closes it, and looks at it again."""

    through: ThroughEditor
    each: int
    loaded: int = 0
    resident: list[int] = field(default_factory=list[int])

    def work(self, loads: int) -> None:
        for _ in range(loads):
            self._talk()
            self._load()
            self.resident.append(psutil.Process(self.through.editor.process.pid).memory_info().rss)

    def _talk(self) -> None:
        self.through.begin()
        session_id = self.through.session_id
        # Nobody is there to be asked.
        self.through.editor.ask("session/set_mode", sessionId=session_id, modeId="auto")
        for number in range(self.each):
            self.through.take(SELDOM.get(number, TEXT))

    def _load(self) -> None:
        editor, session_id = self.through.editor, self.through.session_id
        editor.ask("session/close", sessionId=session_id)
        servers = [SERVER] if self.loaded % SERVED == 0 else []
        editor.ask("session/load", sessionId=session_id, cwd=str(self.through.work), mcpServers=servers)
        if servers:
            # A prompt waits until they are there.
            self.through.take(TEXT)
            if not Stand.of(editor.process.pid).children:
                raise RuntimeError("the editor's server was not started")
        self.loaded += 1


def measure_wear(folder: Path, url: str, prompts: int, loads: int) -> Wear:
    """A tenth of it to warm up, then all of it."""
    with through_desk(folder, url, "wear") as through:
        day = Day(through, prompts // loads)
        day.work(max(SERVED, loads // 10))
        # Its connections to the database are opened as they are needed, up to a bound.
        through.editor.crowd("session/list", CROWD)
        before = _at_rest(through)
        day.resident.clear()
        day.work(loads)
        after = _at_rest(through, before)
    return Wear(prompts, loads, before, after, day.resident)


def _at_rest(through: ThroughEditor, before: Stand | None = None) -> Stand:
    """With one fresh session open and nothing to do; it may take its time to have no more than before."""
    through.begin()
    pid, until = through.editor.process.pid, time.monotonic() + REST_SECONDS
    time.sleep(LOOK_SECONDS)
    while (now := Stand.of(pid)).more_than(before or now) and time.monotonic() < until:
        time.sleep(LOOK_SECONDS)
    return now
