"""What was said, and what a turn starts from."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from pydantic_ai.messages import ModelMessage

from frontdesk.agents.embedded.model import AttachedTool
from frontdesk.agents.events import ApprovalRequest, StopReason
from frontdesk.agents.host import Agent, Block


@dataclass(frozen=True, slots=True)
class StoredMessage:
    """A message with its place in the conversation."""

    id: int
    turn_id: str
    at: datetime
    message: ModelMessage


@dataclass(frozen=True, slots=True)
class Scene:
    """Everything a turn starts from, read in one go."""

    agent: Agent
    conversation_id: str
    user_id: str | None
    summary: str | None
    blocks: Sequence[Block]
    tools: Sequence[AttachedTool]
    past: Sequence[StoredMessage]
    pending: Sequence[ApprovalRequest] = ()


@dataclass(frozen=True, slots=True)
class PastTurn:
    """How an earlier turn ended."""

    id: str
    stop: StopReason | None
    ended_at: datetime | None
    pending: Sequence[ApprovalRequest] = ()
