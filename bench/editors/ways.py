"""The ways to take a turn: without an editor, and through an editor, with our agent or with the SDK's."""

import json
import sys
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Protocol

from bench.editors.editor import Editor, Taken, initialize, started
from bench.editors.places import DESK, ECHO, PLAIN, settings_of, work_in
from bench.schedule.programs import Program
from bench.schedule.programs import started as started_program

# What an agent still does after its answer must not slow down the next agent.
REST_SECONDS = 0.01


class Way(StrEnum):
    """What takes the turn."""

    DIRECT = "host, called directly"
    EDITOR = "frontdesk acp"
    SDK = "the SDK's echo agent"
    PLAIN = "the same on our own wire"


class Taking(Protocol):
    """Takes turns, in one conversation until the next one begins."""

    @property
    def pid(self) -> int: ...

    def begin(self) -> None: ...

    def take(self, words: str) -> Taken: ...


@dataclass(frozen=True, slots=True)
class Directly:
    """The host in a process of its own, which prints its times."""

    program: Program

    @property
    def pid(self) -> int:
        return self.program.process.pid

    def begin(self) -> None:
        self.program.tell("")
        self.program.hear()

    def take(self, words: str) -> Taken:
        self.program.tell(words)
        return Taken(**json.loads(self.program.hear()))


@dataclass(slots=True)
class ThroughEditor:
    """An agent on pipes; the editor measures the times."""

    editor: Editor
    work: Path
    closes: bool = True
    session_id: str = ""

    @property
    def pid(self) -> int:
        return self.editor.process.pid

    def begin(self) -> None:
        if self.session_id and self.closes:
            self.editor.ask("session/close", sessionId=self.session_id)
        self.session_id = self.editor.ask("session/new", cwd=str(self.work), mcpServers=[])["sessionId"]

    def take(self, words: str) -> Taken:
        prompt = [{"type": "text", "text": words}]
        answer, taken = self.editor.timed("session/prompt", sessionId=self.session_id, prompt=prompt)
        if answer["stopReason"] != "end_turn":
            raise RuntimeError(f"a turn ended otherwise: {answer}")
        return taken


def in_turns(ways: Mapping[Way, Taking], number: int) -> Sequence[Way]:
    """Each way goes first equally often."""
    return list(ways)[:: 1 if number % 2 else -1]


@contextmanager
def directly(folder: Path, url: str) -> Generator[Directly]:
    arguments = [str(folder / "direct" / "data"), str(work_in(folder / "direct")), url]
    with started_program("direct", [sys.executable, "-m", "bench.editors.direct", *arguments], folder) as program:
        program.hear()
        yield Directly(program)


@contextmanager
def through_desk(folder: Path, url: str, name: str = "desk") -> Generator[ThroughEditor]:
    work = work_in(folder / name)
    with _through(name, DESK, folder, settings_of(folder / name / "data", url)) as editor:
        yield ThroughEditor(editor, work)


@contextmanager
def through_echo(way: Way, folder: Path) -> Generator[ThroughEditor]:
    """An agent with nothing behind it; it has no method that closes a session."""
    with _through(way.name, ECHO if way is Way.SDK else PLAIN, folder, {}) as editor:
        yield ThroughEditor(editor, folder, closes=False)


@contextmanager
def _through(name: str, command: tuple[str, ...], folder: Path, settings: Mapping[str, str]) -> Generator[Editor]:
    with started(name, command, folder, settings) as editor:
        initialize(editor)
        yield editor
