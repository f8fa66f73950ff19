"""Letta's words in ours: the small conversions that a stream and a history share."""

from base64 import b64decode
from collections.abc import Mapping, Sequence
from typing import Any, cast

from letta_client.types import Tool as LettaTool
from letta_client.types import ToolReturnMessage
from letta_client.types.agents import (
    ApprovalRequestMessage,
    ImageContent,
    ToolCall,
    ToolCallDelta,
    ToolCallMessage,
    ToolReturn,
)
from letta_client.types.agents.image_content import SourceURLImage

from frontdesk.loop.events import ApprovalRequest, StopReason, ToolStatus
from frontdesk.loop.text import json_object, storable

# What Letta answers to a call of a tool that the agent does not have, or may not use now.
NO_SUCH_TOOL = ("[ToolConstraintError] Cannot call", "Tool not found")

STOPS: Mapping[str, StopReason] = {
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


def pictures_of(content: str | Sequence[object]) -> list[tuple[str, bytes]]:
    """The images of a message that came with their data."""
    parts = () if isinstance(content, str) else content
    sources = [part.source for part in parts if isinstance(part, ImageContent)]
    return [
        (source.media_type or "image/png", b64decode(source.data))
        for source in sources
        if not isinstance(source, SourceURLImage) and source.data
    ]


def whole_arguments(text: str) -> Mapping[str, Any] | None:
    """The arguments, if this is a whole JSON object."""
    return json_object(text) if text.strip() else None


def arguments_of(text: str) -> Mapping[str, Any]:
    """The arguments of a finished call; what is no JSON object is kept as it was written."""
    whole = json_object(text)
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
    """The returns of a message, of which older servers know but one."""
    if message.tool_returns:
        return message.tool_returns
    return [ToolReturn(status=message.status, tool_call_id=message.tool_call_id, tool_return=message.tool_return)]


def status_of(given: ToolReturn) -> ToolStatus:
    if given.status == "success":
        return ToolStatus.OK
    return ToolStatus.UNKNOWN if text_of(given.tool_return).startswith(NO_SUCH_TOOL) else ToolStatus.ERROR


def server_of(tool: LettaTool) -> str | None:
    """The name of the MCP server that a tool of Letta's is of."""
    source = (tool.metadata or {}).get("mcp")
    name = cast("dict[str, object]", source).get("server_name") if isinstance(source, dict) else None
    return name if isinstance(name, str) else None
