"""A conversation's past in the words of a turn, for those who come to it later."""

from collections.abc import Iterable, Iterator, Sequence

from pydantic_ai.messages import (
    ModelMessage,
    ModelRequestPart,
    ModelResponse,
    ModelResponsePart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)

from frontdesk.agents.embedded.talk.model import PastTurn, StoredMessage
from frontdesk.agents.host import Said
from frontdesk.loop.events import (
    Done,
    Event,
    TextChunk,
    ThoughtChunk,
    ToolCall,
    ToolReturn,
    ToolStatus,
    UserMedia,
    UserText,
)
from frontdesk.loop.media import media_of, words_of
from frontdesk.loop.messages import INTERRUPTED, noted_events, status_of, unanswered


def recalled(messages: Sequence[StoredMessage], turns: Sequence[PastTurn]) -> Sequence[Said]:
    """Everything that was said, in order, each turn closed with how it ended."""
    ended = {turn.id: turn for turn in turns}
    pending = {request.call_id for turn in turns for request in turn.pending}
    said = [one.message for one in messages]
    # While a turn runs, the newest calls are under way; while one waits for approval, those after it are held back.
    underway = _newest_calls(said) if any(turn.stop is None or turn.pending for turn in turns) else set[str]()
    lost = {call.tool_call_id for call in unanswered(said)} - pending - underway
    found: list[Said] = []
    for index, stored in enumerate(messages):
        for number, event in enumerate(_events(stored.message, lost)):
            found.append(Said(f"{stored.id}.{number}", stored.turn_id, stored.at, event))
        last = index + 1 == len(messages) or messages[index + 1].turn_id != stored.turn_id
        turn = ended.get(stored.turn_id)
        if last and turn is not None and turn.stop is not None:
            waiting: list[Event] = list(turn.pending)
            for number, event in enumerate([*waiting, Done(turn.stop)]):
                found.append(Said(f"{turn.id}.{number}", turn.id, turn.ended_at or stored.at, event))
    return found


def _newest_calls(messages: Sequence[ModelMessage]) -> set[str]:
    last = next((one for one in reversed(messages) if isinstance(one, ModelResponse)), None)
    return {part.tool_call_id for part in last.parts if isinstance(part, ToolCallPart)} if last else set()


def _events(message: ModelMessage, lost: set[str]) -> Iterator[Event]:
    parts: Iterable[ModelRequestPart | ModelResponsePart] = message.parts
    for part in parts:
        match part:
            case UserPromptPart():
                yield from _said(part)
            case TextPart(content=text) if text:
                yield TextChunk(text)
            case ThinkingPart(content=text) if text:
                yield ThoughtChunk(text)
            case ToolCallPart() as call:
                yield ToolCall(call.tool_call_id, call.tool_name, call.args_as_dict(raise_if_invalid=False))
                if call.tool_call_id in lost:
                    yield ToolReturn(call.tool_call_id, call.tool_name, INTERRUPTED, ToolStatus.INTERRUPTED)
            case ToolReturnPart() as answer:
                yield ToolReturn(answer.tool_call_id, answer.tool_name, str(answer.content), status_of(answer))
                yield from noted_events(answer)
            case _:
                continue


def _said(part: UserPromptPart) -> Iterator[Event]:
    if text := words_of(part):
        yield UserText(text)
    for media in media_of(part):
        yield UserMedia(media.media_type, media.data)
