"""One MCP session over streamable HTTP: opened by a handshake, or not needed with servers that have none."""

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from http import HTTPStatus
from itertools import count
from typing import TYPE_CHECKING

import anyio

from frontdesk.loop.mcp import wire
from frontdesk.loop.mcp.endpoint import Endpoint, is_stream
from frontdesk.loop.mcp.errands import Errands
from frontdesk.loop.mcp.http import Failure
from frontdesk.loop.mcp.model import HEADER_VALUE, Broken, Lost, RpcError, Unauthorized, Unfit
from frontdesk.loop.mcp.session import NOTHING_SAID, Progress, Result, result_of, shake_hands

if TYPE_CHECKING:
    from frontdesk.loop.mcp.connections import Answer

CLOSE_SECONDS = 2.0
# A stream that ends right after the answer leaves its connection to the next request; longer is not worth it.
DRAIN_SECONDS = 0.05
NO_SESSION = -32000


class HttpSession:
    """Requests under one session id."""

    def __init__(self, endpoint: Endpoint, errands: Errands) -> None:
        self.server = endpoint.server
        self.version: str | None = None
        self.lost = False
        self._endpoint = endpoint
        self._errands = errands
        self._numbers = count(1)
        self._id: str | None = None

    @property
    def is_kept(self) -> bool:
        return self._id is not None

    async def open(self) -> None:
        await shake_hands(self)

    async def request(
        self,
        method: str,
        params: wire.Frame,
        said: Mapping[str, str] = NOTHING_SAID,
        progress: Progress | None = None,
    ) -> Result:
        number = next(self._numbers)
        if progress is not None:
            params = wire.with_meta(params, {"progressToken": number})
        modern = self.version == wire.MODERN_VERSION
        body = wire.request(number, method, wire.in_envelope(params) if modern else params)
        protocol = wire.routing_headers(method, params) if modern else self._protocol()
        try:
            async with self._endpoint.send("POST", body, protocol, said) as answer:
                await self._check(answer)
                if method == "initialize":
                    self._id = self._checked_id(answer)
                frame, size = await self._answer(answer, number, progress)
        except asyncio.CancelledError:
            # To a server of the revision without handshake the closed stream says it already.
            if method != "initialize" and not modern:
                self._errands.start(self._post(wire.cancelled(number)))
            raise
        return result_of(self.server, frame, size)

    async def notify(self, method: str) -> None:
        await self._post(wire.notification(method))

    async def close(self) -> None:
        """Tell the server that we are done; it may not care, and may not answer."""
        if self._id is None or self.lost:
            return
        self.lost = True
        with anyio.move_on_after(CLOSE_SECONDS, shield=True), suppress(Broken, Unfit):
            async with self._endpoint.send("DELETE", None, self._protocol(), NOTHING_SAID):
                pass

    async def _answer(self, answer: "Answer", number: int, progress: Progress | None) -> tuple[wire.Frame, int]:
        """The frame that answers request `number`; what the server asks in between is answered on the way."""
        if not is_stream(answer):
            body = await self._endpoint.body(answer)
            frame = self._endpoint.frame(body)
            if wire.answers(frame, number):
                return frame, len(body)
            raise self._without_result()
        events, size = wire.Events(), 0
        async for chunk in self._endpoint.chunks(answer):
            size += len(chunk)
            self._endpoint.check_size(size)
            for data in events.feed(chunk):
                frame = self._endpoint.frame(data)
                if wire.answers(frame, number):
                    await _drain(answer)
                    return frame, len(data)
                await self._hear(frame, number, progress)
        raise self._without_result()

    def _without_result(self) -> Broken:
        return Broken(f"{self.server} ends its answer without a result; try again")

    async def _hear(self, frame: wire.Frame, number: int, progress: Progress | None) -> None:
        if wire.is_request(frame):
            if self.version != wire.MODERN_VERSION:
                await self._post(wire.reply(frame))
        elif progress is not None and (told := wire.progress_of(frame, number)) is not None:
            await progress(*told)

    async def _post(self, body: bytes) -> None:
        async with self._endpoint.send("POST", body, self._protocol(), NOTHING_SAID) as answer:
            await _drain(answer)

    async def _check(self, answer: "Answer") -> None:
        """Raise what a status other than 200 stands for."""
        status = answer.status
        if status == HTTPStatus.OK:
            return
        if (refused := refusal(self._endpoint, answer)) is not None:
            raise refused
        error = wire.error_of(wire.parse(await self._endpoint.body(answer)))
        if self._is_loss(status, error):
            self.lost = True
            raise Lost(f"{self.server} has forgotten the session; try again")
        if error is not None:
            raise RpcError(*error)
        hint = ", or set its transport to sse" if status == HTTPStatus.METHOD_NOT_ALLOWED else ""
        raise Broken(f"{self.server} answers HTTP {status}; check its address and what it allows{hint}", status)

    def _is_loss(self, status: int, error: tuple[int, str] | None) -> bool:
        if self._id is None:
            return False
        if status == HTTPStatus.NOT_FOUND:
            return True
        # Not as the specification has it, and common: servers made from the TypeScript SDK's example.
        return (
            status == HTTPStatus.BAD_REQUEST
            and error is not None
            and error[0] == NO_SESSION
            and "session" in error[1].lower()
        )

    def _checked_id(self, answer: "Answer") -> str | None:
        found = answer.headers.get(wire.SESSION_HEADER)
        if found is not None and not HEADER_VALUE.fullmatch(found):
            raise Broken(f"{self.server} gives a session id that no header can hold; tell whoever runs it")
        return found or None

    def _protocol(self) -> dict[str, str]:
        headers = {wire.VERSION_HEADER: self.version, wire.SESSION_HEADER: self._id}
        return {name: value for name, value in headers.items() if value is not None}


def refusal(endpoint: Endpoint, answer: "Answer") -> Unauthorized | Broken | None:
    """What a status says that no body can say better."""
    status, server = answer.status, endpoint.server
    if status == HTTPStatus.UNAUTHORIZED:
        return Unauthorized(f"{server} does not take the credential (HTTP 401); sign in again or check its headers")
    if 300 <= status < 400:
        return Broken(f"{server} points elsewhere (HTTP {status}), which is not followed; set the new address", status)
    return None


async def _drain(answer: "Answer") -> None:
    """Read what is left, so that the connection can be used again."""
    if answer.complete:
        return
    with anyio.move_on_after(DRAIN_SECONDS), suppress(Failure):
        async for _ in answer.chunks():
            pass
