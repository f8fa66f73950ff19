"""Asks one server for its tools and writes down what it says; one replica at a time."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from uuid import uuid4

import anyio

from frontdesk.agents.host import HeldTool
from frontdesk.loop.mcp.model import RemoteTool, ToolListing
from frontdesk.loop.mcp.pool import McpClients
from frontdesk.tools.catalogue.changes import compare
from frontdesk.tools.catalogue.crawl import SECONDS, Crawl
from frontdesk.tools.catalogue.roster.model import ServerState, Status
from frontdesk.tools.catalogue.roster.service import Roster
from frontdesk.tools.catalogue.roster.store import RosterStore
from frontdesk.tools.catalogue.schemas import ANYTHING
from frontdesk.tools.catalogue.servers import Transport, connectable
from frontdesk.tools.catalogue.sifting import schema_part, sift
from frontdesk.tools.catalogue.store import ToolStore
from frontdesk.tools.model import Kind

Offered = Callable[[], Awaitable[Sequence[HeldTool]]]
# One that did not answer may just have been starting.
RETRY = timedelta(seconds=60)


@dataclass(frozen=True, slots=True)
class Manners:
    """How servers are asked: how often, how long each may take, and whether changed tools wait for a review."""

    every: timedelta = timedelta(minutes=15)
    seconds: float = SECONDS
    hold_changes: bool = False


class Asking:
    """`heard` is awaited after each listing that was written down."""

    def __init__(
        self,
        roster: Roster,
        servers: RosterStore,
        tools: ToolStore,
        clients: McpClients,
        offered: Offered | None,
        manners: Manners,
        heard: Callable[[], Awaitable[None]],
    ) -> None:
        self._roster = roster
        self._servers = servers
        self._tools = tools
        self._clients = clients
        self._offered = offered
        self._manners = manners
        self._heard = heard

    def crawl(self, asked_before: Callable[[str], datetime]) -> Crawl:
        """A crawl that leaves out what any replica asked since, or is asking."""

        # Of this crawl alone: what it brings counts only as long as no other has begun, and nothing was defined anew.
        owner = uuid4().hex

        async def claim(server: str) -> bool:
            lease = timedelta(seconds=2 * self._manners.seconds)
            return await self._servers.claim(server, owner, lease, asked_before(server))

        take, fail = partial(self._take, owner), partial(self._fail, owner)
        return Crawl(claim, self._ask, take, fail, self._manners.seconds)

    def look(self) -> Crawl:
        """A crawl that only finds out who answers: it waits for no other, and nothing of it is kept."""

        async def claim(_server: str) -> bool:
            return True

        async def take(_server: str, _found: ToolListing) -> str:
            return ""

        async def fail(_server: str, _reason: str) -> None:
            return

        return Crawl(claim, self._ask, take, fail, self._manners.seconds)

    def due_before(self, state: ServerState, now: datetime) -> datetime:
        """A server that was last asked before then is to be asked again."""
        return now - (min(RETRY, self._manners.every) if state.status is Status.FAILED else self._manners.every)

    async def _ask(self, server: str) -> ToolListing:
        spec = self._roster.spec(server)
        if spec.tools is not None:
            return ToolListing(spec.tools)
        if spec.transport is Transport.HOST:
            offered = await self._offered() if self._offered is not None else ()
            return ToolListing([_remote(tool) for tool in offered])
        return await self._clients.client(connectable(spec), None, None).listing()

    async def _take(self, owner: str, server: str, found: ToolListing) -> str:
        spec = self._roster.spec(server)
        known = await self._tools.known(server)
        sound = frozenset(schema_part(tool.seal) for tool in known.values())
        sifted = await anyio.to_thread.run_sync(sift, server, found.tools, sound)
        kind = Kind.HOST if spec.transport is Transport.HOST else Kind.MCP
        hold = self._manners.hold_changes if spec.hold_changes is None else spec.hold_changes
        decide = partial(compare, listed=sifted.tools, hold=hold)
        problems = [*found.left_out, *sifted.problems]
        comparison = await self._tools.apply(server, kind, decide, problems, datetime.now(UTC), owner)
        await self._heard()
        return comparison.summary if comparison is not None else "was removed or defined anew meanwhile"

    async def _fail(self, owner: str, server: str, reason: str) -> None:
        await self._servers.fail(server, reason, datetime.now(UTC), owner)
        await self._heard()


def _remote(tool: HeldTool) -> RemoteTool:
    return RemoteTool(tool.name, tool.description, tool.parameters or ANYTHING)
