"""What a model streams, in the words of a turn."""

import json
from collections.abc import Awaitable, Callable

from pydantic_ai.messages import (
    ModelResponse,
    ModelResponseStreamEvent,
    PartDeltaEvent,
    PartStartEvent,
    TextPart,
    TextPartDelta,
    ThinkingPart,
    ThinkingPartDelta,
    ToolCallPart,
    ToolCallPartDelta,
)
from pydantic_ai.models import Model

from frontdesk.loop.events import Event, TextChunk, ThoughtChunk, ToolArguments
from frontdesk.loop.text import storable

# The library takes a stream of this API that ends without a finish reason for one that came to its end.
ENDS_UNSAID = "OpenAIChatModel"
RAW_REASON = "finish_reason"
FIRST_HALVES = frozenset(chr(code) for code in range(0xD800, 0xDC00))


class Speech:
    """Emits an answer piece by piece; remembers which call each piece of arguments belongs to."""

    def __init__(self, emit: Callable[[Event], Awaitable[None]]) -> None:
        self._emit = emit
        self._calls: dict[int, tuple[str, str]] = {}
        self._halves: dict[type[TextChunk | ThoughtChunk], str] = {}

    async def say(self, event: ModelResponseStreamEvent) -> None:
        said = self._event(event)
        if said is not None:
            await self._emit(said)

    def _event(self, event: ModelResponseStreamEvent) -> Event | None:
        match event:
            case PartStartEvent(part=TextPart(content=text)) | PartDeltaEvent(delta=TextPartDelta(content_delta=text)):
                return self._chunk(TextChunk, text)
            case (
                PartStartEvent(part=ThinkingPart(content=text))
                | PartDeltaEvent(delta=ThinkingPartDelta(content_delta=text))
            ):
                return self._chunk(ThoughtChunk, text)
            case PartStartEvent(index=index, part=ToolCallPart() as call):
                self._calls[index] = (call.tool_call_id, call.tool_name)
                return ToolArguments(call.tool_call_id, call.tool_name, _text(call.args))
            case PartDeltaEvent(index=index, delta=ToolCallPartDelta(args_delta=arguments)) if index in self._calls:
                call_id, name = self._calls[index]
                return ToolArguments(call_id, name, _text(arguments))
            case _:
                return None

    def _chunk(self, kind: type[TextChunk | ThoughtChunk], text: str | None) -> Event | None:
        """A piece of text; the first half of a character waits for the second."""
        said = self._halves.pop(kind, "") + (text or "")
        if said and said[-1] in FIRST_HALVES:
            said, self._halves[kind] = said[:-1], said[-1]
        return kind(storable(said)) if said else None


def is_whole(model: Model, response: ModelResponse) -> bool:
    """Whether a model came to the end of an answer: it said why it stopped, and that was no error."""
    said = RAW_REASON in (response.provider_details or {})
    match response.finish_reason:
        case "error":
            return False
        case None:
            # A reason that the library has no word for is one all the same.
            return said
        case "stop":
            return said or all(kind.__name__ != ENDS_UNSAID for kind in type(model).__mro__)
        case _:
            return True


def _text(arguments: object) -> str:
    if arguments is None:
        return ""
    return storable(arguments if isinstance(arguments, str) else json.dumps(arguments))
