"""Calls `find_tools` and `call_tool` in process, and reads what they say."""

import json
from dataclasses import dataclass
from typing import Any

from frontdesk.interfaces.http.context import ASGIApp
from tests.support.wire import MODERN, Answer, Era, call, send


@dataclass(frozen=True, slots=True)
class ToolAnswered:
    """A tool's result: its words, what stands beside them, and whether it worked."""

    text: str
    structured: Any
    ok: bool
    content: list[dict[str, Any]]


async def ask(
    asgi: ASGIApp, tool: str, arguments: dict[str, Any], agent: str | None = None, **more: Any
) -> ToolAnswered:
    """The result of a call, at the endpoint for tools."""
    answer = await asked(asgi, tool, arguments, agent, **more)
    result = frames(answer)[-1]["result"]
    text = "\n".join(block.get("text", "") for block in result["content"])
    return ToolAnswered(text, result.get("structuredContent"), not result.get("isError"), result["content"])


def frames(answer: Answer) -> list[dict[str, Any]]:
    """What an answer says, frame by frame: one where it is plain, several where it is a stream."""
    if answer.headers["content-type"] == "application/json":
        return [answer.json]
    return [json.loads(line[6:]) for line in answer.body.decode().splitlines() if line.startswith("data: ")]


async def asked(
    asgi: ASGIApp,
    tool: str,
    arguments: dict[str, Any],
    agent: str | None = None,
    *,
    era: Era = MODERN,
    meta: dict[str, object] | None = None,
    key: str | None = None,
) -> Answer:
    """The whole answer to a call."""
    said, body = call(era, tool, arguments, meta)
    said |= {"x-agent-id": agent} if agent else {}
    said |= {"authorization": f"Bearer {key}"} if key else {}
    return await send(asgi, said, body, path="/mcp/tools")
