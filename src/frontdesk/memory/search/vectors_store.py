"""Stores a person's vectors in cells and regions that split as they grow, and finds the nearest ones.

Nothing is trained and nothing is held in memory: a person with a hundred items has a few cells, one with a million has
twenty thousand, and to add an item touches one of them, or two when it splits.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import BindParameter, ColumnElement, and_, bindparam, delete, func, select, update

from frontdesk.db.schema import recall_cells, recall_docs, recall_regions
from frontdesk.db.statements import one_of, per_dialect
from frontdesk.memory.store import PersonTransaction

Floats: TypeAlias = NDArray[np.float32]
Numbers: TypeAlias = NDArray[np.int32]
Rows: TypeAlias = NDArray[Any]

VECTOR_STEPS = 127
# Of a vector that points nowhere.
MIN_LENGTH = np.float32(1e-9)
NUMBER_BYTES, STEP_BYTES = 4, 4
# As many numbers as are turned into floats at once: they stay in the cache.
PRODUCT_CHUNK = 512


@dataclass(frozen=True, slots=True)
class NumberedVectors:
    """Numbered vectors: items in a cell, or the centres of cells in a region."""

    rows: Rows

    @classmethod
    def encode(cls, numbers: Sequence[int] | NDArray[np.integer[Any]], vectors: Floats) -> "NumberedVectors":
        """These vectors, each as near as steps allow."""
        rows = np.empty(len(vectors), _row_layout(vectors.shape[1]))
        largest = np.maximum(np.abs(vectors).max(axis=1, initial=0), MIN_LENGTH)
        rows["number"], rows["step"] = numbers, largest / VECTOR_STEPS
        rows["steps"] = np.rint(vectors * (VECTOR_STEPS / largest)[:, None])
        return cls(rows)

    @classmethod
    def read(cls, packed: Iterable[bytes], dimensions: int) -> "NumberedVectors":
        return cls(np.frombuffer(b"".join(packed), _row_layout(dimensions)))

    @classmethod
    def concatenate(cls, bags: Sequence["NumberedVectors"]) -> "NumberedVectors":
        return cls(np.concatenate([bag.rows for bag in bags]))

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, which: NDArray[Any]) -> "NumberedVectors":
        return NumberedVectors(self.rows[which])

    @property
    def numbers(self) -> Numbers:
        return self.rows["number"]

    def packed(self) -> bytes:
        return self.rows.tobytes()

    def vectors(self) -> Floats:
        return self.rows["steps"].astype(np.float32) * self.rows["step"][:, None]

    def products(self, vector: Floats) -> Floats:
        """The cosine of each with this one."""
        found = np.empty(len(self.rows), np.float32)
        steps = self.rows["steps"]
        for start in range(0, len(found), PRODUCT_CHUNK):
            np.dot(
                steps[start : start + PRODUCT_CHUNK].astype(np.float32),
                vector,
                out=found[start : start + PRODUCT_CHUNK],
            )
        return found * self.rows["step"]

    def single_vectors(self) -> list[tuple[int, bytes]]:
        """One by one: the number, and the vector alone."""
        return [(int(row["number"]), row.tobytes()[NUMBER_BYTES:]) for row in self.rows]


def dimensions_of(vector: bytes) -> int:
    """Of a vector that was kept alone."""
    return len(vector) - STEP_BYTES


def join_single_vectors(numbers: Sequence[int], vectors: Sequence[bytes], dimensions: int) -> NumberedVectors:
    """From vectors that were kept one by one."""
    named = (number.to_bytes(NUMBER_BYTES, "little") + vector for number, vector in zip(numbers, vectors, strict=True))
    return NumberedVectors.read(named, dimensions)


def _row_layout(dimensions: int) -> np.dtype[Any]:
    return np.dtype([("number", "<i4"), ("step", "<f4"), ("steps", "i1", (dimensions,))])


MAX_CELL, MAX_REGION = 64, 128
# The regions among which the cell for a new vector is looked for.
CANDIDATE_REGIONS = 4
SPLIT_ROUNDS = 8


@dataclass(slots=True)
class TreePart:
    """The part of a person's tree that new vectors fall into; `first` numbers are those after all that are taken.

    What has changed: cells that were touched, regions with their centres, and the cell of each that came or moved.
    """

    regions: dict[int, NumberedVectors]
    cells: dict[int, NumberedVectors]
    first_cell: int
    first_region: int
    touched: set[int] = field(default_factory=set[int])
    changed_regions: dict[int, Floats] = field(default_factory=dict[int, Floats])
    cell_of: dict[int, int] = field(default_factory=dict[int, int])


def nearest_numbers(centres: NumberedVectors, vector: Floats, count: int) -> list[int]:
    """The numbers of the nearest, so many of them."""
    order = np.argsort(-centres.products(vector), kind="stable")[:count]
    return centres.numbers[order].tolist()


def candidate_regions(centres: NumberedVectors, vectors: Floats) -> set[int]:
    """The regions that may hold the cells for these."""
    if len(centres) <= CANDIDATE_REGIONS:
        return set(centres.numbers.tolist())
    near = vectors @ centres.vectors().T
    return set(
        centres.numbers[np.argpartition(-near, CANDIDATE_REGIONS - 1, axis=1)[:, :CANDIDATE_REGIONS]].ravel().tolist()
    )


def assign_cells(regions: Iterable[NumberedVectors], vectors: Floats) -> list[int]:
    """The cell for each vector."""
    cells = NumberedVectors.concatenate(list(regions))
    return cells.numbers[(vectors @ cells.vectors().T).argmax(axis=1)].tolist()


def add_vectors(part: TreePart, given: NumberedVectors) -> None:
    """Put these into their cells, and split what has become too large."""
    vectors = given.vectors()
    if not part.regions:
        _create_first_cell(part, vectors)
    places = np.array(assign_cells(part.regions.values(), vectors))
    for cell in dict.fromkeys(places.tolist()):
        new = given[places == cell]
        part.cells[cell] = NumberedVectors.concatenate([part.cells[cell], new])
        _mark_cell(part, cell, new)
        _split_cell(part, cell)


def split_in_two(vectors: Floats) -> NDArray[np.bool_]:
    """Which of these are of the second of two heaps, neither of them less than a quarter."""
    first = vectors[np.argmin(vectors @ vectors.mean(axis=0))]
    second = vectors[np.argmin(vectors @ first)]
    along = np.zeros(len(vectors), np.float32)
    between = 0.0
    for _ in range(SPLIT_ROUNDS):
        along = vectors @ (second - first)
        between = float((first + second) @ (second - first)) / 2
        beyond = along > between
        if beyond.all() or not beyond.any():
            break
        first, second = centre_of(vectors[~beyond]), centre_of(vectors[beyond])
    quarter = len(vectors) // 4
    cut = min(max(int(np.count_nonzero(along <= between)), quarter), len(vectors) - quarter)
    found = np.zeros(len(vectors), np.bool_)
    found[np.argsort(along, kind="stable")[cut:]] = True
    return found


def centre_of(vectors: Floats) -> Floats:
    """The direction in which these lie."""
    middle = vectors.mean(axis=0)
    return middle / max(float(np.linalg.norm(middle)), float(MIN_LENGTH))


def _create_first_cell(part: TreePart, vectors: Floats) -> None:
    cell, region = part.first_cell, part.first_region
    part.first_cell, part.first_region = cell + 1, region + 1
    middle = centre_of(vectors)
    part.cells[cell] = NumberedVectors.encode([], vectors[:0])
    part.regions[region] = NumberedVectors.encode([cell], middle[None])
    part.changed_regions[region] = middle


def _mark_cell(part: TreePart, cell: int, come: NumberedVectors) -> None:
    part.touched.add(cell)
    part.cell_of |= dict.fromkeys(come.numbers.tolist(), cell)


def _split_cell(part: TreePart, cell: int) -> None:
    held = part.cells[cell]
    if len(held) <= MAX_CELL:
        return
    other, part.first_cell = part.first_cell, part.first_cell + 1
    vectors = held.vectors()
    beyond = split_in_two(vectors)
    part.cells[cell], part.cells[other] = held[~beyond], held[beyond]
    region = next(number for number, cells in part.regions.items() if cell in cells.numbers)
    kept = part.regions[region]
    kept = kept[kept.numbers != cell]
    middles = np.stack([centre_of(vectors[~beyond]), centre_of(vectors[beyond])])
    part.regions[region] = NumberedVectors.concatenate([kept, NumberedVectors.encode([cell, other], middles)])
    part.changed_regions[region] = centre_of(part.regions[region].vectors())
    _mark_cell(part, other, part.cells[other])
    for half in (cell, other):
        _split_cell(part, half)
    _split_region(part, region)


def _split_region(part: TreePart, region: int) -> None:
    cells = part.regions[region]
    if len(cells) <= MAX_REGION:
        return
    other, part.first_region = part.first_region, part.first_region + 1
    vectors = cells.vectors()
    beyond = split_in_two(vectors)
    for number, half in ((region, ~beyond), (other, beyond)):
        part.regions[number] = cells[half]
        part.changed_regions[number] = centre_of(vectors[half])


# Of more items than these the likeliest are compared: those of the nearest cells in the nearest regions. Of a million
# made-up items they hold 94 of the 100 that are truly nearest, of 49,000 real ones 98 (bench/memory).
COMPARE_ALL = 4096
NEAREST_REGIONS, NEAREST_CELLS = 32, 96

USER_ID: BindParameter[str] = bindparam("user_id")
_SELECT_ALL = select(recall_cells.c.vectors).where(
    recall_cells.c.user_id == USER_ID, recall_cells.c.model == bindparam("model")
)
_SELECT_CENTRES = select(recall_regions.c.centre).where(
    recall_regions.c.user_id == USER_ID, recall_regions.c.model == bindparam("model")
)
_SELECT_REGIONS = select(recall_regions.c.region, recall_regions.c.cells).where(
    recall_regions.c.user_id == USER_ID, one_of(recall_regions.c.region, "regions")
)
_SELECT_CELLS = select(recall_cells.c.cell, recall_cells.c.vectors).where(
    recall_cells.c.user_id == USER_ID, one_of(recall_cells.c.cell, "cells")
)
_SELECT_VECTORS = select(recall_docs.c.n, recall_docs.c.vector).where(
    recall_docs.c.user_id == USER_ID,
    one_of(recall_docs.c.n, "numbers"),
    recall_docs.c.model == bindparam("model"),
    recall_docs.c.vector.is_not(None),
)
_LAST_CELL = select(func.coalesce(func.max(recall_cells.c.cell), 0)).where(recall_cells.c.user_id == USER_ID)
_LAST_REGION = select(func.coalesce(func.max(recall_regions.c.region), 0)).where(recall_regions.c.user_id == USER_ID)
_SAVE_CELL = (
    update(recall_docs)
    .where(recall_docs.c.user_id == bindparam("whose"), recall_docs.c.n == bindparam("number"))
    .values(cell=bindparam("to"))
)


def _put_region(insert: Any) -> Any:  # noqa: ANN401 - the two dialects' have no common type
    made = insert(recall_regions)
    changed = {"centre": made.excluded.centre, "cells": made.excluded.cells}
    return made.on_conflict_do_update(index_elements=["user_id", "region"], set_=changed)


def _put_cell(insert: Any) -> Any:  # noqa: ANN401 - the two dialects' have no common type
    made = insert(recall_cells)
    return made.on_conflict_do_update(index_elements=["user_id", "cell"], set_={"vectors": made.excluded.vectors})


_PUT_REGION, _PUT_CELL = per_dialect(_put_region), per_dialect(_put_cell)


def model_number(embedder: str) -> int:
    """A number that stands for an embedder, by its name; 0 stands for none."""
    return int.from_bytes(sha256(embedder.encode()).digest()[:4], "little") >> 1 or 1


def nearest_vectors(mine: PersonTransaction, model: int, vector: Floats, *, every_one: bool) -> NumberedVectors:
    """The items that were read by this model: every one, or those of the nearest cells."""
    whose, dimensions = {"user_id": mine.user_id}, len(vector)
    if every_one:
        return NumberedVectors.read(
            mine.connection.execute(_SELECT_ALL, {**whose, "model": model}).scalars(), dimensions
        )
    regions = nearest_numbers(_fetch_centres(mine, model, dimensions), vector, NEAREST_REGIONS)
    rows = mine.connection.execute(_SELECT_REGIONS, {**whose, "regions": regions})
    cells = nearest_numbers(NumberedVectors.read((row.cells for row in rows), dimensions), vector, NEAREST_CELLS)
    rows = mine.connection.execute(_SELECT_CELLS, {**whose, "cells": cells})
    return NumberedVectors.read((row.vectors for row in rows), dimensions)


def fetch_vectors(mine: PersonTransaction, model: int, numbers: Sequence[int], dimensions: int) -> NumberedVectors:
    """Those of these items that were read by this model."""
    given = {"user_id": mine.user_id, "model": model, "numbers": list(numbers)}
    rows = mine.connection.execute(_SELECT_VECTORS, given).all()
    return join_single_vectors([row.n for row in rows], [row.vector for row in rows], dimensions)


def place_vectors(mine: PersonTransaction, model: int, given: NumberedVectors) -> dict[int, int]:
    """Put these into cells; the cell of each of them, and of each that had to move."""
    vectors = given.vectors()
    dimensions = vectors.shape[1]
    regions = _fetch_regions(mine, candidate_regions(_fetch_centres(mine, model, dimensions), vectors), dimensions)
    cells = _fetch_cells(mine, set(assign_cells(regions.values(), vectors)), dimensions) if regions else {}
    whose = {"user_id": mine.user_id}
    last_cell = mine.connection.execute(_LAST_CELL, whose).scalar_one()
    last_region = mine.connection.execute(_LAST_REGION, whose).scalar_one()
    part = TreePart(regions, cells, last_cell + 1, last_region + 1)
    add_vectors(part, given)
    _save_part(mine, model, part)
    return part.cell_of


def save_cells(mine: PersonTransaction, cell_of: dict[int, int]) -> None:
    """Note in which cells items lie now."""
    rows = [{"whose": mine.user_id, "number": number, "to": cell} for number, cell in cell_of.items()]
    if rows:
        mine.connection.execute(_SAVE_CELL, rows)


def remove_vector(mine: PersonTransaction, cell: int, n: int, vector: bytes) -> None:
    """Leave nothing of an item's vector in its cell."""
    for number, held in _fetch_cells(mine, [cell], dimensions_of(vector)).items():
        kept = held[held.numbers != n].packed()
        mine.connection.execute(update(recall_cells).where(_is_cell(mine, number)).values(vectors=kept))


def delete_other_models(mine: PersonTransaction, model: int) -> None:
    """Cells of models that nothing was read by in the end."""
    for table in (recall_cells, recall_regions):
        mine.connection.execute(delete(table).where(table.c.user_id == mine.user_id, table.c.model != model))


def _save_part(mine: PersonTransaction, model: int, part: TreePart) -> None:
    dialect, whose = mine.connection.dialect.name, {"user_id": mine.user_id, "model": model}
    cells = [{**whose, "cell": cell, "vectors": part.cells[cell].packed()} for cell in part.touched]
    mine.connection.execute(_PUT_CELL[dialect], cells)
    regions = [
        {
            **whose,
            "region": region,
            "centre": NumberedVectors.encode([region], centre[None]).packed(),
            "cells": part.regions[region].packed(),
        }
        for region, centre in part.changed_regions.items()
    ]
    if regions:
        mine.connection.execute(_PUT_REGION[dialect], regions)


def _fetch_centres(mine: PersonTransaction, model: int, dimensions: int) -> NumberedVectors:
    rows = mine.connection.execute(_SELECT_CENTRES, {"user_id": mine.user_id, "model": model})
    return NumberedVectors.read(rows.scalars(), dimensions)


def _fetch_regions(mine: PersonTransaction, regions: Collection[int], dimensions: int) -> dict[int, NumberedVectors]:
    rows = mine.connection.execute(_SELECT_REGIONS, {"user_id": mine.user_id, "regions": list(regions)})
    return {row.region: NumberedVectors.read([row.cells], dimensions) for row in rows}


def _fetch_cells(mine: PersonTransaction, cells: Collection[int], dimensions: int) -> dict[int, NumberedVectors]:
    rows = mine.connection.execute(_SELECT_CELLS, {"user_id": mine.user_id, "cells": list(cells)})
    return {row.cell: NumberedVectors.read([row.vectors], dimensions) for row in rows}


def _is_cell(mine: PersonTransaction, cell: int) -> ColumnElement[bool]:
    return and_(recall_cells.c.user_id == mine.user_id, recall_cells.c.cell == cell)
