"""Searches and lists tools, selects tools for an agent, and measures the quality of search."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

from frontdesk.coercion import DEFAULT_LIMIT, DEFAULT_MIN_SCORE, coerce_min_score, coerce_tool_names
from frontdesk.errors import Invalid
from frontdesk.interfaces.web.agent_lookup import caller_for_agent, list_agent_options
from frontdesk.interfaces.web.model import (
    ActionRoute,
    PageContent,
    PageRedirect,
    PageRequest,
    PageRoute,
    StreamRoute,
    path_with_query,
    server_path,
    tool_path,
)
from frontdesk.interfaces.web.pages.tool import call_tool, review_tool, show_tool, show_usage
from frontdesk.interfaces.web.pages.tool_servers import (
    add_server,
    list_servers,
    refresh_servers,
    remove_server,
    show_form,
    show_server,
)
from frontdesk.text import list_first
from frontdesk.tools.catalogue_store import ToolFilter
from frontdesk.tools.finder import SearchTools
from frontdesk.tools.selection import SelectionResult, ToolChoice
from frontdesk.tools.service import (
    FindToolsQuery,
    MeasuredQuery,
    SearchMeasurement,
    list_permitted_tools,
    measure_search,
    try_search,
)

TOOLS_PER_PAGE = 50
LONGEST_POSITION = 300


async def search_tools(request: PageRequest) -> PageContent:
    """The tools that match a query, best first. htmx requests only that part."""
    query, agent = request.query.get("q", "").strip(), request.query.get("agent", "")
    tools = request.app.tools
    found = (
        await try_search(tools, caller_for_agent(request, agent), SearchTools(query, DEFAULT_LIMIT)) if query else None
    )
    context = {
        "query": query,
        "agent": agent,
        "found": found,
        "enough": DEFAULT_MIN_SCORE,
        "tool_at": tool_path,
        "progress": tools.catalogue.progress(),
    }
    if request.part:
        return PageContent("tools/found.html", "Tools", context)
    return PageContent("tools/search.html", "Tools", {**context, "agents": await list_agent_options(request, agent)})


async def list_all_tools(request: PageRequest) -> PageContent:
    """Tools in the order of their ids, page by page."""
    server, changed = request.query.get("server", ""), bool(request.query.get("changed"))
    after = request.query.get("after", "")[:LONGEST_POSITION]
    wanted = ToolFilter(server or None, changed=changed, after=after, limit=TOOLS_PER_PAGE)
    page = await list_permitted_tools(request.app.tools, request.caller, wanted)
    context = {"page": page, "server": server, "changed": changed, "after": after, "most": TOOLS_PER_PAGE}
    return PageContent("tools/all.html", "All tools", {**context, "tool_at": tool_path, "server_at": server_path})


GIVE, TAKE = "give", "take"
ACTIONS = ((GIVE, "Attach what fits"), (TAKE, "Detach what fits least"))
MOST_NAMED = 5


@dataclass(frozen=True, slots=True)
class SelectionOrder:
    """The requested selection of tools for an agent."""

    agent: str
    query: str
    what: str = GIVE
    min_score: float = DEFAULT_MIN_SCORE
    keep: str = ""

    @property
    def complete(self) -> bool:
        return bool(self.agent and self.query)


def parse_order(form: Mapping[str, str]) -> SelectionOrder:
    """The selection order from a form or an address."""
    what = TAKE if form.get("what") == TAKE else GIVE
    least = coerce_min_score(form.get("least", DEFAULT_MIN_SCORE))
    return SelectionOrder(form.get("agent", ""), form.get("q", "").strip(), what, least, form.get("keep", ""))


async def plan_selection(request: PageRequest) -> PageContent:
    """The plan for the agent's tools, without changing anything."""
    order = parse_order(request.query)
    selection, note = await _select_tools(request, order, dry_run=True) if order.complete else (None, "")
    context = {
        "order": order,
        "what": ACTIONS,
        "selection": selection,
        "note": note,
        "agents": await list_agent_options(request, order.agent),
        "tool_at": tool_path,
    }
    return PageContent("tools/plan.html", "Hand out tools", context)


async def apply_selection(request: PageRequest) -> PageRedirect:
    """Apply the plan."""
    order = parse_order(request.form)
    selection, note = await _select_tools(request, order, dry_run=False)
    least = f"{order.min_score:g}"
    to = path_with_query("/tools/plan", agent=order.agent, q=order.query, what=order.what, least=least, keep=order.keep)
    return PageRedirect(to, note or describe_selection(selection))


async def _select_tools(request: PageRequest, order: SelectionOrder, *, dry_run: bool) -> tuple[SelectionResult, str]:
    caller, keep, tools = caller_for_agent(request, order.agent), coerce_tool_names(order.keep), request.app.tools
    if order.what == TAKE:
        return await tools.prune(caller, order.query, keep=keep, dry_run=dry_run), ""
    wanted = FindToolsQuery(order.query, keep, min_score=order.min_score, dry_run=dry_run)
    outcomes = await tools.find(caller, wanted)
    return outcomes.selection, outcomes.note


def describe_selection(selection: SelectionResult) -> str:
    """The changes, as a sentence."""
    said = [
        *selection.unknown,
        _name_choices("Attached", selection.attached),
        _name_choices("Detached", selection.detached),
        _name_choices("The agent host did not do", selection.failed),
    ]
    return " ".join(part for part in said if part) or "Nothing had to be changed."


def _name_choices(word: str, choices: Sequence[ToolChoice]) -> str:
    return f"{word}: {list_first([choice.name for choice in choices], MOST_NAMED)}." if choices else ""


ARROW = "=>"
MOST_CASES = 100
TABLE_HEAD = ("NDCG@10", "Recall@1", "Recall@5", "Recall@10", "MRR")


async def show_quality(request: PageRequest) -> PageContent:
    return await _quality_page(request, "", "", None)


async def measure_quality(request: PageRequest) -> PageContent:
    """Search with the query of each line, and measure the ranks of its right tools."""
    text, agent = request.form.get("cases", ""), request.form.get("agent", "")
    try:
        found = await measure_search(request.app.tools, caller_for_agent(request, agent), parse_cases(text))
    except Invalid as error:
        return await _quality_page(request, text, agent, None, str(error), 400)
    return await _quality_page(request, text, agent, found)


def parse_cases(text: str) -> Sequence[MeasuredQuery]:
    """The queries with their right tools, one per line."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if not lines or len(lines) > MOST_CASES:
        raise Invalid(f"Write between 1 and {MOST_CASES} lines, each as: query {ARROW} server::tool")
    return [_parse_case(number, line) for number, line in enumerate(lines, 1)]


def _parse_case(number: int, line: str) -> MeasuredQuery:
    query, _, gold = line.rpartition(ARROW)
    names = coerce_tool_names(gold)
    if not query.strip() or not names:
        raise Invalid(f"Line {number} has no query or no tool; write: query {ARROW} server::tool")
    return MeasuredQuery(query.strip(), names)


async def _quality_page(
    request: PageRequest, text: str, agent: str, found: SearchMeasurement | None, wrong: str = "", status: int = 200
) -> PageContent:
    rows = [] if found is None else [("Words only", asdict(found.words)), ("As shipped", asdict(found.shipped))]
    context = {
        "head": TABLE_HEAD,
        "rows": [(name, [f"{100 * value:.1f}" for value in figures.values()]) for name, figures in rows],
        "found": found,
        "text": text,
        "agent": agent,
        "agents": await list_agent_options(request, agent),
        "wrong": wrong,
        "progress": request.app.tools.catalogue.progress(),
    }
    return PageContent("tools/quality.html", "Quality of search", context, status)


TOOLS: tuple[PageRoute | ActionRoute | StreamRoute, ...] = (
    PageRoute("/tools", search_tools),
    PageRoute("/tools/all", list_all_tools),
    PageRoute("/tools/plan", plan_selection),
    ActionRoute("/tools/plan", apply_selection),
    PageRoute("/tools/servers", list_servers),
    ActionRoute("/tools/servers/remove", remove_server),
    ActionRoute("/tools/servers/refresh", refresh_servers),
    PageRoute("/tools/server/{name}", show_server),
    PageRoute("/tools/add", show_form),
    ActionRoute("/tools/add", add_server),
    PageRoute("/tools/use", show_usage),
    PageRoute("/tools/quality", show_quality),
    ActionRoute("/tools/quality", measure_quality),
    ActionRoute("/tools/review", review_tool),
    # A tool's id may look like any path, so these come last.
    PageRoute("/tools/tool/{id:path}", show_tool),
    ActionRoute("/tools/tool/{id:path}", call_tool),
)
