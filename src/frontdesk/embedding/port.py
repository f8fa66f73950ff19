"""What an embedder does: texts in, vectors of length one out."""

from collections.abc import Sequence
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

Vectors: TypeAlias = NDArray[np.float32]


class Embedder(Protocol):
    """Texts that mean the same have vectors whose product is near 1. May be called from many tasks at once."""

    @property
    def name(self) -> str:
        """Names the model and its version: vectors of two names must not meet."""
        ...

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """A row for each text, in their order, off the event loop. Raises Unavailable."""
        ...

    async def close(self) -> None: ...
