"""The meaning of tools as vectors, kept at a byte a number: 100,000 of them take 38 MB."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float32]
Mask: TypeAlias = NDArray[np.bool_]

STEPS = 127
# As many numbers as are turned into floats at once: they stay in the cache, and are too few for BLAS to start threads,
# which cost more CPU time than they save.
BLOCK = 1 << 17


@dataclass(frozen=True, slots=True)
class Vectors:
    """A row for each tool; what stands in a row that is not ready means nothing."""

    steps: NDArray[np.int8]
    scales: Floats
    ready: Mask

    @classmethod
    def empty(cls, count: int, dimensions: int) -> "Vectors":
        steps = np.zeros((count, dimensions), np.int8)
        return cls(steps, np.zeros(count, np.float32), np.zeros(count, np.bool_))

    def filled(self, rows: NDArray[np.intp], vectors: Floats) -> "Vectors":
        """These with some rows set. Rows not ready before are written in place: no one who holds these looks there."""
        target = self.copied() if self.ready[rows].any() else self
        largest = np.maximum(np.abs(vectors).max(axis=1), np.finfo(np.float32).tiny)
        target.steps[rows] = np.rint(vectors * (STEPS / largest)[:, None]).astype(np.int8)
        target.scales[rows] = largest / STEPS
        ready = self.ready.copy()
        ready[rows] = True
        return replace(target, ready=ready)

    def copied(self) -> "Vectors":
        return Vectors(self.steps.copy(), self.scales.copy(), self.ready)

    def products(self, queries: Floats) -> Floats:
        """The cosine of each query (a row of the answer) with each tool."""
        count, dimensions = self.steps.shape
        found = np.empty((len(queries), count), np.float32)
        size = max(1, BLOCK // dimensions)
        block = np.empty((size, dimensions), np.float32)
        for start in range(0, count, size):
            rows = block[: min(size, count - start)]
            np.copyto(rows, self.steps[start : start + size])
            for query, target in zip(queries, found, strict=True):
                np.dot(rows, query, out=target[start : start + size])
        found *= self.scales
        return found

    def products_of(self, rows: NDArray[np.intp], queries: Floats) -> Floats:
        """The same for some rows only."""
        return Vectors(self.steps[rows], self.scales[rows], self.ready[rows]).products(queries)


def joined(parts: Sequence[tuple[Vectors | None, Mask]]) -> Vectors | None:
    """The live rows of all parts in their order."""
    dimensions = next((part.steps.shape[1] for part, _ in parts if part is not None), None)
    if dimensions is None:
        return None
    whole = Vectors.empty(sum(int(np.count_nonzero(live)) for _, live in parts), dimensions)
    start = 0
    for part, live in parts:
        end = start + int(np.count_nonzero(live))
        if part is not None:
            whole.steps[start:end] = part.steps if live.all() else part.steps[live]
            whole.scales[start:end], whole.ready[start:end] = part.scales[live], part.ready[live]
        start = end
    return whole
