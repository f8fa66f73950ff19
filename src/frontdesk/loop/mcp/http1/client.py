"""Connections that are kept for the next request to the same origin, and the requests that go over them."""

import asyncio
import ssl
from collections import defaultdict
from collections.abc import Mapping
from functools import cached_property
from types import TracebackType

import anyio
import httpx2

from frontdesk.loop.mcp.http import CONNECT_SECONDS, Failure
from frontdesk.loop.mcp.http1.address import Address, Origin, address_of
from frontdesk.loop.mcp.http1.connection import Connection, Received

# Most servers hang up after 5 idle seconds; a request sent at that moment would fail.
IDLE_SECONDS = 4.0
# How long one address of a host may take before the next is tried beside it.
NEXT_ADDRESS_SECONDS = 0.25
MAX_OPEN = 1000
MAX_IDLE = 100
# What says where a request ends is written here alone.
FRAMING = frozenset({"connection", "content-length", "expect", "te", "trailer", "transfer-encoding", "upgrade"})


class Http1:
    """Sends plain requests; whether an address is plain enough says `takes`."""

    def __init__(self, *, idle_seconds: float = IDLE_SECONDS) -> None:
        self.closed = False
        self._idle_seconds = idle_seconds
        self._idle: defaultdict[Origin, list[Connection]] = defaultdict(list)
        self._at_work: set[Connection] = set()
        self._sweeping: asyncio.TimerHandle | None = None

    @staticmethod
    def takes(url: str) -> bool:
        return address_of(url) is not None

    def send(self, method: str, url: str, headers: Mapping[str, str], body: bytes | None) -> "Exchange":
        address = address_of(url)
        if address is None:
            raise Failure("the address is unusual")
        return Exchange(self, address, request_bytes(method, address, headers, body))

    async def close(self) -> None:
        self.closed = True
        if self._sweeping is not None:
            self._sweeping.cancel()
        for connection in (*self._waiting(), *self._at_work):
            connection.close()
        self._idle.clear()
        # A transport is done with its socket one turn of the loop after it was told.
        await asyncio.sleep(0)

    async def take(self, origin: Origin) -> Connection:
        """A connection that waits for work, the last used first, or a new one."""
        idle = self._idle[origin]
        while idle:
            connection = idle.pop()
            if connection.is_quiet() and connection.loop.time() - connection.idle_since < self._idle_seconds:
                self._at_work.add(connection)
                return connection
            connection.close()
        return await self._open(origin)

    def give_back(self, connection: Connection, origin: Origin, *, used_up: bool) -> None:
        self._at_work.discard(connection)
        if used_up or self.closed or not connection.reusable or len(self._idle[origin]) >= MAX_IDLE:
            connection.close()
            return
        connection.idle_since = connection.loop.time()
        self._idle[origin].append(connection)
        if self._sweeping is None:
            self._sweeping = connection.loop.call_later(self._idle_seconds, self._sweep)

    def _waiting(self) -> list[Connection]:
        return [connection for idle in self._idle.values() for connection in idle]

    @cached_property
    def _tls(self) -> ssl.SSLContext:
        context = httpx2.create_ssl_context()
        context.set_alpn_protocols(["http/1.1"])
        return context

    async def _open(self, origin: Origin) -> Connection:
        if self.closed:
            raise Failure("Frontdesk is shutting down")
        if len(self._at_work) >= MAX_OPEN:
            raise Failure("too many connections are open")
        tls = self._tls if origin.tls else None
        try:
            with anyio.fail_after(CONNECT_SECONDS):
                _, connection = await _connect(origin, tls)
        except TimeoutError:
            raise Failure("ConnectTimeout") from None
        except ssl.SSLCertVerificationError:
            raise Failure("its certificate is not trusted") from None
        except (OSError, UnicodeError) as error:
            raise Failure("TLS fails" if isinstance(error, ssl.SSLError) else "ConnectError") from None
        self._at_work.add(connection)
        return connection

    def _sweep(self) -> None:
        loop = asyncio.get_running_loop()
        self._sweeping = None
        old = loop.time() - self._idle_seconds
        for origin, idle in list(self._idle.items()):
            for connection in idle:
                if connection.idle_since <= old:
                    connection.close()
            self._idle[origin] = [connection for connection in idle if connection.idle_since > old]
            if not self._idle[origin]:
                del self._idle[origin]
        if self._idle:
            self._sweeping = loop.call_later(self._idle_seconds, self._sweep)


async def _connect(origin: Origin, tls: ssl.SSLContext | None) -> tuple[asyncio.BaseTransport, Connection]:
    loop = asyncio.get_running_loop()
    if isinstance(loop, asyncio.BaseEventLoop):
        return await loop.create_connection(
            Connection, origin.host, origin.port, ssl=tls, happy_eyeballs_delay=NEXT_ADDRESS_SECONDS
        )
    # uvloop tries one address after the other, and knows no such argument.
    return await loop.create_connection(Connection, origin.host, origin.port, ssl=tls)


class Exchange:
    """One request and its answer; left before the answer's end, it takes the connection with it."""

    __slots__ = ("_address", "_answer", "_connection", "_http", "_request")

    def __init__(self, http: Http1, address: Address, request: bytes) -> None:
        self._http = http
        self._address = address
        self._request = request
        self._connection: Connection | None = None
        self._answer: Received | None = None

    async def __aenter__(self) -> Received:
        connection = self._connection = await self._http.take(self._address.origin)
        try:
            self._answer = await connection.ask(self._request)
        except BaseException:
            self._http.give_back(connection, self._address.origin, used_up=True)
            raise
        return self._answer

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._connection is not None and self._answer is not None:
            self._http.give_back(self._connection, self._address.origin, used_up=not self._answer.complete)


def request_bytes(method: str, address: Address, headers: Mapping[str, str], body: bytes | None) -> bytes:
    """The request as it is sent; nothing in it can begin a header or a request of its own."""
    lines = [f"{method} {address.target} HTTP/1.1"]
    if "host" not in headers:
        lines.append(f"host: {address.host}")
    lines += [f"{name}: {value}" for name, value in headers.items() if name not in FRAMING]
    if body is not None:
        lines.append(f"content-length: {len(body)}")
    head = "\r\n".join(lines)
    if not head.isascii() or len(head.splitlines()) != len(lines):
        raise Failure("a header cannot be sent")
    return head.encode() + b"\r\n\r\n" + (body or b"")
