"""Cells of vectors and regions of cells, which split as they grow: what is near lies together, whoever's it is.

Nothing is trained and nothing is held in memory: a person with a hundred items has a few cells, one with a million has
twenty thousand, and to add an item touches one of them, or two when it splits.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from frontdesk.memory.recall.meaning.packing import LEAST, Bag, Floats

CELL, REGION = 64, 128
# The regions among which the cell for a new vector is looked for.
BESIDE = 4
ROUNDS = 8


@dataclass(slots=True)
class Part:
    """The part of a person's tree that new vectors fall into; `first` numbers are those after all that are taken.

    What has changed: cells that were touched, regions with their centres, and the cell of each that came or moved.
    """

    regions: dict[int, Bag]
    cells: dict[int, Bag]
    first_cell: int
    first_region: int
    touched: set[int] = field(default_factory=set[int])
    changed_regions: dict[int, Floats] = field(default_factory=dict[int, Floats])
    cell_of: dict[int, int] = field(default_factory=dict[int, int])


def nearest(centres: Bag, vector: Floats, count: int) -> list[int]:
    """The numbers of the nearest, so many of them."""
    order = np.argsort(-centres.products(vector), kind="stable")[:count]
    return centres.numbers[order].tolist()


def beside(centres: Bag, vectors: Floats) -> set[int]:
    """The regions that may hold the cells for these."""
    if len(centres) <= BESIDE:
        return set(centres.numbers.tolist())
    near = vectors @ centres.vectors().T
    return set(centres.numbers[np.argpartition(-near, BESIDE - 1, axis=1)[:, :BESIDE]].ravel().tolist())


def homes(regions: Iterable[Bag], vectors: Floats) -> list[int]:
    """The cell for each vector."""
    cells = Bag.joined(list(regions))
    return cells.numbers[(vectors @ cells.vectors().T).argmax(axis=1)].tolist()


def grow(part: Part, given: Bag) -> None:
    """Put these into their cells, and split what has become too large."""
    vectors = given.vectors()
    if not part.regions:
        _plant(part, vectors)
    places = np.array(homes(part.regions.values(), vectors))
    for cell in dict.fromkeys(places.tolist()):
        new = given[places == cell]
        part.cells[cell] = Bag.joined([part.cells[cell], new])
        _note(part, cell, new)
        _split_cell(part, cell)


def halves(vectors: Floats) -> NDArray[np.bool_]:
    """Which of these are of the second of two heaps, neither of them less than a quarter."""
    first = vectors[np.argmin(vectors @ vectors.mean(axis=0))]
    second = vectors[np.argmin(vectors @ first)]
    along = np.zeros(len(vectors), np.float32)
    between = 0.0
    for _ in range(ROUNDS):
        along = vectors @ (second - first)
        between = float((first + second) @ (second - first)) / 2
        beyond = along > between
        if beyond.all() or not beyond.any():
            break
        first, second = centre(vectors[~beyond]), centre(vectors[beyond])
    quarter = len(vectors) // 4
    cut = min(max(int(np.count_nonzero(along <= between)), quarter), len(vectors) - quarter)
    found = np.zeros(len(vectors), np.bool_)
    found[np.argsort(along, kind="stable")[cut:]] = True
    return found


def centre(vectors: Floats) -> Floats:
    """The direction in which these lie."""
    middle = vectors.mean(axis=0)
    return middle / max(float(np.linalg.norm(middle)), float(LEAST))


def _plant(part: Part, vectors: Floats) -> None:
    cell, region = part.first_cell, part.first_region
    part.first_cell, part.first_region = cell + 1, region + 1
    middle = centre(vectors)
    part.cells[cell] = Bag.of([], vectors[:0])
    part.regions[region] = Bag.of([cell], middle[None])
    part.changed_regions[region] = middle


def _note(part: Part, cell: int, come: Bag) -> None:
    part.touched.add(cell)
    part.cell_of |= dict.fromkeys(come.numbers.tolist(), cell)


def _split_cell(part: Part, cell: int) -> None:
    held = part.cells[cell]
    if len(held) <= CELL:
        return
    other, part.first_cell = part.first_cell, part.first_cell + 1
    vectors = held.vectors()
    beyond = halves(vectors)
    part.cells[cell], part.cells[other] = held[~beyond], held[beyond]
    region = next(number for number, cells in part.regions.items() if cell in cells.numbers)
    kept = part.regions[region]
    kept = kept[kept.numbers != cell]
    middles = np.stack([centre(vectors[~beyond]), centre(vectors[beyond])])
    part.regions[region] = Bag.joined([kept, Bag.of([cell, other], middles)])
    part.changed_regions[region] = centre(part.regions[region].vectors())
    _note(part, other, part.cells[other])
    for half in (cell, other):
        _split_cell(part, half)
    _split_region(part, region)


def _split_region(part: Part, region: int) -> None:
    cells = part.regions[region]
    if len(cells) <= REGION:
        return
    other, part.first_region = part.first_region, part.first_region + 1
    vectors = cells.vectors()
    beyond = halves(vectors)
    for number, half in ((region, ~beyond), (other, beyond)):
        part.regions[number] = cells[half]
        part.changed_regions[number] = centre(vectors[half])
