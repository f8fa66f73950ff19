"""The events of a stream, as clients know them: one JSON object each, told apart by `type`."""

import json
import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import aclosing
from datetime import UTC, datetime
from typing import Any

import anyio
from sse_starlette import EventSourceResponse, ServerSentEvent
from starlette.responses import Response

from frontdesk.agents.chat.feed import Heard, Place
from frontdesk.agents.chat.words import Ended, Returned, Word
from frontdesk.loop.events import (
    ApprovalRequest,
    MemoryEdit,
    Plan,
    Started,
    StopReason,
    TextChunk,
    ThoughtChunk,
    ToolCall,
    ToolStatus,
    Usage,
)

HEARTBEAT_SECONDS = 30
FAREWELL_SECONDS = 5
EVERYTHING = "0"
# The last event of a reply is marked: whoever has heard it misses nothing, though the reply be long forgotten.
EVENT_ID = re.compile(r"([0-9a-f]{24}):([0-9]{1,9})(:end)?")
UNFINISHED: Mapping[StopReason, str] = {
    StopReason.CANCELLED: "Stream cancelled by user",
    StopReason.INTERRUPTED: "The reply was interrupted: the server that made it stopped; send the message again",
    StopReason.ERROR: "The reply failed",
}


def stream(session_id: str, heard: AsyncGenerator[Heard], farewell: Callable[[], Awaitable[None]]) -> Response:
    """The answer that tells words as they are heard, and beats while there is silence.

    When the server is told to stop, `farewell` is called, and what it brings about is still told.
    """
    stopping = anyio.Event()

    async def bid_farewell() -> None:
        await stopping.wait()
        await farewell()

    return EventSourceResponse(
        _events(session_id, heard),
        headers={"cache-control": "no-cache, no-store"},
        sep="\n",
        ping=HEARTBEAT_SECONDS,
        ping_message_factory=lambda: _event({"type": "heartbeat", "sessionId": session_id, "timestamp": _now()}),
        data_sender_callable=bid_farewell,
        shutdown_event=stopping,
        shutdown_grace_period=FAREWELL_SECONDS,
    )


def place_of(last_event_id: str | None) -> Place | None:
    """Where a client that comes back left off; `0` asks for everything that is kept."""
    if last_event_id == EVERYTHING:
        return Place("", 0)
    found = EVENT_ID.fullmatch(last_event_id or "")
    return Place(found[1], int(found[2]), ended=bool(found[3])) if found else None


def shaped(word: Word) -> dict[str, Any]:  # noqa: C901, PLR0911 - a line for each word
    """A word in the contract's shape; where the contract has none, under a type of its own."""
    match word:
        case Started():
            return {"type": "start", "content": ""}
        case TextChunk(text):
            return {"type": "token", "content": text}
        case ThoughtChunk(text):
            return {"type": "thought", "content": text}
        case ToolCall(call_id, name, arguments):
            return {"type": "tool_call", "toolCall": tool_call(call_id, name, arguments, "running")}
        case Returned():
            return {"type": "tool_result", "toolCall": _returned(word)}
        case ApprovalRequest(call_id, name, arguments):
            return {"type": "approval_request", "toolCall": tool_call(call_id, name, arguments, "pending")}
        case MemoryEdit(label, before, after):
            return {"type": "memory_edit", "memoryEdit": {"label": label, "before": before, "after": after}}
        case Plan(steps):
            return {"type": "plan", "plan": [{"text": step.text, "status": step.status} for step in steps]}
        case Usage():
            return {"type": "usage", "usage": _usage(word)}
        case Ended(stop, text, failure) if stop in UNFINISHED:
            return {"type": "error", "error": failure or UNFINISHED[stop], "content": text, "stopReason": stop}
        case Ended(stop, text):
            return {"type": "end", "content": text, "stopReason": stop}


def tool_call(call_id: str, name: str, arguments: Mapping[str, Any], status: str) -> dict[str, Any]:
    return {"id": call_id, "name": name, "parameters": dict(arguments), "status": status}


def _returned(word: Returned) -> dict[str, Any]:
    if word.status is ToolStatus.OK:
        return tool_call(word.call_id, word.name, word.arguments, "completed") | {"result": word.text}
    return tool_call(word.call_id, word.name, word.arguments, "error") | {"error": word.text}


def _usage(word: Usage) -> dict[str, Any]:
    return {
        "inputTokens": word.input_tokens,
        "outputTokens": word.output_tokens,
        "cachedTokens": word.cached_tokens,
        "model": word.model,
        "costUsd": word.cost_usd,
    }


async def _events(session_id: str, words: AsyncGenerator[Heard]) -> AsyncGenerator[ServerSentEvent]:
    async with aclosing(words):
        yield _event({"type": "connected", "sessionId": session_id})
        async for heard in words:
            about = {"sessionId": session_id, "messageId": heard.message_id}
            yield _event(about | shaped(heard.word), _id_of(heard))


def _id_of(heard: Heard) -> str:
    return f"{heard.message_id}:{heard.number}{':end' if isinstance(heard.word, Ended) else ''}"


def _event(data: dict[str, Any], number: str | None = None) -> ServerSentEvent:
    return ServerSentEvent(json.dumps(data), id=number, sep="\n")


def _now() -> str:
    return datetime.now(UTC).isoformat()
