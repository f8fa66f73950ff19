"""The page of MCP names every tool of every interface with its arguments, and nothing that is not there."""

import re
from collections.abc import Mapping
from functools import cache

from frontdesk.app import McpPath
from frontdesk.interfaces.mcp.server import ALL_TOOLS
from frontdesk.interfaces.mcp.tool_spec import ToolSpec
from tests.requirements import shows
from tests.support.reference import code, page, tables, without_asides

PAGE = page("mcp")
LIKE = re.compile(r"as `(\w+)`(?: but for (.+))?")
NEEDED = re.compile(r"`(\w+)`\\\*")
# Which the page calls "page".
PAGED = {"limit", "offset"}


@cache
def rows() -> Mapping[str, str]:
    """What each tool takes, in the page's words."""
    return {
        tool: without_asides(takes) for table in tables(PAGE, "tool", "arguments") for tool, takes, *_ in table.rows
    }


def told(tool: str) -> set[str]:
    """The arguments that the page names, in the tool's row or where its row points to."""
    row = rows()[f"`{tool}`"]
    found = {*code(LIKE.sub("", row)), *_below(tool)}
    if like := LIKE.search(row):
        found |= told(like[1]) - set(code(like[2] or ""))
    if ", page" in row:
        found |= PAGED
    if "option below" in row:
        found |= _below("Schedules", "option")
    return found


def _below(heading: str, column: str = "argument") -> set[str]:
    """What the tables under a heading explain one by one."""
    found = [table for table in tables(PAGE, column) if table.heading == heading]
    return {name for table in found for names, *_ in table.rows for name in code(names)}


def taken(spec: ToolSpec) -> set[str]:
    return {*spec.input_schema().get("properties", {})}


def own(spec: ToolSpec) -> set[str]:
    """What a tool takes but for the agent's id, which the page says once that every tool takes."""
    return taken(spec) if spec.about_agent else taken(spec) - {"agent_id"}


@shows("DOCS-MEMORY")
def test_every_tool_has_one_row_and_every_row_a_tool() -> None:
    named = [tool for table in tables(PAGE, "tool") for tool, *_ in table.rows]
    assert sorted(named) == sorted(f"`{spec.name}`" for spec in ALL_TOOLS)


@shows("DOCS-MEMORY")
def test_a_tool_is_told_with_each_of_its_arguments_and_no_other() -> None:
    untold = {f"{spec.name} {name}" for spec in ALL_TOOLS for name in own(spec) - told(spec.name)}
    unknown = {f"{spec.name} {name}" for spec in ALL_TOOLS for name in told(spec.name) - taken(spec)}
    assert (untold, unknown) == (set(), set())


@shows("DOCS-MEMORY")
def test_what_a_memory_tool_needs_is_marked() -> None:
    ours = [spec for spec in ALL_TOOLS if spec.mcp_path is McpPath.MEMORY]
    marked = {spec.name: set(NEEDED.findall(rows()[f"`{spec.name}`"])) for spec in ours}
    assert marked == {spec.name: set(spec.input_schema().get("required", ())) for spec in ours}


def test_a_heading_that_explains_arguments_is_that_of_a_tool() -> None:
    assert {table.heading for table in tables(PAGE, "argument")} <= {spec.name for spec in ALL_TOOLS}
