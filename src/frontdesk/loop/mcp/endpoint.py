"""One MCP server over HTTP: post a frame, get the frames of the answer, within limits of time and size."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager

import httpx2

from frontdesk import __version__
from frontdesk.loop.mcp import wire
from frontdesk.loop.mcp.model import HEADER_VALUE, Broken, McpServer

CONNECT_SECONDS = 5.0
MAX_ANSWER = 8 * 1024 * 1024
# A token is for those it was given to: what a caller says of itself cannot bring one along.
CREDENTIAL_HEADERS = frozenset({"authorization", "x-user-auth-token", "cookie", "proxy-authorization"})
ALWAYS = {
    "content-type": "application/json",
    "accept": "application/json, text/event-stream",
    # Compressed, a small answer could unfold into one beyond our limit.
    "accept-encoding": "identity",
    "user-agent": f"frontdesk/{__version__}",
}


class Endpoint:
    """A server's address together with the one credential that is shown there."""

    def __init__(self, server: McpServer, token: str | None, http: httpx2.AsyncClient) -> None:
        self.server = server
        self._http = http
        self._fixed = {name.lower(): value for name, value in server.headers.items()}
        self._credential = {} if token is None else {"x-user-auth-token": token, "authorization": f"Bearer {token}"}

    @asynccontextmanager
    async def send(
        self, method: str, body: bytes | None, protocol: Mapping[str, str], said: Mapping[str, str]
    ) -> AsyncGenerator[httpx2.Response]:
        """One exchange; `protocol` are headers of MCP, `said` what this call says of itself."""
        headers = self._headers(protocol, said)
        if self._http.is_closed:
            raise Broken(f"{self.server} cannot be asked any more: Frontdesk is shutting down")
        timeout = httpx2.Timeout(None, connect=CONNECT_SECONDS)
        try:
            async with self._http.stream(
                method, self.server.url, content=body, headers=headers, timeout=timeout, follow_redirects=False
            ) as response:
                yield response
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            # Not chained: the original carries the request, with every header.
            raise Broken(
                f"{self.server} does not answer ({type(error).__name__}); check that it runs and that its address is "
                "right"
            ) from None

    async def frames(self, response: httpx2.Response) -> AsyncGenerator[wire.Frame]:
        """The frames of an answer, as they come in."""
        kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind == "text/event-stream":
            events = wire.Events()
            async for chunk in self._chunks(response):
                for data in events.feed(chunk):
                    yield self._frame(data)
        else:
            yield self._frame(await self.body(response))

    async def body(self, response: httpx2.Response) -> bytes:
        return b"".join([chunk async for chunk in self._chunks(response)])

    async def _chunks(self, response: httpx2.Response) -> AsyncGenerator[bytes]:
        if response.headers.get("content-encoding", "identity").lower() != "identity":
            raise Broken(f"{self.server} sends a compressed answer though asked not to; turn that off there")
        size = 0
        async for chunk in response.aiter_raw():
            size += len(chunk)
            if size > MAX_ANSWER:
                raise Broken(f"{self.server} sends more than {MAX_ANSWER // 1024**2} MiB; ask it for less at a time")
            yield chunk

    def _frame(self, data: bytes) -> wire.Frame:
        found = wire.parse(data)
        if found is None:
            raise Broken(f"{self.server} sends something that is not JSON-RPC; check that its address is right")
        return found

    def _headers(self, protocol: Mapping[str, str], said: Mapping[str, str]) -> dict[str, str]:
        about = {name.lower(): value for name, value in said.items() if name.lower() not in CREDENTIAL_HEADERS}
        headers = {**about, **self._fixed, **self._credential, **ALWAYS, **protocol}
        # The library would refuse it too, with an error that quotes the value.
        for name, value in headers.items():
            if not HEADER_VALUE.fullmatch(value):
                raise Broken(f"Header '{name}' for {self.server} holds what no header can; check where it comes from")
        return headers
