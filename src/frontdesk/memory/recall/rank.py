"""Puts items in order for a query: shared words and near meaning first, then, mildly, how new and how salient."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float32]
Numbers: TypeAlias = NDArray[np.int32]
Mask: TypeAlias = NDArray[np.bool_]

# Evidence is counted in units of cosine: this is what a word tells against that.
WORDS = 0.08
# Memories that were written down together speak for one another: the answer to a question has few of its words, and
# what one sits beside says what "it" was. By distance, before and after: the part of a neighbour's word that counts,
# where the memory has not the word itself, and the part of its nearness.
SITTING_SECONDS = 30 * 60
BESIDE_WORDS = {-1: 0.7, -2: 0.5, 1: 0.5, 2: 0.4}
BESIDE_MEANING = {-1: 0.2, 1: 0.1}
# What is new, and what was called salient, comes first among equals: at most so much is added for each. Twice as much
# for what is new costs half a point of LoCoMo's evidence, this costs nothing.
NEW, NEW_DAYS = 0.05, 30.0
SALIENT = 0.05
DAY_SECONDS = 86_400


@dataclass(frozen=True, slots=True)
class Candidates:
    """Items that may be the answer, a place each, in ascending order of their numbers; when they were, in Unix seconds.

    `allowed` are those that were asked among; the others only stand beside them.
    """

    numbers: Numbers
    seconds: NDArray[np.float64]
    memories: Mask
    salience: Floats
    allowed: Mask


@dataclass(frozen=True, slots=True)
class Ranked:
    """An item with what speaks for it. `own` and `beside` are places of terms, those first that tell most."""

    n: int
    evidence: float
    nearness: float | None
    own: Sequence[int]
    beside: Sequence[int]


def ranked(candidates: Candidates, words: Floats, nearness: Floats, now: datetime) -> Iterator[Ranked]:
    """Those that are allowed, the best first. `words` has a row for each term.

    A `nearness` that is not a number is that of an item nobody has read yet: it is taken for as near as the others.
    """
    beside = {step: _beside(candidates, step) for step in BESIDE_WORDS}
    held = _held(words, beside)
    evidence = WORDS * held.sum(axis=0) + _meaning(nearness, beside) + _mild(candidates, now)
    order: list[int] = np.argsort(-evidence, kind="stable").tolist()
    return (
        _told(int(candidates.numbers[at]), float(evidence[at]), float(nearness[at]), words[:, at], held[:, at])
        for at in order
        if candidates.allowed[at]
    )


def _beside(candidates: Candidates, step: int) -> NDArray[np.intp]:
    """Where each one's neighbour stands, which was kept so many steps later in the same sitting; -1 for none."""
    numbers, seconds, memories = candidates.numbers, candidates.seconds, candidates.memories
    places = np.searchsorted(numbers, numbers + step).clip(max=max(len(numbers) - 1, 0))
    together = np.abs(seconds[places] - seconds) <= SITTING_SECONDS
    there = (numbers[places] == numbers + step) & memories & memories[places] & together
    return np.where(there, places, -1)


def _held(words: Floats, beside: Mapping[int, NDArray[np.intp]]) -> Floats:
    """What each term tells for each item: by itself, or by a neighbour."""
    found = words.copy()
    for step, part in BESIDE_WORDS.items():
        places = beside[step]
        np.maximum(found, np.float32(part) * words[:, places] * (places >= 0), out=found)
    return found


def _meaning(nearness: Floats, beside: Mapping[int, NDArray[np.intp]]) -> Floats:
    known = ~np.isnan(nearness)
    usual = float(nearness[known].mean()) if known.any() else 0.0
    filled = np.where(known, nearness, np.float32(usual))
    found = filled.copy()
    for step, part in BESIDE_MEANING.items():
        places = beside[step]
        found += np.float32(part) * filled[places] * (places >= 0)
    return found


def _mild(candidates: Candidates, now: datetime) -> Floats:
    """What is added for being new and for being salient."""
    days = np.maximum(0.0, now.timestamp() - candidates.seconds) / DAY_SECONDS
    new = NEW * np.exp2(-days / NEW_DAYS)
    return (new + SALIENT * candidates.salience).astype(np.float32)


def _told(n: int, evidence: float, nearness: float, words: Floats, held: Floats) -> Ranked:
    order: list[int] = np.argsort(-held, kind="stable").tolist()
    own = [term for term in order if words[term] > 0]
    beside = [term for term in order if held[term] > 0 and words[term] == 0]
    return Ranked(n, evidence, None if math.isnan(nearness) else nearness, own, beside)
