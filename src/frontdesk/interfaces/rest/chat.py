"""Serves the chat API: sessions, messages, approvals, cancelling, and replies as server-sent events."""

import json
import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Annotated, Any, Literal

import anyio
from fastapi import FastAPI, Header, Query
from sse_starlette import EventSourceResponse, ServerSentEvent
from starlette.responses import Response

from frontdesk.agents.chat.feed import NumberedEvent, StreamPosition
from frontdesk.agents.chat.model import ReplyEnded, ReplyEvent, ToolResult, gap_between
from frontdesk.agents.chat.service import ChatService
from frontdesk.agents.host import HistoryItem
from frontdesk.interfaces.rest.chat_models import (
    EXAMPLE_MESSAGE,
    EXAMPLE_SESSION,
    ApprovalsRequest,
    CancelSessionResponse,
    ChatAgent,
    ChatMessage,
    ChatSessionInfo,
    ChatToolCall,
    NewMessageRequest,
    NewSessionRequest,
    NewSessionResponse,
    RestoreSessionRequest,
    RestoreSessionResponse,
    SentResponse,
    SessionListResponse,
    SessionRequest,
    SessionResponse,
    SuccessResponse,
)
from frontdesk.interfaces.rest.errors import ERROR_RESPONSES
from frontdesk.interfaces.rest.routing import CurrentCaller, CurrentToken, check_user_id
from frontdesk.llm.events import (
    ApprovalRequest,
    Done,
    MemoryEdit,
    Plan,
    Started,
    StopReason,
    TextChunk,
    ThoughtChunk,
    ToolCall,
    ToolReturn,
    ToolStatus,
    Usage,
    UserMedia,
    UserText,
)


def build_messages(items: Sequence[HistoryItem]) -> list[ChatMessage]:
    """The person's messages and the agent's replies, one of each per turn, in order."""
    past = MessageHistory()
    for one in items:
        past.add(one)
    return past.messages


def pending_calls(requests: Sequence[ApprovalRequest]) -> list[ChatToolCall]:
    return [_chat_tool_call(one, "pending") for one in requests]


@dataclass(slots=True)
class MessageHistory:
    """Collects the messages.

    `_calls` has the calls of all turns, since a call that waited for approval is answered in a later turn.
    `_after_tool` has the turns in which a tool was called since the last text.
    """

    messages: list[ChatMessage] = field(default_factory=list[ChatMessage])
    _replies: dict[str, ChatMessage] = field(default_factory=dict[str, ChatMessage])
    _calls: dict[str, ChatToolCall] = field(default_factory=dict[str, ChatToolCall])
    _after_tool: set[str] = field(default_factory=set[str])

    def add(self, one: HistoryItem) -> None:
        if isinstance(one.event, UserText):
            self.messages.append(ChatMessage(id=one.id, type="user", content=one.event.text, timestamp=one.at))
            return
        if isinstance(one.event, UserMedia):
            # The format of a message has no field for media.
            return
        if one.turn_id not in self._replies:
            reply = ChatMessage(id=one.turn_id, type="agent", content="", timestamp=one.at)
            self._replies[one.turn_id] = reply
            self.messages.append(reply)
        self._add_to_reply(self._replies[one.turn_id], one)

    def _add_to_reply(self, reply: ChatMessage, one: HistoryItem) -> None:
        match one.event:
            case TextChunk(text):
                reply.content += (gap_between(reply.content, text) if one.turn_id in self._after_tool else "") + text
                self._after_tool.discard(one.turn_id)
            case ToolCall():
                self._show(reply, _chat_tool_call(one.event, "running"))
                self._after_tool.add(one.turn_id)
            case ToolReturn():
                self._settle(reply, one.event)
                self._after_tool.add(one.turn_id)
            case ApprovalRequest(call_id):
                reply.tool_calls = [call for call in reply.tool_calls if call.id != call_id]
                self._show(reply, _chat_tool_call(one.event, "pending"))
            case Done(stop):
                reply.stop_reason = stop
            case _:
                pass

    def _show(self, reply: ChatMessage, call: ChatToolCall) -> None:
        reply.tool_calls.append(call)
        self._calls[call.id] = call

    def _settle(self, reply: ChatMessage, returned: ToolReturn) -> None:
        if returned.call_id not in self._calls:
            self._show(reply, _chat_tool_call(ToolCall(returned.call_id, returned.name, {}), "running"))
        call = self._calls[returned.call_id]
        if returned.status is ToolStatus.OK:
            call.status, call.result = "completed", returned.text
        else:
            call.status, call.error = "error", returned.text


def _chat_tool_call(one: ToolCall | ApprovalRequest, status: Literal["pending", "running"]) -> ChatToolCall:
    return ChatToolCall(id=one.call_id, name=one.name, parameters=dict(one.arguments), status=status)


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
STREAM_RESPONSES: dict[int | str, dict[str, Any]] = {
    200: {"description": "Server-sent events.", "content": {"text/event-stream": {"example": EXAMPLE_EVENTS}}}
}


def add_chat_routes(api: FastAPI, chat: ChatService) -> None:
    """Add the routes under /agents."""
    _add_session_routes(api, chat)
    _add_message_routes(api, chat)


def _add_session_routes(api: FastAPI, chat: ChatService) -> None:
    @api.post("/agents/sessions", responses=ERROR_RESPONSES, summary="Open a session with an agent")
    async def open_session(request: NewSessionRequest, caller: CurrentCaller) -> NewSessionResponse:
        check_user_id(caller, request.user_id)
        view = await chat.open(caller, request.agent_id)
        return NewSessionResponse(
            session_id=view.session.id,
            agent_id=view.agent.id,
            created_at=view.session.created_at,
            agent=ChatAgent.of(view.agent),
        )

    @api.get(
        "/agents/sessions",
        responses=ERROR_RESPONSES,
        response_model_exclude_none=True,
        summary="One session with what was said in it, or all of one's own",
    )
    async def show_sessions(
        caller: CurrentCaller,
        session_id: Annotated[str | None, Query(alias="sessionId")] = None,
        user_id: Annotated[str | None, Query(alias="userId")] = None,
    ) -> SessionResponse | SessionListResponse:
        check_user_id(caller, user_id)
        if session_id is None:
            views = await chat.list_sessions(caller)
            return SessionListResponse(
                sessions=[ChatSessionInfo(**ChatSessionInfo.fields_of(v.session, v.agent)) for v in views]
            )
        view = await chat.view(caller, session_id)
        fields = ChatSessionInfo.fields_of(view.session, view.agent)
        return SessionResponse(**fields, messages=build_messages(view.said), pending=pending_calls(view.pending))

    @api.delete("/agents/sessions", responses=ERROR_RESPONSES, summary="End a session and what is under way in it")
    async def delete_session(request: SessionRequest, caller: CurrentCaller) -> SuccessResponse:
        check_user_id(caller, request.user_id)
        await chat.delete(caller, request.session_id)
        return SuccessResponse()

    @api.post("/agents/sessions/restore", responses=ERROR_RESPONSES, summary="Open a session again that has run out")
    async def restore_session(request: RestoreSessionRequest, caller: CurrentCaller) -> RestoreSessionResponse:
        check_user_id(caller, request.user_id)
        restored = await chat.restore(caller, request.session_id, request.agent_id)
        return RestoreSessionResponse(session_id=request.session_id, restored=restored)


def _add_message_routes(api: FastAPI, chat: ChatService) -> None:
    @api.post("/agents/messages", responses=ERROR_RESPONSES, summary="Say something; the reply is streamed")
    async def send_message(request: NewMessageRequest, caller: CurrentCaller, token: CurrentToken) -> SentResponse:
        check_user_id(caller, request.user_id)
        taken = await chat.send_message(caller, request.session_id, request.message, token)
        return SentResponse(session_id=request.session_id, message_id=taken.message_id, queued=taken.queued)

    @api.post("/agents/approvals", responses=ERROR_RESPONSES, summary="Approve or reject the tool calls that wait")
    async def send_approvals(request: ApprovalsRequest, caller: CurrentCaller, token: CurrentToken) -> SentResponse:
        check_user_id(caller, request.user_id)
        words = [word.approval() for word in request.approvals]
        taken = await chat.approve(caller, request.session_id, words, token)
        return SentResponse(session_id=request.session_id, message_id=taken.message_id, queued=taken.queued)

    @api.post("/agents/cancel", responses=ERROR_RESPONSES, summary="Stop what is under way in a session")
    async def cancel(request: SessionRequest, caller: CurrentCaller) -> CancelSessionResponse:
        check_user_id(caller, request.user_id)
        cancelled = await chat.cancel(caller, request.session_id)
        return CancelSessionResponse(session_id=request.session_id, cancelled=cancelled)

    @api.get(
        "/agents/stream",
        response_class=Response,
        responses=ERROR_RESPONSES | STREAM_RESPONSES,
        summary="The replies of a session, as they come to be",
    )
    async def follow(
        caller: CurrentCaller,
        session_id: Annotated[str, Query(alias="sessionId", min_length=1)],
        last_event_id: Annotated[str | None, Header(alias="Last-Event-ID")] = None,
    ) -> Response:
        heard = await chat.listen(caller, session_id, parse_event_id(last_event_id))
        return stream_response(session_id, heard, chat.close)
