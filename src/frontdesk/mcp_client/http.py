"""Sends HTTP requests to one MCP server with its credentials, within limits of time and size."""

from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, cast
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import anyio.to_thread

from frontdesk import __version__
from frontdesk.identity.outbound import AGENT_HEADER, agent_id_from_token, header_value
from frontdesk.mcp_client import wire
from frontdesk.mcp_client.model import HEADER_VALUE, McpServer, McpServerUnavailable, UnsupportedRequest, bare_token

if TYPE_CHECKING:
    from frontdesk.mcp_client.connections import ConnectionPool, HttpResponse

# Shorter values are words such as `true`; redacting those would make texts unreadable.
SHORTEST_SECRET = 6
REDACTED = "[token]"
# The values of these headers are public. Any other header may contain a key.
PUBLIC_HEADERS = frozenset(
    {
        "accept",
        "accept-encoding",
        "accept-language",
        "content-type",
        "host",
        "origin",
        "referer",
        "user-agent",
        "x-agent-id",
        "x-ms-agentid",
        "x-ms-channel-id",
        "x-ms-correlation-id",
        "x-ms-subchannel-id",
        "x-request-id",
    }
)
# Their values begin with the name of a scheme, which is not secret.
SCHEME_HEADERS = frozenset({"authorization", "proxy-authorization"})


def secrets_in_headers(headers: Mapping[str, str]) -> frozenset[str]:
    """The secrets in headers, without the scheme, because a server may quote them with or without it."""
    said = [(name.lower(), value) for name, value in headers.items()]
    found = {secret for name, value in said if name not in PUBLIC_HEADERS for secret in _secrets_in_header(name, value)}
    return frozenset(secret for secret in found if len(secret) >= SHORTEST_SECRET)


def redact(text: str, secrets: Iterable[str]) -> str:
    """Replace each secret in a text; the longest first, because one may be part of another."""
    for secret in sorted(secrets, key=len, reverse=True):
        text = text.replace(secret, REDACTED)
    return text


def redact_json(value: object, redacted: Callable[[str], str]) -> object:
    """Redact every text in a JSON value."""
    match value:
        case str():
            return redacted(value)
        case dict():
            pairs = cast("dict[str, object]", value).items()
            return {redacted(name): redact_json(one, redacted) for name, one in pairs}
        case list():
            return [redact_json(one, redacted) for one in cast("list[object]", value)]
        case _:
            return value


def _secrets_in_header(name: str, value: str) -> Iterable[str]:
    bare = bare_token(value) or ""
    if name in SCHEME_HEADERS:
        return (bare.partition(" ")[2].strip() or bare,)
    if name == "cookie":
        return [part.partition("=")[2].strip() for part in bare.split(";")]
    return (bare,)


# Most servers hang up after 5 idle seconds; a request sent at that moment would fail.
IDLE_SECONDS = 4.0
PROXY_SCHEMES = ("http", "https", "all")


class HttpFailure(Exception):
    """A request failed; the text describes it, and never repeats what was sent."""


class HttpClient:
    """Sends requests: raises `HttpFailure`, follows no redirects, keeps no cookies.

    A POST is never sent twice. A GET or DELETE is safe to repeat, and is sent once more if its connection breaks off.
    """

    def __init__(self, *, idle_seconds: float = IDLE_SECONDS, proxies: Mapping[str, str] | None = None) -> None:
        self.closed = False
        self._idle_seconds = idle_seconds
        self._proxies = proxies_of_environment() if proxies is None else proxies
        self._connections: ConnectionPool | None = None

    def send(self, method: str, url: str, headers: Mapping[str, str], body: bytes | None) -> "HttpExchange":
        """One request as a context manager that returns the `HttpResponse`; header names are in lower case."""
        return HttpExchange(
            self, (method, url, headers, body, proxy_for(url, self._proxies) if self._proxies else None)
        )

    async def connections(self) -> "ConnectionPool":
        """The connection pool; its library is slow to import, so it is imported in a thread on first use."""
        if self._connections is None and not self.closed:
            library = await anyio.to_thread.run_sync(_load_connection_pool)
            # Meanwhile another task may have opened it, or closed this client.
            if self._connections is None and not self.closed:
                self._connections = library(self._idle_seconds)
        if self.closed or self._connections is None:
            raise HttpFailure("Frontdesk is shutting down")
        return self._connections

    async def close(self) -> None:
        self.closed = True
        if self._connections is not None:
            await self._connections.close()


class HttpExchange:
    """One request and its response; leaving it before the end of the body closes the connection."""

    __slots__ = ("_answer", "_http", "_request")

    def __init__(self, http: HttpClient, request: tuple[str, str, Mapping[str, str], bytes | None, str | None]) -> None:
        self._http = http
        self._request = request
        self._answer: HttpResponse | None = None

    async def __aenter__(self) -> "HttpResponse":
        connections = await self._http.connections()
        self._answer = await connections.request(*self._request)
        return self._answer

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._answer is not None:
            self._answer.release()


def _load_connection_pool() -> "type[ConnectionPool]":
    from frontdesk.mcp_client.connections import ConnectionPool  # noqa: PLC0415

    return ConnectionPool


def proxies_of_environment() -> Mapping[str, str]:
    """The proxies in the environment; this reads all of its variables."""
    return {scheme: proxy for scheme, proxy in getproxies().items() if scheme in PROXY_SCHEMES and proxy}


def proxy_for(url: str, proxies: Mapping[str, str]) -> str | None:
    """The proxy for an address, unless NO_PROXY excludes it."""
    parts = urlsplit(url)
    found = proxies.get(parts.scheme) or proxies.get("all")
    if found is None or proxy_bypass(parts.netloc):
        return None
    return found if "://" in found else f"http://{found}"


# Other calls may renew the token while one call waits for its answer.
KEPT_BEARERS = 4
MAX_ANSWER = 16 * 1024 * 1024
# Identity headers of a caller cannot set these, which carry credentials.
CREDENTIAL_HEADERS = frozenset({"authorization", "x-user-auth-token", "cookie", "proxy-authorization"})
FIXED_HEADERS = {
    "content-type": "application/json",
    "accept": "application/json, text/event-stream",
    # A small compressed response could expand beyond our limit.
    "accept-encoding": "identity",
    "user-agent": f"frontdesk/{__version__}",
}


class ServerEndpoint:
    """A server's address with the one credential that is sent there.

    Every request to a server that gets `x-ms-agentid` names an agent: the agent in the credential's token, else the
    agent of the call, else `application`. Other servers do not get this header.
    """

    def __init__(self, server: McpServer, token: str | None, http: HttpClient, application: str | None = None) -> None:
        self.server = server
        self._http = http
        self._bearer: str | None = None
        self._bearers: deque[str] = deque(maxlen=KEPT_BEARERS)
        fixed = {name.lower(): value for name, value in server.headers.items()}
        credential = {} if token is None else {"x-user-auth-token": token, "authorization": f"Bearer {token}"}
        self._fixed = {**fixed, **credential}
        self._secrets = secrets_in_headers(self._fixed)
        # The claims of a token that is sent repeatedly are read only once.
        self._agent = agent_id_from_token(bare_token(self._fixed.get("authorization")))
        self._application = header_value(application or "")

    @property
    def bearer(self) -> str | None:
        """Set a renewable token, which replaces the fixed credential."""
        return self._bearer

    @bearer.setter
    def bearer(self, token: str | None) -> None:
        if token != self._bearer:
            self._bearer = token
            self._bearers.extend([token] if token else [])
            self._agent = agent_id_from_token(token)

    def send(
        self,
        method: str,
        body: bytes | None,
        protocol: Mapping[str, str],
        said: Mapping[str, str],
        url: str | None = None,
    ) -> "ServerExchange":
        """One request; `protocol` are headers of MCP, `said` the identity headers of this call."""
        headers = self._headers(protocol, said)
        if self._http.closed:
            raise McpServerUnavailable(f"{self.server} cannot be asked any more: Frontdesk is shutting down")
        return ServerExchange(self.server, self._http, (method, url or self.server.url, headers, body))

    def redacted(self, text: str) -> str:
        """A text of the server without the credentials that were sent to it."""
        return redact(text, self._secrets.union(self._bearers))

    async def read_body(self, answer: "HttpResponse") -> bytes:
        size, chunks = 0, list[bytes]()
        async for chunk in self.chunks(answer):
            size += len(chunk)
            self.check_size(size)
            chunks.append(chunk)
        return chunks[0] if len(chunks) == 1 else b"".join(chunks)

    def chunks(self, answer: "HttpResponse") -> AsyncIterator[bytes]:
        """The body as it arrives; the caller limits its size."""
        if answer.headers.get("content-encoding", "identity").lower() != "identity":
            raise McpServerUnavailable(
                f"{self.server} sends a compressed answer though asked not to; turn that off there"
            )
        return answer.chunks()

    def check_size(self, size: int) -> None:
        if size > MAX_ANSWER:
            raise UnsupportedRequest(
                f"{self.server} sends more than {MAX_ANSWER // 1024**2} MiB; ask it for less at a time"
            )

    def parse_frame(self, data: bytes) -> wire.Frame:
        found = wire.parse_frame(data)
        if found is None:
            raise McpServerUnavailable(
                f"{self.server} sends something that is not JSON-RPC; check that its address is right"
            )
        return found

    def _headers(self, protocol: Mapping[str, str], said: Mapping[str, str]) -> dict[str, str]:
        headers = {lower: value for name, value in said.items() if (lower := name.lower()) not in CREDENTIAL_HEADERS}
        if not self.server.sends_agent_id:
            headers.pop(AGENT_HEADER, None)
        elif self._agent:
            headers[AGENT_HEADER] = self._agent
        elif self._application and AGENT_HEADER not in headers:
            headers[AGENT_HEADER] = self._application
        headers.update(self._fixed)
        if self._bearer is not None:
            headers["authorization"] = f"Bearer {self._bearer}"
        headers.update(FIXED_HEADERS)
        headers.update(protocol)
        # The library would also refuse it, but its error could quote the value. One check of all values is much faster.
        if not HEADER_VALUE.fullmatch("".join(headers.values())):
            wrong = next(name for name, value in headers.items() if not HEADER_VALUE.fullmatch(value))
            raise UnsupportedRequest(
                f"Header '{wrong}' for {self.server} holds what no header can; check where it comes from"
            )
        return headers


class ServerExchange:
    """One request and its response; failures name the server."""

    __slots__ = ("_http", "_inner", "_request", "_server")

    def __init__(
        self, server: McpServer, http: HttpClient, request: tuple[str, str, Mapping[str, str], bytes | None]
    ) -> None:
        self._server = server
        self._http = http
        self._request = request
        self._inner: HttpExchange | None = None

    async def __aenter__(self) -> "HttpResponse":
        try:
            self._inner = self._http.send(*self._request)
            return await self._inner.__aenter__()
        except HttpFailure as failure:
            raise self._to_unavailable(failure) from None

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if self._inner is not None:
                await self._inner.__aexit__(kind, error, trace)
        except HttpFailure as failure:
            raise self._to_unavailable(failure) from None
        if isinstance(error, HttpFailure):
            raise self._to_unavailable(error) from None

    def _to_unavailable(self, failure: HttpFailure) -> McpServerUnavailable:
        return McpServerUnavailable(
            f"{self._server} does not answer ({failure}); check that it runs and that its address is right"
        )


def is_event_stream(answer: "HttpResponse") -> bool:
    """Whether a response is a stream of server-sent events."""
    return answer.headers.get("content-type", "").partition(";")[0].strip().lower() == "text/event-stream"
