"""Offers the catalogue of one replica: tools, servers, crawling, and the index that searches them."""

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import anyio
import structlog

from frontdesk.background import BackgroundJob
from frontdesk.db.engine import Database
from frontdesk.embedding import Embedder
from frontdesk.mcp_client.model import NAME_SEPARATOR
from frontdesk.mcp_client.pool import KnownServers, McpClientPool
from frontdesk.tools.catalogue_store import CLOCK_TOLERANCE, ServerStore, ToolFilter, ToolStore, ToolVectorStore
from frontdesk.tools.crawler import (
    CrawlPolicy,
    CrawlStage,
    CrawlStep,
    ListHostTools,
    ReportStep,
    ServerCrawler,
    ignore_step,
)
from frontdesk.tools.index import ToolIndex
from frontdesk.tools.index_sync import IndexSync, ToolEmbedding
from frontdesk.tools.model import ID_SEPARATOR, CatalogueTool
from frontdesk.tools.server_registry import ServerRegistry, ServerSources
from frontdesk.tools.servers import ServerSpec, ServerState, ServerStatus, Transport

# A tool takes a few kilobytes with its schema.
TOOLS_CACHED = 2000


class CatalogueToolCache:
    """A cache that is cleared whenever the catalogue changes, so it matches the index."""

    def __init__(self, store: ToolStore) -> None:
        self._store = store
        self._tools: OrderedDict[str, CatalogueTool] = OrderedDict()
        self._clearings = 0

    def clear(self) -> None:
        self._tools.clear()
        self._clearings += 1

    async def many(self, ids: Sequence[str]) -> Mapping[str, CatalogueTool]:
        """The known tools with these ids, in this order."""
        found = {wanted: self._tools[wanted] for wanted in ids if wanted in self._tools}
        missing = [wanted for wanted in ids if wanted not in found]
        if missing:
            clearings = self._clearings
            read = await self._store.many(missing)
            # A row that was read before the cache was cleared may be outdated.
            if clearings == self._clearings:
                self._keep(read)
            found |= read
        for used in found:
            if used in self._tools:
                self._tools.move_to_end(used)
        return {wanted: found[wanted] for wanted in ids if wanted in found}

    def _keep(self, tools: Mapping[str, CatalogueTool]) -> None:
        self._tools.update(tools)
        while len(self._tools) > TOOLS_CACHED:
            self._tools.popitem(last=False)


FOLLOW_SECONDS = 1.0
CRAWL_ROUND_SECONDS = 15.0
PRUNE_SECONDS = 3600.0
# After a start, each server is asked, unless another replica asked it more recently than this.
START_CRAWL_AGE = timedelta(seconds=30)
# A removed tool that comes back within this time is compared with its old version.
GONE_TOOLS_KEPT = timedelta(days=30)

log = structlog.get_logger("frontdesk.tools.catalogue")
CATALOGUE_JOB = BackgroundJob(log, "catalogue_waits", "catalogue_failed")


@dataclass(frozen=True, slots=True)
class CatalogueProgress:
    """The state of the catalogue: tools, tools with a vector, servers, and servers that are being asked."""

    tools: int
    embedded: int
    servers: int
    failed: int
    asking: Sequence[str] = ()
    trouble: str = ""


class Catalogue:
    """The tools and servers of this replica. Queries use memory and the database; `run` keeps both up to date."""

    def __init__(
        self,
        database: Database,
        servers: KnownServers,
        clients: McpClientPool,
        embedder: Embedder | None = None,
        *,
        named: ServerSources | None = None,
        offered: ListHostTools | None = None,
        manners: CrawlPolicy | None = None,
    ) -> None:
        self.index = ToolIndex()
        self._tools = ToolStore(database)
        self._vectors = ToolVectorStore(database)
        server_store = ServerStore(database)
        self._registry = ServerRegistry(server_store, servers, named or ServerSources(), host=offered is not None)
        self._cache = CatalogueToolCache(self._tools)
        self._sync = IndexSync(self._tools, self.index, embedder.name if embedder else None)
        self._meaning = ToolEmbedding(self.index, self._tools, self._vectors, self._sync, embedder)
        self._by_meaning = embedder is not None
        self._asking = ServerCrawler(
            self._registry, server_store, self._tools, clients, offered, manners or CrawlPolicy(), self._catch_up
        )
        self._underway: set[str] = set()

    @property
    def revision(self) -> int:
        """Increases with each change that this replica has indexed."""
        return self._sync.revision

    async def get(self, tool_id: str) -> CatalogueTool | None:
        return (await self._cache.many([tool_id])).get(tool_id)

    async def many(self, ids: Sequence[str]) -> Mapping[str, CatalogueTool]:
        """The known tools with these ids, in this order."""
        return await self._cache.many(ids)

    async def resolve(self, name: str) -> Sequence[CatalogueTool]:
        """The tools that a name may mean: an id, else the name that models see, else a tool's own name."""
        found = await self._tools.find_by_name(name)
        server, separator, _ = name.partition(NAME_SEPARATOR)
        # A name that looks like another server's tool is never an own name, so that no call goes to a wrong server.
        foreign = ID_SEPARATOR in name or (bool(separator) and server in self._registry.states)
        exact = [tool for tool in found if tool.id == name or tool.name != name]
        return exact if foreign else found

    async def page(self, filters: ToolFilter) -> Sequence[CatalogueTool]:
        return await self._tools.page(filters)

    async def other_version(self, tool_id: str) -> Mapping[str, Any] | None:
        """The version of a changed tool that is not in use: the new one if the tool is held, else the old one."""
        return await self._tools.other_version(tool_id)

    async def is_held_back(self, tool_id: str) -> bool:
        """Whether a tool waits for a review, even if its server no longer lists it."""
        return await self._tools.is_held_back(tool_id)

    def servers(self) -> Sequence[ServerState]:
        return list(self._registry.states.values())

    def progress(self) -> CatalogueProgress:
        tools = len(self.index)
        states = self._registry.states.values()
        return CatalogueProgress(
            tools,
            tools - self.index.unread if self._by_meaning else 0,
            len(states),
            sum(state.status is ServerStatus.FAILED for state in states),
            sorted(self._underway),
            self._meaning.trouble or self._registry.trouble,
        )

    async def add(self, spec: ServerSpec, step: ReportStep = ignore_step) -> CrawlStep:
        """Add a server and ask it for its tools."""
        await self._registry.add(spec)
        [end] = await self.refresh([spec.name], step)
        return end

    async def remove(self, name: str) -> None:
        """Remove a server that was added, and its tools."""
        await self._registry.remove(name, datetime.now(UTC))
        await self._catch_up()

    async def refresh(self, names: Sequence[str] | None = None, step: ReportStep = ignore_step) -> Sequence[CrawlStep]:
        """Ask these servers now, or all of them. Returns the result of each."""
        await self._registry.load()
        wanted = [self._registry.spec(name).name for name in (self._registry.states if names is None else names)]
        now = datetime.now(UTC)
        return await self._crawl(wanted, lambda _server: now, step)

    async def check_servers(self) -> Sequence[str]:
        """The current problems. Asks each server for its tools, but stores nothing."""
        await self._registry.load()
        states = self._registry.states
        # The host is checked elsewhere. Servers whose tools are in a manifest are never asked for them.
        asked = [
            name
            for name in self._registry.reachable_names
            if states[name].spec.transport is not Transport.HOST and states[name].spec.tools is None
        ]
        ends = await self._asking.trial_crawl().run(sorted(asked))
        failed = sorted((end for end in ends if end.stage is CrawlStage.FAILED), key=lambda end: end.server)
        said = [f"tool server {end.server}: {end.message}" for end in failed]
        return [self._registry.trouble, *said] if self._registry.trouble else said

    async def review(self, tool_id: str, *, accept: bool) -> CatalogueTool | None:
        """Accept the change of a tool, or keep the approved version."""
        await self._tools.review(tool_id, datetime.now(UTC), accept=accept)
        await self._catch_up()
        return await self.get(tool_id)

    async def load_servers(self) -> None:
        """Read the servers, so that their tools can be called."""
        await self._registry.load()

    async def load(self) -> None:
        """Index what the database has. After that, all tools are found by terms, and many by meaning."""
        await self._catch_up()

    async def embed_missing(self) -> None:
        """Embed every tool now."""
        await self._meaning.embed_missing()

    async def run(self) -> None:
        """Load, then follow other replicas, ask servers and embed, until cancelled."""
        await CATALOGUE_JOB.attempt(self.load, work="load")
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._meaning.run)
            tasks.start_soon(partial(CATALOGUE_JOB.run_every, FOLLOW_SECONDS, self._follow, work="follow"))
            tasks.start_soon(partial(CATALOGUE_JOB.run_every, PRUNE_SECONDS, self._prune, at_once=True, work="prune"))
            tasks.start_soon(
                partial(CATALOGUE_JOB.run_every, CRAWL_ROUND_SECONDS, self._discover, at_once=True, work="discover")
            )
            await CATALOGUE_JOB.attempt(self._line_up, work="declare")
            await CATALOGUE_JOB.attempt(self._first_round, work="crawl")
            await CATALOGUE_JOB.run_every(CRAWL_ROUND_SECONDS, self._round, work="crawl")

    async def declare(self) -> None:
        """Store the servers that settings, manifest and platform declare."""
        await self._registry.discover(datetime.now(UTC))
        await self._line_up()

    async def _line_up(self) -> None:
        await self._registry.declare(datetime.now(UTC))
        await self._catch_up()

    async def _discover(self) -> None:
        # In its own task, so that the rounds do not wait for a slow platform.
        if await self._registry.discover(datetime.now(UTC)):
            await self._round()

    async def _first_round(self) -> None:
        before = datetime.now(UTC) - START_CRAWL_AGE
        await self._crawl(list(self._registry.states), lambda _server: before)

    async def _round(self) -> None:
        await self._registry.declare(datetime.now(UTC))
        now, states = datetime.now(UTC), self._registry.states
        before = {name: self._asking.due_before(state, now) for name, state in states.items()}
        # A time in the future was written before the clock was set back.
        due = [
            name
            for name, state in states.items()
            if not before[name] < (state.crawled_at or before[name]) <= now + CLOCK_TOLERANCE
        ]
        await self._crawl(due, before.__getitem__)

    async def _crawl(
        self, names: Sequence[str], before: Callable[[str], datetime], told: ReportStep = ignore_step
    ) -> Sequence[CrawlStep]:
        def note(step: CrawlStep) -> None:
            (self._underway.add if step.stage is CrawlStage.STARTED else self._underway.discard)(step.server)
            told(step)

        # Servers that answered last time go first; the others may use their whole time limit.
        states = self._registry.states
        order = sorted(names, key=lambda name: states[name].status is ServerStatus.FAILED)
        try:
            return await self._asking.crawl(before).run(order, note)
        finally:
            # The caller may have left before all servers answered.
            self._underway.difference_update(order)

    async def _follow(self) -> None:
        if await self._sync.behind():
            await self._catch_up()

    async def _catch_up(self) -> None:
        await self._sync.pull()
        self._cache.clear()
        await self._registry.load()

    async def _prune(self) -> None:
        await self._tools.prune(datetime.now(UTC) - GONE_TOOLS_KEPT)
        await self._vectors.prune()
