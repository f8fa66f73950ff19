"""Defines a declared manifest, its servers and tools, and collects its problems."""

import difflib
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

from frontdesk.text import one_line

ANY_OBJECT_SCHEMA: Mapping[str, Any] = {"type": "object"}
# The state of a server before any call has changed it.
FIRST_STATE = "start"


class ProblemLevel(StrEnum):
    """An ERROR keeps something from working; a WARNING is likely a mistake."""

    ERROR = "error"
    WARNING = "warning"


@dataclass(frozen=True, slots=True)
class ManifestProblem:
    """A problem in a manifest: where, what, and what to do about it."""

    level: ProblemLevel
    where: str
    what: str

    def __str__(self) -> str:
        return f"{self.level}: {self.where}: {self.what}"


@dataclass(frozen=True, slots=True)
class MockAnswer:
    """A tool's answer in one state of its server, and the state after it; None keeps the state."""

    template: str
    state: str | None = None
    next_state: str | None = None
    is_error: bool = False


@dataclass(frozen=True, slots=True)
class DeclaredTool:
    """A tool and its answers on the local platform.

    The first of `answers` counts that names the present state, or no state. A `status_code` other than 200 fails the
    HTTP request; `error_rate` is the share of calls that end in an error of the tool.
    """

    name: str
    description: str = ""
    input_schema: Mapping[str, Any] = field(default_factory=lambda: ANY_OBJECT_SCHEMA)
    answers: Sequence[MockAnswer] = ()
    delay_ms: int = 0
    error_rate: float = 0.0
    status_code: int = 200
    enabled: bool = True


@dataclass(frozen=True, slots=True)
class DeclaredServer:
    """A server of a manifest. `entry` is what discovery returns, as written; `tools` is None if none are declared."""

    name: str
    unique_name: str
    entry: Mapping[str, Any]
    url: str | None = None
    audience: str | None = None
    scope: str | None = None
    tools: Sequence[DeclaredTool] | None = None


@dataclass(frozen=True, slots=True)
class DeclaredManifest:
    """A manifest after reading, without its invalid parts; `problems` describes those.

    `files` are the files that were read, the manifest first; a watcher of changes looks at these.
    """

    path: Path
    servers: Sequence[DeclaredServer] = ()
    problems: Sequence[ManifestProblem] = ()
    files: Sequence[Path] = ()

    @property
    def is_valid(self) -> bool:
        return not any(problem.level is ProblemLevel.ERROR for problem in self.problems)


# Each comparison takes a while, and a guess among more names is of no use.
MOST_CANDIDATES = 500
LONGEST_COMPARED = 128
SHOWN_LENGTH = 60
SHORTEST_PART = 4
NOT_A_LETTER = re.compile(r"[\W_]+")


def quote_name(text: str) -> str:
    """A text from a file, quoted for use in a sentence."""
    return f"'{one_line(text, SHOWN_LENGTH)}'"


def nearest_name(name: str, known: Iterable[str]) -> str | None:
    """The most similar name, else the shortest name that contains the given one or is contained in it.

    So `sendMail` also finds `mcp_Mail_graph_send_mail`.
    """
    spelt = {_letters_of(one): one for one, _ in zip(known, range(MOST_CANDIDATES), strict=False)}
    wanted = _letters_of(name)
    near = difflib.get_close_matches(wanted, spelt, 1) or sorted(
        _containing(wanted, spelt), key=lambda one: (len(one), one)
    )
    return spelt[near[0]] if near else None


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """`nearest_name` as the end of a sentence; empty where no name is near."""
    near = nearest_name(name, known)
    return f"; did you mean {quote_name(near)}?" if near else ""


def _letters_of(name: str) -> str:
    return NOT_A_LETTER.sub("", name[:LONGEST_COMPARED]).lower()


def _containing(wanted: str, spelt: Iterable[str]) -> list[str]:
    return [one for one in spelt if min(len(one), len(wanted)) >= SHORTEST_PART and (wanted in one or one in wanted)]


# More than anyone reads; a file of megabytes may have one problem on each line.
MOST_PROBLEMS = 1000
# Each guess may take a tenth of a second where there are many names.
MOST_GUESSES = 50


class ProblemList:
    """Keeps the first problems up to a limit, and counts the rest."""

    def __init__(self) -> None:
        self._kept: list[ManifestProblem] = []
        self._beyond = 0
        self._worst = ProblemLevel.WARNING
        self._guesses = 0

    def error(self, where: str, what: str) -> None:
        self.add(ProblemLevel.ERROR, where, what)

    def warn(self, where: str, what: str) -> None:
        self.add(ProblemLevel.WARNING, where, what)

    def add(self, level: ProblemLevel, where: str, what: str) -> None:
        if len(self._kept) < MOST_PROBLEMS:
            self._kept.append(ManifestProblem(level, where, what))
            return
        self._beyond += 1
        if level is ProblemLevel.ERROR:
            self._worst = level

    def did_you_mean(self, name: str, known: Collection[str]) -> str:
        """A suggestion as the end of a sentence; empty where no name is near, or the limit of guesses is reached."""
        self._guesses += 1
        return did_you_mean(name, known) if self._guesses <= MOST_GUESSES else ""

    @property
    def problems(self) -> tuple[ManifestProblem, ...]:
        if not self._beyond:
            return tuple(self._kept)
        rest = ManifestProblem(self._worst, "and so on", f"{self._beyond} more of this kind; mend these first")
        return (*self._kept, rest)
