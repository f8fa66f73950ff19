"""Defines the requests and responses of the chat API, in camelCase as its clients write them."""

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from frontdesk.agents.chat.model import ChatSession
from frontdesk.agents.host import Agent, Approval
from frontdesk.llm.events import StopReason

MAX_MESSAGE_CHARACTERS = 200_000
EXAMPLE_SESSION = "0f8fad5bd9cb469fa16570867728950e"
EXAMPLE_MESSAGE = "7c9e6679f3b24d1aa2b8c0de"
EXAMPLE_AGENT = "agent-3b2c1a90-5d7e-4f6a-8b9c-0d1e2f3a4b5c"


def _storable(text: str) -> str:
    if "\0" in text:
        raise ValueError("must not contain the character NUL")
    return text


def _not_blank(text: str) -> str:
    if not text.strip():
        raise ValueError("must not be blank")
    return text


Storable = AfterValidator(_storable)
NotBlank = AfterValidator(_not_blank)
SessionId = Annotated[str, Field(min_length=1, max_length=200, examples=[EXAMPLE_SESSION])]
AgentId = Annotated[str, Field(min_length=1, max_length=200, examples=[EXAMPLE_AGENT])]
UserId = Annotated[
    str | None, Field(description="Need not be given; if it is, it must be the person whose credential is used.")
]


class ChatApiModel(BaseModel):
    """JSON with camelCase names; unknown fields are ignored, as older clients send more than is needed."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True)


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


class ChatAgent(ChatApiModel):
    """An agent."""

    id: Annotated[str, Field(examples=[EXAMPLE_AGENT])]
    name: Annotated[str, Field(examples=["Ada"])]
    description: str
    model: str | None

    @classmethod
    def of(cls, agent: Agent) -> "ChatAgent":
        return cls(id=agent.id, name=agent.name, description=agent.description, model=agent.model)


class NewSessionResponse(ChatApiModel):
    """A new session."""

    session_id: SessionId
    agent_id: AgentId
    created_at: datetime
    agent: ChatAgent


class ChatToolCall(ChatApiModel):
    """A tool call in its present state."""

    id: str
    name: str
    parameters: dict[str, Any]
    status: Literal["pending", "running", "completed", "error"]
    result: str | None = None
    error: str | None = None


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
    def fields_of(cls, session: ChatSession, agent: Agent) -> dict[str, Any]:
        return {
            "id": session.id,
            "session_id": session.id,
            "user_id": session.user_id,
            "agent_id": session.agent_id,
            "created_at": session.created_at,
            "expires_at": session.expires_at,
            "agent": ChatAgent.of(agent),
        }


class SessionResponse(ChatSessionInfo):
    """A session with its messages, and the tool calls that wait for approval."""

    messages: list[ChatMessage]
    pending: list[ChatToolCall]


class SessionListResponse(ChatApiModel):
    """The person's own sessions, the newest first."""

    sessions: list[ChatSessionInfo]


class SuccessResponse(ChatApiModel):
    """The request succeeded."""

    success: Literal[True] = True


class SentResponse(SuccessResponse):
    """The message was accepted; the stream has the reply."""

    session_id: SessionId
    message_id: Annotated[str, Field(examples=[EXAMPLE_MESSAGE], description="Under this id the reply is streamed.")]
    message: str = "Received; the reply is told by the stream"
    queued: Annotated[
        bool,
        Field(description="It waits behind another reply, in the server's memory: lost if the server dies before."),
    ] = False


class RestoreSessionResponse(SuccessResponse):
    """The session is open."""

    session_id: SessionId
    restored: Annotated[bool, Field(description="Whether it had run out.")]
    messages_restored: int = 0


class CancelSessionResponse(SuccessResponse):
    """No reply is running any more."""

    session_id: SessionId
    cancelled: Annotated[bool, Field(description="Whether anything was.")]
