"""`frontdesk tools search`, `explain` and `call`."""

import json
import sys
from collections.abc import Mapping, Sequence
from typing import Any, cast

from frontdesk.app import App
from frontdesk.errors import Invalid
from frontdesk.surfaces import given
from frontdesk.surfaces.cli.options import Json, Many, Text
from frontdesk.surfaces.cli.plain import line, plain
from frontdesk.surfaces.cli.running import operator
from frontdesk.surfaces.cli.tools.opening import no_tools, states_of, understand, with_tools
from frontdesk.surfaces.cli.tools.progress import Told
from frontdesk.surfaces.cli.words import table
from frontdesk.surfaces.findings import FoundTool
from frontdesk.tools.catalogue.roster.model import ServerState
from frontdesk.tools.finding import Found, Search
from frontdesk.tools.gateway.result import CallResult
from frontdesk.tools.looking import Explanation
from frontdesk.tools.looking import explain as explained

FROM_INPUT = "-"
DESCRIPTION = 60


def search(
    query: Text,
    /,
    *,
    limit: int = given.LIMIT,
    min_score: float = 0,
    server: Many = (),
    agent: str | None = None,
    user: str | None = None,
    as_json: Json = False,
) -> None:
    """Find tools by what they should do, the best first.

    Parameters
    ----------
    query
        What you want done, in plain words, or a tool's name.
    limit
        Show at most this many, up to 25.
    min_score
        Leave out what fits less well than this, from 0 to 100.
    server
        Look only among the tools of this server; repeated for several.
    agent
        Search as this agent: among what it may use, and with what it used before.
    user
        Search as this person.
    as_json
        Print a JSON array.
    """

    async def look(app: App) -> tuple[Found, Sequence[ServerState]]:
        states = states_of(app, server)
        await understand(app)
        wanted = Search(query, given.limit(limit), given.min_score(min_score), frozenset(server))
        return await app.tools.search(operator(agent=agent, user=user), wanted), states

    found, states = with_tools(look)
    if as_json:
        print(json.dumps([FoundTool.of(one).model_dump(mode="json", exclude_none=True) for one in found.findings]))
        return
    if not found.findings:
        best = "" if found.best is None else f" The best one scores {found.best:.0f}."
        print(f"Nothing fits among {found.searched:,} tools.{best}" if found.searched else no_tools(states))
        return
    rows = [
        (f"{one.score:.0f}", one.tool.id, line(one.tool.description, DESCRIPTION), one.reason) for one in found.findings
    ]
    print(table(("score", "tool", "what it does", "why"), rows))
    if found.findings[0].score < given.MIN_SCORE:
        print(f"None reaches {given.MIN_SCORE:.0f}, which find_tools asks for unless it is told otherwise.")


def explain(
    query: Text,
    tool: str,
    /,
    *,
    limit: int = given.LIMIT,
    min_score: float = given.MIN_SCORE,
    agent: str | None = None,
    user: str | None = None,
    as_json: Json = False,
) -> None:
    """Say why a search finds a tool, or does not.

    Parameters
    ----------
    query
        What was searched for.
    tool
        The tool's id or name.
    limit
        How many tools the search returns.
    min_score
        The score that it must reach; find_tools asks for 50, `tools search` for none.
    agent
        Search as this agent.
    user
        Search as this person.
    as_json
        Print one JSON object.
    """

    async def look(app: App) -> Explanation:
        await understand(app)
        caller = operator(agent=agent, user=user)
        return await explained(app.tools, caller, query, tool, limit=limit, min_score=min_score)

    found = with_tools(look)
    facts = _facts(found)
    if as_json:
        print(json.dumps(facts))
        return
    for name, value in facts.items():
        print(f"{name.replace('_', ' '):<10}{line(str(value))}")


def call(
    tool: str,
    arguments: Text = "{}",
    /,
    *,
    agent: str | None = None,
    user: str | None = None,
    as_json: Json = False,
) -> None:
    """Run a tool now and print what it answers; exit 1 if it fails.

    frontdesk tools call files::read '{"path": "notes.md"}'

    Parameters
    ----------
    tool
        Its id or name.
    arguments
        A JSON object; - reads it from standard input.
    agent
        Call as this agent.
    user
        Call for this person.
    as_json
        Print the whole answer as one JSON object.
    """
    told = _object(sys.stdin.read() if arguments == FROM_INPUT else arguments)

    async def run(app: App) -> CallResult:
        with Told(sys.stderr) as shown:

            async def progress(done: float, total: float | None, message: str | None) -> None:
                text = f"{done:g}{f' of {total:g}' if total else ''} {message or ''}"
                shown.now(text)
                shown.done(text)

            return await app.tools.calling.call(operator(agent=agent, user=user), tool, told, progress=progress)

    result = with_tools(run)
    if as_json:
        fields = {"ok": result.ok, "content": list(result.content), "structured": result.structured}
        print(json.dumps(fields | ({"error": result.error} if result.error else {})))
    else:
        print(plain(result.text), file=sys.stdout if result.ok else sys.stderr)
    if not result.ok:
        sys.exit(1)


def _facts(found: Explanation) -> Mapping[str, Any]:
    one = found.finding
    place = f"{found.place} of {found.searched:,}" if found.place else f"none of the first among {found.searched:,}"
    return {
        "tool": found.tool.id,
        "verdict": found.verdict,
        "score": round(one.score, 1) if one else 0,
        "place": place,
        "words": ", ".join(one.words) if one and one.words else "-",
        "meaning": (round(one.meaning, 1) if one else 0) if found.by_meaning else "not compared",
        "past_use": round(one.past_use, 1) if one else 0,
        "by_name": bool(one and one.exact),
    }


def _object(text: str) -> Mapping[str, Any]:
    try:
        found: object = json.loads(text or "{}")
    except ValueError as error:
        raise Invalid(f"The arguments are not JSON: {error}") from error
    if not isinstance(found, dict):
        raise Invalid('The arguments must be a JSON object: {"name": "value"}')
    return cast("Mapping[str, Any]", found)
