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
from frontdesk.tools.selection import KeepReason, SelectionResult
from frontdesk.tools.servers import ServerState

FOLLOW_UP_MESSAGE = "The tools you asked for are attached now: {names}. Go on with what you were doing."


@dataclass(frozen=True, slots=True)
class FindToolsQuery:
    """A call of `find_tools`."""

    query: str
    keep: Sequence[str] = ()
    limit: int = 10
    min_score: float = 50.0
    dry_run: bool = False
    follow_up: bool = False
    servers: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class FindToolsResult:
    """The result of `find_tools`: the found tools, and the changes of the agent's tools.

    `note` says why nothing was attached. `servers` are the servers of the caller's tools, those with the most tools
    first.
    """

    found: ToolSearchResults
    selection: SelectionResult
    note: str = ""
    follow_up: bool = False
    servers: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class ToolService:
    """The tools of an installation. Every method takes the caller, and does only what that caller may."""

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
        """Search among the tools that the caller may use."""
        rights.require_scope(caller, rights.TOOLS_READ)
        return await self.finder.find_tools(caller, await self.allowed.permitted_tools(caller), search)

    async def find(self, caller: Caller, query: FindToolsQuery) -> FindToolsResult:
        """Search, and attach the found tools to the agent."""
        rights.require_scope(caller, rights.TOOLS_ATTACH)
        permitted = await self.allowed.permitted_tools(caller)
        search = SearchTools(query.query, query.limit, query.min_score, query.servers)
        found = await self.finder.find_tools(caller, permitted, search)
        selection, note = await self._select(caller, found, query)
        for tool_id in {choice.id for choice in selection.kept if choice.id and choice.reason == KeepReason.NAMED}:
            self.usage.note(caller, tool_id, KEPT_BY_NAME_WEIGHT)
        follow_up = query.follow_up and bool(selection.attached) and not query.dry_run
        if follow_up:
            names = ", ".join(choice.name for choice in selection.attached)
            self.tasks.start_soon(run_follow_up, self.host, self.journal, caller, FOLLOW_UP_MESSAGE.format(names=names))
        states = sorted(self.catalogue.servers(), key=lambda state: (-state.tools, state.name))
        servers = [state.name for state in states if state.tools and permitted.sees(state.name)]
        return FindToolsResult(found, selection, note, follow_up, servers)

    async def _select(
        self, caller: Caller, results: ToolSearchResults, query: FindToolsQuery
    ) -> tuple[SelectionResult, str]:
        """Change the agent's tools. Returns the result, and a note if there is no such agent."""
        if caller.agent_id is None:
            why = "No agent is named"
        else:
            try:
                return await self.selector.select(
                    caller.agent_id, results.findings, query.keep, query.min_score, dry_run=query.dry_run
                ), ""
            except NotFound:
                why = f"Agent '{caller.agent_id}' is not one of the agent host's"
        note = f"{why}, so nothing was attached; use call_tool" if results.findings else ""
        return SelectionResult(dry_run=query.dry_run), note

    async def prune(
        self,
        caller: Caller,
        prompt: str,
        *,
        drop_rate: float | None = None,
        keep: Sequence[str] = (),
        dry_run: bool = False,
    ) -> SelectionResult:
        """Detach the tools that fit a prompt least."""
        rights.require_scope(caller, rights.TOOLS_ATTACH)
        if caller.agent_id is None:
            raise Invalid("Name the agent whose tools are to be pruned: agent_id")
        search = SearchTools(prompt, limit=1000)
        found = await self.finder.find_tools(caller, await self.allowed.permitted_tools(caller), search, remember=False)
        scores = {finding.tool.id: finding.score for finding in found.findings}
        return await self.selector.prune(caller.agent_id, scores, keep, drop_rate, dry_run=dry_run)

    async def held(self, caller: Caller, agent_id: str) -> Sequence[AgentTool]:
        """The tools of an agent, and how it got each of them."""
        rights.require_scope(caller, rights.TOOLS_READ)
        return await self.selector.held(agent_id)

    async def detach(self, caller: Caller, agent_id: str, name: str) -> None:
        """Detach one tool from an agent."""
        rights.require_scope(caller, rights.TOOLS_ATTACH)
        done = await self.selector.detach(agent_id, name)
        if done.failed:
            raise Unavailable(f"{name} {done.failed[0].reason}")
        if not done.detached:
            raise NotFound(f"Agent '{agent_id}' has no tool '{name}'; give a name that its list of tools shows")

    async def delete_agent(self, agent_id: str) -> None:
        """Delete an agent of any host, and the stored data of its tools."""
        await self.host.delete(agent_id)
        await self.selector.forget(agent_id)

    async def pick(self, caller: Caller, name: str) -> CatalogueTool:
        """Record that a person chose this tool from the results of a search."""
        rights.require_scope(caller, rights.TOOLS_READ)
        tool = await self.dispatcher.resolve(caller, name)
        self.usage.note(caller, tool.id, PICKED_WEIGHT)
        return tool


# Nobody sees a tool below this rank, and computing a rank among all tools is expensive.
RANKS_EXPLAINED = 1000
# The number of rows read at a time; some of them may be forbidden to the caller.
ROWS_READ = 200


@dataclass(frozen=True, slots=True)
class ToolPage:
    """Some of the tools in the order of their ids. `next` is the last id of this page; None at the end."""

    tools: Sequence[CatalogueTool]
    next: str | None = None


@dataclass(frozen=True, slots=True)
class SearchExplanation:
    """Why a search finds a tool or does not: its match and rank if it has one, and a verdict in words."""

    tool: CatalogueTool
    finding: ToolMatch | None
    place: int | None
    searched: int
    by_meaning: bool
    verdict: str


async def list_permitted_tools(tools: ToolService, caller: Caller, filters: ToolFilter) -> ToolPage:
    """A page of the tools that the caller may use. Every page but the last is full."""
    rights.require_scope(caller, rights.TOOLS_READ)
    permitted = await tools.allowed.permitted_tools(caller)
    found: list[CatalogueTool] = []
    after, at_once = filters.after, max(filters.limit + 1, ROWS_READ)
    while rows := await tools.catalogue.page(replace(filters, after=after, limit=at_once)):
        after = rows[-1].id
        found += [tool for tool in rows if permitted.allows(tool.id)]
        if len(found) > filters.limit:
            return ToolPage(found[: filters.limit], found[filters.limit - 1].id)
        if len(rows) < at_once:
            break
    return ToolPage(found)


async def list_permitted_servers(tools: ToolService, caller: Caller) -> Sequence[ServerState]:
    """The servers of the caller's tools, with their states."""
    rights.require_scope(caller, rights.TOOLS_READ)
    permitted = await tools.allowed.permitted_tools(caller)
    return [state for state in tools.catalogue.servers() if permitted.sees(state.name)]


async def get_permitted_tool(tools: ToolService, caller: Caller, name: str) -> CatalogueTool:
    """A tool that the caller may use, by id or name, including tools that wait for review."""
    rights.require_scope(caller, rights.TOOLS_READ)
    return await _resolve_tool(tools, await tools.allowed.permitted_tools(caller), name)


async def try_search(tools: ToolService, caller: Caller, search: SearchTools) -> ToolSearchResults:
    """Search for the caller without learning from it."""
    rights.require_scope(caller, rights.TOOLS_READ)
    return await tools.finder.find_tools(caller, await tools.allowed.permitted_tools(caller), search, remember=False)


async def explain_search(
    tools: ToolService, caller: Caller, query: str, name: str, *, limit: int, min_score: float
) -> SearchExplanation:
    """Why a search for `query` with this limit and minimum score finds the tool, or does not."""
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
    """A query, and the ids or names of the right tools."""

    query: str
    gold: Sequence[str]


@dataclass(frozen=True, slots=True)
class SearchMeasurement:
    """The quality of search by terms alone and of the configured search, and the number of queries."""

    words: RankingQuality
    shipped: RankingQuality
    queries: int
    unknown: int
    tools: int


def ignore_progress(_done: int, _of: int) -> None:
    """Ignore the progress."""


async def measure_search(
    tools: ToolService,
    caller: Caller,
    cases: Sequence[MeasuredQuery],
    report: Callable[[int, int], None] = ignore_progress,
) -> SearchMeasurement:
    """Measure how well search finds the right tools of queries. Nothing is learned from it."""
    rights.require_scope(caller, rights.TOOLS_READ)
    permitted, index = await tools.allowed.permitted_tools(caller), tools.catalogue.index
    known = [(case.query, gold) for case in cases if (gold := await _right_ids(tools, case))]
    if not known:
        raise Invalid("None of the right tools is in the catalogue; `frontdesk tools list` shows what is")
    words: list[tuple[list[str], frozenset[str]]] = []
    shipped: list[tuple[list[str], frozenset[str]]] = []
    for number, (query, gold) in enumerate(known, 1):
        report(number, len(known))
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
