"""The words of a reply: a turn's events, with what a reader who came late needs folded in."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache
from typing import Any, get_args

from pydantic import TypeAdapter

from frontdesk.loop.events import (
    ApprovalRequest,
    Compacted,
    Done,
    Event,
    Failed,
    MemoryEdit,
    Plan,
    Started,
    StopReason,
    TextChunk,
    ThoughtChunk,
    ToolArguments,
    ToolCall,
    ToolReturn,
    ToolStatus,
    Usage,
    UserMedia,
    UserText,
)


@dataclass(frozen=True, slots=True)
class Returned:
    """What a tool call came to, with what it was called with."""

    call_id: str
    name: str
    arguments: Mapping[str, Any]
    text: str
    status: ToolStatus


@dataclass(frozen=True, slots=True)
class Ended:
    """The last word: how the reply ended, all of its text, and what went wrong if something did."""

    stop: StopReason
    text: str
    failure: str | None = None


Word = Started | TextChunk | ThoughtChunk | ToolCall | Returned | ApprovalRequest | MemoryEdit | Plan | Usage | Ended


@dataclass(slots=True)
class Ear:
    """Hears a turn's events and says the words of the reply; `calls` are those made before the turn began."""

    calls: dict[str, Mapping[str, Any]] = field(default_factory=dict[str, Mapping[str, Any]])
    _said: list[str] = field(default_factory=list[str])
    _parted: bool = False
    _failure: str | None = None

    def hear(self, event: Event) -> Word | None:
        match event:
            case TextChunk(text) if text:
                if self._parted and self._said:
                    self._said.append(gap(self._said[-1], text))
                self._said.append(text)
                self._parted = False
            case ToolCall(call_id, _, arguments):
                self.calls[call_id] = arguments
                self._parted = True
            case ToolReturn(call_id, name, text, status):
                self._parted = True
                return Returned(call_id, name, self.calls.get(call_id, {}), text, status)
            case Failed(_, message):
                self._failure = message
            case Done(stop):
                return self.end(stop, self._failure)
            case _:
                pass
        return None if isinstance(event, UserText | UserMedia | ToolArguments | Compacted | Failed) else event

    def end(self, stop: StopReason, failure: str | None = None) -> Ended:
        return Ended(stop, "".join(self._said), failure)


def gap(before: str, after: str) -> str:
    """What stands between two texts that a tool call parts: a blank line, unless they keep apart by themselves."""
    return "" if not before or before[-1].isspace() or after.startswith("\n") else "\n\n"


def dump(words: Sequence[Word]) -> str:
    return json.dumps([{"word": type(word).__name__, **asdict(word)} for word in words])


def load(text: str) -> Sequence[Word]:
    return [_kind(fields.pop("word")).validate_python(fields) for fields in json.loads(text)]


@cache
def _kind(name: str) -> TypeAdapter[Word]:
    return TypeAdapter(next(kind for kind in get_args(Word) if kind.__name__ == name))
