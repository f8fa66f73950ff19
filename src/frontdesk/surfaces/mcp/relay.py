"""Hands on what a tool elsewhere answered, as it came."""

from collections.abc import Mapping
from typing import Any, cast

from mcp_types.methods import serialize_server_result
from pydantic import ValidationError

from frontdesk.loop.mcp.results import text_of
from frontdesk.surfaces.mcp.tool import Result
from frontdesk.tools.gateway.result import CallResult


def relayed(result: CallResult, version: str) -> Result:
    """The answer in its own blocks; one that the client's revision does not know is put into words."""
    content = [block if _fits(block, version) else _in_words(block) for block in result.content]
    if not content and result.error:
        content = [{"type": "text", "text": result.error}]
    # What is no object is not structured content in any revision but the newest; its text is among the blocks.
    structured = cast("Mapping[str, Any]", result.structured) if isinstance(result.structured, dict) else None
    return Result(content, structured, result.ok)


def _fits(block: Mapping[str, Any], version: str) -> bool:
    # Nearly every block is text and no more, and to look closer at those costs as much as all else here.
    if len(block) == 2 and block.get("type") == "text" and isinstance(block.get("text"), str):
        return True
    try:
        # Of a result with a strange block, the newest revision's shape keeps nothing; the others refuse it.
        shaped = serialize_server_result("tools/call", version, {"resultType": "complete", "content": [block]})
    except ValidationError:
        return False
    return "content" in shaped


def _in_words(block: Mapping[str, Any]) -> Mapping[str, Any]:
    return {"type": "text", "text": text_of({"content": [block]})}
