"""Looks into the catalogue for a caller: which tools there are, and why a search finds one or does not."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from frontdesk.identity import rights
from frontdesk.identity.model import Caller
from frontdesk.tools.catalogue.roster.model import ServerState
from frontdesk.tools.catalogue.store import Filter
from frontdesk.tools.finding import Finding, Found, Search
from frontdesk.tools.model import CatalogueTool, Standing
from frontdesk.tools.naming import the_one
from frontdesk.tools.rights.model import Permitted
from frontdesk.tools.service import Tools

# Far below this a tool is not found in practice, and its place among all others costs more to find out than it tells.
RANKED = 1000
# Of rows that may all be others' alone, so many at once.
READ = 200


@dataclass(frozen=True, slots=True)
class Page:
    """Some of the tools, in the order of their ids; `next` is where to go on, None at the end."""

    tools: Sequence[CatalogueTool]
    next: str | None = None


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why a tool is found, or is not: its finding where it has one, its place, and what would have to be different."""

    tool: CatalogueTool
    finding: Finding | None
    place: int | None
    searched: int
    by_meaning: bool
    verdict: str


async def listed(tools: Tools, caller: Caller, wanted: Filter) -> Page:
    """A page of what the caller may use; as long as there is more, it is full."""
    rights.require(caller, rights.TOOLS_READ)
    permitted = await tools.allowed.of(caller)
    found: list[CatalogueTool] = []
    after, at_once = wanted.after, max(wanted.limit + 1, READ)
    while rows := await tools.catalogue.page(replace(wanted, after=after, limit=at_once)):
        after = rows[-1].id
        found += [tool for tool in rows if permitted.allows(tool.id)]
        if len(found) > wanted.limit:
            return Page(found[: wanted.limit], found[wanted.limit - 1].id)
        if len(rows) < at_once:
            break
    return Page(found)


async def servers(tools: Tools, caller: Caller) -> Sequence[ServerState]:
    """Where the caller's tools come from, and how each server is."""
    rights.require(caller, rights.TOOLS_READ)
    permitted = await tools.allowed.of(caller)
    return [state for state in tools.catalogue.servers() if permitted.sees(state.name)]


async def shown(tools: Tools, caller: Caller, name: str) -> CatalogueTool:
    """One tool that the caller may use, by id or name, also one that is held back."""
    rights.require(caller, rights.TOOLS_READ)
    return await _meant(tools, await tools.allowed.of(caller), name)


async def tried(tools: Tools, caller: Caller, search: Search) -> Found:
    """What a search would find for the caller, for somebody who tries it out: nothing is learned from it."""
    rights.require(caller, rights.TOOLS_READ)
    return await tools.finder.look(caller, await tools.allowed.of(caller), search, remember=False)


async def explain(tools: Tools, caller: Caller, query: str, name: str, *, limit: int, min_score: float) -> Explanation:
    """Why a search for `query` with this limit and score finds the tool, or does not."""
    rights.require(caller, rights.TOOLS_READ)
    permitted = await tools.allowed.of(caller)
    tool = await _meant(tools, permitted, name)
    found = await tools.finder.look(caller, permitted, Search(query, limit=RANKED), remember=False)
    place = next((at for at, one in enumerate(found.findings, 1) if one.tool.id == tool.id), None)
    finding = found.findings[place - 1] if place is not None else None
    verdict = _verdict(tool, finding, place, limit, min_score)
    return Explanation(tool, finding, place, found.searched, found.by_meaning, verdict)


async def _meant(tools: Tools, permitted: Permitted, name: str) -> CatalogueTool:
    known = await tools.catalogue.resolve(name)
    return the_one(known, permitted, name, None if known else await tools.calling.near(permitted, name))


def _verdict(tool: CatalogueTool, finding: Finding | None, place: int | None, limit: int, min_score: float) -> str:
    if tool.standing is Standing.HELD:
        return "not found: it changed, and is held back until somebody has looked at the change"
    if finding is None or place is None:
        return "not found: it shares no word with the query, and is far from it in meaning"
    if finding.score < min_score:
        return f"not found: its score of {finding.score:.0f} is below the {min_score:.0f} that is asked for"
    if place > limit:
        return f"not found: {place - 1} others fit better, and {limit} are asked for"
    return "found"
