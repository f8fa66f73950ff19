"""A turn's events as the page shows them: a call with what came of it, memory as what changed in it."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import Any, cast

from frontdesk.agents.host import Said
from frontdesk.agents.retelling import Account
from frontdesk.loop.events import (
    ApprovalRequest,
    Compacted,
    Event,
    Failed,
    MemoryEdit,
    Plan,
    PlanStep,
    TextChunk,
    ThoughtChunk,
    ToolCall,
    ToolReturn,
    UserMedia,
    UserText,
)
from frontdesk.surfaces.web.pages.turns.changes import Line, changes
from frontdesk.surfaces.web.pages.turns.senders import SOMEBODY, Sender

LONGEST_RAW = 20_000
ONE_LINE = 90


@dataclass(slots=True)
class Item:
    """One thing on the page. Only a call has arguments and a result; only a memory edit has lines.

    `page` is that of whoever the title begins with.
    """

    kind: str
    id: str
    at: datetime
    title: str
    text: str = ""
    arguments: str | None = None
    status: str = ""
    answered: bool = False
    lines: Sequence[Line] = ()
    steps: Sequence[PlanStep] = ()
    page: str = ""


@dataclass(frozen=True, slots=True)
class Waiting:
    """A call that needs somebody's word, with its arguments as one reads them."""

    call_id: str
    name: str
    arguments: str


def waiting_in(account: Account) -> Sequence[Waiting]:
    return [Waiting(one.call_id, one.name, pretty(one.arguments)) for one in account.waiting]


def items_of(said: Sequence[Said], sender: Sender = SOMEBODY) -> Sequence[Item]:
    """Everything in order; what a tool returned stands with its call, and what was sent with who sent it."""
    items: list[Item] = []
    calls: dict[str, Item] = {}
    for one in said:
        if isinstance(one.event, ToolReturn) and one.event.call_id in calls:
            _returned(calls[one.event.call_id], one.event)
        elif (item := _sent(one, one.event, sender) or _item(one, one.event)) is not None:
            items.append(item)
            if isinstance(one.event, ToolCall):
                calls[one.event.call_id] = item
            elif isinstance(one.event, ApprovalRequest) and one.event.call_id in calls:
                # The call stands there already, and the form above says that it waits.
                calls[one.event.call_id].status = "waiting"
                items.pop()
    return items


def raw_of(account: Account) -> Mapping[str, Any]:
    """All that is kept, as data; only what is very long is cut."""
    return {
        "turn": _plain(asdict(account.turn)),
        "events": [
            {"id": one.id, "at": one.at, "event": type(one.event).__name__, **_fields(one.event)}
            for one in account.said
        ],
    }


def _sent(said: Said, event: Event, sender: Sender) -> Item | None:
    match event:
        case UserText(text):
            who = sender.of(text)
            return Item("said", said.id, said.at, f"{who.name} said", text, page=who.page)
        case UserMedia(mime, data):
            who = sender.of("")
            return Item("said", said.id, said.at, f"{who.name} sent", f"{mime}, {len(data):,} bytes", page=who.page)
        case _:
            return None


def _item(said: Said, event: Event) -> Item | None:
    found = Item("", said.id, said.at, "")
    match event:
        case ToolCall(_, name, arguments) | ApprovalRequest(_, name, arguments):
            waits = "waiting" if isinstance(event, ApprovalRequest) else ""
            return replace(found, kind="call", title=name, arguments=pretty(arguments), status=waits)
        case ToolReturn(_, name, text, status):
            return replace(found, kind="call", title=name, text=text, status=str(status), answered=True)
        case MemoryEdit(label, before, after):
            return replace(found, kind="memory", title=f"Memory “{label}” changed", lines=changes(before, after))
        case Plan(steps):
            return replace(found, kind="plan", title="Plan", steps=steps)
        case _:
            words = _words(event)
    return None if words is None else replace(found, kind=words[0], title=words[1], text=words[2])


def _words(event: Event) -> tuple[str, str, str] | None:
    """The kind, the title and the text of what is nothing but words."""
    words = None
    match event:
        case ThoughtChunk(text):
            words = ("thought", "Thought", text)
        case TextChunk(text):
            words = ("text", "The agent said", text)
        case Compacted(summary, by_model):
            how = "Summed up what was said before" if by_model else "Shortened what was said before, without a summary"
            words = ("thought", how, summary)
        case Failed(trouble, message):
            words = ("failed", f"Failed: {trouble}", message)
        case _:
            pass
    return words


def _returned(call: Item, event: ToolReturn) -> None:
    call.text, call.status, call.answered = event.text, str(event.status), True


def pretty(arguments: Mapping[str, Any]) -> str:
    """Arguments as one reads them; nothing where there are none."""
    if not arguments:
        return ""
    flat = json.dumps(arguments, ensure_ascii=False, default=str)
    return flat if len(flat) <= ONE_LINE else json.dumps(arguments, indent=2, ensure_ascii=False, default=str)


def _fields(event: Event) -> Any:  # noqa: ANN401 - any data
    return _plain(asdict(event))


def _plain(value: Any) -> Any:  # noqa: ANN401 - any data
    match value:
        case bytes():
            return f"{len(value):,} bytes"
        case str() if len(value) > LONGEST_RAW:
            return f"{value[:LONGEST_RAW]}… ({len(value) - LONGEST_RAW:,} characters more)"
        case dict():
            return {name: _plain(one) for name, one in cast("dict[str, Any]", value).items()}
        case list() | tuple():
            return [_plain(one) for one in cast("list[Any]", value)]
        case _:
            return value
