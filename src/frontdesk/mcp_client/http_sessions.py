"""Holds a session over streamable HTTP, or over the older HTTP with server-sent events."""

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from http import HTTPStatus
from itertools import count
from typing import TYPE_CHECKING
from urllib.parse import urljoin, urlsplit

import anyio

from frontdesk.errors import Unavailable
from frontdesk.mcp_client import wire
from frontdesk.mcp_client.http import HttpFailure, ServerEndpoint, is_event_stream
from frontdesk.mcp_client.model import (
    HEADER_VALUE,
    McpRpcError,
    McpServerUnavailable,
    McpSessionLost,
    McpUnauthorized,
    UnsupportedRequest,
)
from frontdesk.mcp_client.session import (
    NO_HEADERS,
    BackgroundCalls,
    DuplexSession,
    McpResult,
    PendingRequests,
    Progress,
    parse_result,
    perform_handshake,
)

if TYPE_CHECKING:
    from frontdesk.mcp_client.connections import HttpResponse

SESSION_CLOSE_SECONDS = 2.0
# A stream that ends right after the answer leaves its connection for the next request; a longer wait costs more.
DRAIN_SECONDS = 0.05
NO_SESSION_CODE = -32000


class StreamableHttpSession:
    """Requests under one session id."""

    def __init__(self, endpoint: ServerEndpoint, background: BackgroundCalls) -> None:
        self.server = endpoint.server
        self.version: str | None = None
        self.lost = False
        self._endpoint = endpoint
        self._background = background
        self._numbers = count(1)
        self._id: str | None = None

    @property
    def is_kept(self) -> bool:
        return self._id is not None

    async def open(self) -> None:
        await perform_handshake(self)

    async def request(
        self,
        method: str,
        params: wire.Frame,
        said: Mapping[str, str] = NO_HEADERS,
        progress: Progress | None = None,
    ) -> McpResult:
        number = next(self._numbers)
        if progress is not None:
            params = wire.add_meta(params, {"progressToken": number})
        modern = self.version == wire.MODERN_VERSION
        body = wire.encode_request(number, method, wire.add_envelope(params) if modern else params)
        protocol = wire.routing_headers(method, params) if modern else self._protocol()
        try:
            async with self._endpoint.send("POST", body, protocol, said) as answer:
                await self._check(answer)
                if method == "initialize":
                    self._id = self._checked_id(answer)
                frame, size = await self._read_answer(answer, number, progress)
        except asyncio.CancelledError:
            # For a server of the revision without a handshake, the closed stream is enough.
            if method != "initialize" and not modern:
                self._background.start(self._post(wire.encode_cancellation(number)))
            raise
        return parse_result(self.server, frame, size)

    async def notify(self, method: str) -> None:
        await self._post(wire.encode_notification(method))

    async def close(self) -> None:
        """Tell the server that the session ends; the server may ignore this."""
        if self._id is None or self.lost:
            return
        self.lost = True
        with (
            anyio.move_on_after(SESSION_CLOSE_SECONDS, shield=True),
            suppress(McpServerUnavailable, UnsupportedRequest),
        ):
            async with self._endpoint.send("DELETE", None, self._protocol(), NO_HEADERS):
                pass

    async def _read_answer(
        self, answer: "HttpResponse", number: int, progress: Progress | None
    ) -> tuple[wire.Frame, int]:
        """Read the answer to request `number`, and answer the server's own requests that come before it."""
        if not is_event_stream(answer):
            body = await self._endpoint.read_body(answer)
            frame = self._endpoint.parse_frame(body)
            if wire.is_answer_to(frame, number):
                return frame, len(body)
            raise self._no_result_error()
        events, size = wire.SseParser(), 0
        async for chunk in self._endpoint.chunks(answer):
            size += len(chunk)
            self._endpoint.check_size(size)
            for data in events.feed_messages(chunk):
                frame = self._endpoint.parse_frame(data)
                if wire.is_answer_to(frame, number):
                    await _drain(answer)
                    return frame, len(data)
                await self._take_other_frame(frame, number, progress)
        raise self._no_result_error()

    def _no_result_error(self) -> McpServerUnavailable:
        return McpServerUnavailable(f"{self.server} ends its answer without a result; try again")

    async def _take_other_frame(self, frame: wire.Frame, number: int, progress: Progress | None) -> None:
        if wire.is_request_frame(frame):
            if self.version != wire.MODERN_VERSION:
                await self._post(wire.encode_reply(frame))
        elif progress is not None and (told := wire.frame_progress(frame, number)) is not None:
            await progress(*told)

    async def _post(self, body: bytes) -> None:
        async with self._endpoint.send("POST", body, self._protocol(), NO_HEADERS) as answer:
            await _drain(answer)

    async def _check(self, answer: "HttpResponse") -> None:
        """Raise the error for a status other than 200."""
        status = answer.status
        if status == HTTPStatus.OK:
            return
        if (refused := status_error(self._endpoint, answer)) is not None:
            raise refused
        error = wire.frame_error(wire.parse_frame(await self._endpoint.read_body(answer)))
        if self._is_loss(status, error):
            self.lost = True
            raise McpSessionLost(f"{self.server} has forgotten the session; try again")
        if error is not None:
            raise McpRpcError(*error)
        hint = ", or set its transport to sse" if status == HTTPStatus.METHOD_NOT_ALLOWED else ""
        raise McpServerUnavailable(
            f"{self.server} answers HTTP {status}; check its address and what it allows{hint}", status
        )

    def _is_loss(self, status: int, error: tuple[int, str] | None) -> bool:
        if self._id is None:
            return False
        if status == HTTPStatus.NOT_FOUND:
            return True
        # This is not in the specification, but common in servers made from the TypeScript SDK's example.
        return (
            status == HTTPStatus.BAD_REQUEST
            and error is not None
            and error[0] == NO_SESSION_CODE
            and "session" in error[1].lower()
        )

    def _checked_id(self, answer: "HttpResponse") -> str | None:
        found = answer.headers.get(wire.SESSION_HEADER)
        if found is not None and not HEADER_VALUE.fullmatch(found):
            raise McpServerUnavailable(f"{self.server} gives a session id that no header can hold; tell its operator")
        return found or None

    def _protocol(self) -> dict[str, str]:
        headers = {wire.VERSION_HEADER: self.version, wire.SESSION_HEADER: self._id}
        return {name: value for name, value in headers.items() if value is not None}


def status_error(endpoint: ServerEndpoint, answer: "HttpResponse") -> McpUnauthorized | McpServerUnavailable | None:
    """The error for a status, if its body has no better message."""
    status, server = answer.status, endpoint.server
    if status == HTTPStatus.UNAUTHORIZED:
        return McpUnauthorized(f"{server} does not take the credential (HTTP 401); sign in again or check its headers")
    if 300 <= status < 400:
        return McpServerUnavailable(
            f"{server} points elsewhere (HTTP {status}), which is not followed; set the new address", status
        )
    return None


async def _drain(answer: "HttpResponse") -> None:
    """Read the rest, so that the connection can be reused."""
    if answer.complete:
        return
    with anyio.move_on_after(DRAIN_SECONDS), suppress(HttpFailure):
        async for _ in answer.chunks():
            pass


DEFAULT_PORTS = {"http": 80, "https": 443}
LISTEN_HEADERS = {"accept": "text/event-stream", "cache-control": "no-store"}


def sse_session(endpoint: ServerEndpoint, background: BackgroundCalls) -> DuplexSession:
    return DuplexSession(
        endpoint.server, SseChannel(endpoint, background), background, is_kept=True, says_in_meta=False
    )


class SseChannel:
    """The event stream of one session. A task of its own reads it until it is closed or breaks off."""

    def __init__(self, endpoint: ServerEndpoint, background: BackgroundCalls) -> None:
        self.pending = PendingRequests(endpoint.server, lambda body: background.start(self.send(body, NO_HEADERS)))
        self._endpoint = endpoint
        self._server = endpoint.server
        self._reading: asyncio.Task[None] | None = None
        self._post_url: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    @property
    def lost(self) -> bool:
        return self._reading is None or self._reading.done()

    async def open(self) -> None:
        """Read the stream until the server has sent the address for requests."""
        self._reading = asyncio.get_running_loop().create_task(self._read())
        await asyncio.wait([self._post_url, self._reading], return_when=asyncio.FIRST_COMPLETED)
        if not self._post_url.done():
            # Raises the error of the reading task.
            self.pending.expect(0, progress=False)

    async def send(self, body: bytes, said: Mapping[str, str]) -> None:
        if not self._post_url.done():
            raise McpServerUnavailable(f"{self._server} has not said yet where requests go; try again")
        async with self._endpoint.send("POST", body, {}, said, self._post_url.result()) as answer:
            if (refused := status_error(self._endpoint, answer)) is not None:
                raise refused
            if answer.status == HTTPStatus.NOT_FOUND:
                await self.close()
                raise McpSessionLost(f"{self._server} has forgotten the session; try again")
            if answer.status >= HTTPStatus.BAD_REQUEST:
                raise McpServerUnavailable(f"{self._server} answers HTTP {answer.status} to a request", answer.status)
            await self._endpoint.read_body(answer)

    async def close(self) -> None:
        if self._reading is not None:
            self._reading.cancel()
            with suppress(asyncio.CancelledError):
                await asyncio.wait([self._reading])

    async def _read(self) -> None:
        try:
            async with self._endpoint.send("GET", None, LISTEN_HEADERS, NO_HEADERS) as answer:
                self._check_stream(answer)
                await self._follow(answer)
            raise McpServerUnavailable(f"{self._server} ended its stream; try again")
        except Unavailable as error:
            self.pending.close(error)
        finally:
            self.pending.close(McpServerUnavailable(f"{self._server} was left; try again"))

    async def _follow(self, answer: "HttpResponse") -> None:
        events = wire.SseParser()
        async for chunk in self._endpoint.chunks(answer):
            for kind, data in events.feed_events(chunk):
                if kind in (b"", b"message"):
                    self.pending.deliver(data)
                elif kind == b"endpoint" and not self._post_url.done():
                    self._post_url.set_result(self._check_post_url(data.decode(errors="replace")))
            self._endpoint.check_size(events.pending_bytes)

    def _check_stream(self, answer: "HttpResponse") -> None:
        if (refused := status_error(self._endpoint, answer)) is not None:
            raise refused
        if answer.status != HTTPStatus.OK or not is_event_stream(answer):
            raise McpServerUnavailable(
                f"{self._server} gives no stream of events (HTTP {answer.status}); check its address, or set its "
                "transport to http",
                answer.status,
            )

    def _check_post_url(self, text: str) -> str:
        """The address for requests; it must be at the same origin, because it gets all headers."""
        url = urljoin(self._server.url, text.strip())
        if _origin(url) != _origin(self._server.url):
            raise McpServerUnavailable(
                f"{self._server} wants requests at another origin, where nothing is sent; set its address"
            )
        return url


def _origin(url: str) -> tuple[str, str | None, int | None] | None:
    try:
        parts = urlsplit(url)
        if "@" in parts.netloc:
            return None
        return parts.scheme, parts.hostname, parts.port or DEFAULT_PORTS.get(parts.scheme)
    except ValueError:
        return None
