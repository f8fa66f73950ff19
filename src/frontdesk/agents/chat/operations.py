"""Declares what can be asked about chats: sessions, messages, approvals and cancelling, each for one person."""

from typing import Annotated

from pydantic import Field

from frontdesk.agents.chat.api_models import (
    ApprovalsRequest,
    CancelSessionResponse,
    NewMessageRequest,
    NewSessionRequest,
    NewSessionResponse,
    RestoreSessionRequest,
    RestoreSessionResponse,
    SentResponse,
    SessionFilter,
    SessionListResponse,
    SessionRequest,
    SessionResponse,
)
from frontdesk.agents.chat.service import ChatService
from frontdesk.errors import Denied
from frontdesk.identity.model import Caller
from frontdesk.identity.rights import AGENTS_CHAT, AGENTS_READ
from frontdesk.operations import Call, Effect, IdentifyBy, Operation, RestRoute, SuccessResponse

PATH = "/agents"


def check_user_id(caller: Caller, claimed: str | None) -> None:
    """Check the person in a request: the credential identifies the caller, and a request may only repeat the id."""
    if claimed is not None and claimed != caller.user_id:
        raise Denied("userId is not the person whose credential this is; leave it out")


async def open_session(chat: ChatService, call: Call, request: NewSessionRequest) -> NewSessionResponse:
    check_user_id(call.caller, request.user_id)
    return NewSessionResponse.of(await chat.open(call.caller, request.agent_id))


async def show_sessions(chat: ChatService, call: Call, request: SessionFilter) -> SessionResponse | SessionListResponse:
    check_user_id(call.caller, request.user_id)
    if request.session_id is None:
        return SessionListResponse.of(await chat.list_sessions(call.caller))
    return SessionResponse.with_history(await chat.view(call.caller, request.session_id))


async def delete_session(chat: ChatService, call: Call, request: SessionRequest) -> SuccessResponse:
    check_user_id(call.caller, request.user_id)
    await chat.delete(call.caller, request.session_id)
    return SuccessResponse()


async def restore_session(chat: ChatService, call: Call, request: RestoreSessionRequest) -> RestoreSessionResponse:
    check_user_id(call.caller, request.user_id)
    restored = await chat.restore(call.caller, request.session_id, request.agent_id)
    return RestoreSessionResponse(session_id=request.session_id, restored=restored)


async def send_message(chat: ChatService, call: Call, request: NewMessageRequest) -> SentResponse:
    check_user_id(call.caller, request.user_id)
    accepted = await chat.send_message(call.caller, request.session_id, request.message, call.token)
    return SentResponse.of(request.session_id, accepted)


async def send_approvals(chat: ChatService, call: Call, request: ApprovalsRequest) -> SentResponse:
    check_user_id(call.caller, request.user_id)
    approvals = [decision.approval() for decision in request.approvals]
    return SentResponse.of(
        request.session_id, await chat.approve(call.caller, request.session_id, approvals, call.token)
    )


async def cancel(chat: ChatService, call: Call, request: SessionRequest) -> CancelSessionResponse:
    check_user_id(call.caller, request.user_id)
    cancelled = await chat.cancel(call.caller, request.session_id)
    return CancelSessionResponse(session_id=request.session_id, cancelled=cancelled)


# People talk with agents here, and do not act as one. The service says which credentials are of no person.
CHAT_OPERATIONS: tuple[Operation, ...] = (
    Operation(
        name="open_session",
        summary="Open a session with an agent",
        request=NewSessionRequest,
        run=open_session,
        scopes=(AGENTS_CHAT,),
        effect=Effect.ADDS,
        rest=RestRoute(
            method="POST", path=f"{PATH}/sessions", response=NewSessionResponse, identify_by=IdentifyBy.PERSON
        ),
    ),
    Operation(
        name="show_sessions",
        summary="One session with what was said in it, or all of one's own",
        request=SessionFilter,
        run=show_sessions,
        scopes=(AGENTS_READ,),
        rest=RestRoute(
            method="GET",
            path=f"{PATH}/sessions",
            response=Annotated[SessionResponse | SessionListResponse, Field(title="Response Show Sessions")],
            identify_by=IdentifyBy.PERSON,
            omits_nulls=True,
        ),
    ),
    Operation(
        name="delete_session",
        summary="End a session and what is under way in it",
        request=SessionRequest,
        run=delete_session,
        scopes=(AGENTS_CHAT,),
        effect=Effect.CHANGES,
        rest=RestRoute(
            method="DELETE",
            path=f"{PATH}/sessions",
            body=SessionRequest,
            response=SuccessResponse,
            identify_by=IdentifyBy.PERSON,
        ),
    ),
    Operation(
        name="restore_session",
        summary="Open a session again that has run out",
        request=RestoreSessionRequest,
        run=restore_session,
        scopes=(AGENTS_CHAT,),
        effect=Effect.CHANGES,
        rest=RestRoute(
            method="POST",
            path=f"{PATH}/sessions/restore",
            response=RestoreSessionResponse,
            identify_by=IdentifyBy.PERSON,
        ),
    ),
    Operation(
        name="send_message",
        summary="Say something; the reply is streamed",
        request=NewMessageRequest,
        run=send_message,
        scopes=(AGENTS_CHAT,),
        effect=Effect.ADDS,
        rest=RestRoute(method="POST", path=f"{PATH}/messages", response=SentResponse, identify_by=IdentifyBy.PERSON),
    ),
    Operation(
        name="send_approvals",
        summary="Approve or reject the tool calls that wait",
        request=ApprovalsRequest,
        run=send_approvals,
        scopes=(AGENTS_CHAT,),
        effect=Effect.CHANGES,
        rest=RestRoute(method="POST", path=f"{PATH}/approvals", response=SentResponse, identify_by=IdentifyBy.PERSON),
    ),
    Operation(
        name="cancel",
        summary="Stop what is under way in a session",
        request=SessionRequest,
        run=cancel,
        scopes=(AGENTS_CHAT,),
        effect=Effect.CHANGES,
        rest=RestRoute(
            method="POST", path=f"{PATH}/cancel", response=CancelSessionResponse, identify_by=IdentifyBy.PERSON
        ),
    ),
)
