"""One MCP server over HTTP: post a frame, get the answer, within limits of time and size."""

from collections import deque
from collections.abc import AsyncIterator, Mapping
from types import TracebackType
from typing import TYPE_CHECKING

from frontdesk import __version__
from frontdesk.identity.outbound import AGENT_HEADER, agent_id_from_token, header_value
from frontdesk.loop.mcp import wire
from frontdesk.loop.mcp.credentials import credentials, without
from frontdesk.loop.mcp.http import Exchange, Failure, Http
from frontdesk.loop.mcp.model import HEADER_VALUE, Broken, McpServer, Unfit, bare_token

if TYPE_CHECKING:
    from frontdesk.loop.mcp.connections import Answer

# While one call waits for its answer others may have the token renewed.
BEARERS = 4
MAX_ANSWER = 16 * 1024 * 1024
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
    """A server's address together with the one credential that is shown there.

    Every request to a server that is told `x-ms-agentid` names an agent: the one that the credential's token was given
    to, else the one that the call says, else `application`. No other server is told.
    """

    def __init__(self, server: McpServer, token: str | None, http: Http, application: str | None = None) -> None:
        self.server = server
        self._http = http
        self._bearer: str | None = None
        self._bearers: deque[str] = deque(maxlen=BEARERS)
        fixed = {name.lower(): value for name, value in server.headers.items()}
        credential = {} if token is None else {"x-user-auth-token": token, "authorization": f"Bearer {token}"}
        self._fixed = {**fixed, **credential}
        self._secrets = credentials(self._fixed)
        # Of a token that is shown more than once its claims are read once.
        self._agent = agent_id_from_token(bare_token(self._fixed.get("authorization")))
        self._application = header_value(application or "")

    @property
    def bearer(self) -> str | None:
        """A token that is renewed now and then; it is shown instead of what is fixed."""
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
    ) -> "Sending":
        """One exchange; `protocol` are headers of MCP, `said` what this call says of itself."""
        headers = self._headers(protocol, said)
        if self._http.closed:
            raise Broken(f"{self.server} cannot be asked any more: Frontdesk is shutting down")
        return Sending(self.server, self._http, (method, url or self.server.url, headers, body))

    def redacted(self, text: str) -> str:
        """What the server said, without any credential that it was shown."""
        return without(text, self._secrets.union(self._bearers))

    async def body(self, answer: "Answer") -> bytes:
        size, chunks = 0, list[bytes]()
        async for chunk in self.chunks(answer):
            size += len(chunk)
            self.check_size(size)
            chunks.append(chunk)
        return chunks[0] if len(chunks) == 1 else b"".join(chunks)

    def chunks(self, answer: "Answer") -> AsyncIterator[bytes]:
        """The body as it comes; how much of it is too much is for the caller to say."""
        if answer.headers.get("content-encoding", "identity").lower() != "identity":
            raise Broken(f"{self.server} sends a compressed answer though asked not to; turn that off there")
        return answer.chunks()

    def check_size(self, size: int) -> None:
        if size > MAX_ANSWER:
            raise Unfit(f"{self.server} sends more than {MAX_ANSWER // 1024**2} MiB; ask it for less at a time")

    def frame(self, data: bytes) -> wire.Frame:
        found = wire.parse(data)
        if found is None:
            raise Broken(f"{self.server} sends something that is not JSON-RPC; check that its address is right")
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
        headers.update(ALWAYS)
        headers.update(protocol)
        # Whoever sends it would refuse it too, and could quote the value. One look at all of them is much quicker.
        if not HEADER_VALUE.fullmatch("".join(headers.values())):
            wrong = next(name for name, value in headers.items() if not HEADER_VALUE.fullmatch(value))
            raise Unfit(f"Header '{wrong}' for {self.server} holds what no header can; check where it comes from")
        return headers


class Sending:
    """A request and its answer, with what goes wrong told of the server."""

    __slots__ = ("_http", "_inner", "_request", "_server")

    def __init__(
        self, server: McpServer, http: Http, request: tuple[str, str, Mapping[str, str], bytes | None]
    ) -> None:
        self._server = server
        self._http = http
        self._request = request
        self._inner: Exchange | None = None

    async def __aenter__(self) -> "Answer":
        try:
            self._inner = self._http.send(*self._request)
            return await self._inner.__aenter__()
        except Failure as failure:
            raise self._told(failure) from None

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if self._inner is not None:
                await self._inner.__aexit__(kind, error, trace)
        except Failure as failure:
            raise self._told(failure) from None
        if isinstance(error, Failure):
            raise self._told(error) from None

    def _told(self, failure: Failure) -> Broken:
        return Broken(f"{self._server} does not answer ({failure}); check that it runs and that its address is right")


def is_stream(answer: "Answer") -> bool:
    """Whether an answer comes as server-sent events."""
    return answer.headers.get("content-type", "").partition(";")[0].strip().lower() == "text/event-stream"
