"""Stores vectors with one byte per number, and computes cosines with them.

Both users quantise and multiply in the same way, but store the bytes in different places: `QuantisedVectors` is a
matrix in memory (the tools of an installation, searched together), `NumberedVectors` is the content of a database
column (the memories of one person, read when they are searched). Unrounded vectors are packed as float16.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float32]
Mask: TypeAlias = NDArray[np.bool_]
Numbers: TypeAlias = NDArray[np.int32]

QUANTISATION_STEPS = 127
# Used as the largest number of a vector of zeros, to avoid a division by zero.
MIN_LENGTH = np.float32(1e-9)
# How many numbers are converted to floats at a time: they stay in the cache, and are too few for BLAS to start threads,
# which cost more CPU time than they save.
NUMBERS_AT_ONCE = 1 << 17


def quantise(vectors: Floats) -> tuple[Floats, Floats]:
    """Round each vector to whole steps from -127 to 127. Returns the steps, and the length of one step of each row."""
    largest = np.maximum(np.abs(vectors).max(axis=1, initial=0), MIN_LENGTH)
    return np.rint(vectors * (QUANTISATION_STEPS / largest)[:, None]), largest / QUANTISATION_STEPS


def cosines_of_steps(steps: NDArray[np.int8], scales: Floats, queries: Floats, rows_at_once: int) -> Floats:
    """The cosine of each query with each row; the result has a row for each query. All vectors have length 1."""
    count, dimensions = steps.shape
    found = np.empty((len(queries), count), np.float32)
    block = np.empty((min(rows_at_once, count), dimensions), np.float32)
    for start in range(0, count, rows_at_once):
        rows = block[: count - start]
        np.copyto(rows, steps[start : start + rows_at_once])
        for query, target in zip(queries, found, strict=True):
            np.dot(rows, query, out=target[start : start + rows_at_once])
    found *= scales
    return found


@dataclass(frozen=True, slots=True)
class QuantisedVectors:
    """A matrix in memory with a row for each document. A row that is not `ready` has no meaningful content."""

    steps: NDArray[np.int8]
    scales: Floats
    ready: Mask

    @classmethod
    def empty(cls, count: int, dimensions: int) -> "QuantisedVectors":
        steps = np.zeros((count, dimensions), np.int8)
        return cls(steps, np.zeros(count, np.float32), np.zeros(count, np.bool_))

    def with_rows(self, rows: NDArray[np.intp], vectors: Floats) -> "QuantisedVectors":
        """The matrix with some rows set; copied only if one of them was ready, since readers use only ready rows."""
        target = self
        if self.ready[rows].any():
            target = QuantisedVectors(self.steps.copy(), self.scales.copy(), self.ready)
        steps, scales = quantise(vectors)
        target.steps[rows], target.scales[rows] = steps.astype(np.int8), scales
        ready = self.ready.copy()
        ready[rows] = True
        return replace(target, ready=ready)

    def cosines(self, queries: Floats) -> Floats:
        """The cosine of each query with each document; the result has a row for each query."""
        return cosines_of_steps(self.steps, self.scales, queries, max(1, NUMBERS_AT_ONCE // self.steps.shape[1]))

    def cosines_of_rows(self, rows: NDArray[np.intp], queries: Floats) -> Floats:
        """The cosines of some rows only."""
        return QuantisedVectors(self.steps[rows], self.scales[rows], self.ready[rows]).cosines(queries)


def join_vectors(parts: Sequence[tuple[QuantisedVectors | None, Mask]]) -> QuantisedVectors | None:
    """The live rows of all parts in order; None if no part has vectors."""
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


NUMBER_BYTES, SCALE_BYTES = 4, 4
PACKED_ROWS_AT_ONCE = 512


@dataclass(frozen=True, slots=True)
class NumberedVectors:
    """Vectors as the database stores them, each with the number of its document."""

    rows: NDArray[Any]

    @classmethod
    def encode(cls, numbers: Sequence[int] | NDArray[np.integer[Any]], vectors: Floats) -> "NumberedVectors":
        rows = np.empty(len(vectors), _row_layout(vectors.shape[1]))
        rows["number"] = numbers
        rows["steps"], rows["scale"] = quantise(vectors)
        return cls(rows)

    @classmethod
    def read(cls, packed: Iterable[bytes], dimensions: int) -> "NumberedVectors":
        return cls(np.frombuffer(b"".join(packed), _row_layout(dimensions)))

    @classmethod
    def read_single(cls, numbers: Sequence[int], vectors: Sequence[bytes], dimensions: int) -> "NumberedVectors":
        """Read vectors that were stored one by one, without their numbers (`single_vectors`)."""
        pairs = zip(numbers, vectors, strict=True)
        return cls.read((number.to_bytes(NUMBER_BYTES, "little") + vector for number, vector in pairs), dimensions)

    @classmethod
    def concatenate(cls, parts: Sequence["NumberedVectors"]) -> "NumberedVectors":
        return cls(np.concatenate([part.rows for part in parts]))

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
        return self.rows["steps"].astype(np.float32) * self.rows["scale"][:, None]

    def cosines(self, query: Floats) -> Floats:
        """The cosine of each vector with this one."""
        return cosines_of_steps(self.rows["steps"], self.rows["scale"], query[np.newaxis], PACKED_ROWS_AT_ONCE)[0]

    def single_vectors(self) -> list[tuple[int, bytes]]:
        """For each vector, its number and its bytes without the number."""
        return [(int(row["number"]), row.tobytes()[NUMBER_BYTES:]) for row in self.rows]


def dimensions_of(vector: bytes) -> int:
    """How many numbers a single stored vector has."""
    return len(vector) - SCALE_BYTES


def _row_layout(dimensions: int) -> np.dtype[Any]:
    return np.dtype([("number", "<i4"), ("scale", "<f4"), ("steps", "i1", (dimensions,))])


def pack_vectors(matrix: Floats) -> list[bytes]:
    """Each row as float16."""
    return [row.tobytes() for row in matrix.astype(np.float16)]


def unpack_vectors(rows: Sequence[bytes]) -> Floats:
    """The matrix of rows of one length."""
    return np.frombuffer(b"".join(rows), dtype=np.float16).astype(np.float32).reshape(len(rows), -1 if rows else 0)
