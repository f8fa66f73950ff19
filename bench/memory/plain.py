"""The baselines: BM25, a model alone, and both mixed; each ranks the turns of a talk for each question."""

import re
from collections import Counter
from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from bench.memory.locomo import Talk
from bench.retrieval.embeddings import Embeddings
from frontdesk.search.words import terms

Floats: TypeAlias = NDArray[np.float32]
Cut: TypeAlias = Callable[[str], list[str]]

K1, B = 1.5, 0.75


def as_written(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())


def stems(text: str) -> list[str]:
    """Tokens as our own search makes them: stems, without stop words."""
    return [term for term, _ in terms(text)]


def bm25(talk: Talk, cut: Cut) -> Floats:
    """A row for each question: the BM25 score of each turn, with the usual parameters."""
    counts = [Counter(cut(turn.note)) for turn in talk.turns]
    lengths = np.array([count.total() for count in counts])
    norms = K1 * (1 - B + B * lengths / lengths.mean())
    held = Counter(term for count in counts for term in count)
    found = np.zeros((len(talk.questions), len(counts)), np.float32)
    for place, question in enumerate(talk.questions):
        for term in set(cut(question.text)) & set(held):
            often = np.array([count[term] for count in counts])
            rarity = np.log1p((len(counts) - held[term] + 0.5) / (held[term] + 0.5))
            found[place] += rarity * often * (K1 + 1) / (often + norms)
    return found


def nearness(talk: Talk, model: Embeddings) -> Floats:
    turns = model.of([turn.note for turn in talk.turns])
    return model.of([question.text for question in talk.questions]) @ turns.T


def mixed(words: Floats, near: Floats) -> Floats:
    """Half of each, after scaling each to 0 to 1."""
    return (_from_0_to_1(words) + _from_0_to_1(near)) / np.float32(2)


def best(talk: Talk, scores: Floats, count: int) -> list[Sequence[str]]:
    """The ids of the best for each question."""
    order: list[list[int]] = np.argsort(-scores, axis=1, kind="stable")[:, :count].tolist()
    return [[talk.turns[place].id for place in places] for places in order]


def _from_0_to_1(scores: Floats) -> Floats:
    least, most = scores.min(axis=1, keepdims=True), scores.max(axis=1, keepdims=True)
    return (scores - least) / np.maximum(most - least, np.float32(1e-9))
