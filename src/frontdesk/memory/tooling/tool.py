"""A tool of the memory room as it is declared once, for every door that offers it."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ConfigDict

from frontdesk.memory.asked.common import Asked
from frontdesk.memory.scope import Scope
from frontdesk.memory.service import MemoryRoom


class Answer(BaseModel):
    """The base of every structured answer: it holds records whole, and the words beside it say what matters."""

    model_config = ConfigDict(frozen=True)


@dataclass(frozen=True, slots=True)
class Told:
    """What a tool came to: words for a model, and the same as data."""

    text: str
    answer: Answer


Run = Callable[[MemoryRoom, Scope, Any], Awaitable[Told]]


@dataclass(frozen=True, slots=True)
class MemoryTool:
    """One tool: what it is called, what it takes and gives, and what it does with one person's records.

    `run` is given the room, whose records they are, and the arguments.
    """

    name: str
    title: str
    description: str
    arguments: type[Asked]
    answer: type[Answer]
    run: Run
    read_only: bool = True
    destructive: bool | None = None


# What a client may tell its user of a tool that writes: it adds something, or it changes what was there.
MAKES = {"read_only": False, "destructive": False}
CHANGES = {"read_only": False, "destructive": True}
