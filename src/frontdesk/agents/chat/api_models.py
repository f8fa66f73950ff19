"""Defines what is asked of the chat API, and what it answers."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from frontdesk.agents.chat.model import AcceptedMessage, SessionView, gap_between
from frontdesk.agents.host import Agent, Approval, HistoryItem
from frontdesk.coercion import NotBlank, Storable
from frontdesk.llm.events import (
    ApprovalRequest,
    Done,
    StopReason,
    TextChunk,
    ToolCall,
    ToolReturn,
    ToolStatus,
    UserMedia,
    UserText,
)
from frontdesk.operations import SuccessResponse

MAX_MESSAGE_CHARACTERS = 200_000
EXAMPLE_SESSION = "0f8fad5bd9cb469fa16570867728950e"
EXAMPLE_AGENT = "agent-3b2c1a90-5d7e-4f6a-8b9c-0d1e2f3a4b5c"

SessionId = Annotated[str, Field(min_length=1, max_length=200, examples=[EXAMPLE_SESSION])]
AgentId = Annotated[str, Field(min_length=1, max_length=200, examples=[EXAMPLE_AGENT])]
UserId = Annotated[
    str | None, Field(description="Need not be given; if it is, it must be the person whose credential is used.")
]


class ChatApiModel(BaseModel):
    """JSON with camelCase names; unknown fields are ignored, as older clients send more than is needed."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, defer_build=True)


class NewSessionRequest(ChatApiModel):
    """The agent of the new session."""

    agent_id: AgentId
    user_id: UserId = None


class SessionRequest(ChatApiModel):
    """The session."""

    session_id: SessionId
    user_id: UserId = None


class RestoreSessionRequest(SessionRequest):
    """A session to open again."""

    agent_id: AgentId
    messages: list[Any] | None = Field(None, description="Accepted and not used: what was said is kept by the agent.")


class NewMessageRequest(SessionRequest):
    """The person's message."""

    message: Annotated[
        str, Field(min_length=1, max_length=MAX_MESSAGE_CHARACTERS, examples=["What is due today?"]), Storable, NotBlank
    ]
    context_messages: list[Any] | None = Field(
        None, description="Accepted and not used: what was said is kept by the agent."
    )


class ApprovalDecision(ChatApiModel):
    """The person's decision on one tool call."""

    call_id: Annotated[str, Field(min_length=1, max_length=200, examples=["call_1"]), Storable]
    approve: bool
    reason: Annotated[
        str, Field(max_length=10_000, description="Told to the agent where the call is rejected."), Storable
    ] = ""

    def approval(self) -> Approval:
        return Approval(self.call_id, self.approve, self.reason)


class ApprovalsRequest(SessionRequest):
    """The person's decisions on the tool calls that wait."""

    approvals: Annotated[list[ApprovalDecision], Field(min_length=1, max_length=100)]


class SessionFilter(ChatApiModel):
    """One session by its id, or all of the person's own."""

    session_id: str | None = None
    user_id: str | None = None


EXAMPLE_MESSAGE = "7c9e6679f3b24d1aa2b8c0de"


class ChatAgent(ChatApiModel):
    """An agent."""

    id: Annotated[str, Field(examples=[EXAMPLE_AGENT])]
    name: Annotated[str, Field(examples=["Ada"])]
    description: str
    # Some answers leave out what is null.
    model: str | None = None

    @classmethod
    def of(cls, agent: Agent) -> "ChatAgent":
        return cls(id=agent.id, name=agent.name, description=agent.description, model=agent.model)


class NewSessionResponse(ChatApiModel):
    """A new session."""

    session_id: SessionId
    agent_id: AgentId
    created_at: datetime
    agent: ChatAgent

    @classmethod
    def of(cls, view: SessionView) -> "NewSessionResponse":
        session, agent = view.session, view.agent
        return cls(session_id=session.id, agent_id=agent.id, created_at=session.created_at, agent=ChatAgent.of(agent))


class ChatToolCall(ChatApiModel):
    """A tool call in its present state."""

    id: str
    name: str
    parameters: dict[str, Any]
    status: Literal["pending", "running", "completed", "error"]
    result: str | None = None
    error: str | None = None

    @classmethod
    def of(cls, call: ToolCall | ApprovalRequest, status: Literal["pending", "running"]) -> "ChatToolCall":
        return cls(id=call.call_id, name=call.name, parameters=dict(call.arguments), status=status)


class ChatMessage(ChatApiModel):
    """A message of the person or the agent."""

    id: str
    type: Literal["user", "agent"]
    content: str
    timestamp: datetime
    tool_calls: list[ChatToolCall] = Field(default_factory=list[ChatToolCall])
    stop_reason: StopReason | None = None


class ChatSessionInfo(ChatApiModel):
    """One of the person's own sessions."""

    id: SessionId
    session_id: SessionId
    user_id: str
    agent_id: AgentId
    created_at: datetime
    expires_at: datetime
    agent: ChatAgent

    @classmethod
    def of(cls, view: SessionView) -> "ChatSessionInfo":
        return cls(**cls.fields_of(view))

    @staticmethod
    def fields_of(view: SessionView) -> dict[str, Any]:
        session = view.session
        return {
            "id": session.id,
            "session_id": session.id,
            "user_id": session.user_id,
            "agent_id": session.agent_id,
            "created_at": session.created_at,
            "expires_at": session.expires_at,
            "agent": ChatAgent.of(view.agent),
        }


class SessionResponse(ChatSessionInfo):
    """A session with its messages, and the tool calls that wait for approval."""

    messages: list[ChatMessage]
    pending: list[ChatToolCall]

    @classmethod
    def with_history(cls, view: SessionView) -> "SessionResponse":
        return cls(
            **cls.fields_of(view),
            messages=build_messages(view.said),
            pending=[ChatToolCall.of(request, "pending") for request in view.pending],
        )


class SessionListResponse(ChatApiModel):
    """The person's own sessions, the newest first."""

    sessions: list[ChatSessionInfo]

    @classmethod
    def of(cls, views: Sequence[SessionView]) -> "SessionListResponse":
        return cls(sessions=[ChatSessionInfo.of(view) for view in views])


class SentResponse(ChatApiModel, SuccessResponse):
    """The message was accepted; the stream has the reply."""

    session_id: SessionId
    message_id: Annotated[str, Field(examples=[EXAMPLE_MESSAGE], description="Under this id the reply is streamed.")]
    message: str = "Received; the reply is told by the stream"
    queued: Annotated[
        bool,
        Field(description="It waits behind another reply, in the server's memory: lost if the server dies before."),
    ] = False

    @classmethod
    def of(cls, session_id: str, accepted: AcceptedMessage) -> "SentResponse":
        return cls(session_id=session_id, message_id=accepted.message_id, queued=accepted.queued)


class RestoreSessionResponse(ChatApiModel, SuccessResponse):
    """The session is open."""

    session_id: SessionId
    restored: Annotated[bool, Field(description="Whether it had run out.")]
    messages_restored: int = 0


class CancelSessionResponse(ChatApiModel, SuccessResponse):
    """No reply is running any more."""

    session_id: SessionId
    cancelled: Annotated[bool, Field(description="Whether anything was.")]


def build_messages(items: Sequence[HistoryItem]) -> list[ChatMessage]:
    """The person's messages and the agent's replies, one of each per turn, in order."""
    history = MessageHistory()
    for item in items:
        history.add(item)
    return history.messages


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

    def add(self, item: HistoryItem) -> None:
        if isinstance(item.event, UserText):
            self.messages.append(ChatMessage(id=item.id, type="user", content=item.event.text, timestamp=item.at))
            return
        if isinstance(item.event, UserMedia):
            # The format of a message has no field for media.
            return
        if item.turn_id not in self._replies:
            reply = ChatMessage(id=item.turn_id, type="agent", content="", timestamp=item.at)
            self._replies[item.turn_id] = reply
            self.messages.append(reply)
        self._add_to_reply(self._replies[item.turn_id], item)

    def _add_to_reply(self, reply: ChatMessage, item: HistoryItem) -> None:
        match item.event:
            case TextChunk(text):
                reply.content += (gap_between(reply.content, text) if item.turn_id in self._after_tool else "") + text
                self._after_tool.discard(item.turn_id)
            case ToolCall():
                self._show(reply, ChatToolCall.of(item.event, "running"))
                self._after_tool.add(item.turn_id)
            case ToolReturn():
                self._settle(reply, item.event)
                self._after_tool.add(item.turn_id)
            case ApprovalRequest(call_id):
                reply.tool_calls = [call for call in reply.tool_calls if call.id != call_id]
                self._show(reply, ChatToolCall.of(item.event, "pending"))
            case Done(stop):
                reply.stop_reason = stop
            case _:
                pass

    def _show(self, reply: ChatMessage, call: ChatToolCall) -> None:
        reply.tool_calls.append(call)
        self._calls[call.id] = call

    def _settle(self, reply: ChatMessage, returned: ToolReturn) -> None:
        if returned.call_id not in self._calls:
            self._show(reply, ChatToolCall.of(ToolCall(returned.call_id, returned.name, {}), "running"))
        call = self._calls[returned.call_id]
        if returned.status is ToolStatus.OK:
            call.status, call.result = "completed", returned.text
        else:
            call.status, call.error = "error", returned.text
