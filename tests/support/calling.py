"""A tool called by a bare client, and its answer read as the gateway reads it."""

from collections.abc import Mapping
from typing import Any

from frontdesk.errors import Unavailable
from frontdesk.llm.tools import ToolOutcome
from frontdesk.mcp_client.client import McpClient
from frontdesk.mcp_client.session import NO_HEADERS
from frontdesk.tools.calls import read_result


async def call(
    client: McpClient, name: str, arguments: Mapping[str, Any], headers: Mapping[str, str] = NO_HEADERS
) -> ToolOutcome:
    try:
        result = await client.call_tool(name, arguments, headers)
    except Unavailable as error:
        return ToolOutcome(f"Error calling {name}: {error.public_message}", ok=False)
    found = read_result(name, result.value, result.size)
    return ToolOutcome(found.text, ok=found.ok)
