"""HTTP as the MCP client needs it: one request, one answer, over connections that are kept."""

from collections.abc import Mapping
from types import TracebackType
from typing import TYPE_CHECKING
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import anyio.to_thread

if TYPE_CHECKING:
    from frontdesk.loop.mcp.connections import Answer, Connections

# Most servers hang up after 5 idle seconds; a request sent at that moment would fail.
IDLE_SECONDS = 4.0
PROXIED = ("http", "https", "all")


class Failure(Exception):
    """An exchange came to nothing; the text is a few words for it, and never quotes what was sent."""


class Http:
    """Carries exchanges: raises `Failure`, follows no redirect, keeps no cookie.

    A call is never sent twice. A GET or DELETE, which does no harm, is sent once more where its connection broke off.
    """

    def __init__(self, *, idle_seconds: float = IDLE_SECONDS, proxies: Mapping[str, str] | None = None) -> None:
        self.closed = False
        self._idle_seconds = idle_seconds
        self._proxies = proxies_of_environment() if proxies is None else proxies
        self._connections: Connections | None = None

    def send(self, method: str, url: str, headers: Mapping[str, str], body: bytes | None) -> "Exchange":
        """One exchange, as a context that gives the `Answer`; header names are in lower case."""
        return Exchange(self, (method, url, headers, body, proxy_for(url, self._proxies) if self._proxies else None))

    async def connections(self) -> "Connections":
        """What requests go over. The library behind it takes a while to load, so it is loaded aside, when needed."""
        if self._connections is None and not self.closed:
            library = await anyio.to_thread.run_sync(_load)
            # Others may have waited for it too, or closed this meanwhile.
            if self._connections is None and not self.closed:
                self._connections = library(self._idle_seconds)
        if self.closed or self._connections is None:
            raise Failure("Frontdesk is shutting down")
        return self._connections

    async def close(self) -> None:
        self.closed = True
        if self._connections is not None:
            await self._connections.close()


class Exchange:
    """One request and its answer; left before the answer's end, it takes the connection with it."""

    __slots__ = ("_answer", "_http", "_request")

    def __init__(self, http: Http, request: tuple[str, str, Mapping[str, str], bytes | None, str | None]) -> None:
        self._http = http
        self._request = request
        self._answer: Answer | None = None

    async def __aenter__(self) -> "Answer":
        connections = await self._http.connections()
        self._answer = await connections.ask(*self._request)
        return self._answer

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._answer is not None:
            self._answer.leave()


def _load() -> "type[Connections]":
    from frontdesk.loop.mcp.connections import Connections  # noqa: PLC0415

    return Connections


def proxies_of_environment() -> Mapping[str, str]:
    """The proxies that the environment names: a look at all of its variables."""
    return {scheme: proxy for scheme, proxy in getproxies().items() if scheme in PROXIED and proxy}


def proxy_for(url: str, proxies: Mapping[str, str]) -> str | None:
    """The proxy on the way to an address, unless NO_PROXY excepts it."""
    parts = urlsplit(url)
    found = proxies.get(parts.scheme) or proxies.get("all")
    if found is None or proxy_bypass(parts.netloc):
        return None
    return found if "://" in found else f"http://{found}"
