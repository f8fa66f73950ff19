"""`frontdesk tools list`, `servers`, `review` and `usage`."""

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from frontdesk.app import App
from frontdesk.errors import Invalid, NotFound
from frontdesk.journal.store import ToolUse, UseQuery
from frontdesk.surfaces.cli.options import Flag, Json, Limit
from frontdesk.surfaces.cli.plain import line, revealed
from frontdesk.surfaces.cli.running import changing, operator
from frontdesk.surfaces.cli.tools.opening import NONE, no_tools, states_of, with_servers, with_tools
from frontdesk.surfaces.cli.words import ABSENT, dumped, duration, moment, table
from frontdesk.tools.catalogue.roster.model import ServerState
from frontdesk.tools.catalogue.store import Filter
from frontdesk.tools.looking import Page, listed, shown
from frontdesk.tools.model import SEPARATOR, CatalogueTool, Standing
from frontdesk.tools.naming import the_one
from frontdesk.tools.rights.model import Permitted

DESCRIPTION = 70
PLACE = 50


def show(
    *,
    server: str | None = None,
    changed: Flag = False,
    agent: str | None = None,
    user: str | None = None,
    limit: Limit = 1000,
    as_json: Json = False,
) -> None:
    """List the tools.

    Parameters
    ----------
    server
        Only those of this server.
    changed
        Only those that changed since they were approved.
    agent
        Only those that this agent may use.
    user
        Only those that this person may use.
    limit
        Show at most this many.
    as_json
        Print one JSON object a line.
    """
    wanted = Filter(server, changed=changed, limit=limit)

    async def look(app: App) -> tuple[Page, Sequence[ServerState]]:
        states = states_of(app, () if server is None else (server,))
        return await listed(app.tools, operator(agent=agent, user=user), wanted), states

    page, states = with_tools(look)
    if as_json:
        for tool in page.tools:
            print(dumped(asdict(tool)))
    elif not page.tools:
        print("No tool has changed." if changed else no_tools(states))
    else:
        rows = [(tool.id, line(tool.description, DESCRIPTION), _state(tool)) for tool in page.tools]
        print(table(("tool", "what it does", "state"), rows))
    if page.next:
        print(f"There are more: --limit {limit * 10}", file=sys.stderr)


def servers(*, as_json: Json = False) -> None:
    """List the servers that tools come from, and how each is.

    Parameters
    ----------
    as_json
        Print one JSON object a line.
    """

    async def look(app: App) -> list[ServerState]:
        return list(app.tools.catalogue.servers())

    found = with_tools(look)
    if as_json:
        for state in found:
            print(dumped(_server(state)))
        return
    rows = [
        (one.name, line(one.spec.place, PLACE) or ABSENT, one.spec.origin, str(one.tools), _health(one))
        for one in found
    ]
    print(table(("server", "where", "from", "tools", "state"), rows) if rows else NONE)
    for one in found:
        for problem in one.problems:
            print(f"{line(one.name)}: {line(problem)}")


def review(tool: str | None = None, /, *, accept: Flag = False, refuse: Flag = False) -> None:
    """Look at the tools that changed since they were approved, and accept or refuse a change.

    Parameters
    ----------
    tool
        The tool's id; without it, all that changed are listed.
    accept
        Take the new version as approved.
    refuse
        Stay with the version that was approved.
    """
    if tool is None:
        show(changed=True)
        return
    if accept and refuse:
        raise Invalid("Accept the change or refuse it, not both")

    async def look(app: App) -> tuple[CatalogueTool, Mapping[str, Any] | None]:
        found = await shown(app.tools, operator(), tool)
        if accept or refuse:
            with changing(app, f"tools review {found.id} {'accept' if accept else 'refuse'}"):
                found = await app.tools.house.review(operator(), found.id, accept=accept)
        return found, await app.tools.catalogue.other_version(found.id)

    found, other = with_tools(look)
    if accept or refuse:
        print(f"{line(found.id)}: the change is {'accepted' if accept else 'refused'}.")
        return
    print(f"{line(found.id)}: {line(found.change) or 'has not changed since it was approved'}")
    if other is not None:
        held = found.standing is Standing.HELD
        print(f"\nin use{' (as approved)' if held else ' (the new version)'}:\n{_version(found)}")
        print(f"\n{'the new version, held back' if held else 'as it was approved'}:\n{_other(other)}")
        print(f"\nfrontdesk tools review '{line(found.id)}' --accept, or --refuse")


def usage(
    *, agent: str | None = None, tool: str | None = None, since: str = "30d", limit: Limit = 100, as_json: Json = False
) -> None:
    """Show which agents use which tools, how often and how well, from the journal.

    Parameters
    ----------
    agent
        Only this agent.
    tool
        Only this tool, by its id or name.
    since
        Only the last 45s, 30m, 12h, 7d and so on.
    limit
        Show at most this many rows, the most used first.
    as_json
        Print one JSON object a line.
    """
    start = datetime.now(UTC) - duration(since)

    async def look(app: App) -> Sequence[ToolUse]:
        used = None if tool is None else await _used(app, tool)
        return await app.tools.house.usage(operator(), UseQuery(agent, None, used, start, limit))

    uses = with_servers(look)
    if as_json:
        for use in uses:
            print(dumped(asdict(use)))
        return
    rows = [
        (
            use.agent_id or ABSENT,
            use.tool,
            str(use.calls),
            str(use.failed),
            f"{use.mean_us / 1000:.1f} ms",
            moment(use.last_at),
        )
        for use in uses
    ]
    head = ("agent", "tool", "calls", "failed", "mean", "last")
    print(table(head, rows) if rows else f"No tool was called in the last {since}.")


async def _used(app: App, tool: str) -> str:
    """The id that a tool has in the journal, where one that is gone still stands."""
    known = await app.tools.catalogue.resolve(tool)
    if known or SEPARATOR in tool:
        return the_one(known, Permitted(), tool).id if known else tool
    raise NotFound(f"There is no tool '{tool}'; for one that is gone give its id, server::tool")


def _state(tool: CatalogueTool) -> str:
    said = ["held back" if tool.standing is Standing.HELD else "", "changed" if tool.change else ""]
    return ", ".join(part for part in (*said, "stale" if tool.stale else "") if part) or "ready"


def _health(state: ServerState) -> str:
    when = moment(state.answered_at) if state.answered_at else "never"
    if state.error:
        return f"failed: {line(state.error, 80)} (last answer: {when})"
    return f"answered {when}" if state.answered_at else "not asked yet"


def _server(state: ServerState) -> Mapping[str, Any]:
    spec = state.spec
    return {
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


def _version(tool: CatalogueTool) -> str:
    return revealed({"description": tool.description, "parameters": tool.parameters}, 2)


def _other(other: Mapping[str, Any]) -> str:
    parameters = other.get("parameters")
    read = json.loads(parameters) if isinstance(parameters, str) else parameters
    return revealed({"description": other.get("description"), "parameters": read}, 2)
