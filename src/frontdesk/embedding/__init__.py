"""Texts as vectors: defines `Embedder`, and opens the one that the settings name; nothing else is imported."""

from collections.abc import Sequence
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray
from pydantic import SecretStr

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


def open_embedder(source: str, model: str | None, key: SecretStr | None) -> Embedder | None:
    """`builtin`, `off`, or the address of an embeddings API; what is not asked for is not imported."""
    if source == "off":
        return None
    if source == "builtin":
        from frontdesk.embedding.builtin import BuiltinEmbedder  # noqa: PLC0415

        return BuiltinEmbedder()
    from frontdesk.embedding.remote import RemoteEmbedder  # noqa: PLC0415

    return RemoteEmbedder(source, model, key)
