"""A chat as the platform takes it, made from a turn and what was said before."""

from collections.abc import Sequence

from frontdesk.platform.errors import InvalidArgument
from frontdesk.platform.model import ChatHistoryMessage, ChatMessageRequest
from frontdesk.platform.turns import said


def chat_of(turn_context: object, messages: Sequence[ChatHistoryMessage] | None) -> ChatMessageRequest:
    """The request; what the turn lacks is told by the name of the attribute that should hold it."""
    if turn_context is None:
        raise InvalidArgument("turn_context cannot be None")
    if messages is None:
        raise InvalidArgument("chat_history_messages cannot be None")
    if not said(turn_context, "activity"):
        raise InvalidArgument("turn_context.activity cannot be None")
    return ChatMessageRequest.model_validate(
        {
            "conversation_id": _filled(turn_context, "conversation_id", "conversation", "id"),
            "message_id": _filled(turn_context, "message_id", "id"),
            "user_message": _filled(turn_context, "user_message", "text"),
            "chat_history": list(messages),
        }
    )


def _filled(turn_context: object, what: str, *path: str) -> object:
    found = said(turn_context, "activity", *path)
    if found is None or (isinstance(found, str) and not found.strip()):
        raise InvalidArgument(f"{what} cannot be empty or None (from turn_context.activity.{'.'.join(path)})")
    return found
