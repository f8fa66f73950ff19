"""Searches a person's records by terms and meaning together, with filters, in one read transaction for each search.

The query is embedded first, because no transaction waits for an embedder. Then terms and vectors give candidates, the
candidates are ranked by their evidence, and the best ones are read. Without an embedder a search uses terms alone.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import islice
from typing import TypeVar
from zoneinfo import ZoneInfo

import anyio
import numpy as np
import structlog
from numpy.typing import NDArray

from frontdesk.db.schema import TERM_LENGTH
from frontdesk.embedding import Embedder
from frontdesk.errors import Invalid, Unavailable
from frontdesk.identity import rights
from frontdesk.memory.memories_rules import MemoryFilter
from frontdesk.memory.memories_store import fetch_memories, list_memories
from frontdesk.memory.model import (
    MAX_SEARCH_LIMIT,
    ContextItem,
    ItemHit,
    ItemSearch,
    ItemType,
    Memory,
    PersonScope,
    SearchMode,
)
from frontdesk.memory.search.index_store import MEMORY_BM25, WEIGHT_STEPS, PostingList, find_postings
from frontdesk.memory.search.query_store import (
    Condition,
    SearchCandidates,
    fetch_candidates,
    fetch_context,
    fetch_few_numbers,
    fetch_index_counts,
    fetch_items,
    search_conditions,
)
from frontdesk.memory.search.vectors_store import fetch_vectors, model_number, nearest_vectors
from frontdesk.memory.store import PersonDatabase, PersonTransaction
from frontdesk.memory.validation import RecordPage
from frontdesk.search.bm25 import add_evidence
from frontdesk.search.vectors import Floats, Numbers
from frontdesk.search.words import terms

T = TypeVar("T")

# Evidence is in units of cosine: this is the weight of one term.
WORD_WEIGHT = 0.07
# A memory gets evidence from memories noted in the same sitting: the answer to a question shares few of its words, and
# the memory beside it says what "it" was. The keys are steps to a neighbour. The values are the share of the
# neighbour's terms and cosine that counts if it is more than the memory's own. Without this, search finds ten points
# less of LoCoMo's evidence.
SITTING_SECONDS = 30 * 60
NEIGHBOUR_SHARES = {-1: 0.7, -2: 0.5, 1: 0.5, 2: 0.4}
# Among equals, new and salient memories come first: these are the largest bonuses. Twice as much for new ones costs
# half a point of LoCoMo's evidence; these values cost nothing.
RECENCY_BONUS, RECENCY_DAYS = 0.05, 30.0
SALIENCE_BONUS = 0.05
DAY_SECONDS = 86_400
# An item that shares no word needs at least this cosine. One in a hundred right answers in LoCoMo has less.
MIN_NEARNESS = 0.18


@dataclass(frozen=True, slots=True)
class RankedItem:
    """An item and its evidence. `own_terms` and `neighbour_terms` are indexes of terms, the most significant first."""

    n: int
    evidence: float
    nearness: float | None
    own_terms: Sequence[int]
    neighbour_terms: Sequence[int]


def rank_items(candidates: SearchCandidates, words: Floats, nearness: Floats, now: datetime) -> Iterator[RankedItem]:
    """Rank the allowed candidates, the best first. `words` has a row for each term, `nearness` the cosines.

    A cosine is NaN for an item that has no vector yet: it gets the average of the others.
    """
    beside = {step: _neighbour_places(candidates, step) for step in NEIGHBOUR_SHARES}
    held = _with_neighbours(words, beside)
    known = nearness[~np.isnan(nearness)]
    near = _with_neighbours(np.nan_to_num(nearness, nan=float(known.mean()) if len(known) else 0.0), beside)
    evidence = add_evidence(held.sum(axis=0), near, WORD_WEIGHT) + _recency_and_salience(candidates, now)
    order: list[int] = np.argsort(-evidence, kind="stable").tolist()
    return (
        _ranked_item(int(candidates.numbers[at]), float(evidence[at]), float(nearness[at]), words[:, at], held[:, at])
        for at in order
        if candidates.allowed[at]
    )


def _neighbour_places(candidates: SearchCandidates, step: int) -> NDArray[np.intp]:
    """For each candidate, the index of the memory noted `step` places later in the same sitting, or -1."""
    numbers, seconds, memories = candidates.numbers, candidates.seconds, candidates.memories
    places = np.searchsorted(numbers, numbers + step).clip(max=max(len(numbers) - 1, 0))
    together = np.abs(seconds[places] - seconds) <= SITTING_SECONDS
    there = (numbers[places] == numbers + step) & memories & memories[places] & together
    return np.where(there, places, -1)


def _with_neighbours(values: Floats, beside: Mapping[int, NDArray[np.intp]]) -> Floats:
    """The values of each item (last axis), or the share of a neighbour's value if that is more."""
    found = values.copy()
    for step, part in NEIGHBOUR_SHARES.items():
        places = beside[step]
        np.maximum(found, np.where(places >= 0, np.float32(part) * values[..., places], -np.inf), out=found)
    return found


def _recency_and_salience(candidates: SearchCandidates, now: datetime) -> Floats:
    days = np.maximum(0.0, now.timestamp() - candidates.seconds) / DAY_SECONDS
    new = RECENCY_BONUS * np.exp2(-days / RECENCY_DAYS)
    return (new + SALIENCE_BONUS * candidates.salience).astype(np.float32)


def _ranked_item(n: int, evidence: float, nearness: float, words: Floats, held: Floats) -> RankedItem:
    order: list[int] = np.argsort(-held, kind="stable").tolist()
    own = [term for term in order if words[term] > 0]
    beside = [term for term in order if held[term] > 0 and words[term] == 0]
    return RankedItem(n, evidence, None if math.isnan(nearness) else nearness, own, beside)


def mention_weight() -> int:
    """The weight of a term that occurs once in a text of usual length."""
    return round(WEIGHT_STEPS / (1 + MEMORY_BM25.saturation))


def term_value(held_by: float, items: int) -> float:
    """The rarity of a term for one step of weight, so that one occurrence in a text of usual length counts once."""
    return MEMORY_BM25.rarity(held_by, items) * (1 + MEMORY_BM25.saturation) / WEIGHT_STEPS


def relevance_score(evidence: float, words: float, *, by_meaning: bool) -> float:
    """The share of the maximum evidence for the query, from 0 to 1. `words` is the value of all its terms.

    So the score of a hit does not depend on the other hits, and the best of only weak hits scores low.
    """
    possible = WORD_WEIGHT * words + (1.0 if by_meaning else 0.0)
    return round(min(1.0, max(0.0, evidence / possible)), 3) if possible > 0 else 0.0


@dataclass(frozen=True, slots=True)
class SearchEvidence:
    """The postings of the query's terms with the value of each, and the items whose cosine is known.

    Arrays by an item's number are `size` long.
    """

    postings: Sequence[PostingList]
    term_values: Floats
    numbers: Numbers
    nearness: Floats
    size: int

    @classmethod
    def collect(
        cls, postings: Sequence[PostingList], items: int, numbers: Numbers, nearness: Floats
    ) -> "SearchEvidence":
        values = np.array([term_value(posting.held_by, items) for posting in postings], np.float32)
        every = [numbers, *(posting.numbers for posting in postings)]
        size = 1 + max((int(some.max()) for some in every if len(some)), default=0)
        return cls(postings, values, numbers, nearness, size)

    def likeliest(self, count: int) -> Numbers:
        """The numbers of the `count` best items by terms and of the `count` nearest ones."""
        scores = np.zeros(self.size, np.float32)
        for posting, value in zip(self.postings, self.term_values, strict=True):
            scores[posting.numbers] += posting.weights * value
        # An item is in the postings of each of its terms, so it may occur as often as there are terms.
        held = np.concatenate([np.empty(0, np.int32), *(posting.numbers for posting in self.postings)])
        often = np.unique(held[_top_places(scores[held], count * len(self.postings))])
        by_words = often[_top_places(scores[often], count)]
        return np.union1d(by_words, self.numbers[_top_places(self.nearness, count)]).astype(np.int32)

    @property
    def total_value(self) -> float:
        """The value of all terms for an item that has each of them."""
        return float(self.term_values.sum()) * mention_weight()

    @property
    def max_items(self) -> int:
        """An upper bound of the number of items of either kind."""
        return max(sum(len(posting.numbers) for posting in self.postings), len(self.numbers))

    def look_up(self, numbers: Numbers) -> tuple[Floats, Floats]:
        """For these items: the values of each term (a row for each), and the cosines (NaN if unknown)."""
        places = np.full(self.size, -1, np.int32)
        inside = np.flatnonzero(numbers < self.size)
        places[numbers[inside]] = inside
        words = np.zeros((len(self.postings), len(numbers)), np.float32)
        for row, posting, value in zip(words, self.postings, self.term_values, strict=True):
            at = places[posting.numbers]
            row[at[at >= 0]] = posting.weights[at >= 0] * value
        nearness = np.full(len(numbers), np.nan, np.float32)
        at = places[self.numbers]
        nearness[at[at >= 0]] = self.nearness[at >= 0]
        return words, nearness


def _top_places(scores: Floats, count: int) -> NDArray[np.intp]:
    return np.arange(len(scores)) if len(scores) <= count else np.argpartition(-scores, count - 1)[:count]


# This many of the best items by terms, and as many by meaning, are ranked; more if too few pass the filters.
CANDIDATE_DEPTHS = (32, 512, 4096)
MAX_QUERY_TERMS = 32


@dataclass(frozen=True, slots=True)
class PreparedSearch:
    """A query with its terms, each with its word, and its vector with the number of the model that made it.

    Without a vector, the search uses terms alone.
    """

    query: ItemSearch
    words: Mapping[str, str]
    vector: Floats | None
    model: int = 0

    def run(self, transaction: PersonTransaction) -> list[ItemHit]:
        """Search, the best hits first."""
        conditions = search_conditions(transaction, self.query)
        items, last = fetch_index_counts(transaction)
        if not items:
            return []
        evidence = self._collect_evidence(transaction, items, last)
        few = fetch_few_numbers(transaction, self.query, items)
        best: list[RankedItem] = []
        if few is not None:
            best = self._rank(transaction, evidence, np.array(few, np.int32), conditions)
        else:
            for depth in (max(depth, self.query.limit) for depth in CANDIDATE_DEPTHS):
                best = self._rank(transaction, evidence, evidence.likeliest(depth), conditions)
                if len(best) >= self.query.limit or depth >= evidence.max_items:
                    break
        found = fetch_items(transaction, [one.n for one in best])
        words = [self.words[posting.term] for posting in evidence.postings]
        return [
            ItemHit(
                item=found[one.n][0],
                text=found[one.n][1],
                score=relevance_score(one.evidence, evidence.total_value, by_meaning=len(evidence.numbers) > 0),
                words=[words[place] for place in one.own_terms],
                meaning=None if one.nearness is None else round(min(1.0, max(0.0, one.nearness)), 3),
                beside=[words[place] for place in one.neighbour_terms],
            )
            for one in best
            # PostgreSQL may show an item as deleted that the statement before still saw.
            if one.n in found
        ]

    def _collect_evidence(self, transaction: PersonTransaction, items: int, last: int) -> SearchEvidence:
        held = find_postings(transaction, list(self.words), last)
        if self.vector is None:
            return SearchEvidence.collect(held, items, np.empty(0, np.int32), np.empty(0, np.float32))
        near = nearest_vectors(transaction, self.model, self.vector, items)
        return SearchEvidence.collect(held, items, near.numbers, near.cosines(self.vector))

    def _rank(
        self,
        transaction: PersonTransaction,
        evidence: SearchEvidence,
        numbers: Numbers,
        conditions: Sequence[Condition],
    ) -> list[RankedItem]:
        """The best of these items and their neighbours that pass the filters and have any evidence."""
        around = np.unique(np.concatenate([numbers, *(numbers + step for step in NEIGHBOUR_SHARES)]))
        candidates = fetch_candidates(transaction, around.tolist(), conditions)
        words, nearness = evidence.look_up(candidates.numbers)
        missing = candidates.numbers[np.isnan(nearness)]
        if self.vector is not None and len(evidence.numbers) and len(missing):
            # These items are in cells that were not read.
            alone = fetch_vectors(transaction, self.model, missing.tolist(), len(self.vector))
            nearness[np.searchsorted(candidates.numbers, alone.numbers)] = alone.cosines(self.vector)
        ranked = rank_items(candidates, words, nearness, transaction.now)
        told = (one for one in ranked if one.own_terms or one.neighbour_terms or (one.nearness or 0.0) >= MIN_NEARNESS)
        return list(islice(told, self.query.limit))


MAX_QUERY = 2000
EMBED_SECONDS = 5
# A scope that allows reading one kind of items allows searching it; the timeline has all kinds.
RIGHTS_BY_TYPE = {
    frozenset({ItemType.MEMORY}): rights.MEMORIES_READ,
    frozenset({ItemType.TASK}): rights.TASKS_READ,
    frozenset({ItemType.ACTIVITY}): rights.ACTIVITIES_READ,
}

log = structlog.get_logger("frontdesk.memory")


@dataclass(frozen=True, slots=True)
class FoundMemories:
    """A page of the memories that a search found, and the person's time zone."""

    page: RecordPage[Memory]
    zone: ZoneInfo


@dataclass(frozen=True, slots=True)
class FoundItems:
    """The hits of a search, the items around each hit by the id of its item, and the person's time zone."""

    hits: Sequence[ItemHit]
    context: Mapping[str, Sequence[ContextItem]]
    zone: ZoneInfo


class ItemSearchService:
    """Searches a person's records. Each method returns at most `query.limit` hits, the best first."""

    def __init__(self, records: PersonDatabase, embedder: Embedder | None) -> None:
        self._records = records
        self._embedder = embedder

    async def search(self, scope: PersonScope, query: ItemSearch) -> list[ItemHit]:
        return await self._run(scope, query, lambda _mine, hits: hits)

    async def search_memories(self, scope: PersonScope, query: ItemSearch) -> list[tuple[ItemHit, Memory]]:
        """The hits that are memories, each with its memory."""

        def read(transaction: PersonTransaction, hits: Sequence[ItemHit]) -> list[tuple[ItemHit, Memory]]:
            found = fetch_memories(transaction, [hit.item.id for hit in hits])
            return [(hit, found[hit.item.id]) for hit in hits if hit.item.id in found]

        return await self._run(scope, query, read)

    async def list_memories(
        self, scope: PersonScope, query: ItemSearch, filters: MemoryFilter, *, best_first: bool
    ) -> FoundMemories:
        """The found memories that pass a filter: the filter's page of them, in its order."""

        def read(transaction: PersonTransaction, hits: Sequence[ItemHit]) -> FoundMemories:
            ids = [hit.item.id for hit in hits]
            found = list_memories(transaction, replace(filters, among=ids, limit=MAX_SEARCH_LIMIT, offset=0))
            places = {item_id: place for place, item_id in enumerate(ids)}
            items = sorted(found.items, key=lambda memory: places[memory.id]) if best_first else found.items
            shown = items[filters.offset : filters.offset + filters.limit]
            return FoundMemories(RecordPage(shown, found.total, filters.offset), transaction.zone)

        return await self._run(scope, query, read)

    async def search_with_context(self, scope: PersonScope, query: ItemSearch, depth: int) -> FoundItems:
        """The hits, each with up to `depth` items before it, after it, and related to it."""

        def read(transaction: PersonTransaction, hits: Sequence[ItemHit]) -> FoundItems:
            return FoundItems(hits, fetch_context(transaction, [hit.item.id for hit in hits], depth), transaction.zone)

        return await self._run(scope, query, read, rights.TIMELINE_READ)

    async def _run(
        self,
        scope: PersonScope,
        query: ItemSearch,
        read: Callable[[PersonTransaction, list[ItemHit]], T],
        right: str | None = None,
    ) -> T:
        """Embed the query; then search and `read` the data of the hits, in one transaction."""
        scope.require(RIGHTS_BY_TYPE.get(query.types or frozenset(), rights.TIMELINE_READ))
        if right is not None:
            scope.require(right)
        text = query.text.strip()[:MAX_QUERY]
        if not text:
            raise Invalid("Say what to look for: the query is empty")
        if not 1 <= query.limit <= MAX_SEARCH_LIMIT:
            raise Invalid(f"limit must be from 1 to {MAX_SEARCH_LIMIT}")
        words: dict[str, str] = {}
        for term, word in terms(text) if query.mode is not SearchMode.SEMANTIC else ():
            words.setdefault(term[:TERM_LENGTH], word)
        words = dict(islice(words.items(), MAX_QUERY_TERMS))
        vector = await self._embed_query(text, query.mode)
        model = model_number(self._embedder.name) if self._embedder is not None else 0
        prepared = PreparedSearch(query, words, vector, model)
        return await self._records.read(scope, lambda transaction: read(transaction, prepared.run(transaction)))

    async def _embed_query(self, text: str, mode: SearchMode) -> Floats | None:
        """The text as a vector; None if the search must use terms alone."""
        if mode is SearchMode.FULL_TEXT or self._embedder is None:
            return None
        try:
            with anyio.fail_after(EMBED_SECONDS):
                return (await self._embedder.embed([text]))[0]
        except (Unavailable, TimeoutError) as error:
            log.warning("recall_without_meaning", error=str(error) or f"no answer in {EMBED_SECONDS} s")
            return None
