"""A tool called by a bare client, and its answer read as the gateway reads it."""

from collections.abc import Mapping
from typing import Any

from frontdesk.errors import Unavailable
from frontdesk.loop.mcp.client import McpClient
from frontdesk.loop.mcp.session import NOTHING_SAID
from frontdesk.loop.tools import ToolOutcome
from frontdesk.tools.gateway.result import read


async def call(
    client: McpClient, name: str, arguments: Mapping[str, Any], headers: Mapping[str, str] = NOTHING_SAID
) -> ToolOutcome:
    try:
        result = await client.raw(name, arguments, headers)
    except Unavailable as error:
        return ToolOutcome(f"Error calling {name}: {error.public}", ok=False)
    found = read(name, result.value, result.size)
    return ToolOutcome(found.text, ok=found.ok)
