"""The older way over HTTP (revision 2024-11-05): answers come on one long stream, requests are posted beside it."""

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from http import HTTPStatus
from typing import TYPE_CHECKING
from urllib.parse import urljoin, urlsplit

from frontdesk.errors import Unavailable
from frontdesk.loop.mcp import wire
from frontdesk.loop.mcp.duplex import DuplexSession, Mailbox
from frontdesk.loop.mcp.endpoint import Endpoint, is_stream
from frontdesk.loop.mcp.errands import Errands
from frontdesk.loop.mcp.model import Broken, Lost
from frontdesk.loop.mcp.session import NOTHING_SAID
from frontdesk.loop.mcp.streamable import refusal

if TYPE_CHECKING:
    from frontdesk.loop.mcp.connections import Answer

USUAL_PORTS = {"http": 80, "https": 443}
LISTEN = {"accept": "text/event-stream", "cache-control": "no-store"}


def sse_session(endpoint: Endpoint, errands: Errands) -> DuplexSession:
    return DuplexSession(endpoint.server, EventStream(endpoint, errands), errands, is_kept=True, says_in_meta=False)


class EventStream:
    """The stream of one session, read by a task of its own until it is closed or breaks off."""

    def __init__(self, endpoint: Endpoint, errands: Errands) -> None:
        self.mailbox = Mailbox(endpoint.server, lambda body: errands.start(self.send(body, NOTHING_SAID)))
        self._endpoint = endpoint
        self._server = endpoint.server
        self._reading: asyncio.Task[None] | None = None
        self._told: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    @property
    def lost(self) -> bool:
        return self._reading is None or self._reading.done()

    async def open(self) -> None:
        """Listen, until the server has said where requests go."""
        self._reading = asyncio.get_running_loop().create_task(self._read())
        await asyncio.wait([self._told, self._reading], return_when=asyncio.FIRST_COMPLETED)
        if not self._told.done():
            # Raises what the reader left there.
            self.mailbox.expect(0, progress=False)

    async def send(self, body: bytes, said: Mapping[str, str]) -> None:
        if not self._told.done():
            raise Broken(f"{self._server} has not said yet where requests go; try again")
        async with self._endpoint.send("POST", body, {}, said, self._told.result()) as answer:
            if (refused := refusal(self._endpoint, answer)) is not None:
                raise refused
            if answer.status == HTTPStatus.NOT_FOUND:
                await self.close()
                raise Lost(f"{self._server} has forgotten the session; try again")
            if answer.status >= HTTPStatus.BAD_REQUEST:
                raise Broken(f"{self._server} answers HTTP {answer.status} to a request", answer.status)
            await self._endpoint.body(answer)

    async def close(self) -> None:
        if self._reading is not None:
            self._reading.cancel()
            with suppress(asyncio.CancelledError):
                await asyncio.wait([self._reading])

    async def _read(self) -> None:
        try:
            async with self._endpoint.send("GET", None, LISTEN, NOTHING_SAID) as answer:
                self._check(answer)
                await self._follow(answer)
            raise Broken(f"{self._server} ended its stream; try again")
        except Unavailable as error:
            self.mailbox.close(error)
        finally:
            self.mailbox.close(Broken(f"{self._server} was left; try again"))

    async def _follow(self, answer: "Answer") -> None:
        events = wire.Events()
        async for chunk in self._endpoint.chunks(answer):
            for kind, data in events.feed_all(chunk):
                if kind in (b"", b"message"):
                    self.mailbox.deliver(data)
                elif kind == b"endpoint" and not self._told.done():
                    self._told.set_result(self._checked(data.decode(errors="replace")))
            self._endpoint.check_size(events.waiting)

    def _check(self, answer: "Answer") -> None:
        if (refused := refusal(self._endpoint, answer)) is not None:
            raise refused
        if answer.status != HTTPStatus.OK or not is_stream(answer):
            raise Broken(
                f"{self._server} gives no stream of events (HTTP {answer.status}); check its address, or set its "
                "transport to http",
                answer.status,
            )

    def _checked(self, told: str) -> str:
        """Where requests go; never to another origin, which would get every header with them."""
        url = urljoin(self._server.url, told.strip())
        if _origin(url) != _origin(self._server.url):
            raise Broken(f"{self._server} wants requests at another origin, where nothing is sent; set its address")
        return url


def _origin(url: str) -> tuple[str, str | None, int | None] | None:
    try:
        parts = urlsplit(url)
        if "@" in parts.netloc:
            return None
        return parts.scheme, parts.hostname, parts.port or USUAL_PORTS.get(parts.scheme)
    except ValueError:
        return None
