"""Prepares the messages of a conversation for a model.

It gives every call a result, joins requests, replaces media that the model does not accept by a note, and drops the
oldest tool results if there is no room.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

from pydantic_ai.messages import (
    BinaryContent,
    ModelMessage,
    ModelRequest,
    ModelRequestPart,
    ModelResponse,
    ModelResponsePart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserContent,
    UserPromptPart,
)

from frontdesk.llm.events import Event, MemoryEdit, Plan, PlanStep, StepStatus, ToolStatus
from frontdesk.text import parse_json_object, storable

MEDIA_NOT_ACCEPTED = "[a {kind} was sent here, which you cannot take]"
MEDIA_NOT_RECEIVED = "[a {kind} was sent here that you never got; ask for it again if it matters]"


def user_message(text: str, media: Sequence[BinaryContent] = ()) -> ModelRequest:
    words = storable(text)
    said: list[UserContent] = [words] if words.strip() else []
    return ModelRequest(parts=[UserPromptPart(content=[*said, *media] if media else words)])


def prompt_text(part: UserPromptPart) -> str:
    """The person's text, without media."""
    content = [part.content] if isinstance(part.content, str) else part.content
    return "\n".join(one for one in content if isinstance(one, str))


def prompt_media(part: UserPromptPart) -> Sequence[BinaryContent]:
    content = () if isinstance(part.content, str) else part.content
    return [one for one in content if isinstance(one, BinaryContent)]


def replace_unfit_media(messages: Sequence[ModelMessage], *, images: bool, sounds: bool) -> list[ModelMessage]:
    """The messages with notes in place of media that the model does not accept; it would refuse every later turn.

    Media of a request that no model ever answered are replaced too, since they may be the cause.
    """
    return [
        _replace_media(one, images, sounds, taken=not _goes_unanswered(messages, at))
        if isinstance(one, ModelRequest)
        else one
        for at, one in enumerate(messages)
    ]


def _goes_unanswered(messages: Sequence[ModelMessage], at: int) -> bool:
    """Whether another request of the person follows a request, with no response between them."""
    after = messages[at + 1] if at + 1 < len(messages) else None
    return isinstance(after, ModelRequest) and any(isinstance(part, UserPromptPart) for part in after.parts)


def _replace_media(message: ModelRequest, images: bool, sounds: bool, *, taken: bool) -> ModelRequest:
    def shown(one: UserContent) -> UserContent:
        if not isinstance(one, BinaryContent):
            return one
        kind = "picture" if one.is_image else "sound"
        if not (images if one.is_image else sounds):
            return MEDIA_NOT_ACCEPTED.format(kind=kind)
        return one if taken else MEDIA_NOT_RECEIVED.format(kind=kind)

    def told(part: ModelRequestPart) -> ModelRequestPart:
        if not isinstance(part, UserPromptPart) or not prompt_media(part):
            return part
        return replace(part, content=[shown(one) for one in part.content])

    return replace(message, parts=[told(part) for part in message.parts])


CHARACTERS_PER_TOKEN = 4
# An estimate for a large picture, or a minute of sound.
MEDIA_TOKENS = 1600
MESSAGE_TOKENS = 8
CONTENT_LEFT_OUT = "[left out to make room]"
TOOL_INTERRUPTED = "The turn was interrupted before this tool answered; it may or may not have taken effect."


def message_text(message: ModelMessage) -> str:
    """The text of a message for searching: the person's or the agent's."""
    if isinstance(message, ModelRequest):
        return storable("\n".join(prompt_text(part) for part in message.parts if isinstance(part, UserPromptPart)))
    return storable("".join(part.content for part in message.parts if isinstance(part, TextPart)))


def make_tool_return(call: ToolCallPart, text: str, status: ToolStatus, events: Iterable[Event] = ()) -> ToolReturnPart:
    """A tool's result as a message part, for the model and for the history."""
    outcome = {ToolStatus.OK: "success", ToolStatus.DENIED: "denied"}.get(status, "failed")
    metadata = {"status": status, **_event_metadata(events)}
    return ToolReturnPart(
        tool_name=call.tool_name,
        content=storable(text),
        tool_call_id=call.tool_call_id,
        outcome=outcome,  # pyright: ignore[reportArgumentType] - the three are of that Literal
        metadata=metadata,
    )


def tool_return_status(part: ToolReturnPart) -> ToolStatus:
    metadata: Mapping[str, Any] = part.metadata or {}
    return ToolStatus(metadata.get("status", ToolStatus.OK if part.outcome == "success" else ToolStatus.ERROR))


def stored_events(part: ToolReturnPart) -> Sequence[Event]:
    """The events that a tool emitted besides its result."""
    metadata: Mapping[str, Any] = part.metadata or {}
    edits: list[Event] = [MemoryEdit(**edit) for edit in metadata.get("memory", ())]
    plans = [
        Plan(tuple(PlanStep(step["text"], StepStatus(step["status"])) for step in plan))
        for plan in metadata.get("plans", ())
    ]
    return [*edits, *plans]


def unanswered_calls(messages: Sequence[ModelMessage]) -> Sequence[ToolCallPart]:
    """The tool calls that have no result before the next response, in order."""
    lost: list[ToolCallPart] = []
    waiting: dict[str, ToolCallPart] = {}
    for message in messages:
        if isinstance(message, ModelResponse):
            lost.extend(waiting.values())
            waiting = _calls_by_id(message)
        else:
            for answer in _tool_returns(message):
                waiting.pop(answer.tool_call_id, None)
    return [*lost, *waiting.values()]


def open_calls(messages: Sequence[ModelMessage]) -> Sequence[ToolCallPart]:
    """The calls of the newest response that have no result yet, in order."""
    newest = next((at for at in reversed(range(len(messages))) if isinstance(messages[at], ModelResponse)), 0)
    return unanswered_calls(messages[newest:])


def repair_messages(messages: Sequence[ModelMessage], pending: Collection[str] = ()) -> list[ModelMessage]:
    """The messages in the form that models accept: each call has one result right after it, and requests are joined.

    A call without a result gets one that says it was interrupted; the calls in `pending` stay open.
    """
    whole: list[ModelMessage] = []
    waiting: dict[str, ToolCallPart] = {}

    def give_up() -> None:
        lost = [call for call in waiting.values() if call.tool_call_id not in pending]
        add_request(whole, [make_tool_return(call, TOOL_INTERRUPTED, ToolStatus.INTERRUPTED) for call in lost])
        waiting.clear()

    for message in messages:
        if isinstance(message, ModelResponse):
            give_up()
            whole.append(message)
            waiting = _calls_by_id(message)
            continue
        fitting = [part for part in _tool_returns(message) if waiting.pop(part.tool_call_id, None) is not None]
        add_request(whole, fitting)
        words = [part for part in message.parts if not isinstance(part, ToolReturnPart)]
        if words:
            give_up()
            add_request(whole, words)
    give_up()
    return whole


def add_request(messages: list[ModelMessage], parts: Sequence[ModelRequestPart]) -> None:
    """Append parts, to the last message if that is a request."""
    if not parts:
        return
    last = messages[-1] if messages else None
    if isinstance(last, ModelRequest):
        messages[-1] = replace(last, parts=[*last.parts, *parts])
    else:
        messages.append(ModelRequest(parts=list(parts)))


def clean_response(response: ModelResponse) -> ModelResponse:
    """A response in a form that can be stored and sent again."""
    return replace(response, parts=[_clean_part(part) for part in response.parts])


def _clean_part(part: ModelResponsePart) -> ModelResponsePart:
    match part:
        case TextPart(content=text) | ThinkingPart(content=text):
            return replace(part, content=storable(text))
        case ToolCallPart(args=str(text)):
            return replace(part, args=storable(text))
        case ToolCallPart(args=dict()):
            return replace(part, args=dict(parse_json_object(part.args) or {}))
        case _:
            return part


def _calls_by_id(message: ModelResponse) -> dict[str, ToolCallPart]:
    return {part.tool_call_id: part for part in message.parts if isinstance(part, ToolCallPart)}


def _tool_returns(message: ModelRequest) -> Sequence[ToolReturnPart]:
    return [part for part in message.parts if isinstance(part, ToolReturnPart)]


def partial_response(response: ModelResponse) -> ModelResponse | None:
    """The text of an incomplete response, without its incomplete calls; None if there is no text."""
    parts = [part for part in clean_response(response).parts if isinstance(part, TextPart) and part.content]
    return replace(response, parts=parts) if parts else None


def estimate_tokens(message: ModelMessage) -> int:
    """A rough estimate, usually too high for English and code."""
    media = sum(len(prompt_media(part)) for part in message.parts if isinstance(part, UserPromptPart))
    words = sum(len(_part_text(part)) for part in message.parts)
    return MESSAGE_TOKENS + media * MEDIA_TOKENS + words // CHARACTERS_PER_TOKEN


def trim_messages(messages: list[ModelMessage], budget: int) -> list[ModelMessage]:
    """Drop the oldest tool results until the messages fit; the last two messages are not changed."""
    total = sum(map(estimate_tokens, messages))
    fit = list(messages)
    for index, message in enumerate(messages[:-2]):
        if total <= budget:
            break
        if isinstance(message, ModelRequest):
            fit[index] = replace(message, parts=[_drop_content(part) for part in message.parts])
            total -= estimate_tokens(message) - estimate_tokens(fit[index])
    return fit


def _drop_content(part: ModelRequestPart) -> ModelRequestPart:
    return replace(part, content=CONTENT_LEFT_OUT) if isinstance(part, ToolReturnPart) else part


def _part_text(part: object) -> str:
    if isinstance(part, ToolCallPart):
        return f"{part.tool_name}{part.args}"
    if isinstance(part, UserPromptPart):
        return prompt_text(part)
    if isinstance(part, (TextPart, ThinkingPart, ToolReturnPart)):
        return str(part.content)
    return ""


def _event_metadata(events: Iterable[Event]) -> dict[str, Any]:
    memory = [asdict(event) for event in events if isinstance(event, MemoryEdit)]
    plans = [[asdict(step) for step in event.steps] for event in events if isinstance(event, Plan)]
    return {name: noted for name, noted in (("memory", memory), ("plans", plans)) if noted}
