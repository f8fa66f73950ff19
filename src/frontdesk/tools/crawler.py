"""Asks tool servers for their tools, many at a time, and stores each listing. One replica asks a server at a time."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from functools import partial
from uuid import uuid4

import anyio
import structlog

from frontdesk.agents.host import HeldTool
from frontdesk.errors import FrontdeskError
from frontdesk.mcp_client.model import RemoteTool, ToolListing
from frontdesk.mcp_client.pool import McpClientPool
from frontdesk.tools.catalogue_store import ServerStore, ToolStore
from frontdesk.tools.listing import ANY_OBJECT_SCHEMA, clean_listing, remove_hidden_characters, schema_digest_in_seal
from frontdesk.tools.model import ToolKind
from frontdesk.tools.server_registry import ServerRegistry
from frontdesk.tools.servers import ServerState, ServerStatus, Transport, to_mcp_server
from frontdesk.tools.versions import compare_listing

SERVERS_AT_ONCE = 16
CRAWL_SECONDS = 30.0
LONGEST_REASON = 500

log = structlog.get_logger("frontdesk.tools.crawl")


class CrawlStage(StrEnum):
    """The state of one server in a crawl. A server that another replica is asking is skipped."""

    STARTED = "started"
    LISTED = "listed"
    FAILED = "failed"
    LEFT = "left"


@dataclass(frozen=True, slots=True)
class CrawlStep:
    """The progress of one server: how many tools it listed and what changed, or why it listed none."""

    server: str
    stage: CrawlStage
    tools: int = 0
    message: str = ""


ReportStep = Callable[[CrawlStep], None]
ClaimServer = Callable[[str], Awaitable[bool]]
AskServer = Callable[[str], Awaitable[ToolListing]]
TakeListing = Callable[[str, ToolListing], Awaitable[str]]
RecordFailure = Callable[[str, str], Awaitable[None]]


def ignore_step(_step: CrawlStep) -> None:
    """Ignore the progress."""


@dataclass(frozen=True, slots=True)
class Crawl:
    """`ask` fetches a server's listing, `take` stores it and describes the changes, `fail` records an error."""

    claim: ClaimServer
    ask: AskServer
    take: TakeListing
    fail: RecordFailure
    seconds: float = CRAWL_SECONDS
    at_once: int = SERVERS_AT_ONCE

    async def run(self, servers: Sequence[str], step: ReportStep = ignore_step) -> Sequence[CrawlStep]:
        """Ask servers in this order. Returns the result of each, in the same order."""
        limiter = anyio.CapacityLimiter(self.at_once)
        ends: list[CrawlStep] = []

        async def one(server: str) -> None:
            async with limiter:
                ends.append(await self._one(server, step))
            step(ends[-1])

        async with anyio.create_task_group() as crawling:
            for server in servers:
                crawling.start_soon(one, server)
        return ends

    async def _one(self, server: str, step: ReportStep) -> CrawlStep:
        try:
            if not await self.claim(server):
                return CrawlStep(server, CrawlStage.LEFT, message="another replica asks it, or did a moment ago")
            step(CrawlStep(server, CrawlStage.STARTED))
            with anyio.fail_after(self.seconds):
                found = await self.ask(server)
            return CrawlStep(server, CrawlStage.LISTED, len(found.tools), await self.take(server, found))
        except TimeoutError:
            reason = public = f"it does not list its tools within {self.seconds:g} s"
        except FrontdeskError as error:
            reason, public = _one_line(str(error)), _one_line(error.public_message)
        except Exception as error:
            # Any failure of one server must not stop the others; the error is logged.
            log.exception("crawl_failed", server=server)
            reason = public = f"its listing could not be taken in ({type(error).__name__})"
        log.warning("server_not_crawled", server=server, reason=reason)
        return await self._failed(server, reason, public)

    async def _failed(self, server: str, reason: str, public: str) -> CrawlStep:
        """The caller gets the full reason. The stored reason must be safe for everybody."""
        try:
            await self.fail(server, public)
        except FrontdeskError as error:
            log.warning("failure_not_noted", server=server, error=str(error))
        return CrawlStep(server, CrawlStage.FAILED, message=reason)


def _one_line(text: str) -> str:
    """A server's text on one line, without characters that a terminal would interpret."""
    return " ".join(remove_hidden_characters(text).split())[:LONGEST_REASON]


ListHostTools = Callable[[], Awaitable[Sequence[HeldTool]]]
# A server that did not answer may have been starting.
FAILED_SERVER_RETRY = timedelta(seconds=60)


@dataclass(frozen=True, slots=True)
class CrawlPolicy:
    """How to ask servers: how often, with which time limit, and whether changed tools wait for a review."""

    every: timedelta = timedelta(minutes=15)
    seconds: float = CRAWL_SECONDS
    hold_changes: bool = False


class ServerCrawler:
    """Asks servers and stores their listings. `heard` is awaited after each stored listing."""

    def __init__(
        self,
        registry: ServerRegistry,
        servers: ServerStore,
        tools: ToolStore,
        clients: McpClientPool,
        offered: ListHostTools | None,
        manners: CrawlPolicy,
        heard: Callable[[], Awaitable[None]],
    ) -> None:
        self._registry = registry
        self._servers = servers
        self._tools = tools
        self._clients = clients
        self._offered = offered
        self._manners = manners
        self._heard = heard

    def crawl(self, asked_before: Callable[[str], datetime]) -> Crawl:
        """A crawl without servers that a replica is asking, or has asked since `asked_before`."""

        # Each crawl has its own owner id: its result counts only if no other crawl started and the server did not
        # change.
        owner = uuid4().hex

        async def claim(server: str) -> bool:
            lease = timedelta(seconds=2 * self._manners.seconds)
            return await self._servers.claim(server, owner, lease, asked_before(server))

        take, fail = partial(self._take, owner), partial(self._fail, owner)
        return Crawl(claim, self._ask, take, fail, self._manners.seconds)

    def trial_crawl(self) -> Crawl:
        """A crawl that only checks which servers answer. It does not wait for other crawls, and stores nothing."""

        async def claim(_server: str) -> bool:
            return True

        async def take(_server: str, _found: ToolListing) -> str:
            return ""

        async def fail(_server: str, _reason: str) -> None:
            return

        return Crawl(claim, self._ask, take, fail, self._manners.seconds)

    def due_before(self, state: ServerState, now: datetime) -> datetime:
        """A server that was last asked before this time is due."""
        return now - (
            min(FAILED_SERVER_RETRY, self._manners.every)
            if state.status is ServerStatus.FAILED
            else self._manners.every
        )

    async def _ask(self, server: str) -> ToolListing:
        spec = self._registry.spec(server)
        if spec.tools is not None:
            return ToolListing(spec.tools)
        if spec.transport is Transport.HOST:
            offered = await self._offered() if self._offered is not None else ()
            return ToolListing([_remote_tool(tool) for tool in offered])
        return await self._clients.client(to_mcp_server(spec), None, None).listing()

    async def _take(self, owner: str, server: str, found: ToolListing) -> str:
        spec = self._registry.spec(server)
        known = await self._tools.known(server)
        sound = frozenset(schema_digest_in_seal(tool.seal) for tool in known.values())
        sifted = await anyio.to_thread.run_sync(clean_listing, server, found.tools, sound)
        kind = ToolKind.HOST if spec.transport is Transport.HOST else ToolKind.MCP
        hold = self._manners.hold_changes if spec.hold_changes is None else spec.hold_changes
        decide = partial(compare_listing, listed=sifted.tools, hold=hold)
        problems = [*found.left_out, *sifted.problems]
        comparison = await self._tools.apply(server, kind, decide, problems, datetime.now(UTC), owner)
        await self._heard()
        return comparison.summary if comparison is not None else "was removed or defined anew meanwhile"

    async def _fail(self, owner: str, server: str, reason: str) -> None:
        await self._servers.fail(server, reason, datetime.now(UTC), owner)
        await self._heard()


def _remote_tool(tool: HeldTool) -> RemoteTool:
    return RemoteTool(tool.name, tool.description, tool.parameters or ANY_OBJECT_SCHEMA)
