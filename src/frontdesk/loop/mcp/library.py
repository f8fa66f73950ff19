"""Exchanges through httpx2, for what our own client leaves alone: proxies, and addresses that need rewriting."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from http.cookiejar import CookieJar, DefaultCookiePolicy
from urllib.request import getproxies

import httpx2

from frontdesk.loop.mcp.http import CONNECT_SECONDS, Answer, Failure
from frontdesk.loop.mcp.http1.client import IDLE_SECONDS, MAX_IDLE, MAX_OPEN, Http1

LIMITS = httpx2.Limits(max_connections=MAX_OPEN, max_keepalive_connections=MAX_IDLE, keepalive_expiry=IDLE_SECONDS)
PROXIED = frozenset({"all", "http", "https"})
NO_LIMIT_BUT_TO_CONNECT = httpx2.Timeout(None, connect=CONNECT_SECONDS)


@dataclass(frozen=True, slots=True)
class LibraryAnswer:
    """The library's response, as an `Answer`."""

    response: httpx2.Response

    @property
    def status(self) -> int:
        return self.response.status_code

    @property
    def headers(self) -> Mapping[str, str]:
        return self.response.headers

    @property
    def complete(self) -> bool:
        return self.response.is_stream_consumed

    async def chunks(self) -> AsyncGenerator[bytes]:
        try:
            async for chunk in self.response.aiter_raw():
                yield chunk
        except httpx2.HTTPError as error:
            raise Failure(type(error).__name__) from None


class Library:
    """`Http` on an httpx2 client."""

    def __init__(self, client: httpx2.AsyncClient | None = None) -> None:
        # Cookies would be shared by all users of a server, and some servers keep a user in one.
        no_cookies = CookieJar(DefaultCookiePolicy(allowed_domains=[]))
        self._client = client or httpx2.AsyncClient(limits=LIMITS, cookies=no_cookies)

    @property
    def closed(self) -> bool:
        return self._client.is_closed

    @asynccontextmanager
    async def send(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes | None
    ) -> AsyncGenerator[Answer]:
        try:
            async with self._client.stream(
                method, url, content=body, headers=headers, timeout=NO_LIMIT_BUT_TO_CONNECT, follow_redirects=False
            ) as response:
                yield LibraryAnswer(response)
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            # Not chained: the original carries the request, with every header.
            raise Failure(type(error).__name__) from None

    async def close(self) -> None:
        await self._client.aclose()


class Either:
    """Our own client where it can, the library where it must; the library is loaded when it is first needed."""

    def __init__(self, *, proxied: bool | None = None) -> None:
        self._own = Http1()
        self._library: Library | None = None
        # Who goes through a proxy, and to where not, is a matter of many small rules.
        self._proxied = are_proxied() if proxied is None else proxied

    @property
    def closed(self) -> bool:
        return self._own.closed

    def send(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes | None
    ) -> AbstractAsyncContextManager[Answer]:
        if not self._proxied and self._own.takes(url):
            return self._own.send(method, url, headers, body)
        if self._library is None:
            self._library = Library()
        return self._library.send(method, url, headers, body)

    async def close(self) -> None:
        await self._own.close()
        if self._library is not None:
            await self._library.close()


def are_proxied() -> bool:
    """Whether the environment names a proxy: a look at all of its variables."""
    return not PROXIED.isdisjoint(getproxies())
