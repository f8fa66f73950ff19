"""A client that costs next to nothing: prepared bytes over one kept-alive connection."""

import json
import socket
import time
from collections.abc import Generator
from contextlib import contextmanager
from enum import StrEnum

from bench.servers.listening import CALLED

ANSWER_SECONDS = 10
AGENT = "agent-1"
TEXT = "Good morning"


class Era(StrEnum):
    """The protocol version of a call: stateless by design, or a handshake version without its session."""

    MODERN = "2026-07-28"
    HANDSHAKE = "2025-06-18"


def call_bytes(era: Era, port: int) -> bytes:
    """One `tools/call` as a client of that era sends it."""
    params: dict[str, object] = {"name": CALLED, "arguments": {"text": TEXT}}
    headers = {
        "Host": f"127.0.0.1:{port}",
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": era.value,
        "x-agent-id": AGENT,
    }
    if era is Era.MODERN:
        headers |= {"Mcp-Method": "tools/call", "Mcp-Name": CALLED}
        params["_meta"] = {
            "io.modelcontextprotocol/protocolVersion": era.value,
            "io.modelcontextprotocol/clientCapabilities": {},
        }
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).encode()
    headers["Content-Length"] = str(len(body))
    head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return f"POST /mcp HTTP/1.1\r\n{head}\r\n".encode() + body


@contextmanager
def connected(port: int) -> Generator[socket.socket]:
    with socket.create_connection(("127.0.0.1", port), ANSWER_SECONDS) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        yield connection


def check_answer(connection: socket.socket, call: bytes) -> None:
    """Make one call, and check that the answer holds its text."""
    answer = exchange(connection, call)
    head, _, body = answer.partition(b"\r\n\r\n")
    if b" 200 " not in head.partition(b"\r\n")[0] or TEXT not in json.loads(body)["result"]["content"][0]["text"]:
        raise RuntimeError(f"a call was not answered with what it said: {answer.decode(errors='replace')}")


def exchange(connection: socket.socket, call: bytes) -> bytes:
    """Send a call and read its answer to the end."""
    connection.sendall(call)
    answer = b""
    while True:
        part = connection.recv(65536)
        if not part:
            raise RuntimeError(f"the server hung up after {answer!r}")
        answer += part
        end = answer.find(b"\r\n\r\n")
        if end >= 0 and len(answer) >= end + 4 + _length(answer[:end]):
            return answer


def timed(connection: socket.socket, call: bytes, most: int, seconds: float) -> tuple[list[int], int]:
    """Nanoseconds of each call, and the bytes of one answer, the same for all: `most` calls, fewer if slow."""
    taken: list[int] = []
    sizes: set[int] = set()
    until = time.monotonic() + seconds
    while len(taken) < most and (not taken or time.monotonic() < until):
        started = time.perf_counter_ns()
        answer = exchange(connection, call)
        taken.append(time.perf_counter_ns() - started)
        sizes.add(len(answer))
    if len(sizes) > 1:
        raise RuntimeError(f"the same call was answered in different sizes: {sorted(sizes)}")
    return taken, sizes.pop()


def _length(head: bytes) -> int:
    _, found, rest = head.lower().partition(b"\r\ncontent-length:")
    if not found:
        raise RuntimeError(f"an answer does not say how long it is: {head.decode(errors='replace')}")
    return int(rest.partition(b"\r\n")[0])
