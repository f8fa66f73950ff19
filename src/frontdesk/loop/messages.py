"""The messages of a conversation, kept fit for a model: every call answered, requests joined, not too long."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

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

from frontdesk.loop.events import Event, MemoryEdit, Plan, PlanStep, StepStatus, ToolStatus
from frontdesk.loop.media import media_of, words_of
from frontdesk.loop.text import json_object, storable

CHARACTERS_PER_TOKEN = 4
# About what a large picture, or a minute of sound, takes.
MEDIA_TOKENS = 1600
MESSAGE_TOKENS = 8
LEFT_OUT = "[left out to make room]"
INTERRUPTED = "The turn was interrupted before this tool answered; it may or may not have taken effect."


def text_of(message: ModelMessage) -> str:
    """What was said in a message, for searching: the person's words or the agent's."""
    if isinstance(message, ModelRequest):
        return storable("\n".join(words_of(part) for part in message.parts if isinstance(part, UserPromptPart)))
    return storable("".join(part.content for part in message.parts if isinstance(part, TextPart)))


def answered(call: ToolCallPart, text: str, status: ToolStatus, events: Iterable[Event] = ()) -> ToolReturnPart:
    """A tool's answer as the model and the history get it."""
    outcome = {ToolStatus.OK: "success", ToolStatus.DENIED: "denied"}.get(status, "failed")
    metadata = {"status": status, **_noted(events)}
    return ToolReturnPart(
        tool_name=call.tool_name,
        content=storable(text),
        tool_call_id=call.tool_call_id,
        outcome=outcome,  # pyright: ignore[reportArgumentType] - the three are of that Literal
        metadata=metadata,
    )


def status_of(part: ToolReturnPart) -> ToolStatus:
    metadata: Mapping[str, Any] = part.metadata or {}
    return ToolStatus(metadata.get("status", ToolStatus.OK if part.outcome == "success" else ToolStatus.ERROR))


def noted_events(part: ToolReturnPart) -> Sequence[Event]:
    """What a tool showed besides its answer."""
    metadata: Mapping[str, Any] = part.metadata or {}
    edits: list[Event] = [MemoryEdit(**edit) for edit in metadata.get("memory", ())]
    plans = [
        Plan(tuple(PlanStep(step["text"], StepStatus(step["status"])) for step in plan))
        for plan in metadata.get("plans", ())
    ]
    return [*edits, *plans]


def unanswered(messages: Sequence[ModelMessage]) -> Sequence[ToolCallPart]:
    """The tool calls that have no answer before the model speaks again, in order."""
    lost: list[ToolCallPart] = []
    waiting: dict[str, ToolCallPart] = {}
    for message in messages:
        if isinstance(message, ModelResponse):
            lost.extend(waiting.values())
            waiting = _calls(message)
        else:
            for answer in _answers(message):
                waiting.pop(answer.tool_call_id, None)
    return [*lost, *waiting.values()]


def open_calls(messages: Sequence[ModelMessage]) -> Sequence[ToolCallPart]:
    """The calls of the model's newest message that have no answer yet, in order."""
    newest = next((at for at in reversed(range(len(messages))) if isinstance(messages[at], ModelResponse)), 0)
    return unanswered(messages[newest:])


def repaired(messages: Sequence[ModelMessage], pending: Collection[str] = ()) -> list[ModelMessage]:
    """The messages as a model takes them: each call answered, at once and once; requests that follow each other joined.

    What was lost is answered as interrupted; the calls in `pending` are left open, to be answered yet.
    """
    whole: list[ModelMessage] = []
    waiting: dict[str, ToolCallPart] = {}

    def give_up() -> None:
        lost = [call for call in waiting.values() if call.tool_call_id not in pending]
        add_request(whole, [answered(call, INTERRUPTED, ToolStatus.INTERRUPTED) for call in lost])
        waiting.clear()

    for message in messages:
        if isinstance(message, ModelResponse):
            give_up()
            whole.append(message)
            waiting = _calls(message)
            continue
        fitting = [part for part in _answers(message) if waiting.pop(part.tool_call_id, None) is not None]
        add_request(whole, fitting)
        words = [part for part in message.parts if not isinstance(part, ToolReturnPart)]
        if words:
            give_up()
            add_request(whole, words)
    give_up()
    return whole


def add_request(messages: list[ModelMessage], parts: Sequence[ModelRequestPart]) -> None:
    """Put parts behind the messages, into the request that stands last if one does."""
    if not parts:
        return
    last = messages[-1] if messages else None
    if isinstance(last, ModelRequest):
        messages[-1] = replace(last, parts=[*last.parts, *parts])
    else:
        messages.append(ModelRequest(parts=list(parts)))


def clean(response: ModelResponse) -> ModelResponse:
    """An answer as it can be stored and sent again."""
    return replace(response, parts=[_clean_part(part) for part in response.parts])


def _clean_part(part: ModelResponsePart) -> ModelResponsePart:
    match part:
        case TextPart(content=text) | ThinkingPart(content=text):
            return replace(part, content=storable(text))
        case ToolCallPart(args=str(text)):
            return replace(part, args=storable(text))
        case ToolCallPart(args=dict()):
            return replace(part, args=dict(json_object(part.args) or {}))
        case _:
            return part


def _calls(message: ModelResponse) -> dict[str, ToolCallPart]:
    return {part.tool_call_id: part for part in message.parts if isinstance(part, ToolCallPart)}


def _answers(message: ModelRequest) -> Sequence[ToolReturnPart]:
    return [part for part in message.parts if isinstance(part, ToolReturnPart)]


def partial(response: ModelResponse) -> ModelResponse | None:
    """What is worth keeping of an answer that was cut off: its words, not its half-written calls."""
    parts = [part for part in clean(response).parts if isinstance(part, TextPart) and part.content]
    return replace(response, parts=parts) if parts else None


def tokens_in(message: ModelMessage) -> int:
    """A rough count, on the safe side for English and code."""
    media = sum(len(media_of(part)) for part in message.parts if isinstance(part, UserPromptPart))
    words = sum(len(_content(part)) for part in message.parts)
    return MESSAGE_TOKENS + media * MEDIA_TOKENS + words // CHARACTERS_PER_TOKEN


def trimmed(messages: list[ModelMessage], budget: int) -> list[ModelMessage]:
    """The messages with the oldest tool answers left out until they fit; the last two are never touched."""
    total = sum(map(tokens_in, messages))
    fit = list(messages)
    for index, message in enumerate(messages[:-2]):
        if total <= budget:
            break
        if isinstance(message, ModelRequest):
            fit[index] = replace(message, parts=[_emptied(part) for part in message.parts])
            total -= tokens_in(message) - tokens_in(fit[index])
    return fit


def _emptied(part: ModelRequestPart) -> ModelRequestPart:
    return replace(part, content=LEFT_OUT) if isinstance(part, ToolReturnPart) else part


def _content(part: object) -> str:
    if isinstance(part, ToolCallPart):
        return f"{part.tool_name}{part.args}"
    if isinstance(part, UserPromptPart):
        return words_of(part)
    if isinstance(part, (TextPart, ThinkingPart, ToolReturnPart)):
        return str(part.content)
    return ""


def _noted(events: Iterable[Event]) -> dict[str, Any]:
    memory = [asdict(event) for event in events if isinstance(event, MemoryEdit)]
    plans = [[asdict(step) for step in event.steps] for event in events if isinstance(event, Plan)]
    return {name: noted for name, noted in (("memory", memory), ("plans", plans)) if noted}
