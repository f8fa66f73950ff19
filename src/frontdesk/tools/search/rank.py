"""Puts the tools of an index in order for a query, and says why."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice, pairwise, takewhile

import numpy as np
from numpy.typing import NDArray

from frontdesk.tools.search import evidence, score
from frontdesk.tools.search.evidence import Floats, Rows, Words
from frontdesk.tools.search.model import Hit, Query
from frontdesk.tools.search.postings import Mask
from frontdesk.tools.search.segment import Segment

# Each clause of a query costs a pass over all tools: of more than MANY only the likeliest are held against them.
MANY, LIKELIEST = 20_000, 3_000
FIRST = 64
TRIED = 256
SHOWN_WORDS = 8


@dataclass(frozen=True, slots=True)
class Standing:
    """Where every row stands: its log odds, and whether it is in the running."""

    rows: Rows
    words: Words
    near: Floats | None
    past: dict[int, float]
    exact: frozenset[int]
    odds: Floats
    running: Mask

    def score(self, row: int) -> float:
        return round(score.score(float(self.odds[row])), 2)

    def hit(self, row: int) -> Hit:
        near = 0.0 if self.near is None else float(self.near[row])
        return Hit(
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
        weights = {term: told * segment.words.weight(term, at) for term, told in self.words.told.items()}
        best = sorted((term for term in weights if weights[term] > 0), key=lambda term: -weights[term])
        return tuple(segment.words.word(term) for term in best[:SHOWN_WORDS])

    def downwards(self) -> Iterator[int]:
        """The rows in the running from the best on, by id where two are level; sorts no more than are asked for."""
        left, size = np.flatnonzero(self.running), FIRST
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


def ranked(segments: Sequence[Segment], query: Query) -> list[Hit]:
    """The best tools that the query may have."""
    if not segments or query.limit < 1:
        return []
    standing = weighed(Rows.of(segments), query)
    rows = standing.downwards() if query.allowed is None else _allowed(standing, query.allowed)
    reaching = takewhile(lambda row: standing.score(row) >= query.min_score, rows)
    return [standing.hit(row) for row in islice(reaching, query.limit)]


def _allowed(standing: Standing, allowed: Callable[[str], bool]) -> Iterator[int]:
    """The rows that are allowed from the best on: mostly the first are, and where they are not, all are asked about."""
    first = list(islice(standing.downwards(), TRIED))
    yield from (row for row in first if allowed(standing.rows.id(row)))
    if len(first) == TRIED:
        left = standing.running.copy()
        left[first] = False
        for segment, at in standing.rows:
            rows: list[int] = np.flatnonzero(left[at]).tolist()
            left[at][rows] = [allowed(segment.ids[row]) for row in rows]
        yield from replace(standing, running=left).downwards()


def weighed(rows: Rows, query: Query) -> Standing:
    """All that speaks for each row, put together."""
    words = evidence.shared_words(rows, query.text)
    past, exact = evidence.past_use(rows, query), evidence.named(rows, query.text)
    near, odds, running = _odds(rows, words, query)
    for row, strength in past.items():
        odds[row] += score.by_past(strength)
    odds[list(exact)] += score.EXACT
    running[[*past, *exact]] = True
    # Rows that are level stay so wherever they stand: sums of floats depend on that in their last digits.
    np.round(odds, score.DECIMALS, out=odds)
    return Standing(rows, words, near, past, exact, odds, running & evidence.open_to(rows, query))


def _odds(rows: Rows, words: Words, query: Query) -> tuple[Floats | None, Floats, Mask]:
    size = len(words.told), rows.living
    ready = None if query.vectors is None else evidence.has_meaning(rows)
    if query.vectors is None or ready is None:
        return None, score.by_words(words.held, *size), words.held > 0
    near = _near(rows, words, query.vectors)
    odds = score.with_meaning(near, words.held, *size)
    if not ready.all():
        near[~ready] = 0
        odds = np.where(ready, odds, score.by_words(words.held, *size))
    return near, odds, ready | (words.held > 0)


def _near(rows: Rows, words: Words, vectors: Floats) -> Floats:
    """The nearness of the whole query, or of its nearest clause where that is nearer."""
    near = evidence.nearness(rows, vectors[:1])
    if len(vectors) == 1:
        return near
    if len(rows) <= MANY:
        return np.maximum(near, np.float32(score.CLAUSE) * evidence.nearness(rows, vectors[1:]))
    likely = np.argpartition(near + np.float32(score.WORDS) * words.held, -LIKELIEST)[-LIKELIEST:]
    clauses = np.float32(score.CLAUSE) * evidence.nearness(rows, vectors[1:], likely)
    near[likely] = np.maximum(near[likely], clauses)
    return near
