"""A peer and, at the other end of a connection without a wire, whoever talks to it."""

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import anyio

from frontdesk.interfaces.acp.jsonrpc import (
    ConnectionClosed,
    HandleNotification,
    HandleRequest,
    Json,
    RpcPeer,
    RpcRequest,
)

SECONDS = 10


@dataclass(slots=True)
class Memory:
    """A carrier; `deaf` is the other side that reads no more."""

    incoming: asyncio.Queue[bytes | None] = field(default_factory=asyncio.Queue[bytes | None])
    outgoing: asyncio.Queue[bytes] = field(default_factory=asyncio.Queue[bytes])
    deaf: bool = False

    async def receive(self) -> bytes | None:
        return await self.incoming.get()

    async def send(self, frame: bytes) -> None:
        if self.deaf:
            raise ConnectionClosed("deaf")
        self.outgoing.put_nowait(frame)

    async def close(self) -> None:
        return None


@dataclass(slots=True)
class Talk:
    """What the other side says and hears."""

    carrier: Memory
    peer: RpcPeer
    bugs: list[Exception]
    ended: anyio.Event = field(default_factory=anyio.Event)
    running: anyio.CancelScope = field(default_factory=anyio.CancelScope)

    def say(self, *frames: dict[str, Any] | bytes) -> None:
        for frame in frames:
            self.carrier.incoming.put_nowait(frame if isinstance(frame, bytes) else json.dumps(frame).encode())

    def leave(self) -> None:
        self.carrier.incoming.put_nowait(None)

    async def hear(self) -> dict[str, Any]:
        frame = json.loads(await self.carrier.outgoing.get())
        assert frame.pop("jsonrpc") == "2.0"
        return frame

    async def left_alone(self) -> None:
        """Nothing that was said before is still to be taken in, and nothing was answered to it."""
        self.say(call("last", "echo"))
        assert await self.hear() == {"id": "last", "result": {}}

    async def _run(self) -> None:
        with self.running:
            await self.peer.run()
        self.ended.set()


def call(number: object, method: str, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": params}


def notice(method: str, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "method": method, "params": params}


def reply(number: object, **outcome: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": number, **outcome}


async def echo(request: RpcRequest) -> Json:
    return request.params


def ignore(_method: str, _params: Json) -> None:
    return None


@asynccontextmanager
async def talking(
    answer: HandleRequest = echo, hear: HandleNotification = ignore, **options: float
) -> AsyncGenerator[Talk]:
    """A peer that runs; the other side leaves at the end, and it must end too."""
    carrier, bugs = Memory(), list[Exception]()
    talk = Talk(carrier, RpcPeer(carrier, answer, hear, bugs.append, **options), bugs)
    with anyio.fail_after(SECONDS):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(talk._run)
            yield talk
            talk.leave()
