"""Defines `Embedder`, which turns texts into vectors, and opens the one in the settings; only that one is imported."""

from collections.abc import Sequence
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray
from pydantic import SecretStr

Vectors: TypeAlias = NDArray[np.float32]


class Embedder(Protocol):
    """Turns texts into vectors; the dot product of texts with the same meaning is near 1. Safe for concurrent tasks."""

    @property
    def name(self) -> str:
        """The name of the model and its version; vectors of different names must not be compared."""
        ...

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """One row for each text, in the order of the texts, computed off the event loop. Raises Unavailable."""
        ...

    async def close(self) -> None: ...


def open_embedder(source: str, model: str | None, key: SecretStr | None) -> Embedder | None:
    """Open `builtin`, `off`, or the address of an embeddings API; imports only what it opens."""
    if source == "off":
        return None
    if source == "builtin":
        from frontdesk.embedding.builtin import BuiltinEmbedder  # noqa: PLC0415

        return BuiltinEmbedder()
    from frontdesk.embedding.remote import RemoteEmbedder  # noqa: PLC0415

    return RemoteEmbedder(source, model, key)
