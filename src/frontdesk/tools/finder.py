"""Finds tools for a caller among the permitted ones. For a long query, its clauses are searched too."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

import anyio
import numpy as np
import structlog
from numpy.typing import NDArray

from frontdesk.embedding import Embedder
from frontdesk.errors import Invalid, Unavailable
from frontdesk.identity.model import Caller
from frontdesk.text import not_found_message
from frontdesk.tools.access import PermittedTools
from frontdesk.tools.catalogue import Catalogue
from frontdesk.tools.index_segments import IndexHit, IndexQuery
from frontdesk.tools.learning import ToolLearning
from frontdesk.tools.model import CatalogueTool, ReviewStatus, ToolKind
from frontdesk.tools.selection import ToolRole, role_of

CLAUSE_BREAK = re.compile(r"(?<=[.!?;])\s+|\n+|,?\s+(?:and then|then|and also|also)\s+|;\s*")
# Each clause costs an embedding. A fourth one adds little, and a short query has no useful clauses.
MOST_CLAUSES = 3
LONG_QUERY_WORDS = 20
SHORTEST_CLAUSE_WORDS = 3


def split_clauses(text: str) -> list[str]:
    """The texts to embed for a query: the whole query, then a few clauses if it is long."""
    whole = text.strip()
    if len(whole.split()) < LONG_QUERY_WORDS:
        return [whole]
    parts = [part.strip(" ,.;") for part in CLAUSE_BREAK.split(whole)]
    parts = [part for part in parts if len(part.split()) >= SHORTEST_CLAUSE_WORDS]
    return [whole, *parts[:MOST_CLAUSES]] if len(parts) > 1 else [whole]


QUERY_CHARACTERS = 2000
EMBED_SECONDS = 5
# With more tools than this, a search takes long enough to run in a thread.
TOOLS_IN_PLACE = 2000
COUNTS_CACHED = 100
NAME_LENGTH_SHOWN = 200

log = structlog.get_logger("frontdesk.tools")


@dataclass(frozen=True, slots=True)
class SearchTools:
    """A query, and the servers and kinds of tools to search."""

    query: str
    limit: int = 10
    min_score: float = 0.0
    servers: frozenset[str] = frozenset()
    kinds: frozenset[ToolKind] = frozenset()


@dataclass(frozen=True, slots=True)
class ToolMatch:
    """A found tool, its score from 0 to 100, and the reasons for it."""

    tool: CatalogueTool
    score: float
    words: Sequence[str] = ()
    meaning: float = 0.0
    past_use: float = 0.0
    exact: bool = False

    @property
    def reason(self) -> str:
        if self.exact:
            return "asked for by name"
        said = [
            f"words: {', '.join(self.words)}" if self.words else "",
            f"meaning {self.meaning:.0f} of 100" if self.meaning >= 1 else "",
            "was of use for requests like this" if self.past_use >= 1 else "",
        ]
        return "; ".join(part for part in said if part) or "little speaks for it"


@dataclass(frozen=True, slots=True)
class ToolSearchResults:
    """The result of a search: the tools with the minimum score, the best first. `best` is the best score of all.

    `unread` tools have no vector yet, and were searched by terms alone; if `by_meaning` is False, all were. `unknown`
    has a sentence for each named server that does not exist.
    """

    findings: Sequence[ToolMatch]
    searched: int
    best: float | None = None
    by_meaning: bool = True
    unread: int = 0
    unknown: Sequence[str] = ()

    @property
    def nothing_relevant(self) -> bool:
        return not self.findings


@dataclass(frozen=True, slots=True)
class ExcludedHostTools:
    """The tools of the agent host that no agent gets."""

    core: bool = True
    official: bool = True

    def has(self, tool: str) -> bool:
        role = role_of(tool, None)
        return (role is ToolRole.CORE and self.core) or (role is ToolRole.OFFICIAL and self.official)


class ToolFinder:
    """Searches tools for callers. It keeps nothing of a caller except the data for learning."""

    def __init__(
        self, catalogue: Catalogue, embedder: Embedder | None, learning: ToolLearning, excluded: ExcludedHostTools
    ) -> None:
        self._catalogue = catalogue
        self._embedder = embedder
        self._learning = learning
        self._excluded = excluded
        self._counts: dict[tuple[int, PermittedTools], int] = {}

    async def find_tools(
        self, caller: Caller, permitted: PermittedTools, search: SearchTools, *, remember: bool = True
    ) -> ToolSearchResults:
        """Find permitted tools for a query. With `remember`, a later use of a tool is credited to this search."""
        text = search.query.strip()
        if not text:
            raise Invalid("Say what the tool should do: `query` is empty")
        text = text[:QUERY_CHARACTERS]
        vectors = await self._vectors(text)
        hits = await self._hits(caller, permitted, replace(search, query=text), vectors)
        known = await self._catalogue.many([hit.id for hit in hits])
        usable = [hit for hit in hits if hit.id in known and known[hit.id].standing is ReviewStatus.READY]
        findings = [_make_match(known[hit.id], hit) for hit in usable if hit.score >= search.min_score]
        if remember and vectors is not None and findings:
            self._learning.note_search(caller, vectors[0], [finding.tool.id for finding in findings])
        best = max((hit.score for hit in usable), default=None)
        unread = self._catalogue.index.unread if vectors is not None else 0
        searched, unknown = await self._count_searched(permitted), self._unknown(permitted, search.servers)
        return ToolSearchResults(findings, searched, best, vectors is not None, unread, unknown)

    def _unknown(self, permitted: PermittedTools, servers: frozenset[str]) -> Sequence[str]:
        known = [state.name for state in self._catalogue.servers() if permitted.sees(state.name)]
        return [
            not_found_message(f"There is no server '{name[:NAME_LENGTH_SHOWN]}'", name, known)
            for name in sorted(servers - {*known})
        ]

    async def _hits(
        self, caller: Caller, permitted: PermittedTools, search: SearchTools, vectors: NDArray[np.float32] | None
    ) -> Sequence[IndexHit]:
        past = None if vectors is None else await self._learning.recall(caller, vectors[0])
        query = IndexQuery(
            text=search.query,
            vectors=vectors,
            limit=search.limit,
            min_score=0.0,
            allowed=lambda tool_id: permitted.allows(tool_id) and not self._is_excluded(tool_id),
            servers=search.servers or None,
            kinds=search.kinds or None,
            past=past,
        )
        index = self._catalogue.index
        if len(index) <= TOOLS_IN_PLACE:
            return index.search(query)
        return await anyio.to_thread.run_sync(index.search, query)

    async def _count_searched(self, permitted: PermittedTools) -> int:
        """How many tools were searched: the number of permitted tools, which is cached."""
        index = self._catalogue.index
        if permitted.everything:
            return len(index)
        key = (self._catalogue.revision, permitted)
        if key not in self._counts:
            if len(self._counts) >= COUNTS_CACHED:
                self._counts.clear()
            self._counts[key] = await anyio.to_thread.run_sync(lambda: sum(map(permitted.allows, index.ids())))
        return self._counts[key]

    def _is_excluded(self, tool_id: str) -> bool:
        return tool_id.startswith("host::") and self._excluded.has(tool_id.removeprefix("host::"))

    async def _vectors(self, text: str) -> NDArray[np.float32] | None:
        """The vectors of the text and its clauses; None if the search must use terms alone."""
        index = self._catalogue.index
        if self._embedder is None or index.unread == len(index):
            return None
        try:
            with anyio.fail_after(EMBED_SECONDS):
                return await self._embedder.embed(split_clauses(text))
        except (Unavailable, TimeoutError) as error:
            log.warning("search_without_meaning", error=str(error) or f"no answer in {EMBED_SECONDS} s")
            return None


def _make_match(tool: CatalogueTool, hit: IndexHit) -> ToolMatch:
    return ToolMatch(tool, hit.score, hit.words, hit.meaning, hit.past_use, hit.exact)
