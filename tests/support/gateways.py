"""A platform that answers byte by byte as a test wants, and the turns and tokens to ask it with."""

import asyncio
import base64
import json
from collections.abc import AsyncGenerator, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

# A piece of an answer: some bytes, or one of these.
HANG_UP = None
HOLD = b"<nothing more, and the connection stays>"

Answer = Iterable[bytes | None]


@dataclass(frozen=True, slots=True)
class GatewayCall:
    """A request as it came in; names of headers are in lower case."""

    raw: bytes
    method: str
    target: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def said(self) -> Any:
        return json.loads(self.body)


class Gateway:
    """Answers each request with the next answer, and with the last one from then on."""

    def __init__(self, *answers: Answer) -> None:
        self.requests: list[GatewayCall] = []
        self.connections = 0
        self.open = 0
        self.url = ""
        self._answers = list(answers) or [whole({"mcpServers": []})]

    def environ(self, **more: str) -> dict[str, str]:
        """What sends a client here."""
        return {"PYTHON_ENVIRONMENT": "Production", "MCP_PLATFORM_ENDPOINT": self.url, **more}

    def answer_to(self, asked: GatewayCall) -> Answer:  # noqa: ARG002 - for those who answer what was asked
        return self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self.open += 1
        try:
            while True:
                asked = await _read(reader)
                self.requests.append(asked)
                await _say(self.answer_to(asked), reader, writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            self.open -= 1
            writer.close()


@asynccontextmanager
async def opened(gateway: Gateway, port: int = 0) -> AsyncGenerator[Gateway]:
    """Run it on this loop until the end of the block."""
    server = await asyncio.start_server(gateway.serve, "127.0.0.1", port)
    async with server:
        gateway.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        yield gateway


def whole(document: object, status: int = 200, **headers: str) -> list[bytes | None]:
    """An answer in one piece; text and bytes as they are, anything else as JSON."""
    body = (
        document if isinstance(document, bytes) else (document if isinstance(document, str) else json.dumps(document))
    )
    body = body.encode() if isinstance(body, str) else body
    return [head(status, content_length=str(len(body)), **headers) + body]


def head(status: int = 200, **headers: str) -> bytes:
    lines = [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join([f"HTTP/1.1 {status} Said", *lines, "", ""]).encode()


def servers(*entries: Mapping[str, object] | str) -> list[bytes | None]:
    """An answer that lists servers."""
    named = [{"mcpServerName": entry} if isinstance(entry, str) else entry for entry in entries]
    return whole({"mcpServers": named})


def jwt(claims: object = None, /, **more: object) -> str:
    """A token with these claims, signed by nobody."""
    said = more if claims is None else claims
    parts = (base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=").decode() for part in ({}, said))
    return ".".join([*parts, "c2ln"])


def turn(**activity: object) -> SimpleNamespace:
    """A turn whose activity holds these."""
    return SimpleNamespace(activity=SimpleNamespace(**activity))


def chatting(**more: object) -> SimpleNamespace:
    """A turn that can be sent."""
    said = {"conversation": SimpleNamespace(id="talk"), "id": "turn-1", "text": "Hello", **more}
    return turn(**said)


async def _read(reader: asyncio.StreamReader) -> GatewayCall:
    start = await reader.readuntil(b"\r\n\r\n")
    first, *lines = start.decode("latin-1").rstrip("\r\n").split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    body = await reader.readexactly(int(headers.get("content-length", 0)))
    method, target, _ = first.split(" ")
    return GatewayCall(start + body, method, target, headers, body)


async def _say(answer: Answer, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    for piece in answer:
        if piece is None:
            raise ConnectionAbortedError
        if piece == HOLD:
            # Ends when the other side leaves.
            await reader.read()
            raise ConnectionAbortedError
        writer.write(piece)
        await writer.drain()
        await asyncio.sleep(0)
