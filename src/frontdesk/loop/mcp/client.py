"""The MCP client of one user at one server: its own session, and the token handed over where the server wants it."""

from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import anyio
import httpx2
import structlog

from frontdesk.errors import Unavailable
from frontdesk.loop.mcp import results
from frontdesk.loop.mcp.endpoint import Endpoint
from frontdesk.loop.mcp.model import Broken, Lost, McpServer, RemoteTool, RpcError, Unauthorized, bare_token
from frontdesk.loop.mcp.results import AUTH_TOOLS, PRIMING_TOOL
from frontdesk.loop.mcp.session import Session
from frontdesk.loop.tools import ToolOutcome

CALL_SECONDS = 60.0
MAX_PAGES = 100
NO_HEADERS: Mapping[str, str] = {}

log = structlog.get_logger("frontdesk.loop.mcp")


@dataclass(slots=True)
class Opened:
    """A session and how far its preparation got; `primed` counts how often the token was handed over."""

    session: Session
    keeps_token: bool | None = None
    primed: int = 0


class McpClient:
    """Every method is bounded by `timeout` seconds, whatever it has to do on the way."""

    def __init__(
        self,
        server: McpServer,
        user_id: str | None,
        token: str | None,
        http: httpx2.AsyncClient,
        *,
        timeout: float = CALL_SECONDS,
    ) -> None:
        self.server = server
        self.user_id = user_id
        self._token = bare_token(token) if server.user_token else None
        self._endpoint = Endpoint(server, self._token, http)
        self._timeout = timeout
        self._opened: Opened | None = None
        self._preparing = anyio.Lock()
        self._calls = 0

    def __repr__(self) -> str:
        return f"McpClient({self.server!r}, user_id={self.user_id!r})"

    @property
    def busy(self) -> bool:
        return self._calls > 0

    async def tools(self, headers: Mapping[str, str] = NO_HEADERS) -> Sequence[RemoteTool]:
        """What the server offers to agents, or `Unavailable`."""
        try:
            with self._bounded():
                return results.for_agents(await self._all_pages(partial(self._request, headers=headers)))
        except RpcError as error:
            raise Unavailable(self._redacted(f"{self.server} does not list its tools: {error}")) from None

    async def call(
        self, name: str, arguments: Mapping[str, Any], headers: Mapping[str, str] = NO_HEADERS
    ) -> ToolOutcome:
        """Call a tool; whatever goes wrong is an outcome that a model can read."""
        try:
            with self._bounded():
                result = await self._request("tools/call", {"name": name, "arguments": dict(arguments)}, headers)
        except Unavailable as error:
            log.info("mcp_call_failed", server=self.server.name, tool=name, error=type(error).__name__)
            return results.failed(name, self._redacted(str(error)))
        outcome = results.outcome(name, result)
        return outcome if outcome.ok else ToolOutcome(self._redacted(outcome.text), ok=False)

    async def close(self) -> None:
        """End the session; a later call would begin a new one."""
        opened, self._opened = self._opened, None
        if opened is not None:
            await opened.session.close()

    @contextmanager
    def _bounded(self) -> Generator[None]:
        self._calls += 1
        try:
            with anyio.fail_after(self._timeout):
                yield
        except TimeoutError:
            raise Broken(f"{self.server} takes longer than {self._timeout:g} s; try again, or ask for less") from None
        finally:
            self._calls -= 1

    async def _request(self, method: str, params: Mapping[str, Any], headers: Mapping[str, str]) -> Mapping[str, Any]:
        try:
            return await self._authenticated(method, params, headers)
        except Lost:
            log.info("mcp_session_lost", server=self.server.name)
            return await self._authenticated(method, params, headers)

    async def _authenticated(
        self, method: str, params: Mapping[str, Any], headers: Mapping[str, str]
    ) -> Mapping[str, Any]:
        """Send a request; where the server says that it does not know the user, hand the token over and repeat."""
        opened = await self._ready()
        primed = opened.primed
        if opened.keeps_token and params.get("name") in AUTH_TOOLS:
            raise Broken(f"{self.server} gets its token from Frontdesk; use the other tools without signing in")
        try:
            result = await opened.session.request(method, params, headers)
            if not (primed and results.is_error(result) and results.speaks_of_authentication(results.text_of(result))):
                return result
        except Unauthorized:
            if self._token is None:
                raise
        except RpcError as error:
            if not (primed and results.speaks_of_authentication(str(error))):
                raise
        await self._prime_again(opened, primed)
        return await opened.session.request(method, params, headers)

    async def _ready(self) -> Opened:
        """The session, ready for a call; whoever comes first prepares it, the others wait."""
        async with self._preparing:
            if self._opened is None or self._opened.session.lost:
                session = Session(self._endpoint)
                await session.open()
                self._opened = Opened(session)
            opened = self._opened
            if opened.keeps_token is None:
                opened.keeps_token = await self._keeps_token(opened.session)
            if not opened.primed and self._primes(opened):
                await self._prime(opened)
            return opened

    async def _keeps_token(self, session: Session) -> bool:
        if not self.server.user_token or not results.keeps_token(await self._all_pages(session.request)):
            return False
        if not session.is_kept:
            log.warning("mcp_token_not_left", server=self.server.name, reason="the server keeps no sessions apart")
        return True

    def _primes(self, opened: Opened) -> bool:
        """Whether the token is left with the session: never where the server would keep it for everybody."""
        return bool(opened.keeps_token) and self._token is not None and opened.session.is_kept

    async def _prime_again(self, opened: Opened, primed: int) -> None:
        async with self._preparing:
            # Another call may have done it while this one waited.
            if opened.primed == primed and self._primes(opened):
                await self._prime(opened)

    async def _prime(self, opened: Opened) -> None:
        params = {"name": PRIMING_TOOL, "arguments": {"access_token": self._token}}
        try:
            result = await opened.session.request("tools/call", params)
        except RpcError as error:
            raise self._not_taken(str(error)) from None
        if results.is_error(result):
            raise self._not_taken(results.text_of(result))
        opened.primed += 1

    def _not_taken(self, reason: str) -> Unauthorized:
        return Unauthorized(f"{self.server} does not take the user's token ({self._redacted(reason)}); sign in again")

    def _redacted(self, text: str) -> str:
        return text.replace(self._token, "[token]") if self._token else text

    async def _all_pages(
        self, request: Callable[[str, Mapping[str, Any]], Awaitable[Mapping[str, Any]]]
    ) -> Sequence[RemoteTool]:
        found: list[RemoteTool] = []
        params: Mapping[str, Any] = {}
        for _ in range(MAX_PAGES):
            page = await request("tools/list", params)
            found += results.tools_of(page)
            if page.get("nextCursor") is None:
                return found
            params = {"cursor": page["nextCursor"]}
        log.warning("mcp_listing_cut", server=self.server.name, pages=MAX_PAGES, tools=len(found))
        return found
