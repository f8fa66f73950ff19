"""What a server's results mean to an agent: a listing as tools, an answer as text."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, cast

from frontdesk.loop.mcp.model import RemoteTool

Object = Mapping[str, Any]

PRIMING_TOOL = "set_access_token"
# A server that keeps the token in its session offers these to people; for an agent all of it is done already.
AUTH_TOOLS = frozenset(
    {
        "authenticate",
        "exchange_code_for_token",
        "refresh_token",
        PRIMING_TOOL,
        "clear_auth",
        "get_auth_status",
        "get_user_info",
    }
)
AUTH_WORDS = re.compile(r"unauthorized|auth|认证|token", re.IGNORECASE)
COMPLETE = "complete"
ANYTHING: Object = {"type": "object"}


def tools_of(page: Object) -> list[RemoteTool]:
    """The tools on one page of a listing; what has no name is none."""
    return [_tool(item) for item in objects(page.get("tools")) if isinstance(item.get("name"), str)]


def entries_of(page: Object) -> int:
    """How many entries there are on it; what is no list at all counts as one that cannot be taken."""
    listed: object = page.get("tools")
    return len(cast("list[object]", listed)) if isinstance(listed, list) else 1


def for_agents(tools: Sequence[RemoteTool]) -> Sequence[RemoteTool]:
    """Without the tools to sign in, where the server is one that keeps the token in its session."""
    return [tool for tool in tools if tool.name not in AUTH_TOOLS] if keeps_token(tools) else tools


def keeps_token(tools: Sequence[RemoteTool]) -> bool:
    return any(tool.name == PRIMING_TOOL for tool in tools)


def is_error(result: Object) -> bool:
    return result.get("isError") is True


def is_success(result: Object) -> bool:
    return not is_error(result) and result.get("resultType", COMPLETE) == COMPLETE


def speaks_of_authentication(text: str) -> bool:
    return AUTH_WORDS.search(text) is not None


def text_of(result: Object) -> str:
    """The blocks of a result, one after another; structured content stands in where no block is text."""
    blocks = objects(result.get("content"))
    lines = [_text(block) for block in blocks]
    structured: object = result.get("structuredContent")
    if structured is not None and not any(block.get("type") == "text" for block in blocks):
        lines.insert(0, json.dumps(structured, ensure_ascii=False))
    return "\n".join(lines)


def _tool(item: Object) -> RemoteTool:
    schema, notes = item.get("inputSchema"), item.get("annotations")
    return RemoteTool(
        name=str(item["name"]),
        description=str(item.get("description") or item.get("title") or ""),
        parameters=cast("Object", schema) if isinstance(schema, dict) else ANYTHING,
        annotations=cast("Object", notes) if isinstance(notes, dict) else {},
    )


def _text(block: Object) -> str:
    match block:
        case {"type": "text", "text": str(text)}:
            return text
        case {"type": "image" | "audio" as kind, "data": str(data)}:
            return f"[{kind} {block.get('mimeType', 'of unknown type')}, {_decoded_size(data)} bytes]"
        case {"type": "resource", "resource": {"uri": str(uri)}}:
            return f"[resource {uri}]"
        case {"type": "resource_link", "uri": str(uri)}:
            return f"[resource {uri}]"
        case _:
            return f"[{block.get('type', 'unknown content')}]"


def _decoded_size(data: str) -> int:
    return len(data) * 3 // 4 - data[-2:].count("=")


def objects(value: object) -> list[Object]:
    """Those of a list's items that are objects; none where it is no list."""
    if not isinstance(value, list):
        return []
    return [cast("Object", item) for item in cast("list[object]", value) if isinstance(item, dict)]
