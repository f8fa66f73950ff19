"""What was said in a session, turned back into messages."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from frontdesk.agents.chat.words import gap
from frontdesk.agents.host import Said
from frontdesk.loop.events import (
    ApprovalRequest,
    Done,
    TextChunk,
    ToolCall,
    ToolReturn,
    ToolStatus,
    UserMedia,
    UserText,
)
from frontdesk.surfaces.rest.shapes import MessageShape, ToolCallShape


def messages(said: Sequence[Said]) -> list[MessageShape]:
    """The person's messages and the agent's replies, one for each turn, in order."""
    past = Past()
    for one in said:
        past.add(one)
    return past.messages


def waiting(requests: Sequence[ApprovalRequest]) -> list[ToolCallShape]:
    return [_call(one, "pending") for one in requests]


@dataclass(slots=True)
class Past:
    """The messages so far.

    `_calls` are those of all turns, since one that waited for approval is answered in a later turn; `_parted` are the
    turns in which a tool was called since the last text.
    """

    messages: list[MessageShape] = field(default_factory=list[MessageShape])
    _replies: dict[str, MessageShape] = field(default_factory=dict[str, MessageShape])
    _calls: dict[str, ToolCallShape] = field(default_factory=dict[str, ToolCallShape])
    _parted: set[str] = field(default_factory=set[str])

    def add(self, one: Said) -> None:
        if isinstance(one.event, UserText):
            self.messages.append(MessageShape(id=one.id, type="user", content=one.event.text, timestamp=one.at))
            return
        if isinstance(one.event, UserMedia):
            # The shape of a message has no place for it.
            return
        if one.turn_id not in self._replies:
            reply = MessageShape(id=one.turn_id, type="agent", content="", timestamp=one.at)
            self._replies[one.turn_id] = reply
            self.messages.append(reply)
        self._tell(self._replies[one.turn_id], one)

    def _tell(self, reply: MessageShape, one: Said) -> None:
        match one.event:
            case TextChunk(text):
                reply.content += (gap(reply.content, text) if one.turn_id in self._parted else "") + text
                self._parted.discard(one.turn_id)
            case ToolCall():
                self._show(reply, _call(one.event, "running"))
                self._parted.add(one.turn_id)
            case ToolReturn():
                self._settle(reply, one.event)
                self._parted.add(one.turn_id)
            case ApprovalRequest(call_id):
                reply.tool_calls = [call for call in reply.tool_calls if call.id != call_id]
                self._show(reply, _call(one.event, "pending"))
            case Done(stop):
                reply.stop_reason = stop
            case _:
                pass

    def _show(self, reply: MessageShape, call: ToolCallShape) -> None:
        reply.tool_calls.append(call)
        self._calls[call.id] = call

    def _settle(self, reply: MessageShape, returned: ToolReturn) -> None:
        if returned.call_id not in self._calls:
            self._show(reply, _call(ToolCall(returned.call_id, returned.name, {}), "running"))
        call = self._calls[returned.call_id]
        if returned.status is ToolStatus.OK:
            call.status, call.result = "completed", returned.text
        else:
            call.status, call.error = "error", returned.text


def _call(one: ToolCall | ApprovalRequest, status: Literal["pending", "running"]) -> ToolCallShape:
    return ToolCallShape(id=one.call_id, name=one.name, parameters=dict(one.arguments), status=status)
