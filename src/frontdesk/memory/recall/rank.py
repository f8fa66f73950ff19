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
WORDS = 0.07
# Memories that were written down together speak for one another: the answer to a question has few of its words, and
# what stands beside it says what "it" was. By the steps to a neighbour: the part of its words and of its nearness that
# counts, where it has more of them. Without, search finds ten points less of LoCoMo's evidence.
SITTING_SECONDS = 30 * 60
BESIDE = {-1: 0.7, -2: 0.5, 1: 0.5, 2: 0.4}
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
    beside = {step: _beside(candidates, step) for step in BESIDE}
    held, near = _lent(words, beside), _lent(_known(nearness), beside)
    evidence = WORDS * held.sum(axis=0) + near + _mild(candidates, now)
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


def _lent(values: Floats, beside: Mapping[int, NDArray[np.intp]]) -> Floats:
    """The values of each item, in the last axis, or a part of its neighbours' where that is more."""
    found = values.copy()
    for step, part in BESIDE.items():
        places = beside[step]
        np.maximum(found, np.where(places >= 0, np.float32(part) * values[..., places], -np.inf), out=found)
    return found


def _known(nearness: Floats) -> Floats:
    """With what is usual here in place of what is not known."""
    known = nearness[~np.isnan(nearness)]
    return np.nan_to_num(nearness, nan=float(known.mean()) if len(known) else 0.0)


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
