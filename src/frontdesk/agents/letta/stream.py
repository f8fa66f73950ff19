"""Letta's stream messages as events of a turn, token by token: no network, and all that is known of the turn so far."""

from collections.abc import Collection
from dataclasses import dataclass, field, replace

from letta_client.types import ToolReturnMessage
from letta_client.types.agents import (
    ApprovalRequestMessage,
    AssistantMessage,
    LettaStreamingResponse,
    ReasoningMessage,
    ToolCallMessage,
)
from letta_client.types.agents.letta_streaming_response import LettaStopReason, LettaUsageStatistics

from frontdesk.agents.letta.words import arguments_of, calls_of, returns_of, status_of, text_of, whole_arguments
from frontdesk.loop.events import (
    Event,
    TextChunk,
    ThoughtChunk,
    ToolArguments,
    ToolCall,
    ToolReturn,
    ToolStatus,
    Usage,
)

NOT_RUN = "Letta did not run this call"


@dataclass(slots=True)
class Written:
    """A tool call as far as the model has written it."""

    call_id: str
    name: str
    asks: bool
    text: str = ""
    told: bool = False
    returned: bool = False


@dataclass(slots=True)
class Reader:
    """Reads the runs of one turn. `stop`, `steps` and `run_id` are those of the run that is being read."""

    usage: Usage = field(default_factory=lambda: Usage(0, 0))
    stop: str | None = None
    steps: int = 0
    run_id: str | None = None
    _calls: dict[str, Written] = field(default_factory=dict[str, Written])

    def begin_run(self) -> None:
        self.stop, self.steps, self.run_id = None, 0, None

    def read(self, message: LettaStreamingResponse) -> list[Event]:
        """The events in one message of the stream."""
        self.run_id = getattr(message, "run_id", None) or self.run_id
        events: list[Event] = []
        match message:
            case ReasoningMessage() if message.reasoning:
                events = [*self._finished(), ThoughtChunk(message.reasoning)]
            case AssistantMessage() if text := text_of(message.content):
                events = [*self._finished(), TextChunk(text)]
            case ToolCallMessage() | ApprovalRequestMessage():
                events = self._read_calls(message)
            case ToolReturnMessage():
                events = [*self._finished(), *self._read_returns(message)]
            case LettaStopReason():
                self.stop = message.stop_reason
                events = self._finished()
            case LettaUsageStatistics():
                events = [self._count(message)]
            case _:
                pass
        return events

    def expect(self, call_id: str, name: str) -> None:
        """A call from an earlier turn, told already, that will run or has been answered now."""
        self._calls[call_id] = Written(call_id, name, asks=False, told=True)

    def returned(self, call_id: str) -> None:
        """A call was answered by us, so that Letta's own word on it is not needed."""
        if call_id in self._calls:
            self._calls[call_id].returned = True

    def open_calls(self) -> bool:
        """Whether a call was announced and has no return so far."""
        return any(call.told and not call.returned for call in self._calls.values())

    def leftovers(self, held_back: Collection[str] = ()) -> list[Event]:
        """At the end of the turn: returns for the calls that Letta announced and will not run."""
        calls = [call for call in self._calls.values() if call.told and not call.returned]
        left = [call for call in calls if call.call_id not in held_back]
        for call in left:
            call.returned = True
        return [ToolReturn(call.call_id, call.name, NOT_RUN, ToolStatus.INTERRUPTED) for call in left]

    def _read_calls(self, message: ToolCallMessage | ApprovalRequestMessage) -> list[Event]:
        asks = isinstance(message, ApprovalRequestMessage)
        events: list[Event] = []
        for piece in calls_of(message):
            call = self._call(piece.tool_call_id, piece.name, asks=asks)
            events += self._finished(but=call)
            delta = piece.arguments or ""
            call.text += delta
            events.append(ToolArguments(call.call_id, call.name, delta))
            # A whole object cannot grow, so the call is about to run; Letta says nothing more until it has.
            if delta.endswith("}") and not asks and whole_arguments(call.text) is not None:
                events.append(_complete(call))
        return events

    def _call(self, call_id: str | None, name: str | None, *, asks: bool) -> Written:
        """The call that a piece belongs to; only the first piece is sure to carry a name."""
        if call_id is None and self._calls:
            return next(reversed(self._calls.values()))
        known = self._calls.get(call_id or "")
        if known is None:
            known = self._calls[call_id or ""] = Written(call_id or "", name or "", asks)
        return known

    def _finished(self, but: Written | None = None) -> list[Event]:
        """The calls that are surely written to their end, since something else came after them."""
        ended = [call for call in self._calls.values() if call is not but and not call.asks and not call.told]
        return [_complete(call) for call in ended]

    def _read_returns(self, message: ToolReturnMessage) -> list[Event]:
        events: list[Event] = []
        for given in returns_of(message):
            call = self._calls.get(given.tool_call_id)
            if call is not None and call.returned:
                continue
            # Of several returns the message names but one tool, and not always the first.
            name = call.name if call else message.name or ""
            self._calls[given.tool_call_id] = Written(given.tool_call_id, name, asks=False, told=True, returned=True)
            events.append(ToolReturn(given.tool_call_id, name, text_of(given.tool_return), status_of(given)))
        return events

    def _count(self, message: LettaUsageStatistics) -> Usage:
        self.steps = message.step_count or 0
        self.usage = replace(
            self.usage,
            input_tokens=self.usage.input_tokens + (message.prompt_tokens or 0),
            output_tokens=self.usage.output_tokens + (message.completion_tokens or 0),
            cached_tokens=self.usage.cached_tokens + (message.cached_input_tokens or 0),
            context_tokens=message.context_tokens or 0,
        )
        return self.usage


def _complete(call: Written) -> ToolCall:
    call.told = True
    return ToolCall(call.call_id, call.name, arguments_of(call.text))
