"""Puts what `find_tools` came to into words that an agent can act on."""

import json
from collections.abc import Sequence

from frontdesk.loop.text import one_line
from frontdesk.tools.finding import Finding, Found
from frontdesk.tools.model import CatalogueTool, Kind
from frontdesk.tools.selection.model import Choice, Selection
from frontdesk.tools.service import Outcomes

DESCRIPTION = 240
PARAMETERS = 25
SERVERS = 30
NAMES = 12
NONE_YET = (
    "There are no tools in the catalogue yet. Whoever runs Frontdesk can add a server: frontdesk tools add NAME URL"
)


def told(
    outcomes: Outcomes,
    *,
    detailed: bool = False,
    least: float | None = None,
    at_once: bool = False,
) -> str:
    """What was found and why, what was done with it, and what to do next.

    `least` is the score that was asked for; `at_once`: the agent can use what it was given in this very turn.
    """
    found = outcomes.found
    if found.nothing_relevant:
        parts = [_nothing(found, outcomes.servers, least)]
    else:
        shown = [_finding(number, one, detailed=detailed) for number, one in enumerate(found.findings, 1)]
        parts = [f"Found {_count(len(shown), 'tool')}, the best first:", *shown]
    if not found.by_meaning and found.searched:
        parts.append("Only words were compared this time, not meanings; a search with other words may find more.")
    elif found.unread:
        parts.append(f"{_count(found.unread, 'new tool')} could be compared by words only so far.")
    parts.append(" ".join((*found.unknown, *outcomes.selection.unknown)))
    parts.append(_done(outcomes.selection))
    parts.append(outcomes.note)
    if found.findings:
        parts.append(_next(found.findings, outcomes, at_once=at_once))
    return "\n\n".join(part for part in parts if part)


def _finding(number: int, finding: Finding, *, detailed: bool) -> str:
    tool = finding.tool
    lines = [f"{number}. {tool.api_name} (id {tool.id}), score {finding.score:.0f} of 100: {finding.reason}"]
    if tool.description:
        lines.append(one_line(tool.description, DESCRIPTION))
    lines.append(_arguments(tool))
    if tool.stale:
        lines.append("Its server did not answer lately, so a call may fail.")
    if detailed:
        lines.append(f"Schema: {json.dumps(tool.parameters, ensure_ascii=False)}")
    return "\n   ".join(lines)


def _arguments(tool: CatalogueTool) -> str:
    required, optional = tool.parameter_names
    named = [*(f"{name} (required)" for name in required), *optional]
    more = f" and {len(named) - PARAMETERS} more" if len(named) > PARAMETERS else ""
    return f"Arguments: {', '.join(named[:PARAMETERS])}{more}" if named else "Arguments: none"


def _nothing(found: Found, servers: Sequence[str], least: float | None) -> str:
    if not found.searched:
        return NONE_YET
    best = "" if found.best is None else f" The best one scores {found.best:.0f} of 100"
    below = f", below the {least:.0f} that you asked for." if best and least is not None else "." if best else ""
    more = f" and {len(servers) - SERVERS} more" if len(servers) > SERVERS else ""
    named = f" The servers there are: {', '.join(servers[:SERVERS])}{more}." if servers else ""
    return (
        f"Nothing relevant: none of {_count(found.searched, 'tool')} fits.{best}{below}{named} "
        "Say it in other words, name the tool, or lower min_score; or go on without a tool."
    )


def _done(selection: Selection) -> str:
    attached, detached = ("Would attach", "Would detach") if selection.dry_run else ("Attached", "Detached")
    wanted = [choice for choice in selection.kept if choice.score is not None]
    said = [
        _choices(attached, selection.attached),
        _choices("Held already", wanted, why=False),
        _choices(detached, selection.detached),
        _choices("Not attached", selection.skipped),
        _choices("Failed", selection.failed),
    ]
    if selection.dry_run:
        said.append("This was a dry run: nothing was changed.")
    return "\n".join(line for line in said if line)


def _choices(title: str, choices: Sequence[Choice], *, why: bool = True) -> str:
    if not choices:
        return ""
    named = [f"{choice.name} ({choice.reason})" if why else choice.name for choice in choices[:NAMES]]
    more = f" and {len(choices) - NAMES} more" if len(choices) > NAMES else ""
    return f"{title}: {', '.join(named)}{more}."


def _next(findings: Sequence[Finding], outcomes: Outcomes, *, at_once: bool) -> str:
    callable_now = next((finding.tool for finding in findings if finding.tool.kind is Kind.MCP), None)
    said: list[str] = []
    if callable_now is not None:
        required, _ = callable_now.parameter_names
        example = json.dumps(dict.fromkeys(required, "…"), ensure_ascii=False)
        name = callable_now.api_name
        said.append(f"Next: call the one you need now with call_tool(name={name!r}, arguments={example}).")
    if outcomes.selection.attached and not outcomes.selection.dry_run:
        said.append(f"What was attached is among your own tools {'now' if at_once else 'by your next turn'}.")
    if outcomes.follow_up:
        said.append("You will be called on again as soon as this run is over.")
    return " ".join(said)


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" + ("" if number == 1 else "s")
