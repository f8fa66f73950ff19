"""Converts messages of other frameworks, of any class, into chat messages."""

import logging
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from enum import Enum
from typing import Literal, cast
from uuid import uuid4

from frontdesk.agent365.model import ChatHistoryMessage
from frontdesk.agent365.servers import log


def read_field(thing: object, name: str) -> object:
    """A dict's entry or an object's attribute; None where there is none."""
    if isinstance(thing, Mapping):
        return cast("Mapping[object, object]", thing).get(name)
    return cast("object", getattr(thing, name, None))


def items_of(thing: object) -> Iterable[object]:
    """The elements of a list or a tuple; empty for anything else."""
    return cast("list[object] | tuple[object, ...]", thing) if isinstance(thing, list | tuple) else ()


def parse_time(value: object) -> datetime | None:
    """Parse a time from seconds since 1970 or ISO 8601; without a zone it is in UTC. None where it is no time."""
    match value:
        case datetime():
            return value if value.tzinfo else value.replace(tzinfo=UTC)
        case bool():
            return None
        case int() | float() if value:
            return _parse_epoch(value)
        case str():
            return _parse_iso(value)
        case _:
            return None


def _parse_epoch(seconds: float) -> datetime | None:
    try:
        return datetime.fromtimestamp(seconds, tz=UTC)
    # Each error is for another kind of absurd number; which number raises which depends on the system's C library.
    except (ValueError, OverflowError, OSError):
        return None


def _parse_iso(text: str) -> datetime | None:
    try:
        found = datetime.fromisoformat(text.strip())
    except ValueError:
        return None
    return found if found.tzinfo else found.replace(tzinfo=UTC)


Role = Literal["user", "assistant", "system"]

ROLES: Mapping[str, Role] = {"user": "user", "assistant": "assistant", "system": "system"}
# Keys are names of classes; a model's output is the assistant's.
ROLES_BY_CLASS: Mapping[str, Role] = {**ROLES, "responseoutputmessage": "assistant"}
# The result of a function is not a message of a person or an assistant.
TOOL_ROLES = frozenset({"tool", "function"})
MESSAGE_TYPE = "message"
# Other types of parts hold text too that was not said, such as a model's reasoning.
TEXT_PARTS = frozenset({"text", "input_text", "output_text"})


def convert_history(
    messages: Iterable[object], now: datetime, logger: logging.Logger = log
) -> list[ChatHistoryMessage]:
    """The messages with text, in their order; entries without text, and entries that are no messages, are left out.

    `now` is the time of messages that have none, or have an invalid one.
    """
    return [
        made for message in messages if not _is_not_chat(message) if (made := _convert_message(message, now, logger))
    ]


def messages_with_role(messages: Iterable[object], logger: logging.Logger = log) -> Iterable[object]:
    """Yield the messages that have a role; the others are logged."""
    for message in messages:
        if read_field(message, "role") is None:
            logger.warning("A message of class %s without a role is left out", type(message).__name__)
        else:
            yield message


def _convert_message(message: object, now: datetime, logger: logging.Logger) -> ChatHistoryMessage | None:
    content = _content(message)
    if not content.strip():
        return None
    times = (parse_time(read_field(message, name)) for name in ("timestamp", "created_at"))
    timestamp = next((time for time in times if time), now.astimezone(UTC))
    return ChatHistoryMessage(id=_id(message), role=_role(message, logger), content=content, timestamp=timestamp)


def _is_not_chat(message: object) -> bool:
    """Whether an item is a call of a function, its result, or reasoning: sessions hold these among their messages."""
    role, kind = _stated_role(message), read_field(message, "type")
    return role in TOOL_ROLES or (isinstance(kind, str) and kind != MESSAGE_TYPE and role not in ROLES)


def _role(message: object, logger: logging.Logger) -> Role:
    if role := ROLES.get(_stated_role(message)):
        return role
    name = type(message).__name__
    for part, role in ROLES_BY_CLASS.items():
        if part in name.lower():
            return role
    logger.warning("A message of class %s does not say whose it is: it is sent as the user's", name)
    return "user"


def _stated_role(message: object) -> str:
    role = read_field(message, "role")
    role = cast("object", role.value) if isinstance(role, Enum) else role
    return role if isinstance(role, str) else ""


def _content(message: object) -> str:
    for name in ("content", "contents"):
        found = read_field(message, name)
        text = found if isinstance(found, str) else " ".join(_texts(found))
        if text:
            return _replace_invalid(text)
    text = read_field(message, "text")
    return _replace_invalid(text) if isinstance(text, str) else ""


def _texts(parts: object) -> Iterable[str]:
    for part in items_of(parts):
        kind, text = read_field(part, "type"), part if isinstance(part, str) else read_field(part, "text")
        if isinstance(text, str) and (not isinstance(kind, str) or kind in TEXT_PARTS):
            yield text


def _id(message: object) -> str:
    found = read_field(message, "message_id") or read_field(message, "id")
    return _replace_invalid(str(found)) if found else str(uuid4())


def _replace_invalid(text: str) -> str:
    # Half a surrogate pair cannot be sent, and would make the whole history fail.
    return text.encode(errors="replace").decode()
