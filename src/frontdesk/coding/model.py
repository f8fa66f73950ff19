"""Defines permission requests and decisions, and the sessions of code editors."""

import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import TypedDict
from uuid import uuid4

# How long a person may take to answer; whoever waits for leave has to have more.
ASK_SECONDS = 3600.0


class PermissionMode(StrEnum):
    """How much an agent may do unasked."""

    ASK = "ask"
    ACCEPT_EDITS = "accept-edits"
    AUTO = "auto"
    PLAN = "plan"


class OperationKind(StrEnum):
    """What sort of thing a tool does, in the protocol's own words."""

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
    """A file, and a line in it counted from 1, where one is meant."""

    path: Path
    line: int | None = None


@dataclass(frozen=True, slots=True)
class FileDiff:
    """What is to become of a file; `before` None where it is new."""

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
    """Something a tool is about to do.

    `scope` is what a lasting word would cover, such as `edit` or `run git status`, and `covers` says so to the person;
    an empty scope can be allowed or refused only once. `harmless`: it changes nothing, by its own word. `warns` is what
    else there is to know before it is allowed for good, and `obeys` are the files that say what it does.

    `why` says why this is asked, where it is not plain. `each_time`: nobody can allow it for good, by no mode either.
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
    """What a person answers; `CANCELLED` where they stopped the turn instead."""

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
    """Whether the action is allowed, and if not, why, in words for the model."""

    allowed: bool
    reason: str = ""


@dataclass(frozen=True, slots=True)
class StoredPermission:
    """What was said for good of everything in a scope."""

    scope: str
    allowed: bool
    created_at: datetime


# Puts a permission request before the person.
AskPerson = Callable[[PermissionRequest], Awaitable[PermissionAnswer]]
# Whether the action is allowed; may take as long as a person does.
AskPermission = Callable[[PermissionRequest], Awaitable[PermissionDecision]]

SESSION_ID = re.compile(r"sess_[0-9a-f]{32}")


@dataclass(frozen=True, slots=True)
class CodingSession:
    """One conversation of an agent with a person, in a folder and perhaps some others.

    `model` and `effort` are None where the agent's own are meant. `cost_usd` is None until a price was known.
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
    """What may change of a session."""

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
    """Some sessions, the newest first, and what to ask for the next ones with, where there are more."""

    sessions: Sequence[CodingSession]
    next_cursor: str | None = None


def new_session_id() -> str:
    return f"sess_{uuid4().hex}"
