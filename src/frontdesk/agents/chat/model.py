"""Defines chat sessions and the events of a reply, and builds those events from a turn."""

import json
import re
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime, timedelta
from functools import cache
from typing import Any, get_args

from pydantic import TypeAdapter

from frontdesk.agents.host import Agent, HistoryItem
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

# A session expires a day after its last use; its owner can reopen it for a month after that.
LIFETIME = timedelta(hours=24)
RESTORABLE = timedelta(days=30)
SESSION_ID = re.compile(r"[0-9a-f]{32}")


@dataclass(frozen=True, slots=True)
class ChatSession:
    """One person's conversation with one agent; the conversation itself is kept by the agent's host."""

    id: str
    user_id: str
    agent_id: str
    conversation_id: str
    created_at: datetime
    expires_at: datetime

    def is_open(self, now: datetime) -> bool:
        return now < self.expires_at

    def used_at(self, now: datetime) -> "ChatSession":
        return replace(self, expires_at=now + LIFETIME)


@dataclass(frozen=True, slots=True)
class SessionView:
    """A session with its agent, its history, and the calls that wait for approval."""

    session: ChatSession
    agent: Agent
    said: Sequence[HistoryItem] = ()
    pending: Sequence[ApprovalRequest] = ()


@dataclass(frozen=True, slots=True)
class AcceptedMessage:
    """An accepted message; while it is `queued` behind another reply, only this process's memory has it."""

    message_id: str
    queued: bool = False


def new_session_id() -> str:
    return secrets.token_hex(16)


def new_message_id() -> str:
    return secrets.token_hex(12)


@dataclass(frozen=True, slots=True)
class ToolResult:
    """The result of a tool call, with its arguments."""

    call_id: str
    name: str
    arguments: Mapping[str, Any]
    text: str
    status: ToolStatus


@dataclass(frozen=True, slots=True)
class ReplyEnded:
    """The last event: how the reply ended, its whole text, and the failure if there was one."""

    stop: StopReason
    text: str
    failure: str | None = None


ReplyEvent = (
    Started
    | TextChunk
    | ThoughtChunk
    | ToolCall
    | ToolResult
    | ApprovalRequest
    | MemoryEdit
    | Plan
    | Usage
    | ReplyEnded
)


@dataclass(slots=True)
class ReplyBuilder:
    """Builds the events of a reply from a turn's events; `calls` are arguments of calls from before the turn."""

    calls: dict[str, Mapping[str, Any]] = field(default_factory=dict[str, Mapping[str, Any]])
    _texts: list[str] = field(default_factory=list[str])
    _after_tool: bool = False
    _failure: str | None = None

    def add_event(self, event: Event) -> ReplyEvent | None:
        match event:
            case TextChunk(text) if text:
                if self._after_tool and self._texts:
                    self._texts.append(gap_between(self._texts[-1], text))
                self._texts.append(text)
                self._after_tool = False
            case ToolCall(call_id, _, arguments):
                self.calls[call_id] = arguments
                self._after_tool = True
            case ToolReturn(call_id, name, text, status):
                self._after_tool = True
                return ToolResult(call_id, name, self.calls.get(call_id, {}), text, status)
            case Failed(_, message):
                self._failure = message
            case Done(stop):
                return self.end(stop, self._failure)
            case _:
                pass
        return None if isinstance(event, UserText | UserMedia | ToolArguments | Compacted | Failed) else event

    def end(self, stop: StopReason, failure: str | None = None) -> ReplyEnded:
        return ReplyEnded(stop, "".join(self._texts), failure)


def gap_between(before: str, after: str) -> str:
    """The separator of two texts with a tool call between them: a blank line, unless they are separated already."""
    return "" if not before or before[-1].isspace() or after.startswith("\n") else "\n\n"


# Replicas of two releases share replies during an upgrade, so these stored names must not change.
_EVENT_NAMES: dict[type[object], str] = {ToolResult: "Returned", ReplyEnded: "Ended"}


def dump_reply_events(events: Sequence[ReplyEvent]) -> str:
    return json.dumps([{"word": _EVENT_NAMES.get(type(one), type(one).__name__), **asdict(one)} for one in events])


def load_reply_events(text: str) -> Sequence[ReplyEvent]:
    return [_event_adapter(fields.pop("word")).validate_python(fields) for fields in json.loads(text)]


@cache
def _event_adapter(name: str) -> TypeAdapter[ReplyEvent]:
    return TypeAdapter(next(kind for kind in get_args(ReplyEvent) if _EVENT_NAMES.get(kind, kind.__name__) == name))
