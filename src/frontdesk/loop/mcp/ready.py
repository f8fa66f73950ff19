"""The session of one user at one server, made ready for calls: opened, and the token left where it is kept."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

import anyio
import structlog

from frontdesk.loop.mcp import results
from frontdesk.loop.mcp.model import Broken, McpServer, RemoteTool, RpcError, ToolListing, Unauthorized
from frontdesk.loop.mcp.results import PRIMING_TOOL
from frontdesk.loop.mcp.session import Result, Session

MAX_PAGES = 100
# Far more than a server of sense lists; a page alone may have megabytes, and each takes many times that once read.
MAX_TOOLS = 25_000
MAX_LISTING = 64 * 1024 * 1024

log = structlog.get_logger("frontdesk.loop.mcp")


@dataclass(slots=True)
class Opened:
    """A session and how far its preparation got; `primed` counts how often the token was handed over."""

    session: Session
    keeps_token: bool | None = None
    primed: int = 0
    ready: bool = False


class ReadySessions:
    """One at a time; whoever finds it lost or missing makes the next, and the others wait."""

    def __init__(self, server: McpServer, token: str | None, new: Callable[[], Session]) -> None:
        self._server = server
        self._token = token
        self._new = new
        self._opened: Opened | None = None
        self._preparing = anyio.Lock()
        self._opening: Session | None = None
        self._closings = 0

    async def ready(self) -> Opened:
        opened = self._opened
        if opened is not None and opened.ready and not opened.session.lost:
            return opened
        async with self._preparing:
            if self._opened is None or self._opened.session.lost:
                self._opened = Opened(await self._open())
            opened = self._opened
            if opened.keeps_token is None:
                opened.keeps_token = await self._keeps_token(opened.session)
            if not opened.primed and self._primes(opened):
                await self._prime(opened)
            opened.ready = True
            return opened

    async def prime_again(self, opened: Opened, primed: int) -> None:
        """Hand the token over anew, where nobody has since it was `primed` times."""
        async with self._preparing:
            if opened.primed == primed and self._primes(opened):
                await self._prime(opened)

    async def _open(self) -> Session:
        """A new session; where this was closed while it opened, nobody would ever end it, so it ends at once."""
        session, closings = self._new(), self._closings
        self._opening = session
        try:
            await session.open()
        finally:
            self._opening = None
        if closings != self._closings:
            await session.close()
            raise Broken(f"{self._server} was removed or defined anew meanwhile; try again")
        return session

    async def close(self) -> None:
        self._closings += 1
        opening, opened, self._opened = self._opening, self._opened, None
        for session in (opening, opened.session if opened is not None else None):
            if session is not None:
                await session.close()

    async def _keeps_token(self, session: Session) -> bool:
        if not self._server.user_token or not results.keeps_token(
            (await all_pages(self._server, session.request)).tools
        ):
            return False
        if not session.is_kept:
            log.warning("mcp_token_not_left", server=self._server.name, reason="the server keeps no sessions apart")
        return True

    def _primes(self, opened: Opened) -> bool:
        """Whether the token is left with the session: never where the server would keep it for everybody."""
        return bool(opened.keeps_token) and self._token is not None and opened.session.is_kept

    async def _prime(self, opened: Opened) -> None:
        params = {"name": PRIMING_TOOL, "arguments": {"access_token": self._token}}
        try:
            result = (await opened.session.request("tools/call", params)).value
        except RpcError as error:
            raise self._not_taken(str(error)) from None
        if results.is_error(result):
            raise self._not_taken(results.text_of(result))
        opened.primed += 1

    def _not_taken(self, reason: str) -> Unauthorized:
        said = reason.replace(self._token, "[token]") if self._token else reason
        return Unauthorized(f"{self._server} does not take the user's token ({said}); sign in again")


async def all_pages(server: McpServer, request: Callable[[str, Mapping[str, Any]], Awaitable[Result]]) -> ToolListing:
    """Every tool that a server lists, page by page, and what of its list could not be taken."""
    found: list[RemoteTool] = []
    left_out: list[str] = []
    params: Mapping[str, Any] = {}
    before: list[RemoteTool] = []
    pages = size = nameless = 0
    while True:
        result = await request("tools/list", params)
        page, cursor = results.tools_of(result.value), result.value.get("nextCursor")
        pages, size = pages + 1, size + result.size
        nameless += results.entries_of(result.value) - len(page)
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
