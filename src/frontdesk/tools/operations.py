"""Defines find_tools and call_tool for built-in agents, and describes the result of find_tools in text."""

import json
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, cast

from pydantic import BeforeValidator, Field, SecretStr

from frontdesk.agents.host import HeldTool
from frontdesk.errors import Invalid
from frontdesk.identity.model import Caller
from frontdesk.identity.rights import TOOLS_ATTACH, TOOLS_CALL
from frontdesk.llm.tools import Tool, ToolInput, ToolOutcome, typed_tool
from frontdesk.text import one_line
from frontdesk.tools.finder import ToolMatch, ToolSearchResults
from frontdesk.tools.model import CatalogueTool, ToolKind
from frontdesk.tools.selection import SelectionResult, ToolChoice
from frontdesk.tools.service import FindToolsQuery, FindToolsResult, ToolService

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


FIND_TOOLS_DESCRIPTION = (
    "Find tools for a task in the catalogue and get them attached. Say what you want to do in a sentence; "
    "what is found can be used at once."
)
CALL_TOOL_DESCRIPTION = "Call any tool of the catalogue by the name or id that find_tools gave, without attaching it."


def parse_arguments(value: object) -> Mapping[str, Any]:
    """The arguments of `call_tool`: an object, or JSON text of an object, which many models send."""
    if value is None:
        return {}
    if isinstance(value, str):
        try:
            value = json.loads(value) if value.strip() else {}
        except (ValueError, RecursionError) as error:
            raise Invalid(f"`arguments` must be a JSON object, and is text that is no JSON: {error}") from error
    if not isinstance(value, Mapping):
        raise Invalid('`arguments` must be a JSON object: {"argument": value, …}')
    return cast("Mapping[str, Any]", value)


class FindToolsArguments(ToolInput):
    """The arguments of find_tools."""

    query: str = Field(min_length=1, max_length=2000, description="What the tool should do, in plain words")
    limit: int = Field(5, ge=1, le=25, description="At most so many tools")
    min_score: float = Field(50, ge=0, le=100, description="How well one must fit, from 0 to 100")
    keep_tools: list[str] = Field(default_factory=list[str], max_length=100, description="Tools that must stay")


class CallToolArguments(ToolInput):
    """The arguments of call_tool."""

    name: str = Field(min_length=1, max_length=300, description="The tool's id or name")
    arguments: Annotated[Mapping[str, Any], BeforeValidator(parse_arguments)] = Field(
        default_factory=dict[str, Any], description="Its arguments"
    )


class BuiltinTools:
    """Provides find_tools and call_tool to built-in agents. The agent host gets it before the tools are opened."""

    def __init__(self) -> None:
        self._tools: ToolService | None = None

    def open(self, tools: ToolService) -> None:
        self._tools = tools

    async def offered(self) -> Sequence[HeldTool]:
        """The tools of the agent host itself."""
        return () if self._tools is None else await self._tools.host.host_tools()

    def tools_for(self, caller: Caller, token: SecretStr | None) -> Sequence[Tool]:
        """The two tools for one agent; none if the catalogue is empty."""
        tools = self._tools
        if tools is None or not len(tools.catalogue.index):
            return ()

        async def find(arguments: FindToolsArguments) -> ToolOutcome:
            result = await tools.find(
                caller, FindToolsQuery(arguments.query, arguments.keep_tools, arguments.limit, arguments.min_score)
            )
            return ToolOutcome(describe_found_tools(result, min_score=arguments.min_score, at_once=True))

        async def call(arguments: CallToolArguments) -> ToolOutcome:
            result = await tools.dispatcher.call(caller, arguments.name, arguments.arguments, token=token)
            return ToolOutcome(result.text, ok=result.ok)

        async def only_reads(arguments: Mapping[str, Any]) -> bool:
            name = arguments.get("name")
            return isinstance(name, str) and await tools.dispatcher.reads_only(name)

        return [
            typed_tool("find_tools", FIND_TOOLS_DESCRIPTION, FindToolsArguments, find, TOOLS_ATTACH),
            typed_tool("call_tool", CALL_TOOL_DESCRIPTION, CallToolArguments, call, TOOLS_CALL, reads_only=only_reads),
        ]
