"""A conversation's past as Letta keeps it, in the words of a turn."""

import json
from collections.abc import Collection, Iterator, Sequence
from itertools import groupby
from typing import cast

from letta_client.types import ToolReturnMessage
from letta_client.types.agents import (
    ApprovalRequestMessage,
    ApprovalResponseMessage,
    ApprovalReturn,
    AssistantMessage,
    Message,
    ReasoningMessage,
    ToolCallMessage,
    UserMessage,
)

from frontdesk.agents.host import Said
from frontdesk.agents.letta.words import (
    arguments_of,
    calls_of,
    pictures_of,
    requests_of,
    returns_of,
    status_of,
    text_of,
)
from frontdesk.loop.events import (
    ApprovalRequest,
    Event,
    TextChunk,
    ThoughtChunk,
    ToolCall,
    ToolReturn,
    ToolStatus,
    UserMedia,
    UserText,
)

NO_RESULT = "There is no result of this call"
# What Letta itself says to an agent in the person's place.
ALERT_TYPES = frozenset({"heartbeat", "login", "system_alert"})
ALERT = "<system-alert>"


def in_order(messages: Sequence[Message], *, newest_first: bool) -> list[Message]:
    """The messages, oldest first. One message of Letta's is several here, and those stand in order as they are."""
    groups = [list(group) for _, group in groupby(messages, key=lambda message: message.id)]
    if len(groups) > 1 and groups[0][0].date != groups[-1][0].date:
        newest_first = groups[0][0].date > groups[-1][0].date
    ordered = reversed(groups) if newest_first else groups
    return [message for group in ordered for message in group]


def recalled(messages: Sequence[Message], runs: Collection[str] | None = None) -> list[Said]:
    """Everything that was said, or that was said in some runs, in order.

    A turn goes from one word of the person to the next.
    """
    past = Past(messages)
    turn_id = ""
    found: list[Said] = []
    for message_id, group in groupby(messages, key=lambda message: message.id):
        number = 0
        for message in group:
            if runs is not None and getattr(message, "run_id", None) not in runs:
                continue
            for event in past.events(message):
                # A picture may come without a word.
                spoke = isinstance(event, UserText) or (isinstance(event, UserMedia) and number == 0)
                if spoke or not turn_id:
                    turn_id = getattr(message, "run_id", None) or message_id
                found.append(Said(f"{message_id}.{number}", turn_id, message.date, event))
                number += 1
    return found


def answer_to(messages: Sequence[Message], otid: str) -> str | None:
    """What the agent said to the words of this name, up to the next words of a person; None without such words."""
    said: list[str] | None = None
    for message in messages:
        match message:
            case UserMessage() if message.otid == otid:
                said = []
            case UserMessage() if said is not None and (_said(message) or pictures_of(message.content)):
                break
            case AssistantMessage() if said is not None and (text := text_of(message.content)):
                said.append(text)
            case _:
                continue
    return None if said is None else "\n\n".join(said)


class Past:
    """What must be known of all messages to tell each of them."""

    def __init__(self, messages: Sequence[Message]) -> None:
        self._names: dict[str, str] = {}
        self._returned: set[str] = set()
        self._denied: set[str] = set()
        # What was called beside a call that waits for approval runs once that one is answered.
        waits = len(messages) > 1 and isinstance(messages[-1], ApprovalRequestMessage)
        self._held_back = messages[-2].id if waits else None
        for message in messages:
            match message:
                case ToolCallMessage() | ApprovalRequestMessage():
                    self._names |= {call.tool_call_id or "": call.name or "" for call in calls_of(message)}
                case ToolReturnMessage():
                    self._returned |= {given.tool_call_id for given in returns_of(message)}
                case ApprovalResponseMessage():
                    self._denied |= _denials(message)
                case _:
                    continue

    def events(self, message: Message) -> Iterator[Event]:
        match message:
            case UserMessage():
                if text := _said(message):
                    yield UserText(text)
                yield from (UserMedia(mime, data) for mime, data in pictures_of(message.content))
            case AssistantMessage() if text := text_of(message.content):
                yield TextChunk(text)
            case ReasoningMessage() if message.reasoning:
                yield ThoughtChunk(message.reasoning)
            case ToolCallMessage():
                yield from self._calls(message)
            case ApprovalRequestMessage():
                for request in requests_of(message):
                    yield self._asked(request)
            case ToolReturnMessage():
                yield from self._returns(message)
            case _:
                return

    def _calls(self, message: ToolCallMessage) -> Iterator[Event]:
        for call in calls_of(message):
            call_id, name = call.tool_call_id or "", call.name or ""
            yield ToolCall(call_id, name, arguments_of(call.arguments or ""))
            if call_id not in self._returned and message.id != self._held_back:
                yield ToolReturn(call_id, name, NO_RESULT, ToolStatus.INTERRUPTED)

    def _asked(self, request: ApprovalRequest) -> Event:
        """A call that was approved or rejected is told as any other; only one that still waits is a request."""
        if request.call_id in self._returned:
            return ToolCall(request.call_id, request.name, request.arguments)
        return request

    def _returns(self, message: ToolReturnMessage) -> Iterator[Event]:
        for given in returns_of(message):
            # The call itself may lie before the oldest message.
            if given.tool_call_id in self._names:
                denied = given.tool_call_id in self._denied
                status = ToolStatus.DENIED if denied else status_of(given)
                name = self._names[given.tool_call_id]
                yield ToolReturn(given.tool_call_id, name, text_of(given.tool_return), status)


def _denials(message: ApprovalResponseMessage) -> set[str]:
    words = message.approvals or ()
    return {word.tool_call_id for word in words if isinstance(word, ApprovalReturn) and not word.approve}


def _said(message: UserMessage) -> str:
    """What the person said; empty for what Letta put into their mouth."""
    text = text_of(message.content)
    return "" if text.startswith(ALERT) or _is_alert(text) else text


def _is_alert(text: str) -> bool:
    if not text.startswith("{"):
        return False
    try:
        packed: object = json.loads(text)
    except (ValueError, RecursionError):
        return False
    return isinstance(packed, dict) and cast("dict[str, object]", packed).get("type") in ALERT_TYPES
