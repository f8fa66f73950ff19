"""The catalogue of one replica: which tools there are, on which servers, searchable from memory and kept up to date."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import anyio
import structlog

from frontdesk.background import Chore
from frontdesk.db.engine import Database
from frontdesk.embedding.port import Embedder
from frontdesk.loop.mcp.names import SEPARATOR as API_SEPARATOR
from frontdesk.loop.mcp.pool import McpClients
from frontdesk.loop.mcp.servers import Servers
from frontdesk.tools.catalogue.asking import Asking, Manners, Offered
from frontdesk.tools.catalogue.crawl import Stage, Step, Told, silent
from frontdesk.tools.catalogue.meaning import Meaning
from frontdesk.tools.catalogue.roster.model import ServerState, Status
from frontdesk.tools.catalogue.roster.service import Named, Roster
from frontdesk.tools.catalogue.roster.store import CLOCKS_APART, RosterStore
from frontdesk.tools.catalogue.servers import ServerSpec, Transport
from frontdesk.tools.catalogue.shelf import Shelf
from frontdesk.tools.catalogue.store import Filter, ToolStore
from frontdesk.tools.catalogue.sync import Sync
from frontdesk.tools.catalogue.vectors.store import VectorStore
from frontdesk.tools.model import SEPARATOR, CatalogueTool
from frontdesk.tools.search.index import Index

FOLLOW_SECONDS = 1.0
ROUND_SECONDS = 15.0
PRUNE_SECONDS = 3600.0
# At the start a server is asked unless another replica did so just now.
FRESH = timedelta(seconds=30)
# For so long a tool that went is compared with what it was, should it come back.
REMEMBERED = timedelta(days=30)

log = structlog.get_logger("frontdesk.tools.catalogue")
CHORE = Chore(log, "catalogue_waits", "catalogue_failed")


@dataclass(frozen=True, slots=True)
class Progress:
    """How far the catalogue is: tools that can be found, by meaning too; servers, and those being asked just now."""

    tools: int
    embedded: int
    servers: int
    failed: int
    asking: Sequence[str] = ()
    trouble: str = ""


class Catalogue:
    """Queries read memory and the database; `run` keeps both up to date."""

    def __init__(
        self,
        database: Database,
        servers: Servers,
        clients: McpClients,
        embedder: Embedder | None = None,
        *,
        named: Named | None = None,
        offered: Offered | None = None,
        manners: Manners | None = None,
    ) -> None:
        self.index = Index()
        self._tools = ToolStore(database)
        self._vectors = VectorStore(database)
        roster = RosterStore(database)
        self._roster = Roster(roster, servers, named or Named(), host=offered is not None)
        self._shelf = Shelf(self._tools)
        self._sync = Sync(self._tools, self.index, embedder.name if embedder else None)
        self._meaning = Meaning(self.index, self._tools, self._vectors, self._sync, embedder)
        self._by_meaning = embedder is not None
        self._asking = Asking(self._roster, roster, self._tools, clients, offered, manners or Manners(), self._catch_up)
        self._underway: set[str] = set()

    @property
    def revision(self) -> int:
        """Grows with each change that this replica has taken in."""
        return self._sync.revision

    async def get(self, tool_id: str) -> CatalogueTool | None:
        return (await self._shelf.many([tool_id])).get(tool_id)

    async def many(self, ids: Sequence[str]) -> Mapping[str, CatalogueTool]:
        """Those of these tools that there are, in this order."""
        return await self._shelf.many(ids)

    async def resolve(self, name: str) -> Sequence[CatalogueTool]:
        """The tools that a name may mean: an id, else the name that models see, else a tool's own name."""
        found = await self._tools.named(name)
        server, separator, _ = name.partition(API_SEPARATOR)
        # What reads like another server's tool is no tool's own name: a call for it must not end up elsewhere.
        foreign = SEPARATOR in name or (bool(separator) and server in self._roster.states)
        exact = [tool for tool in found if tool.id == name or tool.name != name]
        return exact if foreign else found

    async def page(self, wanted: Filter) -> Sequence[CatalogueTool]:
        return await self._tools.page(wanted)

    async def other_version(self, tool_id: str) -> Mapping[str, Any] | None:
        """Of a changed tool the version that does not count: new where it is held, else the one it had before."""
        return await self._tools.other_version(tool_id)

    async def withheld(self, tool_id: str) -> bool:
        """Whether a tool waits for a review, also one that its server lists no more."""
        return await self._tools.withheld(tool_id)

    def servers(self) -> Sequence[ServerState]:
        return list(self._roster.states.values())

    def progress(self) -> Progress:
        tools = len(self.index)
        states = self._roster.states.values()
        return Progress(
            tools,
            tools - self.index.unread if self._by_meaning else 0,
            len(states),
            sum(state.status is Status.FAILED for state in states),
            sorted(self._underway),
            self._meaning.trouble or self._roster.trouble,
        )

    async def add(self, spec: ServerSpec, told: Told = silent) -> Step:
        """Put a server on the roster and ask it for its tools."""
        await self._roster.add(spec)
        [end] = await self.refresh([spec.name], told)
        return end

    async def remove(self, name: str) -> None:
        """Take a server that was added off the roster, and its tools with it."""
        await self._roster.remove(name, datetime.now(UTC))
        await self._catch_up()

    async def refresh(self, names: Sequence[str] | None = None, told: Told = silent) -> Sequence[Step]:
        """Ask these servers now, or all; how each ended."""
        await self._roster.load()
        wanted = [self._roster.spec(name).name for name in (self._roster.states if names is None else names)]
        now = datetime.now(UTC)
        return await self._crawl(wanted, lambda _server: now, told)

    async def troubles(self) -> Sequence[str]:
        """What is wrong just now: each server is asked for its tools, and nothing of that is kept."""
        await self._roster.load()
        states = self._roster.states
        # How the host is, others say; one whose tools a manifest lists is never asked for them.
        asked = [
            name
            for name in self._roster.ours
            if states[name].spec.transport is not Transport.HOST and states[name].spec.tools is None
        ]
        ends = await self._asking.look().run(sorted(asked))
        failed = sorted((end for end in ends if end.stage is Stage.FAILED), key=lambda end: end.server)
        said = [f"tool server {end.server}: {end.told}" for end in failed]
        return [self._roster.trouble, *said] if self._roster.trouble else said

    async def review(self, tool_id: str, *, accept: bool) -> CatalogueTool | None:
        """Accept how a tool changed, or have it stay as it was approved."""
        await self._tools.review(tool_id, datetime.now(UTC), accept=accept)
        await self._catch_up()
        return await self.get(tool_id)

    async def reach(self) -> None:
        """Know the servers, so that their tools can be called."""
        await self._roster.load()

    async def load(self) -> None:
        """Take in what the database knows: from then on tools are found by their words, and many by meaning."""
        await self._catch_up()

    async def fill(self) -> None:
        """Give every tool its vector now."""
        await self._meaning.fill()

    async def run(self) -> None:
        """Load, then follow the other replicas, ask the servers and embed, until cancelled."""
        await CHORE.attempt(self.load, work="load")
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._meaning.run)
            tasks.start_soon(partial(CHORE.every, FOLLOW_SECONDS, self._follow, work="follow"))
            tasks.start_soon(partial(CHORE.every, PRUNE_SECONDS, self._prune, at_once=True, work="prune"))
            tasks.start_soon(partial(CHORE.every, ROUND_SECONDS, self._discover, at_once=True, work="discover"))
            await CHORE.attempt(self._line_up, work="declare")
            await CHORE.attempt(self._first_round, work="crawl")
            await CHORE.every(ROUND_SECONDS, self._round, work="crawl")

    async def declare(self) -> None:
        """Bring the roster in line with settings, manifest and platform."""
        await self._roster.discover(datetime.now(UTC))
        await self._line_up()

    async def _line_up(self) -> None:
        await self._roster.declare(datetime.now(UTC))
        await self._catch_up()

    async def _discover(self) -> None:
        # Beside the rounds: they do not wait for a platform that takes its time.
        if await self._roster.discover(datetime.now(UTC)):
            await self._round()

    async def _first_round(self) -> None:
        before = datetime.now(UTC) - FRESH
        await self._crawl(list(self._roster.states), lambda _server: before)

    async def _round(self) -> None:
        await self._roster.declare(datetime.now(UTC))
        now, states = datetime.now(UTC), self._roster.states
        before = {name: self._asking.due_before(state, now) for name, state in states.items()}
        # What was asked at a time that is still to come was asked before the clock was set back.
        due = [
            name
            for name, state in states.items()
            if not before[name] < (state.crawled_at or before[name]) <= now + CLOCKS_APART
        ]
        await self._crawl(due, before.__getitem__)

    async def _crawl(
        self, names: Sequence[str], before: Callable[[str], datetime], told: Told = silent
    ) -> Sequence[Step]:
        def note(step: Step) -> None:
            (self._underway.add if step.stage is Stage.STARTED else self._underway.discard)(step.server)
            told(step)

        # Those that answered last time go first: the others may take all the time they have.
        states = self._roster.states
        order = sorted(names, key=lambda name: states[name].status is Status.FAILED)
        try:
            return await self._asking.crawl(before).run(order, note)
        finally:
            # Whoever asked may have had enough before all had answered.
            self._underway.difference_update(order)

    async def _follow(self) -> None:
        if await self._sync.behind():
            await self._catch_up()

    async def _catch_up(self) -> None:
        await self._sync.pull()
        self._shelf.clear()
        await self._roster.load()

    async def _prune(self) -> None:
        await self._tools.prune(datetime.now(UTC) - REMEMBERED)
        await self._vectors.prune()
