"""The compared ways to find tools: each ranks the tools of a set for each of its questions."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from training.bm25 import Bm25f
from training.sets import Tool

from bench.retrieval.data import RetrievalSet
from bench.retrieval.embeddings import Embeddings
from frontdesk.tools.finder import split_clauses
from frontdesk.tools.index import ToolIndex
from frontdesk.tools.index_segments import IndexQuery

DEPTH = 10
# The weight of the meaning in the plain mix.
MEANING = 0.7

Ranking: TypeAlias = Sequence[str]
Floats: TypeAlias = NDArray[np.float32]
Past: TypeAlias = Sequence[Mapping[str, float]]


@dataclass(frozen=True, slots=True)
class Plain:
    """The baselines: BM25F with the usual parameters, an untuned model, and both mixed after scaling each to 0 to 1."""

    words: list[Ranking]
    meaning: list[Ranking]
    both: list[Ranking]


def plain(one: RetrievalSet, untuned: Embeddings) -> Plain:
    index = Bm25f([Tool(it.id, it.server, it.name, it.description, tuple(it.parameters)) for it in one.tools])
    words = np.stack([index.scores(question.text) for question in one.questions])
    near = untuned.of([question.text for question in one.questions]) @ untuned.of([it.text for it in one.tools]).T
    both = MEANING * _from_0_to_1(near) + (1 - MEANING) * _from_0_to_1(words)
    return Plain(*([_best(one, row) for row in scores] for scores in (words, near, both)))


def _from_0_to_1(scores: Floats) -> Floats:
    least, most = scores.min(axis=1, keepdims=True), scores.max(axis=1, keepdims=True)
    return (scores - least) / np.maximum(most - least, np.float32(1e-9))


def _best(one: RetrievalSet, scores: Floats) -> Ranking:
    rows: list[int] = np.argsort(-scores, kind="stable")[:DEPTH].tolist()
    return [one.ids[row] for row in rows]


class Shipped:
    """Search as it ships, over one set's tools; without a model it searches by words."""

    def __init__(self, one: RetrievalSet, model: Embeddings | None) -> None:
        self._set = one
        self._model = model
        self._index = ToolIndex()
        self._index.put(tool.doc for tool in one.tools)
        if model is not None:
            self._index.set_vectors(one.ids, model.of([tool.text for tool in one.tools]))

    def rankings(self, past: Past | None = None) -> list[Ranking]:
        """For each of the set's questions; `past` is what use taught about each."""
        texts = [question.text for question in self._set.questions]
        none: Past = [{} for _ in texts]
        asked = zip(texts, self.vectors(texts), past or none, strict=True)
        found = (self._index.search(IndexQuery(text, vectors, DEPTH, past=told)) for text, vectors, told in asked)
        return [[hit.id for hit in hits] for hits in found]

    def best_scores(self, texts: Sequence[str]) -> list[float]:
        """The score of the best tool for each text."""
        asked = zip(texts, self.vectors(texts), strict=True)
        found = (self._index.search(IndexQuery(text, vectors, 1)) for text, vectors in asked)
        return [hits[0].score if hits else 0.0 for hits in found]

    def vectors(self, texts: Sequence[str]) -> list[Floats | None]:
        """Each text as one row, and its clauses as the next rows."""
        if self._model is None:
            return [None] * len(texts)
        parts = [split_clauses(text) for text in texts]
        rows = self._model.of([part for one in parts for part in one])
        ends = np.cumsum([len(one) for one in parts])
        return list(np.split(rows, ends[:-1]))
