"""Searches a person's records by terms and meaning together, then by the remaining filters."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import TypeAlias

import anyio
import numpy as np
import structlog
from numpy.typing import NDArray

from frontdesk.db.schema import TERM_LENGTH
from frontdesk.embedding.embedder import Embedder
from frontdesk.errors import Invalid, Unavailable
from frontdesk.identity import rights
from frontdesk.memory.model import (
    MAX_SEARCH_LIMIT,
    ContextItem,
    ItemHit,
    ItemSearch,
    ItemType,
    PersonScope,
    SearchMode,
    TimelineItem,
)
from frontdesk.memory.search.index_store import find_postings
from frontdesk.memory.search.query_store import (
    FEW_ITEMS,
    Condition,
    fetch_candidates,
    fetch_context,
    fetch_few_numbers,
    fetch_index_counts,
    fetch_items,
    search_conditions,
)
from frontdesk.memory.search.ranking import (
    MIN_NEARNESS,
    NEIGHBOUR_SHARES,
    Numbers,
    RankedItem,
    SearchEvidence,
    rank_items,
    relevance_score,
)
from frontdesk.memory.search.vectors_store import COMPARE_ALL, fetch_vectors, model_number, nearest_vectors
from frontdesk.memory.store import PersonDatabase, PersonTransaction
from frontdesk.search.words import terms

Floats: TypeAlias = NDArray[np.float32]

# So many of the likeliest by words, and as many by meaning, are weighed against one another; more of them where too few
# are what was asked among.
CANDIDATE_DEPTHS = (32, 512, 4096)
MAX_QUERY_TERMS = 32


@dataclass(frozen=True, slots=True)
class QueryVector:
    """A text as a vector, and the number of the model that made it."""

    model: int
    vector: Floats

    @classmethod
    def from_embedder(cls, embedder: str, vector: Floats) -> "QueryVector":
        return cls(model_number(embedder), vector)


@dataclass(frozen=True, slots=True)
class PreparedSearch:
    """A query, the terms to look for with the words they stand for, and its meaning where it goes by that too."""

    query: ItemSearch
    words: dict[str, str]
    meaning: QueryVector | None

    @classmethod
    def prepare(cls, query: ItemSearch, text: str, meant: QueryVector | None) -> "PreparedSearch":
        words: dict[str, str] = {}
        for term, word in terms(text) if query.mode is not SearchMode.SEMANTIC else ():
            words.setdefault(term[:TERM_LENGTH], word)
        return cls(query, dict(list(words.items())[:MAX_QUERY_TERMS]), meant)


def run_search(mine: PersonTransaction, asked: PreparedSearch) -> list[ItemHit]:
    """The best first."""
    conditions = search_conditions(mine, asked.query)
    items, last = fetch_index_counts(mine)
    if not items:
        return []
    evidence = _collect_evidence(mine, asked, items, last)
    among = fetch_few_numbers(mine, asked.query) if items > FEW_ITEMS else None
    best = _best_items(mine, asked, evidence, conditions, among)
    whole = fetch_items(mine, [one.n for one in best])
    # One may have gone since it was looked at.
    return [_build_hit(one, *whole[one.n], asked, evidence) for one in best if one.n in whole]


def _collect_evidence(mine: PersonTransaction, asked: PreparedSearch, items: int, last: int) -> SearchEvidence:
    held = find_postings(mine, list(asked.words), last)
    if asked.meaning is None:
        return SearchEvidence.collect(held, items, np.empty(0, np.int32), np.empty(0, np.float32))
    near = nearest_vectors(mine, asked.meaning.model, asked.meaning.vector, every_one=items <= COMPARE_ALL)
    return SearchEvidence.collect(held, items, near.numbers, near.products(asked.meaning.vector))


def _best_items(
    mine: PersonTransaction,
    asked: PreparedSearch,
    evidence: SearchEvidence,
    conditions: Sequence[Condition],
    among: Sequence[int] | None,
) -> list[RankedItem]:
    if among is not None:
        return _rank_candidates(mine, asked, evidence, np.array(among, np.int32), conditions)
    found: list[RankedItem] = []
    for depth in (max(depth, asked.query.limit) for depth in CANDIDATE_DEPTHS):
        found = _rank_candidates(mine, asked, evidence, evidence.likeliest(depth), conditions)
        if len(found) >= asked.query.limit or depth >= evidence.max_items:
            break
    return found


def _rank_candidates(
    mine: PersonTransaction,
    asked: PreparedSearch,
    evidence: SearchEvidence,
    numbers: Numbers,
    conditions: Sequence[Condition],
) -> list[RankedItem]:
    """These and their neighbours that are what was asked among, and for which something speaks, in order."""
    around = np.unique(np.concatenate([numbers, *(numbers + step for step in NEIGHBOUR_SHARES)]))
    candidates = fetch_candidates(mine, around.tolist(), conditions)
    words, nearness = evidence.look_up(candidates.numbers)
    if asked.meaning is not None and len(evidence.numbers):
        _fill_nearness(mine, asked.meaning, candidates.numbers, nearness)
    found = rank_items(candidates, words, nearness, mine.now)
    told = (one for one in found if one.own_terms or one.neighbour_terms or (one.nearness or 0.0) >= MIN_NEARNESS)
    return list(islice(told, asked.query.limit))


def _fill_nearness(mine: PersonTransaction, asked: QueryVector, numbers: Numbers, nearness: Floats) -> None:
    """Of those that were not in a cell that was read, the vectors are read one by one."""
    missing = numbers[np.isnan(nearness)]
    if len(missing):
        alone = fetch_vectors(mine, asked.model, missing.tolist(), len(asked.vector))
        nearness[np.searchsorted(numbers, alone.numbers)] = alone.products(asked.vector)


def _build_hit(
    one: RankedItem, item: TimelineItem, text: str, asked: PreparedSearch, evidence: SearchEvidence
) -> ItemHit:
    words = [asked.words[posting.term] for posting in evidence.postings]
    return ItemHit(
        item=item,
        text=text,
        score=relevance_score(one.evidence, evidence.total_value, by_meaning=len(evidence.numbers) > 0),
        words=[words[place] for place in one.own_terms],
        meaning=None if one.nearness is None else round(min(1.0, max(0.0, one.nearness)), 3),
        beside=[words[place] for place in one.neighbour_terms],
    )


MAX_QUERY = 2000
EMBED_SECONDS = 5
# Who may see one kind of items may search it; the timeline is all of them.
RIGHTS_BY_TYPE = {
    frozenset({ItemType.MEMORY}): rights.MEMORIES_READ,
    frozenset({ItemType.TASK}): rights.TASKS_READ,
    frozenset({ItemType.ACTIVITY}): rights.ACTIVITIES_READ,
}

log = structlog.get_logger("frontdesk.memory")


class ItemSearchService:
    """Finds what a person has kept; without an embedder, by words alone."""

    def __init__(self, records: PersonDatabase, embedder: Embedder | None) -> None:
        self._records = records
        self._embedder = embedder

    async def search(self, scope: PersonScope, query: ItemSearch) -> list[ItemHit]:
        """The best first, at most `query.limit` of them."""
        scope.require(RIGHTS_BY_TYPE.get(query.types or frozenset(), rights.TIMELINE_READ))
        text = query.text.strip()[:MAX_QUERY]
        if not text:
            raise Invalid("Say what to look for: the query is empty")
        if not 1 <= query.limit <= MAX_SEARCH_LIMIT:
            raise Invalid(f"limit must be from 1 to {MAX_SEARCH_LIMIT}")
        asked = PreparedSearch.prepare(query, text, await self._embed_query(text, query.mode))
        return await self._records.read(scope, partial(run_search, asked=asked))

    async def context(
        self, scope: PersonScope, item_ids: Sequence[str], depth: int
    ) -> Mapping[str, Sequence[ContextItem]]:
        """What lies around each of these items, so many steps before and after it and as many that are tied to it."""
        scope.require(rights.TIMELINE_READ)
        return await self._records.read(scope, partial(fetch_context, item_ids=item_ids, depth=depth))

    async def _embed_query(self, text: str, how: SearchMode) -> QueryVector | None:
        """The text as a vector; without it search goes by words."""
        if how is SearchMode.FULL_TEXT or self._embedder is None:
            return None
        try:
            with anyio.fail_after(EMBED_SECONDS):
                vectors = await self._embedder.embed([text])
        except (Unavailable, TimeoutError) as error:
            log.warning("recall_without_meaning", error=str(error) or f"no answer in {EMBED_SECONDS} s")
            return None
        return QueryVector.from_embedder(self._embedder.name, vectors[0])
