"""What an agent is about to do, and what may be said to it."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from pathlib import Path

# How long a person may take to answer; whoever waits for leave has to have more.
ASK_SECONDS = 3600.0


class Mode(StrEnum):
    """How much an agent may do unasked."""

    ASK = "ask"
    ACCEPT_EDITS = "accept-edits"
    AUTO = "auto"
    PLAN = "plan"


class Kind(StrEnum):
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
class Place:
    """A file, and a line in it counted from 1, where one is meant."""

    path: Path
    line: int | None = None


@dataclass(frozen=True, slots=True)
class Diff:
    """What is to become of a file; `before` None where it is new."""

    path: Path
    before: str | None
    after: str


@dataclass(frozen=True, slots=True)
class Deed:
    """Something a tool is about to do.

    `scope` is what a lasting word would cover, such as `edit` or `run git status`, and `covers` says so to the person;
    an empty scope can be allowed or refused only once. `harmless`: it changes nothing, by its own word. `warns` is what
    else there is to know before it is allowed for good, and `obeys` are the files that say what it does.

    `why` says why this is asked, where it is not plain. `each_time`: nobody can allow it for good, by no mode either.
    """

    call_id: str
    tool: str
    kind: Kind
    title: str
    places: Sequence[Place] = ()
    diffs: Sequence[Diff] = ()
    command: str | None = None
    scope: str = ""
    covers: str = ""
    harmless: bool = False
    warns: str = ""
    obeys: Sequence[Path] = ()
    why: str = ""
    each_time: bool = False


class Choice(StrEnum):
    """What a person answers; `CANCELLED` where they stopped the turn instead."""

    ALLOW_ONCE = "allow_once"
    ALLOW_ALWAYS = "allow_always"
    REJECT_ONCE = "reject_once"
    REJECT_ALWAYS = "reject_always"
    CANCELLED = "cancelled"

    @property
    def allows(self) -> bool:
        return self in (Choice.ALLOW_ONCE, Choice.ALLOW_ALWAYS)

    @property
    def lasts(self) -> bool:
        return self in (Choice.ALLOW_ALWAYS, Choice.REJECT_ALWAYS)


@dataclass(frozen=True, slots=True)
class Word:
    """Whether a deed may be done, and if not, why, in words for the model."""

    allowed: bool
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Remembered:
    """What was said for good of everything in a scope."""

    scope: str
    allowed: bool
    created_at: datetime


# Puts a deed before the person.
Ask = Callable[[Deed], Awaitable[Choice]]
# Whether a deed may be done; may take as long as a person does.
Leave = Callable[[Deed], Awaitable[Word]]
