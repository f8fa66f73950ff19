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
from frontdesk.interfaces.acp import convert
from frontdesk.interfaces.acp.convert import CallStatus, strip_context
from frontdesk.interfaces.acp.jsonrpc import Json
from frontdesk.interfaces.acp.markdown import fenced_block
from frontdesk.interfaces.acp.tool_calls import (
    ShownToolCall,
    ShownToolCalls,
    bounded_title,
    call_locations,
    call_title,
    file_change,
    tool_kind,
)
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
# The output of these tools is code more often than Markdown.
CODE_KINDS = frozenset({OperationKind.EXECUTE, OperationKind.READ})
CHUNKS = {TextChunk: convert.agent_chunk, ThoughtChunk: convert.thought_chunk}


@dataclass(slots=True)
class EventView:
    """Shows the turns that answer one prompt, or a whole history; the same events always get the same ids.

    `memory_file` gives the file that shows a memory block. `cost_usd` is the cost of the session so far. `compaction`
    is true where the editor accepts notes of compactions. `waiting` has the calls that waited for approval before, with
    the ids under which they are shown. While `replaying`, no tool runs, so a call's change is read from its arguments.
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
    # One update at a time: tools show parts of their calls during the turn.
    _lock: anyio.Lock = field(default_factory=anyio.Lock)

    def __post_init__(self) -> None:
        self._calls = ShownToolCalls(self.waiting)

    async def show(self, event: Event) -> None:
        """Show an event; does nothing for an event without a display, or after `close`."""
        async with self._lock:
            if not self._closed:
                await self._show(event)

    async def show_part(self, call_id: str, part: ShownItem) -> None:
        """Show a part of a call that is under way: a diff, a file or a terminal."""
        await self.wait_until_shown(call_id)
        async with self._lock:
            call = self._calls.reserve(self.turn_id, call_id)
            call.put(part)
            if call.is_open and not self._closed:
                changed = (
                    {"locations": call.locations()} if isinstance(part, FileLocation) else {"content": call.content()}
                )
                await self.send(convert.tool_call_update(call.sent_id, **changed))

    async def wait_until_shown(self, call_id: str) -> None:
        """Wait until the editor has this call, for `patience` seconds at most."""
        with anyio.move_on_after(self.patience):
            await self._calls.reserve(self.turn_id, call_id).shown.wait()

    def sent_id(self, call_id: str) -> str:
        """The id under which the editor has a call, or will have it."""
        return self._calls.reserve(self.turn_id, call_id).sent_id

    def begin_turn(self, turn_id: str) -> None:
        """The events that follow belong to this turn."""
        if turn_id != self.turn_id:
            self.cost_usd, self._spent = self._cost(), None
            self.turn_id, self._speaker = turn_id, None

    async def fail_open_calls(self, reason: str, *, waiting: bool = True) -> None:
        """Show every open call as failed; calls that wait for approval only if `waiting`."""
        async with self._lock:
            for call in list(self._calls.open()):
                if waiting or not call.awaits_approval:
                    await self._end(call, "failed", reason, [convert.call_content(convert.text_block(reason))])

    async def close(self, reason: str = "cancelled") -> None:
        """Show open calls as failed, and show nothing after that."""
        self._closed = True
        await self.fail_open_calls(reason)

    def pending_calls(self) -> Mapping[str, str]:
        """The calls that wait for approval, for the `waiting` of the next view."""
        return self._calls.waiting()

    async def _show(self, event: Event) -> None:  # noqa: C901 - a line for each event
        match event:
            case Started(turn_id):
                self._start(turn_id)
            case TextChunk(text) | ThoughtChunk(text):
                await self._show_chunk(type(event), text)
            case UserText() | UserMedia():
                await self._show_user(event)
            case ToolArguments(call_id, name):
                await self._announce(call_id, name)
            case ToolCall(call_id, name, arguments):
                await self._show_call(self._calls.take(self.turn_id, call_id), name, arguments, "in_progress")
            case ApprovalRequest():
                await self._show_approval(event)
            case ToolReturn():
                await self._show_return(event)
            case MemoryEdit():
                await self._show_memory_edit(event)
            case Plan(steps):
                await self.send(convert.plan_update(steps))
            case Usage():
                await self._show_usage(event)
            case Compacted(summary):
                await self._compact(summary)
            case Failed() | Done():
                pass

    def _start(self, turn_id: str) -> None:
        self.begin_turn(turn_id)
        # The editor has the text that began the turn. A turn that continues after an approval began with no text.
        if not self.replaying and not self._calls.waiting():
            self._counts[f"{turn_id}-user-"] += 1

    async def _show_chunk(self, kind: type[TextChunk | ThoughtChunk], text: str) -> None:
        if not text:
            return
        if self._speaker is not kind:
            self._speaker, self._message_id = kind, self._next(f"{self.turn_id}-")
        await self.send(CHUNKS[kind](self._message_id, convert.text_block(text)))

    async def _show_user(self, event: UserText | UserMedia) -> None:
        """A text and the media that came with it are one message."""
        is_text = isinstance(event, UserText)
        if self._speaker is not UserText or (is_text and self._has_text):
            self._speaker, self._message_id = UserText, self._next(f"{self.turn_id}-user-")
            self._has_text = False
        self._has_text = self._has_text or is_text
        block = (
            convert.text_block(strip_context(event.text)) if is_text else convert.media_block(event.mime, event.data)
        )
        await self.send(convert.user_chunk(self._message_id, block))

    async def _announce(self, call_id: str, name: str) -> None:
        """Show a call while its arguments are being written, once."""
        self._speaker = None
        call = self._calls.take(self.turn_id, call_id)
        if call.status is None and name:
            await self._show_call(call, name, None, "pending")

    async def _show_approval(self, request: ApprovalRequest) -> None:
        call = self._calls.take(self.turn_id, request.call_id)
        await self._show_call(call, request.name, request.arguments, "pending")
        call.awaits_approval = True

    async def _show_call(
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

    async def _show_return(self, event: ToolReturn) -> None:
        self._speaker = None
        call = self._calls.reserve(self.turn_id, event.call_id)
        if call.has_ended:
            return
        worked = event.status is ToolStatus.OK
        if call.status is None:
            call.name = event.name
        if self.replaying and worked and (change := file_change(call.name, call.arguments, self.roots)) is not None:
            call.put(change)
        # The editor shows the output of a command in its terminal already.
        text = "" if worked and call.terminals else _shorten(event.text, MAX_TEXT_CHARACTERS)
        told = fenced_block(text) if tool_kind(call.name) in CODE_KINDS else text
        more = [convert.call_content(convert.text_block(told))] if text.strip() else []
        await self._end(call, "completed" if worked else "failed", event.text, more)

    async def _end(self, call: ShownToolCall, status: CallStatus, output: str, more: list[Json]) -> None:
        fields = {"status": status, "content": call.content(*more), "rawOutput": _shorten(output, MAX_RAW_CHARACTERS)}
        if call.status is None:
            kind = tool_kind(call.name).value
            fields |= {"title": call_title(call.name, {}, self.roots), "kind": kind}
        await self._put(call, status, fields)

    async def _put(self, call: ShownToolCall, status: CallStatus, fields: Mapping[str, Any]) -> None:
        """Send the whole call where the editor does not have it yet, else its changes."""
        make = convert.tool_call if call.status is None else convert.tool_call_update
        # If this is cancelled, the editor may have the call or not; `close` then ends it.
        call.status = call.status or "pending"
        await self.send(make(call.sent_id, **fields))
        call.status = status
        call.shown.set()

    async def _show_memory_edit(self, edit: MemoryEdit) -> None:
        path = self.memory_file(edit.label)
        call_id = self._calls.unused(self._next(f"{self.turn_id}-memory-"))
        shown = convert.tool_call(
            call_id,
            bounded_title(f"Updated memory: {edit.label}"),
            kind=OperationKind.THINK.value,
            status="completed",
            content=[convert.call_diff(FileDiff(path, edit.before, edit.after))],
            locations=[convert.call_location(FileLocation(path))],
            _meta={"frontdesk": {"memory": f"memory://{edit.label}"}},
        )
        await self.send(shown)

    async def _show_usage(self, usage: Usage) -> None:
        self._spent = usage.cost_usd
        if usage.context_tokens and usage.window:
            await self.send(convert.usage_update(usage.context_tokens, usage.window, self._cost()))

    async def _compact(self, summary: str) -> None:
        if self.compaction:
            await self.send(convert.compaction_update(self._next(f"{self.turn_id}-compaction-"), summary))

    def _cost(self) -> float | None:
        """The cost of the session so far, as far as prices are known."""
        known = [cost for cost in (self.cost_usd, self._spent) if cost is not None]
        return sum(known) if known else None

    def _next(self, prefix: str) -> str:
        number = self._counts[prefix]
        self._counts[prefix] += 1
        return f"{prefix}{number}"


def _shorten(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[:most]}\n[{len(text) - most} more characters are not shown]"


def _raw_arguments(arguments: Mapping[str, Any]) -> Json:
    """The arguments, or a note in their place where they are too long or not JSON."""
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
