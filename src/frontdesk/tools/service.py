"""The tools room as every door uses it: find, attach, call, and say why."""

from collections.abc import Sequence
from dataclasses import dataclass

from anyio.abc import TaskGroup

from frontdesk.agents.followup import wake
from frontdesk.agents.host import AgentHost
from frontdesk.errors import Invalid, NotFound, Unavailable
from frontdesk.identity import rights
from frontdesk.identity.model import Caller
from frontdesk.journal.service import Journal
from frontdesk.tools.calling import Calling
from frontdesk.tools.catalogue.service import Catalogue
from frontdesk.tools.finding import Finder, Found, Search
from frontdesk.tools.house import House
from frontdesk.tools.learning.service import Learning
from frontdesk.tools.model import CatalogueTool
from frontdesk.tools.rights.model import Permitted
from frontdesk.tools.rights.service import Rights
from frontdesk.tools.selecting import Possession, Selecting
from frontdesk.tools.selection.model import Selection
from frontdesk.tools.usage import KEPT_BY_NAME, PICKED, Usage

FOLLOW_UP = "The tools you asked for are attached now: {names}. Go on with what you were doing."


@dataclass(frozen=True, slots=True)
class Wanted:
    """What an agent asks `find_tools` for."""

    query: str
    keep: Sequence[str] = ()
    limit: int = 10
    min_score: float = 50.0
    dry_run: bool = False
    follow_up: bool = False
    servers: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Outcomes:
    """What `find_tools` came to: what fits, and what became of the agent's tools, if it has a place for them.

    `servers` are those that the caller's tools come from, the ones with the most first.
    """

    found: Found
    selection: Selection
    note: str = ""
    follow_up: bool = False
    servers: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Tools:
    """Every method asks for the caller, and does what that caller may."""

    host: AgentHost
    journal: Journal
    catalogue: Catalogue
    finder: Finder
    selecting: Selecting
    calling: Calling
    allowed: Rights
    learning: Learning
    usage: Usage
    house: House
    tasks: TaskGroup

    async def search(self, caller: Caller, search: Search) -> Found:
        """What fits a query, among what the caller may use."""
        rights.require(caller, rights.TOOLS_READ)
        return await self.finder.look(caller, await self.allowed.of(caller), search)

    async def find(self, caller: Caller, wanted: Wanted) -> Outcomes:
        """Search, and give the agent what was found."""
        rights.require(caller, rights.TOOLS_ATTACH)
        permitted = await self.allowed.of(caller)
        search = Search(wanted.query, wanted.limit, wanted.min_score, wanted.servers)
        found = await self.finder.look(caller, permitted, search)
        selection, note = await self._selected(caller, found, wanted)
        for tool_id in {choice.id for choice in selection.kept if choice.id and choice.reason.startswith("named in")}:
            self.usage.note(caller, tool_id, KEPT_BY_NAME)
        following = wanted.follow_up and bool(selection.attached) and not wanted.dry_run
        if following:
            names = ", ".join(choice.name for choice in selection.attached)
            self.tasks.start_soon(wake, self.host, self.journal, caller, FOLLOW_UP.format(names=names))
        return Outcomes(found, selection, note, following, self._servers(permitted))

    async def _selected(self, caller: Caller, found: Found, wanted: Wanted) -> tuple[Selection, str]:
        """What became of the agent's tools, and why nothing did where there is no such agent."""
        if caller.agent_id is None:
            why = "No agent is named"
        else:
            try:
                return await self.selecting.select(
                    caller.agent_id, found.findings, wanted.keep, wanted.min_score, dry_run=wanted.dry_run
                ), ""
            except NotFound:
                why = f"Agent '{caller.agent_id}' is not one of the agent host's"
        note = f"{why}, so nothing was attached; use call_tool" if found.findings else ""
        return Selection(dry_run=wanted.dry_run), note

    def _servers(self, permitted: Permitted) -> Sequence[str]:
        states = sorted(self.catalogue.servers(), key=lambda state: (-state.tools, state.name))
        return [state.name for state in states if state.tools and permitted.sees(state.name)]

    async def prune(
        self,
        caller: Caller,
        prompt: str,
        *,
        drop_rate: float | None = None,
        keep: Sequence[str] = (),
        dry_run: bool = False,
    ) -> Selection:
        """Take from the agent what fits a prompt least."""
        rights.require(caller, rights.TOOLS_ATTACH)
        if caller.agent_id is None:
            raise Invalid("Name the agent whose tools are to be pruned: agent_id")
        search = Search(prompt, limit=1000)
        found = await self.finder.look(caller, await self.allowed.of(caller), search, remember=False)
        scores = {finding.tool.id: finding.score for finding in found.findings}
        return await self.selecting.prune(caller.agent_id, scores, keep, drop_rate, dry_run=dry_run)

    async def held(self, caller: Caller, agent_id: str) -> Sequence[Possession]:
        """What an agent holds, and how it came by each."""
        rights.require(caller, rights.TOOLS_READ)
        return await self.selecting.held(agent_id)

    async def take(self, caller: Caller, agent_id: str, name: str) -> None:
        """Take one tool from an agent."""
        rights.require(caller, rights.TOOLS_ATTACH)
        done = await self.selecting.take(agent_id, name)
        if done.failed:
            raise Unavailable(f"{name} {done.failed[0].reason}")
        if not done.detached:
            raise NotFound(f"Agent '{agent_id}' has no tool '{name}'; give a name that its list of tools shows")

    async def delete_agent(self, agent_id: str) -> None:
        """Delete an agent of whichever host; one that is no more holds nothing."""
        await self.host.delete(agent_id)
        await self.selecting.forget(agent_id)

    async def pick(self, caller: Caller, name: str) -> CatalogueTool:
        """Somebody chose this tool from what a search had found."""
        rights.require(caller, rights.TOOLS_READ)
        tool = await self.calling.resolve(caller, name)
        self.usage.note(caller, tool.id, PICKED)
        return tool
