"""Searches the tools in memory: collects terms, cosines, past use and names, and ranks the tools."""

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, islice, pairwise, takewhile
from threading import Lock
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from frontdesk.search.bm25 import Mask, term_rarity
from frontdesk.search.fusion import (
    CLAUSE_FACTOR,
    EXACT_MATCH_ODDS,
    ODDS_DECIMALS,
    TERMS_FACTOR,
    odds_by_terms,
    odds_of_past_use,
    odds_with_cosines,
    score_from_odds,
)
from frontdesk.search.words import terms
from frontdesk.tools.index_segments import IndexHit, IndexQuery, IndexSegment, ToolDocument, merge_segments

Floats: TypeAlias = NDArray[np.float32]

# A word of a query that is written as only names are: `create_issue`, `github::create_issue`, `createIssue`; `GitHub`
# is written so by people who mean no tool.
NAME_LIKE = re.compile(r"[\w.:/-]*(?:_|::)[\w.:/-]*\w|\b[a-z]+[A-Z]\w+")
QUOTE_CHARACTERS = " \t\r\n\"'`"


@dataclass(frozen=True, slots=True)
class IndexRows:
    """The rows of all segments, numbered through."""

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
    """What the terms of a query tell, and how much of that each row holds."""

    rarities: dict[str, float]
    weights: Floats


def select_rows(rows: IndexRows, query: IndexQuery) -> Mask:
    """The rows that the query may have."""
    return np.concatenate([_select_segment_rows(segment, query) for segment in rows.segments])


def _select_segment_rows(segment: IndexSegment, query: IndexQuery) -> Mask:
    found = segment.live
    if query.servers is not None:
        found = found & segment.servers.among(query.servers)
    if query.kinds is not None:
        found = found & segment.kinds.among(query.kinds)
    return found


def collect_shared_terms(rows: IndexRows, text: str) -> SharedTerms:
    tools = rows.living
    parts = [(segment, at, None if segment.living == len(segment.ids) else segment.live) for segment, at in rows]
    told: dict[str, float] = {}
    held = np.zeros(len(rows), np.float32)
    for term in dict.fromkeys(term for term, _ in terms(text)):
        held_by = sum(segment.words.count(term, live) for segment, _, live in parts)
        told[term] = term_rarity(held_by, tools)
        if held_by:
            for segment, at, _ in parts:
                segment.words.add(held[at], term, told[term])
    return SharedTerms(told, held)


def find_rows_with_vector(rows: IndexRows) -> Mask | None:
    """The rows whose vectors are there; None where none is."""
    if all(segment.meaning is None for segment in rows.segments):
        return None
    return np.concatenate(
        [
            np.zeros(len(segment.ids), np.bool_) if segment.meaning is None else segment.meaning.ready
            for segment in rows.segments
        ]
    )


def compute_cosines(rows: IndexRows, vectors: Floats, among: NDArray[np.intp] | None = None) -> Floats:
    """How near each row is to the nearest of the vectors, -1 to 1; with `among`, for those rows alone."""
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


def collect_past_use(rows: IndexRows, query: IndexQuery) -> dict[int, float]:
    placed = ((rows.find(tool_id), strength) for tool_id, strength in (query.past or {}).items())
    return {row: strength for row, strength in placed if row is not None}


def find_named_rows(rows: IndexRows, text: str) -> frozenset[int]:
    """The rows of tools that the query calls by name, alone or among other words."""
    called = {text.strip(QUOTE_CHARACTERS), *NAME_LIKE.findall(text)}
    return frozenset(
        at.start + row
        for segment, at in rows
        for name in called
        for row in segment.keys.find(name).tolist()
        if segment.live[row]
    )


# Each clause of a query costs a pass over all tools: of more than MANY only the likeliest are held against them.
MANY_ROWS, LIKELIEST_ROWS = 20_000, 3_000
FIRST_SORTED = 64
FIRST_TRIED = 256
SHOWN_WORDS = 8


@dataclass(frozen=True, slots=True)
class Ranking:
    """Where every row stands: its log odds, and whether it is in the running."""

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
        """The words that the tool shares with the query, those first that tell most."""
        segment, at = self.rows.place(row)
        weights = {term: told * segment.words.weight(term, at) for term, told in self.words.rarities.items()}
        best = sorted((term for term in weights if weights[term] > 0), key=lambda term: -weights[term])
        return tuple(segment.words.word(term) for term in best[:SHOWN_WORDS])

    def best_first(self) -> Iterator[int]:
        """The rows in the running from the best on, by id where two are level; sorts no more than are asked for."""
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
    """The best tools that the query may have."""
    if not segments or query.limit < 1:
        return []
    standing = weigh_rows(IndexRows.of(segments), query)
    rows = standing.best_first() if query.allowed is None else _allowed_rows(standing, query.allowed)
    reaching = takewhile(lambda row: standing.score(row) >= query.min_score, rows)
    return [standing.hit(row) for row in islice(reaching, query.limit)]


def _allowed_rows(standing: Ranking, allowed: Callable[[str], bool]) -> Iterator[int]:
    """The rows that are allowed from the best on: mostly the first are, and where they are not, all are asked about."""
    first = list(islice(standing.best_first(), FIRST_TRIED))
    yield from (row for row in first if allowed(standing.rows.id(row)))
    if len(first) == FIRST_TRIED:
        left = standing.candidates.copy()
        left[first] = False
        for segment, at in standing.rows:
            rows: list[int] = np.flatnonzero(left[at]).tolist()
            left[at][rows] = [allowed(segment.ids[row]) for row in rows]
        yield from replace(standing, candidates=left).best_first()


def weigh_rows(rows: IndexRows, query: IndexQuery) -> Ranking:
    """All that speaks for each row, put together."""
    words = collect_shared_terms(rows, query.text)
    past, exact = collect_past_use(rows, query), find_named_rows(rows, query.text)
    near, odds, running = _compute_odds(rows, words, query)
    for row, strength in past.items():
        odds[row] += odds_of_past_use(strength)
    odds[list(exact)] += EXACT_MATCH_ODDS
    running[[*past, *exact]] = True
    # Rows that are level stay so wherever they stand: sums of floats depend on that in their last digits.
    np.round(odds, ODDS_DECIMALS, out=odds)
    return Ranking(rows, words, near, past, exact, odds, running & select_rows(rows, query))


def _compute_odds(rows: IndexRows, words: SharedTerms, query: IndexQuery) -> tuple[Floats | None, Floats, Mask]:
    size = len(words.rarities), rows.living
    ready = None if query.vectors is None else find_rows_with_vector(rows)
    if query.vectors is None or ready is None:
        return None, odds_by_terms(words.weights, *size), words.weights > 0
    near = _best_cosines(rows, words, query.vectors)
    odds = odds_with_cosines(near, words.weights, *size)
    if not ready.all():
        near[~ready] = 0
        odds = np.where(ready, odds, odds_by_terms(words.weights, *size))
    return near, odds, ready | (words.weights > 0)


def _best_cosines(rows: IndexRows, words: SharedTerms, vectors: Floats) -> Floats:
    """The nearness of the whole query, or of its nearest clause where that is nearer."""
    near = compute_cosines(rows, vectors[:1])
    if len(vectors) == 1:
        return near
    if len(rows) <= MANY_ROWS:
        return np.maximum(near, np.float32(CLAUSE_FACTOR) * compute_cosines(rows, vectors[1:]))
    likely = np.argpartition(near + np.float32(TERMS_FACTOR) * words.weights, -LIKELIEST_ROWS)[-LIKELIEST_ROWS:]
    clauses = np.float32(CLAUSE_FACTOR) * compute_cosines(rows, vectors[1:], likely)
    near[likely] = np.maximum(near[likely], clauses)
    return near


class ToolIndex:
    """Safe to use from any thread: a search works on the tools as they stood when it began, and waits for nobody."""

    def __init__(self) -> None:
        self._segments: tuple[IndexSegment, ...] = ()
        self._writing = Lock()

    def __len__(self) -> int:
        return sum(segment.living for segment in self._segments)

    def __contains__(self, tool_id: str) -> bool:
        return any(segment.row(tool_id) is not None for segment in self._segments)

    def ids(self) -> list[str]:
        """All that can be found."""
        return [tool_id for segment in self._segments for tool_id in segment.living_ids()]

    def search(self, query: IndexQuery) -> list[IndexHit]:
        """The best first, at most `query.limit`, none below `query.min_score`."""
        return rank_tools(self._segments, query)

    def put(self, docs: Iterable[ToolDocument]) -> None:
        """Add tools, or replace those with the same id. One that did not change keeps its vector."""
        wanted = {doc.id: doc for doc in docs}
        with self._writing:
            changed = [doc for doc in wanted.values() if not self._holds(doc)]
            if changed:
                kept = _remove_rows(self._segments, _locate_tools(self._segments, [doc.id for doc in changed]))
                self._segments = merge_segments([*kept, IndexSegment.of(changed)])

    def remove(self, ids: Iterable[str]) -> None:
        """Take tools out; an id that is not there is passed over."""
        with self._writing:
            self._segments = merge_segments(_remove_rows(self._segments, _locate_tools(self._segments, list(ids))))

    def set_vectors(self, ids: Sequence[str], vectors: NDArray[np.float32]) -> None:
        """What the tools mean, a row each, of length 1; an id that is not there is passed over."""
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
        """How many tools are found by their words alone so far."""
        return sum(segment.unread for segment in self._segments)

    def missing_vectors(self) -> list[str]:
        """The tools that are found by their words alone so far."""
        return [tool_id for segment in self._segments for tool_id in segment.ids_without_vector()]

    def _holds(self, doc: ToolDocument) -> bool:
        for segment in self._segments:
            row = segment.row(doc.id)
            if row is not None:
                return bool(segment.digests[row] == hash(doc))
        return False


def _locate_tools(segments: Sequence[IndexSegment], ids: Sequence[str]) -> Mapping[int, list[tuple[int, int]]]:
    """By segment: the rows of the tools that are there, each with the tool's place among `ids`."""
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
