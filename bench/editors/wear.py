"""Measures what an agent leaves behind in its process after a long day: memory, threads, descriptors, children."""

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
# The prompts of a session that do more than talk.
SELDOM = {1: READ, 2: RUN}
# One of this many loads brings an editor's own server: its start takes longer than everything else.
SERVED = 20
SERVER = {
    "name": "bench",
    "command": sys.executable,
    "args": [str(ROOT / "tests" / "support" / "stdio_server.py")],
    "env": [],
}
# How long unused threads may stay, and how long closed things may take to disappear.
REST_SECONDS = 30
LOOK_SECONDS = 0.5


@dataclass(frozen=True, slots=True)
class Stand:
    """What a process holds at one moment."""

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
        """The largest increase of anything but memory."""
        return max(
            self.threads - other.threads, self.descriptors - other.descriptors, self.children - other.children, 0
        )


@dataclass(frozen=True, slots=True)
class Wear:
    """Before and after these prompts and loads, and the memory in between."""

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
    """A person who opens a session, works in it, closes it, and loads it again."""

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
        # There is nobody to ask.
        self.through.editor.ask("session/set_mode", sessionId=session_id, modeId="auto")
        for number in range(self.each):
            self.through.take(SELDOM.get(number, TEXT))

    def _load(self) -> None:
        editor, session_id = self.through.editor, self.through.session_id
        editor.ask("session/close", sessionId=session_id)
        servers = [SERVER] if self.loaded % SERVED == 0 else []
        editor.ask("session/load", sessionId=session_id, cwd=str(self.through.work), mcpServers=servers)
        if servers:
            # A prompt waits until they are available.
            self.through.take(TEXT)
            if not Stand.of(editor.process.pid).children:
                raise RuntimeError("the editor's server was not started")
        self.loaded += 1


def measure_wear(folder: Path, url: str, prompts: int, loads: int) -> Wear:
    """Run a tenth as a warm-up, then all of it."""
    with through_desk(folder, url, "wear") as through:
        day = Day(through, prompts // loads)
        day.work(max(SERVED, loads // 10))
        # The agent opens its database connections when it needs them, up to a limit.
        through.editor.crowd("session/list", CROWD)
        before = _at_rest(through)
        day.resident.clear()
        day.work(loads)
        after = _at_rest(through, before)
    return Wear(prompts, loads, before, after, day.resident)


def _at_rest(through: ThroughEditor, before: Stand | None = None) -> Stand:
    """With one fresh session open and nothing to do; the process gets time to return to its earlier state."""
    through.begin()
    pid, until = through.editor.process.pid, time.monotonic() + REST_SECONDS
    time.sleep(LOOK_SECONDS)
    while (now := Stand.of(pid)).more_than(before or now) and time.monotonic() < until:
        time.sleep(LOOK_SECONDS)
    return now
