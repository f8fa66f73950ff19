"""MCP requests as they go over the wire in both eras, and tools called in process."""

import json
import shutil
import subprocess
import sys
from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import anyio

from frontdesk.errors import Unavailable
from frontdesk.interfaces.http.context import ASGIApp
from frontdesk.llm.tools import ToolOutcome
from frontdesk.mcp_client.client import McpClient
from frontdesk.mcp_client.session import NO_HEADERS
from frontdesk.tools.calls import read_result

# MCP requests as they go over the wire, in both eras, and two plain ways to send them


Era = Literal["2026-07-28", "2025-11-25", "2025-06-18"]
ERAS: tuple[Era, ...] = ("2026-07-28", "2025-11-25", "2025-06-18")
MODERN: Era = "2026-07-28"
CURL_SECONDS = 20


@dataclass(frozen=True, slots=True)
class Answer:
    """A status, headers and body."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def structured(self) -> Any:
        return self.json["result"]["structuredContent"]

    @property
    def error(self) -> tuple[int, str]:
        told = self.json["error"]
        return told["code"], told["message"]


def call(
    era: Era,
    tool: str = "whoami",
    arguments: Mapping[str, object] | None = None,
    meta: Mapping[str, object] | None = None,
    number: object = "req-1",
) -> tuple[dict[str, str], bytes]:
    """(headers, body) of a tools/call."""
    params: dict[str, Any] = {"name": tool, "arguments": dict(arguments or {}), "_meta": dict(meta or {})}
    headers = {
        "content-type": "application/json",
        "accept": "application/json, text/event-stream",
        "mcp-protocol-version": era,
    }
    if era == MODERN:
        headers |= {"mcp-method": "tools/call", "mcp-name": tool}
        params["_meta"] |= {
            "io.modelcontextprotocol/protocolVersion": era,
            "io.modelcontextprotocol/clientCapabilities": {},
        }
    return headers, json.dumps({"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}).encode()


def curl(url: str, headers: Mapping[str, str], body: bytes) -> Answer:
    """Send with curl, or with its replacement if there is none."""
    found = shutil.which("curl")
    program = [found] if found else [sys.executable, str(Path(__file__).with_name("curl.py"))]
    said = [part for name, value in headers.items() for part in ("-H", f"{name}: {value}")]
    done = subprocess.run(
        [*program, "-s", "-i", *said, "-d", body.decode(), url], capture_output=True, timeout=CURL_SECONDS, check=True
    )
    head, _, content = done.stdout.partition(b"\r\n\r\n")
    status, *lines = head.decode().split("\r\n")
    return Answer(int(status.split()[1]), dict(line.lower().split(": ", 1) for line in lines), content)


async def send(
    app: ASGIApp, headers: Mapping[str, str], body: bytes | None, *, path: str = "/mcp", method: str = "POST"
) -> Answer:
    """Send in process, through the whole application; a body of None never arrives."""
    raw = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()]
    if "host" not in headers:
        raw.append((b"host", b"127.0.0.1:3020"))
    scope: MutableMapping[str, Any] = {
        "type": "http",
        "method": method,
        "path": path,
        "raw_path": path.encode(),
        "root_path": "",
        "query_string": b"",
        "scheme": "http",
        "http_version": "1.1",
        "headers": raw,
        "server": ("127.0.0.1", 3020),
        "client": ("127.0.0.1", 1),
    }
    messages: list[MutableMapping[str, Any]] = []
    sent = anyio.Event()

    async def receive() -> MutableMapping[str, Any]:
        if body is None or sent.is_set():
            await anyio.sleep_forever()
        sent.set()
        return {"type": "http.request", "body": body, "more_body": False}

    async def keep(message: MutableMapping[str, Any]) -> None:
        messages.append(message)

    await app(scope, receive, keep)
    told = {name.decode(): value.decode() for name, value in messages[0]["headers"]}
    content = b"".join(message.get("body", b"") for message in messages[1:])
    return Answer(messages[0]["status"], told, content)


# Calls `find_tools` and `call_tool` in process, and reads their answers


@dataclass(frozen=True, slots=True)
class ToolAnswered:
    """A tool's result: its text, its structured content, and whether it succeeded."""

    text: str
    structured: Any
    ok: bool
    content: list[dict[str, Any]]


async def ask(
    asgi: ASGIApp, tool: str, arguments: dict[str, Any], agent: str | None = None, **more: Any
) -> ToolAnswered:
    """The result of a call at the endpoint for tools."""
    answer = await asked(asgi, tool, arguments, agent, **more)
    result = frames(answer)[-1]["result"]
    text = "\n".join(block.get("text", "") for block in result["content"])
    return ToolAnswered(text, result.get("structuredContent"), not result.get("isError"), result["content"])


def frames(answer: Answer) -> list[dict[str, Any]]:
    """The frames of an answer: one if it is plain JSON, several if it is a stream."""
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


# Calls a tool with a bare client, and reads its answer as the gateway does


async def call_upstream(
    client: McpClient, name: str, arguments: Mapping[str, Any], headers: Mapping[str, str] = NO_HEADERS
) -> ToolOutcome:
    try:
        result = await client.call_tool(name, arguments, headers)
    except Unavailable as error:
        return ToolOutcome(f"Error calling {name}: {error.public_message}", ok=False)
    found = read_result(name, result.value, result.size)
    return ToolOutcome(found.text, ok=found.ok)
