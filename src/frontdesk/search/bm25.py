"""Weighs terms by BM25F and keeps them in an inverted index of flat arrays.

What a word weighs in a tool depends on that tool alone: its fields are held against usual lengths, not against the
catalogue's averages. So tools come and go without touching the others, and only a word's rarity depends on them all.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from frontdesk.search.words import terms

Scores: TypeAlias = NDArray[np.float32]
Mask: TypeAlias = NDArray[np.bool_]
Places: TypeAlias = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class InvertedIndex:
    """Term number t is held by `rows[starts[t]:starts[t + 1]]`, which ascend. `shown` is a word that shows the term."""

    numbers: dict[str, int]
    shown: list[str]
    starts: Places
    rows: NDArray[np.int32]
    weights: NDArray[np.float16]

    def _at(self, term: str) -> slice:
        number = self.numbers.get(term)
        return slice(0, 0) if number is None else slice(int(self.starts[number]), int(self.starts[number + 1]))

    def count(self, term: str, live: Mask | None) -> int:
        """How many rows hold the term; `live` where some rows no longer count."""
        at = self._at(term)
        return at.stop - at.start if live is None else int(np.count_nonzero(live[self.rows[at]]))

    def add(self, scores: Scores, term: str, times: float) -> None:
        """Add what the term weighs to the scores of the rows that hold it."""
        at = self._at(term)
        scores[self.rows[at]] += self.weights[at] * np.float32(times)

    def weight(self, term: str, row: int) -> float:
        """What the term weighs in one row, 0 where that does not hold it."""
        at = self._at(term)
        held = self.rows[at]
        place = int(held.searchsorted(row))
        return float(self.weights[at.start + place]) if place < len(held) and held[place] == row else 0.0

    def word(self, term: str) -> str:
        return self.shown[self.numbers[term]]


def build_inverted_index(tools: Iterable[Iterable[tuple[str, str, float]]]) -> InvertedIndex:
    """The postings of tools, row by row, each told as (term, word, weight)."""
    numbers: dict[str, int] = {}
    shown: list[str] = []
    found: list[tuple[int, int, float]] = []
    for row, weighed in enumerate(tools):
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
    """The live rows of all parts, numbered through in their order; nothing is weighed again."""
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
    """Without the rows that are gone, and without terms that only those held."""
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


SATURATION = 2.5
# As if so many tools more were known, none of them with a word of the query: a word that each of three tools holds is
# still a rare word.
UNSEEN_TOOLS = 300


@dataclass(frozen=True, slots=True)
class FieldWeight:
    """How much a word counts in one part of a tool, and how many words that part usually has."""

    weight: float
    usual_length: int


NAME_FIELD, SERVER_FIELD, DESCRIPTION_FIELD, PARAMETERS_FIELD = (
    FieldWeight(3.0, 3),
    FieldWeight(1.0, 3),
    FieldWeight(1.0, 14),
    FieldWeight(1.0, 20),
)
TOOL_FIELDS = (NAME_FIELD, SERVER_FIELD, DESCRIPTION_FIELD, PARAMETERS_FIELD)


def weigh_terms(texts: Sequence[str]) -> Iterator[tuple[str, str, float]]:
    """Each term of a tool, given as the texts of its fields, with a word that shows it and its weight from 0 to 1."""
    summed: dict[str, tuple[str, float]] = {}
    for field, text in zip(TOOL_FIELDS, texts, strict=True):
        held = terms(text)
        # By the logarithm of the length: some servers describe their tools in pages, and those count as well.
        each = field.weight * math.log1p(field.usual_length) / math.log1p(max(len(held), 1))
        for term, word in held:
            shown, before = summed.get(term, (word, 0.0))
            summed[term] = (shown, before + each)
    for term, (word, weight) in summed.items():
        yield term, word, weight / (SATURATION + weight)


def term_rarity(held_by: int, tools: int) -> float:
    """How much a term tells tools apart: the fewer hold it, the more."""
    return math.log1p((tools + UNSEEN_TOOLS - held_by + 0.5) / (held_by + 0.5))
