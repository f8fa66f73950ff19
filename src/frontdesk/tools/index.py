"""Searches the tools in memory: adds up terms, cosines, past use and names, and ranks the tools.

A score from 0 to 100 is the chance that a tool is the one that the query asks for, by logistic regression over the
evidence. The point of even odds depends only on the length of the query and the number of tools: among many tools, some
look alike by chance. So the order by score is the order by evidence, and the best of only weak matches scores low.
"""

import math
import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, islice, pairwise, takewhile
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from frontdesk.search.bm25 import add_evidence
from frontdesk.search.vectors import Floats, Mask
from frontdesk.search.words import terms
from frontdesk.tools.index_segments import (
    TOOL_BM25,
    IndexHit,
    IndexQuery,
    IndexSegment,
    ToolDocument,
    merge_segments,
)

# Evidence is in units of cosine: the weights of one term, and of a certain past use.
TERMS_FACTOR = 0.05
PAST_USE_FACTOR = 1.0
# By chance alone, one of the clauses is often nearer to a tool than the whole query.
CLAUSE_FACTOR = 0.9
# With fewer tools, the odds are those of this many: a single tool must match as well as one of many.
FEWEST_TOOLS = 20
EXACT_MATCH_ODDS = 1000.0
HIGHEST_SCORE = 99.9
ODDS_DECIMALS = 4


@dataclass(frozen=True, slots=True)
class LogisticModel:
    """Turns evidence into log odds. Even odds need `base`, and more for each doubling of terms and of tools."""

    steepness: float
    base: float
    per_term_doubling: float
    per_tool_doubling: float

    def log_odds(self, evidence: Floats, terms: int, tools: int) -> Floats:
        """Compute the log odds; `evidence` is overwritten."""
        even = (
            self.base
            + self.per_term_doubling * math.log1p(terms)
            + self.per_tool_doubling * math.log(max(tools, FEWEST_TOOLS))
        )
        evidence -= np.float32(even)
        evidence *= np.float32(self.steepness)
        return evidence


COSINE_MODEL = LogisticModel(steepness=9.0, base=0.22, per_term_doubling=0.05, per_tool_doubling=0.037)
# For tools without a vector.
TERMS_MODEL = LogisticModel(steepness=0.8, base=-0.2, per_term_doubling=0.7, per_tool_doubling=0.5)


def score_from_odds(odds: float) -> float:
    """Log odds as a score. Only a tool that the query names gets 100."""
    return 100.0 if odds >= EXACT_MATCH_ODDS / 2 else min(HIGHEST_SCORE, 100 / (1 + math.exp(-max(odds, -50.0))))


# Words that can only be names: `create_issue`, `github::create_issue`, `createIssue`. `GitHub` does not count, because
# people also write it without meaning a tool.
NAME_LIKE = re.compile(r"[\w.:/-]*(?:_|::)[\w.:/-]*\w|\b[a-z]+[A-Z]\w+")
QUOTE_CHARACTERS = " \t\r\n\"'`"


@dataclass(frozen=True, slots=True)
class IndexRows:
    """The rows of all segments under one numbering."""

    segments: Sequence[IndexSegment]
    starts: list[int]

    @classmethod
    def of(cls, segments: Sequence[IndexSegment]) -> "IndexRows":
        return cls(segments, list(accumulate((len(segment.ids) for segment in segments), initial=0)))

    def __len__(self) -> int:
        return self.starts[-1]

    @property
    def living(self) -> int:
        return sum(segment.living for segment in self.segments)

    def __iter__(self) -> Iterator[tuple[IndexSegment, slice]]:
        return zip(self.segments, (slice(start, end) for start, end in pairwise(self.starts)), strict=True)

    def place(self, row: int) -> tuple[IndexSegment, int]:
        number = bisect_right(self.starts, row) - 1
        return self.segments[number], row - self.starts[number]

    def id(self, row: int) -> str:
        segment, at = self.place(row)
        return segment.ids[at]

    def find(self, tool_id: str) -> int | None:
        for segment, at in self:
            row = segment.row(tool_id)
            if row is not None:
                return at.start + row
        return None


@dataclass(frozen=True, slots=True)
class SharedTerms:
    """The rarity of each term of a query, and for each row the sum of weight times rarity."""

    rarities: dict[str, float]
    weights: Floats


def select_rows(rows: IndexRows, query: IndexQuery) -> Mask:
    """The live rows of the query's servers and kinds."""
    selected: list[Mask] = []
    for segment in rows.segments:
        found = segment.live
        if query.servers is not None:
            found = found & segment.servers.among(query.servers)
        if query.kinds is not None:
            found = found & segment.kinds.among(query.kinds)
        selected.append(found)
    return np.concatenate(selected)


def collect_shared_terms(rows: IndexRows, text: str) -> SharedTerms:
    tools = rows.living
    parts = [(segment, at, None if segment.living == len(segment.ids) else segment.live) for segment, at in rows]
    rarities: dict[str, float] = {}
    weights = np.zeros(len(rows), np.float32)
    for term in dict.fromkeys(term for term, _ in terms(text)):
        held_by = sum(segment.words.count(term, live) for segment, _, live in parts)
        rarities[term] = TOOL_BM25.rarity(held_by, tools)
        if held_by:
            for segment, at, _ in parts:
                segment.words.add(weights[at], term, rarities[term])
    return SharedTerms(rarities, weights)


def find_rows_with_vector(rows: IndexRows) -> Mask | None:
    """The rows that have a vector; None if no row has one."""
    if all(segment.meaning is None for segment in rows.segments):
        return None
    return np.concatenate(
        [
            np.zeros(len(segment.ids), np.bool_) if segment.meaning is None else segment.meaning.ready
            for segment in rows.segments
        ]
    )


def compute_cosines(rows: IndexRows, vectors: Floats, among: NDArray[np.intp] | None = None) -> Floats:
    """The cosine of each row with the nearest of the vectors. With `among`, only for those rows."""
    found = np.zeros(len(rows) if among is None else len(among), np.float32)
    for segment, at in rows:
        if segment.meaning is None:
            continue
        if among is None:
            found[at] = segment.meaning.cosines(vectors).max(axis=0)
        else:
            here = (among >= at.start) & (among < at.stop)
            found[here] = segment.meaning.cosines_of_rows(among[here] - at.start, vectors).max(axis=0)
    return found


def find_named_rows(rows: IndexRows, text: str) -> frozenset[int]:
    """The rows of tools that the query names, alone or among other words."""
    called = {text.strip(QUOTE_CHARACTERS), *NAME_LIKE.findall(text)}
    return frozenset(
        at.start + row
        for segment, at in rows
        for name in called
        for row in segment.keys.find(name).tolist()
        if segment.live[row]
    )


# Each clause of a query costs a pass over all tools. With more than MANY_ROWS, only the most likely rows are compared.
MANY_ROWS, LIKELIEST_ROWS = 20_000, 3_000
FIRST_SORTED = 64
FIRST_TRIED = 256
SHOWN_WORDS = 8


@dataclass(frozen=True, slots=True)
class Ranking:
    """The log odds of every row, what they were computed from, and which rows are candidates."""

    rows: IndexRows
    words: SharedTerms
    cosines: Floats | None
    past: dict[int, float]
    exact: frozenset[int]
    odds: Floats
    candidates: Mask

    def score(self, row: int) -> float:
        return round(score_from_odds(float(self.odds[row])), 2)

    def hit(self, row: int) -> IndexHit:
        near = 0.0 if self.cosines is None else float(self.cosines[row])
        return IndexHit(
            id=self.rows.id(row),
            score=self.score(row),
            words=self._shared(row),
            meaning=round(100 * min(1.0, max(0.0, near)), 1),
            past_use=round(100 * self.past.get(row, 0.0), 1),
            exact=row in self.exact,
        )

    def _shared(self, row: int) -> tuple[str, ...]:
        """The words that the tool shares with the query, the most significant first."""
        segment, at = self.rows.place(row)
        weights = {term: rarity * segment.words.weight(term, at) for term, rarity in self.words.rarities.items()}
        best = sorted((term for term in weights if weights[term] > 0), key=lambda term: -weights[term])
        return tuple(segment.words.word(term) for term in best[:SHOWN_WORDS])

    def best_first(self) -> Iterator[int]:
        """The candidates, the best first, equal ones by id. It sorts only as many rows as the caller takes."""
        left, size = np.flatnonzero(self.candidates), FIRST_SORTED
        while len(left):
            odds = self.odds[left]
            bar = np.partition(odds, len(odds) - size)[len(odds) - size] if size < len(odds) else -np.inf
            yield from self._in_order(left[odds >= bar])
            left, size = left[odds < bar], size * 4

    def _in_order(self, rows: NDArray[np.intp]) -> Iterator[int]:
        rows = rows[np.argsort(-self.odds[rows], kind="stable")]
        odds = self.odds[rows]
        steps: list[int] = np.flatnonzero(odds[1:] != odds[:-1]).tolist()
        for start, end in pairwise([0, *(step + 1 for step in steps), len(rows)]):
            level: list[int] = rows[start:end].tolist()
            yield from level if len(level) == 1 else sorted(level, key=self.rows.id)


def rank_tools(segments: Sequence[IndexSegment], query: IndexQuery) -> list[IndexHit]:
    """The best tools for a query, among those that it allows."""
    if not segments or query.limit < 1:
        return []
    ranking = weigh_rows(IndexRows.of(segments), query)
    rows = ranking.best_first() if query.allowed is None else _allowed_rows(ranking, query.allowed)
    reaching = takewhile(lambda row: ranking.score(row) >= query.min_score, rows)
    return [ranking.hit(row) for row in islice(reaching, query.limit)]


def _allowed_rows(ranking: Ranking, allowed: Callable[[str], bool]) -> Iterator[int]:
    """The allowed rows, the best first. Usually the first rows are allowed; if not, all rows are checked."""
    first = list(islice(ranking.best_first(), FIRST_TRIED))
    yield from (row for row in first if allowed(ranking.rows.id(row)))
    if len(first) == FIRST_TRIED:
        left = ranking.candidates.copy()
        left[first] = False
        for segment, at in ranking.rows:
            rows: list[int] = np.flatnonzero(left[at]).tolist()
            left[at][rows] = [allowed(segment.ids[row]) for row in rows]
        yield from replace(ranking, candidates=left).best_first()


def weigh_rows(rows: IndexRows, query: IndexQuery) -> Ranking:
    """Collect all evidence for each row, and turn it into log odds."""
    words, exact = collect_shared_terms(rows, query.text), find_named_rows(rows, query.text)
    placed = ((rows.find(tool_id), strength) for tool_id, strength in (query.past or {}).items())
    past = {row: strength for row, strength in placed if row is not None}
    cosines, odds, candidates = _compute_odds(rows, words, query)
    for row, strength in past.items():
        odds[row] += COSINE_MODEL.steepness * PAST_USE_FACTOR * strength
    odds[list(exact)] += EXACT_MATCH_ODDS
    candidates[[*past, *exact]] = True
    # The last digits of float sums depend on the position of a row; rounding keeps equal rows equal.
    np.round(odds, ODDS_DECIMALS, out=odds)
    return Ranking(rows, words, cosines, past, exact, odds, candidates & select_rows(rows, query))


def _compute_odds(rows: IndexRows, words: SharedTerms, query: IndexQuery) -> tuple[Floats | None, Floats, Mask]:
    """The cosines, the log odds by terms and cosines, and the rows that have any evidence."""
    size = len(words.rarities), rows.living
    ready = None if query.vectors is None else find_rows_with_vector(rows)
    if query.vectors is None or ready is None:
        return None, TERMS_MODEL.log_odds(words.weights.copy(), *size), words.weights > 0
    cosines = _best_cosines(rows, words, query.vectors)
    odds = COSINE_MODEL.log_odds(add_evidence(words.weights, cosines, TERMS_FACTOR), *size)
    if not ready.all():
        cosines[~ready] = 0
        odds = np.where(ready, odds, TERMS_MODEL.log_odds(words.weights.copy(), *size))
    return cosines, odds, ready | (words.weights > 0)


def _best_cosines(rows: IndexRows, words: SharedTerms, vectors: Floats) -> Floats:
    """The cosine with the whole query, or with its nearest clause if that is larger."""
    cosines = compute_cosines(rows, vectors[:1])
    if len(vectors) == 1:
        return cosines
    if len(rows) <= MANY_ROWS:
        return np.maximum(cosines, np.float32(CLAUSE_FACTOR) * compute_cosines(rows, vectors[1:]))
    evidence = add_evidence(words.weights, cosines, TERMS_FACTOR)
    likely = np.argpartition(evidence, -LIKELIEST_ROWS)[-LIKELIEST_ROWS:]
    clauses = np.float32(CLAUSE_FACTOR) * compute_cosines(rows, vectors[1:], likely)
    cosines[likely] = np.maximum(cosines[likely], clauses)
    return cosines


class ToolIndex:
    """The searchable tools. It is thread-safe: a search uses the tools from the moment it started."""

    def __init__(self) -> None:
        self._segments: tuple[IndexSegment, ...] = ()
        self._writing = Lock()

    def __len__(self) -> int:
        return sum(segment.living for segment in self._segments)

    def __contains__(self, tool_id: str) -> bool:
        return any(segment.row(tool_id) is not None for segment in self._segments)

    def ids(self) -> list[str]:
        """The ids of all tools."""
        return [tool_id for segment in self._segments for tool_id in segment.ids_of(segment.live)]

    def search(self, query: IndexQuery) -> list[IndexHit]:
        """The best tools first, at most `query.limit`, none below `query.min_score`."""
        return rank_tools(self._segments, query)

    def put(self, docs: Iterable[ToolDocument]) -> None:
        """Add tools, or replace tools with the same id. An unchanged tool keeps its vector."""
        wanted = {doc.id: doc for doc in docs}
        with self._writing:
            changed = [doc for doc in wanted.values() if not self._holds(doc)]
            if changed:
                kept = _remove_rows(self._segments, _locate_tools(self._segments, [doc.id for doc in changed]))
                self._segments = merge_segments([*kept, IndexSegment.of(changed)])

    def remove(self, ids: Iterable[str]) -> None:
        """Remove tools. Unknown ids are ignored."""
        with self._writing:
            self._segments = merge_segments(_remove_rows(self._segments, _locate_tools(self._segments, list(ids))))

    def set_vectors(self, ids: Sequence[str], vectors: NDArray[np.float32]) -> None:
        """Set the vectors of tools, one row each, of length 1. Unknown ids are ignored."""
        with self._writing:
            segments = list(self._segments)
            if any(segment.dimensions not in {None, vectors.shape[1]} for segment in segments):
                raise ValueError("These vectors are of another model: drop those that are there first")
            for number, rows in _locate_tools(segments, ids).items():
                found = vectors[[place for _, place in rows]]
                segments[number] = segments[number].with_vectors([row for row, _ in rows], found)
            self._segments = tuple(segments)

    @property
    def unread(self) -> int:
        """The number of tools without a vector, which are found by words alone."""
        return sum(int(np.count_nonzero(segment.without_vector)) for segment in self._segments)

    def missing_vectors(self) -> list[str]:
        """The ids of the tools without a vector."""
        return [tool_id for segment in self._segments for tool_id in segment.ids_of(segment.without_vector)]

    def _holds(self, doc: ToolDocument) -> bool:
        for segment in self._segments:
            row = segment.row(doc.id)
            if row is not None:
                return bool(segment.digests[row] == hash(doc))
        return False


def _locate_tools(segments: Sequence[IndexSegment], ids: Sequence[str]) -> Mapping[int, list[tuple[int, int]]]:
    """For each segment, the rows of the known tools, each with the tool's position in `ids`."""
    found: dict[int, list[tuple[int, int]]] = {}
    for place, tool_id in enumerate(ids):
        for number, segment in enumerate(segments):
            row = segment.row(tool_id)
            if row is not None:
                found.setdefault(number, []).append((row, place))
                break
    return found


def _remove_rows(segments: Sequence[IndexSegment], places: Mapping[int, list[tuple[int, int]]]) -> list[IndexSegment]:
    return [
        segment.without([row for row, _ in places[number]]) if number in places else segment
        for number, segment in enumerate(segments)
    ]
