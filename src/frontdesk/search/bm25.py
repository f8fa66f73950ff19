"""Weighs terms by BM25, stores them in an inverted index, and adds up the evidence for a document.

Tools and memories are ranked by the same two kinds of evidence: the terms that a document shares with the query, and
the cosine of their vectors. Each user gives its own parameters (`Bm25`, `per_term`). A term's weight depends only on
its own document, so documents can be added and removed without changing others; only a term's rarity depends on all of
them.

These parts are in the users' own modules, because they differ:

- Tools are in memory, so their `InvertedIndex` scores all of them in one pass. A person's memories are in the database,
  and only the blocks of the query's terms are read (`memory/search/index_store.py`).
- A tool's score is the probability that it is the right one, by logistic regression (`tools/index.py`), because
  `find_tools` attaches the tools above a threshold. A memory's score is its share of the best possible score for the
  query, after recency and salience (`memory/search/service.py`), because a person always wants the best of their notes.
- Past use, names and the clauses of a long query count for tools only; the notes directly before and after count for
  memories only.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from frontdesk.search.vectors import Floats, Mask

Places: TypeAlias = NDArray[np.int64]
# A term, and the word in the text that it was made from.
Term: TypeAlias = tuple[str, str]


@dataclass(frozen=True, slots=True)
class TextField:
    """One part of a document.

    `weight` is the weight of a mention. With `usual_length`, a mention weighs less the longer the part is, by the
    logarithm: some texts are pages long, and their words should still count.
    """

    weight: float = 1.0
    usual_length: int | None = None

    def mention_weight(self, length: int) -> float:
        if self.usual_length is None:
            return self.weight
        return self.weight * math.log1p(self.usual_length) / math.log1p(max(length, 1))


@dataclass(frozen=True, slots=True)
class Bm25:
    """The parameters of BM25 for one kind of document.

    `saturation`: the number of (weighted) mentions that gives half of the largest weight.
    `fields`: the parts of a document, in the order in which `weigh` takes them.
    `length_share`: the share of the saturation that grows with the length of the whole document (BM25's b); 0 for none.
    `usual_length`: the length of a document, in terms, at which the saturation does not grow.
    `largest_weight`: the weight of a term with an unlimited number of mentions.
    `unseen`: the number of assumed further documents without any term of the query. With these, a term in three of a
    handful of documents still counts as rare.
    """

    saturation: float
    fields: tuple[TextField, ...] = (TextField(),)
    length_share: float = 0.0
    usual_length: int = 1
    largest_weight: float = 1.0
    unseen: int = 300

    def weigh(self, *texts: Sequence[Term]) -> Iterator[tuple[str, str, float]]:
        """Weigh the terms of a document, given for each field. Yields each term once, with a word and its weight."""
        mentions: dict[str, tuple[str, float]] = {}
        for field, found in zip(self.fields, texts, strict=True):
            mention = field.mention_weight(len(found))
            for term, word in found:
                shown, before = mentions.get(term, (word, 0.0))
                mentions[term] = (shown, before + mention)
        length = sum(map(len, texts))
        saturation = self.saturation * (1 - self.length_share + self.length_share * length / self.usual_length)
        for term, (word, mentioned) in mentions.items():
            yield term, word, self.largest_weight * mentioned / (mentioned + saturation)

    def rarity(self, held_by: float, documents: int) -> float:
        """How well a term distinguishes documents: the fewer contain it, the better. `held_by` may be an estimate."""
        others = max(documents, held_by) + self.unseen - held_by
        return math.log1p((others + 0.5) / (held_by + 0.5))


def add_evidence(terms: Floats, cosines: Floats, per_term: float) -> Floats:
    """The sum of terms and cosines, in units of cosine. `per_term` is the value of a term of weight and rarity 1."""
    evidence = terms * np.float32(per_term)
    evidence += cosines
    return evidence


@dataclass(frozen=True, slots=True)
class InvertedIndex:
    """The rows of term t are `rows[starts[t]:starts[t + 1]]`, in ascending order. `shown` has a word for each term."""

    numbers: dict[str, int]
    shown: list[str]
    starts: Places
    rows: NDArray[np.int32]
    weights: NDArray[np.float16]

    def _at(self, term: str) -> slice:
        number = self.numbers.get(term)
        return slice(0, 0) if number is None else slice(int(self.starts[number]), int(self.starts[number + 1]))

    def count(self, term: str, live: Mask | None) -> int:
        """How many rows contain the term. With `live`, only those rows count."""
        at = self._at(term)
        return at.stop - at.start if live is None else int(np.count_nonzero(live[self.rows[at]]))

    def add(self, scores: Floats, term: str, rarity: float) -> None:
        """Add the term's weight times its rarity to the scores of the rows that contain it."""
        at = self._at(term)
        scores[self.rows[at]] += self.weights[at] * np.float32(rarity)

    def weight(self, term: str, row: int) -> float:
        """The weight of the term in one row; 0 if the row does not contain it."""
        at = self._at(term)
        held = self.rows[at]
        place = int(held.searchsorted(row))
        return float(self.weights[at.start + place]) if place < len(held) and held[place] == row else 0.0

    def word(self, term: str) -> str:
        return self.shown[self.numbers[term]]


def build_inverted_index(documents: Iterable[Iterable[tuple[str, str, float]]]) -> InvertedIndex:
    """Index documents, one row each, given as (term, word, weight)."""
    numbers: dict[str, int] = {}
    shown: list[str] = []
    found: list[tuple[int, int, float]] = []
    for row, weighed in enumerate(documents):
        for term, word, weight in weighed:
            number = numbers.setdefault(term, len(numbers))
            if number == len(shown):
                shown.append(word)
            found.append((number, row, weight))
    number_of = np.fromiter((one[0] for one in found), np.int64, len(found))
    rows = np.fromiter((one[1] for one in found), np.int32, len(found))
    weights = np.fromiter((one[2] for one in found), np.float16, len(found))
    order = np.argsort(number_of, kind="stable")
    return InvertedIndex(
        numbers, shown, _start_places(np.bincount(number_of, minlength=len(numbers))), rows[order], weights[order]
    )


def merge_inverted_indexes(parts: Sequence[tuple[InvertedIndex, Mask]]) -> InvertedIndex:
    """Join the live rows of all parts, numbered again in their order. Weights do not change."""
    kept = [_live_part(postings, live) for postings, live in parts]
    numbers, shown = _join_vocabularies(kept)
    of_part = [np.fromiter((numbers[term] for term in part.numbers), np.int64, len(part.numbers)) for part in kept]
    filled = np.zeros(len(numbers), np.int64)
    for part, number in zip(kept, of_part, strict=True):
        filled[number] += np.diff(part.starts)
    starts = _start_places(filled)
    rows, weights = np.empty(int(starts[-1]), np.int32), np.empty(int(starts[-1]), np.float16)
    offset, filled = 0, starts[:-1].copy()
    for (_, live), part, number in zip(parts, kept, of_part, strict=True):
        counts = np.diff(part.starts)
        places = np.repeat(filled[number] - part.starts[:-1], counts) + np.arange(len(part.rows))
        rows[places], weights[places] = part.rows + np.int32(offset), part.weights
        filled[number] += counts
        offset += int(np.count_nonzero(live))
    return InvertedIndex(numbers, shown, starts, rows, weights)


def _live_part(postings: InvertedIndex, live: Mask) -> InvertedIndex:
    """The index without dead rows, and without terms that only dead rows contained."""
    if live.all():
        return postings
    still = live[postings.rows]
    number_of = np.repeat(np.arange(len(postings.numbers)), np.diff(postings.starts))[still]
    counts = np.bincount(number_of, minlength=len(postings.numbers))
    words = [(term, postings.shown[number]) for term, number in postings.numbers.items() if counts[number]]
    renumbered = (np.cumsum(live) - 1).astype(np.int32)
    return InvertedIndex(
        {term: number for number, (term, _) in enumerate(words)},
        [word for _, word in words],
        _start_places(counts[counts > 0]),
        renumbered[postings.rows[still]],
        postings.weights[still],
    )


def _join_vocabularies(parts: Sequence[InvertedIndex]) -> tuple[dict[str, int], list[str]]:
    numbers: dict[str, int] = dict(parts[0].numbers)
    shown = list(parts[0].shown)
    for part in parts[1:]:
        for term, word in zip(part.numbers, part.shown, strict=True):
            if numbers.setdefault(term, len(numbers)) == len(shown):
                shown.append(word)
    return numbers, shown


def _start_places(counts: Places) -> Places:
    return np.concatenate((np.zeros(1, np.int64), np.cumsum(counts)))
