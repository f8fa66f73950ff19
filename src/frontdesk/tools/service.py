"""Offers the tools capability to every interface: search, find_tools, list, explain, measure."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from anyio.abc import TaskGroup

from frontdesk.agents.host import AgentHost
from frontdesk.agents.turns.operations import run_follow_up
from frontdesk.errors import Invalid, NotFound, Unavailable
from frontdesk.identity import rights
from frontdesk.identity.model import Caller
from frontdesk.journal.service import Journal
from frontdesk.search.evaluation import RankingQuality, measure_ranking
from frontdesk.tools.access import PermittedTools, require_one_tool
from frontdesk.tools.access_store import ToolAccess
from frontdesk.tools.administration import ToolAdministration
from frontdesk.tools.agent_tools import AgentTool, AgentToolSelector
from frontdesk.tools.calls import ToolDispatcher
from frontdesk.tools.catalogue import Catalogue
from frontdesk.tools.catalogue_store import ToolFilter
from frontdesk.tools.finder import SearchTools, ToolFinder, ToolMatch, ToolSearchResults
from frontdesk.tools.index_segments import IndexQuery
from frontdesk.tools.learning import KEPT_BY_NAME_WEIGHT, PICKED_WEIGHT, ToolLearning, UsageRecorder
from frontdesk.tools.model import CatalogueTool, ReviewStatus
from frontdesk.tools.selection import SelectionResult
from frontdesk.tools.servers import ServerState

FOLLOW_UP_MESSAGE = "The tools you asked for are attached now: {names}. Go on with what you were doing."


@dataclass(frozen=True, slots=True)
class FindToolsQuery:
    """What an agent asks `find_tools` for."""

    query: str
    keep: Sequence[str] = ()
    limit: int = 10
    min_score: float = 50.0
    dry_run: bool = False
    follow_up: bool = False
    servers: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class FindToolsResult:
    """What `find_tools` came to: what fits, and what became of the agent's tools, if it has a place for them.

    `servers` are those that the caller's tools come from, the ones with the most first.
    """

    found: ToolSearchResults
    selection: SelectionResult
    note: str = ""
    follow_up: bool = False
    servers: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class ToolService:
    """Every method asks for the caller, and does what that caller may."""

    host: AgentHost
    journal: Journal
    catalogue: Catalogue
    finder: ToolFinder
    selector: AgentToolSelector
    dispatcher: ToolDispatcher
    allowed: ToolAccess
    learning: ToolLearning
    usage: UsageRecorder
    administration: ToolAdministration
    tasks: TaskGroup

    async def search(self, caller: Caller, search: SearchTools) -> ToolSearchResults:
        """What fits a query, among what the caller may use."""
        rights.require_scope(caller, rights.TOOLS_READ)
        return await self.finder.find_tools(caller, await self.allowed.permitted_tools(caller), search)

    async def find(self, caller: Caller, wanted: FindToolsQuery) -> FindToolsResult:
        """Search, and give the agent what was found."""
        rights.require_scope(caller, rights.TOOLS_ATTACH)
        permitted = await self.allowed.permitted_tools(caller)
        search = SearchTools(wanted.query, wanted.limit, wanted.min_score, wanted.servers)
        found = await self.finder.find_tools(caller, permitted, search)
        selection, note = await self._select(caller, found, wanted)
        for tool_id in {choice.id for choice in selection.kept if choice.id and choice.reason.startswith("named in")}:
            self.usage.note(caller, tool_id, KEPT_BY_NAME_WEIGHT)
        following = wanted.follow_up and bool(selection.attached) and not wanted.dry_run
        if following:
            names = ", ".join(choice.name for choice in selection.attached)
            self.tasks.start_soon(run_follow_up, self.host, self.journal, caller, FOLLOW_UP_MESSAGE.format(names=names))
        return FindToolsResult(found, selection, note, following, self._servers(permitted))

    async def _select(
        self, caller: Caller, found: ToolSearchResults, wanted: FindToolsQuery
    ) -> tuple[SelectionResult, str]:
        """What became of the agent's tools, and why nothing did where there is no such agent."""
        if caller.agent_id is None:
            why = "No agent is named"
        else:
            try:
                return await self.selector.select(
                    caller.agent_id, found.findings, wanted.keep, wanted.min_score, dry_run=wanted.dry_run
                ), ""
            except NotFound:
                why = f"Agent '{caller.agent_id}' is not one of the agent host's"
        note = f"{why}, so nothing was attached; use call_tool" if found.findings else ""
        return SelectionResult(dry_run=wanted.dry_run), note

    def _servers(self, permitted: PermittedTools) -> Sequence[str]:
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
    ) -> SelectionResult:
        """Take from the agent what fits a prompt least."""
        rights.require_scope(caller, rights.TOOLS_ATTACH)
        if caller.agent_id is None:
            raise Invalid("Name the agent whose tools are to be pruned: agent_id")
        search = SearchTools(prompt, limit=1000)
        found = await self.finder.find_tools(caller, await self.allowed.permitted_tools(caller), search, remember=False)
        scores = {finding.tool.id: finding.score for finding in found.findings}
        return await self.selector.prune(caller.agent_id, scores, keep, drop_rate, dry_run=dry_run)

    async def held(self, caller: Caller, agent_id: str) -> Sequence[AgentTool]:
        """What an agent holds, and how it came by each."""
        rights.require_scope(caller, rights.TOOLS_READ)
        return await self.selector.held(agent_id)

    async def detach(self, caller: Caller, agent_id: str, name: str) -> None:
        """Take one tool from an agent."""
        rights.require_scope(caller, rights.TOOLS_ATTACH)
        done = await self.selector.detach(agent_id, name)
        if done.failed:
            raise Unavailable(f"{name} {done.failed[0].reason}")
        if not done.detached:
            raise NotFound(f"Agent '{agent_id}' has no tool '{name}'; give a name that its list of tools shows")

    async def delete_agent(self, agent_id: str) -> None:
        """Delete an agent of whichever host; one that is no more holds nothing."""
        await self.host.delete(agent_id)
        await self.selector.forget(agent_id)

    async def pick(self, caller: Caller, name: str) -> CatalogueTool:
        """Somebody chose this tool from what a search had found."""
        rights.require_scope(caller, rights.TOOLS_READ)
        tool = await self.dispatcher.resolve(caller, name)
        self.usage.note(caller, tool.id, PICKED_WEIGHT)
        return tool


# Far below this a tool is not found in practice, and its place among all others costs more to find out than it tells.
RANKS_EXPLAINED = 1000
# Of rows that may all be others' alone, so many at once.
ROWS_READ = 200


@dataclass(frozen=True, slots=True)
class ToolPage:
    """Some of the tools, in the order of their ids; `next` is where to go on, None at the end."""

    tools: Sequence[CatalogueTool]
    next: str | None = None


@dataclass(frozen=True, slots=True)
class SearchExplanation:
    """Why a tool is found, or is not: its finding where it has one, its place, and what would have to be different."""

    tool: CatalogueTool
    finding: ToolMatch | None
    place: int | None
    searched: int
    by_meaning: bool
    verdict: str


async def list_permitted_tools(tools: ToolService, caller: Caller, wanted: ToolFilter) -> ToolPage:
    """A page of what the caller may use; as long as there is more, it is full."""
    rights.require_scope(caller, rights.TOOLS_READ)
    permitted = await tools.allowed.permitted_tools(caller)
    found: list[CatalogueTool] = []
    after, at_once = wanted.after, max(wanted.limit + 1, ROWS_READ)
    while rows := await tools.catalogue.page(replace(wanted, after=after, limit=at_once)):
        after = rows[-1].id
        found += [tool for tool in rows if permitted.allows(tool.id)]
        if len(found) > wanted.limit:
            return ToolPage(found[: wanted.limit], found[wanted.limit - 1].id)
        if len(rows) < at_once:
            break
    return ToolPage(found)


async def list_permitted_servers(tools: ToolService, caller: Caller) -> Sequence[ServerState]:
    """Where the caller's tools come from, and how each server is."""
    rights.require_scope(caller, rights.TOOLS_READ)
    permitted = await tools.allowed.permitted_tools(caller)
    return [state for state in tools.catalogue.servers() if permitted.sees(state.name)]


async def get_permitted_tool(tools: ToolService, caller: Caller, name: str) -> CatalogueTool:
    """One tool that the caller may use, by id or name, also one that is held back."""
    rights.require_scope(caller, rights.TOOLS_READ)
    return await _resolve_tool(tools, await tools.allowed.permitted_tools(caller), name)


async def try_search(tools: ToolService, caller: Caller, search: SearchTools) -> ToolSearchResults:
    """What a search would find for the caller, for somebody who tries it out: nothing is learned from it."""
    rights.require_scope(caller, rights.TOOLS_READ)
    return await tools.finder.find_tools(caller, await tools.allowed.permitted_tools(caller), search, remember=False)


async def explain_search(
    tools: ToolService, caller: Caller, query: str, name: str, *, limit: int, min_score: float
) -> SearchExplanation:
    """Why a search for `query` with this limit and score finds the tool, or does not."""
    rights.require_scope(caller, rights.TOOLS_READ)
    permitted = await tools.allowed.permitted_tools(caller)
    tool = await _resolve_tool(tools, permitted, name)
    found = await tools.finder.find_tools(caller, permitted, SearchTools(query, limit=RANKS_EXPLAINED), remember=False)
    place = next((at for at, one in enumerate(found.findings, 1) if one.tool.id == tool.id), None)
    finding = found.findings[place - 1] if place is not None else None
    verdict = _explain_rank(tool, finding, place, limit, min_score)
    return SearchExplanation(tool, finding, place, found.searched, found.by_meaning, verdict)


async def _resolve_tool(tools: ToolService, permitted: PermittedTools, name: str) -> CatalogueTool:
    known = await tools.catalogue.resolve(name)
    return require_one_tool(
        known, permitted, name, None if known else await tools.dispatcher.find_similar(permitted, name)
    )


def _explain_rank(
    tool: CatalogueTool, finding: ToolMatch | None, place: int | None, limit: int, min_score: float
) -> str:
    if tool.standing is ReviewStatus.HELD:
        return "not found: it changed, and is held back until somebody has looked at the change"
    if finding is None or place is None:
        return "not found: it shares no word with the query, and is far from it in meaning"
    if finding.score < min_score:
        return f"not found: its score of {finding.score:.0f} is below the {min_score:.0f} that is asked for"
    if place > limit:
        return f"not found: {place - 1} others fit better, and {limit} are asked for"
    return "found"


MEASURED_DEPTH = 100


@dataclass(frozen=True, slots=True)
class MeasuredQuery:
    """A query, and the tools that answer it: their ids or names."""

    query: str
    gold: Sequence[str]


@dataclass(frozen=True, slots=True)
class SearchMeasurement:
    """The figures, and what could not be measured."""

    words: RankingQuality
    shipped: RankingQuality
    queries: int
    unknown: int
    tools: int


def ignore_progress(_done: int, _of: int) -> None:
    """For those who do not want to hear how far it is."""


async def measure_search(
    tools: ToolService,
    caller: Caller,
    cases: Sequence[MeasuredQuery],
    told: Callable[[int, int], None] = ignore_progress,
) -> SearchMeasurement:
    """Search for each, and see where its right tools come out; nothing is learned from it."""
    rights.require_scope(caller, rights.TOOLS_READ)
    permitted, index = await tools.allowed.permitted_tools(caller), tools.catalogue.index
    known = [(case.query, gold) for case in cases if (gold := await _right_ids(tools, case))]
    if not known:
        raise Invalid("None of the right tools is in the catalogue; `frontdesk tools list` shows what is")
    words: list[tuple[list[str], frozenset[str]]] = []
    shipped: list[tuple[list[str], frozenset[str]]] = []
    for number, (query, gold) in enumerate(known, 1):
        told(number, len(known))
        words.append(([hit.id for hit in index.search(IndexQuery(query, limit=MEASURED_DEPTH))], gold))
        found = await tools.finder.find_tools(
            caller, permitted, SearchTools(query, limit=MEASURED_DEPTH), remember=False
        )
        shipped.append(([one.tool.id for one in found.findings], gold))
    return SearchMeasurement(
        measure_ranking(words), measure_ranking(shipped), len(known), len(cases) - len(known), len(index)
    )


async def _right_ids(tools: ToolService, case: MeasuredQuery) -> frozenset[str]:
    return frozenset({tool.id for name in case.gold for tool in await tools.catalogue.resolve(name)})
