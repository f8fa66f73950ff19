"""Vectors as they are kept: half precision halves the space, and the order of results does not show it."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray


def packed(matrix: NDArray[np.float32]) -> list[bytes]:
    """A row of numbers each."""
    return [row.tobytes() for row in matrix.astype(np.float16)]


def unpacked(rows: Sequence[bytes]) -> NDArray[np.float32]:
    """The matrix that rows of one length make."""
    return np.frombuffer(b"".join(rows), dtype=np.float16).astype(np.float32).reshape(len(rows), -1 if rows else 0)
