"""A manifest as it was written: servers, their tools, and how a stand-in answers for each."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

ANYTHING: Mapping[str, Any] = {"type": "object"}
# The state that a server is in before anything moved it.
FIRST_STATE = "start"


class Level(StrEnum):
    """An ERROR keeps something from working; a WARNING is likely a mistake."""

    ERROR = "error"
    WARNING = "warning"


@dataclass(frozen=True, slots=True)
class Problem:
    """Something that is wrong with a manifest: where, what, and what to do about it."""

    level: Level
    where: str
    what: str

    def __str__(self) -> str:
        return f"{self.level}: {self.where}: {self.what}"


@dataclass(frozen=True, slots=True)
class Answer:
    """What a tool answers in one state of its server, and the state that this leads to; None stays where it is."""

    template: str
    state: str | None = None
    next_state: str | None = None
    is_error: bool = False


@dataclass(frozen=True, slots=True)
class DeclaredTool:
    """A tool and how a stand-in answers for it.

    Of `answers` the first counts that names the present state, or none. `status_code` other than 200 fails the HTTP
    request; `error_rate` is the share of calls that end in an error of the tool.
    """

    name: str
    description: str = ""
    input_schema: Mapping[str, Any] = field(default_factory=lambda: ANYTHING)
    answers: Sequence[Answer] = ()
    delay_ms: int = 0
    error_rate: float = 0.0
    status_code: int = 200
    enabled: bool = True


@dataclass(frozen=True, slots=True)
class DeclaredServer:
    """A server of a manifest. `entry` is what discovery gives out for it, as written; `tools` None: nothing is said."""

    name: str
    unique_name: str
    entry: Mapping[str, Any]
    url: str | None = None
    audience: str | None = None
    scope: str | None = None
    tools: Sequence[DeclaredTool] | None = None


@dataclass(frozen=True, slots=True)
class Declared:
    """A manifest that was read, without what makes no sense in it; `problems` says what that was.

    `files` are those that it was read from, itself the first: whoever follows changes looks at these.
    """

    path: Path
    servers: Sequence[DeclaredServer] = ()
    problems: Sequence[Problem] = ()
    files: Sequence[Path] = ()

    @property
    def sound(self) -> bool:
        return not any(problem.level is Level.ERROR for problem in self.problems)
