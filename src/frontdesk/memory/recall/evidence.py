"""What speaks for each of a person's items as the answer to a query: words it holds, and how near its meaning is."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from frontdesk.memory.recall.postings.packing import Posting
from frontdesk.memory.recall.postings.weighing import mention, rarity

Floats: TypeAlias = NDArray[np.float32]
Numbers: TypeAlias = NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class Evidence:
    """The postings of the query's terms, what a step of weight tells for each, and the items whose nearness is known.

    Arrays by an item's number are `size` long.
    """

    postings: Sequence[Posting]
    told: Floats
    numbers: Numbers
    nearness: Floats
    size: int

    @classmethod
    def of(cls, postings: Sequence[Posting], items: int, numbers: Numbers, nearness: Floats) -> "Evidence":
        told = np.array([rarity(posting.held_by, items) for posting in postings], np.float32)
        every = [numbers, *(posting.numbers for posting in postings)]
        size = 1 + max((int(some.max()) for some in every if len(some)), default=0)
        return cls(postings, told, numbers, nearness, size)

    def likeliest(self, count: int) -> Numbers:
        """The numbers of those that hold most of the words, and of those that are nearest; so many of each."""
        scores = np.zeros(self.size, np.float32)
        for posting, told in zip(self.postings, self.told, strict=True):
            scores[posting.numbers] += posting.weights * told
        # An item stands in the postings of each term it holds, so it may come up as often as there are terms.
        held = np.concatenate([np.empty(0, np.int32), *(posting.numbers for posting in self.postings)])
        often = np.unique(held[_best(scores[held], count * len(self.postings))])
        by_words = often[_best(scores[often], count)]
        return np.union1d(by_words, self.numbers[_best(self.nearness, count)]).astype(np.int32)

    @property
    def words(self) -> float:
        """What all terms would tell for an item that says each of them."""
        return float(self.told.sum()) * mention()

    @property
    def most(self) -> int:
        """No more than these can be had of one kind."""
        return max(sum(len(posting.numbers) for posting in self.postings), len(self.numbers))

    def about(self, numbers: Numbers) -> tuple[Floats, Floats]:
        """Of these items: a row for each term with what it tells for them; and how near they are, NaN if not known."""
        places = np.full(self.size, -1, np.int32)
        inside = np.flatnonzero(numbers < self.size)
        places[numbers[inside]] = inside
        words = np.zeros((len(self.postings), len(numbers)), np.float32)
        for row, posting, told in zip(words, self.postings, self.told, strict=True):
            at = places[posting.numbers]
            row[at[at >= 0]] = posting.weights[at >= 0] * told
        nearness = np.full(len(numbers), np.nan, np.float32)
        at = places[self.numbers]
        nearness[at[at >= 0]] = self.nearness[at >= 0]
        return words, nearness


def _best(scores: Floats, count: int) -> NDArray[np.intp]:
    return np.arange(len(scores)) if len(scores) <= count else np.argpartition(-scores, count - 1)[:count]
