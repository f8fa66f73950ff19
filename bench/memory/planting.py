"""Builds cells and regions for very many vectors in memory, as they grow for one person."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from frontdesk.memory.search.vectors_store import TreePart, add_vectors
from frontdesk.search.vectors import Floats, NumberedVectors

BATCH = 4_096


@dataclass(frozen=True, slots=True)
class Planted:
    """Cells and regions by their numbers, the centre of each region, and the cell of each vector."""

    cells: dict[int, NumberedVectors]
    regions: dict[int, NumberedVectors]
    centres: dict[int, Floats]
    cell_of: NDArray[np.int32]


def planted(vectors: Floats) -> Planted:
    """Items are numbered from 1 in the order of their vectors."""
    whole = TreePart({}, {}, 1, 1)
    for start in range(0, len(vectors), BATCH):
        rows = vectors[start : start + BATCH]
        _add(whole, NumberedVectors.encode(range(start + 1, start + len(rows) + 1), rows), rows)
    cell_of = np.zeros(len(vectors), np.int32)
    for cell, bag in whole.cells.items():
        cell_of[bag.numbers - 1] = cell
    return Planted(whole.cells, whole.regions, whole.changed_regions, cell_of)


def _add(whole: TreePart, given: NumberedVectors, vectors: Floats) -> None:
    """Region by region, since a search for a cell among all of them would take too long."""
    if not whole.regions:
        add_vectors(whole, given)
        return
    names = np.array(list(whole.changed_regions))
    near = names[(vectors @ np.stack(list(whole.changed_regions.values())).T).argmax(axis=1)]
    for region in np.unique(near).tolist():
        part = TreePart({region: whole.regions[region]}, whole.cells, whole.first_cell, whole.first_region)
        add_vectors(part, given[near == region])
        whole.regions |= part.regions
        whole.changed_regions |= part.changed_regions
        whole.first_cell, whole.first_region = part.first_cell, part.first_region
