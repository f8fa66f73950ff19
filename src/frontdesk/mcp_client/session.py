"""Defines a session with an MCP server, its handshake, and sessions over two one-way streams."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from contextlib import suppress
from dataclasses import dataclass
from http import HTTPStatus
from itertools import count
from typing import Any, Protocol, cast

import anyio

from frontdesk.errors import Unavailable
from frontdesk.mcp_client import wire
from frontdesk.mcp_client.model import McpRpcError, McpServer, McpServerUnavailable

BACKGROUND_CALL_SECONDS = 2.0


class BackgroundCalls:
    """Runs short tasks in the background; their failure does not matter."""

    def __init__(self) -> None:
        self._running: set[asyncio.Task[None]] = set()

    def start(self, call: Coroutine[Any, Any, object]) -> None:
        task = asyncio.get_running_loop().create_task(_run_bounded(call))
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    async def finish(self) -> None:
        """Wait for the running tasks."""
        if self._running:
            await asyncio.wait(self._running)


async def _run_bounded(call: Coroutine[Any, Any, object]) -> None:
    with anyio.move_on_after(BACKGROUND_CALL_SECONDS), suppress(Unavailable):
        await call


# Takes the part done, the total, and a message.
Progress = Callable[[float, float | None, str | None], Awaitable[None]]
NO_HEADERS: Mapping[str, str] = {}


@dataclass(frozen=True, slots=True)
class McpResult:
    """The unchanged result of a request, and the size of its frame."""

    value: Mapping[str, Any]
    size: int


class McpSession(Protocol):
    """A session, which numbers its requests from 1; `lost` once the server no longer knows it, or is gone."""

    server: McpServer
    version: str | None

    @property
    def lost(self) -> bool: ...

    @property
    def is_kept(self) -> bool:
        """Whether the server distinguishes this session from others; if not, it cannot keep a token for one person."""
        ...

    async def open(self) -> None: ...

    async def request(
        self,
        method: str,
        params: wire.Frame,
        said: Mapping[str, str] = NO_HEADERS,
        progress: Progress | None = None,
    ) -> McpResult:
        """Send a request and return its result; a JSON-RPC error is raised like any other failure."""
        ...

    async def notify(self, method: str) -> None: ...

    async def close(self) -> None: ...


async def perform_handshake(session: McpSession) -> None:
    """Agree on a protocol revision; a server without a handshake must support the revision that needs none."""
    try:
        told = (await session.request("initialize", wire.HANDSHAKE)).value
    except (McpRpcError, McpServerUnavailable) as refused:
        if not _has_no_handshake(refused):
            raise
        await _discover(session, refused)
        return
    version = told.get("protocolVersion")
    if version not in wire.HANDSHAKE_VERSIONS:
        raise McpServerUnavailable(
            f"{session.server} speaks MCP revision {version!r}, which Frontdesk does not know; update either"
        )
    session.version = str(version)
    await session.notify("notifications/initialized")


def parse_result(server: McpServer, frame: wire.Frame, size: int) -> McpResult:
    """The result in a response; raises the error in it."""
    if (error := wire.frame_error(frame)) is not None:
        raise McpRpcError(*error)
    result: object = frame.get("result")
    if not isinstance(result, dict):
        raise McpServerUnavailable(f"{server} gives an answer without a result; report it to its operator")
    return McpResult(cast("Mapping[str, Any]", result), size)


async def _discover(session: McpSession, refused: McpRpcError | McpServerUnavailable) -> None:
    session.version = wire.MODERN_VERSION
    try:
        told = (await session.request("server/discover", {})).value
    except (McpRpcError, McpServerUnavailable):
        raise refused from None
    supported: object = told.get("supportedVersions")
    if not isinstance(supported, list) or wire.MODERN_VERSION not in supported:
        raise refused


def _has_no_handshake(refused: McpRpcError | McpServerUnavailable) -> bool:
    if isinstance(refused, McpRpcError):
        return refused.code in wire.NO_HANDSHAKE_CODES
    return refused.status in (HTTPStatus.BAD_REQUEST, HTTPStatus.NOT_FOUND)


MAX_QUEUED = 100
ProgressReport = tuple[float, float | None, str | None]
Arrival = McpResult | ProgressReport | Unavailable


@dataclass(slots=True)
class PendingRequest:
    """A request without its answer, and its progress so far."""

    wants_progress: bool
    arrived: "asyncio.Queue[Arrival]"


class PendingRequests:
    """Passes each incoming frame to the request that it answers."""

    def __init__(self, server: McpServer, reply: Callable[[bytes], None]) -> None:
        self._server = server
        self._reply = reply
        self._waiting: dict[int, PendingRequest] = {}
        self._closed: Unavailable | None = None

    @property
    def numbers(self) -> list[int]:
        """The requests that wait for an answer."""
        return list(self._waiting)

    def expect(self, number: int, *, progress: bool) -> PendingRequest:
        if self._closed is not None:
            raise self._closed
        waiting = self._waiting[number] = PendingRequest(progress, asyncio.Queue())
        return waiting

    def forget(self, number: int) -> None:
        self._waiting.pop(number, None)

    def deliver(self, data: bytes) -> bool:
        """Handle the data as one frame; returns False if it is not a frame."""
        frame = wire.parse_frame(data)
        if frame is None:
            return False
        if wire.is_request_frame(frame):
            self._reply(wire.encode_reply(frame))
        elif "method" in frame:
            self._deliver_progress(frame)
        else:
            self._deliver_result(frame, len(data))
        return True

    def fail(self, number: int, error: Unavailable) -> None:
        if (waiting := self._waiting.pop(number, None)) is not None:
            waiting.arrived.put_nowait(error)

    def close(self, error: Unavailable) -> None:
        """Fail the waiting requests and all later ones, because no more frames will come."""
        self._closed = self._closed or error
        for number in self.numbers:
            self.fail(number, error)

    def _deliver_progress(self, frame: wire.Frame) -> None:
        for number, waiting in self._waiting.items():
            # Progress that arrives faster than it is handled is dropped.
            full = waiting.arrived.qsize() >= MAX_QUEUED
            if waiting.wants_progress and not full and (told := wire.frame_progress(frame, number)) is not None:
                waiting.arrived.put_nowait(told)

    def _deliver_result(self, frame: wire.Frame, size: int) -> None:
        number = frame.get("id")
        if not isinstance(number, int) or (waiting := self._waiting.pop(number, None)) is None:
            return
        try:
            waiting.arrived.put_nowait(parse_result(self._server, frame, size))
        except Unavailable as error:
            waiting.arrived.put_nowait(error)


class DuplexChannel(Protocol):
    """The connection of a `DuplexSession` to its server."""

    pending: PendingRequests

    @property
    def lost(self) -> bool: ...

    async def open(self) -> None: ...

    async def send(self, body: bytes, said: Mapping[str, str], /) -> None: ...

    async def close(self) -> None: ...


class DuplexSession:
    """A session over one channel. `says_in_meta`: identity goes into `_meta`, because there are no headers."""

    def __init__(
        self,
        server: McpServer,
        channel: DuplexChannel,
        background: BackgroundCalls,
        *,
        is_kept: bool,
        says_in_meta: bool,
    ) -> None:
        self.server = server
        self.version: str | None = None
        self._channel = channel
        self._background = background
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
            await perform_handshake(self)
        except BaseException:
            # In the background: it may take a while, and the caller has waited long enough.
            self._background.start(self._channel.close())
            raise

    async def request(
        self,
        method: str,
        params: wire.Frame,
        said: Mapping[str, str] = NO_HEADERS,
        progress: Progress | None = None,
    ) -> McpResult:
        number = next(self._numbers)
        mailbox = self._channel.pending
        waiting = mailbox.expect(number, progress=progress is not None)
        try:
            await self._channel.send(self._body(number, method, params, said, progress is not None), said)
            return await _wait_for_result(waiting, progress)
        except asyncio.CancelledError:
            if method != "initialize":
                self._background.start(self._channel.send(wire.encode_cancellation(number), NO_HEADERS))
            raise
        finally:
            mailbox.forget(number)

    async def notify(self, method: str) -> None:
        await self._channel.send(wire.encode_notification(method), NO_HEADERS)

    async def close(self) -> None:
        await self._channel.close()

    def _body(self, number: int, method: str, params: wire.Frame, said: Mapping[str, str], watched: bool) -> bytes:
        meta: wire.Frame = {"progressToken": number} if watched else {}
        if self._says_in_meta:
            meta = {**meta, **wire.headers_as_meta(said)}
        if self.version == wire.MODERN_VERSION:
            meta = {**meta, **wire.ENVELOPE}
        return wire.encode_request(number, method, wire.add_meta(params, meta))


async def _wait_for_result(waiting: PendingRequest, progress: Progress | None) -> McpResult:
    while True:
        match await waiting.arrived.get():
            case McpResult() as result:
                return result
            case Unavailable() as error:
                raise error
            case told:
                if progress is not None:
                    await progress(*told)
