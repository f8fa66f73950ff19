"""Defines the state from which a turn starts, and converts stored messages into the events of a history."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelRequestPart,
    ModelResponse,
    ModelResponsePart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)

from frontdesk.agents.embedded.store import AttachedTool
from frontdesk.agents.host import Agent, HistoryItem, MemoryBlock
from frontdesk.llm.events import (
    ApprovalRequest,
    Done,
    Event,
    StopReason,
    TextChunk,
    ThoughtChunk,
    ToolCall,
    ToolReturn,
    ToolStatus,
    UserMedia,
    UserText,
)
from frontdesk.llm.messages import (
    TOOL_INTERRUPTED,
    message_text,
    prompt_media,
    prompt_text,
    stored_events,
    tool_return_status,
    unanswered_calls,
)


@dataclass(frozen=True, slots=True)
class StoredMessage:
    """A message with its place in the conversation."""

    id: int
    turn_id: str
    at: datetime
    message: ModelMessage


def has_words(message: ModelMessage) -> bool:
    """Whether this message contains a text or media of the person."""
    return isinstance(message, ModelRequest) and any(isinstance(part, UserPromptPart) for part in message.parts)


def turn_starts(messages: Sequence[StoredMessage]) -> Sequence[int]:
    """The indexes at which turns begin; messages after an approval, or during a turn, belong to that turn."""
    turn_ids = [None, *(one.turn_id for one in messages)]
    return [at for at, one in enumerate(messages) if has_words(one.message) and one.turn_id != turn_ids[at]]


@dataclass(frozen=True, slots=True)
class TurnSender:
    """Who sends a turn: a person by id, or nobody; `runs` is true if they run the installation."""

    user_id: str | None
    runs: bool = False


@dataclass(frozen=True, slots=True)
class TurnState:
    """The state from which a turn starts, read in one transaction.

    `user_id` is the person of the turn and of the conversation; `person` is their name, if known. `runs`: that person
    runs the agent.
    """

    agent: Agent
    conversation_id: str
    user_id: str | None
    summary: str | None
    blocks: Sequence[MemoryBlock]
    tools: Sequence[AttachedTool]
    past: Sequence[StoredMessage]
    pending: Sequence[ApprovalRequest] = ()
    person: str | None = None
    runs: bool = False


# The stop reasons of turns that were not cut short.
COMPLETED_STOPS = frozenset(
    {
        StopReason.END_TURN,
        StopReason.MAX_STEPS,
        StopReason.MAX_TOKENS,
        StopReason.REFUSAL,
        StopReason.REQUIRES_APPROVAL,
    }
)


@dataclass(frozen=True, slots=True)
class EarlierAttempt:
    """The turns that were begun for one prompt: how the last of them ended, and their messages."""

    turn_ids: frozenset[str]
    stop: StopReason
    messages: Sequence[ModelMessage]

    @property
    def completed(self) -> bool:
        return self.stop in COMPLETED_STOPS

    @property
    def answer(self) -> str:
        texts = (message_text(message).strip() for message in self.messages if isinstance(message, ModelResponse))
        return "\n\n".join(text for text in texts if text)

    def is_newest(self, past: Sequence[StoredMessage]) -> bool:
        """Whether these messages are the newest in the conversation, so that the turn can be continued."""
        place = next((index for index, one in enumerate(past) if one.turn_id in self.turn_ids), len(past))
        return place < len(past) and all(one.turn_id in self.turn_ids for one in past[place:])


@dataclass(frozen=True, slots=True)
class PastTurn:
    """How an earlier turn ended."""

    id: str
    stop: StopReason | None
    ended_at: datetime | None
    pending: Sequence[ApprovalRequest] = ()


def build_history(messages: Sequence[StoredMessage], turns: Sequence[PastTurn]) -> Sequence[HistoryItem]:
    """The messages as events in order, with a `Done` at the end of each turn."""
    ended = {turn.id: turn for turn in turns}
    pending = {request.call_id for turn in turns for request in turn.pending}
    said = [one.message for one in messages]
    # While a turn runs, its newest calls are running; while a call waits for approval, those after it wait too.
    underway = _newest_calls(said) if any(turn.stop is None or turn.pending for turn in turns) else set[str]()
    lost = {call.tool_call_id for call in unanswered_calls(said)} - pending - underway
    found: list[HistoryItem] = []
    for index, stored in enumerate(messages):
        for number, event in enumerate(_message_events(stored.message, lost)):
            found.append(HistoryItem(f"{stored.id}.{number}", stored.turn_id, stored.at, event))
        last = index + 1 == len(messages) or messages[index + 1].turn_id != stored.turn_id
        turn = ended.get(stored.turn_id)
        if last and turn is not None and turn.stop is not None:
            waiting: list[Event] = list(turn.pending)
            for number, event in enumerate([*waiting, Done(turn.stop)]):
                found.append(HistoryItem(f"{turn.id}.{number}", turn.id, turn.ended_at or stored.at, event))
    return found


def _newest_calls(messages: Sequence[ModelMessage]) -> set[str]:
    last = next((one for one in reversed(messages) if isinstance(one, ModelResponse)), None)
    return {part.tool_call_id for part in last.parts if isinstance(part, ToolCallPart)} if last else set()


def _message_events(message: ModelMessage, lost: set[str]) -> Iterator[Event]:
    parts: Iterable[ModelRequestPart | ModelResponsePart] = message.parts
    for part in parts:
        match part:
            case UserPromptPart():
                yield from _user_events(part)
            case TextPart(content=text) if text:
                yield TextChunk(text)
            case ThinkingPart(content=text) if text:
                yield ThoughtChunk(text)
            case ToolCallPart() as call:
                yield ToolCall(call.tool_call_id, call.tool_name, call.args_as_dict(raise_if_invalid=False))
                if call.tool_call_id in lost:
                    yield ToolReturn(call.tool_call_id, call.tool_name, TOOL_INTERRUPTED, ToolStatus.INTERRUPTED)
            case ToolReturnPart() as answer:
                yield ToolReturn(answer.tool_call_id, answer.tool_name, str(answer.content), tool_return_status(answer))
                yield from stored_events(answer)
            case _:
                continue


def _user_events(part: UserPromptPart) -> Iterator[Event]:
    if text := prompt_text(part):
        yield UserText(text)
    for media in prompt_media(part):
        yield UserMedia(media.media_type, media.data)
