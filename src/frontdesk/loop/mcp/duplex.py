"""A session over two one-way streams: requests go out on one, answers come in on the other in any order."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import count
from typing import Protocol

from frontdesk.errors import Unavailable
from frontdesk.loop.mcp import wire
from frontdesk.loop.mcp.errands import Errands
from frontdesk.loop.mcp.model import McpServer
from frontdesk.loop.mcp.session import NOTHING_SAID, Progress, Result, result_of, shake_hands

MAX_UNHEARD = 100
Told = tuple[float, float | None, str | None]
Arrival = Result | Told | Unavailable


@dataclass(slots=True)
class Waiting:
    """One request without its answer, and what has come in for it so far."""

    wants_progress: bool
    arrived: "asyncio.Queue[Arrival]"


class Mailbox:
    """Hands each frame that comes in to the request that it is for."""

    def __init__(self, server: McpServer, reply: Callable[[bytes], None]) -> None:
        self._server = server
        self._reply = reply
        self._waiting: dict[int, Waiting] = {}
        self._closed: Unavailable | None = None

    @property
    def numbers(self) -> list[int]:
        """The requests that wait for an answer."""
        return list(self._waiting)

    def expect(self, number: int, *, progress: bool) -> Waiting:
        if self._closed is not None:
            raise self._closed
        waiting = self._waiting[number] = Waiting(progress, asyncio.Queue())
        return waiting

    def forget(self, number: int) -> None:
        self._waiting.pop(number, None)

    def deliver(self, data: bytes) -> bool:
        """Take in one frame; whether it was one."""
        frame = wire.parse(data)
        if frame is None:
            return False
        if wire.is_request(frame):
            self._reply(wire.reply(frame))
        elif "method" in frame:
            self._note(frame)
        else:
            self._settle(frame, len(data))
        return True

    def fail(self, number: int, error: Unavailable) -> None:
        if (waiting := self._waiting.pop(number, None)) is not None:
            waiting.arrived.put_nowait(error)

    def close(self, error: Unavailable) -> None:
        """No frame will come any more: whoever waits is told so, and so is whoever comes later."""
        self._closed = self._closed or error
        for number in self.numbers:
            self.fail(number, error)

    def _note(self, frame: wire.Frame) -> None:
        for number, waiting in self._waiting.items():
            # One who says how far it is more often than anybody can hear it is not heard each time.
            full = waiting.arrived.qsize() >= MAX_UNHEARD
            if waiting.wants_progress and not full and (told := wire.progress_of(frame, number)) is not None:
                waiting.arrived.put_nowait(told)

    def _settle(self, frame: wire.Frame, size: int) -> None:
        number = frame.get("id")
        if not isinstance(number, int) or (waiting := self._waiting.pop(number, None)) is None:
            return
        try:
            waiting.arrived.put_nowait(result_of(self._server, frame, size))
        except Unavailable as error:
            waiting.arrived.put_nowait(error)


class Channel(Protocol):
    """The way to the server of a `DuplexSession`, and what became of it."""

    mailbox: Mailbox

    @property
    def lost(self) -> bool: ...

    async def open(self) -> None: ...

    async def send(self, body: bytes, said: Mapping[str, str], /) -> None: ...

    async def close(self) -> None: ...


class DuplexSession:
    """Requests by number over one channel. `says_in_meta`: it has no headers for what a call says of itself."""

    def __init__(
        self, server: McpServer, channel: Channel, errands: Errands, *, is_kept: bool, says_in_meta: bool
    ) -> None:
        self.server = server
        self.version: str | None = None
        self._channel = channel
        self._errands = errands
        self._is_kept = is_kept
        self._says_in_meta = says_in_meta
        self._numbers = count(1)

    @property
    def lost(self) -> bool:
        return self._channel.lost

    @property
    def is_kept(self) -> bool:
        return self._is_kept

    async def open(self) -> None:
        try:
            await self._channel.open()
            await shake_hands(self)
        except BaseException:
            # Behind the scenes: it may take a while, and whoever asked has waited long enough.
            self._errands.start(self._channel.close())
            raise

    async def request(
        self,
        method: str,
        params: wire.Frame,
        said: Mapping[str, str] = NOTHING_SAID,
        progress: Progress | None = None,
    ) -> Result:
        number = next(self._numbers)
        mailbox = self._channel.mailbox
        waiting = mailbox.expect(number, progress=progress is not None)
        try:
            await self._channel.send(self._body(number, method, params, said, progress is not None), said)
            return await _answer(waiting, progress)
        except asyncio.CancelledError:
            if method != "initialize":
                self._errands.start(self._channel.send(wire.cancelled(number), NOTHING_SAID))
            raise
        finally:
            mailbox.forget(number)

    async def notify(self, method: str) -> None:
        await self._channel.send(wire.notification(method), NOTHING_SAID)

    async def close(self) -> None:
        await self._channel.close()

    def _body(self, number: int, method: str, params: wire.Frame, said: Mapping[str, str], watched: bool) -> bytes:
        meta: wire.Frame = {"progressToken": number} if watched else {}
        if self._says_in_meta:
            meta = {**meta, **wire.said_in_meta(said)}
        if self.version == wire.MODERN_VERSION:
            meta = {**meta, **wire.ENVELOPE}
        return wire.request(number, method, wire.with_meta(params, meta))


async def _answer(waiting: Waiting, progress: Progress | None) -> Result:
    while True:
        match await waiting.arrived.get():
            case Result() as result:
                return result
            case Unavailable() as error:
                raise error
            case told:
                if progress is not None:
                    await progress(*told)
