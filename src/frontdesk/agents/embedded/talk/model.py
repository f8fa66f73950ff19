"""What was said, and what a turn starts from."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse, UserPromptPart

from frontdesk.agents.embedded.model import AttachedTool
from frontdesk.agents.host import Agent, Block
from frontdesk.loop.events import ApprovalRequest, StopReason
from frontdesk.loop.messages import text_of


@dataclass(frozen=True, slots=True)
class StoredMessage:
    """A message with its place in the conversation."""

    id: int
    turn_id: str
    at: datetime
    message: ModelMessage


def has_words(message: ModelMessage) -> bool:
    """Whether the person says something in this message."""
    return isinstance(message, ModelRequest) and any(isinstance(part, UserPromptPart) for part in message.parts)


def turn_starts(messages: Sequence[StoredMessage]) -> Sequence[int]:
    """Where the person began a turn; what went on after an approval, or was said in between, belongs to that turn."""
    turn_ids = [None, *(one.turn_id for one in messages)]
    return [at for at, one in enumerate(messages) if has_words(one.message) and one.turn_id != turn_ids[at]]


@dataclass(frozen=True, slots=True)
class Speaker:
    """Who sends a turn: a person by id, or nobody; `runs` where they run the installation."""

    user_id: str | None
    runs: bool = False


@dataclass(frozen=True, slots=True)
class Scene:
    """Everything a turn starts from, read in one go.

    `user_id` is the person the turn is for, whose conversation it is, and `person` their name where it is known.
    `runs`: that person runs the agent.
    """

    agent: Agent
    conversation_id: str
    user_id: str | None
    summary: str | None
    blocks: Sequence[Block]
    tools: Sequence[AttachedTool]
    past: Sequence[StoredMessage]
    pending: Sequence[ApprovalRequest] = ()
    person: str | None = None
    runs: bool = False


# How a turn ends that was taken as far as it would go.
TAKEN = frozenset(
    {
        StopReason.END_TURN,
        StopReason.MAX_STEPS,
        StopReason.MAX_TOKENS,
        StopReason.REFUSAL,
        StopReason.REQUIRES_APPROVAL,
    }
)


@dataclass(frozen=True, slots=True)
class Earlier:
    """The turns that were begun under one name: how the last of them ended, and all that was said in them."""

    turn_ids: frozenset[str]
    stop: StopReason
    said: Sequence[ModelMessage]

    @property
    def was_taken(self) -> bool:
        return self.stop in TAKEN

    @property
    def answer(self) -> str:
        texts = (text_of(message).strip() for message in self.said if isinstance(message, ModelResponse))
        return "\n\n".join(text for text in texts if text)

    def stands_last(self, past: Sequence[StoredMessage]) -> bool:
        """Whether nothing was said in the conversation since, so that the turn can go on as if it had not ended."""
        place = next((index for index, one in enumerate(past) if one.turn_id in self.turn_ids), len(past))
        return place < len(past) and all(one.turn_id in self.turn_ids for one in past[place:])


@dataclass(frozen=True, slots=True)
class PastTurn:
    """How an earlier turn ended."""

    id: str
    stop: StopReason | None
    ended_at: datetime | None
    pending: Sequence[ApprovalRequest] = ()
