"""What the chat API takes and gives, as clients write it: camelCase, with examples for its description."""

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from frontdesk.agents.chat.model import Session
from frontdesk.agents.host import Agent, Approval
from frontdesk.loop.events import StopReason

MESSAGE_CHARACTERS = 200_000
SESSION = "0f8fad5bd9cb469fa16570867728950e"
MESSAGE = "7c9e6679f3b24d1aa2b8c0de"
AGENT = "agent-3b2c1a90-5d7e-4f6a-8b9c-0d1e2f3a4b5c"


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
SessionId = Annotated[str, Field(min_length=1, max_length=200, examples=[SESSION])]
AgentId = Annotated[str, Field(min_length=1, max_length=200, examples=[AGENT])]
UserId = Annotated[
    str | None, Field(description="Need not be given; if it is, it must be the person whose credential is used.")
]


class Shape(BaseModel):
    """JSON with camelCase names; what is not known is ignored, as older clients send more than is needed."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True)


class NewSession(Shape):
    """With which agent."""

    agent_id: AgentId
    user_id: UserId = None


class OneSession(Shape):
    """Which session."""

    session_id: SessionId
    user_id: UserId = None


class RestoredSession(OneSession):
    """A session to be opened again."""

    agent_id: AgentId
    messages: list[Any] | None = Field(None, description="Accepted and not used: what was said is kept by the agent.")


class NewMessage(OneSession):
    """What the person says."""

    message: Annotated[
        str, Field(min_length=1, max_length=MESSAGE_CHARACTERS, examples=["What is due today?"]), Storable, NotBlank
    ]
    context_messages: list[Any] | None = Field(
        None, description="Accepted and not used: what was said is kept by the agent."
    )


class GivenWord(Shape):
    """The person's word on one tool call."""

    call_id: Annotated[str, Field(min_length=1, max_length=200, examples=["call_1"]), Storable]
    approve: bool
    reason: Annotated[
        str, Field(max_length=10_000, description="Told to the agent where the call is rejected."), Storable
    ] = ""

    def approval(self) -> Approval:
        return Approval(self.call_id, self.approve, self.reason)


class GivenWords(OneSession):
    """The person's word on every tool call that waits."""

    approvals: Annotated[list[GivenWord], Field(min_length=1, max_length=100)]


class AgentShape(Shape):
    """An agent."""

    id: Annotated[str, Field(examples=[AGENT])]
    name: Annotated[str, Field(examples=["Ada"])]
    description: str
    model: str | None

    @classmethod
    def of(cls, agent: Agent) -> "AgentShape":
        return cls(id=agent.id, name=agent.name, description=agent.description, model=agent.model)


class OpenedSession(Shape):
    """A new session."""

    session_id: SessionId
    agent_id: AgentId
    created_at: datetime
    agent: AgentShape


class ToolCallShape(Shape):
    """A tool call as far as it has come."""

    id: str
    name: str
    parameters: dict[str, Any]
    status: Literal["pending", "running", "completed", "error"]
    result: str | None = None
    error: str | None = None


class MessageShape(Shape):
    """Something that was said, by the person or by the agent."""

    id: str
    type: Literal["user", "agent"]
    content: str
    timestamp: datetime
    tool_calls: list[ToolCallShape] = Field(default_factory=list[ToolCallShape])
    stop_reason: StopReason | None = None


class SessionShape(Shape):
    """A session of one's own."""

    id: SessionId
    session_id: SessionId
    user_id: str
    agent_id: AgentId
    created_at: datetime
    expires_at: datetime
    agent: AgentShape

    @classmethod
    def fields_of(cls, session: Session, agent: Agent) -> dict[str, Any]:
        return {
            "id": session.id,
            "session_id": session.id,
            "user_id": session.user_id,
            "agent_id": session.agent_id,
            "created_at": session.created_at,
            "expires_at": session.expires_at,
            "agent": AgentShape.of(agent),
        }


class WholeSession(SessionShape):
    """A session with what was said in it, and the tool calls that wait for approval."""

    messages: list[MessageShape]
    pending: list[ToolCallShape]


class SessionList(Shape):
    """One's own sessions, the newest first."""

    sessions: list[SessionShape]


class Done(Shape):
    """It is done."""

    success: Literal[True] = True


class Sent(Done):
    """Taken; the reply is told by the stream."""

    session_id: SessionId
    message_id: Annotated[str, Field(examples=[MESSAGE], description="Under this id the reply is streamed.")]
    message: str = "Received; the reply is told by the stream"
    queued: Annotated[
        bool,
        Field(description="It waits behind another reply, in the server's memory: lost if the server dies before."),
    ] = False


class Restored(Done):
    """The session is open."""

    session_id: SessionId
    restored: Annotated[bool, Field(description="Whether it had run out.")]
    messages_restored: int = 0


class Cancelled(Done):
    """Nothing is under way any more."""

    session_id: SessionId
    cancelled: Annotated[bool, Field(description="Whether anything was.")]


class Problem(BaseModel):
    """What went wrong."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"error": "Session not found"}]})

    error: str
    details: Any = None


# Of any route.
REFUSED: dict[int | str, dict[str, Any]] = {"4XX": {"model": Problem}, "5XX": {"model": Problem}}
