"""Vectors at a byte a number find what exact ones find."""

import numpy as np
import pytest
from numpy.typing import NDArray

from frontdesk.search.vectors import QuantisedVectors, join_vectors
from frontdesk.tools.index import CLAUSE_FACTOR, MANY_ROWS, ToolIndex
from frontdesk.tools.index_segments import IndexQuery, ToolDocument

Floats = NDArray[np.float32]
DIMENSIONS = 384


def directions(count: int, seed: int) -> Floats:
    """Vectors in clusters, as those of tools are: some of them near each other, most not."""
    random = np.random.default_rng(seed)
    centres = random.standard_normal((max(1, count // 20), DIMENSIONS))
    found = centres[random.integers(len(centres), size=count)] + 0.7 * random.standard_normal((count, DIMENSIONS))
    return (found / np.linalg.norm(found, axis=1, keepdims=True)).astype(np.float32)


def filled(vectors: Floats) -> QuantisedVectors:
    return QuantisedVectors.empty(len(vectors), vectors.shape[1]).with_rows(np.arange(len(vectors)), vectors)


@pytest.mark.parametrize("count", [1, 3, 341, 342, 1000])
def test_products_are_those_of_the_exact_vectors(count: int) -> None:
    vectors, queries = directions(count, 1), directions(3, 2)
    assert np.abs(filled(vectors).cosines(queries) - queries @ vectors.T).max() < 0.005


@pytest.mark.parametrize("parts_of_query", [1, 3])
def test_the_first_ten_of_many_are_those_that_brute_force_finds(parts_of_query: int) -> None:
    count = MANY_ROWS + 2_000
    vectors = directions(count, 3)
    index = ToolIndex()
    index.put(ToolDocument(f"s::t{number:05}", "s", f"t{number:05}", "") for number in range(count))
    index.set_vectors([f"s::t{number:05}" for number in range(count)], vectors)
    for seed in range(20):
        parts = vectors[[seed * 1000 + number for number in range(parts_of_query)]]
        whole = parts.sum(axis=0, keepdims=True) / np.linalg.norm(parts.sum(axis=0))
        asked = np.concatenate([whole, parts]) if parts_of_query > 1 else whole
        found = [int(hit.id[-5:]) for hit in index.search(IndexQuery("?", asked))]
        near = asked @ vectors.T
        exact = near[0] if parts_of_query == 1 else np.maximum(near[0], CLAUSE_FACTOR * near[1:].max(axis=0))
        tenth = np.sort(exact)[-10]
        assert len(found) == 10
        # Only such as are level with the tenth may stand in for it: a byte tells no finer.
        assert min(exact[found]) >= tenth - 0.003


def test_a_vector_that_is_set_again_does_not_change_what_a_reader_holds() -> None:
    before = filled(directions(5, 4))
    seen = before.cosines(directions(1, 5))
    after = before.with_rows(np.array([2]), directions(1, 6))
    assert (before.cosines(directions(1, 5)) == seen).all()
    assert (after.cosines(directions(1, 5)) != seen).sum() == 1


def test_joining_keeps_what_lives_and_knows_which_rows_have_no_vector() -> None:
    one = filled(directions(3, 7))
    whole = join_vectors([(one, np.array([True, False, True])), (None, np.ones(2, np.bool_))])
    assert whole is not None
    assert whole.ready.tolist() == [True, True, False, False]
    assert np.allclose(whole.cosines(directions(1, 8))[0, :2], one.cosines(directions(1, 8))[0, [0, 2]])
    assert join_vectors([(None, np.ones(2, np.bool_))]) is None
