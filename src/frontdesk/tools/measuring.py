"""Measures how good search is on one's own tools and queries, by words alone and as it is shipped."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from frontdesk.errors import Invalid
from frontdesk.identity import rights
from frontdesk.identity.model import Caller
from frontdesk.tools.finding import Search
from frontdesk.tools.quality import Quality, quality
from frontdesk.tools.search.model import Query
from frontdesk.tools.service import Tools

DEPTH = 100


@dataclass(frozen=True, slots=True)
class Case:
    """A query, and the tools that answer it: their ids or names."""

    query: str
    gold: Sequence[str]


@dataclass(frozen=True, slots=True)
class Measured:
    """The figures, and what could not be measured."""

    words: Quality
    shipped: Quality
    queries: int
    unknown: int
    tools: int


def silent(_done: int, _of: int) -> None:
    """For those who do not want to hear how far it is."""


async def measure(
    tools: Tools, caller: Caller, cases: Sequence[Case], told: Callable[[int, int], None] = silent
) -> Measured:
    """Search for each, and see where its right tools come out; nothing is learned from it."""
    rights.require(caller, rights.TOOLS_READ)
    permitted, index = await tools.allowed.of(caller), tools.catalogue.index
    known = [(case.query, gold) for case in cases if (gold := await _ids(tools, case))]
    if not known:
        raise Invalid("None of the right tools is in the catalogue; `frontdesk tools list` shows what is")
    words: list[tuple[list[str], frozenset[str]]] = []
    shipped: list[tuple[list[str], frozenset[str]]] = []
    for number, (query, gold) in enumerate(known, 1):
        told(number, len(known))
        words.append(([hit.id for hit in index.search(Query(query, limit=DEPTH))], gold))
        found = await tools.finder.look(caller, permitted, Search(query, limit=DEPTH), remember=False)
        shipped.append(([one.tool.id for one in found.findings], gold))
    return Measured(quality(words), quality(shipped), len(known), len(cases) - len(known), len(index))


async def _ids(tools: Tools, case: Case) -> frozenset[str]:
    return frozenset({tool.id for name in case.gold for tool in await tools.catalogue.resolve(name)})
