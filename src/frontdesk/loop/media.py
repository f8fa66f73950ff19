"""Pictures and sounds in what a person says: put beside the words, found again, and left out where they do not fit."""

from collections.abc import Sequence
from dataclasses import replace

from pydantic_ai.messages import (
    BinaryContent,
    ModelMessage,
    ModelRequest,
    ModelRequestPart,
    UserContent,
    UserPromptPart,
)

from frontdesk.loop.text import storable

NOT_FOR_YOU = "[a {kind} was sent here, which you cannot take]"
NOT_SEEN = "[a {kind} was sent here that you never got; ask for it again if it matters]"


def user_message(text: str, media: Sequence[BinaryContent] = ()) -> ModelRequest:
    words = storable(text)
    said: list[UserContent] = [words] if words.strip() else []
    return ModelRequest(parts=[UserPromptPart(content=[*said, *media] if media else words)])


def words_of(part: UserPromptPart) -> str:
    """What the person said, without what came with it."""
    content = [part.content] if isinstance(part.content, str) else part.content
    return "\n".join(one for one in content if isinstance(one, str))


def media_of(part: UserPromptPart) -> Sequence[BinaryContent]:
    content = () if isinstance(part.content, str) else part.content
    return [one for one in content if isinstance(one, BinaryContent)]


def fitting(messages: Sequence[ModelMessage], *, images: bool, sounds: bool) -> list[ModelMessage]:
    """The messages with notes in place of what the model cannot take, or did not: it would refuse every turn since."""
    return [
        _noted(one, images, sounds, taken=not _goes_unanswered(messages, at)) if isinstance(one, ModelRequest) else one
        for at, one in enumerate(messages)
    ]


def _goes_unanswered(messages: Sequence[ModelMessage], at: int) -> bool:
    """Whether the person's words were followed by others of theirs, and by nothing of the model's."""
    after = messages[at + 1] if at + 1 < len(messages) else None
    return isinstance(after, ModelRequest) and any(isinstance(part, UserPromptPart) for part in after.parts)


def _noted(message: ModelRequest, images: bool, sounds: bool, *, taken: bool) -> ModelRequest:
    def shown(one: UserContent) -> UserContent:
        if not isinstance(one, BinaryContent):
            return one
        kind = "picture" if one.is_image else "sound"
        if not (images if one.is_image else sounds):
            return NOT_FOR_YOU.format(kind=kind)
        return one if taken else NOT_SEEN.format(kind=kind)

    def told(part: ModelRequestPart) -> ModelRequestPart:
        if not isinstance(part, UserPromptPart) or not media_of(part):
            return part
        return replace(part, content=[shown(one) for one in part.content])

    return replace(message, parts=[told(part) for part in message.parts])
