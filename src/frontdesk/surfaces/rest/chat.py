"""The chat API: sessions of people with agents, messages, streams, approvals, and a cancel that cancels."""

from typing import Annotated, Any

from fastapi import FastAPI, Header, Query
from starlette.responses import Response

from frontdesk.agents.chat.service import Chat
from frontdesk.surfaces.rest.calls import Token, Who, same_person
from frontdesk.surfaces.rest.events import place_of, stream
from frontdesk.surfaces.rest.history import messages, waiting
from frontdesk.surfaces.rest.shapes import (
    MESSAGE,
    REFUSED,
    SESSION,
    AgentShape,
    Cancelled,
    Done,
    GivenWords,
    NewMessage,
    NewSession,
    OneSession,
    OpenedSession,
    Restored,
    RestoredSession,
    Sent,
    SessionList,
    SessionShape,
    WholeSession,
)

EVENTS = f"""data: {{"type": "connected", "sessionId": "{SESSION}"}}

id: {MESSAGE}:1
data: {{"sessionId": "{SESSION}", "messageId": "{MESSAGE}", "type": "start", "content": ""}}

id: {MESSAGE}:2
data: {{"sessionId": "{SESSION}", "messageId": "{MESSAGE}", "type": "token", "content": "Nothing."}}

id: {MESSAGE}:3:end
data: {{"sessionId": "{SESSION}", "messageId": "{MESSAGE}", "type": "end", "content": "Nothing."}}

"""
STREAMED: dict[int | str, dict[str, Any]] = {
    200: {"description": "Server-sent events.", "content": {"text/event-stream": {"example": EVENTS}}}
}


def add_chat(api: FastAPI, chat: Chat) -> None:
    """Put the routes under /agents."""
    _add_sessions(api, chat)
    _add_talk(api, chat)


def _add_sessions(api: FastAPI, chat: Chat) -> None:
    @api.post("/agents/sessions", responses=REFUSED, summary="Open a session with an agent")
    async def open_session(given: NewSession, caller: Who) -> OpenedSession:
        same_person(caller, given.user_id)
        view = await chat.open(caller, given.agent_id)
        return OpenedSession(
            session_id=view.session.id,
            agent_id=view.agent.id,
            created_at=view.session.created_at,
            agent=AgentShape.of(view.agent),
        )

    @api.get(
        "/agents/sessions",
        responses=REFUSED,
        response_model_exclude_none=True,
        summary="One session with what was said in it, or all of one's own",
    )
    async def show_sessions(
        caller: Who,
        session_id: Annotated[str | None, Query(alias="sessionId")] = None,
        user_id: Annotated[str | None, Query(alias="userId")] = None,
    ) -> WholeSession | SessionList:
        same_person(caller, user_id)
        if session_id is None:
            views = await chat.mine(caller)
            return SessionList(sessions=[SessionShape(**SessionShape.fields_of(v.session, v.agent)) for v in views])
        view = await chat.view(caller, session_id)
        fields = SessionShape.fields_of(view.session, view.agent)
        return WholeSession(**fields, messages=messages(view.said), pending=waiting(view.pending))

    @api.delete("/agents/sessions", responses=REFUSED, summary="End a session and what is under way in it")
    async def delete_session(given: OneSession, caller: Who) -> Done:
        same_person(caller, given.user_id)
        await chat.delete(caller, given.session_id)
        return Done()

    @api.post("/agents/sessions/restore", responses=REFUSED, summary="Open a session again that has run out")
    async def restore_session(given: RestoredSession, caller: Who) -> Restored:
        same_person(caller, given.user_id)
        restored = await chat.restore(caller, given.session_id, given.agent_id)
        return Restored(session_id=given.session_id, restored=restored)


def _add_talk(api: FastAPI, chat: Chat) -> None:
    @api.post("/agents/messages", responses=REFUSED, summary="Say something; the reply is streamed")
    async def send_message(given: NewMessage, caller: Who, token: Token) -> Sent:
        same_person(caller, given.user_id)
        taken = await chat.say(caller, given.session_id, given.message, token)
        return Sent(session_id=given.session_id, message_id=taken.message_id, queued=taken.queued)

    @api.post("/agents/approvals", responses=REFUSED, summary="Approve or reject the tool calls that wait")
    async def send_approvals(given: GivenWords, caller: Who, token: Token) -> Sent:
        same_person(caller, given.user_id)
        words = [word.approval() for word in given.approvals]
        taken = await chat.approve(caller, given.session_id, words, token)
        return Sent(session_id=given.session_id, message_id=taken.message_id, queued=taken.queued)

    @api.post("/agents/cancel", responses=REFUSED, summary="Stop what is under way in a session")
    async def cancel(given: OneSession, caller: Who) -> Cancelled:
        same_person(caller, given.user_id)
        cancelled = await chat.cancel(caller, given.session_id)
        return Cancelled(session_id=given.session_id, cancelled=cancelled)

    @api.get(
        "/agents/stream",
        response_class=Response,
        responses=REFUSED | STREAMED,
        summary="The replies of a session, as they come to be",
    )
    async def follow(
        caller: Who,
        session_id: Annotated[str, Query(alias="sessionId", min_length=1)],
        last_event_id: Annotated[str | None, Header(alias="Last-Event-ID")] = None,
    ) -> Response:
        heard = await chat.listen(caller, session_id, place_of(last_event_id))
        return stream(session_id, heard, chat.close)
