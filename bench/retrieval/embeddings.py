"""Computes vectors of texts with a model in its shipped form, and keeps them on disk, since that takes minutes."""

import hashlib
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from os import cpu_count
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bench.processes import ROOT
from frontdesk.embedding.builtin import DIMENSIONS, MODEL_FOLDER, MiniLmModel

KEPT = ROOT / ".build" / "bench" / "vectors"
SHIPPED = MODEL_FOLDER
UNTUNED = ROOT / ".build" / "bench" / "untuned"
PIECE = 64
# It writes after each batch of this size: a stopped bench continues where it was.
BATCH = 4096

Floats = NDArray[np.float32]


class Embeddings:
    """The vectors of one model. The digest of a text, and of the model's file, is the key."""

    def __init__(self, folder: Path) -> None:
        if not (folder / "model.onnx").is_file():
            raise RuntimeError(
                f"{folder} holds no model; `python -m training export --base FOLDER` makes the untuned one"
            )
        self._model = MiniLmModel(folder)
        self._path = KEPT / f"{_digest((folder / 'model.onnx').read_bytes())[:16]}.npz"
        self._known: dict[str, NDArray[np.float16]] = {}
        if self._path.is_file():
            with np.load(self._path) as kept:
                self._known = dict(zip(kept["digests"].tolist(), kept["vectors"], strict=True))

    def of(self, texts: Sequence[str]) -> Floats:
        """A row for each text."""
        digests = [_digest(text.encode()) for text in texts]
        wanted = {digest: text for digest, text in zip(digests, texts, strict=True) if digest not in self._known}
        self._make(wanted)
        if not texts:
            return np.empty((0, DIMENSIONS), np.float32)
        return np.stack([self._known[digest] for digest in digests]).astype(np.float32)

    def _make(self, wanted: dict[str, str]) -> None:
        # Texts of similar length together, so that the threads end at about the same time.
        order = sorted(wanted, key=lambda digest: len(wanted[digest]))
        for start in range(0, len(order), BATCH):
            batch = order[start : start + BATCH]
            print(f"embedding {start + 1:,} to {start + len(batch):,} of {len(order):,}", file=sys.stderr, flush=True)
            pieces = [[wanted[one] for one in batch[at : at + PIECE]] for at in range(0, len(batch), PIECE)]
            with ThreadPoolExecutor(cpu_count()) as threads:
                made = np.concatenate(list(threads.map(self._model.vectors, pieces)))
            self._known |= dict(zip(batch, made.astype(np.float16), strict=True))
            self._keep()

    def _keep(self) -> None:
        KEPT.mkdir(parents=True, exist_ok=True)
        written = self._path.with_suffix(".new.npz")
        np.savez(written, digests=np.array(list(self._known)), vectors=np.stack(list(self._known.values())))
        written.replace(self._path)


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:32]
