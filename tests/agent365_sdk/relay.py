"""A relay before the local platform: records every request as sent, and sometimes answers itself."""

import asyncio
import json
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

LONGEST_HEAD = 4 * 1024 * 1024
FRAMING = frozenset({"connection", "content-length", "transfer-encoding"})


@dataclass(frozen=True, slots=True)
class Recorded:
    """One request: its target unchanged, and its headers in order with lower-case names."""

    method: str
    target: str
    headers: tuple[tuple[str, str], ...]
    body: bytes

    def header(self, name: str) -> str | None:
        return dict(self.headers).get(name)


@dataclass(frozen=True, slots=True)
class Relayed:
    """The local platform answers, with these replacements if there are any."""

    fault: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class RelayedAnswer:
    """The relay answers, with bytes that the local platform would not send."""

    status: int = 200
    body: bytes = b""
    headers: tuple[tuple[str, str], ...] = ()
    # Longer than the body: the answer breaks off.
    claimed: int | None = None


@dataclass(frozen=True, slots=True)
class HungUp:
    """The connection ends without an answer."""


@dataclass(frozen=True, slots=True)
class Silent:
    """No answer, or nothing after the head; the connection stays open until the client closes it."""

    after_head: bool = False


Answer = Relayed | RelayedAnswer | HungUp | Silent


@dataclass(slots=True)
class Relay:
    """The recorded requests, and the next answers: the last answer is for all later requests."""

    url: str
    upstream: str
    answers: tuple[Answer, ...] = (Relayed(),)
    recorded: list[Recorded] = field(default_factory=list[Recorded])

    def begin(self, answers: tuple[Answer, ...]) -> None:
        self.answers = answers
        self.recorded = []

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            request = await _request(reader)
            if request is None:
                return
            answer = self.answers[min(len(self.recorded), len(self.answers) - 1)]
            self.recorded.append(request)
            await self._answer(answer, request, reader, writer)
        except ConnectionError:
            pass
        finally:
            writer.close()

    async def _answer(
        self, answer: Answer, request: Recorded, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        match answer:
            case Relayed(fault=fault):
                if fault is not None:
                    await self._break(request.method, fault)
                writer.write(await _passed_on(self.upstream, request))
            case RelayedAnswer():
                writer.write(_head(answer) + answer.body)
            case HungUp():
                writer.transport.abort()
            case Silent(after_head=after_head):
                writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 20\r\n\r\n[" if after_head else b"")
                await reader.read()
        await writer.drain()

    async def _break(self, method: str, fault: Mapping[str, Any]) -> None:
        """Make the platform fail the next request to this part of it."""
        asked = {"discovery" if method == "GET" else "chat": {**fault, "times": 1}}
        host = urlsplit(self.upstream).netloc
        answer = await _passed_on(
            self.upstream, Recorded("PUT", "/faults", (("host", host),), json.dumps(asked).encode())
        )
        assert answer.startswith(b"HTTP/1.1 200"), answer


@asynccontextmanager
async def open_relay(upstream: str) -> AsyncGenerator[Relay]:
    """A relay on a port of its own before the platform at `upstream`."""
    relay = Relay("", upstream)
    server = await asyncio.start_server(relay.serve, "127.0.0.1", 0, limit=LONGEST_HEAD)
    async with server:
        relay.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        yield relay


async def _request(reader: asyncio.StreamReader) -> Recorded | None:
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError:
        return None
    line, *lines = head.decode("latin-1").split("\r\n")[:-2]
    method, target, _ = line.split(" ")
    headers = tuple((name.lower(), value.strip()) for name, _, value in (text.partition(":") for text in lines))
    return Recorded(method, target, headers, await reader.readexactly(int(dict(headers).get("content-length", "0"))))


async def _passed_on(upstream: str, request: Recorded) -> bytes:
    """Everything that the platform answers, to the end of the connection."""
    parts = urlsplit(upstream)
    reader, writer = await asyncio.open_connection(parts.hostname, parts.port, limit=LONGEST_HEAD)
    kept = [(name, value) for name, value in request.headers if name not in FRAMING]
    lines = [f"{request.method} {request.target} HTTP/1.1", *(f"{name}: {value}" for name, value in kept)]
    lines += ["connection: close", f"content-length: {len(request.body)}", "", ""]
    writer.write("\r\n".join(lines).encode("latin-1") + request.body)
    try:
        return await reader.read()
    finally:
        writer.close()
        await writer.wait_closed()


def _head(answer: RelayedAnswer) -> bytes:
    length = len(answer.body) if answer.claimed is None else answer.claimed
    lines = [f"HTTP/1.1 {answer.status} Said", *(f"{name}: {value}" for name, value in answer.headers)]
    if answer.status != 204:
        lines.append(f"content-length: {length}")
    return "\r\n".join([*lines, "connection: close", "", ""]).encode("latin-1")
