"""Keeps vectors at one byte a number, and computes cosines with them; packs vectors for the database."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float32]
Mask: TypeAlias = NDArray[np.bool_]

QUANTISATION_STEPS = 127
# As many numbers as are turned into floats at once: they stay in the cache, and are too few for BLAS to start threads,
# which cost more CPU time than they save.
NUMBERS_AT_ONCE = 1 << 17


@dataclass(frozen=True, slots=True)
class QuantisedVectors:
    """A row for each tool; what stands in a row that is not ready means nothing."""

    steps: NDArray[np.int8]
    scales: Floats
    ready: Mask

    @classmethod
    def empty(cls, count: int, dimensions: int) -> "QuantisedVectors":
        steps = np.zeros((count, dimensions), np.int8)
        return cls(steps, np.zeros(count, np.float32), np.zeros(count, np.bool_))

    def with_rows(self, rows: NDArray[np.intp], vectors: Floats) -> "QuantisedVectors":
        """These with some rows set. Rows not ready before are written in place: no one who holds these looks there."""
        target = self.copy_arrays() if self.ready[rows].any() else self
        largest = np.maximum(np.abs(vectors).max(axis=1), np.finfo(np.float32).tiny)
        target.steps[rows] = np.rint(vectors * (QUANTISATION_STEPS / largest)[:, None]).astype(np.int8)
        target.scales[rows] = largest / QUANTISATION_STEPS
        ready = self.ready.copy()
        ready[rows] = True
        return replace(target, ready=ready)

    def copy_arrays(self) -> "QuantisedVectors":
        return QuantisedVectors(self.steps.copy(), self.scales.copy(), self.ready)

    def cosines(self, queries: Floats) -> Floats:
        """The cosine of each query (a row of the answer) with each tool."""
        count, dimensions = self.steps.shape
        found = np.empty((len(queries), count), np.float32)
        size = max(1, NUMBERS_AT_ONCE // dimensions)
        block = np.empty((size, dimensions), np.float32)
        for start in range(0, count, size):
            rows = block[: min(size, count - start)]
            np.copyto(rows, self.steps[start : start + size])
            for query, target in zip(queries, found, strict=True):
                np.dot(rows, query, out=target[start : start + size])
        found *= self.scales
        return found

    def cosines_of_rows(self, rows: NDArray[np.intp], queries: Floats) -> Floats:
        """The same for some rows only."""
        return QuantisedVectors(self.steps[rows], self.scales[rows], self.ready[rows]).cosines(queries)


def join_vectors(parts: Sequence[tuple[QuantisedVectors | None, Mask]]) -> QuantisedVectors | None:
    """The live rows of all parts in their order."""
    dimensions = next((part.steps.shape[1] for part, _ in parts if part is not None), None)
    if dimensions is None:
        return None
    whole = QuantisedVectors.empty(sum(int(np.count_nonzero(live)) for _, live in parts), dimensions)
    start = 0
    for part, live in parts:
        end = start + int(np.count_nonzero(live))
        if part is not None:
            whole.steps[start:end] = part.steps if live.all() else part.steps[live]
            whole.scales[start:end], whole.ready[start:end] = part.scales[live], part.ready[live]
        start = end
    return whole


def pack_vectors(matrix: NDArray[np.float32]) -> list[bytes]:
    """A row of numbers each."""
    return [row.tobytes() for row in matrix.astype(np.float16)]


def unpack_vectors(rows: Sequence[bytes]) -> NDArray[np.float32]:
    """The matrix that rows of one length make."""
    return np.frombuffer(b"".join(rows), dtype=np.float16).astype(np.float32).reshape(len(rows), -1 if rows else 0)
