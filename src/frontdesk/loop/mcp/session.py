"""One MCP session over streamable HTTP: opened by a handshake, or not needed with servers that have none."""

from collections.abc import Mapping
from contextlib import aclosing, suppress
from http import HTTPStatus
from itertools import count
from typing import Any, cast

import anyio
import httpx2

from frontdesk.loop.mcp import wire
from frontdesk.loop.mcp.endpoint import Endpoint
from frontdesk.loop.mcp.model import HEADER_VALUE, Broken, Lost, RpcError, Unauthorized

CLOSE_SECONDS = 2.0
# A stream that ends right after the answer leaves its connection to the next request; longer is not worth it.
DRAIN_SECONDS = 0.05
NO_SESSION = -32000


class Session:
    """Sends requests under one session id, numbered from 1; `lost` once the server has forgotten it."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._numbers = count(1)
        self._version: str | None = None
        self._id: str | None = None
        self.lost = False

    @property
    def is_kept(self) -> bool:
        """Whether the server tells this session from others; without that it can keep nothing for us alone."""
        return self._id is not None

    async def open(self) -> None:
        """Shake hands; with a server that knows no handshake, make sure that it speaks the revision without."""
        try:
            told = await self.request("initialize", wire.HANDSHAKE)
        except (RpcError, Broken) as refused:
            if not _knows_no_handshake(refused):
                raise
            await self._discover(refused)
            return
        version = told.get("protocolVersion")
        if version not in wire.HANDSHAKE_VERSIONS:
            raise Broken(f"{self._endpoint.server} speaks MCP revision {version!r}, which Frontdesk does not know")
        self._version = str(version)
        await self._post(wire.notification("notifications/initialized"))

    async def request(
        self, method: str, params: wire.Frame, said: Mapping[str, str] | None = None
    ) -> Mapping[str, Any]:
        """The result of a request; a JSON-RPC error, like everything else that may go wrong, is raised."""
        number = next(self._numbers)
        modern = self._version == wire.MODERN_VERSION
        body = wire.request(number, method, wire.in_envelope(params) if modern else params)
        protocol = wire.routing_headers(method, params) if modern else self._protocol()
        async with self._endpoint.send("POST", body, protocol, said or {}) as response:
            await self._check(response)
            if method == "initialize":
                self._id = self._checked_id(response)
            found = await self._answer(response, number)
        if (error := wire.error_of(found)) is not None:
            raise RpcError(*error)
        result: object = found.get("result")
        if not isinstance(result, dict):
            raise Broken(f"{self._endpoint.server} gives an answer without a result; report it to whoever runs it")
        return cast("Mapping[str, Any]", result)

    async def close(self) -> None:
        """Tell the server that we are done; it may not care, and may not answer."""
        if self._id is None or self.lost:
            return
        self.lost = True
        with anyio.move_on_after(CLOSE_SECONDS, shield=True), suppress(Broken):
            async with self._endpoint.send("DELETE", None, self._protocol(), {}):
                pass

    async def _discover(self, refused: RpcError | Broken) -> None:
        self._version = wire.MODERN_VERSION
        try:
            told = await self.request("server/discover", {})
        except (RpcError, Broken):
            raise refused from None
        supported: object = told.get("supportedVersions")
        if not isinstance(supported, list) or wire.MODERN_VERSION not in supported:
            raise refused

    async def _answer(self, response: httpx2.Response, number: int) -> wire.Frame:
        """The frame that answers request `number`; what the server asks in between is answered on the way."""
        async with aclosing(self._endpoint.frames(response)) as frames:
            async for frame in frames:
                if wire.answers(frame, number):
                    with anyio.move_on_after(DRAIN_SECONDS), suppress(Broken, httpx2.HTTPError):
                        async for _ in frames:
                            pass
                    return frame
                if wire.is_request(frame) and self._version != wire.MODERN_VERSION:
                    await self._post(wire.reply(frame))
        raise Broken(f"{self._endpoint.server} ends its answer without a result; try again")

    async def _post(self, body: bytes) -> None:
        async with self._endpoint.send("POST", body, self._protocol(), {}):
            pass

    async def _check(self, response: httpx2.Response) -> None:
        """Raise what a status other than 200 stands for."""
        status, server = response.status_code, self._endpoint.server
        if status == HTTPStatus.OK:
            return
        if status == HTTPStatus.UNAUTHORIZED:
            raise Unauthorized(f"{server} does not take the credential (HTTP 401); sign in again or check its headers")
        if response.is_redirect:
            raise Broken(f"{server} points elsewhere (HTTP {status}), which is not followed; set the new address")
        error = wire.error_of(wire.parse(await self._endpoint.body(response)))
        if self._is_loss(status, error):
            self.lost = True
            raise Lost(f"{server} has forgotten the session; try again")
        if error is not None:
            raise RpcError(*error)
        raise Broken(f"{server} answers HTTP {status}; check its address and what it allows", status)

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

    def _checked_id(self, response: httpx2.Response) -> str | None:
        found = response.headers.get(wire.SESSION_HEADER)
        if found is not None and not HEADER_VALUE.fullmatch(found):
            raise Broken(f"{self._endpoint.server} gives a session id that no header can hold")
        return found or None

    def _protocol(self) -> dict[str, str]:
        headers = {wire.VERSION_HEADER: self._version, wire.SESSION_HEADER: self._id}
        return {name: value for name, value in headers.items() if value is not None}


def _knows_no_handshake(refused: RpcError | Broken) -> bool:
    if isinstance(refused, RpcError):
        return refused.code in wire.NO_HANDSHAKE
    return refused.status in (HTTPStatus.BAD_REQUEST, HTTPStatus.NOT_FOUND)
