"""The model that ships with the package, run by onnxruntime: texts in, vectors out, one text at a time."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from frontdesk.embedding.port import Vectors
from frontdesk.embedding.wordpiece import WordPiece

DIMENSIONS = 384
# Longer texts are cut. Of the 10,600 tools of six public sets, five in ten thousand are longer.
LONGEST = 128


class _Session(Protocol):
    def run(self, outputs: Sequence[str], inputs: Mapping[str, NDArray[np.int64]]) -> Sequence[Vectors]: ...


class MiniLm:
    """May be called from many threads at once: a run keeps nothing, and uses no thread but its caller's."""

    def __init__(self, folder: Path) -> None:
        self._words = WordPiece.read(folder / "vocab.txt")
        self._session = _session(folder / "model.onnx")

    def vectors(self, texts: Sequence[str]) -> Vectors:
        # A text is run alone. The numbers inside are rounded by the largest of them, so that beside others a text
        # would get another vector, and to run several at once saves next to nothing.
        found = np.empty((len(texts), DIMENSIONS), dtype=np.float32)
        for row, text in enumerate(texts):
            ids = np.array([self._words.ids(text, LONGEST)], dtype=np.int64)
            found[row] = self._session.run(["vectors"], {"ids": ids})[0][0]
        return found


def _session(path: Path) -> _Session:
    # It costs memory that only those should pay who search.
    import onnxruntime  # noqa: PLC0415

    # Half of its names have no types.
    runtime: Any = onnxruntime
    options = runtime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    # Both keep memory for the next run: a few megabytes, and no time is lost without.
    options.enable_cpu_mem_arena = options.enable_mem_pattern = False
    return runtime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
