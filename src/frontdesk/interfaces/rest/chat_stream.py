"""Streams the replies of a chat session as server-sent events."""

import json
import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import aclosing
from datetime import UTC, datetime
from typing import Annotated, Any

import anyio
from pydantic import Field
from sse_starlette import EventSourceResponse, ServerSentEvent
from starlette.responses import Response

from frontdesk.agents.chat.api_models import EXAMPLE_MESSAGE, EXAMPLE_SESSION, ChatApiModel
from frontdesk.agents.chat.feed import NumberedEvent, StreamPosition
from frontdesk.agents.chat.model import ReplyEnded, ReplyEvent, ToolResult
from frontdesk.agents.chat.service import ChatService
from frontdesk.identity.rights import AGENTS_READ
from frontdesk.llm.events import (
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
from frontdesk.operations import Call, IdentifyBy, Operation, RestInput, RestRoute

HEARTBEAT_SECONDS = 30
SHUTDOWN_SECONDS = 5
FROM_BEGINNING = "0"
# The id of a reply's last event is marked, so that a client that received it needs no stored reply.
EVENT_ID_PATTERN = re.compile(r"([0-9a-f]{24}):([0-9]{1,9})(:end)?")
UNFINISHED_MESSAGES: Mapping[StopReason, str] = {
    StopReason.CANCELLED: "Stream cancelled by user",
    StopReason.INTERRUPTED: "The reply was interrupted: the server that made it stopped; send the message again",
    StopReason.ERROR: "The reply failed",
}


def stream_response(
    session_id: str, heard: AsyncGenerator[NumberedEvent], farewell: Callable[[], Awaitable[None]]
) -> Response:
    """The response that streams events as they come, with heartbeats in between.

    When the server stops, `farewell` is called, and the events that it causes are still sent.
    """
    stopping = anyio.Event()

    async def bid_farewell() -> None:
        await stopping.wait()
        await farewell()

    return EventSourceResponse(
        _sse_events(session_id, heard),
        headers={"cache-control": "no-cache, no-store"},
        sep="\n",
        ping=HEARTBEAT_SECONDS,
        ping_message_factory=lambda: _sse_event(
            {"type": "heartbeat", "sessionId": session_id, "timestamp": _iso_now()}
        ),
        data_sender_callable=bid_farewell,
        shutdown_event=stopping,
        shutdown_grace_period=SHUTDOWN_SECONDS,
    )


def parse_event_id(last_event_id: str | None) -> StreamPosition | None:
    """The position of a client that reconnects; `0` requests every stored event."""
    if last_event_id == FROM_BEGINNING:
        return StreamPosition("", 0)
    found = EVENT_ID_PATTERN.fullmatch(last_event_id or "")
    return StreamPosition(found[1], int(found[2]), ended=bool(found[3])) if found else None


def event_data(word: ReplyEvent) -> dict[str, Any]:  # noqa: C901, PLR0911 - a line for each word
    """An event in the contract's format; events that the contract does not have get a type of their own."""
    match word:
        case Started():
            return {"type": "start", "content": ""}
        case TextChunk(text):
            return {"type": "token", "content": text}
        case ThoughtChunk(text):
            return {"type": "thought", "content": text}
        case ToolCall(call_id, name, arguments):
            return {"type": "tool_call", "toolCall": tool_call_data(call_id, name, arguments, "running")}
        case ToolResult():
            return {"type": "tool_result", "toolCall": _tool_result_data(word)}
        case ApprovalRequest(call_id, name, arguments):
            return {"type": "approval_request", "toolCall": tool_call_data(call_id, name, arguments, "pending")}
        case MemoryEdit(label, before, after):
            return {"type": "memory_edit", "memoryEdit": {"label": label, "before": before, "after": after}}
        case Plan(steps):
            return {"type": "plan", "plan": [{"text": step.text, "status": step.status} for step in steps]}
        case Usage():
            return {"type": "usage", "usage": _usage_data(word)}
        case ReplyEnded(stop, text, failure) if stop in UNFINISHED_MESSAGES:
            return {"type": "error", "error": failure or UNFINISHED_MESSAGES[stop], "content": text, "stopReason": stop}
        case ReplyEnded(stop, text):
            return {"type": "end", "content": text, "stopReason": stop}


def tool_call_data(call_id: str, name: str, arguments: Mapping[str, Any], status: str) -> dict[str, Any]:
    return {"id": call_id, "name": name, "parameters": dict(arguments), "status": status}


def _tool_result_data(word: ToolResult) -> dict[str, Any]:
    if word.status is ToolStatus.OK:
        return tool_call_data(word.call_id, word.name, word.arguments, "completed") | {"result": word.text}
    return tool_call_data(word.call_id, word.name, word.arguments, "error") | {"error": word.text}


def _usage_data(word: Usage) -> dict[str, Any]:
    return {
        "inputTokens": word.input_tokens,
        "outputTokens": word.output_tokens,
        "cachedTokens": word.cached_tokens,
        "model": word.model,
        "costUsd": word.cost_usd,
    }


async def _sse_events(session_id: str, words: AsyncGenerator[NumberedEvent]) -> AsyncGenerator[ServerSentEvent]:
    async with aclosing(words):
        yield _sse_event({"type": "connected", "sessionId": session_id})
        async for heard in words:
            about = {"sessionId": session_id, "messageId": heard.message_id}
            yield _sse_event(about | event_data(heard.event), _event_id(heard))


def _event_id(heard: NumberedEvent) -> str:
    return f"{heard.message_id}:{heard.number}{':end' if isinstance(heard.event, ReplyEnded) else ''}"


def _sse_event(data: dict[str, Any], number: str | None = None) -> ServerSentEvent:
    return ServerSentEvent(json.dumps(data), id=number, sep="\n")


def _iso_now() -> str:
    return datetime.now(UTC).isoformat()


EXAMPLE_EVENTS = f"""data: {{"type": "connected", "sessionId": "{EXAMPLE_SESSION}"}}

id: {EXAMPLE_MESSAGE}:1
data: {{"sessionId": "{EXAMPLE_SESSION}", "messageId": "{EXAMPLE_MESSAGE}", "type": "start", "content": ""}}

id: {EXAMPLE_MESSAGE}:2
data: {{"sessionId": "{EXAMPLE_SESSION}", "messageId": "{EXAMPLE_MESSAGE}", "type": "token", "content": "Nothing."}}

id: {EXAMPLE_MESSAGE}:3:end
data: {{"sessionId": "{EXAMPLE_SESSION}", "messageId": "{EXAMPLE_MESSAGE}", "type": "end", "content": "Nothing."}}

"""


class StreamQuery(ChatApiModel):
    """The session whose replies are streamed."""

    session_id: Annotated[str, Field(min_length=1)]


async def follow(chat: ChatService, call: Call, given: RestInput[StreamQuery, None]) -> Response:
    session_id, position = given.query.session_id, parse_event_id(given.headers.get("last-event-id"))
    return stream_response(session_id, await chat.listen(call.caller, session_id, position), chat.close)


STREAM_OPERATION = Operation(
    name="follow",
    summary="The replies of a session, as they come to be",
    request=StreamQuery,
    run=follow,
    scopes=(AGENTS_READ,),
    rest=RestRoute(
        method="GET",
        path="/agents/stream",
        query=StreamQuery,
        run=follow,
        identify_by=IdentifyBy.PERSON,
        header_parameters=(
            {
                "name": "Last-Event-ID",
                "in": "header",
                "required": False,
                "schema": {"anyOf": [{"type": "string"}, {"type": "null"}], "title": "Last-Event-Id"},
            },
        ),
        responses={
            200: {"description": "Server-sent events.", "content": {"text/event-stream": {"example": EXAMPLE_EVENTS}}}
        },
    ),
)
