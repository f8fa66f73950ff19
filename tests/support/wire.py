"""MCP requests as they go over the wire, in both eras, and two plain ways to send them."""

import json
import shutil
import subprocess
import sys
from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import anyio

from frontdesk.interfaces.http.context import ASGIApp

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
    """Send with curl, or with its stand-in where there is none."""
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
