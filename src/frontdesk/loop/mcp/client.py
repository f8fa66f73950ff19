"""The MCP client of one user at one server: its own session, and the token handed over where the server wants it."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar, cast

import structlog

from frontdesk.errors import Unavailable
from frontdesk.loop.mcp import results
from frontdesk.loop.mcp.credentials import REDACTED, within
from frontdesk.loop.mcp.endpoint import Endpoint
from frontdesk.loop.mcp.errands import Errands
from frontdesk.loop.mcp.http import Http
from frontdesk.loop.mcp.model import (
    Broken,
    Lost,
    McpServer,
    RemoteTool,
    RpcError,
    ToolListing,
    Unauthorized,
    Unfit,
    bare_token,
)
from frontdesk.loop.mcp.ready import ReadySessions, all_pages
from frontdesk.loop.mcp.results import AUTH_TOOLS
from frontdesk.loop.mcp.session import NOTHING_SAID, Progress, Result, Session
from frontdesk.loop.mcp.sse import sse_session
from frontdesk.loop.mcp.stdio.program import Program
from frontdesk.loop.mcp.streamable import HttpSession

# What says how far it is may take so many times its time.
PATIENCE = 10

# The token for a server on behalf of (user id, user's token); the last argument is one that was just refused.
Authorize = Callable[[McpServer, str | None, str | None, str | None], Awaitable[str]]

T = TypeVar("T")

log = structlog.get_logger("frontdesk.loop.mcp")


class McpClient:
    """Every method is bounded by `timeout` seconds, whatever it has to do on the way."""

    def __init__(
        self,
        server: McpServer,
        user_id: str | None,
        token: str | None,
        http: Http,
        *,
        timeout: float | None = None,
        errands: Errands | None = None,
        authorize: Authorize | None = None,
        application: str | None = None,
    ) -> None:
        self.server = server
        self.user_id = user_id
        self._given = bare_token(token)
        self._token = self._given if server.user_token else None
        self._endpoint = Endpoint(server, self._token, http, application)
        self._timeout = timeout or server.timeout
        self._authorize = authorize
        self._sessions = ReadySessions(server, self._token, _sessions(self._endpoint, errands or Errands()))
        self._calls = 0

    def __repr__(self) -> str:
        return f"McpClient({self.server!r}, user_id={self.user_id!r})"

    @property
    def busy(self) -> bool:
        return self._calls > 0

    async def tools(self, headers: Mapping[str, str] = NOTHING_SAID) -> Sequence[RemoteTool]:
        """What the server offers to agents, or `Unavailable`."""
        return (await self.listing(headers)).tools

    async def listing(self, headers: Mapping[str, str] = NOTHING_SAID) -> ToolListing:
        """The same, with what of its list was left out."""
        try:
            listed = await self._limited(lambda _: all_pages(self.server, partial(self._request, said=headers)))
        except RpcError as error:
            raise Unavailable(self.redacted(f"{self.server} does not list its tools: {error}")) from None
        except Unavailable as error:
            error.redact(self.redacted)
            raise
        return ToolListing(results.for_agents(listed.tools), listed.left_out)

    async def raw(
        self,
        name: str,
        arguments: Mapping[str, Any],
        headers: Mapping[str, str] = NOTHING_SAID,
        progress: Progress | None = None,
    ) -> Result:
        """Call a tool; gives the result as it came, or raises `Unavailable`; a failure has no secret in it.

        Whoever is told of progress thereby gives the call more time, up to `PATIENCE` times what it has.
        """
        params = {"name": name, "arguments": dict(arguments)}
        try:
            result = await self._limited(
                lambda limit: self._request("tools/call", params, headers, self._followed(limit, progress))
            )
            return result if results.is_success(result.value) else self._discreet(result)
        except Unavailable as error:
            log.info("mcp_call_failed", server=self.server.name, tool=name, error=type(error).__name__)
            error.redact(self.redacted)
            raise

    async def close(self) -> None:
        """End the session; a later call would begin a new one."""
        await self._sessions.close()

    async def _limited(self, work: Callable[[asyncio.Timeout], Awaitable[T]]) -> T:
        """Do this within the time there is. Not anyio's: a scope of it costs a tenth of the whole call."""
        self._calls += 1
        try:
            async with asyncio.timeout(self._timeout) as limit:
                return await work(limit)
        except TimeoutError:
            raise Broken(f"{self.server} takes longer than {self._timeout:g} s; try again, or ask for less") from None
        finally:
            self._calls -= 1

    def _followed(self, limit: asyncio.Timeout, progress: Progress | None) -> Progress | None:
        """Each sign of life gives the call more time, up to a point."""
        if progress is None:
            return None
        now = asyncio.get_running_loop().time
        latest = now() + PATIENCE * self._timeout

        async def follow(done: float, total: float | None, message: str | None) -> None:
            limit.reschedule(min(latest, now() + self._timeout))
            await progress(done, total, message and self.redacted(message))

        return follow

    async def _request(
        self,
        method: str,
        params: Mapping[str, Any],
        said: Mapping[str, str] = NOTHING_SAID,
        progress: Progress | None = None,
    ) -> Result:
        """Send a request; once more where the session was lost, or a token by OAuth had to be renewed."""
        if self.server.oauth is None:
            return await self._found(method, params, said, progress)
        await self._authorized(None)
        try:
            return await self._found(method, params, said, progress)
        except Unauthorized:
            await self._authorized(self._endpoint.bearer)
            return await self._found(method, params, said, progress)

    async def _authorized(self, refused: str | None) -> None:
        if self._authorize is None:
            raise Unauthorized(f"{self.server} wants an OAuth token; set up `oauth` for it")
        self._endpoint.bearer = await self._authorize(self.server, self.user_id, self._given, refused)

    async def _found(
        self, method: str, params: Mapping[str, Any], said: Mapping[str, str], progress: Progress | None
    ) -> Result:
        try:
            return await self._recognised(method, params, said, progress)
        except Lost:
            log.info("mcp_session_lost", server=self.server.name)
            return await self._recognised(method, params, said, progress)

    async def _recognised(
        self, method: str, params: Mapping[str, Any], said: Mapping[str, str], progress: Progress | None
    ) -> Result:
        """Send a request; where the server says that it does not know the user, hand the token over and repeat."""
        opened = await self._sessions.ready()
        primed = opened.primed
        if opened.keeps_token and params.get("name") in AUTH_TOOLS:
            raise Unfit(f"{self.server} gets its token from Frontdesk; use the other tools without signing in")
        try:
            result = await opened.session.request(method, params, said, progress)
            if not (primed and results.is_error(result.value) and _speaks_of_authentication(result)):
                return result
        except Unauthorized:
            if self._token is None:
                raise
        except RpcError as error:
            if not (primed and results.speaks_of_authentication(str(error))):
                raise
        await self._sessions.prime_again(opened, primed)
        return await opened.session.request(method, params, said, progress)

    def redacted(self, text: str) -> str:
        """What the server said, without the credentials that it was shown, and without the person's token."""
        text = self._endpoint.redacted(text)
        return text.replace(self._given, REDACTED) if self._given else text

    def _discreet(self, result: Result) -> Result:
        """A failure as a tool tells it; before it is cut, since a part of a token would not be found."""
        try:
            return replace(result, value=cast("Mapping[str, Any]", within(result.value, self.redacted)))
        except RecursionError:
            raise Unfit(f"{self.server} answers with something nested too deeply; ask it for less") from None


def _sessions(endpoint: Endpoint, errands: Errands) -> Callable[[], Session]:
    match endpoint.server.transport:
        case "http":
            return lambda: HttpSession(endpoint, errands)
        case "sse":
            return lambda: sse_session(endpoint, errands)
        case "stdio":
            return Program(endpoint.server, errands).session


def _speaks_of_authentication(result: Result) -> bool:
    return results.speaks_of_authentication(results.text_of(result.value))
