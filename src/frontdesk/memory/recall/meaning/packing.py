"""Vectors as they are kept: a byte a number and what a step of it is worth, under a number of its own."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float32]
Numbers: TypeAlias = NDArray[np.int32]
Rows: TypeAlias = NDArray[Any]

STEPS = 127
# Of a vector that points nowhere.
LEAST = np.float32(1e-9)
NUMBER_BYTES, STEP_BYTES = 4, 4
# As many numbers as are turned into floats at once: they stay in the cache.
CHUNK = 512


@dataclass(frozen=True, slots=True)
class Bag:
    """Numbered vectors: items in a cell, or the centres of cells in a region."""

    rows: Rows

    @classmethod
    def of(cls, numbers: Sequence[int] | NDArray[np.integer[Any]], vectors: Floats) -> "Bag":
        """These vectors, each as near as steps allow."""
        rows = np.empty(len(vectors), _layout(vectors.shape[1]))
        largest = np.maximum(np.abs(vectors).max(axis=1, initial=0), LEAST)
        rows["number"], rows["step"] = numbers, largest / STEPS
        rows["steps"] = np.rint(vectors * (STEPS / largest)[:, None])
        return cls(rows)

    @classmethod
    def read(cls, packed: Iterable[bytes], dimensions: int) -> "Bag":
        return cls(np.frombuffer(b"".join(packed), _layout(dimensions)))

    @classmethod
    def joined(cls, bags: Sequence["Bag"]) -> "Bag":
        return cls(np.concatenate([bag.rows for bag in bags]))

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, which: NDArray[Any]) -> "Bag":
        return Bag(self.rows[which])

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
        for start in range(0, len(found), CHUNK):
            np.dot(steps[start : start + CHUNK].astype(np.float32), vector, out=found[start : start + CHUNK])
        return found * self.rows["step"]

    def each(self) -> list[tuple[int, bytes]]:
        """One by one: the number, and the vector alone."""
        return [(int(row["number"]), row.tobytes()[NUMBER_BYTES:]) for row in self.rows]


def dimensions_of(vector: bytes) -> int:
    """Of a vector that was kept alone."""
    return len(vector) - STEP_BYTES


def alone(numbers: Sequence[int], vectors: Sequence[bytes], dimensions: int) -> Bag:
    """From vectors that were kept one by one."""
    named = (number.to_bytes(NUMBER_BYTES, "little") + vector for number, vector in zip(numbers, vectors, strict=True))
    return Bag.read(named, dimensions)


def _layout(dimensions: int) -> np.dtype[Any]:
    return np.dtype([("number", "<i4"), ("step", "<f4"), ("steps", "i1", (dimensions,))])
