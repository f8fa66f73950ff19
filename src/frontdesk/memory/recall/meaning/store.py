"""The meaning of a person's items in the database: cells of vectors, and regions of cells."""

from collections.abc import Collection, Sequence
from hashlib import sha256
from typing import Any

from sqlalchemy import BindParameter, ColumnElement, and_, bindparam, delete, func, select, update

from frontdesk.db.lists import one_of
from frontdesk.db.schema import recall_cells, recall_docs, recall_regions
from frontdesk.db.upsert import per_dialect
from frontdesk.memory.recall.meaning import tree
from frontdesk.memory.recall.meaning.packing import Bag, Floats, alone, dimensions_of
from frontdesk.memory.store import Mine

# Of more items than these the likeliest are compared: those of the nearest cells in the nearest regions. Of a million
# made-up items they hold 94 of the 100 that are truly nearest, of 49,000 real ones 98 (bench/memory).
EVERY_ONE = 4096
REGIONS, CELLS = 32, 96

WHOSE: BindParameter[str] = bindparam("user_id")
_ALL = select(recall_cells.c.vectors).where(recall_cells.c.user_id == WHOSE, recall_cells.c.model == bindparam("model"))
_CENTRES = select(recall_regions.c.centre).where(
    recall_regions.c.user_id == WHOSE, recall_regions.c.model == bindparam("model")
)
_REGIONS = select(recall_regions.c.region, recall_regions.c.cells).where(
    recall_regions.c.user_id == WHOSE, one_of(recall_regions.c.region, "regions")
)
_CELLS = select(recall_cells.c.cell, recall_cells.c.vectors).where(
    recall_cells.c.user_id == WHOSE, one_of(recall_cells.c.cell, "cells")
)
_ALONE = select(recall_docs.c.n, recall_docs.c.vector).where(
    recall_docs.c.user_id == WHOSE,
    one_of(recall_docs.c.n, "numbers"),
    recall_docs.c.model == bindparam("model"),
    recall_docs.c.vector.is_not(None),
)
_LAST_CELL = select(func.coalesce(func.max(recall_cells.c.cell), 0)).where(recall_cells.c.user_id == WHOSE)
_LAST_REGION = select(func.coalesce(func.max(recall_regions.c.region), 0)).where(recall_regions.c.user_id == WHOSE)
_MOVE = (
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


def number_of(embedder: str) -> int:
    """A number that stands for an embedder, by its name; 0 stands for none."""
    return int.from_bytes(sha256(embedder.encode()).digest()[:4], "little") >> 1 or 1


def near(mine: Mine, model: int, vector: Floats, *, every_one: bool) -> Bag:
    """The items that were read by this model: every one, or those of the nearest cells."""
    whose, dimensions = {"user_id": mine.user_id}, len(vector)
    if every_one:
        return Bag.read(mine.connection.execute(_ALL, {**whose, "model": model}).scalars(), dimensions)
    regions = tree.nearest(_centres(mine, model, dimensions), vector, REGIONS)
    rows = mine.connection.execute(_REGIONS, {**whose, "regions": regions})
    cells = tree.nearest(Bag.read((row.cells for row in rows), dimensions), vector, CELLS)
    rows = mine.connection.execute(_CELLS, {**whose, "cells": cells})
    return Bag.read((row.vectors for row in rows), dimensions)


def alone_of(mine: Mine, model: int, numbers: Sequence[int], dimensions: int) -> Bag:
    """Those of these items that were read by this model."""
    given = {"user_id": mine.user_id, "model": model, "numbers": list(numbers)}
    rows = mine.connection.execute(_ALONE, given).all()
    return alone([row.n for row in rows], [row.vector for row in rows], dimensions)


def place(mine: Mine, model: int, given: Bag) -> dict[int, int]:
    """Put these into cells; the cell of each of them, and of each that had to move."""
    vectors = given.vectors()
    dimensions = vectors.shape[1]
    regions = _regions(mine, tree.beside(_centres(mine, model, dimensions), vectors), dimensions)
    cells = _cells(mine, set(tree.homes(regions.values(), vectors)), dimensions) if regions else {}
    whose = {"user_id": mine.user_id}
    last_cell = mine.connection.execute(_LAST_CELL, whose).scalar_one()
    last_region = mine.connection.execute(_LAST_REGION, whose).scalar_one()
    part = tree.Part(regions, cells, last_cell + 1, last_region + 1)
    tree.grow(part, given)
    _write(mine, model, part)
    return part.cell_of


def move(mine: Mine, cell_of: dict[int, int]) -> None:
    """Note in which cells items lie now."""
    rows = [{"whose": mine.user_id, "number": number, "to": cell} for number, cell in cell_of.items()]
    if rows:
        mine.connection.execute(_MOVE, rows)


def take_out(mine: Mine, cell: int, n: int, vector: bytes) -> None:
    """Leave nothing of an item's vector in its cell."""
    for number, held in _cells(mine, [cell], dimensions_of(vector)).items():
        kept = held[held.numbers != n].packed()
        mine.connection.execute(update(recall_cells).where(_is_cell(mine, number)).values(vectors=kept))


def drop_others(mine: Mine, model: int) -> None:
    """Cells of models that nothing was read by in the end."""
    for table in (recall_cells, recall_regions):
        mine.connection.execute(delete(table).where(table.c.user_id == mine.user_id, table.c.model != model))


def _write(mine: Mine, model: int, part: tree.Part) -> None:
    dialect, whose = mine.connection.dialect.name, {"user_id": mine.user_id, "model": model}
    cells = [{**whose, "cell": cell, "vectors": part.cells[cell].packed()} for cell in part.touched]
    mine.connection.execute(_PUT_CELL[dialect], cells)
    regions = [
        {
            **whose,
            "region": region,
            "centre": Bag.of([region], centre[None]).packed(),
            "cells": part.regions[region].packed(),
        }
        for region, centre in part.changed_regions.items()
    ]
    if regions:
        mine.connection.execute(_PUT_REGION[dialect], regions)


def _centres(mine: Mine, model: int, dimensions: int) -> Bag:
    rows = mine.connection.execute(_CENTRES, {"user_id": mine.user_id, "model": model})
    return Bag.read(rows.scalars(), dimensions)


def _regions(mine: Mine, regions: Collection[int], dimensions: int) -> dict[int, Bag]:
    rows = mine.connection.execute(_REGIONS, {"user_id": mine.user_id, "regions": list(regions)})
    return {row.region: Bag.read([row.cells], dimensions) for row in rows}


def _cells(mine: Mine, cells: Collection[int], dimensions: int) -> dict[int, Bag]:
    rows = mine.connection.execute(_CELLS, {"user_id": mine.user_id, "cells": list(cells)})
    return {row.cell: Bag.read([row.vectors], dimensions) for row in rows}


def _is_cell(mine: Mine, cell: int) -> ColumnElement[bool]:
    return and_(recall_cells.c.user_id == mine.user_id, recall_cells.c.cell == cell)
