"""Turns the messages of other frameworks into those of a chat: objects or dicts, whatever their classes are."""

import logging
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from enum import Enum
from typing import Literal, cast
from uuid import uuid4

from frontdesk.platform.extensions.reading import field, items_of, moment
from frontdesk.platform.model import ChatHistoryMessage
from frontdesk.platform.parsing import log

Role = Literal["user", "assistant", "system"]

ROLES: Mapping[str, Role] = {"user": "user", "assistant": "assistant", "system": "system"}
# In the names of classes; what a model puts out is the assistant's.
CLASSES: Mapping[str, Role] = {**ROLES, "responseoutputmessage": "assistant"}
# What a function answered is nobody's saying.
TOOL_ROLES = frozenset({"tool", "function"})
MESSAGE_TYPE = "message"
# Others hold text too that was not said, such as what a model thought.
TEXT_PARTS = frozenset({"text", "input_text", "output_text"})


def to_history(messages: Iterable[object], now: datetime, logger: logging.Logger = log) -> list[ChatHistoryMessage]:
    """What was said, in its order; what has no text, and what is no message, is left out.

    `now` is the time of those that have none, or none that can be.
    """
    return [made for message in messages if not _is_apart(message) if (made := _converted(message, now, logger))]


def with_role(messages: Iterable[object], logger: logging.Logger = log) -> Iterable[object]:
    """Those that say whose they are, one by one; the others are told of in the log."""
    for message in messages:
        if field(message, "role") is None:
            logger.warning("A message of class %s without a role is left out", type(message).__name__)
        else:
            yield message


def _converted(message: object, now: datetime, logger: logging.Logger) -> ChatHistoryMessage | None:
    content = _content(message)
    if not content.strip():
        return None
    times = (moment(field(message, name)) for name in ("timestamp", "created_at"))
    timestamp = next((time for time in times if time), now.astimezone(UTC))
    return ChatHistoryMessage(id=_id(message), role=_role(message, logger), content=content, timestamp=timestamp)


def _is_apart(message: object) -> bool:
    """Calls of functions, their results, and thoughts stand among the messages of a session."""
    role, kind = _said_role(message), field(message, "type")
    return role in TOOL_ROLES or (isinstance(kind, str) and kind != MESSAGE_TYPE and role not in ROLES)


def _role(message: object, logger: logging.Logger) -> Role:
    if role := ROLES.get(_said_role(message)):
        return role
    name = type(message).__name__
    for part, role in CLASSES.items():
        if part in name.lower():
            return role
    logger.warning("A message of class %s does not say whose it is: it is sent as the user's", name)
    return "user"


def _said_role(message: object) -> str:
    role = field(message, "role")
    role = cast("object", role.value) if isinstance(role, Enum) else role
    return role if isinstance(role, str) else ""


def _content(message: object) -> str:
    for name in ("content", "contents"):
        found = field(message, name)
        text = found if isinstance(found, str) else " ".join(_texts(found))
        if text:
            return _clean(text)
    text = field(message, "text")
    return _clean(text) if isinstance(text, str) else ""


def _texts(parts: object) -> Iterable[str]:
    for part in items_of(parts):
        kind, text = field(part, "type"), part if isinstance(part, str) else field(part, "text")
        if isinstance(text, str) and (not isinstance(kind, str) or kind in TEXT_PARTS):
            yield text


def _id(message: object) -> str:
    found = field(message, "message_id") or field(message, "id")
    return _clean(str(found)) if found else str(uuid4())


def _clean(text: str) -> str:
    # Half a surrogate pair cannot be sent, and would take the whole history with it.
    return text.encode(errors="replace").decode()
