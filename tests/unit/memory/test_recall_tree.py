"""Vectors in cells and cells in regions, as they grow."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from frontdesk.memory.search import vectors_store
from frontdesk.memory.search.vectors_store import (
    TreePart,
    add_vectors,
    centre_of,
    nearest_numbers,
    split_in_two,
)
from frontdesk.search.vectors import Floats, NumberedVectors, dimensions_of

SIZE = 16


def _vectors(count: int, seed: int = 1) -> Floats:
    found = np.random.default_rng(seed).standard_normal((count, SIZE), np.float32)
    return found / np.linalg.norm(found, axis=1, keepdims=True)


def _grown(vectors: Floats, batch: int) -> TreePart:
    """All of a tree, as it stands after so many at a time."""
    part = TreePart({}, {}, 1, 1)
    for start in range(0, len(vectors), batch):
        rows = vectors[start : start + batch]
        add_vectors(part, NumberedVectors.encode(range(start + 1, start + len(rows) + 1), rows))
    return part


@given(count=st.integers(1, 300), batch=st.integers(1, 90), alike=st.booleans())
@settings(max_examples=30, deadline=None)
def test_everything_lies_in_one_cell_each_cell_in_one_region_and_none_is_too_large(
    count: int, batch: int, *, alike: bool
) -> None:
    vectors = np.repeat(_vectors(1), count, axis=0) if alike else _vectors(count)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(vectors_store, "MAX_CELL", 8)
        patched.setattr(vectors_store, "MAX_REGION", 4)
        part = _grown(vectors, batch)
    held = [number for cell in part.cells.values() for number in cell.numbers.tolist()]
    assert sorted(held) == list(range(1, count + 1))
    assert all(len(cell) <= 8 for cell in part.cells.values())
    assert {number: cell for cell, bag in part.cells.items() for number in bag.numbers.tolist()} == part.cell_of
    listed = [cell for region in part.regions.values() for cell in region.numbers.tolist()]
    assert sorted(listed) == sorted(part.cells)
    assert all(len(region) <= 4 for region in part.regions.values())
    assert part.touched == set(part.cells)
    assert set(part.changed_regions) == set(part.regions)


def test_what_is_near_lies_in_the_nearest_cells() -> None:
    around = _vectors(20, seed=2)
    random = np.random.default_rng(3)
    vectors = np.repeat(around, 100, axis=0) + 0.1 * random.standard_normal((2000, SIZE), np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    part = _grown(vectors[random.permutation(2000)], 64)
    cells = NumberedVectors.concatenate(list(part.regions.values()))
    found = 0
    for asked in around:
        seen = NumberedVectors.concatenate([part.cells[cell] for cell in nearest_numbers(cells, asked, 8)])
        best = np.sort(seen.cosines(asked))[-10:]
        whole = np.sort(NumberedVectors.concatenate(list(part.cells.values())).cosines(asked))[-10:]
        found += int(np.isin(best, whole).sum())
    assert found >= 0.95 * 200


def test_two_heaps_are_told_apart_and_neither_is_less_than_a_quarter() -> None:
    two = _vectors(2, seed=5)
    heaps = np.concatenate([np.repeat(two[:1], 30, axis=0), np.repeat(two[1:], 50, axis=0)])
    second = split_in_two(heaps)
    assert len({bool(one) for one in second[:30]}) == len({bool(one) for one in second[30:]}) == 1
    assert second[0] != second[-1]
    uneven = split_in_two(np.concatenate([np.repeat(two[:1], 2, axis=0), np.repeat(two[1:], 78, axis=0)]))
    assert 20 <= int(uneven.sum()) <= 60


def test_a_kept_vector_points_where_it_did_also_when_it_was_kept_alone() -> None:
    vectors = _vectors(40)
    bag = NumberedVectors.encode(range(40), vectors)
    assert np.abs(bag.cosines(vectors[7]) - vectors @ vectors[7]).max() < 0.01
    assert float(bag.vectors()[3] @ vectors[3]) > 0.999
    again = NumberedVectors.read([bag.packed()], SIZE)
    assert again.numbers.tolist() == list(range(40))
    numbers, kept = zip(*bag.single_vectors(), strict=True)
    assert dimensions_of(kept[0]) == SIZE
    assert NumberedVectors.read_single(numbers, kept, SIZE).packed() == bag.packed()
    assert len(NumberedVectors.read([], SIZE).cosines(vectors[0])) == 0


def test_a_vector_of_nothing_is_no_trouble() -> None:
    nothing = np.zeros((3, SIZE), np.float32)
    assert NumberedVectors.encode([1, 2, 3], nothing).cosines(_vectors(1)[0]).tolist() == [0, 0, 0]
    assert np.isfinite(centre_of(nothing)).all()
