"""A conversation as one reads it."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from frontdesk.agents.host import Said
from frontdesk.loop.events import (
    ApprovalRequest,
    Compacted,
    Done,
    Event,
    MemoryEdit,
    TextChunk,
    ThoughtChunk,
    ToolCall,
    ToolReturn,
    UserMedia,
    UserText,
)
from frontdesk.surfaces.web.marks import short
from frontdesk.surfaces.web.pages.turns.senders import SOMEBODY, Sender
from frontdesk.surfaces.web.pages.turns.words import ENDINGS


@dataclass(frozen=True, slots=True)
class Line:
    """One thing of a conversation; what has an `aside` is folded away behind it."""

    at: datetime
    who: str
    text: str
    aside: str = ""
    sender: Sender = field(default=SOMEBODY, kw_only=True)


def lines(said: Sequence[Said], senders: Mapping[str, Sender]) -> Sequence[Line]:
    """What was said as one reads it; `senders` says who sent which turn, as far as that is known."""
    found = [(one, _line(one.at, one.event)) for one in said]
    return [
        replace(line, sender=senders.get(one.turn_id, SOMEBODY).of(line.text))
        for one, line in found
        if line is not None
    ]


def _line(at: datetime, event: Event) -> Line | None:
    told = _aloud(event) or _aside(event)
    return Line(at, *told) if told is not None else None


def _aloud(event: Event) -> tuple[str, str] | None:
    """(who said it, what)."""
    match event:
        case UserText(text):
            return "person", text
        case UserMedia(mime):
            return "person", f"[{mime}]"
        case TextChunk(text):
            return "agent", text
        case Done(stop) if stop.is_broken:
            return "turn", f"The turn ended early: {ENDINGS[stop]}"
        case _:
            return None


def _aside(event: Event) -> tuple[str, str, str] | None:
    """(who did it, all of it, what it is)."""
    match event:
        case ThoughtChunk(text):
            found = ("agent", text, "thought")
        case ToolCall(name=name, arguments=arguments):
            found = ("agent", written(arguments), f"calls {short(name, 80)}")
        case ToolReturn(name=name, text=text, status=status):
            found = ("tool", text, f"{short(name, 80)} answers: {status}")
        case MemoryEdit(label=label, after=after):
            found = ("agent", after, f"remembers in {short(label, 80)}")
        case Compacted(summary, by_model):
            how = "summed up what was said before" if by_model else "shortened what was said before, without a summary"
            found = ("agent", summary, how)
        case ApprovalRequest(name=name, arguments=arguments):
            found = ("agent", written(arguments), f"waits for a word on {short(name, 80)}")
        case _:
            found = None
    return found


def written(arguments: Mapping[str, Any]) -> str:
    """A call's arguments to read."""
    return json.dumps(arguments, indent=2, ensure_ascii=False, default=str)
