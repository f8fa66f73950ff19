"""Implements `frontdesk tools`: search, explain, call, list and review tools, show usage, and measure search."""

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, cast

from cyclopts import App as Command
from cyclopts import Parameter
from pydantic import BaseModel, ValidationError

from frontdesk.app import App
from frontdesk.coercion import DEFAULT_LIMIT, DEFAULT_MIN_SCORE, coerce_limit, coerce_min_score
from frontdesk.errors import Invalid, NotFound
from frontdesk.interfaces.app_runner import local_caller, record_change
from frontdesk.interfaces.cli.output import (
    EMPTY_CELL,
    AsJson,
    AsJsonLines,
    Flag,
    JsonFlag,
    Limit,
    Repeated,
    Text,
    dump_json,
    format_table,
    format_time,
    parse_duration,
    print_list,
    print_more,
    printable_line,
    printable_text,
    reveal_hidden,
)
from frontdesk.interfaces.cli.tool_admin import (
    NO_SERVERS,
    ProgressLine,
    add,
    explain_no_tools,
    forget,
    prepare_semantic_search,
    refresh,
    remove,
    rights_command,
    run_with_servers,
    run_with_tools,
    server_states,
)
from frontdesk.journal.store import ToolUse, ToolUseQuery
from frontdesk.search.evaluation import RankingQuality
from frontdesk.tools.access import PermittedTools, require_one_tool
from frontdesk.tools.calls import CallResult
from frontdesk.tools.catalogue_store import ToolFilter
from frontdesk.tools.finder import SearchTools, ToolSearchResults
from frontdesk.tools.model import ID_SEPARATOR, CatalogueTool, ReviewStatus
from frontdesk.tools.responses import FoundTool
from frontdesk.tools.servers import ServerState
from frontdesk.tools.service import (
    MeasuredQuery,
    SearchExplanation,
    SearchMeasurement,
    ToolPage,
    explain_search,
    get_permitted_tool,
    list_permitted_tools,
    measure_search,
)

AsAgent = Annotated[str | None, Parameter(help="Search as this agent.")]
AsPerson = Annotated[str | None, Parameter(help="Search as this person.")]
STANDARD_INPUT = "-"
FOUND_DESCRIPTION_LENGTH = 60


def search(
    query: Annotated[Text, Parameter(help="The task in plain words, or a tool's name.")],
    /,
    *,
    limit: Annotated[int, Parameter(help="Show at most this many, up to 25.")] = DEFAULT_LIMIT,
    min_score: Annotated[float, Parameter(help="Leave out tools with a lower score than this, from 0 to 100.")] = 0,
    server: Annotated[Repeated, Parameter(help="Search only the tools of this server; repeated for several.")] = (),
    agent: Annotated[
        str | None, Parameter(help="Search as this agent: among the tools that it may use, and with its past use.")
    ] = None,
    user: AsPerson = None,
    as_json: Annotated[JsonFlag, Parameter(help="Print a JSON array.")] = False,
) -> None:
    """Find tools by what they should do, best first."""

    async def look(app: App) -> tuple[ToolSearchResults, Sequence[ServerState]]:
        states = server_states(app, server)
        await prepare_semantic_search(app)
        wanted = SearchTools(query, coerce_limit(limit), coerce_min_score(min_score), frozenset(server))
        return await app.tools.search(local_caller(agent=agent, user=user), wanted), states

    found, states = run_with_tools(look)
    if as_json:
        print(json.dumps([FoundTool.of(one).model_dump(mode="json", exclude_none=True) for one in found.findings]))
        return
    if not found.findings:
        best = "" if found.best is None else f" The best one scores {found.best:.0f}."
        print(f"Nothing fits among {found.searched:,} tools.{best}" if found.searched else explain_no_tools(states))
        return
    rows = [
        (f"{one.score:.0f}", one.tool.id, printable_line(one.tool.description, FOUND_DESCRIPTION_LENGTH), one.reason)
        for one in found.findings
    ]
    print(format_table(("score", "tool", "what it does", "why"), rows))
    if found.findings[0].score < DEFAULT_MIN_SCORE:
        print(f"None reaches {DEFAULT_MIN_SCORE:.0f}, which find_tools asks for unless it is told otherwise.")


def explain(
    query: Annotated[Text, Parameter(help="The query.")],
    tool: Annotated[str, Parameter(help="The tool's id or name.")],
    /,
    *,
    limit: Annotated[int, Parameter(help="How many tools the search returns.")] = DEFAULT_LIMIT,
    min_score: Annotated[
        float, Parameter(help="The minimum score; find_tools uses 50, `tools search` none.")
    ] = DEFAULT_MIN_SCORE,
    agent: AsAgent = None,
    user: AsPerson = None,
    as_json: AsJson = False,
) -> None:
    """Explain why a search finds a tool or does not."""

    async def look(app: App) -> SearchExplanation:
        await prepare_semantic_search(app)
        caller = local_caller(agent=agent, user=user)
        return await explain_search(app.tools, caller, query, tool, limit=limit, min_score=min_score)

    found = run_with_tools(look)
    facts = _explanation_fields(found)
    if as_json:
        print(json.dumps(facts))
        return
    for name, value in facts.items():
        print(f"{name.replace('_', ' '):<10}{printable_line(str(value))}")


def call(
    tool: Annotated[str, Parameter(help="Its id or name.")],
    arguments: Annotated[Text, Parameter(help="A JSON object; - reads it from standard input.")] = "{}",
    /,
    *,
    agent: Annotated[str | None, Parameter(help="Call as this agent.")] = None,
    user: Annotated[str | None, Parameter(help="Call for this person.")] = None,
    as_json: Annotated[JsonFlag, Parameter(help="Print the whole answer as one JSON object.")] = False,
) -> None:
    """Call a tool now and print its answer; exit 1 if it fails.

    frontdesk tools call files::read '{"path": "notes.md"}'
    """
    told = _parse_arguments(sys.stdin.read() if arguments == STANDARD_INPUT else arguments)

    async def run(app: App) -> CallResult:
        with ProgressLine(sys.stderr) as shown:

            async def progress(done: float, total: float | None, message: str | None) -> None:
                text = f"{done:g}{f' of {total:g}' if total else ''} {message or ''}"
                shown.update(text)
                shown.log(text)

            return await app.tools.dispatcher.call(local_caller(agent=agent, user=user), tool, told, progress=progress)

    result = run_with_tools(run)
    if as_json:
        fields = {"ok": result.ok, "content": list(result.content), "structured": result.structured}
        print(json.dumps(fields | ({"error": result.error} if result.error else {})))
    else:
        print(printable_text(result.text), file=sys.stdout if result.ok else sys.stderr)
    if not result.ok:
        sys.exit(1)


def _explanation_fields(results: SearchExplanation) -> Mapping[str, Any]:
    one = results.finding
    place = (
        f"{results.place} of {results.searched:,}" if results.place else f"none of the first among {results.searched:,}"
    )
    return {
        "tool": results.tool.id,
        "verdict": results.verdict,
        "score": round(one.score, 1) if one else 0,
        "place": place,
        "words": ", ".join(one.words) if one and one.words else "-",
        "meaning": (round(one.meaning, 1) if one else 0) if results.by_meaning else "not compared",
        "past_use": round(one.past_use, 1) if one else 0,
        "by_name": bool(one and one.exact),
    }


def _parse_arguments(text: str) -> Mapping[str, Any]:
    try:
        found: object = json.loads(text or "{}")
    except ValueError as error:
        raise Invalid(f"The arguments are not JSON: {error}") from error
    if not isinstance(found, dict):
        raise Invalid('The arguments must be a JSON object: {"name": "value"}')
    return cast("Mapping[str, Any]", found)


LISTED_DESCRIPTION_LENGTH = 70
PLACE_LENGTH = 50


def list_tools(
    *,
    server: Annotated[str | None, Parameter(help="Only those of this server.")] = None,
    changed: Annotated[Flag, Parameter(help="Only those that changed since they were approved.")] = False,
    agent: Annotated[str | None, Parameter(help="Only those that this agent may use.")] = None,
    user: Annotated[str | None, Parameter(help="Only those that this person may use.")] = None,
    limit: Limit = 1000,
    as_json: AsJsonLines = False,
) -> None:
    """List the tools."""
    wanted = ToolFilter(server, changed=changed, limit=limit)

    async def look(app: App) -> tuple[ToolPage, Sequence[ServerState]]:
        states = server_states(app, () if server is None else (server,))
        return await list_permitted_tools(app.tools, local_caller(agent=agent, user=user), wanted), states

    page, states = run_with_tools(look)

    def row(tool: CatalogueTool) -> tuple[str, ...]:
        return tool.id, printable_line(tool.description, LISTED_DESCRIPTION_LENGTH), _tool_state(tool)

    empty = "No tool has changed." if changed else explain_no_tools(states)
    print_list(page.tools, ("tool", "what it does", "state"), row, empty=empty, as_json=as_json)
    if page.next:
        print_more(f"--limit {limit * 10}")


def servers(*, as_json: AsJsonLines = False) -> None:
    """List the tool servers with their state."""

    async def look(app: App) -> list[ServerState]:
        return list(app.tools.catalogue.servers())

    found = run_with_tools(look)

    def row(one: ServerState) -> tuple[str, ...]:
        place = printable_line(one.spec.place, PLACE_LENGTH) or EMPTY_CELL
        return one.name, place, one.spec.origin, str(one.tools), _server_health(one)

    head = ("server", "where", "from", "tools", "state")
    print_list(found, head, row, empty=NO_SERVERS, as_json=as_json, to_json=_server_json)
    if as_json:
        return
    for one in found:
        for problem in one.problems:
            print(f"{printable_line(one.name)}: {printable_line(problem)}")


def review(
    tool: Annotated[str | None, Parameter(help="The tool's id. Without it, all changed tools are listed.")] = None,
    /,
    *,
    accept: Annotated[Flag, Parameter(help="Approve the new version.")] = False,
    refuse: Annotated[Flag, Parameter(help="Keep the approved version.")] = False,
) -> None:
    """Show the tools that changed since they were approved, and accept or refuse a change."""
    if tool is None:
        list_tools(changed=True)
        return
    if accept and refuse:
        raise Invalid("Accept the change or refuse it, not both")

    async def look(app: App) -> tuple[CatalogueTool, Mapping[str, Any] | None]:
        found = await get_permitted_tool(app.tools, local_caller(), tool)
        if accept or refuse:
            with record_change(app, f"tools review {found.id} {'accept' if accept else 'refuse'}"):
                found = await app.tools.administration.review(local_caller(), found.id, accept=accept)
        return found, await app.tools.catalogue.other_version(found.id)

    found, other = run_with_tools(look)
    if accept or refuse:
        print(f"{printable_line(found.id)}: the change is {'accepted' if accept else 'refused'}.")
        return
    print(f"{printable_line(found.id)}: {printable_line(found.change) or 'has not changed since it was approved'}")
    if other is not None:
        held = found.standing is ReviewStatus.HELD
        print(f"\nin use{' (as approved)' if held else ' (the new version)'}:\n{_format_version(found)}")
        print(f"\n{'the new version, held back' if held else 'as it was approved'}:\n{_format_other_version(other)}")
        print(f"\nfrontdesk tools review '{printable_line(found.id)}' --accept, or --refuse")


def usage(
    *,
    agent: Annotated[str | None, Parameter(help="Only this agent.")] = None,
    tool: Annotated[str | None, Parameter(help="Only this tool, by its id or name.")] = None,
    since: Annotated[str, Parameter(help="Only the last 45s, 30m, 12h, 7d and so on.")] = "30d",
    limit: Annotated[Limit, Parameter(help="Show at most this many rows, most used first.")] = 100,
    as_json: AsJsonLines = False,
) -> None:
    """Show which agents use which tools, how often and how well, from the journal."""
    start = datetime.now(UTC) - parse_duration(since)

    async def look(app: App) -> Sequence[ToolUse]:
        used = None if tool is None else await _used_tool_id(app, tool)
        return await app.tools.administration.usage(local_caller(), ToolUseQuery(agent, None, used, start, limit))

    uses = run_with_servers(look)

    def row(use: ToolUse) -> tuple[str, ...]:
        who, mean = use.agent_id or EMPTY_CELL, f"{use.mean_us / 1000:.1f} ms"
        return who, use.tool, str(use.calls), str(use.failed), mean, format_time(use.last_at)

    head, empty = ("agent", "tool", "calls", "failed", "mean", "last"), f"No tool was called in the last {since}."
    print_list(uses, head, row, empty=empty, as_json=as_json)


async def _used_tool_id(app: App, tool: str) -> str:
    """The tool's id in the journal, which also has tools that were removed."""
    known = await app.tools.catalogue.resolve(tool)
    if known or ID_SEPARATOR in tool:
        return require_one_tool(known, PermittedTools(), tool).id if known else tool
    raise NotFound(f"There is no tool '{tool}'; for one that is gone give its id, server::tool")


def _tool_state(tool: CatalogueTool) -> str:
    said = ["held back" if tool.standing is ReviewStatus.HELD else "", "changed" if tool.change else ""]
    return ", ".join(part for part in (*said, "stale" if tool.stale else "") if part) or "ready"


def _server_health(state: ServerState) -> str:
    when = format_time(state.answered_at) if state.answered_at else "never"
    if state.error:
        return f"failed: {printable_line(state.error, 80)} (last answer: {when})"
    return f"answered {when}" if state.answered_at else "not asked yet"


def _server_json(state: ServerState) -> str:
    spec = state.spec
    facts = {
        "name": spec.name,
        "transport": spec.transport,
        "where": spec.place,
        "from": spec.origin,
        "status": state.status,
        "error": state.error,
        "tools": state.tools,
        "problems": list(state.problems),
        "changes": [asdict(one) for one in state.changes],
        "answered_at": state.answered_at,
    }
    return dump_json(facts)


def _format_version(tool: CatalogueTool) -> str:
    return reveal_hidden({"description": tool.description, "parameters": tool.parameters}, 2)


def _format_other_version(other: Mapping[str, Any]) -> str:
    parameters = other.get("parameters")
    read = json.loads(parameters) if isinstance(parameters, str) else parameters
    return reveal_hidden({"description": other.get("description"), "parameters": read}, 2)


LINE_FORMAT = '{"query": "what somebody wants", "gold": "server::tool"} (or a list of them) on each line'
TABLE_HEAD = ("search", "NDCG@10", "recall@1", "recall@5", "recall@10", "MRR")


class BenchLine(BaseModel):
    """A line of the benchmark file."""

    query: str
    gold: str | list[str]


def measure_queries(file: Path, /, *, agent: str | None = None, user: AsPerson = None, as_json: AsJson = False) -> None:
    """Measure how well search finds your tools, by words only and with meaning.

    Parameters
    ----------
    file
        Queries with their right tools, one JSON object a line: query, and gold (a tool's id or name, or several).
    agent
        Search as this agent, with its past use.
    """
    given = list(_read_lines(file))

    async def run(app: App) -> SearchMeasurement:
        await prepare_semantic_search(app)
        with ProgressLine(sys.stderr) as told:
            return await measure_search(
                app.tools,
                local_caller(agent=agent, user=user),
                [_bench_case(asked) for asked in given],
                lambda number, of: told.update(f"searching: {number} of {of}"),
            )

    found = run_with_tools(run)
    if as_json:
        print(json.dumps(asdict(found)))
        return
    rows = [("words alone", *_format_figures(found.words)), ("as shipped", *_format_figures(found.shipped))]
    print(format_table(TABLE_HEAD, rows))
    left_out = f"; {found.unknown} left out, whose tools are not in the catalogue" if found.unknown else ""
    print(f"{found.queries} queries over {found.tools:,} tools{left_out}")


def _bench_case(asked: BenchLine) -> MeasuredQuery:
    return MeasuredQuery(asked.query, [asked.gold] if isinstance(asked.gold, str) else asked.gold)


def _read_lines(file: Path) -> Iterator[BenchLine]:
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise Invalid(f"{file} cannot be read: {error}") from error
    for number, text in enumerate(lines, 1):
        try:
            if text.strip():
                yield BenchLine.model_validate_json(text)
        except ValidationError as error:
            raise Invalid(f"{file}, line {number} is no query with its right tools; write {LINE_FORMAT}") from error


def _format_figures(found: RankingQuality) -> tuple[str, ...]:
    return tuple(f"{100 * value:.1f}" for value in asdict(found).values())


command = Command(name="tools")
command.command(search)
command.command(list_tools, name="list")
command.command(servers)
command.command(add, usage="Usage: frontdesk tools add [OPTIONS] NAME WHERE")
command.command(remove)
command.command(refresh, usage="Usage: frontdesk tools refresh [SERVER …]")
command.command(explain)
command.command(call, usage="Usage: frontdesk tools call [OPTIONS] TOOL [ARGUMENTS]")
command.command(review, usage="Usage: frontdesk tools review [OPTIONS] [TOOL]")
command.command(rights_command)
command.command(forget)
command.command(usage)
command.command(measure_queries, name="bench")
