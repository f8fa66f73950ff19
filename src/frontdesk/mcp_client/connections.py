"""Sets up aiohttp for MCP servers: bounded, without cookies, and without connections that received unexpected data."""

import io
import re
import select
import ssl
from collections.abc import AsyncIterator, Mapping
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING
from weakref import WeakSet

import aiohttp
import httpx2
from typing_extensions import override
from yarl import URL

from frontdesk.mcp_client.http import HttpFailure

if TYPE_CHECKING:
    from aiohttp.client_proto import ResponseHandler
    from aiohttp.client_reqrep import ClientRequest
    from aiohttp.connector import Connection
    from aiohttp.tracing import Trace

CONNECT_SECONDS = 5.0
MAX_CONNECTIONS = 1000
# A larger body is written in pieces, so that other tasks can run.
MAX_UNSPLIT_BODY = 512 * 1024
# Only the library writes the headers that frame a request.
FRAMING_HEADERS = frozenset({"connection", "content-length", "expect", "te", "trailer", "transfer-encoding", "upgrade"})
# An address of these characters is sent unchanged; any other is normalised first.
PLAIN_URL = re.compile(r"https?://[A-Za-z0-9\-._~:\[\]]+(?:[/?][A-Za-z0-9\-._~!$&'()*+,;=:@/?%]*)?")
# The narrower error comes first. Other modules look for the names of errors before the server was reached.
REASONS: tuple[tuple[type[Exception], str], ...] = (
    (aiohttp.ClientConnectorCertificateError, "its certificate is not trusted"),
    (aiohttp.ClientSSLError, "TLS fails"),
    (aiohttp.ConnectionTimeoutError, "ConnectTimeout"),
    (aiohttp.ClientConnectorError, "ConnectError"),
    (aiohttp.ClientHttpProxyError, "the proxy refuses"),
    (aiohttp.ClientResponseError, "the answer is not HTTP, or its head is too large"),
    (aiohttp.ClientPayloadError, "the connection broke off, or the answer is not HTTP"),
    (aiohttp.InvalidURL, "the address is not http(s)://host/path"),
    (aiohttp.ClientConnectionError, "the connection broke off"),
    (OSError, "the connection broke off"),
    # The client session was closed meanwhile.
    (RuntimeError, "Frontdesk is shutting down"),
    (ValueError, "a header cannot be sent"),
)


class HttpResponse:
    """A response whose headers have arrived; header names are case-insensitive."""

    __slots__ = ("_response", "headers", "status")

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self._response = response
        self.status = response.status
        self.headers: Mapping[str, str] = response.headers

    @property
    def complete(self) -> bool:
        """Whether the whole body has arrived, as far as is known."""
        return self._response.content.is_eof()

    def chunks(self) -> AsyncIterator[bytes]:
        """The body as it arrives; raises `HttpFailure` if it breaks off."""
        # Not a generator: closing an unfinished generator costs a round of the event loop.
        return self

    def __aiter__(self) -> "HttpResponse":
        return self

    async def __anext__(self) -> bytes:
        try:
            chunk = await self._response.content.readany()
        except (aiohttp.ClientError, OSError) as error:
            raise _to_failure(error) from None
        if not chunk:
            raise StopAsyncIteration
        return chunk

    def release(self) -> None:
        """Stop reading. A complete response has released its connection already; otherwise the connection is closed."""
        self._response.close()


class ConnectionPool:
    """Sends requests to all servers over pooled connections."""

    def __init__(self, idle_seconds: float) -> None:
        self._session = aiohttp.ClientSession(
            connector=_Connector(limit=MAX_CONNECTIONS, keepalive_timeout=idle_seconds),
            # All users of a server would share the cookies, and some servers keep a user in one.
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=aiohttp.ClientTimeout(total=None, connect=CONNECT_SECONDS),
            # The caller sets all headers of a request.
            skip_auto_headers=("accept", "accept-encoding", "content-type", "user-agent"),
            # A small compressed response could expand beyond any limit.
            auto_decompress=False,
        )

    async def request(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes | None, proxy: str | None
    ) -> HttpResponse:
        """Send a request; returns the response once its headers have arrived."""
        address = _parse_url(url)
        try:
            response = await self._session.request(
                method,
                address,
                headers={name: value for name, value in headers.items() if name not in FRAMING_HEADERS},
                data=body if body is None or len(body) <= MAX_UNSPLIT_BODY else io.BytesIO(body),
                allow_redirects=False,
                proxy=proxy,
                ssl=self._tls if address.scheme == "https" else True,
            )
        except (aiohttp.ClientError, OSError, ValueError, RuntimeError) as error:
            # Not chained: the original error contains the request with all headers.
            raise _to_failure(error) from None
        return HttpResponse(response)

    async def close(self) -> None:
        await self._session.close()

    @cached_property
    def _tls(self) -> ssl.SSLContext:
        # The same trusted certificates as for all our other requests.
        context = httpx2.create_ssl_context()
        context.set_alpn_protocols(["http/1.1"])
        return context


class _Connector(aiohttp.TCPConnector):
    """Does not reuse a connection that the server has closed, or on which it sent unrequested data."""

    @cached_property
    def _used(self) -> "WeakSet[ResponseHandler]":
        return WeakSet()

    @override
    async def connect(
        self, req: "ClientRequest", traces: "list[Trace]", timeout: aiohttp.ClientTimeout
    ) -> "Connection":
        while True:
            connection = await super().connect(req, traces, timeout)
            protocol = connection.protocol
            if protocol is not None and protocol not in self._used:
                self._used.add(protocol)
                return connection
            if protocol is not None and _is_quiet(protocol):
                return connection
            # It would be read as the answer to the next request, which may be another person's call.
            connection.close()


def _is_quiet(protocol: "ResponseHandler") -> bool:
    """Whether no data arrived since the last response, neither read by the library nor waiting in the socket."""
    transport = protocol.transport
    if transport is None or transport.is_closing() or protocol.should_close:
        return False
    readable = select.poll()
    readable.register(transport.get_extra_info("socket"), select.POLLIN)
    return not readable.poll(0)


@lru_cache(maxsize=1000)
def _parse_url(url: str) -> URL:
    try:
        address = URL(url, encoded=PLAIN_URL.fullmatch(url) is not None)
        # Credentials in a URL would become an Authorization header.
        sound = address.scheme in ("http", "https") and address.raw_host and address.raw_authority.count("@") == 0
    except ValueError:
        address, sound = URL(), False
    if not sound:
        raise HttpFailure("the address is not http(s)://host/path")
    return address


def _to_failure(error: Exception) -> HttpFailure:
    """A failure whose text repeats nothing that was sent."""
    return HttpFailure(next((reason for kind, reason in REASONS if isinstance(error, kind)), type(error).__name__))
