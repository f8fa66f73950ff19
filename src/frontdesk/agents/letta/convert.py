"""Converts between Letta's messages and blocks and ours."""

import json
from base64 import b64decode, b64encode
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, cast

from letta_client.types import BlockResponse, MessageCreateParam, ToolReturnMessage
from letta_client.types import Tool as LettaTool
from letta_client.types.agents import (
    ApprovalCreateParam,
    ApprovalRequestMessage,
    ApprovalResponseMessage,
    ApprovalReturn,
    ApprovalReturnParam,
    AssistantMessage,
    ImageContent,
    ImageContentParam,
    Message,
    ReasoningMessage,
    TextContentParam,
    ToolCall,
    ToolCallDelta,
    ToolCallMessage,
    ToolReturn,
    ToolReturnParam,
    UserMessage,
)
from letta_client.types.agents import Block as LettaBlock
from letta_client.types.agents.image_content import SourceURLImage
from letta_client.types.agents.message_create_params import ClientTool

from frontdesk.agents.host import HistoryItem, Media, MemoryBlock
from frontdesk.llm.events import (
    ApprovalRequest,
    Event,
    MemoryEdit,
    StopReason,
    TextChunk,
    ThoughtChunk,
    ToolStatus,
    UserMedia,
    UserText,
)
from frontdesk.llm.events import ToolCall as events_ToolCall
from frontdesk.llm.events import ToolReturn as events_ToolReturn
from frontdesk.llm.tools import Tool
from frontdesk.text import parse_json_object, storable

# Letta's answer to a call of a tool that the agent does not have, or may not use now.
NO_SUCH_TOOL = ("[ToolConstraintError] Cannot call", "Tool not found")

STOP_REASONS: Mapping[str, StopReason] = {
    "end_turn": StopReason.END_TURN,
    "tool_rule": StopReason.END_TURN,
    "max_steps": StopReason.MAX_STEPS,
    "max_tokens_exceeded": StopReason.MAX_TOKENS,
    "cancelled": StopReason.CANCELLED,
    "requires_approval": StopReason.REQUIRES_APPROVAL,
}


def text_of(content: str | Sequence[object]) -> str:
    """The text of a message, without its images."""
    if isinstance(content, str):
        return content
    return "".join(str(getattr(part, "text", "")) for part in content)


def images_of(content: str | Sequence[object]) -> list[tuple[str, bytes]]:
    """The images of a message that came with their data."""
    parts = () if isinstance(content, str) else content
    sources = [part.source for part in parts if isinstance(part, ImageContent)]
    return [
        (source.media_type or "image/png", b64decode(source.data))
        for source in sources
        if not isinstance(source, SourceURLImage) and source.data
    ]


def whole_arguments(text: str) -> Mapping[str, Any] | None:
    """The arguments, if the text is a complete JSON object."""
    return parse_json_object(text) if text.strip() else None


def arguments_of(text: str) -> Mapping[str, Any]:
    """The arguments of a finished call; a text that is not a JSON object is kept unchanged."""
    whole = parse_json_object(text)
    return {"_raw": storable(text)} if whole is None else whole


def calls_of(message: ToolCallMessage | ApprovalRequestMessage) -> Sequence[ToolCall | ToolCallDelta]:
    """The calls of a message: a list in a history, a piece of one in a stream, a single one from older servers."""
    calls = message.tool_calls
    if isinstance(calls, list):
        return calls
    return [calls or message.tool_call]


def requests_of(message: ApprovalRequestMessage) -> list[ApprovalRequest]:
    return [
        ApprovalRequest(call.tool_call_id or "", call.name or "", arguments_of(call.arguments or ""))
        for call in calls_of(message)
    ]


def returns_of(message: ToolReturnMessage) -> Sequence[ToolReturn]:
    """The returns of a message; older servers give only one."""
    if message.tool_returns:
        return message.tool_returns
    return [ToolReturn(status=message.status, tool_call_id=message.tool_call_id, tool_return=message.tool_return)]


def status_of(given: ToolReturn) -> ToolStatus:
    if given.status == "success":
        return ToolStatus.OK
    return ToolStatus.UNKNOWN if text_of(given.tool_return).startswith(NO_SUCH_TOOL) else ToolStatus.ERROR


def mcp_server_of(tool: LettaTool) -> str | None:
    """The name of the MCP server that a Letta tool belongs to."""
    source = (tool.metadata or {}).get("mcp")
    name = cast("dict[str, object]", source).get("server_name") if isinstance(source, dict) else None
    return name if isinstance(name, str) else None


CallAnswer = ApprovalReturnParam | ToolReturnParam
LettaInput = MessageCreateParam | ApprovalCreateParam


def user_message(text: str, otid: str | None, media: Sequence[Media] = ()) -> MessageCreateParam:
    said: MessageCreateParam = {
        "role": "user",
        "content": [*_text_parts(text), *map(_image_part, media)] if media else text,
    }
    return said if otid is None else {**said, "otid": otid}


def context_message(context: str) -> MessageCreateParam:
    """A message without a sender that tells the agent where it is."""
    return {"role": "system", "content": context}


def approval_message(answers: Sequence[CallAnswer]) -> ApprovalCreateParam:
    return {"type": "approval", "approvals": answers}


def denial_answer(call_id: str, reason: str) -> ApprovalReturnParam:
    return {"type": "approval", "tool_call_id": call_id, "approve": False, "reason": reason}


def client_tool(tool: Tool) -> ClientTool:
    return {"name": tool.name, "description": tool.description, "parameters": dict(tool.parameters)}


def _text_parts(text: str) -> list[TextContentParam]:
    return [{"type": "text", "text": text}] if text.strip() else []


def _image_part(media: Media) -> ImageContentParam:
    data = b64encode(media.data).decode()
    return {"type": "image", "source": {"type": "base64", "media_type": media.mime, "data": data}}


MEMORY_TOOLS = frozenset(
    {
        "core_memory_append",
        "core_memory_replace",
        "memory",
        "memory_apply_patch",
        "memory_insert",
        "memory_replace",
        "memory_rethink",
    }
)
BLOCK_LIMIT = 100_000


def block_of(given: LettaBlock | BlockResponse) -> MemoryBlock:
    return MemoryBlock(
        given.label or "",
        given.value,
        given.description or "",
        given.limit or BLOCK_LIMIT,
        read_only=bool(given.read_only),
    )


def block_values(blocks: Sequence[MemoryBlock]) -> dict[str, str]:
    return {block.label: block.value for block in blocks}


def memory_edits(before: Mapping[str, str], after: Mapping[str, str]) -> list[MemoryEdit]:
    """The changed blocks, in order; a new or deleted block counts as empty before or after."""
    labels = [*after, *(label for label in before if label not in after)]
    changes = [MemoryEdit(label, before.get(label, ""), after.get(label, "")) for label in labels]
    return [change for change in changes if change.before != change.after]


def memory_may_have_changed(events: Sequence[Event]) -> bool:
    """Whether one of these events is a successful call of a memory tool."""
    return any(
        isinstance(event, events_ToolReturn) and event.status is ToolStatus.OK and event.name in MEMORY_TOOLS
        for event in events
    )


NO_RESULT = "There is no result of this call"
# Letta sends these to an agent as messages of the person.
ALERT_TYPES = frozenset({"heartbeat", "login", "system_alert"})
ALERT = "<system-alert>"


def oldest_first(messages: Sequence[Message], *, newest_first: bool) -> list[Message]:
    """The messages, oldest first. One message of Letta is several here, which keep their order."""
    groups = [list(group) for _, group in groupby(messages, key=lambda message: message.id)]
    if len(groups) > 1 and groups[0][0].date != groups[-1][0].date:
        newest_first = groups[0][0].date > groups[-1][0].date
    ordered = reversed(groups) if newest_first else groups
    return [message for group in ordered for message in group]


def build_history(messages: Sequence[Message], runs: Collection[str] | None = None) -> list[HistoryItem]:
    """The events of all messages, or of those of some runs, in order.

    A turn begins with each message of the person.
    """
    past = HistoryReader(messages)
    turn_id = ""
    found: list[HistoryItem] = []
    for message_id, group in groupby(messages, key=lambda message: message.id):
        number = 0
        for message in group:
            if runs is not None and getattr(message, "run_id", None) not in runs:
                continue
            for event in past.events(message):
                # An image may come without text.
                spoke = isinstance(event, UserText) or (isinstance(event, UserMedia) and number == 0)
                if spoke or not turn_id:
                    turn_id = getattr(message, "run_id", None) or message_id
                found.append(HistoryItem(f"{message_id}.{number}", turn_id, message.date, event))
                number += 1
    return found


def find_answer(messages: Sequence[Message], otid: str) -> str | None:
    """The agent's answer to the message with this `otid`, up to the person's next message; None if it is missing."""
    said: list[str] | None = None
    for message in messages:
        match message:
            case UserMessage() if message.otid == otid:
                said = []
            case UserMessage() if said is not None and (_person_text(message) or images_of(message.content)):
                break
            case AssistantMessage() if said is not None and (text := text_of(message.content)):
                said.append(text)
            case _:
                continue
    return None if said is None else "\n\n".join(said)


class HistoryReader:
    """Turns messages into events; it needs all messages to build each event."""

    def __init__(self, messages: Sequence[Message]) -> None:
        self._names: dict[str, str] = {}
        self._returned: set[str] = set()
        self._denied: set[str] = set()
        # A call beside one that waits for approval runs once that one is answered.
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
                if text := _person_text(message):
                    yield UserText(text)
                yield from (UserMedia(mime, data) for mime, data in images_of(message.content))
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
            yield events_ToolCall(call_id, name, arguments_of(call.arguments or ""))
            if call_id not in self._returned and message.id != self._held_back:
                yield events_ToolReturn(call_id, name, NO_RESULT, ToolStatus.INTERRUPTED)

    def _asked(self, request: ApprovalRequest) -> Event:
        """The event of a call that needed approval: a normal call, or a request while it still waits."""
        if request.call_id in self._returned:
            return events_ToolCall(request.call_id, request.name, request.arguments)
        return request

    def _returns(self, message: ToolReturnMessage) -> Iterator[Event]:
        for given in returns_of(message):
            # The call itself may be older than the oldest message.
            if given.tool_call_id in self._names:
                denied = given.tool_call_id in self._denied
                status = ToolStatus.DENIED if denied else status_of(given)
                name = self._names[given.tool_call_id]
                yield events_ToolReturn(given.tool_call_id, name, text_of(given.tool_return), status)


def _denials(message: ApprovalResponseMessage) -> set[str]:
    words = message.approvals or ()
    return {word.tool_call_id for word in words if isinstance(word, ApprovalReturn) and not word.approve}


def _person_text(message: UserMessage) -> str:
    """The person's text; empty for messages that Letta sent as the person."""
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
