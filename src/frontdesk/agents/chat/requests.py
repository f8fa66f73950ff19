"""Defines what can be asked about chats, in camelCase as clients write it."""

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from frontdesk.agents.host import Approval
from frontdesk.coercion import NotBlank, Storable

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
