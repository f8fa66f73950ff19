"""The first to answer an editor: greets it at once, and has the house opened behind its back."""

from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

import anyio
from anyio.abc import TaskGroup

from frontdesk.errors import FrontdeskError
from frontdesk.surfaces.acp.greeting import Capabilities, Offer, capabilities_of, greet
from frontdesk.surfaces.acp.wire.model import INTERNAL_ERROR, INVALID_REQUEST, Carrier, Json, Request, RpcError
from frontdesk.surfaces.acp.wire.peer import Peer

if TYPE_CHECKING:
    from frontdesk.surfaces.acp.live.connection import Connection

INITIALIZE = "initialize"
OPENING_SECONDS = 60

# Opens a connection in the house, given the peer and what the editor can do.
Opening = Callable[[Peer, Capabilities], AbstractAsyncContextManager["Connection"]]


@dataclass(slots=True)
class Doorstep:
    """One editor at the door. `open_connection` is called once it has introduced itself."""

    carrier: Carrier
    offer: Offer
    open_connection: Opening
    bug: Callable[[Exception], None]
    peer: Peer = field(init=False)
    _tasks: TaskGroup = field(init=False)
    _can: Capabilities | None = None
    _connection: "Connection | None" = None
    _refusal: str | None = None
    _settled: anyio.Event = field(default_factory=anyio.Event)
    _leaving: anyio.Event = field(default_factory=anyio.Event)

    def __post_init__(self) -> None:
        self.peer = Peer(self.carrier, self.answer, self.hear, self.bug)

    async def run(self) -> None:
        """Serve until the editor leaves."""
        async with anyio.create_task_group() as self._tasks:
            await self.peer.run()
            self._leaving.set()
            if self._connection is None:
                # Nobody waits for a house that is still being opened.
                self._tasks.cancel_scope.cancel()

    async def answer(self, request: Request) -> Json:
        if request.method == INITIALIZE:
            return self._introduce(request)
        if self._can is None:
            raise RpcError(INVALID_REQUEST, "Send initialize first")
        return await (await self._opened()).answer(request)

    def hear(self, method: str, params: Json) -> None:
        if self._connection is not None:
            self._connection.hear(method, params)

    def _introduce(self, request: Request) -> Json:
        if self._can is not None:
            raise RpcError(INVALID_REQUEST, "initialize has been sent before")
        answer = greet(request.params, self.offer)
        self._can = capabilities_of(request.params)

        async def begin() -> None:
            self._tasks.start_soon(self._keep_open)

        request.afterwards.append(begin)
        return answer

    async def _opened(self) -> "Connection":
        # To wait even for what is there would let the next frame go first, which may be to cancel this request.
        if not self._settled.is_set():
            with anyio.move_on_after(OPENING_SECONDS):
                await self._settled.wait()
        if self._connection is None:
            raise RpcError(INTERNAL_ERROR, self._refusal or "Frontdesk takes too long to start; try again")
        return self._connection

    async def _keep_open(self) -> None:
        """The house, from when it is wanted until the editor leaves; entered and left by one task."""
        try:
            async with self.open_connection(self.peer, self._can or Capabilities()) as self._connection:
                self._settled.set()
                await self._leaving.wait()
        except FrontdeskError as error:
            self._refusal = error.in_full
        except Exception as error:  # noqa: BLE001 - the outermost place of a connection: the editor is told, and may go
            for one in _single(error):
                self.bug(one)
            self._refusal = "Frontdesk could not be opened; its log, on standard error, says why"
        finally:
            self._connection = None
            self._settled.set()


def _single(error: Exception) -> Iterator[Exception]:
    """The errors that a group of tasks ended with, each by itself: the log says of one where it happened."""
    if isinstance(error, ExceptionGroup):
        for one in cast("ExceptionGroup[Exception]", error).exceptions:
            yield from _single(one)
    else:
        yield error
