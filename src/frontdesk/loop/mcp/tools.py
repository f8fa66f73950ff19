"""The tools of an MCP server as a turn uses them, under names that every model API takes."""

import hashlib
import json
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from frontdesk.loop.mcp.client import NO_HEADERS, McpClient
from frontdesk.loop.tools import Tool, ToolOutcome

SEPARATOR = "__"
TAKEN_BY_APIS = re.compile(r"[a-zA-Z0-9_-]{1,64}")
OTHER = re.compile(r"[^a-zA-Z0-9_-]")
SHOWN = 53
DIGEST = 10


async def as_tools(client: McpClient, headers: Mapping[str, str] = NO_HEADERS) -> Sequence[Tool]:
    """Everything the client's server offers; `headers` go along with each call and say who is behind it."""
    taken: dict[str, Tool] = {}
    listed = {tool.name: tool for tool in await client.tools(headers)}
    for tool in listed.values():
        name = api_name(client.server.name, tool.name, taken)
        taken[name] = Tool(name, tool.description, tool.parameters, _runner(client, tool.name, headers))
    return list(taken.values())


def api_name(server: str, tool: str, taken: Mapping[str, object]) -> str:
    """`<server>__<tool>` where a model API takes that, else a readable part of it with a digest of the whole."""
    name, salt = f"{server}{SEPARATOR}{tool}", 0
    # The first separator must be ours, or `a` + `b__c` and `a__b` + `c` would be one name.
    clear = SEPARATOR not in server and not server.endswith("_") and TAKEN_BY_APIS.fullmatch(name) is not None
    found = name if clear else _digested(server, tool, salt)
    while found in taken:
        salt += 1
        found = _digested(server, tool, salt)
    return found


def _digested(server: str, tool: str, salt: int) -> str:
    digest = hashlib.sha256(json.dumps([server, tool, salt]).encode()).hexdigest()[:DIGEST]
    return f"{OTHER.sub('_', f'{server}{SEPARATOR}{tool}')[:SHOWN]}_{digest}"


def _runner(
    client: McpClient, tool: str, headers: Mapping[str, str]
) -> Callable[[Mapping[str, Any]], Awaitable[ToolOutcome]]:
    async def run(arguments: Mapping[str, Any]) -> ToolOutcome:
        return await client.call(tool, arguments, headers)

    return run
