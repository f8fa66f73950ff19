"""What is sent to a Letta agent: words and pictures of a person, where the agent is, words on calls, and tools."""

from base64 import b64encode
from collections.abc import Sequence

from letta_client.types import MessageCreateParam
from letta_client.types.agents import (
    ApprovalCreateParam,
    ApprovalReturnParam,
    ImageContentParam,
    TextContentParam,
    ToolReturnParam,
)
from letta_client.types.agents.message_create_params import ClientTool

from frontdesk.agents.host import Media
from frontdesk.loop.tools import Tool

Answer = ApprovalReturnParam | ToolReturnParam
Input = MessageCreateParam | ApprovalCreateParam


def spoken(text: str, otid: str | None, media: Sequence[Media] = ()) -> MessageCreateParam:
    said: MessageCreateParam = {"role": "user", "content": [*_words(text), *map(_picture, media)] if media else text}
    return said if otid is None else {**said, "otid": otid}


def around(context: str) -> MessageCreateParam:
    """Where the agent is, as nobody's words."""
    return {"role": "system", "content": context}


def approval(answers: Sequence[Answer]) -> ApprovalCreateParam:
    return {"type": "approval", "approvals": answers}


def denial(call_id: str, reason: str) -> ApprovalReturnParam:
    return {"type": "approval", "tool_call_id": call_id, "approve": False, "reason": reason}


def offered_tool(tool: Tool) -> ClientTool:
    return {"name": tool.name, "description": tool.description, "parameters": dict(tool.parameters)}


def _words(text: str) -> list[TextContentParam]:
    return [{"type": "text", "text": text}] if text.strip() else []


def _picture(media: Media) -> ImageContentParam:
    data = b64encode(media.data).decode()
    return {"type": "image", "source": {"type": "base64", "media_type": media.mime, "data": data}}
