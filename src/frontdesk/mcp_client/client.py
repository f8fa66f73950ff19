"""Calls one MCP server for one person: opens the session, passes the token, and repeats lost requests."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar, cast

import anyio
import structlog

from frontdesk.errors import Unavailable
from frontdesk.mcp_client.http import REDACTED, HttpClient, ServerEndpoint, redact_json
from frontdesk.mcp_client.http_sessions import StreamableHttpSession, sse_session
from frontdesk.mcp_client.model import (
    McpRpcError,
    McpServer,
    McpServerUnavailable,
    McpSessionLost,
    McpUnauthorized,
    RemoteTool,
    ToolListing,
    UnsupportedRequest,
    bare_token,
)
from frontdesk.mcp_client.session import NO_HEADERS, BackgroundCalls, McpResult, McpSession, Progress
from frontdesk.mcp_client.stdio import ProcessLauncher
from frontdesk.mcp_client.wire import (
    AUTH_TOOLS,
    PRIMING_TOOL,
    count_entries,
    is_error_result,
    is_success_result,
    keeps_token_in_session,
    mentions_authentication,
    result_text,
    tools_on_page,
    without_sign_in_tools,
)

MAX_PAGES = 100
# Far more tools than any sensible server has; one page may have megabytes, and takes many times that in memory.
MAX_TOOLS = 25_000
MAX_LISTING = 64 * 1024 * 1024

log = structlog.get_logger("frontdesk.mcp_client")


@dataclass(slots=True)
class PreparedSession:
    """A session and its preparation; `primed` counts how often the token was passed to the server."""

    session: McpSession
    keeps_token: bool | None = None
    primed: int = 0
    ready: bool = False


class SessionPreparer:
    """Prepares one session at a time: the first task that finds it lost opens the next, and other tasks wait."""

    def __init__(self, server: McpServer, token: str | None, new: Callable[[], McpSession]) -> None:
        self._server = server
        self._token = token
        self._new = new
        self._opened: PreparedSession | None = None
        self._preparing = anyio.Lock()
        self._opening: McpSession | None = None
        self._closings = 0

    async def ready(self) -> PreparedSession:
        opened = self._opened
        if opened is not None and opened.ready and not opened.session.lost:
            return opened
        async with self._preparing:
            if self._opened is None or self._opened.session.lost:
                self._opened = PreparedSession(await self._open())
            opened = self._opened
            if opened.keeps_token is None:
                opened.keeps_token = await self._keeps_token(opened.session)
            if not opened.primed and self._primes(opened):
                await self._prime(opened)
            opened.ready = True
            return opened

    async def prime_again(self, opened: PreparedSession, primed: int) -> None:
        """Pass the token again, unless another task has done so since it was passed `primed` times."""
        async with self._preparing:
            if opened.primed == primed and self._primes(opened):
                await self._prime(opened)

    async def _open(self) -> McpSession:
        """Open a session; if the preparer was closed meanwhile, close the session immediately."""
        session, closings = self._new(), self._closings
        self._opening = session
        try:
            await session.open()
        finally:
            self._opening = None
        if closings != self._closings:
            await session.close()
            raise McpServerUnavailable(f"{self._server} was removed or defined anew meanwhile; try again")
        return session

    async def close(self) -> None:
        self._closings += 1
        opening, opened, self._opened = self._opening, self._opened, None
        for session in (opening, opened.session if opened is not None else None):
            if session is not None:
                await session.close()

    async def _keeps_token(self, session: McpSession) -> bool:
        if not self._server.user_token or not keeps_token_in_session(
            (await list_all_tools(self._server, session.request)).tools
        ):
            return False
        if not session.is_kept:
            log.warning("mcp_token_not_left", server=self._server.name, reason="the server keeps no sessions apart")
        return True

    def _primes(self, opened: PreparedSession) -> bool:
        """Whether the session keeps the token: never on a server that would keep it for all callers."""
        return bool(opened.keeps_token) and self._token is not None and opened.session.is_kept

    async def _prime(self, opened: PreparedSession) -> None:
        params = {"name": PRIMING_TOOL, "arguments": {"access_token": self._token}}
        try:
            result = (await opened.session.request("tools/call", params)).value
        except McpRpcError as error:
            raise self._not_taken(str(error)) from None
        if is_error_result(result):
            raise self._not_taken(result_text(result))
        opened.primed += 1

    def _not_taken(self, reason: str) -> McpUnauthorized:
        said = reason.replace(self._token, "[token]") if self._token else reason
        return McpUnauthorized(f"{self._server} does not take the user's token ({said}); sign in again")


async def list_all_tools(
    server: McpServer, request: Callable[[str, Mapping[str, Any]], Awaitable[McpResult]]
) -> ToolListing:
    """List the tools of a server, page by page, and describe what was left out."""
    found: list[RemoteTool] = []
    left_out: list[str] = []
    params: Mapping[str, Any] = {}
    before: list[RemoteTool] = []
    pages = size = nameless = 0
    while True:
        result = await request("tools/list", params)
        page, cursor = tools_on_page(result.value), result.value.get("nextCursor")
        pages, size = pages + 1, size + result.size
        nameless += count_entries(result.value) - len(page)
        found += page
        if cursor is None:
            break
        again = cursor == params.get("cursor") and page == before
        if again or pages >= MAX_PAGES or size >= MAX_LISTING or len(found) >= MAX_TOOLS:
            log.warning("mcp_listing_cut", server=server.name, pages=pages, size=size, tools=len(found))
            how = "repeats its page" if again else "goes on"
            left_out.append(f"its list {how} after {pages} pages and {len(found)} tools; the rest is left out")
            break
        params, before = {"cursor": cursor}, page
    if nameless:
        left_out.append(f"{nameless} of the tools that it lists {'has' if nameless == 1 else 'have'} no name; left out")
    return ToolListing(found, left_out)


# A call that reports progress may take up to this many times its limit.
MAX_TIME_FACTOR = 10

# The token for a server on behalf of (user id, user's token); the last argument is one that was just refused.
FetchServerToken = Callable[[McpServer, str | None, str | None, str | None], Awaitable[str]]

T = TypeVar("T")


class McpClient:
    """A client of one server for one person; every method takes at most `timeout` seconds in all."""

    def __init__(
        self,
        server: McpServer,
        user_id: str | None,
        token: str | None,
        http: HttpClient,
        *,
        timeout: float | None = None,
        background: BackgroundCalls | None = None,
        authorize: FetchServerToken | None = None,
        application: str | None = None,
    ) -> None:
        self.server = server
        self.user_id = user_id
        self._user_token = bare_token(token)
        self._token = self._user_token if server.user_token else None
        self._endpoint = ServerEndpoint(server, self._token, http, application)
        self._timeout = timeout or server.timeout
        self._authorize = authorize
        self._sessions = SessionPreparer(
            server, self._token, _session_factory(self._endpoint, background or BackgroundCalls())
        )
        self._calls = 0

    def __repr__(self) -> str:
        return f"McpClient({self.server!r}, user_id={self.user_id!r})"

    @property
    def busy(self) -> bool:
        return self._calls > 0

    async def tools(self, headers: Mapping[str, str] = NO_HEADERS) -> Sequence[RemoteTool]:
        """The tools that the server offers; raises `Unavailable`."""
        return (await self.listing(headers)).tools

    async def listing(self, headers: Mapping[str, str] = NO_HEADERS) -> ToolListing:
        """The tools that the server offers, with descriptions of what was left out; raises `Unavailable`."""
        try:
            listed = await self._within_timeout(
                lambda _: list_all_tools(self.server, partial(self._request, said=headers))
            )
        except McpRpcError as error:
            raise Unavailable(self.redacted(f"{self.server} does not list its tools: {error}")) from None
        except Unavailable as error:
            error.redact(self.redacted)
            raise
        return ToolListing(without_sign_in_tools(listed.tools), listed.left_out)

    async def call_tool(
        self,
        name: str,
        arguments: Mapping[str, Any],
        headers: Mapping[str, str] = NO_HEADERS,
        progress: Progress | None = None,
    ) -> McpResult:
        """Call a tool and return its unchanged result, or raise `Unavailable`; failures contain no secret.

        With `progress`, each report extends the time limit, up to `MAX_TIME_FACTOR` times the limit.
        """
        params = {"name": name, "arguments": dict(arguments)}
        try:
            result = await self._within_timeout(
                lambda limit: self._request("tools/call", params, headers, self._extend_on_progress(limit, progress))
            )
            return result if is_success_result(result.value) else self._redact_result(result)
        except Unavailable as error:
            log.info("mcp_call_failed", server=self.server.name, tool=name, error=type(error).__name__)
            error.redact(self.redacted)
            raise

    async def close(self) -> None:
        """End the session; a later call opens a new one."""
        await self._sessions.close()

    async def _within_timeout(self, work: Callable[[asyncio.Timeout], Awaitable[T]]) -> T:
        """Run this within the time limit. An anyio scope would take a tenth of the time of a whole call."""
        self._calls += 1
        try:
            async with asyncio.timeout(self._timeout) as limit:
                return await work(limit)
        except TimeoutError:
            raise McpServerUnavailable(
                f"{self.server} takes longer than {self._timeout:g} s; try again, or ask for less"
            ) from None
        finally:
            self._calls -= 1

    def _extend_on_progress(self, limit: asyncio.Timeout, progress: Progress | None) -> Progress | None:
        """Each progress report extends the time limit, up to a maximum."""
        if progress is None:
            return None
        now = asyncio.get_running_loop().time
        latest = now() + MAX_TIME_FACTOR * self._timeout

        async def follow(done: float, total: float | None, message: str | None) -> None:
            limit.reschedule(min(latest, now() + self._timeout))
            await progress(done, total, message and self.redacted(message))

        return follow

    async def _request(
        self,
        method: str,
        params: Mapping[str, Any],
        said: Mapping[str, str] = NO_HEADERS,
        progress: Progress | None = None,
    ) -> McpResult:
        """Send a request; repeat it once if the session was lost or an OAuth token had to be renewed."""
        if self.server.oauth is None:
            return await self._request_in_live_session(method, params, said, progress)
        await self._renew_bearer(None)
        try:
            return await self._request_in_live_session(method, params, said, progress)
        except McpUnauthorized:
            await self._renew_bearer(self._endpoint.bearer)
            return await self._request_in_live_session(method, params, said, progress)

    async def _renew_bearer(self, refused: str | None) -> None:
        if self._authorize is None:
            raise McpUnauthorized(f"{self.server} wants an OAuth token; set up `oauth` for it")
        self._endpoint.bearer = await self._authorize(self.server, self.user_id, self._user_token, refused)

    async def _request_in_live_session(
        self, method: str, params: Mapping[str, Any], said: Mapping[str, str], progress: Progress | None
    ) -> McpResult:
        try:
            return await self._request_with_user_token(method, params, said, progress)
        except McpSessionLost:
            log.info("mcp_session_lost", server=self.server.name)
            return await self._request_with_user_token(method, params, said, progress)

    async def _request_with_user_token(
        self, method: str, params: Mapping[str, Any], said: Mapping[str, str], progress: Progress | None
    ) -> McpResult:
        """Send a request; if the server does not know the user, pass the token and repeat the request."""
        opened = await self._sessions.ready()
        primed = opened.primed
        if opened.keeps_token and params.get("name") in AUTH_TOOLS:
            raise UnsupportedRequest(
                f"{self.server} gets its token from Frontdesk; use the other tools without signing in"
            )
        try:
            result = await opened.session.request(method, params, said, progress)
            if not (primed and is_error_result(result.value) and _result_mentions_authentication(result)):
                return result
        except McpUnauthorized:
            if self._token is None:
                raise
        except McpRpcError as error:
            if not (primed and mentions_authentication(str(error))):
                raise
        await self._sessions.prime_again(opened, primed)
        return await opened.session.request(method, params, said, progress)

    def redacted(self, text: str) -> str:
        """A text of the server without the credentials that were sent to it, and without the person's token."""
        text = self._endpoint.redacted(text)
        return text.replace(self._user_token, REDACTED) if self._user_token else text

    def _redact_result(self, result: McpResult) -> McpResult:
        """Redact a failure in a result before the text is cut, because a part of a token would not be found."""
        try:
            return replace(result, value=cast("Mapping[str, Any]", redact_json(result.value, self.redacted)))
        except RecursionError:
            raise UnsupportedRequest(
                f"{self.server} answers with something nested too deeply; ask it for less"
            ) from None


def _session_factory(endpoint: ServerEndpoint, background: BackgroundCalls) -> Callable[[], McpSession]:
    match endpoint.server.transport:
        case "http":
            return lambda: StreamableHttpSession(endpoint, background)
        case "sse":
            return lambda: sse_session(endpoint, background)
        case "stdio":
            return ProcessLauncher(endpoint.server, background).session


def _result_mentions_authentication(result: McpResult) -> bool:
    return mentions_authentication(result_text(result.value))
