"""The requests that a caller sends along a way, as prepared bytes."""

import json
import re
from collections.abc import Mapping
from socket import socket
from typing import Any

from bench.wire import AGENT, TEXT, Era, exchange

# mcp-proxy and ContextForge support no newer version.
ERA = Era.HANDSHAKE
SESSION = re.compile(rb"\r\nmcp-session-id: *([^\r]+)\r\n", re.IGNORECASE)
ARGUMENTS = {"text": TEXT}


def call(port: int, tool: str, arguments: Mapping[str, Any], session: str | None) -> bytes:
    """One `tools/call`."""
    params = {"name": tool, "arguments": arguments}
    return _post(port, {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}, session)


def shake_hands(connection: socket, port: int) -> str | None:
    """Send the handshake; returns the session id for later requests, if the server keeps sessions."""
    about = {"protocolVersion": ERA.value, "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}
    hello = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": about}
    found = SESSION.search(exchange(connection, _post(port, hello, None)))
    if found is None:
        return None
    session = found[1].decode()
    exchange(connection, _post(port, {"jsonrpc": "2.0", "method": "notifications/initialized"}, session))
    return session


def says_it_back(answer: bytes) -> bool:
    """Whether the tool returned the expected answer."""
    result: dict[str, Any] = json.loads(answer.partition(b"\r\n\r\n")[2]).get("result", {})
    return not result.get("isError") and TEXT in json.dumps(result.get("content"))


def _post(port: int, frame: Mapping[str, Any], session: str | None) -> bytes:
    body = json.dumps(frame).encode()
    headers = {
        "Host": f"127.0.0.1:{port}",
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": ERA.value,
        "x-agent-id": AGENT,
        "Content-Length": str(len(body)),
    }
    if session is not None:
        headers["Mcp-Session-Id"] = session
    head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return f"POST /mcp HTTP/1.1\r\n{head}\r\n".encode() + body
