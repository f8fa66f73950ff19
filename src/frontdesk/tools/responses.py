"""Defines the answers about tools, and describes the result of find_tools in text."""

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, cast

from pydantic import BaseModel, ConfigDict, Field

from frontdesk.journal.store import ToolUse
from frontdesk.operations import Answer
from frontdesk.text import one_line
from frontdesk.tools.access import AccessRule
from frontdesk.tools.calls import CallResult
from frontdesk.tools.crawler import CrawlStage, CrawlStep
from frontdesk.tools.finder import ToolMatch, ToolSearchResults
from frontdesk.tools.model import CatalogueTool, ToolKind
from frontdesk.tools.selection import SelectionResult, ToolChoice
from frontdesk.tools.servers import ServerState
from frontdesk.tools.service import FindToolsResult, SearchExplanation, ToolPage

DESCRIPTION_LENGTH_SHOWN = 240
PARAMETERS_SHOWN = 25
SERVERS_SHOWN = 30
NAMES_SHOWN = 12
NO_TOOLS_YET = (
    "There are no tools in the catalogue yet. An administrator can add a server: frontdesk tools add NAME URL"
)


def describe_found_tools(
    result: FindToolsResult,
    *,
    detailed: bool = False,
    min_score: float | None = None,
    at_once: bool = False,
) -> str:
    """Describe the found tools and the reasons for an agent, the changes of its tools, and the next step.

    `at_once`: the agent can use attached tools in the same turn.
    """
    found = result.found
    if found.nothing_relevant:
        parts = [_describe_nothing(found, result.servers, min_score)]
    else:
        shown = [_describe_match(number, one, detailed=detailed) for number, one in enumerate(found.findings, 1)]
        parts = [f"Found {_count_noun(len(shown), 'tool')}, the best first:", *shown]
    if not found.by_meaning and found.searched:
        parts.append("Only words were compared this time, not meanings; a search with other words may find more.")
    elif found.unread:
        parts.append(f"{_count_noun(found.unread, 'new tool')} could be compared by words only so far.")
    parts.append(" ".join((*found.unknown, *result.selection.unknown)))
    parts.append(_describe_selection(result.selection))
    parts.append(result.note)
    if found.findings:
        parts.append(_describe_next_step(found.findings, result, at_once=at_once))
    return "\n\n".join(part for part in parts if part)


def _describe_match(number: int, finding: ToolMatch, *, detailed: bool) -> str:
    tool = finding.tool
    lines = [f"{number}. {tool.api_name} (id {tool.id}), score {finding.score:.0f} of 100: {finding.reason}"]
    if tool.description:
        lines.append(one_line(tool.description, DESCRIPTION_LENGTH_SHOWN))
    lines.append(_describe_arguments(tool))
    if tool.stale:
        lines.append("Its server did not answer lately, so a call may fail.")
    if detailed:
        lines.append(f"Schema: {json.dumps(tool.parameters, ensure_ascii=False)}")
    return "\n   ".join(lines)


def _describe_arguments(tool: CatalogueTool) -> str:
    required, optional = tool.parameter_names
    named = [*(f"{name} (required)" for name in required), *optional]
    more = f" and {len(named) - PARAMETERS_SHOWN} more" if len(named) > PARAMETERS_SHOWN else ""
    return f"Arguments: {', '.join(named[:PARAMETERS_SHOWN])}{more}" if named else "Arguments: none"


def _describe_nothing(results: ToolSearchResults, servers: Sequence[str], min_score: float | None) -> str:
    if not results.searched:
        return NO_TOOLS_YET
    best = "" if results.best is None else f" The best one scores {results.best:.0f} of 100"
    if best:
        best += f", below the {min_score:.0f} that you asked for." if min_score is not None else "."
    more = f" and {len(servers) - SERVERS_SHOWN} more" if len(servers) > SERVERS_SHOWN else ""
    named = f" The servers there are: {', '.join(servers[:SERVERS_SHOWN])}{more}." if servers else ""
    return (
        f"Nothing relevant: none of {_count_noun(results.searched, 'tool')} fits.{best}{named} "
        "Say it in other words, name the tool, or lower min_score; or go on without a tool."
    )


def _describe_selection(selection: SelectionResult) -> str:
    attached, detached = ("Would attach", "Would detach") if selection.dry_run else ("Attached", "Detached")
    wanted = [choice for choice in selection.kept if choice.score is not None]
    said = [
        _describe_choices(attached, selection.attached),
        _describe_choices("Held already", wanted, why=False),
        _describe_choices(detached, selection.detached),
        _describe_choices("Not attached", selection.skipped),
        _describe_choices("Failed", selection.failed),
    ]
    if selection.dry_run:
        said.append("This was a dry run: nothing was changed.")
    return "\n".join(line for line in said if line)


def _describe_choices(title: str, choices: Sequence[ToolChoice], *, why: bool = True) -> str:
    if not choices:
        return ""
    named = [f"{choice.name} ({choice.reason})" if why else choice.name for choice in choices[:NAMES_SHOWN]]
    more = f" and {len(choices) - NAMES_SHOWN} more" if len(choices) > NAMES_SHOWN else ""
    return f"{title}: {', '.join(named)}{more}."


def _describe_next_step(findings: Sequence[ToolMatch], result: FindToolsResult, *, at_once: bool) -> str:
    callable_now = next((finding.tool for finding in findings if finding.tool.kind is ToolKind.MCP), None)
    said: list[str] = []
    if callable_now is not None:
        required, _ = callable_now.parameter_names
        example = json.dumps(dict.fromkeys(required, "…"), ensure_ascii=False)
        name = callable_now.api_name
        said.append(f"Next: call the one you need now with call_tool(name={name!r}, arguments={example}).")
    if result.selection.attached and not result.selection.dry_run:
        said.append(f"What was attached is among your own tools {'now' if at_once else 'by your next turn'}.")
    if result.follow_up:
        said.append("You will be called on again as soon as this run is over.")
    return " ".join(said)


def _count_noun(number: int, noun: str) -> str:
    return f"{number:,} {noun}" + ("" if number == 1 else "s")


class FoundTool(BaseModel):
    """A tool that matches."""

    model_config = ConfigDict(frozen=True, defer_build=True)

    id: str = Field(description="server::tool")
    name: str = Field(description="What to call it by.")
    server: str
    description: str = Field(description="Shortened where it is long.")
    score: float = Field(description="How well it fits, from 0 to 100; the same whatever else was found.")
    reason: str = Field(description="The words it shares with the query, its meaning, and past use.")
    required: list[str] = Field(description="The arguments it must be given.")
    optional: list[str] = Field(description="The arguments it may be given.")
    stale: bool = Field(description="Its server did not answer lately.")
    parameters: Mapping[str, Any] | None = Field(None, description="Its JSON schema, where details were asked for.")

    @classmethod
    def of(cls, finding: ToolMatch, *, detailed: bool = False) -> "FoundTool":
        tool = finding.tool
        required, optional = tool.parameter_names
        return cls(
            id=tool.id,
            name=tool.api_name,
            server=tool.server,
            description=one_line(tool.description, DESCRIPTION_LENGTH_SHOWN),
            score=round(finding.score, 1),
            reason=finding.reason,
            required=required,
            optional=optional,
            stale=tool.stale,
            parameters=tool.parameters if detailed else None,
        )


class ChosenTool(BaseModel):
    """The outcome for one tool, and the reason."""

    model_config = ConfigDict(frozen=True, defer_build=True)

    name: str
    id: str | None = None
    reason: str
    score: float | None = None

    @classmethod
    def of_choices(cls, choices: Sequence[ToolChoice]) -> "list[ChosenTool]":
        return [cls(name=one.name, id=one.id, reason=one.reason, score=_round_score(one.score)) for one in choices]


class AgentToolChanges(BaseModel):
    """The changes to an agent's tools."""

    model_config = ConfigDict(frozen=True, defer_build=True)

    attached: list[ChosenTool]
    kept: list[ChosenTool]
    detached: list[ChosenTool]
    skipped: list[ChosenTool] = Field(description="What fits and was not attached.")
    failed: list[ChosenTool] = Field(description="What the agent host did not do.")
    dry_run: bool = Field(description="Nothing was changed: this is what would have been done.")
    unknown: list[str] = Field(description="What was named and is not there: servers, and tools to keep.")

    @classmethod
    def of(cls, selection: SelectionResult) -> "AgentToolChanges":
        return cls(**selection_fields(selection))


class ToolSelectionResponse(AgentToolChanges):
    """The tools found for an agent, and the changes to its tools."""

    found: list[FoundTool] = Field(description="The best first.")
    nothing_relevant: bool = Field(description="No tool reaches the score that was asked for.")
    best_score: float | None = Field(None, description="The score of the best, also of one below what was asked for.")
    by_meaning: bool = Field(description="False: only words were compared.")
    follow_up: bool = Field(description="The agent is called on again once its run is over.")
    note: str = ""
    servers: list[str] = Field(description="Where tools come from.")

    @classmethod
    def of_result(cls, outcomes: FindToolsResult, *, detailed: bool = False) -> "ToolSelectionResponse":
        found, said = outcomes.found, selection_fields(outcomes.selection)
        said["unknown"] = [*found.unknown, *outcomes.selection.unknown]
        return cls(
            **said,
            found=[FoundTool.of(finding, detailed=detailed) for finding in found.findings],
            nothing_relevant=found.nothing_relevant,
            best_score=_round_score(found.best),
            by_meaning=found.by_meaning,
            follow_up=outcomes.follow_up,
            note=outcomes.note,
            servers=list(outcomes.servers),
        )


def selection_fields(selection: SelectionResult) -> dict[str, Any]:
    names = ("attached", "kept", "detached", "skipped", "failed")
    said = {"dry_run": selection.dry_run, "unknown": list(selection.unknown)}
    return {name: ChosenTool.of_choices(getattr(selection, name)) for name in names} | said


def _round_score(score: float | None) -> float | None:
    return None if score is None else round(score, 1)


class ToolsApiModel(BaseModel):
    """JSON as the contract has it: snake_case."""

    model_config = ConfigDict(frozen=True, defer_build=True)


class SearchToolsResponse(ToolsApiModel):
    """The found tools, the best first."""

    found: list[FoundTool]
    nothing_relevant: bool
    best_score: float | None = Field(None, description="Also of one below the score that was asked for.")
    by_meaning: bool
    searched: int = Field(description="How many tools there are.")
    unknown: list[str] = Field(description="Which of the servers that were named there are not.")

    @classmethod
    def of(cls, results: ToolSearchResults, *, detailed: bool) -> "SearchToolsResponse":
        return cls(
            found=[FoundTool.of(one, detailed=detailed) for one in results.findings],
            nothing_relevant=results.nothing_relevant,
            best_score=None if results.best is None else round(results.best, 1),
            by_meaning=results.by_meaning,
            searched=results.searched,
            unknown=list(results.unknown),
        )


class ToolResponse(ToolsApiModel):
    """A tool of the catalogue."""

    id: str
    name: str = Field(description="What to call it by.")
    server: str
    kind: str
    description: str
    required: list[str]
    optional: list[str]
    standing: str = Field(description="ready, or held: it changed, and waits for a review.")
    change: str = Field(description="What changed since it was approved; empty where nothing did.")
    stale: bool = Field(description="Its server did not answer lately.")
    seen_at: datetime | None = None
    changed_at: datetime | None = None

    @staticmethod
    def fields_of(tool: CatalogueTool) -> dict[str, Any]:
        required, optional = tool.parameter_names
        same = ("id", "server", "kind", "description", "standing", "change", "stale", "seen_at", "changed_at")
        named = {"name": tool.api_name, "required": required, "optional": optional}
        return {field: getattr(tool, field) for field in same} | named

    @classmethod
    def of(cls, tool: CatalogueTool) -> "ToolResponse":
        return cls(**cls.fields_of(tool))


class ToolDetailsResponse(ToolResponse):
    """A tool with everything that is known of it. `other` is the version that is not in use, if it changed."""

    parameters: Mapping[str, Any]
    annotations: Mapping[str, Any]
    other: Mapping[str, Any] | None = None

    @classmethod
    def with_other_version(cls, tool: CatalogueTool, other: Mapping[str, Any] | None) -> "ToolDetailsResponse":
        return cls(**cls.fields_of(tool), parameters=tool.parameters, annotations=tool.annotations, other=other)


class ToolPageResponse(ToolsApiModel):
    """A page of tools; `next` goes into `after`."""

    tools: list[ToolResponse]
    next: str | None = None

    @classmethod
    def of(cls, page: ToolPage) -> "ToolPageResponse":
        return cls(tools=[ToolResponse.of(tool) for tool in page.tools], next=page.next)


class RunToolResponse(ToolsApiModel):
    """The result of a tool, with the server's own blocks and structured content."""

    ok: bool
    content: Sequence[Mapping[str, Any]]
    structured: Mapping[str, Any] | None = None
    error: str | None = None

    @classmethod
    def of(cls, result: CallResult) -> "RunToolResponse":
        return cls(ok=result.ok, content=result.content, structured=result.structured, error=result.error)


class ServerCrawlResponse(ToolsApiModel):
    """How a server answered when it was asked for its tools."""

    server: str
    ok: bool
    tools: int
    told: str

    @classmethod
    def of(cls, step: CrawlStep) -> "ServerCrawlResponse":
        return cls(server=step.server, ok=step.stage is not CrawlStage.FAILED, tools=step.tools, told=step.message)


class RefreshServersResponse(ToolsApiModel):
    """How each server answered."""

    servers: list[ServerCrawlResponse]


class ServerChangeNote(ToolsApiModel):
    """A change that a server made to its tools."""

    at: datetime
    what: str


class ServerResponse(ToolsApiModel):
    """A tool server and its state, without secrets."""

    name: str
    transport: str
    place: str
    origin: str
    description: str
    user_token: bool
    hold_changes: bool | None
    status: str
    error: str
    problems: list[str]
    changes: list[ServerChangeNote]
    tools: int
    crawled_at: datetime | None = None
    answered_at: datetime | None = None

    @classmethod
    def of(cls, state: ServerState) -> "ServerResponse":
        of_spec = ("name", "transport", "place", "origin", "description", "user_token", "hold_changes")
        of_state = ("status", "error", "tools", "crawled_at", "answered_at")
        return cls(
            **{field: getattr(state.spec, field) for field in of_spec},
            **{field: getattr(state, field) for field in of_state},
            problems=list(state.problems),
            changes=[ServerChangeNote(at=one.at, what=one.what) for one in state.changes],
        )


class ServerListResponse(ToolsApiModel):
    """The tool servers."""

    servers: list[ServerResponse]
    tools: int = Field(description="Tools that are found by their words.")
    read: int = Field(description="Of these, tools that are found by meaning as well; the model is reading the others.")


class ExplainSearchResponse(ToolsApiModel):
    """Why a tool is found, or is not."""

    tool: ToolResponse
    verdict: str
    place: int | None = Field(None, description="Its place among all tools; nothing where it is far down.")
    score: float
    reason: str
    words: list[str]
    meaning: float
    past_use: float
    searched: int
    by_meaning: bool

    @classmethod
    def of(cls, results: SearchExplanation) -> "ExplainSearchResponse":
        one = results.finding
        return cls(
            tool=ToolResponse.of(results.tool),
            verdict=results.verdict,
            place=results.place,
            score=round(one.score, 1) if one else 0,
            reason=one.reason if one else "nothing speaks for it",
            words=list(one.words) if one else [],
            meaning=round(one.meaning, 1) if one else 0,
            past_use=round(one.past_use, 1) if one else 0,
            searched=results.searched,
            by_meaning=results.by_meaning,
        )


class ToolUseResponse(ToolsApiModel):
    """How an agent used a tool."""

    agent_id: str | None
    tool: str
    calls: int
    failed: int
    mean_ms: float
    last_at: datetime

    @classmethod
    def of(cls, use: ToolUse) -> "ToolUseResponse":
        return cls(
            agent_id=use.agent_id,
            tool=use.tool,
            calls=use.calls,
            failed=use.failed,
            mean_ms=use.mean_us / 1000,
            last_at=use.last_at,
        )


class ToolUseListResponse(ToolsApiModel):
    """The most used first."""

    uses: list[ToolUseResponse]


class AccessRuleResponse(ToolsApiModel):
    """Who may, or may not, use which tools."""

    id: str
    subject: str
    effect: str
    pattern: str

    @classmethod
    def of(cls, rule: AccessRule) -> "AccessRuleResponse":
        return cls(id=rule.id, subject=rule.subject, effect=rule.effect, pattern=rule.pattern)


class AccessRuleListResponse(ToolsApiModel):
    """Every rule, the oldest first."""

    rules: list[AccessRuleResponse]


def call_answer(result: CallResult) -> Answer:
    """The result of a tool in its own content blocks."""
    # Only the newest revision of MCP allows structured content that is not an object. Its text is among the blocks.
    data = cast("Mapping[str, Any]", result.structured) if isinstance(result.structured, dict) else None
    content = result.content or ([{"type": "text", "text": result.error}] if result.error else [])
    return Answer(result.error or "", data, result.ok, content)
