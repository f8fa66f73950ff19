"""MCP over standard input and output, for a client that starts Frontdesk itself."""

from collections.abc import AsyncIterable, Awaitable, Callable
from dataclasses import dataclass, field

import anyio
from anyio.streams.memory import MemoryObjectSendStream
from mcp.server.stdio import stdio_server
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCError, JSONRPCRequest, JSONRPCResponse

from frontdesk.app import App, Door
from frontdesk.surfaces.mcp.server import build_server, doors, offers, path_of
from frontdesk.surfaces.mcp.starter import Starter

DRAIN_SECONDS = 10
Incoming = SessionMessage | Exception
Send = Callable[[SessionMessage], Awaitable[None]]


async def serve(app: App, starter: Starter, door: Door = Door.CORE) -> None:
    """Serve a door until standard input closes; nothing but protocol goes to standard output."""
    path = path_of(door)
    server = build_server(offers(app, doors()[path], path, starter.arrive), path)
    unanswered = Unanswered()
    to_server, server_reads = anyio.create_memory_object_stream[Incoming]()
    server_writes, from_server = anyio.create_memory_object_stream[SessionMessage]()
    async with stdio_server() as (incoming, outgoing):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(unanswered.take_in, incoming, to_server)
            tasks.start_soon(unanswered.send_out, from_server, outgoing.send)
            await server.run(server_reads, server_writes, server.create_initialization_options())
        await outgoing.aclose()
    await starter.leave()


@dataclass(slots=True)
class Unanswered:
    """The requests under way: a client that has said its last word still gets every answer, in bounded time."""

    numbers: set[int | str] = field(default_factory=set[int | str])
    settled: anyio.Event = field(default_factory=anyio.Event)

    async def take_in(self, incoming: AsyncIterable[Incoming], to_server: MemoryObjectSendStream[Incoming]) -> None:
        async with to_server:
            async for item in incoming:
                if isinstance(item, SessionMessage) and isinstance(item.message, JSONRPCRequest):
                    self.numbers.add(item.message.id)
                await to_server.send(item)
            with anyio.move_on_after(DRAIN_SECONDS):
                while self.numbers:
                    self.settled = anyio.Event()
                    await self.settled.wait()

    async def send_out(self, from_server: AsyncIterable[SessionMessage], send: Send) -> None:
        async for item in from_server:
            await send(item)
            if isinstance(item.message, JSONRPCResponse | JSONRPCError) and item.message.id is not None:
                self.numbers.discard(item.message.id)
                self.settled.set()
