"""An MCP server whose answers have the requested size, and are cut into pieces at random."""

import asyncio
import hashlib
import json
import random
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Any, Literal, get_args

import uvloop

CALLED = "answer"
TOOL: Mapping[str, Any] = {
    "name": CALLED,
    "inputSchema": {
        "type": "object",
        "properties": {"size": {"type": "integer"}, "seed": {"type": "integer"}},
        "required": ["size", "seed"],
    },
}
MOST_PIECES = 40
# So that many writes stay unsent, and the event loop runs in between, as with ordinary servers.
REST = 0.3
# The number of different cuts of each answer.
CUTS = 3
# Stands for the id of a call, which is not longer.
PLACE_OF_ID = b"##########"

Framing = Literal["length", "chunked", "stream"]


def text_of(size: int, seed: int) -> str:
    """The text of an answer; no other size or seed gives the same text."""
    block = hashlib.sha256(f"{size} {seed}".encode()).hexdigest()
    return (block * (size // len(block) + 1))[:size]


class SizedServer:
    """Writes HTTP itself, so that each piece is sent as it was cut.

    `padding`: the number of unnecessary characters in the description of its tool.
    """

    def __init__(self, padding: int = 0) -> None:
        self.connections = 0
        self.frames = 0
        self.calls = 0
        self.url = ""
        self._tool: Mapping[str, Any] = {**TOOL, "description": f"Answers with a text of a size. {'x' * padding}"}

    @asynccontextmanager
    async def opened(self) -> AsyncGenerator["SizedServer"]:
        """Serve on a free port of this loop, until the end of the block."""
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        async with server:
            self.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/mcp"
            yield self

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                lengths = [line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
                body = await reader.readexactly(int(lengths[0].partition(b":")[2])) if lengths else b"{}"
                await self._answer(json.loads(body), writer)
        except (asyncio.IncompleteReadError, asyncio.CancelledError, ConnectionError):
            pass
        finally:
            writer.close()

    async def _answer(self, frame: Mapping[str, Any], writer: asyncio.StreamWriter) -> None:
        if "id" not in frame or "method" not in frame:
            writer.write(b"HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n")
            return
        self.calls += frame["method"] == "tools/call"
        self.frames += 1
        chance = random.Random(self.frames)
        if frame["method"] == "tools/call":
            asked = frame["params"]["arguments"]
            said = called(frame["id"], asked["size"], asked["seed"], chance)
        else:
            result = self._result(frame["method"], frame.get("params", {}))
            body = json.dumps({"jsonrpc": "2.0", "id": frame["id"], "result": result}).encode()
            said = pieces(body, chance)
        for piece in said:
            writer.write(piece)
            if chance.random() < REST:
                await writer.drain()
                await asyncio.sleep(0)
        await writer.drain()

    def _result(self, method: str, params: Mapping[str, Any]) -> Mapping[str, Any]:
        match method:
            case "initialize":
                about = {"name": "sized", "version": "1"}
                return {"protocolVersion": params["protocolVersion"], "capabilities": {}, "serverInfo": about}
            case "tools/list":
                return {"tools": [self._tool]}
            case _:
                return {}


def called(number: int, size: int, seed: int, chance: random.Random) -> Iterator[bytes | memoryview]:
    """The pieces of the answer to a call; all but the id is cached in a few forms, because cutting 10 MB takes long."""
    kept = _kept(size, seed, chance.randrange(CUTS))
    number_said = str(number).rjust(len(PLACE_OF_ID)).encode()
    yield from cut(kept.head.replace(PLACE_OF_ID, number_said), chance)
    yield from kept.rest


@dataclass(frozen=True, slots=True)
class CutAnswer:
    """A whole HTTP answer: the part before the text, and the rest, cut."""

    head: bytes
    rest: Sequence[bytes | memoryview]


@lru_cache(maxsize=1000)
def _kept(size: int, seed: int, number: int) -> CutAnswer:
    # Built by hand: the text needs no escaping in JSON, and encoding 10 MB takes long.
    body = b'{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"%s"}]}}' % (
        PLACE_OF_ID,
        text_of(size, seed).encode(),
    )
    whole = b"".join(pieces(body, random.Random(f"{size} {seed} {number}"), whole_to=len(body) - size))
    at = whole.index(PLACE_OF_ID) + len(PLACE_OF_ID)
    return CutAnswer(whole[:at], cut(whole[at:], random.Random(number)))


def pieces(body: bytes, chance: random.Random, whole_to: int = 0) -> Sequence[bytes | memoryview]:
    """A whole HTTP answer, framed in one of three ways, cut anywhere; no chunk ends before `whole_to`."""
    framing: Framing = chance.choice(get_args(Framing))
    if framing == "length":
        head = f"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
        return cut(head.encode() + body, chance)
    kind = "application/json"
    if framing == "stream":
        kind, before = "text/event-stream", b": hello\n\nevent: message\ndata: "
        body, whole_to = before + body + b"\n\n", whole_to + len(before)
    head = f"HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ntransfer-encoding: chunked\r\n\r\n".encode()
    parts = cut(body, chance, whole_to)
    chunks = [b"%x%s\r\n%s\r\n" % (len(part), chance.choice((b"", b";a=b")), part) for part in parts]
    end = b"0\r\n" + chance.choice((b"", b"x-trailer: 1\r\n")) + b"\r\n"
    return cut(head + b"".join(chunks) + end, chance)


def cut(data: bytes, chance: random.Random, start: int = 0) -> list[memoryview]:
    """The same bytes in a random number of pieces, none empty, and none that ends before `start`."""
    view = memoryview(data)
    most = min(len(data), MOST_PIECES)
    places = sorted({0, len(data), *(chance.randrange(start, len(data)) for _ in range(chance.randrange(most)))})
    return [view[begin:end] for begin, end in pairwise(places)]


async def _run() -> None:
    async with SizedServer().opened() as server:
        print(f"It is open: {server.url}", flush=True)
        await asyncio.Event().wait()


if __name__ == "__main__":
    uvloop.run(_run())
