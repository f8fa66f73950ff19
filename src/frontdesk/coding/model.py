"""Defines permission requests and decisions, and the sessions of code editors."""

import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import TypedDict
from uuid import uuid4

# How long a person may take to answer; a tool that asks needs a longer limit.
ASK_SECONDS = 3600.0


class PermissionMode(StrEnum):
    """How much an agent may do without asking."""

    ASK = "ask"
    ACCEPT_EDITS = "accept-edits"
    AUTO = "auto"
    PLAN = "plan"


class OperationKind(StrEnum):
    """The kind of a tool's operation, with the protocol's names."""

    READ = "read"
    EDIT = "edit"
    DELETE = "delete"
    MOVE = "move"
    SEARCH = "search"
    EXECUTE = "execute"
    THINK = "think"
    FETCH = "fetch"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class FileLocation:
    """A file, and a line in it, counted from 1, where one is meant."""

    path: Path
    line: int | None = None


@dataclass(frozen=True, slots=True)
class FileDiff:
    """A change of a file; `before` is None for a new one."""

    path: Path
    before: str | None
    after: str


@dataclass(frozen=True, slots=True)
class TerminalOutput:
    """The terminal of the editor in which the command of a call runs."""

    terminal_id: str


ShownItem = FileDiff | FileLocation | TerminalOutput
# Shows something of a call that is under way, by its id.
ShowItem = Callable[[str, ShownItem], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class PermissionRequest:
    """An operation that a tool is about to do.

    `scope` is what a lasting answer would cover, such as `edit` or `run git status`, and `scope_text` says this to the
    person; with an empty scope it can be allowed or rejected only once. `harmless` is true where the tool itself says
    that it changes nothing. `warning` is shown before it is allowed always, and `defining_files` are the files that
    define what it does.

    `reason` says why the person is asked, where that is not plain. With `only_once`, no lasting answer and no mode can
    allow it.
    """

    call_id: str
    tool: str
    kind: OperationKind
    title: str
    locations: Sequence[FileLocation] = ()
    diffs: Sequence[FileDiff] = ()
    command: str | None = None
    scope: str = ""
    scope_text: str = ""
    harmless: bool = False
    warning: str = ""
    defining_files: Sequence[Path] = ()
    reason: str = ""
    only_once: bool = False


class PermissionAnswer(StrEnum):
    """A person's answer; `CANCELLED` where they stopped the turn instead."""

    ALLOW_ONCE = "allow_once"
    ALLOW_ALWAYS = "allow_always"
    REJECT_ONCE = "reject_once"
    REJECT_ALWAYS = "reject_always"
    CANCELLED = "cancelled"

    @property
    def allows(self) -> bool:
        return self in (PermissionAnswer.ALLOW_ONCE, PermissionAnswer.ALLOW_ALWAYS)

    @property
    def lasts(self) -> bool:
        return self in (PermissionAnswer.ALLOW_ALWAYS, PermissionAnswer.REJECT_ALWAYS)


@dataclass(frozen=True, slots=True)
class PermissionDecision:
    """Whether an operation is allowed; the reason for a refusal is in words for the model."""

    allowed: bool
    reason: str = ""


@dataclass(frozen=True, slots=True)
class StoredPermission:
    """A lasting answer for everything in a scope."""

    scope: str
    allowed: bool
    created_at: datetime


# Asks the person about an operation.
AskPerson = Callable[[PermissionRequest], Awaitable[PermissionAnswer]]
# Decides whether an operation is allowed; may take as long as a person takes to answer.
AskPermission = Callable[[PermissionRequest], Awaitable[PermissionDecision]]

SESSION_ID = re.compile(r"sess_[0-9a-f]{32}")


@dataclass(frozen=True, slots=True)
class CodingSession:
    """One conversation of an agent with a person, in a folder and perhaps some others.

    `model` and `effort` are None for the agent's own. `cost_usd` is None while no price is known.
    """

    id: str
    agent_id: str
    conversation_id: str
    cwd: Path
    created_at: datetime
    updated_at: datetime
    user_id: str | None = None
    directories: tuple[Path, ...] = ()
    title: str = ""
    mode: PermissionMode = PermissionMode.ASK
    model: str | None = None
    effort: str | None = None
    asks_memory: bool = False
    cost_usd: float | None = None


class CodingSessionChanges(TypedDict, total=False):
    """The fields of a session that can change."""

    agent_id: str
    conversation_id: str
    cwd: Path
    directories: tuple[Path, ...]
    title: str
    mode: PermissionMode
    model: str | None
    effort: str | None
    asks_memory: bool
    cost_usd: float | None


@dataclass(frozen=True, slots=True)
class CodingSessionPage:
    """Some sessions, the newest first, and a cursor where there are more."""

    sessions: Sequence[CodingSession]
    next_cursor: str | None = None


def new_session_id() -> str:
    return f"sess_{uuid4().hex}"
