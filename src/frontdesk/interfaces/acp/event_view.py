"""Shows the events of turns in an editor, live or from a conversation's history."""

import json
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import uuid4

import anyio

from frontdesk.agents.host import HistoryItem
from frontdesk.coding.model import FileDiff, FileLocation, OperationKind, ShownItem
from frontdesk.coding.paths import WorkspaceRoots
from frontdesk.interfaces.acp import updates
from frontdesk.interfaces.acp.content import strip_context
from frontdesk.interfaces.acp.jsonrpc import Json
from frontdesk.interfaces.acp.tool_calls import (
    ShownToolCall,
    ShownToolCalls,
    bounded_title,
    call_locations,
    call_title,
    fenced_block,
    file_change,
    tool_kind,
)
from frontdesk.interfaces.acp.updates import CallStatus
from frontdesk.llm.events import (
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

SHOWN_SECONDS = 5.0
MAX_TEXT_CHARACTERS = 20_000
MAX_RAW_CHARACTERS = 50_000
# What these answer is code more often than Markdown.
CODE_KINDS = frozenset({OperationKind.EXECUTE, OperationKind.READ})
CHUNKS = {TextChunk: updates.agent_chunk, ThoughtChunk: updates.thought_chunk}


@dataclass(slots=True)
class EventView:
    """Shows the turns that answer one prompt, or a whole past; what is told to it twice has the same ids.

    `mirror` says which file shows a memory block. `cost_usd` is what the session has cost before, and `compaction`
    whether the editor wants to know of one. `waiting` are the calls, under the ids they are shown with, that waited
    before. While `replaying`, what a call changed is read from its arguments, since no tool runs to show it.
    """

    send: Callable[[Json], Awaitable[None]]
    roots: WorkspaceRoots
    memory_file: Callable[[str], Path]
    cost_usd: float | None = None
    compaction: bool = False
    waiting: Mapping[str, str] = field(default_factory=dict[str, str])
    replaying: bool = False
    patience: float = SHOWN_SECONDS
    turn_id: str = field(default_factory=lambda: uuid4().hex)
    _calls: ShownToolCalls = field(init=False)
    _counts: Counter[str] = field(default_factory=Counter[str])
    _speaker: type[TextChunk | ThoughtChunk | UserText] | None = None
    _message_id: str = ""
    _has_text: bool = False
    _spent: float | None = None
    _closed: bool = False
    # One update at a time: tools show things while the turn goes on.
    _line: anyio.Lock = field(default_factory=anyio.Lock)

    def __post_init__(self) -> None:
        self._calls = ShownToolCalls(self.waiting)

    async def show(self, event: Event) -> None:
        """Show an event, where there is anything to be seen; nothing once closed."""
        async with self._line:
            if not self._closed:
                await self._show(event)

    async def show_part(self, call_id: str, part: ShownItem) -> None:
        """Show something of a call that is under way."""
        await self.wait_until_shown(call_id)
        async with self._line:
            call = self._calls.reserve(self.turn_id, call_id)
            call.put(part)
            if call.is_open and not self._closed:
                changed = (
                    {"locations": call.locations()} if isinstance(part, FileLocation) else {"content": call.content()}
                )
                await self.send(updates.tool_call_update(call.sent_id, **changed))

    async def wait_until_shown(self, call_id: str) -> None:
        """Wait until the editor has been shown this call, but not for long."""
        with anyio.move_on_after(self.patience):
            await self._calls.reserve(self.turn_id, call_id).shown.wait()

    def sent_id(self, call_id: str) -> str:
        """The id under which the editor knows a call, or will."""
        return self._calls.reserve(self.turn_id, call_id).sent_id

    def begin_turn(self, turn_id: str) -> None:
        """What follows belongs to this turn."""
        if turn_id != self.turn_id:
            self.cost_usd, self._spent = self._cost(), None
            self.turn_id, self._speaker = turn_id, None

    async def fail_open_calls(self, reason: str, *, waiting: bool = True) -> None:
        """End every call under way as failed; those that wait for somebody's word only where told so."""
        async with self._line:
            for call in list(self._calls.open()):
                if waiting or not call.awaits_approval:
                    await self._end(call, "failed", reason, [updates.call_content(updates.text_block(reason))])

    async def close(self, reason: str = "cancelled") -> None:
        """Leave no call open, and show nothing any more."""
        self._closed = True
        await self.fail_open_calls(reason)

    def pending_calls(self) -> Mapping[str, str]:
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
                await self.send(updates.plan_update(steps))
            case Usage():
                await self._count(event)
            case Compacted(summary):
                await self._compact(summary)
            case Failed() | Done():
                pass

    def _start(self, turn_id: str) -> None:
        self.begin_turn(turn_id)
        # The editor has the words that began the turn; a turn that goes on after somebody's word began with none.
        if not self.replaying and not self._calls.waiting():
            self._counts[f"{turn_id}-user-"] += 1

    async def _say(self, kind: type[TextChunk | ThoughtChunk], text: str) -> None:
        if not text:
            return
        if self._speaker is not kind:
            self._speaker, self._message_id = kind, self._next(f"{self.turn_id}-")
        await self.send(CHUNKS[kind](self._message_id, updates.text_block(text)))

    async def _hear(self, event: UserText | UserMedia) -> None:
        """What was said, and the pictures that came with it, are one message."""
        is_text = isinstance(event, UserText)
        if self._speaker is not UserText or (is_text and self._has_text):
            self._speaker, self._message_id = UserText, self._next(f"{self.turn_id}-user-")
            self._has_text = False
        self._has_text = self._has_text or is_text
        block = (
            updates.text_block(strip_context(event.text)) if is_text else updates.media_block(event.mime, event.data)
        )
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
        call.awaits_approval = True

    async def _call(
        self, call: ShownToolCall, name: str, arguments: Mapping[str, Any] | None, status: CallStatus
    ) -> None:
        self._speaker = None
        call.name, call.arguments, call.awaits_approval = name, arguments or {}, False
        call.locate(call_locations(name, call.arguments, self.roots))
        known = {"name": name} if name else {}
        fields: dict[str, Any] = {**known, "kind": tool_kind(name).value, "status": status}
        if arguments is not None:
            fields |= {"locations": call.locations(), "rawInput": _raw_arguments(arguments)}
        if parts := call.content():
            fields["content"] = parts
        title = call_title(name, call.arguments, self.roots) if arguments is not None else bounded_title(name)
        await self._put(call, status, {"title": title, **fields})

    async def _return(self, event: ToolReturn) -> None:
        self._speaker = None
        call = self._calls.reserve(self.turn_id, event.call_id)
        if call.has_ended:
            return
        worked = event.status is ToolStatus.OK
        if call.status is None:
            call.name = event.name
        if self.replaying and worked and (change := file_change(call.name, call.arguments, self.roots)) is not None:
            call.put(change)
        # What a command printed stands in its terminal already.
        text = "" if worked and call.terminals else _shorten(event.text, MAX_TEXT_CHARACTERS)
        told = fenced_block(text) if tool_kind(call.name) in CODE_KINDS else text
        more = [updates.call_content(updates.text_block(told))] if text.strip() else []
        await self._end(call, "completed" if worked else "failed", event.text, more)

    async def _end(self, call: ShownToolCall, status: CallStatus, output: str, more: list[Json]) -> None:
        fields = {"status": status, "content": call.content(*more), "rawOutput": _shorten(output, MAX_RAW_CHARACTERS)}
        if call.status is None:
            kind = tool_kind(call.name).value
            fields |= {"title": call_title(call.name, {}, self.roots), "kind": kind}
        await self._put(call, status, fields)

    async def _put(self, call: ShownToolCall, status: CallStatus, fields: Mapping[str, Any]) -> None:
        """Send a call whole where the editor does not have it, and what is new of it where it has."""
        make = updates.tool_call if call.status is None else updates.tool_call_update
        # Cut off here, it may be there and may not have ended: closing then ends it.
        call.status = call.status or "pending"
        await self.send(make(call.sent_id, **fields))
        call.status = status
        call.shown.set()

    async def _remember(self, edit: MemoryEdit) -> None:
        path = self.memory_file(edit.label)
        call_id = self._calls.unused(self._next(f"{self.turn_id}-memory-"))
        shown = updates.tool_call(
            call_id,
            bounded_title(f"Updated memory: {edit.label}"),
            kind=OperationKind.THINK.value,
            status="completed",
            content=[updates.call_diff(FileDiff(path, edit.before, edit.after))],
            locations=[updates.call_location(FileLocation(path))],
            _meta={"frontdesk": {"memory": f"memory://{edit.label}"}},
        )
        await self.send(shown)

    async def _count(self, usage: Usage) -> None:
        self._spent = usage.cost_usd
        if usage.context_tokens and usage.window:
            await self.send(updates.usage_update(usage.context_tokens, usage.window, self._cost()))

    async def _compact(self, summary: str) -> None:
        if self.compaction:
            await self.send(updates.compaction_update(self._next(f"{self.turn_id}-compaction-"), summary))

    def _cost(self) -> float | None:
        """What the session has cost by now, as far as prices are known."""
        known = [cost for cost in (self.cost_usd, self._spent) if cost is not None]
        return sum(known) if known else None

    def _next(self, prefix: str) -> str:
        number = self._counts[prefix]
        self._counts[prefix] += 1
        return f"{prefix}{number}"


def _shorten(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[:most]}\n[{len(text) - most} more characters are not shown]"


def _raw_arguments(arguments: Mapping[str, Any]) -> Json:
    """Arguments as they are, unless they are too long for anybody to read, or no JSON."""
    try:
        size = len(json.dumps(arguments, allow_nan=False))
    except (TypeError, ValueError, RecursionError):
        return {"note": "The arguments are no plain JSON, and not shown"}
    return (
        dict(arguments)
        if size <= MAX_RAW_CHARACTERS
        else {"note": f"The arguments are {size} characters, and not shown"}
    )


TURN_ENDED_FIRST = "The turn ended before this did"


async def replay_history(history: Sequence[HistoryItem], view: EventView) -> Mapping[str, str]:
    """Show a history in order, under the ids that its calls and messages had when they happened.

    A call that never ended is shown as failed, unless it waits for approval. Returns the calls that wait, as `waiting`
    of the next view.
    """
    view.replaying = True
    for item in history:
        if item.turn_id != view.turn_id and isinstance(item.event, UserText | UserMedia):
            await view.fail_open_calls(TURN_ENDED_FIRST)
        view.begin_turn(item.turn_id)
        await view.show(item.event)
        if isinstance(item.event, Done) and item.event.stop is not StopReason.REQUIRES_APPROVAL:
            await view.fail_open_calls(TURN_ENDED_FIRST)
    await view.fail_open_calls(TURN_ENDED_FIRST, waiting=False)
    return view.pending_calls()
