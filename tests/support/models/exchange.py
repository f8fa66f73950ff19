"""One HTTP request and its answer over plain ASGI, with pauses, and with an end in the midst of it."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from dataclasses import dataclass
from typing import Any

from typing_extensions import override
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

STREAM = [(b"content-type", b"text/event-stream"), (b"cache-control", b"no-cache")]


class ClientGone(Exception):
    """The client closed its connection before the answer was complete."""


class Severable(HttpToolsProtocol):
    """Uvicorn's fast protocol, but the application may hang up, and a stop waits for no open stream."""

    @override
    def on_message_begin(self) -> None:
        super().on_message_begin()
        self.scope["state"] = {"hang_up": self.transport.close}

    @override
    def shutdown(self) -> None:
        self.transport.close()


@dataclass(frozen=True, slots=True)
class Exchange:
    """A request that is being answered."""

    scope: Mapping[str, Any]
    receive: Receive
    send: Send

    def headers(self) -> dict[str, str]:
        return {name.decode("latin-1"): value.decode("latin-1") for name, value in self.scope["headers"]}

    async def body(self) -> bytes:
        content, more = b"", True
        while more:
            message = await self.receive()
            if message["type"] == "http.disconnect":
                raise ClientGone
            content += message["body"]
            more = message["more_body"]
        return content

    async def start_json(self, status: int, length: int) -> None:
        headers = [(b"content-type", b"application/json"), (b"content-length", str(length).encode())]
        await self.send({"type": "http.response.start", "status": status, "headers": headers})

    async def start_stream(self) -> None:
        await self.send({"type": "http.response.start", "status": 200, "headers": STREAM})

    async def write(self, body: bytes, *, more: bool = False) -> None:
        await self.send({"type": "http.response.body", "body": body, "more_body": more})

    async def pause(self, seconds: float) -> None:
        """Wait that long, but no longer than the client does."""
        if not seconds:
            return
        try:
            async with asyncio.timeout(seconds):
                await self._end()
        except TimeoutError:
            return
        raise ClientGone

    async def hang_up(self) -> None:
        """Close the connection once what was written is sent."""
        self.scope["state"]["hang_up"]()
        # Uvicorn calls an answer without an end an error, except after the connection is lost.
        await self._end()

    async def _end(self) -> None:
        while (await self.receive())["type"] != "http.disconnect":
            pass
