"""Holds the tools that are declared against those that a server lists."""

from collections.abc import Iterator, Mapping, Sequence

from frontdesk.loop.mcp.model import RemoteTool
from frontdesk.platform.declared.model import DeclaredTool
from frontdesk.platform.declared.saying import nearest, quoted
from frontdesk.platform.verifying.drifting import drift
from frontdesk.platform.verifying.model import Finding, State

MOST_GUESSES = 50
MOST_DIFFERENCES = 10


def compare(declared: Sequence[DeclaredTool], live: Sequence[RemoteTool]) -> tuple[Finding, ...]:
    """A finding for each tool that is declared and not turned off, then one for each that is only live."""
    offered = {tool.name: tool for tool in live}
    wanted = {tool.name: tool for tool in declared if tool.enabled}
    named = {tool.name for tool in declared}
    unknown = [name for name in offered if name not in named]
    found = [_finding(tool, offered[name]) for name, tool in wanted.items() if name in offered]
    missing = [name for name in wanted if name not in offered]
    return (*found, *_missing(missing, unknown, offered), *(Finding(State.UNDECLARED, name) for name in unknown))


def _finding(declared: DeclaredTool, live: RemoteTool) -> Finding:
    differences = drift(declared.input_schema, live.parameters, MOST_DIFFERENCES)
    return Finding(State.DRIFTED if differences else State.FOUND, declared.name, "; ".join(differences))


def _missing(missing: Sequence[str], unknown: Sequence[str], offered: Mapping[str, object]) -> Iterator[Finding]:
    """Each with the live name that it may have now: rather one that no declaration has."""
    for number, name in enumerate(missing):
        near = (nearest(name, unknown) or nearest(name, offered)) if number < MOST_GUESSES else None
        yield Finding(State.MISSING, name, f"the server has {quoted(near)}" if near else "")
