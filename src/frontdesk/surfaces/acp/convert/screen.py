"""What an editor sees of a turn, as it goes: events in, updates out."""

import json
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import uuid4

import anyio

from frontdesk.loop.events import (
    ApprovalRequest,
    Compacted,
    Done,
    Event,
    Failed,
    MemoryEdit,
    Plan,
    Started,
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
from frontdesk.surfaces.acp.convert import tools, updates
from frontdesk.surfaces.acp.convert.calls import Call, Calls
from frontdesk.surfaces.acp.convert.content import said_of
from frontdesk.surfaces.acp.convert.updates import Status
from frontdesk.surfaces.acp.wire.model import Json
from frontdesk.workspace.coding.model import Shown
from frontdesk.workspace.permissions.model import Diff, Kind, Place
from frontdesk.workspace.roots import Roots

SEEN_SECONDS = 5.0
TEXT_CHARACTERS = 20_000
RAW_CHARACTERS = 50_000
# What these answer is code more often than Markdown.
CODE = frozenset({Kind.EXECUTE, Kind.READ})
CHUNKS = {TextChunk: updates.agent_chunk, ThoughtChunk: updates.thought_chunk}


@dataclass(slots=True)
class Screen:
    """Shows the turns that answer one prompt, or a whole past; what is told to it twice has the same ids.

    `mirror` says which file shows a memory block. `cost_usd` is what the session has cost before, and `compaction`
    whether the editor wants to know of one. `waiting` are the calls, under the ids they are shown with, that waited
    before. While `replaying`, what a call changed is read from its arguments, since no tool runs to show it.
    """

    send: Callable[[Json], Awaitable[None]]
    roots: Roots
    mirror: Callable[[str], Path]
    cost_usd: float | None = None
    compaction: bool = False
    waiting: Mapping[str, str] = field(default_factory=dict[str, str])
    replaying: bool = False
    patience: float = SEEN_SECONDS
    turn_id: str = field(default_factory=lambda: uuid4().hex)
    _calls: Calls = field(init=False)
    _counts: Counter[str] = field(default_factory=Counter[str])
    _speaker: type[TextChunk | ThoughtChunk | UserText] | None = None
    _message_id: str = ""
    _has_text: bool = False
    _spent: float | None = None
    _closed: bool = False
    # One update at a time: tools show things while the turn goes on.
    _line: anyio.Lock = field(default_factory=anyio.Lock)

    def __post_init__(self) -> None:
        self._calls = Calls(self.waiting)

    async def show(self, event: Event) -> None:
        """Show an event, where there is anything to be seen; nothing once closed."""
        async with self._line:
            if not self._closed:
                await self._show(event)

    async def show_part(self, call_id: str, part: Shown) -> None:
        """Show something of a call that is under way."""
        await self.seen(call_id)
        async with self._line:
            call = self._calls.reserve(self.turn_id, call_id)
            call.put(part)
            if call.is_open and not self._closed:
                changed = {"locations": call.locations()} if isinstance(part, Place) else {"content": call.content()}
                await self.send(updates.tool_call_update(call.sent_id, **changed))

    async def seen(self, call_id: str) -> None:
        """Wait until the editor has been shown this call, but not for long."""
        with anyio.move_on_after(self.patience):
            await self._calls.reserve(self.turn_id, call_id).shown.wait()

    def sent_id(self, call_id: str) -> str:
        """The id under which the editor knows a call, or will."""
        return self._calls.reserve(self.turn_id, call_id).sent_id

    def begin(self, turn_id: str) -> None:
        """What follows belongs to this turn."""
        if turn_id != self.turn_id:
            self.cost_usd, self._spent = self._cost(), None
            self.turn_id, self._speaker = turn_id, None

    async def give_up(self, reason: str, *, waiting: bool = True) -> None:
        """End every call under way as failed; those that wait for somebody's word only where told so."""
        async with self._line:
            for call in list(self._calls.open()):
                if waiting or not call.waits:
                    await self._end(call, "failed", reason, [updates.content(updates.text(reason))])

    async def close(self, reason: str = "cancelled") -> None:
        """Leave no call open, and show nothing any more."""
        self._closed = True
        await self.give_up(reason)

    def held(self) -> Mapping[str, str]:
        """The calls that wait for somebody's word, to be handed to the screen that goes on with them."""
        return self._calls.waiting()

    async def _show(self, event: Event) -> None:  # noqa: C901 - a line for each event
        match event:
            case Started(turn_id):
                self._start(turn_id)
            case TextChunk(text) | ThoughtChunk(text):
                await self._say(type(event), text)
            case UserText() | UserMedia():
                await self._hear(event)
            case ToolArguments(call_id, name):
                await self._announce(call_id, name)
            case ToolCall(call_id, name, arguments):
                await self._call(self._calls.take(self.turn_id, call_id), name, arguments, "in_progress")
            case ApprovalRequest():
                await self._ask(event)
            case ToolReturn():
                await self._return(event)
            case MemoryEdit():
                await self._remember(event)
            case Plan(steps):
                await self.send(updates.plan(steps))
            case Usage():
                await self._count(event)
            case Compacted(summary):
                await self._compact(summary)
            case Failed() | Done():
                pass

    def _start(self, turn_id: str) -> None:
        self.begin(turn_id)
        # The editor has the words that began the turn; a turn that goes on after somebody's word began with none.
        if not self.replaying and not self._calls.waiting():
            self._counts[f"{turn_id}-user-"] += 1

    async def _say(self, kind: type[TextChunk | ThoughtChunk], text: str) -> None:
        if not text:
            return
        if self._speaker is not kind:
            self._speaker, self._message_id = kind, self._next(f"{self.turn_id}-")
        await self.send(CHUNKS[kind](self._message_id, updates.text(text)))

    async def _hear(self, event: UserText | UserMedia) -> None:
        """What was said, and the pictures that came with it, are one message."""
        is_text = isinstance(event, UserText)
        if self._speaker is not UserText or (is_text and self._has_text):
            self._speaker, self._message_id = UserText, self._next(f"{self.turn_id}-user-")
            self._has_text = False
        self._has_text = self._has_text or is_text
        block = updates.text(said_of(event.text)) if is_text else updates.media(event.mime, event.data)
        await self.send(updates.user_chunk(self._message_id, block))

    async def _announce(self, call_id: str, name: str) -> None:
        """Show a call while its arguments are being written, once."""
        self._speaker = None
        call = self._calls.take(self.turn_id, call_id)
        if call.status is None and name:
            await self._call(call, name, None, "pending")

    async def _ask(self, request: ApprovalRequest) -> None:
        call = self._calls.take(self.turn_id, request.call_id)
        await self._call(call, request.name, request.arguments, "pending")
        call.waits = True

    async def _call(self, call: Call, name: str, arguments: Mapping[str, Any] | None, status: Status) -> None:
        self._speaker = None
        call.name, call.arguments, call.waits = name, arguments or {}, False
        call.locate(tools.places(name, call.arguments, self.roots))
        known = {"name": name} if name else {}
        fields: dict[str, Any] = {**known, "kind": tools.kind(name).value, "status": status}
        if arguments is not None:
            fields |= {"locations": call.locations(), "rawInput": _raw(arguments)}
        if parts := call.content():
            fields["content"] = parts
        title = tools.title(name, call.arguments, self.roots) if arguments is not None else tools.bounded(name)
        await self._put(call, status, {"title": title, **fields})

    async def _return(self, event: ToolReturn) -> None:
        self._speaker = None
        call = self._calls.reserve(self.turn_id, event.call_id)
        if call.has_ended:
            return
        worked = event.status is ToolStatus.OK
        if call.status is None:
            call.name = event.name
        if self.replaying and worked and (change := tools.change(call.name, call.arguments, self.roots)) is not None:
            call.put(change)
        # What a command printed stands in its terminal already.
        text = "" if worked and call.terminals else _shortened(event.text, TEXT_CHARACTERS)
        told = tools.fenced(text) if tools.kind(call.name) in CODE else text
        more = [updates.content(updates.text(told))] if text.strip() else []
        await self._end(call, "completed" if worked else "failed", event.text, more)

    async def _end(self, call: Call, status: Status, output: str, more: list[Json]) -> None:
        fields = {"status": status, "content": call.content(*more), "rawOutput": _shortened(output, RAW_CHARACTERS)}
        if call.status is None:
            kind = tools.kind(call.name).value
            fields |= {"title": tools.title(call.name, {}, self.roots), "kind": kind}
        await self._put(call, status, fields)

    async def _put(self, call: Call, status: Status, fields: Mapping[str, Any]) -> None:
        """Send a call whole where the editor does not have it, and what is new of it where it has."""
        make = updates.tool_call if call.status is None else updates.tool_call_update
        # Cut off here, it may be there and may not have ended: closing then ends it.
        call.status = call.status or "pending"
        await self.send(make(call.sent_id, **fields))
        call.status = status
        call.shown.set()

    async def _remember(self, edit: MemoryEdit) -> None:
        path = self.mirror(edit.label)
        call_id = self._calls.unused(self._next(f"{self.turn_id}-memory-"))
        shown = updates.tool_call(
            call_id,
            tools.bounded(f"Updated memory: {edit.label}"),
            kind=Kind.THINK.value,
            status="completed",
            content=[updates.diff(Diff(path, edit.before, edit.after))],
            locations=[updates.location(Place(path))],
            _meta={"frontdesk": {"memory": f"memory://{edit.label}"}},
        )
        await self.send(shown)

    async def _count(self, usage: Usage) -> None:
        self._spent = usage.cost_usd
        if usage.context_tokens and usage.window:
            await self.send(updates.usage(usage.context_tokens, usage.window, self._cost()))

    async def _compact(self, summary: str) -> None:
        if self.compaction:
            await self.send(updates.compaction(self._next(f"{self.turn_id}-compaction-"), summary))

    def _cost(self) -> float | None:
        """What the session has cost by now, as far as prices are known."""
        known = [cost for cost in (self.cost_usd, self._spent) if cost is not None]
        return sum(known) if known else None

    def _next(self, prefix: str) -> str:
        number = self._counts[prefix]
        self._counts[prefix] += 1
        return f"{prefix}{number}"


def _shortened(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[:most]}\n[{len(text) - most} more characters are not shown]"


def _raw(arguments: Mapping[str, Any]) -> Json:
    """Arguments as they are, unless they are too long for anybody to read, or no JSON."""
    try:
        size = len(json.dumps(arguments, allow_nan=False))
    except (TypeError, ValueError, RecursionError):
        return {"note": "The arguments are no plain JSON, and not shown"}
    return (
        dict(arguments) if size <= RAW_CHARACTERS else {"note": f"The arguments are {size} characters, and not shown"}
    )
