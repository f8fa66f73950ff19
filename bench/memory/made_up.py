"""Makes any number of memories: words as frequent as in real speech, and vectors near those of real texts."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from bench.memory.locomo import Talk
from bench.memory.plain import as_written
from bench.retrieval.embeddings import Embeddings

Floats: TypeAlias = NDArray[np.float32]

# A vocabulary grows with the text: beyond LoCoMo's own words there are invented ones, ever rarer.
WORDS = 100_000
# Words of rank r have a frequency of 1 / (r + 2.7), Mandelbrot's law.
FIRST = 2.7
# How far a vector is moved from the vector of a real text.
MOVED = 0.6
CHUNK = 10_000
SEED = 1


@dataclass(frozen=True, slots=True)
class Source:
    """The material for memories: words by frequency, lengths of texts, vectors."""

    words: Sequence[str]
    lengths: NDArray[np.int64]
    vectors: Floats

    def texts(self, count: int, seed: int = SEED) -> Iterator[str]:
        random = np.random.default_rng(seed)
        chances: NDArray[np.float64] = np.cumsum(1 / (np.arange(len(self.words)) + FIRST))
        for _ in range(0, count, CHUNK):
            lengths = random.choice(self.lengths, CHUNK)
            drawn = random.random(int(lengths.sum())) * chances[-1]
            places: list[int] = cast("NDArray[np.intp]", np.searchsorted(chances, drawn)).tolist()
            said = [self.words[place] for place in places]
            ends: list[int] = np.cumsum(lengths).tolist()
            for start, end in zip([0, *ends], ends, strict=False):
                yield " ".join(said[start:end])

    def moved(self, count: int, seed: int = SEED) -> Floats:
        random = np.random.default_rng(seed)
        found = np.empty((count, self.vectors.shape[1]), np.float32)
        for start in range(0, count, CHUNK):
            rows = found[start : start + CHUNK]
            rows[:] = self.vectors[random.integers(0, len(self.vectors), len(rows))]
            rows += MOVED / np.sqrt(rows.shape[1]) * random.standard_normal(rows.shape, np.float32)
            rows /= np.linalg.norm(rows, axis=1, keepdims=True)
        return found


def source(talks: Sequence[Talk], model: Embeddings) -> Source:
    notes = [turn.note for talk in talks for turn in talk.turns]
    said = [as_written(note) for note in notes]
    known = [word for word, _ in Counter(word for words in said for word in words).most_common()]
    rare = [_letters(number) for number in range(WORDS - len(known))]
    return Source([*known, *rare], np.array([len(words) for words in said if words]), model.of(notes))


def _letters(number: int) -> str:
    """A word that no real text contains."""
    return "zq" + "".join(chr(ord("a") + int(digit)) for digit in str(number))
