"""Cells and regions for a great many vectors at once; they split as those that grow one by one do."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from frontdesk.memory.recall.meaning.packing import Bag, Floats
from frontdesk.memory.recall.meaning.tree import CELL, REGION, centre, halves

SAMPLE = 4_096


@dataclass(frozen=True, slots=True)
class Planted:
    """Cells and regions by their numbers, from 1 on; the centre of each region; and the cell of each vector."""

    cells: dict[int, Bag]
    regions: dict[int, Bag]
    centres: dict[int, Floats]
    cell_of: NDArray[np.int32]


def planted(vectors: Floats) -> Planted:
    """Items are numbered from 1 on, in the order of their vectors."""
    cells: dict[int, Bag] = {}
    middles: list[Floats] = []
    cell_of = np.zeros(len(vectors), np.int32)
    for places in _parts(vectors, CELL):
        cell = len(cells) + 1
        cells[cell] = Bag.of(places + 1, vectors[places])
        middles.append(centre(vectors[places]))
        cell_of[places] = cell
    around = np.stack(middles)
    regions: dict[int, Bag] = {}
    centres: dict[int, Floats] = {}
    for places in _parts(around, REGION):
        region = len(regions) + 1
        regions[region], centres[region] = Bag.of(places + 1, around[places]), centre(around[places])
    return Planted(cells, regions, centres, cell_of)


def _parts(vectors: Floats, most: int) -> Iterator[NDArray[np.intp]]:
    """Places of vectors that belong together, not more than so many."""
    waiting = [np.arange(len(vectors))]
    while waiting:
        places = waiting.pop()
        if len(places) <= most:
            yield places
            continue
        beyond = _beyond(vectors, places)
        waiting += [places[~beyond], places[beyond]]


def _beyond(vectors: Floats, places: NDArray[np.intp]) -> NDArray[np.bool_]:
    """As `halves` has it; of a great many, as it has some of them."""
    if len(places) <= SAMPLE:
        return halves(vectors[places])
    some = vectors[places[:: len(places) // SAMPLE]]
    second = halves(some)
    along = vectors[places] @ (centre(some[second]) - centre(some[~second]))
    return along > np.median(along)
