"""Defines the events of a turn, which are the same for every agent host."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class StopReason(StrEnum):
    """Why a turn ended."""

    END_TURN = "end_turn"
    REQUIRES_APPROVAL = "requires_approval"
    MAX_STEPS = "max_steps"
    MAX_TOKENS = "max_tokens"
    REFUSAL = "refusal"
    CANCELLED = "cancelled"
    INTERRUPTED = "interrupted"
    ERROR = "error"

    @property
    def is_broken(self) -> bool:
        """Whether the turn was cut short or failed, so that it has no complete answer."""
        return self in (StopReason.ERROR, StopReason.CANCELLED, StopReason.INTERRUPTED)


class FailureKind(StrEnum):
    """The kind of failure that ended a turn; each interface has its own code for it."""

    UNAUTHENTICATED = "unauthenticated"
    UNAVAILABLE = "unavailable"
    BUSY = "busy"
    RATE_LIMITED = "rate_limited"
    NOT_FOUND = "not_found"
    TOO_LONG = "too_long"
    INVALID = "invalid"
    INTERNAL = "internal"

    @property
    def is_permanent(self) -> bool:
        """Whether the same turn would fail in the same way again."""
        return self in (FailureKind.NOT_FOUND, FailureKind.TOO_LONG, FailureKind.INVALID)


class ToolStatus(StrEnum):
    """The result status of a tool call."""

    OK = "ok"
    ERROR = "error"
    DENIED = "denied"
    UNKNOWN = "unknown_tool"
    INTERRUPTED = "interrupted"


class StepStatus(StrEnum):
    """The status of a step of a plan."""

    PENDING = "pending"
    IN_PROGRESS = "in_progress"
    COMPLETED = "completed"


@dataclass(frozen=True, slots=True)
class Started:
    """The host accepted the turn; the first event of every turn."""

    turn_id: str
    conversation_id: str


@dataclass(frozen=True, slots=True)
class UserText:
    """A text of the person: in a history, or in a turn if it arrived while the agent was working."""

    text: str


@dataclass(frozen=True, slots=True)
class UserMedia:
    """An image or audio that came with the person's text; only in a history."""

    mime: str
    data: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class TextChunk:
    """A piece of the answer."""

    text: str


@dataclass(frozen=True, slots=True)
class ThoughtChunk:
    """A piece of the model's reasoning."""

    text: str


@dataclass(frozen=True, slots=True)
class ToolArguments:
    """A piece of a tool call's arguments as the model writes them; the first piece of a call may be empty."""

    call_id: str
    name: str
    delta: str


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A complete tool call that is about to run."""

    call_id: str
    name: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ToolReturn:
    """The result of a tool call; in a finished turn every `ToolCall` has one, unless it waits for an approval."""

    call_id: str
    name: str
    text: str
    status: ToolStatus = ToolStatus.OK


@dataclass(frozen=True, slots=True)
class ApprovalRequest:
    """A tool call that waits for approval."""

    call_id: str
    name: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class MemoryEdit:
    """A memory block changed."""

    label: str
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class PlanStep:
    """One step of a plan."""

    text: str
    status: StepStatus = StepStatus.PENDING


@dataclass(frozen=True, slots=True)
class Plan:
    """The agent's whole plan, sent each time it changes."""

    steps: Sequence[PlanStep]


@dataclass(frozen=True, slots=True)
class Usage:
    """The usage of the turn so far; `cost_usd` is None if no price is known.

    `context_tokens` is the size of the context now, and `window` its limit; 0 if unknown.
    """

    input_tokens: int
    output_tokens: int
    cached_tokens: int = 0
    model: str | None = None
    cost_usd: float | None = None
    context_tokens: int = 0
    window: int = 0


@dataclass(frozen=True, slots=True)
class Compacted:
    """Earlier messages were summed up to make room.

    Unless `by_model` is true, the summary is only the person's messages, shortened.
    """

    summary: str
    by_model: bool = True


@dataclass(frozen=True, slots=True)
class Failed:
    """The turn failed; a `Done` with `StopReason.ERROR` follows.

    `retry_after` is the number of seconds to wait, if the provider gave one.
    """

    trouble: FailureKind
    message: str
    retry_after: float | None = None


@dataclass(frozen=True, slots=True)
class Done:
    """The last event of every turn."""

    stop: StopReason


Event = (
    Started
    | UserText
    | UserMedia
    | TextChunk
    | ThoughtChunk
    | ToolArguments
    | ToolCall
    | ToolReturn
    | ApprovalRequest
    | MemoryEdit
    | Plan
    | Usage
    | Compacted
    | Failed
    | Done
)


@dataclass(frozen=True, slots=True)
class TurnEnd:
    """How a turn ended, for its record; `failure` is the kind of failure, without any message."""

    stop: StopReason
    pending: Sequence[ApprovalRequest] = ()
    usage: Usage = field(default_factory=lambda: Usage(0, 0))
    failure: str | None = None
