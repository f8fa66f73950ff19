"""The embedder of the package itself: nothing to start, nothing to fetch, loaded when the first text comes."""

import os
from collections.abc import Sequence
from pathlib import Path
from threading import Lock

import anyio
import anyio.to_thread
import numpy as np

from frontdesk.embedding.minilm import DIMENSIONS, MiniLm
from frontdesk.embedding.port import Vectors
from frontdesk.errors import Unavailable

# A new model needs a new name: vectors of two models must not meet.
NAME = "frontdesk-minilm-1"
MODEL = Path(__file__).with_name("model")
# What one trip to a thread takes, so that a cancelled call ends soon. No question has as many clauses.
CHUNK = 16
# Questions at a time, and pieces of a catalogue at a time: a question never waits for a catalogue.
QUESTIONS = 8
PIECES = min(4, os.cpu_count() or 1)


class BuiltinEmbedder:
    """MiniLM, tuned on tools, on threads beside the event loop."""

    name = NAME

    def __init__(self, folder: Path = MODEL) -> None:
        self._folder = folder
        self._lock = Lock()
        self._model: MiniLm | None = None
        self._questions = anyio.CapacityLimiter(QUESTIONS)
        self._pieces = anyio.CapacityLimiter(PIECES)

    async def embed(self, texts: Sequence[str]) -> Vectors:
        if len(texts) <= CHUNK:
            return await anyio.to_thread.run_sync(self._vectors, texts, limiter=self._questions)
        found = np.empty((len(texts), DIMENSIONS), dtype=np.float32)
        await anyio.to_thread.run_sync(self._loaded, limiter=self._pieces)
        async with anyio.create_task_group() as group:
            for start in range(0, len(texts), CHUNK):
                group.start_soon(self._fill, found[start : start + CHUNK], texts[start : start + CHUNK])
        return found

    async def close(self) -> None:
        self._model = None

    async def _fill(self, rows: Vectors, texts: Sequence[str]) -> None:
        rows[:] = await anyio.to_thread.run_sync(self._vectors, texts, limiter=self._pieces)

    def _vectors(self, texts: Sequence[str]) -> Vectors:
        return self._loaded().vectors(texts)

    def _loaded(self) -> MiniLm:
        with self._lock:
            if self._model is None:
                self._model = _load(self._folder)
            return self._model


def _load(folder: Path) -> MiniLm:
    try:
        return MiniLm(folder)
    except (ImportError, OSError) as error:
        raise Unavailable(
            f"The embedding model cannot be loaded ({error}); install Frontdesk again, "
            "or set FRONTDESK_EMBEDDINGS to off to search by words alone"
        ) from error
