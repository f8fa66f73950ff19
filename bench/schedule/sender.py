"""Sends a prompt to the receiver over kept-alive connections: Frontdesk and its peers all deliver this way."""

import asyncio
from collections import deque
from typing import cast

from typing_extensions import override

from bench.schedule.due import PROMPT

# This many deliveries at a time, for every engine.
AT_A_TIME = 256
DONE = b"HTTP/1.1 204 "


class Sender:
    """At most this many deliveries at a time; the others wait in the order of their arrival."""

    def __init__(self, port: int, connections: int = AT_A_TIME) -> None:
        self._port = port
        self._host = f"127.0.0.1:{port}"
        self._left = connections
        self._idle: list[_Connection] = []
        self._waiting: deque[asyncio.Future[_Connection]] = deque()

    async def send(self, delivery: str, due_us: int, prompt: str = PROMPT) -> None:
        """Returns when the receiver has accepted it."""
        body = prompt.encode()
        head = f"POST /{delivery}/{due_us} HTTP/1.1\r\nHost: {self._host}\r\nContent-Length: {len(body)}\r\n\r\n"
        connection = await self._connection()
        try:
            await connection.exchange(head.encode() + body)
        finally:
            self._release(connection)

    async def _connection(self) -> "_Connection":
        if self._idle:
            return self._idle.pop()
        loop = asyncio.get_running_loop()
        if self._left:
            self._left -= 1
            _, connection = await loop.create_connection(_Connection, "127.0.0.1", self._port)
            return connection
        waiting: asyncio.Future[_Connection] = loop.create_future()
        self._waiting.append(waiting)
        return await waiting

    def _release(self, connection: "_Connection") -> None:
        while self._waiting:
            waiting = self._waiting.popleft()
            if not waiting.done():
                waiting.set_result(connection)
                return
        self._idle.append(connection)


class _Connection(asyncio.Protocol):
    def __init__(self) -> None:
        self._transport: asyncio.WriteTransport | None = None
        self._answer: asyncio.Future[None] | None = None

    async def exchange(self, request: bytes) -> None:
        assert self._transport is not None
        self._answer = asyncio.get_running_loop().create_future()
        self._transport.write(request)
        await self._answer

    @override
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.WriteTransport", transport)

    @override
    def data_received(self, data: bytes) -> None:
        # The receiver's answer is a head of a few bytes, which arrives in one piece.
        answer = self._answer
        if answer is None or answer.done():
            return
        if data.startswith(DONE) and data.endswith(b"\r\n\r\n"):
            answer.set_result(None)
        else:
            answer.set_exception(ConnectionError(f"the receiver answered {data!r}"))

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(ConnectionError("the receiver hung up"))
