"""Weighs terms, packs postings, collects evidence and ranks items, without I/O: shared terms and similarity, then
recency and salience.

A weight depends on its own text alone, so that items come and go without touching the others.

All that could is each word of the query that the person ever used, said once in a text of usual length, and a meaning
that is the query's own. So the score of a hit does not depend on the other hits, and the best of a bad lot scores low.
"""

import math
import struct
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from frontdesk.db.schema import TERM_LENGTH
from frontdesk.search.words import terms

# Measured on LoCoMo (bench/memory): anything from 0.6 to 1.2 and 0.3 to 0.6 is level with these.
SATURATION, LENGTH_SHARE = 0.9, 0.4
USUAL_LENGTH = 20
WEIGHT_STEPS = 255
# As if the person had so many items more, none of them with a word of the query: among three items a word that one of
# them holds is still a rare word.
SMOOTHING_ITEMS = 300
# A text of more different words than these is found by the first of them.
MAX_TEXT_TERMS = 2_000


def weigh_terms(text: str) -> dict[str, int]:
    """Each term of the text, with a weight from 1 to 255."""
    counts = Counter(term[:TERM_LENGTH] for term, _ in terms(text))
    even = SATURATION * (1 - LENGTH_SHARE + LENGTH_SHARE * counts.total() / USUAL_LENGTH)
    found = list(counts.items())[:MAX_TEXT_TERMS]
    return {term: max(1, round(WEIGHT_STEPS * count / (count + even))) for term, count in found}


def mention_weight() -> int:
    """The weight of a term that is said once in a text of usual length."""
    return round(WEIGHT_STEPS / (1 + SATURATION))


def term_rarity(held_by: float, items: int) -> float:
    """How much a term tells of a person's items apart, for a weight of one step: the fewer hold it, the more."""
    told = math.log1p((max(items, held_by) + SMOOTHING_ITEMS - held_by + 0.5) / (held_by + 0.5))
    return told * (1 + SATURATION) / WEIGHT_STEPS


Numbers: TypeAlias = NDArray[np.int32]
Weights: TypeAlias = NDArray[np.uint8]

# A block is a row for each of its words, and a search reads some blocks. Larger ones are fewer to read and more to
# write again with each item.
BLOCK_SIZE = 16_384
_ENTRY_STRUCT = struct.Struct("<HB")
ENTRY_TYPE = np.dtype([("at", "<u2"), ("weight", "u1")])


@dataclass(frozen=True, slots=True)
class PostingList:
    """The items that hold a term, and how many there are of them in all, as far as can be told from those read."""

    term: str
    numbers: Numbers
    weights: Weights
    held_by: float


def block_of(n: int) -> int:
    return n // BLOCK_SIZE


def pack_entry(n: int, weight: int) -> bytes:
    return _ENTRY_STRUCT.pack(n % BLOCK_SIZE, weight)


def unpack_entries(blocks: Sequence[tuple[int, bytes]]) -> tuple[Numbers, Weights]:
    """The items' numbers, and what the word weighs in each."""
    found = np.frombuffer(b"".join([docs for _, docs in blocks]), ENTRY_TYPE)
    starts = np.array([block * BLOCK_SIZE for block, _ in blocks], np.int32)
    counts = np.array([len(docs) for _, docs in blocks], np.intp) // ENTRY_TYPE.itemsize
    return found["at"] + np.repeat(starts, counts), found["weight"]


def remove_entry(docs: bytes, n: int) -> bytes:
    found = np.frombuffer(docs, ENTRY_TYPE)
    return found[found["at"] != n % BLOCK_SIZE].tobytes()


def pack_terms(weights: Mapping[str, int]) -> str:
    """The terms of an item that is not in any block yet, each with its weight."""
    return " ".join(f"{term} {weight}" for term, weight in weights.items())


def unpack_terms(words: str) -> tuple[list[str], list[str]]:
    """The terms, and their weights, as they were said."""
    parts = words.split(" ") if words else []
    return parts[::2], parts[1::2]


Floats: TypeAlias = NDArray[np.float32]

Mask: TypeAlias = NDArray[np.bool_]

# Evidence is counted in units of cosine: this is what a word tells against that.
WORD_WEIGHT = 0.07
# Memories that were written down together speak for one another: the answer to a question has few of its words, and
# what stands beside it says what "it" was. By the steps to a neighbour: the part of its words and of its nearness that
# counts, where it has more of them. Without, search finds ten points less of LoCoMo's evidence.
SITTING_SECONDS = 30 * 60
NEIGHBOUR_SHARES = {-1: 0.7, -2: 0.5, 1: 0.5, 2: 0.4}
# What is new, and what was called salient, comes first among equals: at most so much is added for each. Twice as much
# for what is new costs half a point of LoCoMo's evidence, this costs nothing.
RECENCY_BONUS, RECENCY_DAYS = 0.05, 30.0
SALIENCE_BONUS = 0.05
DAY_SECONDS = 86_400


@dataclass(frozen=True, slots=True)
class SearchCandidates:
    """Items that may be the answer, a place each, in ascending order of their numbers; when they were, in Unix seconds.

    `allowed` are those that were asked among; the others only stand beside them.
    """

    numbers: Numbers
    seconds: NDArray[np.float64]
    memories: Mask
    salience: Floats
    allowed: Mask


@dataclass(frozen=True, slots=True)
class RankedItem:
    """An item with what speaks for it. `own` and `beside` are places of terms, those first that tell most."""

    n: int
    evidence: float
    nearness: float | None
    own_terms: Sequence[int]
    neighbour_terms: Sequence[int]


def rank_items(candidates: SearchCandidates, words: Floats, nearness: Floats, now: datetime) -> Iterator[RankedItem]:
    """Those that are allowed, the best first. `words` has a row for each term.

    A `nearness` that is not a number is that of an item nobody has read yet: it is taken for as near as the others.
    """
    beside = {step: _neighbour_places(candidates, step) for step in NEIGHBOUR_SHARES}
    held, near = _with_neighbours(words, beside), _with_neighbours(_fill_unknown(nearness), beside)
    evidence = WORD_WEIGHT * held.sum(axis=0) + near + _recency_and_salience(candidates, now)
    order: list[int] = np.argsort(-evidence, kind="stable").tolist()
    return (
        _ranked_item(int(candidates.numbers[at]), float(evidence[at]), float(nearness[at]), words[:, at], held[:, at])
        for at in order
        if candidates.allowed[at]
    )


def _neighbour_places(candidates: SearchCandidates, step: int) -> NDArray[np.intp]:
    """Where each one's neighbour stands, which was kept so many steps later in the same sitting; -1 for none."""
    numbers, seconds, memories = candidates.numbers, candidates.seconds, candidates.memories
    places = np.searchsorted(numbers, numbers + step).clip(max=max(len(numbers) - 1, 0))
    together = np.abs(seconds[places] - seconds) <= SITTING_SECONDS
    there = (numbers[places] == numbers + step) & memories & memories[places] & together
    return np.where(there, places, -1)


def _with_neighbours(values: Floats, beside: Mapping[int, NDArray[np.intp]]) -> Floats:
    """The values of each item, in the last axis, or a part of its neighbours' where that is more."""
    found = values.copy()
    for step, part in NEIGHBOUR_SHARES.items():
        places = beside[step]
        np.maximum(found, np.where(places >= 0, np.float32(part) * values[..., places], -np.inf), out=found)
    return found


def _fill_unknown(nearness: Floats) -> Floats:
    """With what is usual here in place of what is not known."""
    known = nearness[~np.isnan(nearness)]
    return np.nan_to_num(nearness, nan=float(known.mean()) if len(known) else 0.0)


def _recency_and_salience(candidates: SearchCandidates, now: datetime) -> Floats:
    """What is added for being new and for being salient."""
    days = np.maximum(0.0, now.timestamp() - candidates.seconds) / DAY_SECONDS
    new = RECENCY_BONUS * np.exp2(-days / RECENCY_DAYS)
    return (new + SALIENCE_BONUS * candidates.salience).astype(np.float32)


def _ranked_item(n: int, evidence: float, nearness: float, words: Floats, held: Floats) -> RankedItem:
    order: list[int] = np.argsort(-held, kind="stable").tolist()
    own = [term for term in order if words[term] > 0]
    beside = [term for term in order if held[term] > 0 and words[term] == 0]
    return RankedItem(n, evidence, None if math.isnan(nearness) else nearness, own, beside)


# An item that shares no word must be so near at least. Of the right answers in LoCoMo, one in a hundred is farther.
MIN_NEARNESS = 0.18


def relevance_score(evidence: float, words: float, *, by_meaning: bool) -> float:
    """`words` is what all words of the query would tell."""
    possible = WORD_WEIGHT * words + (1.0 if by_meaning else 0.0)
    return round(min(1.0, max(0.0, evidence / possible)), 3) if possible > 0 else 0.0


@dataclass(frozen=True, slots=True)
class SearchEvidence:
    """The postings of the query's terms, what a step of weight tells for each, and the items whose nearness is known.

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
        told = np.array([term_rarity(posting.held_by, items) for posting in postings], np.float32)
        every = [numbers, *(posting.numbers for posting in postings)]
        size = 1 + max((int(some.max()) for some in every if len(some)), default=0)
        return cls(postings, told, numbers, nearness, size)

    def likeliest(self, count: int) -> Numbers:
        """The numbers of those that hold most of the words, and of those that are nearest; so many of each."""
        scores = np.zeros(self.size, np.float32)
        for posting, told in zip(self.postings, self.term_values, strict=True):
            scores[posting.numbers] += posting.weights * told
        # An item stands in the postings of each term it holds, so it may come up as often as there are terms.
        held = np.concatenate([np.empty(0, np.int32), *(posting.numbers for posting in self.postings)])
        often = np.unique(held[_top_places(scores[held], count * len(self.postings))])
        by_words = often[_top_places(scores[often], count)]
        return np.union1d(by_words, self.numbers[_top_places(self.nearness, count)]).astype(np.int32)

    @property
    def total_value(self) -> float:
        """What all terms would tell for an item that says each of them."""
        return float(self.term_values.sum()) * mention_weight()

    @property
    def max_items(self) -> int:
        """No more than these can be had of one kind."""
        return max(sum(len(posting.numbers) for posting in self.postings), len(self.numbers))

    def look_up(self, numbers: Numbers) -> tuple[Floats, Floats]:
        """Of these items: a row for each term with what it tells for them; and how near they are, NaN if not known."""
        places = np.full(self.size, -1, np.int32)
        inside = np.flatnonzero(numbers < self.size)
        places[numbers[inside]] = inside
        words = np.zeros((len(self.postings), len(numbers)), np.float32)
        for row, posting, told in zip(words, self.postings, self.term_values, strict=True):
            at = places[posting.numbers]
            row[at[at >= 0]] = posting.weights[at >= 0] * told
        nearness = np.full(len(numbers), np.nan, np.float32)
        at = places[self.numbers]
        nearness[at[at >= 0]] = self.nearness[at >= 0]
        return words, nearness


def _top_places(scores: Floats, count: int) -> NDArray[np.intp]:
    return np.arange(len(scores)) if len(scores) <= count else np.argpartition(-scores, count - 1)[:count]
